//! The engine's hands: watches turn objects into events, `apply` turns actions into guarded writes. No decision is made here.

pub mod apply;
pub mod backoff;
pub mod barrier;
pub mod call;
pub mod discovery;
pub mod listing;
pub mod look;
pub mod notice;
pub mod observed;
pub mod pulse;
pub mod queue;
pub mod reader;
pub mod reading;
pub mod run;
pub mod scope;
pub mod serve;
pub mod watch;
pub mod write;

#[cfg(test)]
#[allow(missing_docs)]
mod fake;
#[cfg(test)]
mod tests;

//! Decides. Pure: no clock, no I/O, no async, no client, no randomness.
//!
//! Facts come in as [`event::Event`]s, wishes go out as [`action::Action`]s, and all that is known is one [`world::World`].
//! Read `step` first, then `lifecycle` (what becomes of a claim) and `weigh` (the one list of what can stand in its way).

mod absorb;
pub mod action;
pub mod capacity;
mod claims;
pub mod clockwork;
mod emit;
pub mod event;
pub mod heartbeat;
pub mod invariant;
pub mod invent;
mod ledger;
mod lifecycle;
pub mod look;
mod matching;
pub mod order;
pub mod outbox;
mod outcome;
mod queue;
mod receipt;
mod repair;
mod reserve;
mod resources;
mod scope;
pub mod selection;
mod several;
pub mod slab;
mod status;
mod step;
#[cfg(test)]
mod tests;
pub mod weigh;
pub mod world;

pub use clockwork::Deadlines;
pub use step::{Engine, Settings};

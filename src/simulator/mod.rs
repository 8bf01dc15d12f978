//! The engine on a virtual clock: an in-memory store with the API server's guards, and a workload.

pub mod command;
pub mod run;
pub mod store;
pub mod workload;

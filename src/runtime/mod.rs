//! What touches the machine: clocks, the leader's Lease, metrics, health, traces, the audit stream, signals, configuration.
//! Clock and environment are read here and nowhere else.

pub mod audit;
pub mod client;
pub mod clock;
pub mod config;
pub mod health;
pub mod leader;
pub mod memory;
pub mod metrics;
pub mod shutdown;
pub mod trace;

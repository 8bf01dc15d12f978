//! Tenure lends out scarce things in a Kubernetes cluster.

pub mod api;
pub mod engine;
pub mod simulator;

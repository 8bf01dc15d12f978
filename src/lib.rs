//! Tenure lends out scarce things in a Kubernetes cluster.

pub mod api;
pub mod controller;
pub mod engine;
pub mod runtime;
pub mod simulator;

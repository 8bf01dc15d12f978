//! Tenure lends out scarce things in a Kubernetes cluster.

pub mod api;

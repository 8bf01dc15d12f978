//! Tenure lends out scarce things in a Kubernetes cluster.

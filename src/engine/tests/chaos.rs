//! Random workloads and faults.

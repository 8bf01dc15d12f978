//! A real etcd and kube-apiserver on loopback, and the real `tenure` beside them, for tests and the demo.
//!
//! ```no_run
//! # async fn example() -> Result<(), e2e::Error> {
//! let control_plane = e2e::shared().await?;               // one for all tests of a binary
//! let kubeconfig = control_plane.install().await?;
//! let namespace = control_plane.new_namespace("drain").await?;
//! let ada = control_plane.client_as("ada", &["developers"]).await?;
//! let controller = control_plane.controller("one", kubeconfig, &["--log=debug"]).await?;
//! # Ok(()) }
//! ```
//!
//! A test that kills, freezes or restores a server takes a control plane of its own, by [`ControlPlane::start`]: those methods
//! want `&mut`. What is started here ends with the process that started it, however that ends.
//!
//! There is no controller-manager, scheduler or kubelet: nothing schedules or runs a Pod, nothing collects what an owner reference
//! should, a Namespace is emptied by [`ControlPlane::delete_namespace`], and Pods get no service account by default.

// Tests may look at the clock and at the environment.
#![allow(clippy::disallowed_methods)]

mod access;
mod authority;
mod control_plane;
mod controller;
mod error;
mod folder;
mod kubectl;
mod loopback;
mod namespace;
mod process;
mod snapshot;
pub mod tether;
mod tools;

pub use control_plane::{ControlPlane, shared};
pub use controller::Controller;
pub use error::Error;
pub use kubectl::Output;
pub use process::Process;
pub use snapshot::Snapshot;
pub use tools::tenure_binary;

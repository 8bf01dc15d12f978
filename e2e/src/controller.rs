//! The real `tenure controller`, as a process.

use std::{
    net::SocketAddr,
    ops::{Deref, DerefMut},
    path::Path,
    time::Duration,
};

use crate::{ControlPlane, Error, Process, loopback, tether, tools};

/// A running `tenure controller`. It can be killed, frozen and terminated as any [`Process`].
#[derive(Debug)]
pub struct Controller {
    process: Process,
    health: SocketAddr,
    metrics: SocketAddr,
}

impl ControlPlane {
    /// Starts `tenure controller` with a kubeconfig and further flags; its health and metrics are on free ports. `name` tells it from others, in
    /// its log's name and as its identity in leader election.
    ///
    /// # Errors
    /// When it can't be built or started.
    pub async fn controller(&self, name: &str, kubeconfig: &Path, flags: &[&str]) -> Result<Controller, Error> {
        let [health, metrics] = loopback::free_addresses()?;
        let mut command = tether::command(tools::tenure_binary().await?);
        command.arg("controller").args([
            format!("--health-address={health}"),
            format!("--metrics-address={metrics}"),
            format!("--identity={name}"),
        ]);
        command.args(flags).env("KUBECONFIG", kubeconfig);
        let process = Process::spawn(&format!("controller-{name}"), command, self.path())?;
        Ok(Controller { process, health, metrics })
    }
}

impl Controller {
    /// Waits until `/readyz` says that it does its work.
    ///
    /// # Errors
    /// When it ends or isn't ready within `bound`, with the end of its log.
    pub async fn ready(&mut self, bound: Duration) -> Result<(), Error> {
        let health = self.health;
        self.process.until("ready", bound, async || loopback::get(health, "/readyz").await).await.map(|_| ())
    }

    /// What `/metrics` says now.
    ///
    /// # Errors
    /// When no answer comes.
    pub async fn metrics(&self) -> Result<String, Error> {
        loopback::get(self.metrics, "/metrics").await.map_err(|why| Error::Api { what: "the controller's metrics".to_owned(), why })
    }
}

impl Deref for Controller {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Controller {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

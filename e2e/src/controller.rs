//! The real `tenure controller`, as a process.

use std::{
    net::SocketAddr,
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{ControlPlane, Error, Process, loopback, tether, tools};

/// The operator's own namespace.
const NAMESPACE: &str = "tenure-system";

/// A running `tenure controller`. It can be killed, frozen and terminated as any [`Process`].
#[derive(Debug)]
pub struct Controller {
    process: Process,
    health: SocketAddr,
    metrics: SocketAddr,
}

/// What is applied after the kinds, in the order of docs/install.md.
const CHART: [&str; 3] = ["charts/tenure/rbac", "charts/tenure/policies", "charts/tenure/classes"];

impl ControlPlane {
    /// Installs Tenure as docs/install.md says, unless that is done: kinds, roles, policies and classes. Gives the kubeconfig of the
    /// controller's service account, which has the rights that the chart gives it and no more. The API server enforces a policy
    /// about a second after it was applied.
    ///
    /// # Errors
    /// When a manifest is refused.
    pub async fn install(&self) -> Result<&Path, Error> {
        let install = async || {
            self.apply_crds().await?;
            let namespaces: Api<Namespace> = Api::all(self.client().await?);
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
            let applied = namespaces.patch(NAMESPACE, &PatchParams::apply("e2e"), &Patch::Apply(namespace)).await;
            applied.map_err(Error::api(format!("namespace {NAMESPACE}")))?;
            for folder in CHART {
                self.apply(folder).await?;
            }
            self.kubeconfig_for_service_account(NAMESPACE, "tenure-controller").await
        };
        self.installed.get_or_try_init(install).await.map(PathBuf::as_path)
    }

    /// Starts `tenure controller` with a kubeconfig and further flags; its health and metrics are on free ports. `name` tells
    /// it from others, in its log's name and as its identity in leader election.
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

//! Speaks to the control plane as users do: with kubectl.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

use crate::{ControlPlane, Error, tools};

/// No command here may take longer.
const BOUND: Duration = Duration::from_secs(60);

/// What a kubectl command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its exit status was 0.
    pub success: bool,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl ControlPlane {
    /// Runs kubectl as the administrator, and gives what it wrote to standard output.
    ///
    /// # Errors
    /// When it fails, with what it wrote to standard error.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String, Error> {
        let output = self.kubectl_with(&self.kubeconfig_path(), arguments).await?;
        if output.success { Ok(output.stdout) } else { Err(failed(arguments, output.stderr)) }
    }

    /// Runs kubectl with another kubeconfig; that it fails may be what a test wants to see.
    ///
    /// # Errors
    /// When it can't be run, or takes longer than a minute.
    pub async fn kubectl_with(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<Output, Error> {
        let built = self.programs().join("kubectl");
        let mut command = Command::new(if built.exists() { built.as_os_str() } else { "kubectl".as_ref() });
        command.env("KUBECONFIG", kubeconfig);
        // Its own cache is by address, and the API server that last had this address was another.
        command.arg("--cache-dir").arg(self.path().join("kubectl-cache")).args(arguments);
        command.current_dir(tools::repository()).stdin(Stdio::null()).kill_on_drop(true);
        let output = timeout(BOUND, command.output()).await;
        let output = output.map_err(|_| failed(arguments, format!("no end after {BOUND:?}")))?;
        let output = output.map_err(Error::machine("kubectl"))?;
        Ok(Output {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Applies the manifests of a folder or file of the repository, as in `examples`.
    ///
    /// # Errors
    /// When one is refused.
    pub async fn apply(&self, path: &str) -> Result<(), Error> {
        self.kubectl(&["apply", "--server-side", "--filename", path]).await.map(|_| ())
    }

    /// Applies `crds/`, and waits until the API server serves the kinds: for a moment after they are established it still
    /// answers that their storage is initializing, and only some clients ask again then, as kubectl does.
    ///
    /// # Errors
    /// When one is refused or isn't served in 30 seconds.
    pub async fn apply_crds(&self) -> Result<(), Error> {
        self.apply("crds").await?;
        self.kubectl(&["wait", "--for=condition=Established", "--timeout=30s", "--filename", "crds"]).await?;
        let path = "jsonpath={range .items[*]}/apis/{.spec.group}/{.spec.versions[0].name}/{.spec.names.plural} {end}";
        let collections = self.kubectl(&["get", "--output", path, "--filename", "crds"]).await?;
        for collection in collections.split_whitespace() {
            // Version 0 asks for what watches are served from.
            self.kubectl(&["get", "--raw", &format!("{collection}?resourceVersion=0")]).await?;
        }
        Ok(())
    }
}

fn failed(arguments: &[&str], answer: String) -> Error {
    Error::Kubectl { arguments: arguments.join(" "), answer }
}

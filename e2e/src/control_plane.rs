//! Starts etcd and kube-apiserver, and ends, freezes and restarts them.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client};
use serde_json::Value;
use tokio::{sync::OnceCell, time::timeout};

use crate::{
    Error, Process,
    access::{certificate_user, connect, kubeconfig},
    authority::Authority,
    folder::Folder,
    loopback::{free_addresses, get},
    tether, tools,
};

/// Generous: a start takes seconds, but a test machine may be busy building.
const START: Duration = Duration::from_secs(90);
/// How long one look at a server may take.
const LOOK: Duration = Duration::from_secs(2);
/// Another process may take a port between our looking and the server's listening.
const STARTS: u32 = 3;
const PORT_TAKEN: &str = "address already in use";

/// An etcd and a kube-apiserver on loopback, with role-based access control, in a temporary folder. They end when this is dropped,
/// and when this process ends, however it does.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order: the folder goes when nothing writes into it any more.
    api_server: Option<Process>,
    etcd: Option<Process>,
    folder: Folder,
    pub(crate) authority: Authority,
    /// The administrator, as kubeconfigs describe a user.
    pub(crate) admin: Value,
    pub(crate) api_address: SocketAddr,
    etcd_address: SocketAddr,
    etcd_peer_address: SocketAddr,
    programs: &'static Path,
    /// The kubeconfig of Tenure's controller, once Tenure is installed.
    pub(crate) installed: OnceCell<PathBuf>,
}

/// The control plane that all tests of one binary share. It is started by the first to ask and ends with the process.
///
/// # Errors
/// When it doesn't start; it isn't tried again for the others.
pub async fn shared() -> Result<&'static ControlPlane, Error> {
    static SHARED: OnceCell<Result<ControlPlane, Error>> = OnceCell::const_new();
    SHARED.get_or_init(ControlPlane::start).await.as_ref().map_err(Clone::clone)
}

impl ControlPlane {
    /// Starts one, in a few seconds; the first time on a machine its programs are built, which takes minutes.
    ///
    /// # Errors
    /// When a program can't be built or doesn't become ready, with the end of its log.
    pub async fn start() -> Result<Self, Error> {
        let programs = tools::folder().await?;
        let mut last = None;
        for _ in 0..STARTS {
            let mut control_plane = Self::prepare(programs)?;
            match control_plane.start_servers().await {
                Ok(()) => return Ok(control_plane),
                Err(Error::Ended { name, status, log }) if log.contains(PORT_TAKEN) => {
                    last = Some(Error::Ended { name, status, log });
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::Build("no start was tried".to_owned())))
    }

    /// The folder with its data, logs and kubeconfigs, which goes when the control plane does.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder with its programs, and with a kubectl if the machine has none.
    #[must_use]
    pub fn programs(&self) -> &Path {
        self.programs
    }

    /// The process ids of its servers that are there now.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        [&self.etcd, &self.api_server].into_iter().flatten().map(Process::pid).collect()
    }

    /// Kills the API server. Clients find nothing at its address until it is started again.
    ///
    /// # Errors
    /// When it can't be killed.
    pub fn kill_api_server(&mut self) -> Result<(), Error> {
        self.api_server = None;
        Ok(())
    }

    /// Starts the API server again, at the same address, and waits until it is ready.
    ///
    /// # Errors
    /// When it doesn't become ready.
    pub async fn start_api_server(&mut self) -> Result<(), Error> {
        if self.api_server.is_none() {
            self.api_server = Some(self.spawn_api_server()?);
        }
        self.await_api_server().await
    }

    /// Kills the API server and starts it again.
    ///
    /// # Errors
    /// When it doesn't become ready.
    pub async fn restart_api_server(&mut self) -> Result<(), Error> {
        self.kill_api_server()?;
        self.start_api_server().await
    }

    /// Freezes the API server: connections stay open, and no answer comes.
    ///
    /// # Errors
    /// When it isn't running.
    pub fn freeze_api_server(&mut self) -> Result<(), Error> {
        running(&mut self.api_server, "kube-apiserver")?.freeze()
    }

    /// Lets a frozen API server run on.
    ///
    /// # Errors
    /// When it isn't running.
    pub fn thaw_api_server(&mut self) -> Result<(), Error> {
        running(&mut self.api_server, "kube-apiserver")?.thaw()
    }

    pub(crate) fn etcd_folder(&self) -> PathBuf {
        self.path().join("etcd")
    }

    pub(crate) fn etcd(&mut self) -> Result<&mut Process, Error> {
        running(&mut self.etcd, "etcd")
    }

    pub(crate) fn kill_servers(&mut self) {
        self.api_server = None;
        self.etcd = None;
    }

    /// Starts both servers, and waits until they are ready.
    pub(crate) async fn start_servers(&mut self) -> Result<(), Error> {
        self.etcd = Some(self.spawn_etcd()?);
        let address = self.etcd_address;
        self.etcd()?.until("ready", START, async || get(address, "/readyz").await).await?;
        self.start_api_server().await
    }

    /// All that is needed before a server can start: a folder, addresses, keys and the administrator's kubeconfig.
    fn prepare(programs: &'static Path) -> Result<Self, Error> {
        let [api_address, etcd_address, etcd_peer_address] = free_addresses()?;
        let (folder, authority) = (Folder::new()?, Authority::new()?);
        let (server, (tokens_public, tokens_private)) = (authority.server()?, Authority::token_key()?);
        let admin = certificate_user(&authority.user("admin", "system:masters")?);
        let kubeconfig = kubeconfig(&format!("https://{api_address}"), &authority.certificate(), &admin);
        let files = [
            ("authority.crt", authority.certificate()),
            ("server.crt", server.certificate),
            ("server.key", server.key),
            ("tokens.pub", tokens_public),
            ("tokens.key", tokens_private),
            ("kubeconfig", kubeconfig),
        ];
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::write(&path, content).map_err(Error::machine(path.display().to_string()))?;
        }
        Ok(Self {
            api_server: None,
            etcd: None,
            folder,
            authority,
            admin,
            api_address,
            etcd_address,
            etcd_peer_address,
            programs,
            installed: OnceCell::new(),
        })
    }

    fn spawn_etcd(&self) -> Result<Process, Error> {
        let (client, peer) = (format!("http://{}", self.etcd_address), format!("http://{}", self.etcd_peer_address));
        let mut command = tether::command(self.programs.join("etcd"));
        command.arg("--data-dir").arg(self.etcd_folder());
        command.args(["--name=tenure", "--log-level=warn"]);
        command.args([format!("--listen-client-urls={client}"), format!("--advertise-client-urls={client}")]);
        command.args([format!("--listen-peer-urls={peer}"), format!("--initial-advertise-peer-urls={peer}")]);
        command.arg(format!("--initial-cluster=tenure={peer}"));
        // Nothing here outlives the machine, and the page cache outlives a killed process.
        command.arg("--unsafe-no-fsync");
        Process::spawn("etcd", command, self.path())
    }

    fn spawn_api_server(&self) -> Result<Process, Error> {
        let file = |name: &str| self.path().join(name).display().to_string();
        let mut command = tether::command(self.programs.join("kube-apiserver"));
        command.args([
            format!("--etcd-servers=http://{}", self.etcd_address),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.api_address.port()),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--anonymous-auth=false".to_owned(),
            "--allow-privileged=true".to_owned(),
            format!("--client-ca-file={}", file("authority.crt")),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", file("tokens.pub")),
            format!("--service-account-signing-key-file={}", file("tokens.key")),
            // Nobody makes the service account "default" in new namespaces, without which this plugin refuses all Pods.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            // There is no node whose address the Service "kubernetes" could have.
            "--endpoint-reconciler-type=none".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            "--profiling=false".to_owned(),
        ]);
        Process::spawn("kube-apiserver", command, self.path())
    }

    async fn await_api_server(&mut self) -> Result<(), Error> {
        let text = kubeconfig(&self.url(), &self.authority.certificate(), &self.admin);
        let client = connect(&text).await?;
        let server = running(&mut self.api_server, "kube-apiserver")?;
        let look = async || timeout(LOOK, look_at(&client)).await.unwrap_or_else(|_| Err(format!("no answer in {LOOK:?}")));
        server.until("ready", START, look).await
    }
}

/// Whether the API server says that it is ready, and its first namespace is there.
async fn look_at(client: &Client) -> Result<(), String> {
    // The address is ours, so the request can't be malformed.
    let request = http::Request::get("/readyz?verbose").body(Vec::new()).map_err(|error| error.to_string())?;
    client.request_text(request).await.map_err(|error| error.to_string())?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.get("default").await.map(|_| ()).map_err(|error| error.to_string())
}

fn running<'process>(process: &'process mut Option<Process>, name: &str) -> Result<&'process mut Process, Error> {
    process.as_mut().ok_or_else(|| Error::Machine { what: name.to_owned(), why: "it isn't running".to_owned() })
}

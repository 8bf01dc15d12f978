//! The control plane that other tests stand on: that it starts, judges users, survives what tests do to it, and leaves nothing behind.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use e2e::{ControlPlane, Process, shared, tether};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::time::timeout;

/// Long enough for a busy machine; no test waits so long unless it fails.
const SOON: Duration = Duration::from_secs(15);

fn map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("value".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

async fn maps(control_plane: &ControlPlane) -> Api<ConfigMap> {
    Api::namespaced(control_plane.client().await.unwrap(), "default")
}

fn code(error: kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("not an answer of the API server: {other}"),
    }
}

/// Gone, or dead and only not yet collected by whoever inherited it.
fn is_gone(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().unwrap_or_default().chars().next().is_none_or(|state| state == 'Z')
}

fn await_true(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < SOON, "not within {SOON:?}: {what}");
        sleep(Duration::from_millis(20));
    }
}

fn children(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(parent.to_string().as_str())
    };
    pids.filter(is_child).collect()
}

/// The program for people, started; with the folder it works in and the processes it started.
fn start_program() -> (Child, PathBuf, Vec<u32>) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_control-plane"));
    let mut owner = program.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").expect("a KUBECONFIG line");
    let folder = Path::new(kubeconfig).parent().unwrap().to_owned();
    let started = children(owner.id());
    assert!(started.len() >= 2, "etcd and kube-apiserver, at least: {started:?}");
    (owner, folder, started)
}

#[tokio::test]
async fn rbac_gives_a_user_only_what_was_granted() {
    let control_plane = shared().await.unwrap();
    let namespace = control_plane.new_namespace("rbac").await.unwrap();
    let ada: Api<ConfigMap> = Api::namespaced(control_plane.client_as("ada", &["readers", "others"]).await.unwrap(), &namespace);
    assert_eq!(code(ada.list(&Default::default()).await.unwrap_err()), 403);

    let role = ["create", "role", "reader", "--verb=list", "--resource=configmaps", "-n", &namespace];
    control_plane.kubectl(&role).await.unwrap();
    let binding = ["create", "rolebinding", "readers", "--role=reader", "--group=readers", "-n", &namespace];
    control_plane.kubectl(&binding).await.unwrap();
    await_list(&ada).await;
    assert_eq!(code(ada.create(&PostParams::default(), &map("mine", "1")).await.unwrap_err()), 403);

    let kubeconfig = control_plane.kubeconfig_as("bob", &[]).unwrap();
    let output = control_plane.kubectl_with(&kubeconfig, &["get", "configmaps", "-n", &namespace]).await.unwrap();
    assert!(!output.success && output.stderr.contains("\"bob\" cannot list"), "{output:?}");
}

/// The authorizer learns of a new role by a watch.
async fn await_list(maps: &Api<ConfigMap>) {
    let started = Instant::now();
    while let Err(error) = maps.list(&Default::default()).await {
        assert!(started.elapsed() < SOON, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_service_account_is_known_by_its_token() {
    let control_plane = shared().await.unwrap();
    let namespace = control_plane.new_namespace("token").await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(control_plane.client().await.unwrap(), &namespace);
    let mut account = ServiceAccount::default();
    account.metadata.name = Some("worker".to_owned());
    accounts.create(&PostParams::default(), &account).await.unwrap();

    let kubeconfig = control_plane.kubeconfig_for_service_account(&namespace, "worker").await.unwrap();
    let output = control_plane.kubectl_with(&kubeconfig, &["auth", "whoami"]).await.unwrap();
    assert!(output.stdout.contains(&format!("system:serviceaccount:{namespace}:worker")), "{output:?}");
}

#[tokio::test]
async fn a_namespace_goes_once_it_is_empty() {
    let control_plane = shared().await.unwrap();
    let name = control_plane.new_namespace("gone").await.unwrap();
    let client = control_plane.client().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &name);
    let mut held = map("held", "1");
    held.metadata.finalizers = Some(vec!["tenure.dev/test".to_owned()]);
    maps.create(&PostParams::default(), &held).await.unwrap();

    let let_go = async {
        loop {
            // Its deletion is asked for; only then does the finalizer go.
            if maps.get("held").await.unwrap().metadata.deletion_timestamp.is_some() {
                let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                break maps.patch("held", &PatchParams::default(), &patch).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let (deleted, _) = timeout(SOON, async { tokio::join!(control_plane.delete_namespace(&name), let_go) }).await.unwrap();
    deleted.unwrap();
    let namespaces: Api<Namespace> = Api::all(client);
    assert!(namespaces.get_opt(&name).await.unwrap().is_none());
}

#[tokio::test]
async fn data_outlives_a_killed_api_server() {
    let mut control_plane = ControlPlane::start().await.unwrap();
    let maps = maps(&control_plane).await;
    maps.create(&PostParams::default(), &map("kept", "1")).await.unwrap();
    control_plane.kill_api_server().unwrap();
    assert!(matches!(maps.get("kept").await.unwrap_err(), kube::Error::Service(_) | kube::Error::HyperError(_)));
    control_plane.start_api_server().await.unwrap();
    assert_eq!(maps.get("kept").await.unwrap().data.unwrap()["value"], "1");
}

#[tokio::test]
async fn a_snapshot_takes_everything_back() {
    let mut control_plane = ControlPlane::start().await.unwrap();
    let maps = maps(&control_plane).await;
    let before = maps.create(&PostParams::default(), &map("changed", "before")).await.unwrap();
    let snapshot = control_plane.snapshot().await.unwrap();
    let patch = Patch::Merge(json!({"data": {"value": "after"}}));
    maps.patch("changed", &PatchParams::default(), &patch).await.unwrap();
    maps.create(&PostParams::default(), &map("new", "1")).await.unwrap();

    control_plane.restore(&snapshot).await.unwrap();
    let after = maps.get("changed").await.unwrap();
    assert_eq!(after.data.unwrap()["value"], "before");
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version);
    assert!(maps.get_opt("new").await.unwrap().is_none());
}

#[tokio::test]
async fn a_frozen_api_server_answers_once_it_is_thawed() {
    let mut control_plane = ControlPlane::start().await.unwrap();
    let maps = maps(&control_plane).await;
    maps.create(&PostParams::default(), &map("late", "1")).await.unwrap();
    control_plane.freeze_api_server().unwrap();
    let mut question = std::pin::pin!(maps.get("late"));
    assert!(timeout(Duration::from_millis(500), &mut question).await.is_err());
    control_plane.thaw_api_server().unwrap();
    timeout(SOON, question).await.unwrap().unwrap();
}

#[tokio::test]
async fn two_control_planes_know_nothing_of_each_other() {
    let (one, two) = tokio::join!(ControlPlane::start(), ControlPlane::start());
    let (one, two) = (one.unwrap(), two.unwrap());
    maps(&one).await.create(&PostParams::default(), &map("one", "1")).await.unwrap();
    assert!(maps(&two).await.get_opt("one").await.unwrap().is_none());
    assert_ne!(one.url(), two.url());
}

#[tokio::test]
async fn nothing_is_left_when_it_is_dropped() {
    let control_plane = ControlPlane::start().await.unwrap();
    let (pids, folder) = (control_plane.pids(), control_plane.path().to_owned());
    assert!(pids.len() == 2 && pids.iter().all(|pid| !is_gone(*pid)));
    drop(control_plane);
    assert!(pids.iter().all(|pid| is_gone(*pid)));
    assert!(!folder.exists());
}

#[test]
fn nothing_is_left_when_its_owner_is_killed() {
    let (mut owner, folder, started) = start_program();
    owner.kill().unwrap();
    owner.wait().unwrap();
    await_true("all its processes are gone", || started.iter().all(|pid| is_gone(*pid)));
    await_true("its folder is gone", || !folder.exists());
}

#[test]
fn nothing_is_left_after_ctrl_c_and_sigterm() {
    for signal in [Signal::INT, Signal::TERM] {
        let (mut owner, folder, started) = start_program();
        kill_process(Pid::from_child(&owner), signal).unwrap();
        assert_eq!(owner.wait().unwrap().code(), Some(130));
        assert!(started.iter().all(|pid| is_gone(*pid)), "{signal:?}");
        assert!(!folder.exists(), "{signal:?}");
    }
}

#[test]
fn a_command_gets_the_kubeconfig_and_its_status_is_handed_on() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_control-plane"));
    let output = program.args(["sh", "-c", "kubectl get namespace default && exit 7"]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Active"));
}

#[tokio::test]
async fn a_process_can_be_frozen_thawed_terminated_and_killed() {
    let folder = tempfile::tempdir().unwrap();
    let spawn = |script: &str| {
        let mut command = tether::command("sh");
        command.args(["-c", script]);
        Process::spawn("ticker", command, folder.path()).unwrap()
    };
    let mut ticker = spawn("trap 'echo bye; exit 3' TERM; while :; do echo tick; sleep 0.02; done");
    let ticks = |process: &Process| process.log().unwrap().matches("tick").count();
    await_true("it ticks", || ticks(&ticker) > 2);
    ticker.freeze().unwrap();
    sleep(Duration::from_millis(100));
    let frozen = ticks(&ticker);
    sleep(Duration::from_millis(200));
    assert_eq!(ticks(&ticker), frozen);
    ticker.thaw().unwrap();
    await_true("it ticks again", || ticks(&ticker) > frozen);
    assert_eq!(ticker.terminate(SOON).await.unwrap().code(), Some(3));
    assert!(ticker.log().unwrap().ends_with("bye\n"));
    assert!(ticker.freeze().unwrap_err().to_string().contains("ended"), "what has ended can't be frozen");

    let mut deaf = spawn("trap '' TERM; echo ready; while :; do sleep 0.02; done");
    await_true("it is deaf", || deaf.log().unwrap().ends_with("ready\n"));
    assert!(deaf.terminate(Duration::from_millis(200)).await.unwrap_err().to_string().contains("it still runs"));
    assert_eq!(deaf.kill().unwrap().code(), None);
}

#[tokio::test]
async fn a_server_that_fails_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = tether::command("sh");
    command.args(["-c", "echo the port is taken; exit 4"]);
    let mut server = Process::spawn("server", command, folder.path()).unwrap();
    server.logged("port is taken", SOON).await.unwrap();
    let never = server.until("ready", SOON, async || Err::<(), _>("refused".to_owned())).await;
    let message = never.unwrap_err().to_string();
    assert!(message.contains("exit status: 4") && message.contains("the port is taken"), "{message}");
}

/// The script that builds etcd and kube-apiserver.
fn builder() -> Command {
    let mut command = Command::new("bash");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/build.sh"));
    command
}

#[tokio::test]
async fn what_was_built_before_is_found_again() {
    let built = shared().await.unwrap().programs();
    let output = builder().output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), built.to_str().unwrap());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing had to be built");
}

#[test]
fn without_go_the_builder_says_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    for needed in ["dirname", "sed"] {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(needed), folder.path().join(needed)).unwrap();
    }
    // Found by its whole name, since the PATH is for what it starts.
    let mut command = Command::new("/bin/bash");
    let output = command.args(builder().get_args()).env("PATH", folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("Go is missing") && said.contains("golang-go"), "{said}");
}

#[tokio::test]
async fn the_operator_is_built_from_this_working_tree() {
    let binary = e2e::tenure_binary().await.unwrap();
    let status = Command::new(binary).arg("--help").stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn a_shared_control_plane_is_the_same_for_all() {
    let (one, two) = (shared().await.unwrap(), shared().await.unwrap());
    assert_eq!(one.pids(), two.pids());
    let version = version(one.client().await.unwrap()).await;
    assert!(version.starts_with("v1.37."), "{version}");
}

async fn version(client: Client) -> String {
    client.apiserver_version().await.unwrap().git_version
}

#[tokio::test]
async fn tenure_is_installed_as_its_documents_say() {
    let control_plane = ControlPlane::start().await.unwrap();
    let kubeconfig = control_plane.install().await.unwrap();
    assert_eq!(control_plane.install().await.unwrap(), kubeconfig, "the second time does nothing");
    let kinds = control_plane.kubectl(&["api-resources", "--api-group=tenure.dev", "--output=name"]).await.unwrap();
    assert!(kinds.contains("claims.tenure.dev") && kinds.contains("resources.tenure.dev"), "{kinds}");

    let may = async |verb, kind| {
        let output = control_plane.kubectl_with(kubeconfig, &["auth", "can-i", verb, kind]).await.unwrap();
        output.stdout.trim().to_owned()
    };
    assert_eq!(may("watch", "claims.tenure.dev").await, "yes");
    assert_eq!(may("create", "claims.tenure.dev").await, "no");
}

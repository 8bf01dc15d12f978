//! Finds or builds the programs: etcd, kube-apiserver and kubectl by `e2e/tools`, `tenure` by cargo.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::OnceLock,
};

use tokio::task::spawn_blocking;

use crate::{Error, tether};

/// How the variables begin in which cargo tells a test about its package.
const OUTER_CARGO: [&str; 5] = ["CARGO_BIN_", "CARGO_CRATE_", "CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_PRIMARY_"];

/// The repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/")).to_owned()
}

/// The folder with etcd and kube-apiserver, which are built first if need be: minutes, the first time.
pub(crate) async fn folder() -> Result<&'static Path, Error> {
    static FOLDER: OnceLock<Result<PathBuf, Error>> = OnceLock::new();
    once(&FOLDER, || {
        let script = repository().join("e2e/tools/build.sh");
        // Its progress goes where ours does, not into what the test runner captures.
        let mut command = tether::command(&script);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let built = tether::spawn(command).and_then(Child::wait_with_output);
        let built = built.map_err(Error::machine(script.display().to_string()))?;
        if built.status.success() {
            Ok(PathBuf::from(String::from_utf8_lossy(&built.stdout).trim()))
        } else {
            Err(Error::Build(format!("{} failed ({}); it says above why", script.display(), built.status)))
        }
    })
    .await
}

/// The `tenure` binary of this working tree, built first if it isn't up to date, with the profile that the caller was built with.
///
/// # Errors
/// When it can't be built.
pub async fn tenure_binary() -> Result<&'static Path, Error> {
    static BINARY: OnceLock<Result<PathBuf, Error>> = OnceLock::new();
    once(&BINARY, || {
        let own = env::current_exe().map_err(Error::machine("the path of this program"))?;
        // target/PROFILE/PROGRAM or target/PROFILE/deps/TEST
        let folder = own.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
        let (Some(folder), Some(target)) = (folder, folder.and_then(Path::parent)) else {
            return Err(Error::Build(format!("{} isn't in a cargo target folder", own.display())));
        };
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(profile) => profile,
        };
        let mut cargo = tether::command(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(repository()).args(["build", "--quiet", "--workspace", "--bin", "tenure", "--profile", profile]);
        // Together with a test, so that dependencies have the features they have in a test run, and aren't built twice.
        if profile == "dev" {
            cargo.args(["--test", "tidy"]);
        }
        // What the outer cargo tells its test would make some dependencies' build scripts believe that they have to run again.
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(|name| OUTER_CARGO.iter().any(|prefix| name.starts_with(prefix))) {
                cargo.env_remove(name);
            }
        }
        cargo.arg("--target-dir").arg(target).stdin(Stdio::null());
        let status = tether::spawn(cargo).and_then(|mut child| child.wait());
        let status = status.map_err(Error::machine("cargo build --bin tenure"))?;
        if status.success() {
            Ok(folder.join("tenure"))
        } else {
            Err(Error::Build(format!("cargo build --bin tenure failed ({status}); it says above why")))
        }
    })
    .await
}

/// Does the slow work once in the life of this process, away from the threads that serve others.
async fn once(
    cell: &'static OnceLock<Result<PathBuf, Error>>,
    work: impl FnOnce() -> Result<PathBuf, Error> + Send + 'static,
) -> Result<&'static Path, Error> {
    let done = spawn_blocking(|| cell.get_or_init(work)).await;
    let done = done.map_err(|error| Error::Build(error.to_string()))?;
    done.as_deref().map_err(Clone::clone)
}

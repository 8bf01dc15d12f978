//! Starts a control plane for people and scripts: `cargo run -p e2e --bin control-plane -- [--keep] [COMMAND...]`.

// A program for tests and demonstrations; clocks and environment are its own affair.
#![allow(clippy::disallowed_methods)]

use std::{
    env,
    error::Error,
    ffi::OsString,
    process::{Child, ExitStatus, exit},
    time::Duration,
};

use clap::Parser;
use e2e::{ControlPlane, tether};
use tokio::{
    select,
    signal::unix::{SignalKind, signal},
    time::sleep,
};

/// As shells say it for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Starts an etcd and a kube-apiserver on loopback and prints a KUBECONFIG line.
///
/// They run until Ctrl-C, or until COMMAND has ended, and take all their data with them.
#[derive(Parser)]
struct Arguments {
    /// Go on running after COMMAND has ended, until Ctrl-C
    #[arg(long)]
    keep: bool,
    /// Runs with KUBECONFIG set, and with a kubectl in PATH; its exit status becomes that of this program
    #[arg(trailing_var_arg = true)]
    command: Vec<String>,
}

#[tokio::main]
async fn main() {
    let code = run(Arguments::parse()).await.unwrap_or_else(|error| {
        eprintln!("control-plane: {error}");
        1
    });
    // The control plane has been dropped. What may still run is a build, which ends with this process: not waited for.
    exit(code.into());
}

async fn run(arguments: Arguments) -> Result<u8, Box<dyn Error>> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let work = async {
        let control_plane = ControlPlane::start().await?;
        println!("export KUBECONFIG={}", control_plane.kubeconfig_path().display());
        let mut code = 0;
        if let Some((program, rest)) = arguments.command.split_first() {
            let mut command = tether::command(program);
            command.args(rest).env("KUBECONFIG", control_plane.kubeconfig_path()).env("PATH", path(&control_plane));
            code = exit_code(finish(tether::spawn(command)?).await?);
        }
        if arguments.keep || arguments.command.is_empty() {
            eprintln!("control-plane: running until Ctrl-C; pids {:?}, logs in {}", control_plane.pids(), control_plane.path().display());
            std::future::pending::<()>().await;
        }
        Ok::<u8, Box<dyn Error>>(code)
    };
    // Whichever comes first, leaving here drops the control plane, and with it its processes.
    select! {
        done = work => done,
        _ = interrupt.recv() => Ok(INTERRUPTED),
        _ = terminate.recv() => Ok(INTERRUPTED),
    }
}

/// The machine's own programs first.
fn path(control_plane: &ControlPlane) -> OsString {
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":");
    path.push(control_plane.programs());
    path
}

async fn finish(mut child: Child) -> std::io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

//! Ties a child's life to this process: however this one ends, by SIGKILL even, the child is killed with it.
//!
//! The kernel kills the child when the *thread* that made it ends, and a test's thread ends with the test. So all children are
//! made by one thread that lasts as long as the process.

use std::{
    ffi::OsStr,
    io,
    process::{Child, Command},
    sync::{
        OnceLock,
        mpsc::{Sender, SyncSender, channel, sync_channel},
    },
    thread,
};

/// Runs between fork and the program itself: if this process is gone by then, so that the kernel will send no signal, it ends.
const STILL_A_CHILD: &str = r#"[ "$PPID" = "$1" ] || exit 1; shift; exec "$@""#;

type Order = (Command, SyncSender<io::Result<Child>>);

static MAKER: OnceLock<Option<Sender<Order>>> = OnceLock::new();

/// `program`, killed by the kernel as soon as this process ends. To be started by [`spawn`] only.
#[must_use]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "sh", "-c", STILL_A_CHILD, "sh"]);
    command.arg(std::process::id().to_string()).arg(program);
    command
}

/// Starts what [`command`] made. The child's pid is that of the program.
///
/// # Errors
/// When it can't be started, as where `setpriv` (of util-linux) is missing.
pub fn spawn(command: Command) -> io::Result<Child> {
    let lost = || io::Error::other("the thread that starts processes is gone");
    let maker = MAKER.get_or_init(start_maker).as_ref().ok_or_else(lost)?;
    let (answer, answered) = sync_channel(1);
    maker.send((command, answer)).map_err(|_| lost())?;
    answered.recv().map_err(|_| lost())?
}

fn start_maker() -> Option<Sender<Order>> {
    let (maker, orders) = channel::<Order>();
    let work = move || {
        for (mut command, answer) in orders {
            // Whoever asked may have given up; then the child is nobody's.
            if let Err(unclaimed) = answer.send(command.spawn())
                && let Ok(mut child) = unclaimed.0
            {
                drop(child.kill());
                drop(child.wait());
            }
        }
    };
    thread::Builder::new().name("tether".to_owned()).spawn(work).ok().map(|_| maker)
}

//! A temporary folder that goes away with this process, however that ends.

use std::{
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use crate::Error;

/// Removes the folder when its standard input ends. Servers killed at the same moment may still write into it, so it tries again.
const SWEEP: &str = r#"cat >/dev/null; tries=0
until rm -rf -- "$1" && [ ! -e "$1" ]; do
  tries=$((tries + 1)); [ "$tries" -lt 50 ] || exit 1; sleep 0.1
done 2>/dev/null"#;

/// A temporary folder, removed when this is dropped or when the process ends.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    sweeper: Child,
    /// Held open for as long as the folder is wanted: the kernel closes it if nobody else can.
    wanted: Option<ChildStdin>,
}

impl Folder {
    /// Makes one.
    ///
    /// # Errors
    /// When it can't be made, or no shell started to remove it later.
    pub(crate) fn new() -> Result<Self, Error> {
        let made = tempfile::Builder::new().prefix("tenure-").tempdir().map_err(Error::machine("a temporary folder"))?;
        let mut sweeper = Command::new("sh");
        // A group of its own: Ctrl-C must not end it before its work.
        sweeper.args(["-c", SWEEP, "sh"]).arg(made.path()).current_dir("/").process_group(0);
        sweeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut sweeper = sweeper.spawn().map_err(Error::machine("the shell that removes the temporary folder"))?;
        let wanted = sweeper.stdin.take();
        Ok(Self { path: made.keep(), sweeper, wanted })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.wanted.take());
        drop(self.sweeper.wait());
    }
}

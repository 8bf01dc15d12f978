//! Takes the data of a control plane back to an earlier moment, as the restoring of a backup does.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use crate::{ControlPlane, Error};

/// All objects of a control plane at one moment. It goes with the control plane it was taken of.
#[derive(Clone, Debug)]
pub struct Snapshot {
    folder: PathBuf,
}

impl ControlPlane {
    /// Remembers all objects as they are now.
    ///
    /// # Errors
    /// When the data can't be copied.
    pub async fn snapshot(&mut self) -> Result<Snapshot, Error> {
        let count = fs::read_dir(self.path()).map_err(Error::machine("the control plane's folder"))?.count();
        let folder = self.path().join(format!("snapshot-{count}"));
        let from = self.etcd_folder();
        // What is read while etcd stands still is what it would find after a crash at this moment, from which it recovers.
        self.etcd()?.freeze()?;
        let copied = copy(&from, &folder).await;
        self.etcd()?.thaw()?;
        copied.map(|()| Snapshot { folder })
    }

    /// Makes all objects what they were at the snapshot, with their resourceVersions. Both servers are killed and started
    /// again: all watches and requests on their way break.
    ///
    /// # Errors
    /// When the data can't be copied, or a server doesn't start on it.
    pub async fn restore(&mut self, snapshot: &Snapshot) -> Result<(), Error> {
        self.kill_servers();
        // Tenure may not have been there yet.
        self.installed.take();
        let data = self.etcd_folder();
        fs::remove_dir_all(&data).map_err(Error::machine(data.display().to_string()))?;
        copy(&snapshot.folder, &data).await?;
        self.start_servers().await
    }
}

async fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let what = format!("copying {} to {}", from.display(), to.display());
    let done = Command::new("cp").arg("-a").arg(from).arg(to).output().await.map_err(Error::machine(&what))?;
    if done.status.success() { Ok(()) } else { Err(Error::Machine { what, why: String::from_utf8_lossy(&done.stderr).into_owned() }) }
}

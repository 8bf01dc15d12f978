//! One JSON line for every ledger write whose end is known: who occupied what, before and after.

use std::{
    fs::OpenOptions,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    thread::JoinHandle,
};

use serde::Serialize;
use tokio::sync::mpsc;

/// Lines that may wait for the disk; past it a ledger write's outcome waits too, so nothing is lost.
const WAITING: usize = 1_024;

/// Where the lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// A file, appended to.
    File(PathBuf),
}

impl std::str::FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "" => Err("name a file, `-` for standard output, or `off`".to_owned()),
            "off" => Ok(Self::Off),
            "-" => Ok(Self::Stdout),
            path => Ok(Self::File(PathBuf::from(path))),
        }
    }
}

/// Why lines can't be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file can't be opened.
    #[error("can't append to --audit {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The thread that writes can't be started.
    #[error("can't start the audit stream: {0}")]
    Thread(#[source] io::Error),
}

/// One line.
#[derive(Debug, Serialize)]
pub struct Record<'a, T> {
    /// When the end was known, RFC 3339.
    pub at: jiff::Timestamp,
    /// The Resource.
    pub resource: &'a str,
    /// The ledger as the engine believed it stood.
    pub before: &'a T,
    /// The ledger that was written.
    pub after: &'a T,
    /// Why it was written.
    pub cause: &'a str,
    /// The leader's term.
    pub term: i64,
    /// `Written`, or `ReadBack` when no answer came and the object showed it.
    pub outcome: &'static str,
}

/// Takes lines. Cheap to clone; the last clone's end lets the writer finish.
#[derive(Clone, Debug)]
pub struct Audit(Option<mpsc::Sender<Vec<u8>>>);

/// Waits until every line taken is on disk.
#[derive(Debug)]
pub struct Flush(Option<JoinHandle<()>>);

impl Audit {
    /// Opens the destination.
    ///
    /// # Errors
    /// When the file can't be opened for appending or the writing thread can't be started.
    pub fn open(destination: &Destination) -> Result<(Self, Flush), Error> {
        let writer: Box<dyn Write + Send> = match destination {
            Destination::Off => return Ok((Self(None), Flush(None))),
            Destination::Stdout => Box::new(io::stdout()),
            Destination::File(path) => Box::new(append(path)?),
        };
        let (sender, receiver) = mpsc::channel(WAITING);
        let thread = std::thread::Builder::new().name("audit".to_owned()).spawn(move || drain(receiver, writer));
        Ok((Self(Some(sender)), Flush(Some(thread.map_err(Error::Thread)?))))
    }

    /// An audit stream that keeps nothing.
    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }

    /// Hands over one line; waits while too many wait for the disk.
    pub async fn record<T: Serialize>(&self, record: &Record<'_, T>) {
        let Some(sender) = &self.0 else { return };
        match serde_json::to_vec(record) {
            Ok(mut line) => {
                line.push(b'\n');
                if sender.send(line).await.is_err() {
                    tracing::error!(resource = record.resource, "the audit stream has ended: a ledger write is missing from it");
                }
            }
            Err(error) => tracing::error!(%error, resource = record.resource, "a ledger write is missing from the audit stream"),
        }
    }
}

impl Flush {
    /// Waits for the writer; every `Audit` must be gone by then.
    pub fn wait(self) {
        if self.0.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the audit stream's writer failed");
        }
    }
}

fn append(path: &Path) -> Result<std::fs::File, Error> {
    OpenOptions::new().create(true).append(true).open(path).map_err(|source| Error::Open { path: path.to_owned(), source })
}

fn drain(mut receiver: mpsc::Receiver<Vec<u8>>, writer: Box<dyn Write + Send>) {
    let mut writer = BufWriter::new(writer);
    let mut lines = Vec::new();
    while receiver.blocking_recv_many(&mut lines, WAITING) > 0 {
        let written = lines.drain(..).try_for_each(|line| writer.write_all(&line)).and_then(|()| writer.flush());
        if let Err(error) = written {
            tracing::error!(%error, "the audit stream lost lines");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_line_taken_is_in_the_file_after_the_flush() {
        let path = std::env::temp_dir().join(format!("tenure-audit-{}", std::process::id()));
        let (audit, flush) = Audit::open(&Destination::File(path.clone())).unwrap();
        for revision in 0..2_000 {
            let at = jiff::Timestamp::UNIX_EPOCH;
            let record = Record { at, resource: "r", before: &revision, after: &(revision + 1), cause: "c", term: 3, outcome: "Written" };
            audit.record(&record).await;
        }
        drop(audit);
        flush.wait();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text.lines().count(), 2_000);
        let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!(last["after"], 2_000);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_named() {
        let error = Audit::open(&Destination::File("/nonexistent/audit".into())).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/audit"), "{error}");
    }
}

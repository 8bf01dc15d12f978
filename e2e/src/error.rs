//! Why the control plane, or something done with it, failed.

use std::{io, process::ExitStatus, time::Duration};

/// Why the control plane, or something done with it, failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Etcd and kube-apiserver, or `tenure`, can't be built; the builder has said why on standard error.
    #[error("{0}")]
    Build(String),
    /// Something with files or processes failed.
    #[error("{what}: {why}")]
    Machine {
        /// What was tried.
        what: String,
        /// What the machine answered.
        why: String,
    },
    /// A process ended that should have gone on.
    #[error("{name} ended ({status}); the end of its log:\n{log}")]
    Ended {
        /// Which process.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// A process isn't where it should be by now.
    #[error("{name} is not {state} after {waited:?}: {why}; the end of its log:\n{log}")]
    Late {
        /// Which process.
        name: String,
        /// What was waited for.
        state: &'static str,
        /// How long.
        waited: Duration,
        /// What was seen last.
        why: String,
        /// The last lines of its log.
        log: String,
    },
    /// A key or certificate can't be made.
    #[error("no certificate for {subject}: {why}")]
    Certificate {
        /// For whom.
        subject: String,
        /// Why not.
        why: String,
    },
    /// The API server refused or didn't answer.
    #[error("{what}: {why}")]
    Api {
        /// What was asked of it.
        what: String,
        /// Its answer.
        why: String,
    },
    /// A kubectl command failed.
    #[error("kubectl {arguments} failed: {answer}")]
    Kubectl {
        /// What it was called with.
        arguments: String,
        /// What it wrote to standard error.
        answer: String,
    },
}

impl Error {
    /// For `map_err` on what files and processes answer.
    pub(crate) fn machine(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |error| Self::Machine { what, why: error.to_string() }
    }

    /// For `map_err` on what the API server answers.
    pub(crate) fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        |error| Self::Api { what, why: error.to_string() }
    }
}

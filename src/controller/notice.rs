//! Tells people, by Kubernetes Events. A notice is a wake, never the authority (N1, N2): one that can't be written is dropped.

use std::{sync::Arc, time::Duration};

use http::Method;
use kube::Client;
use serde_json::json;
use tokio::sync::mpsc;

use super::{
    call::{call, request},
    observed::Identity,
};
use crate::{
    api::{GROUP, VERSION},
    runtime::{
        clock::Clock,
        metrics::{Metrics, SourceLabels},
    },
};

/// Notices that may wait; more are dropped and counted.
const WAITING: usize = 256;
/// How long one may take.
const LIMIT: Duration = Duration::from_secs(5);
/// The longest text of a notice that the API server takes.
const TEXT: usize = 1_000;

#[derive(Debug)]
struct Note {
    kind: &'static str,
    identity: Identity,
    reason: &'static str,
    text: String,
}

/// Takes notices. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Notes {
    sender: mpsc::Sender<Note>,
    metrics: Arc<Metrics>,
}

/// Writes notices.
#[derive(Debug)]
pub struct Writer {
    receiver: mpsc::Receiver<Note>,
}

/// A pair: what takes notices, and what writes them.
#[must_use]
pub fn channel(metrics: Arc<Metrics>) -> (Notes, Writer) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Notes { sender, metrics }, Writer { receiver })
}

impl Notes {
    /// One of Tenure's own objects can't be decoded: counted, logged by name, and noted on the object.
    pub fn undecodable(&self, kind: &'static str, identity: &Identity, why: &str) {
        self.metrics.undecodable.get_or_create(&SourceLabels { source: kind.to_owned() }).inc();
        tracing::warn!(kind, object = %identity.key, version = identity.resource_version, why, "can't be decoded: left alone");
        let text = format!("This {kind} can't be decoded and is left alone until it is corrected: {why}");
        let note = Note { kind, identity: identity.clone(), reason: "Undecodable", text: text.chars().take(TEXT).collect() };
        if self.sender.try_send(note).is_err() {
            self.metrics.notices_dropped.inc();
        }
    }
}

impl Writer {
    /// Writes notices until nobody has any more.
    pub async fn run(mut self, client: Client, clock: Clock, reporter: String) {
        while let Some(note) = self.receiver.recv().await {
            if let Err(error) = write(&client, &clock, &reporter, &note).await {
                tracing::warn!(object = %note.identity.key, error, "a notice could not be written");
            }
        }
    }
}

async fn write(client: &Client, clock: &Clock, reporter: &str, note: &Note) -> Result<(), String> {
    let Identity { key, uid, resource_version } = &note.identity;
    let namespace = if key.namespace.is_empty() { "default" } else { &key.namespace };
    let now = clock.instant();
    let prefix: String = key.name.chars().take(200).collect();
    let body = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "name": format!("{prefix}.{:x}", now.as_nanosecond())},
        "eventTime": jiff::fmt::strtime::format("%Y-%m-%dT%H:%M:%S%.6fZ", now).map_err(|error| error.to_string())?,
        "type": "Warning",
        "reason": note.reason,
        "action": "Read",
        "note": note.text,
        "reportingController": "tenure.dev/controller",
        "reportingInstance": reporter.chars().take(128).collect::<String>(),
        "regarding": {
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": note.kind, "name": key.name, "namespace": key.namespace,
            "uid": uid, "resourceVersion": resource_version,
        },
    });
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let post = request(Method::POST, &path, body.to_string().into_bytes()).map_err(|error| error.to_string())?;
    let answer = call(client, post, LIMIT).await.map_err(|error| error.to_string())?;
    if answer.is_good() { Ok(()) } else { Err(answer.refusal().message) }
}

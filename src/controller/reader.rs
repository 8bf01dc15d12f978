//! Reads one collection for ever: all of it, then every change, and all of it again when changes were missed.
//!
//! What was known and isn't there any more is reported as deleted, also when the deletion itself was missed. An object that
//! can't be decoded is reported as such and stops nothing.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::{AsyncBufReadExt, StreamExt, TryStreamExt};
use http::Method;
use kube::Client;
use serde_json::Value;
use tokio::{
    sync::{Notify, mpsc},
    time::{sleep, timeout},
};

use super::{
    backoff::Backoff,
    barrier::Barrier,
    call::{Answer, call, request},
    listing::{Line, Listing, Word},
    observed::{Identity, Key, Observed},
    pulse::Pulse,
};
use crate::{engine::event::Event, runtime::metrics::Metrics, runtime::metrics::SourceLabels};

/// Objects in one page of a list.
const PAGE: usize = 500;
/// How long a page may take.
const PAGE_LIMIT: Duration = Duration::from_secs(60);
/// How long a streaming list may be silent before paged lists are used in its place.
const FIRST_SILENCE: Duration = Duration::from_secs(30);
/// How long one watch lasts. Seconds.
const WATCH_SECONDS: u32 = 280;
/// Lines taken together.
const CHUNK: usize = 256;
/// Failures in a row after which a collection counts as unreadable.
const FAILURES: u32 = 3;
/// Of failures in a row the first is logged, and one in so many after it.
const REPEAT: u32 = 16;

/// Which collection.
#[derive(Clone, Debug)]
pub struct Collection {
    /// For metrics and logs: the plural.
    pub source: String,
    /// Its path, as in `/apis/tenure.dev/v1alpha1/claims`.
    pub path: String,
    /// A field selector, ready for a query.
    pub fields: Option<&'static str>,
    /// A watch that is silent for longer is begun again.
    pub silence: Duration,
}

/// What became known.
#[derive(Debug)]
pub enum Change<T> {
    /// An object as it is.
    Seen(T),
    /// An object that can't be decoded, and why.
    Undecodable(Identity, String),
    /// An object is gone. With a uid its last state was reported just before; without one only the absence was seen.
    Deleted(Identity),
    /// Everything there is has been reported.
    Filled,
    /// The collection can't be read, and why; `Filled` comes once it can be again.
    Unreadable(String),
    /// Somebody asked for another look at what is known.
    Review,
}

/// Reads one collection. `convert` turns changes into events.
pub struct Reader<F> {
    /// The way to the API server.
    pub client: Client,
    /// What to read.
    pub collection: Collection,
    /// Told how reading goes.
    pub pulse: Arc<Pulse>,
    /// Counts restarts.
    pub metrics: Arc<Metrics>,
    /// Asks for `Change::Review`.
    pub nudge: Arc<Notify>,
    /// Where events go.
    pub events: mpsc::Sender<Vec<Event>>,
    /// Waits for the first reading of all of it.
    pub barrier: Option<Arc<Barrier>>,
    /// Turns a change into events.
    pub convert: F,
}

enum Ended {
    /// In order; go on from this version.
    Quietly(String),
    /// Nothing came for so long that it may be dead; go on from this version. Where nothing happens an API server may send no
    /// bookmarks either (its etcd tells of progress every ten minutes unless told otherwise), so this alone is no failure.
    Silent(String),
    /// Changes were missed: read it all again.
    Missed,
    /// This API server has no streaming lists.
    NoStreaming,
    /// Something went wrong; go on from this version, if there is one.
    Failed(Option<String>, Failure),
    /// Nobody takes events any more.
    Closed,
}

struct Failure {
    message: String,
    /// The API server said that it can't be read, not the network.
    refused: bool,
}

impl Failure {
    fn lost(message: impl ToString) -> Self {
        Self { message: message.to_string(), refused: false }
    }

    fn of(answer: &Answer) -> Self {
        Self { message: answer.refusal().message, refused: answer.code.is_client_error() }
    }
}

/// What is known of the collection, and what a new reading of it has found so far.
#[derive(Default)]
struct Known {
    uids: HashMap<Key, String>,
    fresh: Option<HashMap<Key, String>>,
}

impl<F: Send> Reader<F> {
    /// Reads until nobody takes events any more.
    pub async fn run<T: Observed>(mut self)
    where
        F: FnMut(Change<T>, &mut Vec<Event>),
    {
        let mut known = Known::default();
        let mut position: Option<String> = None;
        let mut streaming = true;
        let mut backoff = Backoff::new(200, 4_000);
        loop {
            let ended = match position.take() {
                None if !streaming => self.list(&mut known).await,
                from => self.watch(from, &mut known, &mut backoff).await,
            };
            match ended {
                Ended::Quietly(version) => position = Some(version),
                Ended::Silent(version) => {
                    self.count_restart();
                    tracing::debug!(source = self.collection.source, "a silent watch is begun again");
                    position = Some(version);
                }
                Ended::Missed => {
                    self.count_restart();
                    sleep(backoff.pause()).await;
                }
                Ended::NoStreaming => streaming = false,
                Ended::Failed(version, failure) => {
                    position = self.failed(version, failure, &backoff).await;
                    sleep(backoff.pause()).await;
                }
                Ended::Closed => return,
            }
        }
    }

    async fn failed<T>(&mut self, version: Option<String>, failure: Failure, backoff: &Backoff) -> Option<String>
    where
        F: FnMut(Change<T>, &mut Vec<Event>),
    {
        let Failure { message, refused } = failure;
        self.pulse.fail();
        self.count_restart();
        if backoff.tried().is_multiple_of(REPEAT) {
            tracing::warn!(source = self.collection.source, message, "can't read, trying again");
        }
        if !refused && version.is_some() && backoff.tried() + 1 < FAILURES {
            return version;
        }
        let mut events = Vec::new();
        (self.convert)(Change::Unreadable(message), &mut events);
        if events.is_empty() {
            return version.filter(|_| !refused);
        }
        let _taken = self.events.send(events).await;
        None
    }

    fn count_restart(&self) {
        self.metrics.watch_restarts.get_or_create(&SourceLabels { source: self.collection.source.clone() }).inc();
    }

    /// Reads all of it page by page.
    async fn list<T: Observed>(&mut self, known: &mut Known) -> Ended
    where
        F: FnMut(Change<T>, &mut Vec<Event>),
    {
        known.fresh = Some(HashMap::new());
        let mut token = String::new();
        loop {
            let fields = self.collection.fields.map(|fields| format!("&fieldSelector={fields}")).unwrap_or_default();
            let next = if token.is_empty() { String::new() } else { format!("&continue={token}") };
            let path = format!("{}?limit={PAGE}{fields}{next}", self.collection.path);
            let page = match request(Method::GET, &path, Vec::new()) {
                Ok(request) => call(&self.client, request, PAGE_LIMIT).await,
                Err(error) => Err(error),
            };
            let answer = match page {
                Ok(answer) if answer.is_good() => answer,
                Ok(answer) if answer.code == http::StatusCode::GONE => return Ended::Missed,
                Ok(answer) => return Ended::Failed(None, Failure::of(&answer)),
                Err(error) => return Ended::Failed(None, Failure::lost(error)),
            };
            let listing = match Listing::<T>::read(&answer.body) {
                Ok(listing) => listing,
                Err(error) => return Ended::Failed(None, Failure::lost(error)),
            };
            let mut events = Vec::new();
            for item in listing.items {
                self.found(item, known, &mut events);
            }
            if listing.next.is_empty() {
                self.filled(known, &mut events);
                self.pulse.good();
                if self.hand_over(events).await.is_none() || self.pass().await.is_none() {
                    return Ended::Closed;
                }
                return Ended::Quietly(listing.version);
            }
            token = listing.next;
            if self.hand_over(events).await.is_none() {
                return Ended::Closed;
            }
        }
    }

    /// Follows changes from a version, or streams all of it first when there is none.
    async fn watch<T: Observed>(&mut self, from: Option<String>, known: &mut Known, backoff: &mut Backoff) -> Ended
    where
        F: FnMut(Change<T>, &mut Vec<Event>),
    {
        known.fresh = from.is_none().then(HashMap::new);
        let lines = match self.open(from.as_deref()).await {
            Ok(lines) => lines,
            Err(ended) => return ended,
        };
        if from.is_some() {
            self.pulse.good();
        }
        let mut version = from;
        let mut lines = std::pin::pin!(lines.ready_chunks(CHUNK));
        let nudge = self.nudge.clone();
        loop {
            let limit = if known.fresh.is_some() { FIRST_SILENCE } else { self.collection.silence };
            let chunk = tokio::select! {
                chunk = timeout(limit, lines.next()) => chunk,
                () = nudge.notified(), if known.fresh.is_none() => {
                    let mut events = Vec::new();
                    (self.convert)(Change::Review, &mut events);
                    if self.hand_over(events).await.is_none() { return Ended::Closed }
                    continue;
                }
            };
            let chunk = match (chunk, version) {
                (Ok(Some(chunk)), before) => {
                    version = before;
                    chunk
                }
                (Err(_), None) => return Ended::NoStreaming,
                (Err(_), Some(before)) => return Ended::Silent(before),
                (Ok(None), Some(before)) => return Ended::Quietly(before),
                (Ok(None), None) => return Ended::Failed(None, Failure::lost("the stream ended early")),
            };
            if let Some(ended) = self.take(chunk, known, &mut version, backoff).await {
                return ended;
            }
        }
    }

    /// Takes some lines of a watch; says when it is over.
    async fn take<T: Observed>(
        &mut self,
        chunk: Vec<std::io::Result<String>>,
        known: &mut Known,
        version: &mut Option<String>,
        backoff: &mut Backoff,
    ) -> Option<Ended>
    where
        F: FnMut(Change<T>, &mut Vec<Event>),
    {
        let mut events = Vec::new();
        let mut ended = None;
        for line in chunk {
            ended = match line {
                Ok(line) => self.line(&line, known, version, &mut events),
                Err(error) => Some(Ended::Failed(version.clone(), Failure::lost(error))),
            };
            if ended.is_some() {
                break;
            }
        }
        self.pulse.heard();
        if version.is_some() {
            self.pulse.good();
            backoff.reset();
        }
        if self.hand_over(events).await.is_none() || (known.fresh.is_none() && self.pass().await.is_none()) {
            return Some(Ended::Closed);
        }
        ended
    }

    async fn open(&mut self, from: Option<&str>) -> Result<impl futures::Stream<Item = std::io::Result<String>> + use<F>, Ended> {
        let fields = self.collection.fields.map(|fields| format!("&fieldSelector={fields}")).unwrap_or_default();
        let start = match from {
            Some(version) => format!("&resourceVersion={version}"),
            None => "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        };
        let path = format!("{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}{fields}{start}", self.collection.path);
        let failed = |failure| Ended::Failed(from.map(str::to_owned), failure);
        let mut request = request(Method::GET, &path, Vec::new()).map_err(|error| failed(Failure::lost(error)))?;
        // Some API servers compress a watch one member for each event, which readers of one member don't survive.
        request.headers_mut().insert(http::header::ACCEPT_ENCODING, http::HeaderValue::from_static("identity"));
        match timeout(FIRST_SILENCE, self.client.request_stream(request)).await {
            Ok(Ok(stream)) => Ok(stream.lines().into_stream()),
            Ok(Err(kube::Error::Api(status))) => Err(match status.code {
                410 => Ended::Missed,
                400 | 422 if from.is_none() => Ended::NoStreaming,
                code => failed(Failure { message: status.message.clone(), refused: (400..500).contains(&code) && code != 429 }),
            }),
            Ok(Err(error)) => Err(failed(Failure::lost(error))),
            Err(_elapsed) => Err(failed(Failure::lost("no answer to a watch"))),
        }
    }

    fn line<T: Observed>(&mut self, line: &str, known: &mut Known, version: &mut Option<String>, events: &mut Vec<Event>) -> Option<Ended>
    where
        F: FnMut(Change<T>, &mut Vec<Event>),
    {
        let word = match Line::<T>::read(line) {
            Ok(line) => line,
            Err(error) => return Some(Ended::Failed(version.clone(), Failure::lost(error))),
        };
        match word {
            Line::Object(Word::Deleted, item) => {
                let identity = match item {
                    Ok(mut object) => {
                        let identity = object.identity();
                        object.slim();
                        (self.convert)(Change::Seen(object), events);
                        identity
                    }
                    Err((identity, _)) => Identity { uid: String::new(), ..identity },
                };
                note(version, known, &identity.resource_version);
                known.uids.remove(&identity.key);
                if let Some(fresh) = &mut known.fresh {
                    fresh.remove(&identity.key);
                }
                (self.convert)(Change::Deleted(identity), events);
            }
            Line::Object(Word::Present, item) => {
                let at = self.found(item, known, events);
                note(version, known, &at);
            }
            Line::Bookmark { version: at, end } => {
                if end && known.fresh.is_some() {
                    self.filled(known, events);
                }
                note(version, known, &at);
            }
            Line::Error { code: 410, .. } => return Some(Ended::Missed),
            Line::Error { code, message } => {
                let failure = Failure { message, refused: (400..500).contains(&code) && code != 429 };
                return Some(Ended::Failed(version.clone(), failure));
            }
        }
        None
    }

    /// Reports an object; returns its version.
    fn found<T: Observed>(&mut self, item: Result<T, (Identity, String)>, known: &mut Known, events: &mut Vec<Event>) -> String
    where
        F: FnMut(Change<T>, &mut Vec<Event>),
    {
        let identity = match &item {
            Ok(object) => object.identity(),
            Err((identity, _)) => identity.clone(),
        };
        let before = known.uids.insert(identity.key.clone(), identity.uid.clone());
        if before.is_some_and(|before| before != identity.uid) {
            (self.convert)(Change::Deleted(absent(identity.key.clone())), events);
        }
        if let Some(fresh) = &mut known.fresh {
            fresh.insert(identity.key.clone(), identity.uid.clone());
        }
        let version = identity.resource_version.clone();
        match item {
            Ok(mut object) => {
                object.slim();
                (self.convert)(Change::Seen(object), events);
            }
            Err((identity, why)) => (self.convert)(Change::Undecodable(identity, why), events),
        }
        version
    }

    fn filled<T>(&mut self, known: &mut Known, events: &mut Vec<Event>)
    where
        F: FnMut(Change<T>, &mut Vec<Event>),
    {
        if let Some(fresh) = known.fresh.take() {
            let vanished = known.uids.extract_if(|key, _| !fresh.contains_key(key));
            for (key, _) in vanished {
                (self.convert)(Change::Deleted(absent(key)), events);
            }
        }
        (self.convert)(Change::Filled, events);
    }

    async fn hand_over(&mut self, events: Vec<Event>) -> Option<()> {
        if events.is_empty() {
            return Some(());
        }
        self.events.send(events).await.ok()
    }

    /// Tells the barrier, after everything read was handed over.
    async fn pass(&mut self) -> Option<()> {
        match self.barrier.take() {
            Some(barrier) => barrier.pass(&self.events).await,
            None => Some(()),
        }
    }
}

/// An object that isn't there, whose end nobody saw.
fn absent(key: Key) -> Identity {
    Identity { key, ..Identity::default() }
}

/// While the collection is being streamed for the first time there is no version to go on from.
fn note(version: &mut Option<String>, known: &Known, at: &str) {
    if known.fresh.is_none() && !at.is_empty() {
        *version = Some(at.to_owned());
    }
}

/// What `metadata` says of an object that can't be decoded.
pub(super) fn identity_of(object: &Value) -> Identity {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    Identity { key: Key { namespace: text("namespace"), name: text("name") }, uid: text("uid"), resource_version: text("resourceVersion") }
}

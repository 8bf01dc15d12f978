//! Kinds that scopes name (S1): which objects exist, and which are finished. Any kind the operator may watch, on demand.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use kube::Client;
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::sleep,
};

use super::{
    backoff::Backoff,
    discovery::discover,
    observed::{Key, Sparse},
    pulse::Pulse,
    reader::{Change, Collection, Reader},
};
use crate::{
    api::ScopeCondition,
    engine::event::{Event, ScopeKind, ScopeTarget},
    runtime::{clock::Clock, metrics::Metrics},
};

/// Kinds followed at one time at most.
const KINDS: usize = 64;
/// Bookmarks come about once a minute where anything happens: a watch that is silent for longer may be dead.
pub(super) const SILENCE: Duration = Duration::from_secs(100);

/// The conditions that finish objects of other kinds, as the classes name them, and who must look again when they change.
#[derive(Debug, Default)]
pub struct Finishing(Mutex<Named>);

#[derive(Debug, Default)]
struct Named {
    by_class: BTreeMap<String, Vec<ScopeCondition>>,
    followers: BTreeMap<ScopeKind, Arc<Notify>>,
}

impl Finishing {
    /// What a class names now; nothing when it is gone.
    pub fn set(&self, class: &str, conditions: Vec<ScopeCondition>) {
        let mut named = self.lock();
        let before =
            if conditions.is_empty() { named.by_class.remove(class) } else { named.by_class.insert(class.to_owned(), conditions.clone()) };
        let before = before.unwrap_or_default();
        if before != conditions {
            let changed = before.iter().chain(&conditions).map(kind_of);
            changed.filter_map(|kind| named.followers.get(&kind)).for_each(|follower| follower.notify_one());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Named> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn conditions(&self, kind: &ScopeKind) -> BTreeSet<String> {
        let named = self.lock();
        let conditions = named.by_class.values().flatten().filter(|condition| kind_of(condition) == *kind);
        conditions.map(|condition| condition.condition.clone()).collect()
    }
}

fn kind_of(condition: &ScopeCondition) -> ScopeKind {
    ScopeKind { api_version: condition.api_version.clone(), kind: condition.kind.clone() }
}

/// A built-in kind.
pub(super) fn kind(api_version: &str, kind: &str) -> ScopeKind {
    ScopeKind { api_version: api_version.to_owned(), kind: kind.to_owned() }
}

#[derive(Debug)]
struct Target {
    uid: String,
    truths: Box<[Box<str>]>,
    finished: bool,
}

/// What is known of the objects of one kind.
#[derive(Debug)]
pub struct Targets {
    kind: ScopeKind,
    finishing: Arc<Finishing>,
    replay: Arc<AtomicBool>,
    objects: HashMap<Key, Target>,
    filled: bool,
    unreadable: bool,
}

impl Targets {
    /// Nothing is known. While `replay` is set, the next review reports everything again.
    #[must_use]
    pub fn new(kind: ScopeKind, finishing: Arc<Finishing>, replay: Arc<AtomicBool>) -> Self {
        Self { kind, finishing, replay, objects: HashMap::new(), filled: false, unreadable: false }
    }

    /// Turns a change into events; what changed nothing that scopes look at gives none.
    pub fn take(&mut self, change: Change<Sparse>, events: &mut Vec<Event>) {
        match change {
            Change::Seen(object) => self.seen(&object, events),
            Change::Undecodable(identity, why) => {
                tracing::warn!(kind = self.kind.kind, object = %identity.key, why, "can't be decoded: taken as not finished");
                self.put(identity.key, Target { uid: identity.uid, truths: Box::default(), finished: false }, events);
            }
            Change::Deleted(identity) => {
                self.objects.remove(&identity.key);
                events.push(Event::ScopeGone { target: self.target(&identity.key) });
            }
            Change::Filled => {
                self.filled = true;
                self.unreadable = false;
                events.push(Event::ScopeKindFilled { kind: self.kind.clone() });
            }
            Change::Unreadable(message) => {
                self.filled = false;
                if !std::mem::replace(&mut self.unreadable, true) {
                    events.push(Event::ScopeKindUnreadable { kind: self.kind.clone(), message });
                }
            }
            Change::Review => self.review(events),
        }
    }

    fn seen(&mut self, object: &Sparse, events: &mut Vec<Event>) {
        let truths: Box<[Box<str>]> = if self.kind.kind == "Pod" { Box::default() } else { object.truths().map(Box::from).collect() };
        let finished = match (self.kind.api_version.as_str(), self.kind.kind.as_str()) {
            ("v1", "Pod") => object.status.as_ref().is_some_and(|status| matches!(status.phase.as_str(), "Succeeded" | "Failed")),
            _ => self.finished(&truths),
        };
        let key = Key { namespace: object.metadata.namespace.clone(), name: object.metadata.name.clone() };
        self.put(key, Target { uid: object.metadata.uid.clone(), truths, finished }, events);
    }

    fn put(&mut self, key: Key, target: Target, events: &mut Vec<Event>) {
        let (uid, finished) = (target.uid.clone(), target.finished);
        let event = Event::Scope { target: self.target(&key), uid: uid.clone(), finished };
        let before = self.objects.insert(key, target);
        if !self.filled || before.is_none_or(|before| (before.uid, before.finished) != (uid, finished)) {
            events.push(event);
        }
    }

    fn finished(&self, truths: &[Box<str>]) -> bool {
        if self.kind == kind("batch/v1", "Job") {
            return truths.iter().any(|truth| matches!(&**truth, "Complete" | "Failed"));
        }
        let conditions = self.finishing.conditions(&self.kind);
        truths.iter().any(|truth| conditions.contains(&**truth))
    }

    fn review(&mut self, events: &mut Vec<Event>) {
        let everything = self.replay.swap(false, Ordering::AcqRel);
        let is_pod = self.kind.kind == "Pod";
        let mut objects = std::mem::take(&mut self.objects);
        for (key, object) in &mut objects {
            let finished = if is_pod { object.finished } else { self.finished(&object.truths) };
            if everything || finished != object.finished {
                object.finished = finished;
                events.push(Event::Scope { target: self.target(key), uid: object.uid.clone(), finished });
            }
        }
        self.objects = objects;
        if everything && self.filled {
            events.push(Event::ScopeKindFilled { kind: self.kind.clone() });
        }
    }

    fn target(&self, key: &Key) -> ScopeTarget {
        ScopeTarget { kind: self.kind.clone(), namespace: key.namespace.clone(), name: key.name.clone() }
    }
}

/// Follows kinds on demand.
pub struct Followers {
    client: Client,
    clock: Clock,
    metrics: Arc<Metrics>,
    finishing: Arc<Finishing>,
    events: mpsc::Sender<Vec<Event>>,
    running: BTreeMap<ScopeKind, JoinHandle<()>>,
    pods: (Arc<Notify>, Arc<AtomicBool>),
}

impl Followers {
    /// Follows nothing yet. `pods` asks the watch of Pods, which always runs, to report all of them again.
    #[must_use]
    pub fn new(
        client: Client,
        clock: Clock,
        metrics: Arc<Metrics>,
        finishing: Arc<Finishing>,
        events: mpsc::Sender<Vec<Event>>,
        pods: (Arc<Notify>, Arc<AtomicBool>),
    ) -> Self {
        Self { client, clock, metrics, finishing, events, running: BTreeMap::new(), pods }
    }

    /// Reads a kind from now on; returns what is known at once.
    pub fn follow(&mut self, wanted: ScopeKind) -> Vec<Event> {
        if wanted == kind("v1", "Namespace") {
            return vec![Event::ScopeKindFilled { kind: wanted }];
        }
        if wanted == kind("v1", "Pod") {
            self.pods.1.store(true, Ordering::Release);
            self.pods.0.notify_one();
            return Vec::new();
        }
        if self.running.contains_key(&wanted) {
            return Vec::new();
        }
        if self.running.len() >= KINDS {
            let message = format!("{KINDS} kinds are followed already");
            return vec![Event::ScopeKindUnreadable { kind: wanted, message }];
        }
        let nudge = Arc::new(Notify::new());
        self.finishing.lock().followers.insert(wanted.clone(), nudge.clone());
        let follower = Follower {
            client: self.client.clone(),
            clock: self.clock.clone(),
            metrics: self.metrics.clone(),
            events: self.events.clone(),
            nudge,
            kind: wanted.clone(),
        };
        self.running.insert(wanted, tokio::spawn(follower.run(self.finishing.clone())));
        Vec::new()
    }

    /// Stops reading a kind.
    pub fn unfollow(&mut self, unwanted: &ScopeKind) {
        if let Some(task) = self.running.remove(unwanted) {
            task.abort();
            self.finishing.lock().followers.remove(unwanted);
        }
    }
}

impl Drop for Followers {
    fn drop(&mut self) {
        self.running.values().for_each(JoinHandle::abort);
    }
}

struct Follower {
    client: Client,
    clock: Clock,
    metrics: Arc<Metrics>,
    events: mpsc::Sender<Vec<Event>>,
    nudge: Arc<Notify>,
    kind: ScopeKind,
}

impl Follower {
    async fn run(self, finishing: Arc<Finishing>) {
        let mut backoff = Backoff::new(500, 30_000);
        let mut said = String::new();
        let path = loop {
            match discover(&self.client, &self.kind).await {
                Ok(path) => break path,
                Err(message) => {
                    if message != said {
                        tracing::warn!(kind = ?self.kind, message, "a kind that a scope names can't be read");
                        said.clone_from(&message);
                        let event = Event::ScopeKindUnreadable { kind: self.kind.clone(), message };
                        if self.events.send(vec![event]).await.is_err() {
                            return;
                        }
                    }
                    sleep(backoff.pause()).await;
                }
            }
        };
        let mut targets = Targets::new(self.kind.clone(), finishing, Arc::default());
        let source = format!("{}.{}", self.kind.kind, self.kind.api_version);
        let reader = Reader {
            client: self.client,
            collection: Collection { source, path, fields: None, silence: SILENCE },
            pulse: Arc::new(Pulse::new(self.clock)),
            metrics: self.metrics,
            nudge: self.nudge,
            events: self.events,
            barrier: None,
            convert: move |change, events: &mut Vec<Event>| targets.take(change, events),
        };
        reader.run::<Sparse>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::observed::Identity;

    fn object(name: &str, uid: &str, status: serde_json::Value) -> Change<Sparse> {
        let text = serde_json::json!({"metadata": {"namespace": "n", "name": name, "uid": uid}, "status": status});
        Change::Seen(serde_json::from_value(text).unwrap())
    }

    fn truth(kind: &str) -> serde_json::Value {
        serde_json::json!({"conditions": [{"type": kind, "status": "True"}]})
    }

    fn targets(api_version: &str, kind_name: &str) -> (Arc<Finishing>, Targets) {
        let finishing = Arc::new(Finishing::default());
        (finishing.clone(), Targets::new(kind(api_version, kind_name), finishing, Arc::default()))
    }

    fn finished(targets: &mut Targets, change: Change<Sparse>) -> Option<bool> {
        let mut events = Vec::new();
        targets.take(change, &mut events);
        events.into_iter().find_map(|event| match event {
            Event::Scope { finished, .. } => Some(finished),
            _ => None,
        })
    }

    #[test]
    fn s1_pods_and_jobs_finish_by_their_own_status() {
        let (_, mut pods) = targets("v1", "Pod");
        let phase = |phase: &str| object(phase, "u", serde_json::json!({"phase": phase}));
        assert_eq!(finished(&mut pods, phase("Running")), Some(false));
        assert_eq!(finished(&mut pods, phase("Succeeded")), Some(true));
        assert_eq!(finished(&mut pods, phase("Failed")), Some(true));
        let (_, mut jobs) = targets("batch/v1", "Job");
        assert_eq!(finished(&mut jobs, object("a", "u", truth("Suspended"))), Some(false));
        assert_eq!(finished(&mut jobs, object("b", "u", truth("Complete"))), Some(true));
    }

    #[test]
    fn s1_another_kind_finishes_by_a_condition_that_a_class_names_also_one_named_later() {
        let (finishing, mut runs) = targets("example.dev/v1", "Run");
        let mut events = Vec::new();
        runs.take(object("a", "u", truth("Done")), &mut events);
        runs.take(Change::Filled, &mut events);
        assert!(matches!(&events[..], [Event::Scope { finished: false, .. }, Event::ScopeKindFilled { .. }]));
        let condition = ScopeCondition { api_version: "example.dev/v1".into(), kind: "Run".into(), condition: "Done".into() };
        finishing.set("class", vec![condition]);
        assert_eq!(finished(&mut runs, Change::Review), Some(true));
        finishing.set("class", Vec::new());
        assert_eq!(finished(&mut runs, Change::Review), Some(false));
    }

    #[test]
    fn s1_a_namesake_is_reported_and_a_change_that_means_nothing_is_not() {
        let (_, mut pods) = targets("v1", "Pod");
        let mut events = Vec::new();
        pods.take(object("a", "u", serde_json::json!({})), &mut events);
        pods.take(Change::Filled, &mut events);
        assert_eq!(finished(&mut pods, object("a", "u", serde_json::json!({"phase": "Running"}))), None);
        assert_eq!(finished(&mut pods, object("a", "other", serde_json::json!({}))), Some(false));
    }

    #[test]
    fn s5_what_cannot_be_decoded_is_there_and_not_finished() {
        let (_, mut pods) = targets("v1", "Pod");
        let identity = Identity { key: Key { namespace: "n".into(), name: "a".into() }, uid: "u".into(), resource_version: "1".into() };
        assert_eq!(finished(&mut pods, Change::Undecodable(identity, "odd".into())), Some(false));
    }

    #[test]
    fn a_review_that_replays_reports_everything_and_that_it_is_all() {
        let (_, mut pods) = targets("v1", "Pod");
        let mut events = Vec::new();
        pods.take(object("a", "u", serde_json::json!({})), &mut events);
        pods.take(Change::Filled, &mut events);
        events.clear();
        pods.take(Change::Review, &mut events);
        assert!(events.is_empty());
        pods.replay.store(true, Ordering::Release);
        pods.take(Change::Review, &mut events);
        assert!(matches!(&events[..], [Event::Scope { .. }, Event::ScopeKindFilled { .. }]));
    }
}

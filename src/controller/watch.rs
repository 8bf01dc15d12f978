//! The watches that always run: Tenure's own kinds, Namespaces, heartbeats and Pods, turned into events.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use kube::Client;
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
};

use super::{
    apply,
    barrier::Barrier,
    notice::Notes,
    observed::{Identity, Key, Observed, Sparse},
    pulse::Pulse,
    reader::{Change, Collection, Reader},
    scope::{Finishing, SILENCE, Targets, kind},
};
use crate::{
    api::{Claim, GROUP, Receipt, Resource, ResourceClass, VERSION, annotations},
    engine::event::Event,
    runtime::{
        clock::Clock,
        metrics::{Metrics, SourceLabels},
    },
};

/// A node's own heartbeats, of which there are many, are nobody's claim.
const NOT_OF_NODES: &str = "metadata.namespace%21%3Dkube-node-lease";
/// The collections that must be read before decisions begin.
const COLLECTIONS: usize = 7;

/// What the watches share.
pub struct Watches {
    /// The way to the API server.
    pub client: Client,
    /// The clocks.
    pub clock: Clock,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Tells people about objects that can't be decoded.
    pub notes: Notes,
    /// What finishes objects of other kinds.
    pub finishing: Arc<Finishing>,
    /// Where events go.
    pub events: mpsc::Sender<Vec<Event>>,
    /// How long Leases may be silent; short where the leader's own renewals are among them.
    pub lease_silence: Duration,
    /// Asks the watch of Pods to report all of them again.
    pub pods: (Arc<Notify>, Arc<AtomicBool>),
}

/// How reading goes.
pub struct Pulses {
    /// Every watch that always runs.
    pub all: Vec<Arc<Pulse>>,
    /// The one of Leases.
    pub leases: Arc<Pulse>,
}

impl Watches {
    /// Starts all of them. None of the tasks ends while anybody takes events.
    pub fn start(self, tasks: &mut JoinSet<Result<(), apply::Error>>) -> Pulses {
        let barrier = Arc::new(Barrier::new(COLLECTIONS));
        let mut all = Vec::new();
        let finishing = self.finishing.clone();

        self.own(&barrier, &mut all, tasks, "resources", "Resource", |change: Change<Resource>, events| match change {
            Change::Seen(object) => events.push(Event::Resource(Box::new(object))),
            Change::Deleted(Identity { key, uid, .. }) => events.push(Event::ResourceGone { name: key.name, uid }),
            _ => {}
        });
        self.own(
            &barrier,
            &mut all,
            tasks,
            "resourceclasses",
            "ResourceClass",
            move |change: Change<ResourceClass>, events| match change {
                Change::Seen(object) => {
                    let name = object.metadata.name.as_deref().unwrap_or_default();
                    finishing.set(name, object.spec.scope_conditions.clone());
                    events.push(Event::Class(Box::new(object)));
                }
                Change::Deleted(Identity { key: Key { name, .. }, .. }) => {
                    finishing.set(&name, Vec::new());
                    events.push(Event::ClassGone { name });
                }
                _ => {}
            },
        );
        self.own(&barrier, &mut all, tasks, "claims", "Claim", |change: Change<Claim>, events| match change {
            Change::Seen(object) => events.push(Event::Claim(Box::new(object))),
            Change::Deleted(Identity { key: Key { namespace, name }, uid, .. }) => events.push(Event::ClaimGone { namespace, name, uid }),
            _ => {}
        });
        self.own(&barrier, &mut all, tasks, "receipts", "Receipt", |change: Change<Receipt>, events| match change {
            Change::Seen(object) => events.push(Event::Receipt(Box::new(object))),
            Change::Deleted(Identity { key, .. }) => events.push(Event::ReceiptGone { name: key.name }),
            _ => {}
        });

        self.spawn(&barrier, &mut all, tasks, collection("namespaces", "/api/v1/namespaces"), Arc::default(), namespaces);
        let leases = Collection {
            fields: Some(NOT_OF_NODES),
            silence: self.lease_silence,
            ..collection("leases", "/apis/coordination.k8s.io/v1/leases")
        };
        let lease_pulse = self.spawn(&barrier, &mut all, tasks, leases, Arc::default(), heartbeats);
        let (nudge, replay) = self.pods.clone();
        let mut pods = Targets::new(kind("v1", "Pod"), self.finishing.clone(), replay);
        let pods = move |change, events: &mut Vec<Event>| {
            // For a kind that is always read the whole API counts as lost, not the kind.
            if !matches!(change, Change::Unreadable(_)) {
                pods.take(change, events);
            }
        };
        self.spawn(&barrier, &mut all, tasks, collection("pods", "/api/v1/pods"), nudge, pods);
        Pulses { all, leases: lease_pulse }
    }

    /// One of Tenure's own kinds: an object that can't be decoded is reported to people, and counted while it is so.
    fn own<T: Observed>(
        &self,
        barrier: &Arc<Barrier>,
        all: &mut Vec<Arc<Pulse>>,
        tasks: &mut JoinSet<Result<(), apply::Error>>,
        plural: &'static str,
        kind: &'static str,
        mut convert: impl FnMut(Change<T>, &mut Vec<Event>) + Send + 'static,
    ) {
        let (notes, metrics) = (self.notes.clone(), self.metrics.clone());
        let mut undecodable: HashSet<Key> = HashSet::new();
        let guarded = move |change: Change<T>, events: &mut Vec<Event>| {
            match &change {
                Change::Undecodable(identity, why) => {
                    notes.undecodable(kind, identity, why);
                    undecodable.insert(identity.key.clone());
                }
                Change::Seen(object) if !undecodable.is_empty() => drop(undecodable.remove(&object.identity().key)),
                Change::Deleted(identity) => drop(undecodable.remove(&identity.key)),
                _ => {}
            }
            let now = i64::try_from(undecodable.len()).unwrap_or(i64::MAX);
            metrics.undecodable_now.get_or_create(&SourceLabels { source: kind.to_owned() }).set(now);
            convert(change, events);
        };
        let path = format!("/apis/{GROUP}/{VERSION}/{plural}");
        self.spawn(barrier, all, tasks, collection(plural, &path), Arc::default(), guarded);
    }

    fn spawn<T: Observed>(
        &self,
        barrier: &Arc<Barrier>,
        all: &mut Vec<Arc<Pulse>>,
        tasks: &mut JoinSet<Result<(), apply::Error>>,
        collection: Collection,
        nudge: Arc<Notify>,
        convert: impl FnMut(Change<T>, &mut Vec<Event>) + Send + 'static,
    ) -> Arc<Pulse> {
        let pulse = Arc::new(Pulse::new(self.clock.clone()));
        all.push(pulse.clone());
        let reader = Reader {
            client: self.client.clone(),
            collection,
            pulse: pulse.clone(),
            metrics: self.metrics.clone(),
            nudge,
            events: self.events.clone(),
            barrier: Some(barrier.clone()),
            convert,
        };
        tasks.spawn(async move {
            reader.run::<T>().await;
            Ok(())
        });
        pulse
    }
}

fn collection(source: &str, path: &str) -> Collection {
    Collection { source: source.to_owned(), path: path.to_owned(), fields: None, silence: SILENCE }
}

fn namespaces(change: Change<Sparse>, events: &mut Vec<Event>) {
    match change {
        Change::Seen(Sparse { metadata, .. }) => {
            let says = |name: &str| metadata.annotations.get(name).is_some_and(|value| value == "true");
            let (frozen, paused) = (says(annotations::FROZEN), says(annotations::PAUSED));
            events.push(Event::Namespace { name: metadata.name, uid: metadata.uid, labels: metadata.labels, frozen, paused });
        }
        Change::Deleted(identity) => events.push(Event::NamespaceGone { name: identity.key.name }),
        Change::Undecodable(identity, why) => {
            tracing::warn!(namespace = %identity.key, why, "a Namespace can't be decoded: taken as it was");
        }
        Change::Filled | Change::Unreadable(_) | Change::Review => {}
    }
}

fn heartbeats(change: Change<Sparse>, events: &mut Vec<Event>) {
    let Change::Seen(Sparse { metadata, spec, .. }) = change else { return };
    let Some(claim) = metadata.name.strip_prefix(annotations::LEASE_PREFIX).filter(|uid| is_uid(uid)) else { return };
    let spec = spec.unwrap_or_default();
    events.push(Event::Heartbeat {
        claim: claim.to_owned(),
        namespace: metadata.namespace,
        holder: spec.holder_identity,
        renewed: spec.renew_time,
    });
}

/// The form of a uid: 8, 4, 4, 4 and 12 hexadecimal digits.
fn is_uid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(convert: impl Fn(Change<Sparse>, &mut Vec<Event>), object: serde_json::Value) -> Vec<Event> {
        let mut events = Vec::new();
        convert(Change::Seen(serde_json::from_value(object).unwrap()), &mut events);
        events
    }

    #[test]
    fn l2_only_a_claims_own_lease_is_a_heartbeat() {
        let lease = |name: &str| {
            serde_json::json!({"metadata": {"namespace": "n", "name": name},
                "spec": {"holderIdentity": "h", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 9}})
        };
        let seen = events(heartbeats, lease("tenure-0f8fad5b-d9cb-469f-a165-70867728950e"));
        let [Event::Heartbeat { claim, holder, .. }] = &seen[..] else { unreachable!("{seen:?}") };
        assert_eq!((claim.as_str(), holder.as_str()), ("0f8fad5b-d9cb-469f-a165-70867728950e", "h"));
        for other in ["tenure-controller", "kube-scheduler", "tenure-0f8fad5b"] {
            assert!(events(heartbeats, lease(other)).is_empty(), "{other}");
        }
    }

    #[test]
    fn q2_a_namespace_is_frozen_only_by_true() {
        let namespace = |value: &str| serde_json::json!({"metadata": {"name": "n", "annotations": {"tenure.dev/frozen": value}}});
        let frozen = |value: &str| matches!(events(namespaces, namespace(value))[..], [Event::Namespace { frozen: true, .. }]);
        assert!(frozen("true"));
        assert!(!frozen("false"));
    }
}

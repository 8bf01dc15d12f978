//! What was seen of every Resource and Claim, version by version, and what of it can't be.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt as _,
        watcher::{Config, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tenure::{
    api::{Claim, OccupantState, Phase, Resource},
    engine::invariant,
};
use tokio::{sync::oneshot, task::JoinSet, time::timeout};

/// How long the watches may take to list what there is.
const FILLING: Duration = Duration::from_secs(30);

/// Shared by those who watch and those who act on it.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Record>>);

/// The last state of each object, and what earlier ones bind it to.
#[derive(Default)]
pub struct Record {
    /// By name.
    pub resources: BTreeMap<String, Resource>,
    /// By uid.
    pub claims: BTreeMap<String, Claim>,
    /// What can't be, in the order it was seen.
    pub broken: Vec<String>,
    /// The claims that were ever seen to hold.
    pub held: BTreeSet<String>,
    /// When a ledger was seen to change, and the term it then had.
    pub ledgers: Vec<(Instant, i64)>,
    /// Whether a waiter may be passed: with two controllers that don't know of each other, neither knows all tickets.
    pub two_lead: bool,
    /// Shares that nobody has seen clean: each Resource's fence.
    debts: BTreeMap<String, i64>,
    owners: BTreeMap<(String, i64), String>,
    fences: BTreeMap<String, BTreeSet<i64>>,
    revisions: BTreeMap<String, (i64, i64)>,
    ends: BTreeMap<String, Phase>,
    tickets: BTreeMap<String, i64>,
    /// By uid: at which step it was first seen to wait.
    waited: BTreeMap<String, usize>,
    /// Who waited for one Resource alone and was granted it.
    served: Vec<Served>,
    steps: usize,
}

struct Served {
    claim: String,
    resource: String,
    ticket: i64,
    fence: i64,
    step: usize,
}

impl Seen {
    /// Watches the Claims of a namespace and the Resources labelled with its name until the set is dropped. Comes back once all
    /// there are so far have been seen.
    pub async fn watch(&self, client: &Client, namespace: &str, tasks: &mut JoinSet<()>) {
        let resources = Config::default().labels(&format!("chaos={namespace}"));
        let (filled, resources_filled) = oneshot::channel();
        let all = Api::all(client.clone());
        tasks.spawn(follow(self.clone(), all, resources, filled, Record::see_resource, |record, gone| match gone {
            Some(gone) => drop(record.resources.remove(&name(gone))),
            None => record.resources.clear(),
        }));
        let (filled, claims_filled) = oneshot::channel();
        let claims = Api::namespaced(client.clone(), namespace);
        tasks.spawn(follow(self.clone(), claims, Config::default(), filled, Record::see_claim, |record, gone| match gone {
            Some(gone) => drop(record.claims.remove(&uid(gone))),
            None => record.claims.clear(),
        }));
        let all_filled = async { tokio::try_join!(resources_filled, claims_filled) };
        timeout(FILLING, all_filled).await.expect("the watches never listed all").unwrap();
    }

    pub fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap()
    }
}

/// `forget` is told of one object that is gone, or of none when all are listed anew; `filled`, that all were seen once.
async fn follow<K>(
    seen: Seen,
    api: Api<K>,
    config: Config,
    filled: oneshot::Sender<()>,
    see: fn(&mut Record, K),
    forget: fn(&mut Record, Option<&K>),
) where
    K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut stream = pin!(watcher(api, config).default_backoff());
    let mut filled = Some(filled);
    while let Some(event) = stream.next().await {
        let mut record = seen.lock();
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => see(&mut record, object),
            Ok(Event::Delete(object)) => forget(&mut record, Some(&object)),
            Ok(Event::Init) => forget(&mut record, None),
            Ok(Event::InitDone) => drop(filled.take().map(|filled| filled.send(()))),
            Err(error) => eprintln!("watching {}: {error}", K::kind(&())),
        }
    }
}

pub fn name(object: &impl kube::Resource) -> String {
    object.meta().name.clone().unwrap()
}

pub fn uid(object: &impl kube::Resource) -> String {
    object.meta().uid.clone().unwrap()
}

pub fn phase(claim: &Claim) -> Phase {
    claim.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

/// The one Resource that a claim asks for and names, if that is all it does.
fn sole(claim: &Claim) -> Option<&str> {
    match &claim.spec.requests[..] {
        [request] => request.resource.as_deref(),
        _ => None,
    }
}

impl Record {
    /// From now on this share must stay Reconciling.
    pub fn owes(&mut self, resource: &str, fence: i64) {
        self.debts.insert(resource.to_owned(), fence);
    }

    fn broken(&mut self, rule: &str, what: String) {
        self.broken.push(format!("{rule}: {what}"));
    }

    fn see_resource(&mut self, resource: Resource) {
        let (name, uid) = (name(&resource), uid(&resource));
        let ledger = resource.status.clone().unwrap_or_default();
        if let Some(violation) = invariant::ledger(&name, &ledger) {
            self.broken(violation.rule, violation.what);
        }
        let (revision, term) = self.revisions.insert(uid, (ledger.revision, ledger.term)).unwrap_or_default();
        if ledger.revision < revision || ledger.term < term {
            self.broken("O6", format!("{name} fell from revision {revision} of term {term} to {} of {}", ledger.revision, ledger.term));
        }
        if ledger.revision > revision {
            self.ledgers.push((Instant::now(), ledger.term));
        }
        for occupant in &ledger.occupants {
            let fences = self.fences.entry(name.clone()).or_default();
            let highest = fences.last().copied().unwrap_or_default();
            if fences.insert(occupant.fence) && occupant.fence < highest {
                self.broken("L6", format!("{name} gave fence {} after {highest}", occupant.fence));
            }
            for claim in &occupant.claims {
                self.owned(&name, occupant.fence, &claim.uid);
            }
        }
        if let Some(fence) = self.debts.get(&name) {
            let stands = |occupant: &tenure::api::Occupant| occupant.fence == *fence && occupant.state == OccupantState::Reconciling;
            if !ledger.occupants.iter().any(stands) {
                self.broken("L7", format!("{name} forgot that fence {fence} is to be reconciled: {:?}", ledger.occupants));
            }
        }
        self.resources.insert(name, resource);
    }

    /// L6: no two claims are ever given one fence; nobody shares a scope here.
    fn owned(&mut self, resource: &str, fence: i64, claim: &str) {
        let owner = self.owners.entry((resource.to_owned(), fence)).or_insert_with(|| claim.to_owned());
        if owner != claim {
            let what = format!("{resource} gave fence {fence} to {owner} and to {claim}");
            self.broken("L6", what);
        }
    }

    fn see_claim(&mut self, claim: Claim) {
        self.steps += 1;
        let (name, uid) = (name(&claim), uid(&claim));
        let status = claim.status.clone().unwrap_or_default();
        if let Some(end) = self.ends.get(&uid).filter(|end| **end != status.phase) {
            let what = format!("{name} ended {end:?} and became {:?}", status.phase);
            self.broken("L5", what);
        }
        if status.phase.is_final() {
            self.ends.insert(uid.clone(), status.phase);
        }
        match (self.tickets.get(&uid).copied(), status.ticket) {
            (None, Some(ticket)) => drop(self.tickets.insert(uid.clone(), ticket)),
            (first, ticket) if first != ticket => self.broken("Q8", format!("{name} had ticket {first:?}, then {ticket:?}")),
            _ => {}
        }
        for grant in &status.grants {
            self.owned(&grant.resource, grant.fence, &uid);
        }
        if status.phase.is_holding() {
            let wanted: i64 = claim.spec.requests.iter().map(|request| request.count.unwrap_or(1)).sum();
            if status.grants.len() as i64 != wanted {
                self.broken("M1", format!("{name} was given {} of {wanted}", status.grants.len()));
            }
            if self.held.insert(uid.clone()) && !self.two_lead {
                self.in_order(&claim, &uid);
            }
        }
        if status.phase == Phase::Queued {
            self.waited.entry(uid.clone()).or_insert(self.steps);
        }
        self.claims.insert(uid, claim);
    }

    /// Q3, Q8: of those that waited for one Resource alone, none was reserved it before another that had an earlier ticket and was
    /// seen to wait by then. Fences tell the order of reservations; their commits may land in any order.
    fn in_order(&mut self, claim: &Claim, uid: &str) {
        let (Some(resource), Some(waited)) = (sole(claim), self.waited.get(uid).copied()) else { return };
        let status = claim.status.as_ref().unwrap();
        let ticket = status.ticket.unwrap_or_default();
        let now = Served { claim: name(claim), resource: resource.to_owned(), ticket, fence: status.grants[0].fence, step: self.steps };
        let passed_by = |before: &&Served| {
            before.resource == now.resource && before.ticket > now.ticket && before.fence < now.fence && before.step > waited
        };
        if let Some(before) = self.served.iter().find(passed_by) {
            let what = format!("{} passed {} on {resource}", before.claim, now.claim);
            self.broken("Q8", what);
        }
        self.served.push(now);
    }
}

//! A cluster full of Resources, and Claims that come and go on them.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tenure::api::{Capacity, Claim, ClaimSpec, Mode, Phase, Request, Resource, ResourceSpec};
use tokio::time::sleep;

use crate::{
    dice::Dice,
    machine,
    seen::{self, Seen, phase},
};

const TICK: Duration = Duration::from_millis(40);
const LOCKS: usize = 6;
const POOLS: [i64; 5] = [2, 3, 4, 6, 8];
const GPUS: usize = 6;
/// As long as the last claims may take to wait, hold and end.
const SETTLING: Duration = Duration::from_secs(60);

pub struct Churn {
    pub namespace: String,
    seen: Seen,
    dice: Dice,
    claims: Api<Claim>,
    resources: Api<Resource>,
    made: usize,
    /// When a holder lets go, by its uid.
    due: BTreeMap<String, Instant>,
    /// Resources that are to be there again.
    gone: Vec<Resource>,
    /// Resources that were deleted and made again.
    pub remade: usize,
}

impl Churn {
    /// Makes the Resources: locks, pools, one without limit, and a host with devices in it.
    pub async fn new(client: &Client, namespace: &str, seen: Seen, dice: Dice) -> Self {
        let claims = Api::namespaced(client.clone(), namespace);
        let resources = Api::all(client.clone());
        let churn = Self {
            namespace: namespace.to_owned(),
            seen,
            dice,
            claims,
            resources,
            made: 0,
            due: BTreeMap::new(),
            gone: Vec::new(),
            remade: 0,
        };
        let shared = |quantity, unlimited| {
            let capacity = Capacity { mode: Mode::Shared, quantity, unlimited, ..Capacity::default() };
            ResourceSpec { capacity: Some(capacity), ..ResourceSpec::default() }
        };
        for number in 0..LOCKS {
            churn.add(&format!("lock-{number}"), "lock", ResourceSpec::default()).await;
        }
        for (number, quantity) in POOLS.into_iter().enumerate() {
            churn.add(&format!("pool-{number}"), "pool", shared(Some(quantity), false)).await;
        }
        churn.add("many", "many", shared(None, true)).await;
        churn.add("host", "host", ResourceSpec::default()).await;
        let inside = ResourceSpec { parent: Some(churn.full("host")), ..ResourceSpec::default() };
        for number in 0..GPUS {
            churn.add(&format!("gpu-{number}"), "gpu", inside.clone()).await;
        }
        churn
    }

    async fn add(&self, name: &str, sort: &str, spec: ResourceSpec) {
        let resource = labelled(&self.namespace, name, sort, spec);
        self.resources.create(&PostParams::default(), &resource).await.unwrap();
    }

    fn full(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    /// Makes so many claims, one after the other, and lets go of what they hold; deletes and makes anew now and then.
    pub async fn run(&mut self, claims: usize, pace: Duration) {
        let mut next = Instant::now();
        while self.made < claims {
            if Instant::now() >= next {
                self.make().await;
                next += pace;
            }
            if self.dice.one_in(25) {
                self.delete_and_remake_a_claim().await;
            }
            if self.dice.one_in(10) {
                self.delete_a_resource().await;
            }
            self.tend().await;
            sleep(TICK).await;
        }
    }

    /// Waits until every claim is at its end, each holder having let go, and every ledger is empty but the machine's.
    pub async fn settle(&mut self) {
        let started = Instant::now();
        loop {
            self.tend().await;
            let left = self.left().await;
            if left.is_empty() && self.gone.is_empty() {
                return;
            }
            assert!(started.elapsed() < SETTLING, "still so after {SETTLING:?}: {left:#?}");
            sleep(TICK * 5).await;
        }
    }

    /// What is not at rest, as the API server says.
    async fn left(&self) -> Vec<String> {
        let claims = self.claims.list(&ListParams::default()).await.unwrap().items;
        let claims = claims.iter().filter(|claim| !phase(claim).is_final());
        let mut left: Vec<String> = claims.map(|claim| format!("{} {:?}", seen::name(claim), claim.status)).collect();
        let ours = ListParams::default().labels(&format!("chaos={},sort!=machine", self.namespace));
        for resource in self.resources.list(&ours).await.unwrap() {
            let name = seen::name(&resource);
            let ledger = resource.status.unwrap_or_default();
            let waiting = ledger.queue.unwrap_or_default();
            if !ledger.occupants.is_empty() || !waiting.ordinary.is_empty() || ledger.queue_depth != 0 {
                left.push(format!("{name} {:?} {waiting:?}", ledger.occupants));
            }
        }
        left
    }

    async fn make(&mut self) {
        let impatient = self.dice.one_in(6);
        let wait = if impatient { self.dice.between(0, 3) } else { self.dice.between(10, 20) };
        let spec = ClaimSpec { requests: self.requests(), max_wait_seconds: Some(wait as i64), ..ClaimSpec::default() };
        let claim = Claim::new(&format!("claim-{}", self.made), spec);
        self.made += 1;
        self.claims.create(&PostParams::default(), &claim).await.unwrap();
    }

    fn requests(&mut self) -> Vec<Request> {
        let (lock, pool) = (self.dice.roll(LOCKS), self.dice.roll(POOLS.len()));
        let (lock, pool) = (self.full(&format!("lock-{lock}")), self.full(&format!("pool-{pool}")));
        let shared = Some(Mode::Shared);
        let quantity = Some(self.dice.between(1, 2) as i64);
        match self.dice.roll(16) {
            0..=4 => vec![named("only", lock, None, None)],
            5..=7 => vec![named("only", pool, shared, quantity)],
            8 => vec![named("only", pool, None, None)],
            9 | 10 => vec![named("one", lock, None, None), named("other", pool, shared, quantity)],
            11 => {
                let all = self.selected("all", "gpu", 2);
                vec![all, named("one", lock, None, None)]
            }
            12 => vec![self.selected("any", "lock", 2)],
            13 => {
                let count = self.dice.between(1, 3);
                vec![self.selected("any", "gpu", count)]
            }
            14 => vec![named("only", self.full("host"), None, None)],
            _ if self.dice.one_in(3) => vec![named("only", self.full(machine::NAME), None, None)],
            _ => {
                let mode = if self.dice.one_in(3) { None } else { shared };
                vec![named("only", self.full("many"), mode, None)]
            }
        }
    }

    fn selected(&self, name: &str, sort: &str, count: usize) -> Request {
        let labels = [("chaos".to_owned(), self.namespace.clone()), ("sort".to_owned(), sort.to_owned())];
        let selector = LabelSelector { match_labels: Some(BTreeMap::from(labels)), ..LabelSelector::default() };
        Request { name: name.to_owned(), selector: Some(selector), count: Some(count as i64), ..Request::default() }
    }

    /// Lets go of what was held for long enough, and of a waiter now and then.
    async fn tend(&mut self) {
        let mut done = Vec::new();
        for (uid, claim) in &self.seen.lock().claims {
            let status = phase(claim);
            let tired = status == Phase::Queued && self.dice.one_in(4_000);
            if (status.is_holding() || tired) && claim.spec.release.is_none() {
                let hold = if tired { Duration::ZERO } else { self.dice.milliseconds(100, 1_000) };
                let due = *self.due.entry(uid.clone()).or_insert_with(|| Instant::now() + hold);
                if due <= Instant::now() {
                    done.push(seen::name(claim));
                }
            }
        }
        for name in done {
            release(&self.claims, &name).await;
        }
        for resource in std::mem::take(&mut self.gone) {
            self.resources.create(&PostParams::default(), &resource).await.unwrap();
            self.remade += 1;
        }
    }

    async fn delete_and_remake_a_claim(&mut self) {
        let claims: Vec<Claim> = self.seen.lock().claims.values().cloned().collect();
        if claims.is_empty() {
            return;
        }
        let claim = &claims[self.dice.roll(claims.len())];
        let deleted = self.claims.delete(&seen::name(claim), &DeleteParams::default()).await;
        if unless_gone(deleted) {
            let spec = ClaimSpec { release: None, ..claim.spec.clone() };
            self.claims.create(&PostParams::default(), &Claim::new(&seen::name(claim), spec)).await.unwrap();
        }
    }

    /// One that is occupied can't be deleted. A deleted one is made again a moment later.
    async fn delete_a_resource(&mut self) {
        let names: Vec<String> = self.seen.lock().resources.keys().cloned().collect();
        if names.is_empty() {
            return;
        }
        let name = &names[self.dice.roll(names.len())];
        let Some(resource) = self.seen.lock().resources.get(name).cloned() else { return };
        match self.resources.delete(name, &DeleteParams::default()).await {
            Ok(_) => {
                let mut again = Resource::new(name, resource.spec);
                again.metadata.labels = resource.metadata.labels;
                self.gone.push(again);
            }
            Err(kube::Error::Api(refusal)) if refusal.message.contains("ResourceInUse") || refusal.code == 404 => {}
            Err(error) => panic!("deleting {name}: {error}"),
        }
    }
}

/// A Resource whose watcher and whose selectors find it by labels.
pub fn labelled(namespace: &str, name: &str, sort: &str, spec: ResourceSpec) -> Resource {
    let mut resource = Resource::new(&format!("{namespace}-{name}"), spec);
    let labels = [("chaos".to_owned(), namespace.to_owned()), ("sort".to_owned(), sort.to_owned())];
    resource.metadata.labels = Some(BTreeMap::from(labels));
    resource
}

/// A request for one Resource.
pub fn named(name: &str, resource: String, mode: Option<Mode>, quantity: Option<i64>) -> Request {
    Request { name: name.to_owned(), resource: Some(resource), mode, quantity, ..Request::default() }
}

/// A holder says that it is done; a claim that is gone needs no word.
pub async fn release(claims: &Api<Claim>, name: &str) {
    let done = Patch::Merge(json!({"spec": {"release": {}}}));
    unless_gone(claims.patch(name, &PatchParams::default(), &done).await);
}

fn unless_gone<T>(answer: kube::Result<T>) -> bool {
    match answer {
        Ok(_) => true,
        Err(kube::Error::Api(refusal)) if refusal.code == 404 => false,
        Err(error) => panic!("{error}"),
    }
}

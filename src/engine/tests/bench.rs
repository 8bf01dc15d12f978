//! An engine, a store, a clock.

use std::collections::BTreeMap;

use crate::{
    api::*,
    engine::{
        Engine, Settings,
        action::{Action, Write},
        event::{Event, Now, ScopeKind, ScopeTarget},
        invariant,
        look::Sought,
    },
    simulator::store::Store,
};

/// Where the clocks begin.
pub const START: i64 = 1_796_000_000_000;

/// An engine, a store and a clock.
pub struct Bench {
    pub engine: Engine,
    pub store: Store,
    pub now: Now,
    pub writes: Vec<Write>,
    pub looks: Vec<Vec<Sought>>,
}

impl Default for Bench {
    fn default() -> Self {
        let mut bench = Self {
            engine: Engine::new(Settings { term: 1, operator_namespace: "tenure-system".to_owned() }),
            store: Store::default(),
            now: Now { wall: START, steady: 0 },
            writes: Vec::new(),
            looks: Vec::new(),
        };
        bench.tell(vec![namespace("team-a", &[], false), namespace("team-b", &[("tier", "gold")], false), Event::Filled]);
        bench
    }
}

pub fn namespace(name: &str, labels: &[(&str, &str)], frozen: bool) -> Event {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>();
    Event::Namespace { name: name.to_owned(), uid: format!("uid-of-{name}"), labels, frozen, paused: false }
}

pub fn job(name: &str) -> ScopeTarget {
    ScopeTarget {
        kind: ScopeKind { api_version: "batch/v1".to_owned(), kind: "Job".to_owned() },
        namespace: "team-a".to_owned(),
        name: name.to_owned(),
    }
}

pub fn job_scope(name: &str) -> Scope {
    Scope { api_version: "batch/v1".to_owned(), kind: "Job".to_owned(), name: name.to_owned() }
}

impl Bench {
    /// Tells events and carries out what follows until nothing does.
    pub fn tell(&mut self, events: Vec<Event>) {
        let mut events = events;
        for _ in 0..200 {
            let actions = self.engine.step(self.now, events);
            events = Vec::new();
            for action in actions {
                match action {
                    Action::Write(write) => {
                        events.extend(self.store.write(&write, self.now.wall));
                        self.writes.push(write);
                    }
                    Action::Look { claim, sought } => {
                        events.push(Event::Looked { claim, found: self.store.look(&sought) });
                        self.looks.push(sought);
                    }
                    Action::Find(claim) => events.push(self.store.find(&claim)),
                    Action::Follow(_) | Action::Unfollow(_) => {}
                }
            }
            let violations = invariant::check(self.engine.world());
            assert!(violations.is_empty(), "{violations:?}");
            if events.is_empty() {
                return;
            }
        }
        panic!("the engine goes on writing: {:?}", self.writes.iter().rev().take(6).collect::<Vec<_>>());
    }

    /// Lets time pass, deadline by deadline.
    pub fn pass(&mut self, seconds: i64) {
        let end = self.now.steady + seconds * 1_000;
        for _ in 0..10_000 {
            let next = self.engine.next_deadline();
            let wall = next.wall.map(|wall| wall - self.now.wall + self.now.steady);
            let Some(when) = [wall, next.steady].into_iter().flatten().min().filter(|when| *when <= end) else { break };
            self.advance_to(when.max(self.now.steady + 1));
            self.tell(Vec::new());
        }
        self.advance_to(end);
        self.tell(Vec::new());
    }

    fn advance_to(&mut self, steady: i64) {
        self.now = Now { wall: self.now.wall + steady - self.now.steady, steady };
    }

    pub fn resource(&mut self, name: &str, spec: ResourceSpec) {
        self.labelled(name, &[], spec);
    }

    pub fn labelled(&mut self, name: &str, labels: &[(&str, &str)], spec: ResourceSpec) {
        let event = self.store.add_resource(name, labels, spec, self.now.wall).expect("the name is free");
        self.tell(vec![event]);
    }

    pub fn claim(&mut self, name: &str, spec: ClaimSpec) {
        let event = self.store.add_claim("team-a", name, spec, self.now.wall).expect("the name is free");
        self.tell(vec![event]);
    }

    pub fn release(&mut self, name: &str) {
        let event = self.store.release("team-a", name).expect("the claim is there");
        self.tell(vec![event]);
    }

    pub fn delete(&mut self, name: &str) {
        let events = self.store.remove_claim("team-a", name);
        self.tell(events);
    }

    pub fn change(&mut self, name: &str, change: impl FnOnce(&mut ResourceSpec)) {
        let event = self.store.change_resource(name, change).expect("the Resource is there");
        self.tell(vec![event]);
    }

    pub fn status(&self, name: &str) -> ClaimStatus {
        self.store.claims[&("team-a".to_owned(), name.to_owned())].status.clone().unwrap_or_default()
    }

    pub fn phase(&self, name: &str) -> Phase {
        self.status(name).phase
    }

    pub fn reason(&self, name: &str) -> Option<Reason> {
        self.status(name).reason
    }

    pub fn ledger(&self, name: &str) -> ResourceStatus {
        self.store.resources[name].status.clone().unwrap_or_default()
    }

    pub fn states(&self, name: &str) -> Vec<OccupantState> {
        self.ledger(name).occupants.iter().map(|occupant| occupant.state).collect()
    }

    /// A new leader that knows nothing but what the store says.
    pub fn take_over(&mut self, term: i64) {
        self.engine = Engine::new(Settings { term, operator_namespace: "tenure-system".to_owned() });
        let mut events = vec![namespace("team-a", &[], false), namespace("team-b", &[("tier", "gold")], false)];
        events.extend(self.store.list());
        self.tell(events);
    }

    pub fn see_job(&mut self, name: &str, uid: &str, finished: bool) {
        let target = job(name);
        self.tell(vec![
            Event::Scope { target: target.clone(), uid: uid.to_owned(), finished },
            Event::ScopeKindFilled { kind: target.kind },
        ]);
    }
}

pub fn mutex() -> ResourceSpec {
    ResourceSpec::default()
}

pub fn pool(quantity: i64) -> ResourceSpec {
    ResourceSpec { capacity: Some(Capacity { mode: Mode::Shared, quantity: Some(quantity), ..Default::default() }), ..Default::default() }
}

pub fn unlimited() -> ResourceSpec {
    ResourceSpec { capacity: Some(Capacity { mode: Mode::Shared, unlimited: true, ..Default::default() }), ..Default::default() }
}

/// A machine whose receipts come from `agent`.
pub fn machine() -> ResourceSpec {
    ResourceSpec {
        identity: Some(Identity { kind: IdentityKind::Machine, key: Some("host-1".to_owned()) }),
        receipt_provider: Some("generic".to_owned()),
        registered_by: Some(Account { user: "agent".to_owned(), node: None }),
        ..Default::default()
    }
}

pub fn named(resource: &str) -> Request {
    Request { name: "it".to_owned(), resource: Some(resource.to_owned()), ..Default::default() }
}

pub fn shared(resource: &str, quantity: i64) -> Request {
    Request { mode: Some(Mode::Shared), quantity: Some(quantity), ..named(resource) }
}

pub fn selecting(key: &str, value: &str, count: i64) -> Request {
    let labels = BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let selector = k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector { match_labels: Some(labels), match_expressions: None };
    Request { name: "it".to_owned(), selector: Some(selector), count: Some(count), ..Default::default() }
}

pub fn ask(requests: Vec<Request>, wait: i64) -> ClaimSpec {
    let requests = requests.into_iter().enumerate().map(|(place, request)| Request { name: format!("r{place}"), ..request }).collect();
    ClaimSpec { requests, max_wait_seconds: Some(wait), ..Default::default() }
}

pub fn asks(request: Request, wait: i64) -> ClaimSpec {
    ask(vec![request], wait)
}

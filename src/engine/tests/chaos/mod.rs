//! Random workloads with crashes, two leaders, lost replies, late writes and stale watches. A failure names its seed.

mod workload;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::bench::*;
use crate::{
    api::*,
    engine::{
        Engine, Settings,
        action::{Action, Write},
        capacity,
        event::{Event, Finding, Now, Outcome},
        invariant,
        look::Sought,
    },
    simulator::store::Store,
};
use workload::{labels, spec};

/// Numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }
}

struct Leader {
    engine: Engine,
    /// What the watches of each kind have not told yet: they don't keep step.
    inbox: [VecDeque<Event>; 2],
    /// Claims have been listed, later than Resources.
    listed: bool,
    sent: Vec<Write>,
    looks: Vec<(String, Vec<Sought>)>,
    finds: Vec<ClaimReference>,
}

struct Chaos {
    dice: Dice,
    store: Store,
    leaders: Vec<Leader>,
    late: Vec<Write>,
    now: Now,
    made: usize,
    terms: i64,
    fences: BTreeMap<(String, i64), String>,
    debts: BTreeSet<(String, i64)>,
    receipts: usize,
}

const NAMES: [&str; 7] = ["lock", "pool", "host", "gpu-0", "gpu-1", "machine", "many"];

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut chaos = Self {
            dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            store: Store::default(),
            leaders: Vec::new(),
            late: Vec::new(),
            now: Now { wall: START, steady: 0 },
            made: 0,
            terms: 0,
            fences: BTreeMap::new(),
            debts: BTreeSet::new(),
            receipts: 0,
        };
        for name in NAMES {
            chaos.store.add_resource(name, labels(name), spec(name), START).expect("a new name");
        }
        chaos.start();
        chaos
    }

    fn start(&mut self) {
        self.terms += 1;
        let engine = Engine::new(Settings { term: self.terms, operator_namespace: "tenure-system".to_owned() });
        let resources = self.store.resources.values().map(|resource| Event::Resource(Box::new(resource.clone())));
        let inbox = [std::iter::once(namespace("team-a", &[], false)).chain(resources).collect(), VecDeque::new()];
        self.leaders.push(Leader { engine, inbox, listed: false, sent: Vec::new(), looks: Vec::new(), finds: Vec::new() });
    }

    /// A new leader that has been told of every Resource lists Claims and Receipts, and begins.
    fn list(&mut self, which: usize) {
        let leader = &mut self.leaders[which];
        if !leader.listed && leader.inbox[0].is_empty() {
            leader.listed = true;
            leader.inbox[1].extend(self.store.list().into_iter().filter(|event| !matches!(event, Event::Resource(_))));
        }
    }

    fn broadcast(&mut self, events: Vec<Event>) {
        for leader in &mut self.leaders {
            for event in &events {
                match event {
                    Event::Resource(_) | Event::ResourceGone { .. } => leader.inbox[0].push_back(event.clone()),
                    // What happened before the list is in it.
                    other if leader.listed => leader.inbox[1].push_back(other.clone()),
                    _ => {}
                }
            }
        }
    }

    fn turn(&mut self) {
        match self.dice.roll(20) {
            0..=4 => self.use_it(),
            5..=10 => self.deliver(),
            11..=16 => self.answer(),
            17 => self.land_late(),
            18 => self.time(),
            _ => self.trouble(),
        }
        self.look();
    }

    /// What is read now is told now, or after much that happened since.
    fn look(&mut self) {
        for leader in &mut self.leaders {
            for (claim, sought) in std::mem::take(&mut leader.looks) {
                let place = self.dice.roll(leader.inbox[0].len() + 1);
                leader.inbox[0].insert(place, Event::Looked { claim, found: self.store.look(&sought) });
            }
            for claim in std::mem::take(&mut leader.finds) {
                let place = self.dice.roll(leader.inbox[1].len() + 1);
                let mut found = self.store.find(&claim);
                if self.dice.one_in(4) {
                    found = Event::Found { uid: claim.uid, finding: Finding::Unknown };
                }
                leader.inbox[1].insert(place, found);
            }
        }
    }

    fn deliver(&mut self) {
        let which = self.dice.roll(self.leaders.len());
        let some = self.dice.roll(6) + 1;
        let now = self.now;
        self.list(which);
        let lane = self.dice.roll(2);
        let leader = &mut self.leaders[which];
        let events: Vec<Event> = (0..some).filter_map(|_| leader.inbox[lane].pop_front()).collect();
        let actions = leader.engine.step(now, events);
        leader.take(actions);
    }

    fn answer(&mut self) {
        let which = self.dice.roll(self.leaders.len());
        if self.leaders[which].sent.is_empty() {
            return;
        }
        let place = self.dice.roll(self.leaders[which].sent.len());
        let write = self.leaders[which].sent.remove(place);
        let told = match self.dice.roll(12) {
            0 => {
                // The reply is lost.
                self.carry_out(&write);
                self.unknown(&write)
            }
            1 => {
                // The request is late, and may still take effect.
                self.late.push(write.clone());
                self.unknown(&write)
            }
            _ => self.carry_out(&write),
        };
        let now = self.now;
        let leader = &mut self.leaders[which];
        let actions = leader.engine.step(now, told);
        leader.take(actions);
    }

    fn unknown(&self, write: &Write) -> Vec<Event> {
        let mut told = self.store.read(&write.target);
        told.push(Event::Wrote { number: write.number, target: write.target.clone(), outcome: Outcome::Unknown });
        told
    }

    fn carry_out(&mut self, write: &Write) -> Vec<Event> {
        let before = self.store.written;
        let last = match (self.store.read(&write.target).remove(0), &write.body) {
            (last @ (Event::Claim(_) | Event::Resource(_)), crate::engine::action::Body::Delete) => Some(last),
            _ => None,
        };
        let told = self.store.write(write, self.now.wall);
        if self.store.written != before {
            let mut seen: Vec<Event> = last.into_iter().collect();
            seen.extend(self.store.read(&write.target));
            self.broadcast(seen);
            self.check(write);
        }
        told
    }

    fn land_late(&mut self) {
        if !self.late.is_empty() {
            let place = self.dice.roll(self.late.len());
            let write = self.late.remove(place);
            self.carry_out(&write);
        }
    }

    fn time(&mut self) {
        let milliseconds = [5, 500, 3_000, 20_000][self.dice.roll(4)];
        self.now = Now { wall: self.now.wall + milliseconds, steady: self.now.steady + milliseconds };
        for leader in &mut self.leaders {
            let actions = leader.engine.step(self.now, Vec::new());
            leader.take(actions);
        }
    }

    fn trouble(&mut self) {
        if !self.dice.one_in(3) {
            return;
        }
        if self.leaders.len() > 1 || self.dice.one_in(2) {
            let which = self.dice.roll(self.leaders.len());
            let dead = self.leaders.remove(which);
            self.late.extend(dead.sent);
        }
        if self.leaders.len() < 2 {
            self.start();
        }
    }

    /// C9 by the ledgers and, without them, by what claims were told; fences; debts.
    fn check(&mut self, write: &Write) {
        let mut held: BTreeMap<&str, (i64, bool, BTreeSet<i64>)> = BTreeMap::new();
        for claim in self.store.claims.values() {
            let status = claim.status.as_ref();
            for grant in status.iter().filter(|status| status.phase.is_holding()).flat_map(|status| &status.grants) {
                let entry = held.entry(&grant.resource).or_default();
                if grant.state == GrantState::Held && entry.2.insert(grant.fence) {
                    entry.0 += grant.quantity;
                    entry.1 |= grant.mode == Mode::Exclusive;
                }
                let uid = claim.metadata.uid.clone().unwrap_or_default();
                let owner = self.fences.entry((grant.resource.clone(), grant.fence)).or_insert_with(|| uid.clone());
                assert_eq!(*owner, uid, "fence {} of {} was given twice", grant.fence, grant.resource);
            }
            if let Some(status) = status.filter(|status| status.admitted_at.is_some() && status.phase.is_holding()) {
                let owed = status.grants.iter().filter(|grant| grant.resource == "machine");
                self.debts.extend(owed.map(|grant| (grant.resource.clone(), grant.fence)));
            }
        }
        for (resource, (quantity, exclusive, fences)) in &held {
            let units = capacity::units(&spec(resource).capacity.unwrap_or_default());
            assert!(units.is_none_or(|units| *quantity <= units), "{resource}: {quantity} of {units:?} are held after {write:?}");
            assert!(!exclusive || fences.len() == 1, "{resource} is held by {fences:?} and one of them is Exclusive");
        }
        if held.get("host").is_some_and(|host| host.1) {
            assert!(!held.contains_key("gpu-0") && !held.contains_key("gpu-1"), "host is held whole, and something in it too");
        }
        for (resource, fence) in &self.debts {
            let ledger = self.store.resources.get(resource).and_then(|resource| resource.status.clone()).unwrap_or_default();
            assert!(
                ledger.occupants.iter().any(|occupant| occupant.fence == *fence),
                "{resource} forgot what fence {fence} owes after {write:?}"
            );
        }
    }

    /// One leader is left, everything is told and time passes: all must come to rest.
    fn rest(&mut self) {
        for dead in self.leaders.drain(..).collect::<Vec<_>>() {
            self.late.extend(dead.sent);
        }
        self.start();
        for write in std::mem::take(&mut self.late) {
            self.carry_out(&write);
        }
        for round in 0..400 {
            self.list(0);
            let leader = &mut self.leaders[0];
            let events: Vec<Event> = leader.inbox.iter_mut().flat_map(|lane| lane.drain(..)).collect();
            let actions = leader.engine.step(self.now, events);
            leader.take(actions);
            for write in std::mem::take(&mut self.leaders[0].sent) {
                let told = self.carry_out(&write);
                let actions = self.leaders[0].engine.step(self.now, told);
                self.leaders[0].take(actions);
            }
            self.look();
            let step = if round < 200 { 100 } else { 10_000 };
            self.now = Now { wall: self.now.wall + step, steady: self.now.steady + step };
        }
        let world = self.leaders[0].engine.world();
        assert_eq!(invariant::check(world), Vec::new());
        assert_eq!(invariant::under_way(world), Vec::<String>::new());
        for ((_, name), claim) in &self.store.claims {
            let phase = claim.status.as_ref().map(|status| status.phase).unwrap_or_default();
            assert_ne!(phase, Phase::Pending, "{name} was never decided");
        }
        for (_, record) in world.resources.iter() {
            let free = record.ledger.occupants.is_empty() && record.ledger.unproven.is_none() && record.listed_under.is_none();
            assert!(
                !(free
                    && !record.queue.is_empty()
                    && world.under(record_place(world, &record.name), 128).is_empty()
                    && all_wait_for_one(world, record)),
                "{} is free and somebody waits",
                record.name
            );
        }
    }
}

fn record_place(world: &crate::engine::world::World, name: &str) -> crate::engine::world::ResourceIx {
    world.resource(name).expect("it is there")
}

/// True when the head of the queue wants nothing else, so that nothing else can hold it back.
fn all_wait_for_one(world: &crate::engine::world::World, record: &crate::engine::world::ResourceRecord) -> bool {
    record.queue.head().is_some_and(|(_, standing)| world.claims[standing.claim].spec.requests.len() == 1)
}

impl Leader {
    fn take(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Write(write) => self.sent.push(write),
                Action::Look { claim, sought } => self.looks.push((claim, sought)),
                Action::Find(claim) => self.finds.push(claim),
                Action::Follow(_) | Action::Unfollow(_) => {}
            }
        }
    }
}

fn run(seed: u64, turns: usize) {
    let mut chaos = Chaos::new(seed);
    for _ in 0..turns {
        chaos.turn();
    }
    chaos.rest();
}

#[test]
fn c9_m1_l6_l8_no_crash_second_leader_or_lost_reply_grants_twice_or_loses_a_debt() {
    for seed in 1..=150 {
        let result = std::panic::catch_unwind(|| run(seed, 600));
        assert!(result.is_ok(), "seed {seed} failed");
    }
}

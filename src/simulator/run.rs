//! Runs a workload through the engine on a virtual clock.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

use crate::{
    api::Phase,
    engine::{
        Engine, Settings,
        action::{Action, Body, Write},
        event::{Event, Now, Target},
        invariant::{self, Violation},
    },
};

use super::{
    store::Store,
    workload::{Dice, Workload, resource},
};

/// When the virtual wall clock begins. Unix milliseconds.
const BEGIN: i64 = 1_700_000_000_000;
/// The namespace of all claims.
const NAMESPACE: &str = "simulated";
/// Rounds of writes and answers at one moment at most; more means that the engine never comes to rest.
const ROUNDS: usize = 1_000;

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Claims that were granted.
    pub granted: usize,
    /// Claims that were denied.
    pub denied: usize,
    /// Claims whose wait ran out.
    pub timed_out: usize,
    /// Claims that ended otherwise.
    pub ended: usize,
    /// How long each granted claim waited, in virtual milliseconds, shortest first.
    pub waits: Vec<u32>,
    /// Steps of the engine.
    pub steps: u64,
    /// Writes that took effect.
    pub writes: u64,
    /// How often all invariants were checked.
    pub checks: u64,
    /// What did not hold.
    pub violations: Vec<Violation>,
    /// Virtual time that passed. Milliseconds.
    pub elapsed: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Comes(usize),
    LetsGo(String),
}

struct Run<'a> {
    workload: &'a Workload,
    dice: Dice,
    engine: Engine,
    store: Store,
    now: Now,
    agenda: BinaryHeap<Reverse<(i64, Happening)>>,
    arrived: HashMap<String, i64>,
    outcome: Outcome,
}

/// Runs a workload to its end. `progress` hears how many claims have come, now and then.
pub fn run(workload: &Workload, mut progress: impl FnMut(usize)) -> Outcome {
    let mut run = Run {
        workload,
        dice: Dice::new(workload.seed),
        engine: Engine::new(Settings { term: 1, operator_namespace: String::new() }),
        store: Store::default(),
        now: Now { wall: BEGIN, steady: 0 },
        agenda: BinaryHeap::new(),
        arrived: HashMap::new(),
        outcome: Outcome::default(),
    };
    let mut events: Vec<Event> = (0..workload.resources)
        .filter_map(|place| {
            let (name, labels, spec) = resource(place);
            run.store.add_resource(&name, &labels, spec, BEGIN)
        })
        .collect();
    events.push(Event::Filled);
    run.tell(events);
    run.agenda.push(Reverse((0, Happening::Comes(0))));
    let often = (workload.claims / 100).max(1);
    let mut micros = 0u64;
    while let Some(came) = run.turn(&mut micros) {
        if came % often == 0 {
            run.check();
            progress(came);
        }
    }
    run.check();
    run.outcome.elapsed = run.now.steady;
    run.outcome.writes = run.store.written;
    run.outcome.waits.sort_unstable();
    run.outcome
}

impl Run<'_> {
    /// The next moment at which something happens; the number of claims that came, or `None` at the end.
    fn turn(&mut self, micros: &mut u64) -> Option<usize> {
        let due = self.engine.next_deadline();
        let wall = due.wall.map(|wall| wall - BEGIN);
        let deadline = [wall, due.steady].into_iter().flatten().min();
        let planned = self.agenda.peek().map(|Reverse((when, _))| *when);
        let when = match (planned, deadline) {
            (Some(planned), Some(deadline)) => planned.min(deadline),
            (Some(planned), None) => planned,
            (None, Some(deadline)) if !self.arrived.is_empty() => deadline,
            (None, _) => return None,
        };
        let steady = when.max(self.now.steady);
        self.now = Now { wall: BEGIN + steady, steady };
        let mut events = Vec::new();
        let mut came = usize::MAX;
        while let Some(Reverse((at, _))) = self.agenda.peek()
            && *at <= steady
            && let Some(Reverse((_, happening))) = self.agenda.pop()
        {
            if let Happening::Comes(place) = happening {
                came = place;
                *micros += self.dice.gap(self.workload.gap_micros());
            }
            events.extend(self.happen(happening, *micros));
        }
        self.tell(events);
        Some(came)
    }

    fn happen(&mut self, happening: Happening, micros: u64) -> Option<Event> {
        match happening {
            Happening::Comes(place) => {
                let name = format!("claim-{place}");
                let spec = self.workload.claim(&mut self.dice);
                self.arrived.insert(name.clone(), self.now.steady);
                if place + 1 < self.workload.claims {
                    let next = (micros / 1_000) as i64;
                    self.agenda.push(Reverse((next.max(self.now.steady), Happening::Comes(place + 1))));
                }
                self.store.add_claim(NAMESPACE, &name, spec, self.now.wall)
            }
            Happening::LetsGo(name) => self.store.release(NAMESPACE, &name),
        }
    }

    fn tell(&mut self, events: Vec<Event>) {
        let mut events = events;
        for _ in 0..ROUNDS {
            self.outcome.steps += 1;
            let actions = self.engine.step(self.now, events);
            events = Vec::new();
            for action in actions {
                match action {
                    Action::Write(write) => {
                        self.note(&write);
                        events.extend(self.store.write(&write, self.now.wall));
                    }
                    Action::Look { claim, sought } => events.push(Event::Looked { claim, found: self.store.look(&sought) }),
                    Action::Find(claim) => events.push(self.store.find(&claim)),
                    Action::Follow(_) | Action::Unfollow(_) => {}
                }
            }
            if events.is_empty() {
                return;
            }
        }
        self.outcome.violations.push(Violation { rule: "rest", what: format!("still writing after {ROUNDS} rounds") });
    }

    fn note(&mut self, write: &Write) {
        let (Body::Claim(status), Target::Claim(_, name)) = (&write.body, &write.target) else { return };
        match status.phase {
            Phase::Active if status.ended_at.is_none() => {
                let Some(came) = self.arrived.get(name) else { return };
                self.outcome.granted += 1;
                self.outcome.waits.push((self.now.steady - came) as u32);
                let hold = self.dice.gap(self.workload.hold_seconds * 1_000).max(1) as i64;
                self.agenda.push(Reverse((self.now.steady + hold, Happening::LetsGo(name.clone()))));
            }
            Phase::Denied => self.outcome.denied += 1,
            Phase::TimedOut => self.outcome.timed_out += 1,
            Phase::Pending | Phase::Queued | Phase::Granted | Phase::Active | Phase::Contended => return,
            Phase::Released | Phase::Cancelled | Phase::Expired | Phase::Revoked => self.outcome.ended += 1,
        }
        if status.phase.is_final() {
            self.arrived.remove(name);
        }
    }

    fn check(&mut self) {
        self.outcome.checks += 1;
        if self.outcome.violations.len() < 10 {
            self.outcome.violations.extend(invariant::check(self.engine.world()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small(seed: u64) -> Workload {
        Workload {
            resources: 50,
            claims: 2_000,
            hold_seconds: 30,
            wait_seconds: 120,
            load_percent: 90,
            several_percent: 20,
            selector_percent: 20,
            seed,
        }
    }

    #[test]
    fn c9_m1_q3_a_busy_workload_ends_with_every_claim_decided() {
        let outcome = run(&small(7), |_| {});
        assert_eq!(outcome.violations, Vec::new());
        assert_eq!(outcome.granted + outcome.denied + outcome.timed_out, 2_000, "{outcome:?}");
        assert_eq!(outcome.granted, outcome.ended);
        assert!(outcome.granted > 1_000);
    }

    #[test]
    fn a_seed_decides_the_whole_run() {
        let (one, same, other) = (run(&small(3), |_| {}), run(&small(3), |_| {}), run(&small(4), |_| {}));
        assert_eq!((one.waits.clone(), one.steps, one.writes), (same.waits, same.steps, same.writes));
        assert_ne!((one.waits, one.steps), (other.waits, other.steps));
    }
}

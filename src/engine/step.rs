//! One step: facts in, wishes out.

use std::collections::BTreeSet;

use super::{
    action::Action,
    clockwork::Deadlines,
    event::{Event, Now},
    heartbeat::Rung,
    order::Order,
    world::{ClaimIx, Object, ResourceIx, World},
};

/// What the engine is told once.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The term of this leader: one more than the highest in its Lease and in every ledger.
    pub term: i64,
    /// The namespace the operator runs in; its annotation pauses everything (L13).
    pub operator_namespace: String,
}

/// What a step still has to look at.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Claims to be considered.
    pub claims: BTreeSet<ClaimIx>,
    /// Resources whose ledger is to be compared with its claims.
    pub ledgers: BTreeSet<ResourceIx>,
    /// Resources whose queue may have become servable.
    pub queues: BTreeSet<ResourceIx>,
    /// Receipts to be weighed.
    pub receipts: BTreeSet<String>,
    /// Receipts whose verdict may be written.
    pub verdicts: BTreeSet<String>,
    /// Objects that may want a write.
    pub writes: BTreeSet<Object>,
    /// What is to be done.
    pub actions: Vec<Action>,
}

/// The part that decides.
#[derive(Debug, Default)]
pub struct Engine {
    pub(super) settings: Settings,
    pub(super) world: World,
    pub(super) now: Now,
    pub(super) work: Work,
    pub(super) last_write: u64,
}

/// Turns of work in one step at most; what is left is done in the next, which is due at once.
const TURNS: usize = 200_000;

impl Engine {
    /// An engine that knows nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// What is known, for checks and figures.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Takes facts in, in the order in which they were seen, and says what is to be done.
    pub fn step(&mut self, now: Now, events: Vec<Event>) -> Vec<Action> {
        self.now = now;
        for event in events {
            self.absorb(event);
        }
        if self.world.filled {
            self.ring();
            self.settle();
            self.emit();
        }
        std::mem::take(&mut self.work.actions)
    }

    /// When to step without an event.
    pub fn next_deadline(&self) -> Deadlines {
        if !self.world.filled {
            return Deadlines::default();
        }
        if !self.work.claims.is_empty() || !self.work.queues.is_empty() || !self.work.ledgers.is_empty() {
            return Deadlines { wall: Some(self.now.wall), steady: Some(self.now.steady) };
        }
        let beats = if self.world.paused { None } else { self.world.beats.next() };
        let steady = [self.world.steady.next(), self.world.lazy.next(), beats].into_iter().flatten().min();
        Deadlines { wall: self.world.wall.next(), steady: steady.and_then(|when| self.world.holder_clock.steady(when)) }
    }

    /// What the holders' clock says now. Milliseconds.
    pub(super) fn holder_now(&self) -> i64 {
        self.world.holder_clock.read(self.now)
    }

    fn ring(&mut self) {
        while let Some(object) = self.world.wall.pop(self.now.wall) {
            self.rung(object);
        }
        if self.world.holder_clock.stands_still() {
            return;
        }
        let now = self.holder_now();
        while let Some(object) = self.world.steady.pop(now) {
            self.rung(object);
        }
        while let Some(resource) = self.world.lazy.pop(now) {
            self.show_queue(resource);
        }
        while !self.world.paused
            && let Some(rung) = self.world.beats.ring(now)
        {
            match rung {
                Rung::Lapsed(claim) => self.lapse(claim),
                Rung::Paused => self.show_pause(),
            }
        }
    }

    fn rung(&mut self, object: Object) {
        match object {
            Object::Claim(claim) => {
                self.work.claims.insert(claim);
            }
            Object::Resource(resource) => {
                self.work.ledgers.insert(resource);
                self.work.queues.insert(resource);
            }
        }
        self.work.writes.insert(object);
    }

    /// Works until nothing is left to look at: ledgers first, then claims in their order, then queues.
    fn settle(&mut self) {
        for _ in 0..TURNS {
            if let Some(resource) = self.work.ledgers.pop_first() {
                self.reconcile(resource);
            } else if !self.work.claims.is_empty() {
                for claim in self.claims_in_order() {
                    self.consider(claim);
                }
            } else if let Some(receipt) = self.work.receipts.pop_first() {
                self.apply_receipt(&receipt);
            } else if let Some(resource) = self.work.queues.pop_first() {
                self.serve(resource);
            } else {
                return;
            }
        }
    }

    fn claims_in_order(&mut self) -> Vec<ClaimIx> {
        let claims = std::mem::take(&mut self.work.claims);
        if claims.len() == 1 {
            return claims.into_iter().collect();
        }
        let mut ordered: Vec<(Order, ClaimIx)> =
            claims.into_iter().filter_map(|claim| Some((self.world.claims.get(claim)?.order(), claim))).collect();
        ordered.sort();
        ordered.into_iter().map(|(_, claim)| claim).collect()
    }
}

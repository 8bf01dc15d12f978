//! Who waits where, and who is served when something becomes free (Q3, Q7, M4).

use std::{collections::BTreeSet, ops::Bound};

use crate::api::{Mode, Phase, Reason};

use super::{
    action::Urgency,
    order::{Order, Standing},
    several::{Planned, Resolved},
    status::instant,
    step::Engine,
    weigh::Obstacle,
    world::{ClaimIx, Object, ResourceIx, Stage, UNDER},
};

/// How many claims of one queue are told a new position at a time; the others follow (Q7).
const TOLD: usize = 8;

impl Engine {
    /// Gives a claim its places in the queues; the word for why not if it can have none.
    pub(super) fn enqueue(&mut self, claim: ClaimIx, obstacles: &[Obstacle]) -> Result<(), Reason> {
        let spec = self.world.claims[claim].spec.clone();
        let order = self.world.claims[claim].order();
        let mut picks: Vec<Vec<ResourceIx>> = Vec::new();
        let mut taken: BTreeSet<ResourceIx> = BTreeSet::new();
        let mut aside = obstacles.iter().any(|obstacle| obstacle.reason == Reason::Unsatisfiable);
        for request in &spec.requests {
            let named = if request.selector.is_none() { self.resolve(claim, request) } else { Resolved::Awaited };
            picks.push(if let Resolved::Found(resource) = named { vec![resource] } else { Vec::new() });
            taken.extend(picks.last().into_iter().flatten());
        }
        for (place, request) in spec.requests.iter().enumerate().filter(|(_, request)| request.selector.is_some()) {
            match self.choose_picks(claim, place, request, &order, &taken) {
                Ok(chosen) => {
                    taken.extend(&chosen);
                    picks[place] = chosen;
                }
                Err(reason @ Reason::QueueFull) => return Err(reason),
                Err(_) => aside = true,
            }
        }
        let mut stands = BTreeSet::new();
        if !aside {
            for (picks, request) in picks.iter().zip(&spec.requests) {
                stands.extend(picks);
                if request.mode.unwrap_or_default() == Mode::Exclusive {
                    stands.extend(picks.iter().flat_map(|&pick| self.world.under(pick, UNDER)));
                }
            }
        }
        let newcomer = self.world.claims[claim].status.phase != Phase::Queued;
        if newcomer && stands.iter().any(|&resource| self.world.resources[resource].queue.is_full(&order)) {
            return Err(Reason::QueueFull);
        }
        self.stand(claim, &order, &stands);
        let record = &mut self.world.claims[claim];
        record.picks = picks;
        record.aside = aside;
        record.stands = stands;
        self.set_stage(claim, Stage::Queued);
        Ok(())
    }

    fn stand(&mut self, claim: ClaimIx, order: &Order, stands: &BTreeSet<ResourceIx>) {
        let standing = Standing { claim, since: self.now.wall };
        for &resource in stands {
            self.world.resources[resource].queue.insert(order.clone(), standing);
            self.queue_changed(resource);
        }
        let spec = self.world.claims[claim].spec.clone();
        for selector in spec.requests.iter().filter_map(|request| request.selector.as_ref()) {
            self.know_group(selector);
            if let Some(group) = self.world.groups.get_mut(selector) {
                group.waiters.insert(order.clone(), claim);
            }
        }
    }

    fn queue_changed(&mut self, resource: ResourceIx) {
        self.relist(resource);
        self.watch_idleness(resource);
        self.show_soon(resource);
        if self.world.resources[resource].spec.invented.is_some() {
            self.occupants_changed(resource);
        }
    }

    /// Takes a claim out of every queue it stands in.
    pub(super) fn leave(&mut self, claim: ClaimIx) {
        let record = &mut self.world.claims[claim];
        let order = record.order();
        let stands = std::mem::take(&mut record.stands);
        let was_queued = record.stage == Stage::Queued;
        record.picks = Vec::new();
        record.aside = false;
        let spec = record.spec.clone();
        for resource in stands {
            if self.world.resources.get(resource).is_some() && self.world.resources[resource].queue.remove(&order) {
                self.queue_changed(resource);
                self.work.queues.insert(resource);
            }
        }
        if was_queued {
            for selector in spec.requests.iter().filter_map(|request| request.selector.as_ref()) {
                if let Some(group) = self.world.groups.get_mut(selector) {
                    group.waiters.remove(&order);
                }
            }
        }
    }

    /// Something may have become free: serves the waiters of a Resource in order until one does not fit. Claims that wait with a
    /// selector and are older than the head come before it (M4).
    pub(super) fn serve(&mut self, resource: ResourceIx) {
        if self.world.resources.get(resource).is_none() {
            return;
        }
        self.relist(resource);
        for _ in 0..super::order::ORDINARY + super::order::DRAINS + 1 {
            let head = self.world.resources[resource].queue.head().map(|(order, standing)| (order.clone(), standing.claim));
            if self.serve_selecting(resource, head.as_ref().map(|(order, _)| order)) {
                continue;
            }
            let Some((_, claim)) = head else { return };
            if !self.try_grant(claim, None) {
                return;
            }
        }
        self.work.queues.insert(resource);
    }

    fn serve_selecting(&mut self, resource: ResourceIx, head: Option<&Order>) -> bool {
        let Some(effective) = &self.world.resources[resource].ledger.effective else { return false };
        if super::capacity::free(&self.world.resources[resource].ledger, &effective.capacity) == Some(0) {
            return false;
        }
        let mut last: Option<Order> = None;
        while let Some((order, claim)) = self.next_selecting(resource, last.as_ref(), head) {
            if self.try_grant(claim, Some(resource)) {
                return true;
            }
            last = Some(order);
        }
        false
    }

    /// The first claim after `last` and before `head` that waits with a selector which finds this Resource.
    fn next_selecting(&self, resource: ResourceIx, last: Option<&Order>, head: Option<&Order>) -> Option<(Order, ClaimIx)> {
        let name = &self.world.resources[resource].name;
        let after = (last.map_or(Bound::Unbounded, Bound::Excluded), head.map_or(Bound::Unbounded, Bound::Excluded));
        let groups = self.world.groups.iter().filter(|group| group.members.contains_key(name));
        let first = groups.filter_map(|group| group.waiters.range::<Order, _>(after).next()).min();
        first.map(|(order, claim)| (order.clone(), *claim))
    }

    /// Grants a waiting claim if all of it fits now.
    pub(super) fn try_grant(&mut self, claim: ClaimIx, focus: Option<ResourceIx>) -> bool {
        if self.world.claims[claim].stage != Stage::Queued || self.world.claims[claim].released {
            return false;
        }
        match self.plan(claim, focus) {
            Planned::Grant(shares) => {
                self.reserve(claim, shares);
                true
            }
            Planned::Blocked(obstacles) => {
                if obstacles.iter().any(|obstacle| super::weigh::refuses_waiter(obstacle.reason)) {
                    self.work.claims.insert(claim);
                } else {
                    self.show_obstacles(claim, &obstacles);
                }
                false
            }
            Planned::Invent => false,
        }
    }

    /// Writes a Resource's queue into its ledger and tells those who wait their new positions, the nearest first (Q7).
    pub(super) fn show_queue(&mut self, resource: ResourceIx) {
        let Some(record) = self.world.resources.get_mut(resource) else { return };
        record.shown_by = None;
        record.outbox.want(Urgency::Display, "show the queue");
        let waiting: Vec<ClaimIx> = record.queue.iter().map(|(_, standing)| standing.claim).collect();
        self.work.writes.insert(Object::Resource(resource));
        let mut told = 0;
        for claim in waiting {
            let position = self.position(claim);
            let status = &self.world.claims[claim].status;
            if status.phase != Phase::Queued || status.position == position {
                continue;
            }
            if told == TOLD {
                self.show_soon(resource);
                return;
            }
            told += 1;
            self.change_claim(claim, Urgency::Display, "show its position", |status| status.position = position);
        }
    }

    /// A claim's place in the longest line it stands in.
    pub(super) fn position(&self, claim: ClaimIx) -> Option<i64> {
        let record = &self.world.claims[claim];
        let order = record.order();
        record.stands.iter().filter_map(|&resource| self.world.resources[resource].queue.position(&order)).max()
    }

    /// Shows a waiting claim as queued.
    pub(super) fn show_queued(&mut self, claim: ClaimIx, obstacles: &[Obstacle]) {
        let position = self.position(claim);
        let record = &self.world.claims[claim];
        let until = instant(record.created.max(0) + record.wait_seconds() * 1_000);
        let urgency = if record.status.phase == Phase::Queued { Urgency::Display } else { Urgency::Verdict };
        let (reason, message, blocking) = self.explain(claim, obstacles);
        self.change_claim(claim, urgency, "queue", |status| {
            status.phase = Phase::Queued;
            status.reason = reason;
            status.message = message;
            status.blocking = blocking;
            status.position = position;
            status.wait_deadline.get_or_insert(until);
        });
    }

    fn show_obstacles(&mut self, claim: ClaimIx, obstacles: &[Obstacle]) {
        if self.world.claims[claim].status.reason != obstacles.first().map(|first| first.reason) {
            self.show_queued(claim, obstacles);
        }
    }
}

//! What becomes of a claim, from its first sight to its removal (Q1, L1 to L13).

use std::sync::Arc;

use crate::api::{ClaimStatus, GrantState, Phase, Reason};

use super::{
    action::Urgency,
    several::Planned,
    status::{instant, set_condition},
    step::Engine,
    weigh::{self, Obstacle},
    world::{ClaimIx, Object, ResourceIx, Stage},
};

/// The least time a claim may stay unweighed before it is taken for forgotten. Milliseconds (Q11).
const UNWEIGHED: i64 = 60_000;
/// How long a scope target is awaited. Milliseconds (S1).
const SCOPE_WAIT: i64 = 300_000;
/// How long a heartbeat may be silent when the claim does not say. Seconds (L2).
const LEASE: i64 = 120;
/// How long a finished claim stays when it does not say. Seconds (L10).
const TIME_TO_LIVE: i64 = 86_400;

impl Engine {
    /// Looks at one claim: what has changed for it, and what follows.
    pub(super) fn consider(&mut self, claim: ClaimIx) {
        let Some(record) = self.world.claims.get(claim) else { return };
        match record.stage {
            Stage::Final => {
                self.work.writes.insert(Object::Claim(claim));
            }
            Stage::Live => self.tend(claim),
            _ if record.released => {
                self.end(claim, Phase::Cancelled, Reason::ReleasedByHolder, "its holder let go of it before it was Active")
            }
            _ => self.consider_undecided(claim),
        }
        self.schedule(claim);
    }

    fn consider_undecided(&mut self, claim: ClaimIx) {
        self.pin_scopes(claim);
        if self.is_out_of_scope(claim) {
            self.end(claim, Phase::Cancelled, Reason::ScopeEnded, "the object it lives as long as is gone or finished");
            return;
        }
        // A reservation may turn up late, written by a leader before this one.
        let named = self.world.holdings.contains_key(&self.world.claims[claim].uid);
        match self.world.claims[claim].stage {
            Stage::Undecided => self.decide_or_take_up(claim),
            Stage::AwaitingScope | Stage::AwaitingResources | Stage::Queued if named => {
                self.leave(claim);
                self.set_stage(claim, Stage::Undecided);
                self.decide_or_take_up(claim);
            }
            Stage::AwaitingScope | Stage::AwaitingResources => self.decide(claim),
            Stage::Queued => self.decide_waiter(claim),
            Stage::Reserving(_) => self.advance(claim),
            Stage::Committing(_) | Stage::TakingBack | Stage::Live | Stage::Final => {}
        }
    }

    /// A claim that reservations name was left half done: it is finished if they are complete, else taken back.
    fn decide_or_take_up(&mut self, claim: ClaimIx) {
        let uid = &self.world.claims[claim].uid;
        if self.world.holdings.contains_key(uid) {
            match self.found_shares(claim) {
                Some(shares) => {
                    self.ticket(claim);
                    self.set_stage(claim, Stage::Reserving(shares));
                    self.advance(claim);
                }
                None => self.withdraw(claim),
            }
            return;
        }
        self.decide(claim);
    }

    /// One more than the highest, once (Q8).
    fn ticket(&mut self, claim: ClaimIx) {
        if self.world.claims[claim].status.ticket.is_none() {
            self.world.last_ticket += 1;
            let ticket = self.world.last_ticket;
            Arc::make_mut(&mut self.world.claims[claim].status).ticket = Some(ticket);
        }
    }

    fn decide(&mut self, claim: ClaimIx) {
        if self.is_forgotten(claim) {
            self.end(claim, Phase::TimedOut, Reason::NotWeighed, "the controller was away for longer than it would wait");
            return;
        }
        self.ticket(claim);
        if self.wait_is_over(claim) {
            self.time_out(claim);
            return;
        }
        match self.plan(claim, None) {
            Planned::Grant(shares) => self.reserve(claim, shares),
            Planned::Invent => self.set_stage(claim, Stage::AwaitingResources),
            Planned::Blocked(obstacles) => self.hold_back(claim, &obstacles),
        }
    }

    fn hold_back(&mut self, claim: ClaimIx, obstacles: &[Obstacle]) {
        let awaits_scope = matches!(obstacles[0].reason, Reason::ScopeNotFound | Reason::ScopeUnknown);
        let record = &self.world.claims[claim];
        let is_waiter = record.status.phase == Phase::Queued;
        if awaits_scope && self.now.wall < record.created + SCOPE_WAIT {
            self.set_stage(claim, Stage::AwaitingScope);
            self.show_pending(claim, obstacles);
            return;
        }
        let refused = obstacles
            .iter()
            .find(|obstacle| if is_waiter { weigh::refuses_waiter(obstacle.reason) } else { weigh::refuses_newcomer(obstacle.reason) });
        if awaits_scope || refused.is_some() || (record.wait_seconds() == 0 && !is_waiter) {
            if self.look_before_refusing(claim, obstacles) {
                self.set_stage(claim, Stage::AwaitingResources);
                return;
            }
            self.deny(claim, obstacles);
            return;
        }
        match self.enqueue(claim, obstacles) {
            Ok(()) => self.show_queued(claim, obstacles),
            Err(reason) => {
                let mut all = obstacles.to_vec();
                all.push(Obstacle { reason, request: 0, resource: None });
                weigh::sort(&mut all);
                self.deny_for(claim, reason, &all);
            }
        }
    }

    fn deny(&mut self, claim: ClaimIx, obstacles: &[Obstacle]) {
        self.deny_for(claim, obstacles[0].reason, obstacles);
    }

    fn deny_for(&mut self, claim: ClaimIx, reason: Reason, obstacles: &[Obstacle]) {
        let (_, message, blocking) = self.explain(claim, obstacles);
        Arc::make_mut(&mut self.world.claims[claim].status).blocking = blocking;
        self.end(claim, Phase::Denied, reason, message.as_deref().unwrap_or_default());
    }

    fn decide_waiter(&mut self, claim: ClaimIx) {
        if self.wait_is_over(claim) {
            self.time_out(claim);
            return;
        }
        match self.plan(claim, None) {
            Planned::Grant(shares) => self.reserve(claim, shares),
            Planned::Invent => {}
            Planned::Blocked(obstacles) => {
                let refused = obstacles.iter().any(|obstacle| weigh::refuses_waiter(obstacle.reason));
                let unsatisfiable = obstacles.iter().any(|obstacle| obstacle.reason == Reason::Unsatisfiable);
                if refused {
                    if !self.look_before_refusing(claim, &obstacles) {
                        self.deny(claim, &obstacles);
                    }
                } else if unsatisfiable != self.world.claims[claim].aside || self.has_lost_a_pick(claim) {
                    self.leave(claim);
                    if let Err(reason) = self.enqueue(claim, &obstacles) {
                        self.deny_for(claim, reason, &obstacles);
                    } else {
                        self.show_queued(claim, &obstacles);
                    }
                } else if self.world.claims[claim].status.reason != obstacles.first().map(|first| first.reason) {
                    self.show_queued(claim, &obstacles);
                }
            }
        }
    }

    /// M4: a pick changes only when it became impossible.
    fn has_lost_a_pick(&self, claim: ClaimIx) -> bool {
        let record = &self.world.claims[claim];
        !record.aside
            && record.spec.requests.iter().zip(&record.picks).any(|(request, picks)| {
                let Some(selector) = &request.selector else { return false };
                let members = self.world.groups.get(selector).map(|group| &group.members);
                picks.iter().any(|&pick| {
                    let gone = self
                        .world
                        .resources
                        .get(pick)
                        .is_none_or(|resource| members.is_none_or(|members| !members.contains_key(&resource.name)));
                    gone || weigh::withdrawn(&self.world, pick).is_some()
                })
            })
    }

    fn is_forgotten(&self, claim: ClaimIx) -> bool {
        let record = &self.world.claims[claim];
        record.status.ticket.is_none() && self.now.wall - record.created > (record.wait_seconds() * 1_000).max(UNWEIGHED)
    }

    fn wait_is_over(&self, claim: ClaimIx) -> bool {
        let record = &self.world.claims[claim];
        let until = record.status.wait_deadline.map(|until| until.as_millisecond());
        until.is_some_and(|until| until <= self.now.wall)
    }

    fn time_out(&mut self, claim: ClaimIx) {
        let reason = if self.world.claims[claim].spec.drain.is_some() { Reason::DrainTimedOut } else { Reason::WaitedTooLong };
        let last = self.world.claims[claim].status.message.clone().unwrap_or_default();
        let seconds = self.world.claims[claim].wait_seconds();
        self.end(claim, Phase::TimedOut, reason, &format!("it waited {seconds} s; {last}"));
    }

    /// Ends a claim: its final status first; the ledgers follow when that is confirmed.
    pub(super) fn end(&mut self, claim: ClaimIx, phase: Phase, reason: Reason, message: &str) {
        self.leave(claim);
        let now = instant(self.now.wall);
        let message = message.to_owned();
        let never_committed = !self.world.claims[claim].outbox.confirmed.phase.is_holding();
        self.change_claim(claim, Urgency::Decision, "end", |status| {
            status.phase = phase;
            status.reason = Some(reason);
            status.message = Some(message);
            status.ended_at = Some(now);
            status.position = None;
            if never_committed {
                status.grants = Vec::new();
                status.resources = None;
            }
            for grant in &mut status.grants {
                if grant.state != GrantState::Ended {
                    grant.state = GrantState::Ended;
                    grant.ended_at = Some(now);
                }
            }
        });
        self.set_stage(claim, Stage::Final);
        self.world.beats.forget(claim);
    }

    /// Looks after a claim that holds.
    fn tend(&mut self, claim: ClaimIx) {
        let record = &self.world.claims[claim];
        let active = record.status.phase == Phase::Active;
        let now = self.holder_now();
        if record.released {
            let phase = if active { Phase::Released } else { Phase::Cancelled };
            self.end(claim, phase, Reason::ReleasedByHolder, "its holder let go of it");
        } else if self.is_out_of_scope(claim) {
            let phase = if active { Phase::Released } else { Phase::Cancelled };
            self.end(claim, phase, Reason::ScopeEnded, "the object it lives as long as is gone or finished");
        } else if self.world.paused {
            self.end_parts(claim);
        } else if record.end_by.is_some_and(|end| end <= now) {
            self.end(claim, Phase::Expired, Reason::HoldLimit, "it reached the end of its hold");
        } else if !active && record.admit_by.is_some_and(|end| end <= now) {
            self.end(claim, Phase::Expired, Reason::AdmissionDeadline, "no adapter admitted it in time");
        } else {
            self.end_parts(claim);
        }
        if self.world.claims[claim].stage == Stage::Live {
            self.show_scope_doubt(claim);
        }
    }

    /// A heartbeat was silent for too long (L2).
    pub(super) fn lapse(&mut self, claim: ClaimIx) {
        self.world.beats.forget(claim);
        if self.world.claims.get(claim).is_some_and(|record| record.stage == Stage::Live) {
            self.end(claim, Phase::Expired, Reason::Lapsed, "its heartbeat was silent for longer than its lease");
            self.schedule(claim);
        }
    }

    /// L11: shows on the claims that hold by heartbeat that nobody lapses for a while.
    pub(super) fn show_pause(&mut self) {
        for claim in self.world.beats.silent_ones() {
            let generation = self.world.claims[claim].generation;
            let now = instant(self.now.wall);
            self.change_claim(claim, Urgency::Display, "expiry is paused", |status| {
                set_condition(
                    status,
                    "ExpiryPaused",
                    true,
                    "ExpiryPaused",
                    "many holders fell silent at once: nobody lapses for 10 minutes",
                    now,
                    Some(generation),
                );
            });
        }
    }

    /// Sets the clocks of a claim whose status was confirmed or taken up (L1, L2, L3, L11).
    pub(super) fn start_clocks(&mut self, claim: ClaimIx) {
        let now = self.holder_now();
        let wall = self.now.wall;
        let record = &mut self.world.claims[claim];
        let left = |until: Option<crate::api::Instant>| until.map(|until| now + (until.as_millisecond() - wall).max(0));
        record.end_by = record.end_by.or(left(record.status.expires_at));
        record.admit_by = record.admit_by.or(left(record.status.admission_deadline));
        let active = record.stage == Stage::Live && record.status.phase == Phase::Active;
        let lease = self.lease(claim);
        match lease {
            Some(lease) if active => {
                if !self.world.beats.has(claim) {
                    self.world.beats.beat(claim, lease * 1_000, now);
                }
            }
            _ => self.world.beats.forget(claim),
        }
    }

    /// How long a claim's heartbeat may be silent; `None` when it needs none (L2). Seconds.
    fn lease(&self, claim: ClaimIx) -> Option<i64> {
        let spec = &self.world.claims[claim].spec;
        let scoped = spec.scope.is_some() || spec.requests.iter().all(|request| request.scope.is_some());
        spec.lease_seconds.or((!scoped).then_some(LEASE))
    }

    /// Sets a claim's alarms to the next moment at which time alone changes something for it.
    pub(super) fn schedule(&mut self, claim: ClaimIx) {
        let Some(record) = self.world.claims.get(claim) else { return };
        let status = &record.status;
        let wall = match record.stage {
            Stage::Final => status.ended_at.map(|ended| ended.as_millisecond() + self.time_to_live(record) * 1_000),
            Stage::AwaitingScope => Some(record.created + SCOPE_WAIT),
            Stage::Queued => status.wait_deadline.map(|until| until.as_millisecond()),
            _ => None,
        };
        let live = record.stage == Stage::Live && !self.world.paused;
        let steady = match record.stage {
            Stage::AwaitingResources => return,
            _ if live && status.phase == Phase::Granted => [record.admit_by, record.end_by].into_iter().flatten().min(),
            _ if live => record.end_by,
            _ => None,
        };
        let retry = (record.outbox.want.is_some() && record.outbox.not_before > self.holder_now()).then_some(record.outbox.not_before);
        let wall = wall.filter(|when| *when > self.now.wall);
        self.world.wall.set(Object::Claim(claim), wall);
        self.world.steady.set(Object::Claim(claim), [steady, retry].into_iter().flatten().min());
    }

    fn time_to_live(&self, record: &super::world::ClaimRecord) -> i64 {
        record.spec.ttl_seconds_after_finished.unwrap_or(TIME_TO_LIVE)
    }

    /// True when a finished claim may be removed: its time is over and no ledger names it any more (L10).
    pub(super) fn is_outlived(&self, claim: ClaimIx) -> bool {
        let record = &self.world.claims[claim];
        let ended = record.outbox.confirmed.ended_at.map(|ended| ended.as_millisecond());
        record.stage == Stage::Final
            && record.outbox.confirmed.phase.is_final()
            && record.verdicts.is_empty()
            && !self.world.holdings.contains_key(&record.uid)
            && ended.is_some_and(|ended| ended + self.time_to_live(record) * 1_000 <= self.now.wall)
    }

    /// Sets a Resource's alarms.
    pub(super) fn schedule_resource(&mut self, resource: ResourceIx) {
        let record = &self.world.resources[resource];
        let idle = record.idle_since.map(|since| since + super::invent::IDLE);
        let retry = (record.outbox.want.is_some() && record.outbox.not_before > self.holder_now()).then_some(record.outbox.not_before);
        let until = record.ledger.unproven.as_ref().and_then(|unproven| unproven.until).map(|until| until.as_millisecond());
        self.world
            .steady
            .set(Object::Resource(resource), [idle, retry].into_iter().flatten().filter(|when| *when > self.holder_now()).min());
        self.world.wall.set(Object::Resource(resource), until.filter(|until| *until > self.now.wall));
    }

    /// Changes a claim's status as decided and wants it written.
    pub(super) fn change_claim(&mut self, claim: ClaimIx, urgency: Urgency, cause: &'static str, change: impl FnOnce(&mut ClaimStatus)) {
        let record = &mut self.world.claims[claim];
        change(Arc::make_mut(&mut record.status));
        record.outbox.want(urgency, cause);
        self.work.writes.insert(Object::Claim(claim));
    }

    /// Says how far the engine is with a claim.
    pub(super) fn set_stage(&mut self, claim: ClaimIx, stage: Stage) {
        self.world.claims[claim].stage = stage;
        self.mark_undecided(claim);
    }

    fn show_pending(&mut self, claim: ClaimIx, obstacles: &[Obstacle]) {
        let (reason, message, _) = self.explain(claim, obstacles);
        if self.world.claims[claim].status.reason != reason || self.world.claims[claim].status.message != message {
            self.change_claim(claim, Urgency::Verdict, "await its scope", |status| {
                status.reason = reason;
                status.message = message;
            });
        }
    }
}

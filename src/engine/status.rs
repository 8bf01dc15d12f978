//! What people read: messages, blocking lists, columns and conditions.

use std::{fmt::Write as _, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::{
    Availability, Blocking, ClaimReference, ClaimStatus, Holder, Instant, LendingMode, OccupantState, Phase, Queue, Reason, ResourceStatus,
    Share, Waiter,
};

use super::{
    capacity,
    order::Order,
    step::Engine,
    weigh::{self, Obstacle},
    world::{ClaimIx, ResourceIx},
};

/// How many holders a claim's `blocking` lists in all.
const HOLDERS: usize = 16;
/// How long a message may be. Characters.
const MESSAGE: usize = 1_000;

/// Unix milliseconds as the API carries them.
pub fn instant(milliseconds: i64) -> Instant {
    Instant::from_millisecond(milliseconds).unwrap_or_default()
}

/// Sets a condition of a claim; its time changes only with its status.
pub fn set_condition(
    status: &mut ClaimStatus,
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    now: Instant,
    generation: Option<i64>,
) {
    set(&mut status.conditions, kind, holds, reason, message, now, generation);
}

fn set(conditions: &mut Vec<Condition>, kind: &str, holds: bool, reason: &str, message: &str, now: Instant, generation: Option<i64>) {
    let word = if holds { "True" } else { "False" };
    let known = conditions.iter().position(|condition| condition.type_ == kind);
    let since = known.filter(|&known| conditions[known].status == word).map(|known| conditions[known].last_transition_time.clone());
    let condition = Condition {
        type_: kind.to_owned(),
        status: word.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: since.unwrap_or(Time(instant(now.as_second() * 1_000))),
        observed_generation: generation,
    };
    match known {
        Some(known) => conditions[known] = condition,
        None => conditions.push(condition),
    }
}

impl Engine {
    /// The reason, a sentence and a list for what holds a claim back (Q1, Q9).
    pub(super) fn explain(&self, claim: ClaimIx, obstacles: &[Obstacle]) -> (Option<Reason>, Option<String>, Vec<Blocking>) {
        let mut message = String::new();
        let mut blocking: Vec<Blocking> = Vec::new();
        let mut left = HOLDERS;
        for obstacle in obstacles {
            let text = self.sentence(claim, obstacle);
            if message.len() + text.len() + 2 <= MESSAGE && !message.contains(&text) {
                let _ = write!(message, "{}{text}", if message.is_empty() { "" } else { "; " });
            }
            if blocking.len() < HOLDERS {
                blocking.push(self.blocking(obstacle, &mut left));
            }
        }
        (obstacles.first().map(|first| first.reason), Some(message), blocking)
    }

    fn blocking(&self, obstacle: &Obstacle, left: &mut usize) -> Blocking {
        let mut entry = Blocking { reason: obstacle.reason, ..Default::default() };
        let Some(record) = obstacle.resource.and_then(|resource| self.world.resources.get(resource)) else { return entry };
        let effective = record.ledger.effective.clone().unwrap_or_default();
        entry.resource = Some(record.name.to_string());
        entry.key = record.spec.key.clone();
        entry.capacity = Some(capacity::text(&record.ledger, &effective.capacity));
        let about_holders = matches!(
            obstacle.reason,
            Reason::CapacityHeld | Reason::OccupantLimit | Reason::ParentHeld | Reason::Quarantined | Reason::Withdrawing
        );
        for occupant in record.ledger.occupants.iter().filter(|_| about_holders).take(*left) {
            entry.holders.push(Holder {
                label: occupant.label.clone(),
                state: occupant.state,
                mode: occupant.mode,
                quantity: occupant.quantity,
                yield_policy: occupant.yield_policy,
                expires_at: occupant.expires_at,
            });
        }
        *left -= entry.holders.len();
        entry
    }

    fn sentence(&self, claim: ClaimIx, obstacle: &Obstacle) -> String {
        let record = &self.world.claims[claim];
        let request = record.spec.requests.get(obstacle.request);
        let asked =
            request.map(|request| request.key.as_deref().or(request.resource.as_deref()).unwrap_or(&request.name)).unwrap_or_default();
        let Some(resource) = obstacle.resource.filter(|&resource| self.world.resources.get(resource).is_some()) else {
            return self.sentence_without_resource(obstacle.reason, asked, &record.namespace);
        };
        let what = self.world.resources[resource].spec.key.as_deref().unwrap_or(&self.world.resources[resource].name).to_owned();
        match obstacle.reason {
            Reason::CapacityHeld => format!("{what} is full: {}", self.holders(resource)),
            Reason::QueueAhead => match self.ahead(resource, &record.order()) {
                1 => format!("{what}: 1 claim is ahead"),
                ahead => format!("{what}: {ahead} claims are ahead"),
            },
            Reason::ParentHeld => format!("{what}, which it is inside, is taken whole: {}", self.holders(resource)),
            Reason::OccupantLimit => format!("{what} has as many occupants as it may have"),
            Reason::Quarantined => format!("{what} was seen dirty and waits to be cleaned"),
            Reason::Unproven => format!("{what} is not proven clean yet"),
            Reason::Withdrawing => format!("{what} is being withdrawn"),
            Reason::NotFound => format!("{what} is withdrawn"),
            Reason::LendingUnavailable => format!("{what} is not lent at the moment: its lending.mode is Unavailable"),
            Reason::NamespaceNotServed => {
                format!("{what} is not lent to namespace {}: its labels don't match lending.namespaces", record.namespace)
            }
            Reason::NamespaceFrozen => format!("namespace {} is frozen: nothing new is granted there", record.namespace),
            Reason::ModeUnsupported => format!("{what} is Exclusive: ask for it with mode Exclusive"),
            Reason::QuantityOutOfRange => {
                format!("{what} has {}: ask for no more, and name no quantity for the whole", self.whole(resource))
            }
            Reason::Unsatisfiable => format!(
                "{what} can be held for {} s at most: lower maxHoldSeconds",
                weigh::longest_hold(&self.world, resource).unwrap_or(0)
            ),
            Reason::SelfConflict => format!("two requests of this claim could never hold {what} together"),
            Reason::ModeConflict => format!("a claim with the same scope holds {what} with another mode or quantity"),
            Reason::KeyConflict => format!("an older Resource has the key {what}"),
            Reason::KeyInUse => format!("the key {what} is in use from before it was declared"),
            Reason::ParentMissing => format!("the Resource that {what} is inside is missing or does not list it, or there is a cycle"),
            Reason::LedgerInvalid => {
                format!("{what}: {}", self.world.resources[resource].invalid.as_deref().unwrap_or("its ledger is broken"))
            }
            Reason::DrainForbidden => format!("only an adapter of {what} with the role Incumbent or Maintainer may drain it"),
            Reason::TooManyUnder => format!("{what} has more than 128 Resources under it"),
            other => format!("{what}: {other}"),
        }
    }

    fn sentence_without_resource(&self, reason: Reason, asked: &str, namespace: &str) -> String {
        match reason {
            Reason::Paused => "Tenure is paused".to_owned(),
            Reason::ClockSkew => "the controller's clock is more than 60 s from the API server's".to_owned(),
            Reason::ScopeNotFound => "its scope object does not exist yet; it is awaited for 300 s".to_owned(),
            Reason::ScopeUnknown => "its scope object can't be read: the kind is not served, or the controller may not read it".to_owned(),
            Reason::NotFound => {
                let said = self
                    .world
                    .inventing
                    .values()
                    .find(|invention| invention.spec.key.as_deref() == Some(asked))
                    .map(|invention| invention.message.as_str());
                format!(
                    "there is no Resource {asked}, and no class invents it{}",
                    said.map(|said| format!(" ({said})")).unwrap_or_default()
                )
            }
            Reason::Unsatisfiable => format!("request {asked}: fewer Resources match than it asks for"),
            Reason::TooManyInvented => format!("namespace {namespace} has {} invented keys, the most there may be", super::invent::MOST),
            Reason::QueueFull => "its queue is full".to_owned(),
            Reason::CapacityHeld => format!("request {asked}: not enough of them are free at the same time"),
            other => format!("request {asked}: {other}"),
        }
    }

    fn whole(&self, resource: ResourceIx) -> String {
        let effective = self.world.resources[resource].ledger.effective.clone().unwrap_or_default();
        let unit = effective.capacity.unit.clone().unwrap_or_default();
        capacity::units(&effective.capacity).map_or("no limit".to_owned(), |units| format!("{units} {unit}").trim_end().to_owned())
    }

    fn holders(&self, resource: ResourceIx) -> String {
        let ledger = &self.world.resources[resource].ledger;
        let mut text: Vec<String> = Vec::new();
        for occupant in ledger.occupants.iter().take(4) {
            let who = occupant
                .label
                .clone()
                .or_else(|| occupant.claims.first().map(|claim| format!("{}/{}", claim.namespace, claim.name)))
                .unwrap_or_default();
            let until = occupant.expires_at.map_or("until it ends".to_owned(), |end| format!("until {}", end.strftime("%H:%MZ")));
            let state = match occupant.state {
                OccupantState::Reconciling => "waits for a look after",
                OccupantState::Quarantined => "quarantined after",
                _ => "held by",
            };
            text.push(format!("{} {state} {who} {until}", occupant.quantity));
        }
        if ledger.occupants.len() > 4 {
            text.push(format!("{} more", ledger.occupants.len() - 4));
        }
        text.join(", ")
    }

    fn ahead(&self, resource: ResourceIx, order: &Order) -> usize {
        self.world.resources[resource].queue.iter().take_while(|(other, _)| *other < order).count()
    }

    /// Fills in what of a claim's status follows from the rest.
    pub(super) fn finish_claim(&mut self, claim: ClaimIx) {
        let settled = self.owes_nothing(claim);
        let now = instant(self.now.wall);
        let record = &mut self.world.claims[claim];
        let generation = Some(record.generation);
        let status = Arc::make_mut(&mut record.status);
        let (phase, message) = (status.phase, status.message.clone().unwrap_or_default());
        let word = status.reason.map_or_else(|| phase.as_str().to_owned(), |reason| reason.to_string());
        if phase != Phase::Pending && phase != Phase::Queued {
            set(&mut status.conditions, "Decided", true, phase.as_str(), &message, now, None);
        }
        if phase.is_holding() || status.granted_at.is_some() {
            set(&mut status.conditions, "Granted", phase.is_holding(), &word, &message, now, generation);
        } else if phase == Phase::Queued || phase.is_final() {
            set(&mut status.conditions, "Granted", false, &word, &message, now, generation);
        }
        if status.admitted_at.is_some() {
            set(&mut status.conditions, "Admitted", true, "Admitted", "", now, generation);
        }
        if phase.is_final() {
            set(&mut status.conditions, "Finished", true, phase.as_str(), &message, now, generation);
            let (reason, message) = if settled { ("NothingOwed", "") } else { ("Owed", "what it held waits for a look") };
            set(&mut status.conditions, "Settled", settled, reason, message, now, generation);
        }
    }

    fn owes_nothing(&self, claim: ClaimIx) -> bool {
        let status = &self.world.claims[claim].status;
        status.grants.iter().all(|grant| {
            let resource = self.world.resource(&grant.resource);
            let free = resource
                .and_then(|resource| self.world.resources[resource].ledger.effective.as_ref())
                .is_some_and(capacity::needs_no_receipt);
            super::ledger::debt(status, grant, free) == super::ledger::Debt::None
        })
    }

    /// Fills in what of a ledger follows from the rest.
    pub(super) fn finish_ledger(&mut self, resource: ResourceIx) {
        let queue = self.shown_queue(resource);
        let depth = self.world.resources[resource].queue.len() as i64;
        let availability = self.availability(resource);
        let now = instant(self.now.wall);
        let record = &mut self.world.resources[resource];
        let invalid = record.invalid.clone();
        let ledger = Arc::make_mut(&mut record.ledger);
        let effective = ledger.effective.clone().unwrap_or_default();
        ledger.format_version = capacity::FORMAT;
        ledger.queue = (!queue.drains.is_empty() || !queue.ordinary.is_empty()).then_some(queue);
        ledger.queue_depth = depth;
        ledger.availability = Some(availability);
        ledger.occupied_quantity = capacity::occupied(ledger);
        ledger.free_quantity = capacity::free(ledger, &effective.capacity);
        ledger.capacity_text = Some(whole_text(&effective.capacity));
        let current = holding(ledger).find_map(|occupant| occupant.claims.first().map(reference));
        ledger.current_claim = current;
        ledger.holder = holder(ledger);
        ledger.reconciling = shares(ledger, OccupantState::Reconciling);
        let quarantined = shares(ledger, OccupantState::Quarantined);
        ledger.reconciling_for = ledger.reconciling.first().or(quarantined.first()).cloned();
        let grantable = matches!(availability, Availability::Free | Availability::PartlyFree);
        let word = format!("{availability:?}");
        let message = invalid.unwrap_or_default();
        set(&mut ledger.conditions, "Ready", !matches!(availability, Availability::LedgerInvalid), &word, &message, now, None);
        set(&mut ledger.conditions, "Grantable", grantable, &word, &message, now, None);
    }

    fn shown_queue(&self, resource: ResourceIx) -> Queue {
        let mut queue = Queue::default();
        for (order, standing) in self.world.resources[resource].queue.iter() {
            let claim = &self.world.claims[standing.claim];
            let mine = claim.picks.iter().position(|picks| picks.contains(&resource)).and_then(|place| claim.spec.requests.get(place));
            let waiter = Waiter {
                ticket: order.ticket,
                claim: ClaimReference { namespace: claim.namespace.to_string(), name: claim.name.to_string(), uid: claim.uid.to_string() },
                mode: mine.and_then(|request| request.mode).unwrap_or_default(),
                quantity: mine.and_then(|request| request.quantity).unwrap_or(1),
                since: Some(instant(standing.since)),
                reason: claim.status.reason,
            };
            if order.ordinary { queue.ordinary.push(waiter) } else { queue.drains.push(waiter) }
        }
        queue
    }

    /// One word: the first that applies.
    fn availability(&self, resource: ResourceIx) -> Availability {
        let record = &self.world.resources[resource];
        let ledger = &record.ledger;
        let effective = ledger.effective.clone().unwrap_or_default();
        let any = |state| ledger.occupants.iter().any(|occupant| occupant.state == state);
        match weigh::withdrawn(&self.world, resource) {
            Some(Reason::NotFound) => return Availability::Withdrawn,
            Some(_) => return Availability::Withdrawing,
            None => {}
        }
        let unproven =
            ledger.unproven.as_ref().is_some_and(|unproven| unproven.until.is_none_or(|until| until.as_millisecond() > self.now.wall));
        let unavailable = record.spec.lending.as_ref().is_some_and(|lending| lending.mode == LendingMode::Unavailable);
        let free = capacity::free(ledger, &effective.capacity);
        match () {
            () if record.invalid.is_some() => Availability::LedgerInvalid,
            () if any(OccupantState::Quarantined) => Availability::Quarantined,
            () if unproven => Availability::Unproven,
            () if unavailable => Availability::Unavailable,
            () if any(OccupantState::Reconciling) && holding(ledger).next().is_none() => Availability::Reconciling,
            () if free == Some(0) => Availability::Held,
            () if ledger.occupants.is_empty() => Availability::Free,
            () => Availability::PartlyFree,
        }
    }
}

fn holding(ledger: &ResourceStatus) -> impl Iterator<Item = &crate::api::Occupant> {
    ledger.occupants.iter().filter(|occupant| matches!(occupant.state, OccupantState::Held | OccupantState::Reserved))
}

fn whole_text(capacity: &crate::api::Capacity) -> String {
    let unit = capacity.unit.as_deref().unwrap_or("");
    capacity::units(capacity).map_or("unlimited".to_owned(), |units| format!("{units} {unit}").trim_end().to_owned())
}

fn reference(claim: &crate::api::OccupantClaim) -> ClaimReference {
    ClaimReference { namespace: claim.namespace.clone(), name: claim.name.clone(), uid: claim.uid.clone() }
}

fn shares(ledger: &ResourceStatus, state: OccupantState) -> Vec<Share> {
    let these = ledger.occupants.iter().filter(|occupant| occupant.state == state);
    these.map(|occupant| Share { fence: occupant.fence, claim: occupant.claims.first().map(reference) }).collect()
}

fn holder(ledger: &ResourceStatus) -> Option<String> {
    let mut holding = holding(ledger);
    let first = holding.next()?;
    let name = first.label.clone().or_else(|| first.claims.first().map(|claim| format!("{}/{}", claim.namespace, claim.name)))?;
    let more = holding.count() + first.claims.len().saturating_sub(1);
    Some(if more == 0 { name } else { format!("{name} +{more}") })
}

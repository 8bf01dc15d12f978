//! What stands between a claim and a Resource: every obstacle, in the order of the one list (Q9).

use crate::api::{Account, IdentityKind, LendingMode, Mode, OccupantState, Reason, Role, WEIGHED};

use super::{
    capacity,
    order::Order,
    selection,
    world::{ClaimIx, ResourceIx, UNDER, World},
};

/// One thing in a claim's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// Its word.
    pub reason: Reason,
    /// Which request of the claim it holds back, by its place.
    pub request: usize,
    /// Where it stands, if it stands on a Resource.
    pub resource: Option<ResourceIx>,
}

/// What one request of a claim asks of one Resource.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The claim.
    pub claim: ClaimIx,
    /// The request's place in it.
    pub request: usize,
    /// Exclusive or Shared.
    pub mode: Mode,
    /// The quantity the request names, if it names one.
    pub quantity: Option<i64>,
    /// The uid of its scope, if it has one.
    pub scope: Option<&'a str>,
    /// Its place in the order.
    pub order: &'a Order,
    /// What the same claim's other requests take of the same Resource.
    pub beside: i64,
}

impl Ask<'_> {
    /// How many units it takes of this Resource (C2).
    pub fn units(&self, world: &World, resource: ResourceIx) -> i64 {
        let capacity = world.resources[resource].ledger.effective.as_ref().map(|effective| &effective.capacity);
        match self.mode {
            Mode::Shared => self.quantity.unwrap_or(1),
            Mode::Exclusive => capacity.and_then(capacity::units).unwrap_or(1),
        }
    }
}

/// Sorts obstacles by the one list, so that the first is the reason.
pub fn sort(obstacles: &mut [Obstacle]) {
    obstacles.sort_by_key(|obstacle| (obstacle.reason.rank(), obstacle.request, obstacle.resource));
}

/// True for what refuses a claim on arrival even if it would wait (Q2, C7, M5, M7, Q5).
pub fn refuses_newcomer(reason: Reason) -> bool {
    !matches!(
        reason,
        Reason::Paused
            | Reason::ClockSkew
            | Reason::KeyInUse
            | Reason::ParentMissing
            | Reason::LedgerInvalid
            | Reason::Unproven
            | Reason::Unhealthy
            | Reason::ParentHeld
            | Reason::CapacityHeld
            | Reason::OccupantLimit
            | Reason::QueueAhead
            | Reason::ProtectedWindow
    )
}

/// True for what refuses a claim that already waits (Q2, M5).
pub fn refuses_waiter(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NotFound
            | Reason::KeyConflict
            | Reason::NamespaceNotServed
            | Reason::NamespaceFrozen
            | Reason::DrainForbidden
            | Reason::ModeUnsupported
            | Reason::QuantityOutOfRange
            | Reason::SelfConflict
            | Reason::ModeConflict
            | Reason::TooManyUnder
    )
}

/// True for what makes a Resource no candidate of a selector at all.
pub fn rules_out(reason: Reason) -> bool {
    refuses_waiter(reason)
        || matches!(reason, Reason::Unsatisfiable | Reason::Withdrawing | Reason::LendingUnavailable | Reason::Quarantined)
}

/// What weighing one request on one Resource led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weighed {
    /// It fits.
    Fits,
    /// It joins the occupancy with this fence and takes nothing (M5).
    Joins(i64),
    /// It does not fit, and why, in the order of the list.
    Blocked(Vec<Obstacle>),
}

/// Weighs one request on one Resource at `wall` (Unix milliseconds).
pub fn weigh(world: &World, ask: &Ask<'_>, resource: ResourceIx, wall: i64) -> Weighed {
    let mut scale = Scale { world, ask, resource, found: Vec::new() };
    let record = &world.resources[resource];
    if record.invalid.is_some() {
        scale.add(Reason::LedgerInvalid);
    } else if let Some(shared) = capacity::shared_with(&record.ledger, ask.scope) {
        match scale.share(shared) {
            Some(fence) => return Weighed::Joins(fence),
            None if !scale.found.is_empty() => return Weighed::Blocked(scale.found),
            None => {}
        }
    }
    scale.declared();
    scale.lent();
    scale.asked();
    scale.tree();
    scale.room(resource, wall);
    if ask.mode == Mode::Exclusive {
        scale.below(wall);
    }
    if scale.found.is_empty() {
        return Weighed::Fits;
    }
    sort(&mut scale.found);
    Weighed::Blocked(scale.found)
}

struct Scale<'a> {
    world: &'a World,
    ask: &'a Ask<'a>,
    resource: ResourceIx,
    found: Vec<Obstacle>,
}

impl Scale<'_> {
    fn add(&mut self, reason: Reason) {
        self.add_at(reason, self.resource);
    }

    fn add_at(&mut self, reason: Reason, resource: ResourceIx) {
        debug_assert!(WEIGHED.contains(&reason) || reason == Reason::TooManyUnder);
        self.found.push(Obstacle { reason, request: self.ask.request, resource: Some(resource) });
    }

    /// M5: the same scope, mode and quantity share; another mode or quantity could only ever wait for itself.
    fn share(&mut self, shared: &crate::api::Occupant) -> Option<i64> {
        let ledger = &self.world.resources[self.resource].ledger;
        if shared.mode != self.ask.mode || shared.quantity != self.ask.units(self.world, self.resource) {
            self.add(Reason::ModeConflict);
        } else if shared.state == OccupantState::Reserved {
            self.add(Reason::CapacityHeld);
        } else if shared.claims.len() >= capacity::SHARERS || capacity::joined(ledger) >= capacity::JOINED {
            self.add(Reason::OccupantLimit);
        } else {
            return Some(shared.fence);
        }
        None
    }

    /// M3: who has the key.
    fn declared(&mut self) {
        let record = &self.world.resources[self.resource];
        if record.spec.invented.is_some() {
            return;
        }
        let key = record.spec.key.as_deref().unwrap_or(&record.name);
        let oldest = self.world.declared.get(key).and_then(|declared| declared.first());
        if oldest.is_some_and(|(_, _, oldest)| *oldest != self.resource) {
            self.add(Reason::KeyConflict);
        }
        let invented = self.world.invented.get(key).into_iter().flat_map(|invented| invented.values());
        let in_use = |place: &ResourceIx| {
            let invented = &self.world.resources[*place];
            !invented.ledger.occupants.is_empty() || !invented.queue.is_empty()
        };
        if invented.clone().any(in_use) {
            self.add(Reason::KeyInUse);
        }
    }

    /// Q2: whether it is lent, and to this namespace.
    fn lent(&mut self) {
        let record = &self.world.resources[self.resource];
        if let Some(reason) = withdrawn(self.world, self.resource) {
            self.add(reason);
        }
        let lending = lending(self.world, self.resource);
        if lending.is_some_and(|lending| lending.mode == LendingMode::Unavailable) {
            self.add(Reason::LendingUnavailable);
        }
        let claim = &self.world.claims[self.ask.claim];
        let namespace = self.world.namespaces.get(&*claim.namespace);
        if let Some(selector) = lending.and_then(|lending| lending.namespaces.as_ref())
            && !namespace.is_some_and(|namespace| selection::matches(selector, &namespace.labels))
        {
            self.add(Reason::NamespaceNotServed);
        }
        if namespace.is_some_and(|namespace| namespace.frozen) {
            self.add(Reason::NamespaceFrozen);
        }
        let user = claim.spec.claimant.as_ref().map(|account| account.user.as_str());
        if claim.spec.drain.is_some() && !may_drain(record.spec.registered_by.as_ref(), &record.spec.adapters, user) {
            self.add(Reason::DrainForbidden);
        }
    }

    /// C7, M7: whether it could ever be.
    fn asked(&mut self) {
        let record = &self.world.resources[self.resource];
        let Some(effective) = &record.ledger.effective else {
            self.add(Reason::Unproven);
            return;
        };
        let units = capacity::units(&effective.capacity);
        if self.ask.mode == Mode::Shared && effective.capacity.mode == Mode::Exclusive {
            self.add(Reason::ModeUnsupported);
        }
        let wrong = match self.ask.mode {
            Mode::Shared => units.is_some_and(|units| self.ask.quantity.unwrap_or(1) + self.ask.beside > units),
            Mode::Exclusive => self.ask.quantity.is_some_and(|quantity| Some(quantity) != units),
        };
        if wrong && self.ask.beside == 0 {
            self.add(Reason::QuantityOutOfRange);
        } else if wrong || (self.ask.mode == Mode::Exclusive && self.ask.beside > 0) {
            self.add(Reason::SelfConflict);
        }
        let longest = lending(self.world, self.resource).and_then(|lending| lending.max_hold_seconds);
        let wanted = self.world.claims[self.ask.claim].spec.max_hold_seconds;
        if let (Some(longest), Some(wanted)) = (longest, wanted)
            && wanted > longest
        {
            self.add(Reason::Unsatisfiable);
        }
    }

    /// C10: what is above.
    fn tree(&mut self) {
        let Some(above) = self.world.above(self.resource) else {
            self.add(Reason::ParentMissing);
            return;
        };
        for ancestor in above {
            let record = &self.world.resources[ancestor];
            if let Some(reason) = withdrawn(self.world, ancestor) {
                self.add_at(reason, ancestor);
            }
            if is_quarantined(self.world, ancestor) {
                self.add_at(Reason::Quarantined, ancestor);
            }
            if capacity::is_taken_whole(&record.ledger) || capacity::is_taken_whole(&record.outbox.confirmed) {
                self.add_at(Reason::ParentHeld, ancestor);
            }
        }
    }

    /// C3 to C6, Q3, R10: whether there is room just now.
    fn room(&mut self, resource: ResourceIx, wall: i64) {
        let record = &self.world.resources[resource];
        let Some(effective) = &record.ledger.effective else { return };
        if is_quarantined(self.world, resource) {
            self.add_at(Reason::Quarantined, resource);
        }
        let until = record.ledger.unproven.as_ref().map(|unproven| unproven.until);
        if until.is_some_and(|until| until.is_none_or(|until| until.as_millisecond() > wall)) {
            self.add_at(Reason::Unproven, resource);
        }
        let units = self.ask.units(self.world, self.resource);
        if !capacity::fits(&record.ledger, &effective.capacity, self.ask.mode, units + self.ask.beside) {
            self.add_at(Reason::CapacityHeld, resource);
        } else if record.ledger.occupants.len() >= capacity::most_occupants(effective) {
            self.add_at(Reason::OccupantLimit, resource);
        }
        if record.queue.is_ahead_of(self.ask.order) {
            self.add_at(Reason::QueueAhead, resource);
        }
    }

    /// C10: what is below an Exclusive claim goes with it.
    fn below(&mut self, wall: i64) {
        let under = self.world.under(self.resource, UNDER);
        if under.len() > UNDER {
            self.add(Reason::TooManyUnder);
            return;
        }
        for child in under {
            let before = self.found.len();
            self.room(child, wall);
            self.found[before..].sort_by_key(|obstacle| obstacle.reason.rank());
        }
    }
}

fn lending(world: &World, resource: ResourceIx) -> Option<&crate::api::Lending> {
    let spec = &world.resources[resource].spec;
    spec.lending.as_ref().or_else(|| world.classes.get(spec.class.as_deref()?)?.lending.as_ref())
}

/// How long a Resource may be held. Seconds (L3).
pub fn longest_hold(world: &World, resource: ResourceIx) -> Option<i64> {
    lending(world, resource).and_then(|lending| lending.max_hold_seconds)
}

/// `Withdrawing` until nothing occupies it, `NotFound` from then on, `None` if it is not withdrawn (O1, Q2).
pub fn withdrawn(world: &World, resource: ResourceIx) -> Option<Reason> {
    let record = &world.resources[resource];
    let withdrawal = record.spec.withdrawal.as_ref()?;
    if !withdrawal.owner && !withdrawal.adapter {
        return None;
    }
    Some(if record.ledger.occupants.is_empty() { Reason::NotFound } else { Reason::Withdrawing })
}

/// True when any share is quarantined (C5).
pub fn is_quarantined(world: &World, resource: ResourceIx) -> bool {
    world.resources[resource].ledger.occupants.iter().any(|occupant| occupant.state == OccupantState::Quarantined)
}

fn may_drain(registered_by: Option<&Account>, adapters: &[crate::api::Adapter], user: Option<&str>) -> bool {
    let Some(user) = user else { return false };
    registered_by.is_some_and(|account| account.user == user)
        || adapters
            .iter()
            .any(|adapter| adapter.user == user && adapter.roles.iter().any(|role| matches!(role, Role::Incumbent | Role::Maintainer)))
}

/// True when this account may speak for the Resource (O2).
pub fn is_adapter(world: &World, resource: ResourceIx, user: &str) -> bool {
    let spec = &world.resources[resource].spec;
    spec.registered_by.as_ref().is_some_and(|account| account.user == user) || spec.adapters.iter().any(|adapter| adapter.user == user)
}

/// True when this Resource is a machine or a device.
pub fn is_physical(world: &World, resource: ResourceIx) -> bool {
    world.resources[resource].ledger.effective.as_ref().is_some_and(|effective| effective.identity.kind != IdentityKind::Logical)
}

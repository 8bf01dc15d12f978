//! A ledger against the claims it names: what must be kept, taken out, put back or waited for.
//!
//! Everything here looks at how things stand, never at what happened, so that it comes to the same end after a crash, a
//! conflict, a lost reply or a change of leader.

use std::{collections::BTreeSet, sync::Arc};

use crate::api::{
    ClaimStatus, Cleanup, Grant, GrantState, Mode, Occupant, OccupantClaim, OccupantState, Phase, ResourceStatus, Unproven, UnprovenReason,
};

use super::{
    action::Urgency,
    capacity,
    status::instant,
    step::Engine,
    world::{Object, ResourceIx, UNDER},
};

/// How long a ledger may lag behind commits and queues. Milliseconds.
const LAG: i64 = 1_500;

/// What becomes of what a claim held, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Debt {
    /// It is free.
    None,
    /// Somebody has to look (L7).
    Reconcile,
    /// It was seen dirty (L4).
    Quarantine,
}

/// How a claim stands to an occupancy that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// It may still be committed.
    Open,
    /// It was committed and names the fence.
    Granted,
    /// It can't be committed with this reservation any more.
    Void,
    /// It held this and has ended.
    Ended(Debt),
}

/// What a claim that ended with this grant leaves behind (L4, L7, R5). `free_by_itself`: the Resource needs no receipt.
pub fn debt(status: &ClaimStatus, grant: &Grant, free_by_itself: bool) -> Debt {
    match grant.refused_with {
        _ if free_by_itself => Debt::None,
        Some(Cleanup::Pristine) => Debt::None,
        Some(Cleanup::Residue) => Debt::Quarantine,
        Some(_) => Debt::Reconcile,
        None if status.phase == Phase::Cancelled => Debt::None,
        None if !status.phase.is_final() && status.admitted_at.is_none() => Debt::None,
        None => Debt::Reconcile,
    }
}

impl Engine {
    /// Brings a ledger in line with spec, its neighbours and the claims it names.
    pub(super) fn reconcile(&mut self, resource: ResourceIx) {
        let Some(record) = self.world.resources.get(resource) else { return };
        if record.invalid.is_some() || record.outbox.flight == Some(None) {
            return;
        }
        self.take_effective(resource);
        self.remember_ghost(resource);
        self.list_children(resource);
        self.find_claims(resource);
        self.settle_occupants(resource);
        self.put_back(resource);
        self.go_with_parent(resource);
        self.watch_idleness(resource);
        self.work.writes.insert(Object::Resource(resource));
    }

    /// Changes the ledger as decided and wants it written.
    pub(super) fn change_ledger(
        &mut self,
        resource: ResourceIx,
        urgency: Urgency,
        cause: &'static str,
        change: impl FnOnce(&mut ResourceStatus),
    ) {
        let record = &mut self.world.resources[resource];
        change(Arc::make_mut(&mut record.ledger));
        record.outbox.want(urgency, cause);
        self.work.writes.insert(Object::Resource(resource));
    }

    /// C7: spec counts when nothing occupies the Resource; its capacity only when nobody waits either.
    fn take_effective(&mut self, resource: ResourceIx) {
        let record = &self.world.resources[resource];
        let class = record.spec.class.as_ref().and_then(|class| self.world.classes.get(class));
        let mut wanted = capacity::effective(&record.spec, class);
        if let Some(current) = &record.ledger.effective {
            if !record.ledger.occupants.is_empty() {
                self.index_child(resource, record.ledger.effective.clone().and_then(|effective| effective.parent));
                return;
            }
            if !record.queue.is_empty() {
                wanted.capacity = current.capacity.clone();
            }
        }
        let parent = wanted.parent.clone();
        if record.ledger.effective.as_ref() != Some(&wanted) {
            self.change_ledger(resource, Urgency::Verdict, "take the spec that counts", |ledger| {
                ledger.format_version = capacity::FORMAT;
                ledger.effective = Some(wanted);
            });
            self.relist(resource);
            self.work.queues.insert(resource);
        }
        self.index_child(resource, parent);
    }

    /// Keeps under which parent a Resource is listed.
    pub(super) fn index_child(&mut self, resource: ResourceIx, parent: Option<String>) {
        let record = &mut self.world.resources[resource];
        if record.listed_under == parent {
            return;
        }
        let before = std::mem::replace(&mut record.listed_under, parent.clone());
        let name = record.name.clone();
        for (parent, is_new) in before.into_iter().map(|parent| (parent, false)).chain(parent.into_iter().map(|parent| (parent, true))) {
            let below = self.world.children.entry(parent.clone()).or_default();
            if is_new {
                below.insert(name.clone(), resource);
            } else {
                below.remove(&name);
            }
            if below.is_empty() {
                self.world.children.remove(&parent);
            }
            self.work.ledgers.extend(self.world.resource(&parent));
        }
    }

    /// What an earlier object of this name left: its fences go on, and if it was occupied the name rests for a while.
    fn remember_ghost(&mut self, resource: ResourceIx) {
        let record = &self.world.resources[resource];
        let Some(ghost) = self.world.ghosts.remove(&*record.name) else { return };
        if ghost.until <= self.now.wall && ghost.ledger.occupants.is_empty() {
            return;
        }
        let until = instant(ghost.until);
        let owes = |occupant: &&Occupant| {
            matches!(occupant.state, OccupantState::Reconciling | OccupantState::Quarantined) && occupant.via.is_none()
        };
        let mut after = (*record.ledger).clone();
        after.last_fence = after.last_fence.max(ghost.ledger.last_fence);
        let since_revision = after.revision + 1;
        after.unproven.get_or_insert(Unproven { since_revision, reason: UnprovenReason::Recreated, until: Some(until) });
        after.occupants.extend(ghost.ledger.occupants.iter().filter(owes).cloned());
        after.occupants.sort_by_key(|occupant| occupant.fence);
        if let Some(broken) = capacity::broken(&after) {
            // The debts of the Resource that was deleted don't fit this one: it is lent to nobody, and they are not forgotten.
            self.world.resources[resource].invalid = Some(format!("what a deleted Resource of this name owes does not fit it: {broken}"));
            let name = self.world.resources[resource].name.to_string();
            self.world.ghosts.insert(name, ghost);
            return;
        }
        self.change_ledger(resource, Urgency::Verdict, "an occupied Resource of this name was deleted", |ledger| *ledger = after);
        self.schedule_resource(resource);
        self.occupants_changed(resource);
    }

    /// C10: a parent's ledger lists what is directly under it.
    fn list_children(&mut self, resource: ResourceIx) {
        let record = &self.world.resources[resource];
        let below = self.world.children.get(&*record.name);
        let wanted: Vec<String> = below.into_iter().flat_map(|below| below.keys()).take(UNDER).map(ToString::to_string).collect();
        if record.ledger.children != wanted {
            self.change_ledger(resource, Urgency::Decision, "list what is inside", |ledger| ledger.children = wanted);
            let under = self.world.under(resource, UNDER);
            self.work.ledgers.extend(under);
        }
    }

    fn settle_occupants(&mut self, resource: ResourceIx) {
        let record = &self.world.resources[resource];
        if record.ledger.occupants.is_empty() {
            return;
        }
        let free_by_itself = record.ledger.effective.as_ref().is_some_and(capacity::needs_no_receipt);
        let mut kept: Vec<Occupant> = Vec::new();
        let mut flips = false;
        for occupant in &record.ledger.occupants {
            match self.settle_occupant(&record.name, occupant, free_by_itself) {
                None => {}
                Some(after) => {
                    flips |= occupant.state == OccupantState::Reserved && after.state == OccupantState::Held;
                    kept.push(after);
                }
            }
        }
        if kept == record.ledger.occupants {
            return;
        }
        let only_flips = kept.len() == record.ledger.occupants.len()
            && kept.iter().zip(&record.ledger.occupants).all(|(after, before)| {
                after.claims == before.claims && (after.state == before.state || after.state == OccupantState::Held)
            });
        if only_flips && flips {
            Arc::make_mut(&mut self.world.resources[resource].ledger).occupants = kept;
            self.show_soon(resource);
            return;
        }
        self.change_ledger(resource, Urgency::Decision, "what claims held has ended", |ledger| ledger.occupants = kept);
        self.occupants_changed(resource);
    }

    /// What becomes of one occupancy; `None` takes it out.
    fn settle_occupant(&self, resource: &str, occupant: &Occupant, free_by_itself: bool) -> Option<Occupant> {
        let over = matches!(occupant.state, OccupantState::Reconciling | OccupantState::Quarantined);
        if let (Some(via), Some(fence)) = (&occupant.via, occupant.via_fence) {
            return self.settle_with_parent(occupant, via, fence, over);
        }
        if over {
            return Some(occupant.clone());
        }
        let mut after = occupant.clone();
        let mut worst = Debt::None;
        let mut last = None;
        after.claims.retain(|claim| match self.stands(resource, occupant.fence, claim, free_by_itself) {
            Stands::Open => true,
            Stands::Granted => {
                after.state = OccupantState::Held;
                true
            }
            Stands::Void => false,
            Stands::Ended(debt) => {
                worst = worst.max(debt);
                last = Some(claim.clone());
                false
            }
        });
        if !after.claims.is_empty() {
            return Some(after);
        }
        after.state = match worst {
            Debt::None => return None,
            Debt::Reconcile => OccupantState::Reconciling,
            Debt::Quarantine => OccupantState::Quarantined,
        };
        after.claims.extend(last);
        Some(after)
    }

    /// C10: what is under a Resource is freed with it, whose receipt speaks for all.
    fn settle_with_parent(&self, occupant: &Occupant, via: &str, fence: i64, over: bool) -> Option<Occupant> {
        let parent = self.world.resource(via);
        let above = parent.and_then(|parent| {
            let ledger = &self.world.resources[parent].outbox.confirmed;
            ledger.occupants.iter().find(|above| above.fence == fence)
        });
        let mut after = occupant.clone();
        if let Some(above) = above.filter(|above| matches!(above.state, OccupantState::Reconciling | OccupantState::Quarantined)) {
            after.state = above.state;
            return Some(after);
        }
        if over {
            return above.is_some().then_some(after);
        }
        let stands: Vec<Stands> = occupant.claims.iter().map(|claim| self.stands(via, fence, claim, false)).collect();
        if stands.contains(&Stands::Granted) {
            after.state = OccupantState::Held;
            return Some(after);
        }
        if stands.contains(&Stands::Open) {
            return Some(after);
        }
        let ended = stands.iter().any(|stands| matches!(stands, Stands::Ended(_)));
        (ended && above.is_some()).then_some(after)
    }

    fn stands(&self, resource: &str, fence: i64, named: &OccupantClaim, free_by_itself: bool) -> Stands {
        let Some(claim) = self.world.claim(&named.uid) else {
            if !self.world.absent.contains(&*named.uid) {
                // Watches of different kinds don't keep step: it may be one that is only not seen yet.
                return Stands::Open;
            }
            // A claim that is gone may have been told of its grant (L8).
            return if free_by_itself { Stands::Ended(Debt::None) } else { Stands::Ended(Debt::Reconcile) };
        };
        let status = &self.world.claims[claim].outbox.confirmed;
        let grant = status.grants.iter().find(|grant| grant.fence == fence && grant.resource == resource && grant.request == named.request);
        match grant {
            Some(grant) if status.phase.is_final() || grant.state == GrantState::Ended => {
                Stands::Ended(debt(status, grant, free_by_itself))
            }
            Some(_) => Stands::Granted,
            None if status.phase.is_final() || status.phase.is_holding() => Stands::Void,
            None if named.attempt < status.attempt => Stands::Void,
            None => Stands::Open,
        }
    }

    /// C10: what appears under a Resource that is taken whole goes with it from the start.
    fn go_with_parent(&mut self, resource: ResourceIx) {
        let record = &self.world.resources[resource];
        if !record.ledger.occupants.is_empty() {
            return;
        }
        let mut at = resource;
        for _ in 0..super::world::LEVELS {
            let Some(parent) = self.world.resources[at].listed_under.as_deref().and_then(|parent| self.world.resource(parent)) else {
                return;
            };
            let taken =
                self.world.resources[parent].ledger.occupants.iter().find(|above| above.mode == Mode::Exclusive && above.via.is_none());
            if let Some(above) = taken.cloned() {
                let name = self.world.resources[parent].name.to_string();
                self.reserve_under(resource, &above, &name);
                return;
            }
            at = parent;
        }
    }

    /// Reserves a Resource under one that is taken whole.
    pub(super) fn reserve_under(&mut self, resource: ResourceIx, above: &Occupant, name: &str) {
        let fence = self.next_fence(resource);
        let whole = self.world.resources[resource].ledger.effective.as_ref().and_then(|effective| capacity::units(&effective.capacity));
        let occupant = Occupant {
            fence,
            mode: Mode::Exclusive,
            quantity: whole.unwrap_or(1),
            via: Some(name.to_owned()),
            via_fence: Some(above.fence),
            ..above.clone()
        };
        self.change_ledger(resource, Urgency::Decision, "taken with the Resource it is inside", |ledger| {
            ledger.last_fence = fence;
            ledger.occupants.push(occupant);
        });
        self.occupants_changed(resource);
    }

    /// The next fence of a Resource (L6).
    pub(super) fn next_fence(&self, resource: ResourceIx) -> i64 {
        (self.world.resources[resource].ledger.last_fence + 1).max(self.now.wall)
    }

    /// Keeps which ledgers name which claims.
    pub(super) fn reindex_holdings(&mut self, resource: ResourceIx) {
        let record = &self.world.resources[resource];
        let named: BTreeSet<Arc<str>> = living(&record.ledger);
        let before = std::mem::take(&mut self.world.resources[resource].names);
        for uid in before.difference(&named) {
            if let Some(places) = self.world.holdings.get_mut(uid) {
                places.remove(&resource);
                if places.is_empty() {
                    self.world.holdings.remove(uid);
                    self.world.absent.remove(uid);
                }
            }
            if let Some(claim) = self.world.claim(uid) {
                self.work.claims.insert(claim);
            }
        }
        for uid in named.difference(&before) {
            self.world.holdings.entry(uid.clone()).or_default().insert(resource);
            self.work.claims.extend(self.world.claim(uid));
        }
        self.world.resources[resource].names = named;
    }

    /// The ledger is written within the lag that people may see.
    pub(super) fn show_soon(&mut self, resource: ResourceIx) {
        if self.world.resources[resource].shown_by.is_none() {
            let at = self.holder_now() + LAG;
            self.world.resources[resource].shown_by = Some(at);
            self.world.lazy.set(resource, Some(at));
        }
    }
}

/// The uids of all claims that a ledger names as reserving or holding.
fn living(ledger: &ResourceStatus) -> BTreeSet<Arc<str>> {
    let living = ledger.occupants.iter().filter(|occupant| matches!(occupant.state, OccupantState::Reserved | OccupantState::Held));
    living.flat_map(|occupant| &occupant.claims).map(|claim| Arc::from(claim.uid.as_str())).collect()
}

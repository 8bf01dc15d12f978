//! What a ledger lost is put back (O6).

use crate::api::{Grant, GrantState, OccupantClaim, OccupantState};

use super::{
    action::Urgency,
    capacity,
    step::Engine,
    world::{ClaimIx, Object, ResourceIx},
};

impl Engine {
    /// O6: a committed, living claim whose occupancy no ledger holds is put back with its fence.
    pub(super) fn put_back(&mut self, resource: ResourceIx) {
        for claim in self.world.resources[resource].holders.clone() {
            let name = self.world.resources[resource].name.clone();
            let grants: Vec<Grant> = match self.world.claims.get(claim) {
                Some(record) if record.outbox.confirmed.phase.is_holding() => {
                    let held = |grant: &&Grant| *grant.resource == *name && grant.state == GrantState::Held;
                    record.outbox.confirmed.grants.iter().filter(held).cloned().collect()
                }
                _ => continue,
            };
            for grant in grants {
                self.put_back_grant(resource, claim, &grant);
            }
        }
    }

    fn put_back_grant(&mut self, resource: ResourceIx, claim: ClaimIx, grant: &Grant) {
        let named = OccupantClaim { attempt: self.world.claims[claim].outbox.confirmed.attempt, ..self.named(claim, &grant.request) };
        let record = &self.world.resources[resource];
        let same = record.ledger.occupants.iter().find(|occupant| occupant.fence == grant.fence);
        if same.is_some_and(|same| same.claims.iter().any(|claim| claim.uid == named.uid && claim.request == named.request)) {
            return;
        }
        if let Some(same) = same {
            if matches!(same.state, OccupantState::Held | OccupantState::Reserved) {
                let fence = grant.fence;
                self.change_ledger(resource, Urgency::Decision, "put back a sharer that a ledger lost", |ledger| {
                    for occupant in ledger.occupants.iter_mut().filter(|occupant| occupant.fence == fence) {
                        occupant.claims.push(named.clone());
                    }
                });
                self.occupants_changed(resource);
            }
            return;
        }
        let effective = record.ledger.effective.clone().unwrap_or_default();
        if !capacity::fits(&record.ledger, &effective.capacity, grant.mode, grant.quantity) {
            self.world.resources[resource].invalid =
                Some(format!("the granted claim {}/{} is missing and does not fit", named.namespace, named.name));
            self.work.writes.insert(Object::Resource(resource));
            return;
        }
        let mut occupant = self.occupant(claim, grant.mode, grant.quantity, grant.fence, &grant.request);
        occupant.state = OccupantState::Held;
        occupant.granted_at = self.world.claims[claim].outbox.confirmed.granted_at;
        occupant.claims = vec![named];
        let fence = grant.fence;
        self.change_ledger(resource, Urgency::Decision, "put back a claim that a ledger lost", |ledger| {
            ledger.last_fence = ledger.last_fence.max(fence);
            ledger.occupants.push(occupant);
            ledger.occupants.sort_by_key(|occupant| occupant.fence);
        });
        self.occupants_changed(resource);
    }
}

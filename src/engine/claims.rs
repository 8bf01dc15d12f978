//! Claims as they are seen.

use std::sync::Arc;

use crate::api::Claim;

use super::{
    outbox::version,
    step::Engine,
    world::{ClaimIx, ClaimRecord, Object, Stage},
};

impl Engine {
    /// A Claim as somebody read it; `read_back` as with a Resource.
    pub(super) fn see_claim(&mut self, object: Claim, read_back: bool) {
        let namespace: Arc<str> = Arc::from(object.metadata.namespace.as_deref().unwrap_or_default());
        let name: Arc<str> = Arc::from(object.metadata.name.as_deref().unwrap_or_default());
        let uid: Arc<str> = Arc::from(object.metadata.uid.as_deref().unwrap_or_default());
        if let Some(place) = self.world.claim_by_name.get(&(namespace.clone(), name.clone())).copied()
            && self.world.claims[place].uid != uid
        {
            self.lose_claim(&namespace, &name, "");
        }
        match self.world.claim(&uid) {
            Some(place) => {
                let record = &mut self.world.claims[place];
                if record.outbox.flight.is_some() && !read_back {
                    record.outbox.seen = Some(Box::new(object));
                    return;
                }
                let seen = object.metadata.resource_version.as_deref().unwrap_or_default();
                if !read_back && version(seen) <= version(&record.outbox.version) {
                    return;
                }
                self.refresh_claim(place, object);
            }
            None => {
                let born = version(object.metadata.resource_version.as_deref().unwrap_or_default());
                let created = object.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_millisecond());
                let record =
                    ClaimRecord { namespace: namespace.clone(), name: name.clone(), uid: uid.clone(), created, born, ..Default::default() };
                let place = self.world.claims.insert(record);
                self.world.claim_by_uid.insert(uid, place);
                self.world.claim_by_name.insert((namespace, name), place);
                self.refresh_claim(place, object);
                self.adopt(place);
            }
        }
    }

    fn refresh_claim(&mut self, place: ClaimIx, object: Claim) {
        let status = object.status.unwrap_or_default();
        let record = &mut self.world.claims[place];
        record.outbox.version = object.metadata.resource_version.unwrap_or_default();
        record.generation = object.metadata.generation.unwrap_or_default();
        record.released = object.spec.release.is_some() || object.metadata.deletion_timestamp.is_some();
        if *record.spec != object.spec {
            record.spec = Arc::new(object.spec);
        }
        let foreign = status != *record.outbox.confirmed;
        if foreign {
            record.outbox.confirmed = Arc::new(status);
            self.adopt(place);
        }
        self.work.claims.insert(place);
    }

    /// Takes a claim's status as it stands, whoever wrote it, and forgets what was decided beyond it.
    pub(super) fn adopt(&mut self, place: ClaimIx) {
        self.leave(place);
        let record = &mut self.world.claims[place];
        record.status = record.outbox.confirmed.clone();
        record.outbox.want = None;
        record.end_by = None;
        record.admit_by = None;
        let phase = record.status.phase;
        record.stage = if phase.is_final() {
            Stage::Final
        } else if phase.is_holding() {
            Stage::Live
        } else {
            Stage::Undecided
        };
        let verdicts = std::mem::take(&mut record.verdicts);
        self.work.receipts.extend(verdicts);
        self.world.last_ticket = self.world.last_ticket.max(self.world.claims[place].status.ticket.unwrap_or(0));
        self.follow_scopes(place);
        self.mark_undecided(place);
        self.note_grants(place);
        self.start_clocks(place);
        self.touch_holdings(place);
        self.work.claims.insert(place);
    }

    /// A claim's reservations and shares are looked at again.
    pub(super) fn touch_holdings(&mut self, claim: ClaimIx) {
        let uid = &self.world.claims[claim].uid;
        if let Some(places) = self.world.holdings.get(uid) {
            self.work.ledgers.extend(places.iter().copied());
        }
    }

    /// Keeps which Resources a living claim's grants name, so that a ledger that lost one is noticed (O6).
    pub(super) fn note_grants(&mut self, claim: ClaimIx) {
        let record = &self.world.claims[claim];
        let living = record.outbox.confirmed.phase.is_holding();
        for grant in record.outbox.confirmed.grants.clone() {
            let held = living && grant.state == crate::api::GrantState::Held;
            match self.world.resource(&grant.resource) {
                Some(place) if held => {
                    self.world.resources[place].holders.insert(claim);
                    self.work.ledgers.insert(place);
                }
                Some(place) => {
                    self.world.resources[place].holders.remove(&claim);
                }
                None if held => {
                    self.world.orphans.entry(grant.resource).or_default().insert(claim);
                }
                None => {}
            }
        }
    }

    pub(super) fn lose_claim(&mut self, namespace: &str, name: &str, uid: &str) {
        let key = (Arc::from(namespace), Arc::from(name));
        let Some(&place) = self.world.claim_by_name.get(&key) else { return };
        if !uid.is_empty() && *self.world.claims[place].uid != *uid {
            return;
        }
        self.leave(place);
        self.let_go_of_scopes(place);
        self.world.beats.forget(place);
        self.world.wall.set(Object::Claim(place), None);
        self.world.steady.set(Object::Claim(place), None);
        self.work.claims.remove(&place);
        self.work.writes.remove(&Object::Claim(place));
        // The end of a write that is on its way may never be told: its last state says how far it came.
        if let Some(last) = self.world.claims[place].outbox.seen.take() {
            self.world.claims[place].outbox.confirmed = Arc::new(last.status.unwrap_or_default());
        }
        let gone = self.world.claims[place].uid.clone();
        if self.world.holdings.contains_key(&gone) {
            self.world.absent.insert(gone);
        }
        self.end_of_deleted(place, !uid.is_empty());
        for grant in self.world.claims[place].outbox.confirmed.grants.clone() {
            if let Some(resource) = self.world.resource(&grant.resource) {
                self.world.resources[resource].holders.remove(&place);
            }
            if let Some(orphans) = self.world.orphans.get_mut(&grant.resource) {
                orphans.remove(&place);
            }
        }
        for invention in self.world.inventing.values_mut() {
            invention.claims.remove(&place);
        }
        let Some(record) = self.world.claims.remove(place) else { return };
        self.world.claim_by_uid.remove(&record.uid);
        self.world.claim_by_name.remove(&key);
        if let Some(claims) = self.world.undecided.get_mut(&record.namespace) {
            claims.remove(&place);
        }
    }

    /// Keeps which claims of a namespace are not decided.
    pub(super) fn mark_undecided(&mut self, claim: ClaimIx) {
        let namespace = self.world.claims[claim].namespace.clone();
        let claims = self.world.undecided.entry(namespace).or_default();
        if matches!(self.world.claims[claim].stage, Stage::Live | Stage::Final) {
            claims.remove(&claim);
        } else {
            claims.insert(claim);
        }
    }
}

//! Wishes become writes: guarded, at most one on its way for each object, none that would change nothing.

use std::sync::Arc;

use super::{
    action::{Action, Body, Write},
    event::Target,
    step::Engine,
    world::{ClaimIx, Object, ResourceIx},
};

impl Engine {
    pub(super) fn emit(&mut self) {
        // The order of places depends on nothing but the events, so that a run can be repeated.
        for object in std::mem::take(&mut self.work.writes) {
            match object {
                Object::Resource(resource) => self.emit_ledger(resource),
                Object::Claim(claim) => self.emit_claim(claim),
            }
        }
        self.emit_verdicts();
        self.work.actions.sort_by_key(|action| match action {
            Action::Write(write) => Some(write.urgency),
            Action::Look { .. } | Action::Find(_) | Action::Follow(_) | Action::Unfollow(_) => None,
        });
    }

    fn emit_ledger(&mut self, resource: ResourceIx) {
        let Some(record) = self.world.resources.get(resource) else { return };
        if record.outbox.flight.is_some() {
            return;
        }
        if record.outbox.not_before > self.holder_now() {
            self.schedule_resource(resource);
            return;
        }
        let Some((urgency, cause)) = record.outbox.want else {
            if self.is_done_with(resource) {
                self.delete_resource(resource);
            }
            return;
        };
        self.finish_ledger(resource);
        let term = self.settings.term.max(if self.settings.term == 0 { self.world.highest_term } else { 0 });
        let record = &mut self.world.resources[resource];
        record.outbox.want = None;
        let before = record.outbox.confirmed.clone();
        let ledger = Arc::make_mut(&mut record.ledger);
        ledger.revision = before.revision;
        ledger.term = before.term;
        if *ledger == *before {
            record.ledger = before;
            return;
        }
        ledger.revision = before.revision + 1;
        ledger.term = term.max(before.term);
        for occupant in &mut ledger.occupants {
            let known = before.occupants.iter().find(|known| known.fence == occupant.fence);
            occupant.since_revision = match known {
                Some(known) if known.state == occupant.state => known.since_revision,
                _ => ledger.revision,
            };
        }
        record.outbox.flight = Some(Some(record.ledger.clone()));
        self.last_write += 1;
        record.outbox.number = self.last_write;
        let write = Write {
            number: self.last_write,
            target: Target::Resource(record.name.to_string()),
            uid: record.uid.clone(),
            resource_version: record.outbox.version.clone(),
            body: Body::Ledger { after: record.ledger.clone(), before },
            urgency,
            cause,
        };
        self.work.actions.push(Action::Write(write));
    }

    fn delete_resource(&mut self, resource: ResourceIx) {
        let record = &mut self.world.resources[resource];
        record.outbox.flight = Some(None);
        self.last_write += 1;
        record.outbox.number = self.last_write;
        let write = Write {
            number: self.last_write,
            target: Target::Resource(record.name.to_string()),
            uid: record.uid.clone(),
            resource_version: record.outbox.version.clone(),
            body: Body::Delete,
            urgency: super::action::Urgency::Display,
            cause: "an invented Resource was idle",
        };
        self.work.actions.push(Action::Write(write));
    }

    fn emit_claim(&mut self, claim: ClaimIx) {
        let Some(record) = self.world.claims.get(claim) else { return };
        if record.outbox.flight.is_some() {
            return;
        }
        if record.outbox.not_before > self.holder_now() {
            self.schedule(claim);
            return;
        }
        let outlived = record.outbox.want.is_none() && self.is_outlived(claim);
        let (urgency, cause) = match record.outbox.want {
            Some(want) => want,
            None if outlived => (super::action::Urgency::Display, "its time to live is over"),
            None => return,
        };
        if !outlived {
            self.finish_claim(claim);
        }
        let record = &mut self.world.claims[claim];
        record.outbox.want = None;
        if !outlived && record.status == record.outbox.confirmed {
            return;
        }
        let body = if outlived { Body::Delete } else { Body::Claim(record.status.clone()) };
        record.outbox.flight = Some((!outlived).then(|| record.status.clone()));
        self.last_write += 1;
        record.outbox.number = self.last_write;
        let write = Write {
            number: self.last_write,
            target: Target::Claim(record.namespace.to_string(), record.name.to_string()),
            uid: record.uid.to_string(),
            resource_version: record.outbox.version.clone(),
            body,
            urgency,
            cause,
        };
        self.work.actions.push(Action::Write(write));
    }
}

//! How writes ended.

use std::sync::Arc;

use crate::api::Phase;

use super::{
    event::{Outcome, Target},
    outbox::version,
    step::Engine,
    world::{ClaimIx, Object, ResourceIx, Stage},
};

/// The longest rest after writes that were refused for good. Milliseconds.
const REST: i64 = 60_000;

impl Engine {
    /// A write ended. One whose object has gone or was made anew since ends unnoticed: its number is not the one on its way.
    pub(super) fn wrote(&mut self, number: u64, target: Target, outcome: Outcome) {
        match target {
            Target::Resource(name) => match self.world.resource(&name) {
                Some(place) if self.world.resources[place].outbox.number == number => self.wrote_ledger(place, outcome),
                _ if self.world.inventing.get(&name).is_none_or(|invention| invention.number != number) => {}
                _ => match outcome {
                    Outcome::Written { .. } => {}
                    Outcome::Refused { message, .. } => self.invention_failed(&name, &message),
                    Outcome::Unknown => self.invention_failed(&name, "the API server did not answer"),
                },
            },
            Target::Claim(namespace, name) => {
                let key = (Arc::from(namespace.as_str()), Arc::from(name.as_str()));
                if let Some(&place) = self.world.claim_by_name.get(&key)
                    && self.world.claims[place].outbox.number == number
                {
                    self.wrote_claim(place, outcome);
                }
            }
            Target::Receipt(name) => self.wrote_verdict(number, &name, &outcome),
        }
    }

    fn wrote_ledger(&mut self, place: ResourceIx, outcome: Outcome) {
        let record = &mut self.world.resources[place];
        let Some(flight) = record.outbox.flight.take() else { return };
        let seen = record.outbox.seen.take();
        let awaited = std::mem::take(&mut record.awaited);
        self.work.claims.extend(awaited);
        self.work.writes.insert(Object::Resource(place));
        match (outcome, flight) {
            (Outcome::Written { resource_version }, Some(ledger)) => {
                record.outbox.version = resource_version;
                record.outbox.confirmed = ledger;
                record.outbox.failures = 0;
                record.outbox.not_before = i64::MIN;
                self.ledger_confirmed(place);
                if let Some(seen) = seen {
                    self.see_resource(*seen, false);
                }
            }
            (Outcome::Written { .. }, None) => {
                let name = self.world.resources[place].name.to_string();
                let uid = self.world.resources[place].uid.clone();
                self.absorb(super::event::Event::ResourceGone { name, uid });
            }
            (outcome, flight) => {
                let permanent = matches!(outcome, Outcome::Refused { permanent: true, .. });
                rest(&mut record.outbox.failures, &mut record.outbox.not_before, permanent, self.world.holder_clock.read(self.now));
                if flight.is_none() {
                    record.idle_since = None;
                    self.watch_idleness(place);
                }
                match seen {
                    Some(seen) => self.reread_ledger(place, *seen),
                    None => self.undo_ledger(place),
                }
            }
        }
    }

    /// The object as it was read after a write that did not succeed: what was assumed beyond it is taken back.
    fn reread_ledger(&mut self, place: ResourceIx, seen: crate::api::Resource) {
        let before = self.world.resources[place].outbox.confirmed.clone();
        self.see_resource(seen, true);
        if let Some(record) = self.world.resources.get(place)
            && record.outbox.confirmed == before
        {
            self.undo_ledger(place);
        } else {
            self.ledger_confirmed(place);
        }
    }

    fn undo_ledger(&mut self, place: ResourceIx) {
        let record = &mut self.world.resources[place];
        record.ledger = record.outbox.confirmed.clone();
        record.outbox.want = None;
        self.occupants_changed(place);
        self.ledger_confirmed(place);
        self.touch_around(place);
    }

    /// A ledger stands as known: its claims may go on, its neighbours may follow.
    fn ledger_confirmed(&mut self, place: ResourceIx) {
        let Some(record) = self.world.resources.get(place) else { return };
        let names: Vec<ClaimIx> = record.names.iter().filter_map(|uid| self.world.claim(uid)).collect();
        self.work.claims.extend(names);
        self.work.ledgers.insert(place);
        let under = self.world.under(place, super::world::UNDER);
        self.work.ledgers.extend(under.iter().copied());
        self.work.queues.extend(under);
    }

    fn wrote_claim(&mut self, place: ClaimIx, outcome: Outcome) {
        let record = &mut self.world.claims[place];
        let Some(flight) = record.outbox.flight.take() else { return };
        let seen = record.outbox.seen.take();
        self.work.writes.insert(Object::Claim(place));
        match (outcome, flight) {
            (Outcome::Written { resource_version }, Some(status)) => {
                record.outbox.version = resource_version;
                record.outbox.confirmed = status;
                record.outbox.failures = 0;
                record.outbox.not_before = i64::MIN;
                self.claim_confirmed(place);
                if let Some(seen) = seen
                    && version(seen.metadata.resource_version.as_deref().unwrap_or_default())
                        > version(&self.world.claims[place].outbox.version)
                {
                    self.see_claim(*seen, false);
                }
            }
            (Outcome::Written { .. }, None) => {
                let (namespace, name, uid) = (record.namespace.to_string(), record.name.to_string(), record.uid.to_string());
                self.absorb(super::event::Event::ClaimGone { namespace, name, uid });
            }
            (outcome, _) => {
                let permanent = matches!(outcome, Outcome::Refused { permanent: true, .. });
                rest(&mut record.outbox.failures, &mut record.outbox.not_before, permanent, self.world.holder_clock.read(self.now));
                self.reread_claim(place, seen.map(|seen| *seen));
            }
        }
    }

    /// The Claim as it was read after a write that did not succeed. What was decided about it is decided again.
    fn reread_claim(&mut self, place: ClaimIx, seen: Option<crate::api::Claim>) {
        let before = self.world.claims[place].outbox.confirmed.clone();
        if let Some(seen) = seen {
            self.see_claim(seen, true);
        }
        let Some(record) = self.world.claims.get(place) else { return };
        if record.outbox.confirmed == before {
            self.adopt(place);
        }
    }

    /// A Claim's status stands as decided.
    fn claim_confirmed(&mut self, place: ClaimIx) {
        let record = &self.world.claims[place];
        let phase = record.outbox.confirmed.phase;
        match record.stage {
            Stage::Committing(_) if phase.is_holding() => {
                self.set_stage(place, Stage::Live);
                self.start_clocks(place);
                self.work.claims.insert(place);
            }
            Stage::TakingBack if record.outbox.confirmed.attempt == record.status.attempt => {
                self.set_stage(place, Stage::Undecided);
                self.work.claims.insert(place);
            }
            Stage::Live => self.start_clocks(place),
            _ => {}
        }
        if phase != Phase::Queued && phase != Phase::Pending {
            self.note_grants(place);
        }
        self.touch_holdings(place);
        self.verdicts_due(place);
        self.schedule(place);
    }
}

fn rest(failures: &mut u32, not_before: &mut i64, permanent: bool, now: i64) {
    if permanent {
        *failures = (*failures + 1).min(10);
        *not_before = now + (500_i64 << *failures).min(REST);
    } else {
        *failures = 0;
        *not_before = i64::MIN;
    }
}

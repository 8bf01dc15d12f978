//! How a grant is made: shares into the ledgers, then the commit on the Claim, and the way back from a half-done one (M1).

use std::{collections::BTreeSet, sync::Arc};

use crate::api::{Grant, GrantState, Mode, Occupant, OccupantClaim, OccupantState, Phase, ResourceStatus};

use super::{
    action::Urgency,
    capacity,
    ledger::{Debt, debt},
    status::instant,
    step::Engine,
    weigh,
    world::{ClaimIx, ResourceIx, Share, Stage, UNDER},
};

/// How long a granted claim may take to be admitted when its Resource does not say. Seconds (L1).
const ADMISSION: i64 = 300;

impl Engine {
    /// Puts a claim's shares into the ledgers as decided; its commit follows when all of them are confirmed.
    pub(super) fn reserve(&mut self, claim: ClaimIx, mut shares: Vec<Share>) {
        self.leave(claim);
        let wholes: usize = shares
            .iter()
            .filter(|share| share.mode == Mode::Exclusive && !share.joins)
            .map(|share| self.world.under(share.resource, UNDER).len())
            .sum();
        let alone = shares.len() == 1 && wholes == 0;
        let requests = self.world.claims[claim].spec.clone();
        let ends_at = self.hard_end(claim, &shares);
        for share in &mut shares {
            let request = &requests.requests[share.request].name;
            if share.joins {
                self.join(claim, share, request);
                continue;
            }
            share.fence = self.next_fence(share.resource);
            let mut occupant = self.occupant(claim, share.mode, share.quantity, share.fence, request);
            occupant.state = if alone { OccupantState::Held } else { OccupantState::Reserved };
            occupant.expires_at = ends_at.map(instant);
            let fence = share.fence;
            let copy = occupant.clone();
            self.change_ledger(share.resource, Urgency::Decision, "reserve for a claim", |ledger| {
                ledger.last_fence = fence;
                ledger.occupants.push(occupant);
            });
            self.occupants_changed(share.resource);
            if share.mode == Mode::Exclusive {
                let name = self.world.resources[share.resource].name.to_string();
                for below in self.world.under(share.resource, UNDER) {
                    self.reserve_under(below, &copy, &name);
                }
            }
        }
        self.set_stage(claim, Stage::Reserving(shares));
    }

    fn join(&mut self, claim: ClaimIx, share: &Share, request: &str) {
        let named = self.named(claim, request);
        let fence = share.fence;
        self.change_ledger(share.resource, Urgency::Decision, "join a share of the same scope", |ledger| {
            for occupant in ledger.occupants.iter_mut().filter(|occupant| occupant.fence == fence) {
                occupant.claims.push(named.clone());
            }
        });
        self.occupants_changed(share.resource);
    }

    /// An occupancy of a claim, still without state.
    pub(super) fn occupant(&self, claim: ClaimIx, mode: Mode, quantity: i64, fence: i64, request: &str) -> Occupant {
        let record = &self.world.claims[claim];
        Occupant {
            fence,
            mode,
            quantity,
            claims: vec![self.named(claim, request)],
            scope_uid: self.scope_uid(claim, request),
            label: record.spec.label.clone(),
            claimant: record.spec.claimant.as_ref().map(|account| account.user.clone()),
            yield_policy: record.spec.yield_policy,
            granted_at: Some(instant(self.now.wall)),
            ..Default::default()
        }
    }

    /// A claim as ledgers name it.
    pub(super) fn named(&self, claim: ClaimIx, request: &str) -> OccupantClaim {
        let record = &self.world.claims[claim];
        OccupantClaim {
            namespace: record.namespace.to_string(),
            name: record.name.to_string(),
            uid: record.uid.to_string(),
            request: request.to_owned(),
            attempt: record.status.attempt,
        }
    }

    fn hard_end(&self, claim: ClaimIx, shares: &[Share]) -> Option<i64> {
        let own = self.world.claims[claim].spec.max_hold_seconds;
        let longest = shares.iter().filter_map(|share| weigh::longest_hold(&self.world, share.resource)).chain(own).min();
        longest.map(|seconds| self.now.wall + seconds * 1_000)
    }

    /// Commits a claim whose reservations are all confirmed.
    pub(super) fn advance(&mut self, claim: ClaimIx) {
        let Stage::Reserving(shares) = self.world.claims[claim].stage.clone() else { return };
        let assumed = shares.iter().all(|share| self.has_share(claim, share, |record| &record.ledger));
        if !assumed {
            self.withdraw(claim);
            return;
        }
        let confirmed = shares.iter().all(|share| self.has_share(claim, share, |record| &record.outbox.confirmed));
        if confirmed {
            self.commit(claim, &shares);
            self.set_stage(claim, Stage::Committing(shares));
        }
    }

    fn has_share(&self, claim: ClaimIx, share: &Share, ledger: impl Fn(&super::world::ResourceRecord) -> &Arc<ResourceStatus>) -> bool {
        let Some(record) = self.world.resources.get(share.resource) else { return false };
        let claims = &self.world.claims[claim];
        let (uid, attempt) = (&*claims.uid, claims.status.attempt);
        let names = |occupant: &Occupant| occupant.claims.iter().any(|named| named.uid == *uid && named.attempt == attempt);
        let found = ledger(record).occupants.iter().any(|occupant| occupant.fence == share.fence && names(occupant));
        if !found || share.mode == Mode::Shared || share.joins {
            return found;
        }
        let via = |occupant: &Occupant| {
            occupant.via.as_deref() == Some(&*record.name) && occupant.via_fence == Some(share.fence) && names(occupant)
        };
        self.world.under(share.resource, UNDER).into_iter().all(|below| ledger(&self.world.resources[below]).occupants.iter().any(via))
    }

    /// The one write that grants: guarded by the Claim's uid and resourceVersion.
    fn commit(&mut self, claim: ClaimIx, shares: &[Share]) {
        let now = instant(self.now.wall);
        let grants: Vec<Grant> = shares.iter().map(|share| self.grant(claim, share)).collect();
        let active = grants.iter().all(|grant| grant.admitted_at.is_some());
        let first = self.world.resources[shares[0].resource].ledger.occupants.iter().find(|occupant| occupant.fence == shares[0].fence);
        let joins = shares.iter().any(|share| share.joins);
        let ends_at = if joins { self.hard_end(claim, shares).map(instant) } else { first.and_then(|occupant| occupant.expires_at) };
        let deadline =
            shares.iter().map(|share| self.world.resources[share.resource].spec.admission_deadline_seconds.unwrap_or(ADMISSION)).min();
        let drained = self.world.claims[claim].spec.drain.is_some();
        let nodes: BTreeSet<&str> = grants.iter().filter_map(|grant| grant.node.as_deref()).collect();
        let nodes = nodes.into_iter().collect::<Vec<_>>().join(",");
        let admission_deadline = (!active).then(|| instant(self.now.wall + deadline.unwrap_or(ADMISSION) * 1_000));
        self.change_claim(claim, Urgency::Decision, "grant", |status| {
            status.phase = if active { Phase::Active } else { Phase::Granted };
            status.reason = None;
            status.message = None;
            status.position = None;
            status.blocking = Vec::new();
            status.wait_deadline = None;
            status.resources = Some(grants.iter().map(|grant| grant.resource.as_str()).collect::<Vec<_>>().join(","));
            status.nodes = (!nodes.is_empty()).then_some(nodes);
            status.granted_at = Some(now);
            status.admitted_at = active.then_some(now);
            status.admission_deadline = admission_deadline;
            status.expires_at = ends_at;
            status.drained = drained;
            status.grants = grants;
        });
    }

    fn grant(&self, claim: ClaimIx, share: &Share) -> Grant {
        let record = &self.world.resources[share.resource];
        let effective = record.ledger.effective.clone().unwrap_or_default();
        let admitted = capacity::needs_no_receipt(&effective) || (share.joins && self.is_admitted(share));
        Grant {
            request: self.world.claims[claim].spec.requests[share.request].name.clone(),
            resource: record.name.to_string(),
            key: Some(record.spec.key.clone().unwrap_or_else(|| record.name.to_string())),
            fence: share.fence,
            node: effective.node,
            device: effective.identity.key,
            mode: share.mode,
            quantity: share.quantity,
            state: GrantState::Held,
            admitted_at: admitted.then(|| instant(self.now.wall)),
            ..Default::default()
        }
    }

    /// M5: whether the share that is joined was admitted already.
    fn is_admitted(&self, share: &Share) -> bool {
        let record = &self.world.resources[share.resource];
        let occupant = record.ledger.occupants.iter().find(|occupant| occupant.fence == share.fence);
        occupant.into_iter().flat_map(|occupant| &occupant.claims).filter_map(|named| self.world.claim(&named.uid)).any(|other| {
            self.world.claims[other]
                .outbox
                .confirmed
                .grants
                .iter()
                .any(|grant| grant.fence == share.fence && *grant.resource == *record.name && grant.admitted_at.is_some())
        })
    }

    /// The reservations a claim has in the ledgers, if they are all it asks for; what a leader before this one left.
    pub(super) fn found_shares(&self, claim: ClaimIx) -> Option<Vec<Share>> {
        let record = &self.world.claims[claim];
        let mut shares = Vec::new();
        for &resource in self.world.holdings.get(&record.uid)? {
            for occupant in self.world.resources[resource].ledger.occupants.iter().filter(|occupant| occupant.via.is_none()) {
                for named in occupant.claims.iter().filter(|named| *named.uid == *record.uid && named.attempt == record.status.attempt) {
                    let request = record.spec.requests.iter().position(|request| request.name == named.request)?;
                    let joins = occupant.claims[0].uid != *record.uid;
                    shares.push(Share {
                        request,
                        resource,
                        mode: occupant.mode,
                        quantity: occupant.quantity,
                        fence: occupant.fence,
                        joins,
                    });
                }
            }
        }
        let complete = record.spec.requests.iter().enumerate().all(|(place, request)| {
            let wanted = if request.selector.is_some() { super::several::count(request) } else { 1 };
            shares.iter().filter(|share| share.request == place).count() == wanted
        });
        shares.sort_by_key(|share| (share.request, share.resource));
        (complete && shares.iter().all(|share| self.has_share(claim, share, |record| &record.ledger))).then_some(shares)
    }

    /// A claim's reservations can't be completed. What was never sent is taken out; for the rest a higher attempt is written on
    /// the Claim first, so that no earlier commit can use them.
    pub(super) fn withdraw(&mut self, claim: ClaimIx) {
        let uid = self.world.claims[claim].uid.clone();
        let places: Vec<ResourceIx> = self.world.holdings.get(&uid).into_iter().flatten().copied().collect();
        let mut sent = false;
        for resource in places {
            let record = &self.world.resources[resource];
            let names =
                |ledger: &ResourceStatus| ledger.occupants.iter().any(|occupant| occupant.claims.iter().any(|named| *named.uid == *uid));
            let in_flight = record.outbox.flight.as_ref().and_then(|flight| flight.as_ref());
            if names(&record.outbox.confirmed) || in_flight.is_some_and(|ledger| names(ledger)) {
                sent = true;
            } else {
                self.take_out(resource, &uid);
            }
        }
        if sent {
            self.change_claim(claim, Urgency::Decision, "make its reservations void", |status| status.attempt += 1);
            self.set_stage(claim, Stage::TakingBack);
        } else {
            self.set_stage(claim, Stage::Undecided);
            self.work.claims.insert(claim);
        }
    }

    /// Takes a claim out of a ledger as decided.
    fn take_out(&mut self, resource: ResourceIx, uid: &str) {
        self.change_ledger(resource, Urgency::Decision, "a reservation is void", |ledger| {
            for occupant in &mut ledger.occupants {
                occupant
                    .claims
                    .retain(|named| named.uid != uid || !matches!(occupant.state, OccupantState::Reserved | OccupantState::Held));
            }
            ledger.occupants.retain(|occupant| !occupant.claims.is_empty());
        });
        self.occupants_changed(resource);
    }

    /// What a deleted claim leaves: nothing if it was seen never to have been Active, else a look is owed (L4, L8).
    pub(super) fn end_of_deleted(&mut self, claim: ClaimIx, seen: bool) {
        let record = &self.world.claims[claim];
        let uid = record.uid.clone();
        let status = record.outbox.confirmed.clone();
        let places: Vec<ResourceIx> = self.world.holdings.get(&uid).into_iter().flatten().copied().collect();
        for resource in places {
            let name = self.world.resources[resource].name.clone();
            let grant = status.grants.iter().find(|grant| *grant.resource == *name);
            let owed = match grant {
                Some(grant) if status.phase.is_final() => debt(&status, grant, false),
                _ if seen && status.admitted_at.is_none() => Debt::None,
                _ => Debt::Reconcile,
            };
            if owed == Debt::None {
                self.take_out(resource, &uid);
            }
            self.work.ledgers.insert(resource);
        }
    }
}

//! Facts become knowledge. What they mean for decisions is worked out afterwards.

use std::sync::Arc;

use crate::api::{Claim, Phase, Resource};

use super::{
    capacity,
    event::{Event, ScopeKind, ScopeTarget},
    step::Engine,

    world::{ClaimIx, ClaimRecord, Ghost, NamespaceRecord, Object, ResourceIx, ResourceRecord, ScopeFact, Stage, version},
};

/// How long the name of a Resource that was deleted while occupied is granted to nobody. Milliseconds.
const HAUNTED: i64 = 180_000;
/// How many deleted Resources are remembered.
const GHOSTS: usize = 10_000;

impl Engine {
    /// Takes one fact in.
    pub(super) fn absorb(&mut self, event: Event) {
        match event {
            Event::Resource(resource) => self.see_resource(*resource, false),
            Event::ResourceGone { name, uid } => self.lose_resource(&name, &uid),
            Event::Class(class) => {
                let name = class.metadata.name.unwrap_or_default();
                self.world.classes.insert(name.clone(), class.spec);
                self.class_changed(&name);
            }
            Event::ClassGone { name } => {
                self.world.classes.remove(&name);
                self.class_changed(&name);
            }
            Event::Claim(claim) => self.see_claim(*claim, false),
            Event::ClaimGone { namespace, name, uid } => self.lose_claim(&namespace, &name, &uid),
            Event::Receipt(receipt) => self.see_receipt(&receipt),
            Event::ReceiptGone { name } => {
                self.world.receipts.remove(&name);
            }
            Event::Namespace { name, uid, labels, frozen, paused } => {
                if name == self.settings.operator_namespace && self.world.paused != paused {
                    self.world.paused = paused;
                    self.reconsider_all();
                }
                self.see_namespace(name, NamespaceRecord { uid, labels, frozen });
            }
            Event::NamespaceGone { name } => {
                self.world.namespaces.remove(&name);
                self.scope_changed(&namespace_target(&name), None);
            }
            Event::Heartbeat { claim, namespace, holder, renewed } => self.see_heartbeat(&claim, &namespace, &holder, renewed),
            Event::Scope { target, uid, finished } => self.scope_changed(&target, Some(ScopeFact { uid, finished })),
            Event::ScopeGone { target } => self.scope_changed(&target, None),
            Event::ScopeKindFilled { kind } => self.kind_readable(&kind, true),
            Event::ScopeKindUnreadable { kind, .. } => self.kind_readable(&kind, false),
            Event::Filled => self.fill(),
            Event::ReadingLost => self.world.holder_clock.stop(self.now),
            Event::ReadingBack => self.world.holder_clock.go_on(self.now),
            Event::ClockSkew { milliseconds } => {
                let before = self.is_skewed();
                self.world.skew = milliseconds;
                if before != self.is_skewed() {
                    self.reconsider_all();
                }
            }
            Event::Wrote { target, outcome } => self.wrote(target, outcome),
        }
    }

    fn fill(&mut self) {
        if std::mem::replace(&mut self.world.filled, true) {
            return;
        }
        let kind = ScopeKind { api_version: "v1".to_owned(), kind: "Namespace".to_owned() };
        self.world.kinds.entry(kind).or_default().readable = true;
        let resources: Vec<ResourceIx> = self.world.resources.iter().map(|(place, _)| place).collect();
        self.work.ledgers.extend(resources.iter().copied());
        self.work.queues.extend(resources);
        self.reconsider_all();
    }

    /// Every claim that is not decided is weighed anew, and every Resource's queue is looked at.
    fn reconsider_all(&mut self) {
        let claims: Vec<ClaimIx> = self.world.claims.iter().filter(|(_, record)| record.stage != Stage::Final).map(|(place, _)| place).collect();
        self.work.claims.extend(claims);
        let waited: Vec<ResourceIx> =
            self.world.resources.iter().filter(|(_, record)| !record.queue.is_empty()).map(|(place, _)| place).collect();
        self.work.queues.extend(waited);
    }

    fn see_namespace(&mut self, name: String, record: NamespaceRecord) {
        let before = self.world.namespaces.insert(name.clone(), record.clone());
        if before.as_ref() != Some(&record) {
            if let Some(claims) = self.world.undecided.get(name.as_str()) {
                self.work.claims.extend(claims.iter().copied());
            }
            if before.is_none_or(|before| before.uid != record.uid) {
                self.scope_changed(&namespace_target(&name), Some(ScopeFact { uid: record.uid, finished: false }));
            }
        }
    }

    fn class_changed(&mut self, name: &str) {
        let resources: Vec<ResourceIx> = self.world.by_class.get(name).into_iter().flatten().copied().collect();
        self.work.ledgers.extend(resources.iter().copied());
        self.work.queues.extend(resources);
    }

    /// A Resource as somebody read it; `read_back` when it was read because a write did not succeed, so that it counts even
    /// if its version looks older (a restored store).
    pub(super) fn see_resource(&mut self, object: Resource, read_back: bool) {
        let name: Arc<str> = Arc::from(object.metadata.name.as_deref().unwrap_or_default());
        let uid = object.metadata.uid.clone().unwrap_or_default();
        if let Some(place) = self.world.resource(&name)
            && self.world.resources[place].uid != uid
        {
            self.lose_resource(&name, "");
        }
        let place = match self.world.resource(&name) {
            Some(place) => {
                let record = &mut self.world.resources[place];
                if record.outbox.flight.is_some() && !read_back {
                    record.outbox.seen = Some(Box::new(object));
                    return;
                }
                let seen = object.metadata.resource_version.clone().unwrap_or_default();
                let stale = version(&seen) < version(&record.outbox.version) && !read_back;
                if stale || (seen == record.outbox.version && !read_back) {
                    return;
                }
                place
            }
            None => self.add_resource(&name, uid, &object),
        };
        self.refresh_resource(place, object);
    }

    fn add_resource(&mut self, name: &Arc<str>, uid: String, object: &Resource) -> ResourceIx {
        let created = object.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_millisecond());
        let holders = self.world.orphans.remove(&**name).unwrap_or_default();
        let record = ResourceRecord { name: name.clone(), uid, created, holders, ..Default::default() };
        let place = self.world.resources.insert(record);
        self.world.resource_by_name.insert(name.clone(), place);
        place
    }

    fn refresh_resource(&mut self, place: ResourceIx, object: Resource) {
        self.unindex(place);
        let record = &mut self.world.resources[place];
        record.outbox.version = object.metadata.resource_version.unwrap_or_default();
        record.labels = object.metadata.labels.unwrap_or_default();
        record.spec = Arc::new(object.spec);
        let ledger = object.status.unwrap_or_default();
        let foreign = ledger != *record.outbox.confirmed;
        if foreign || record.outbox.version.is_empty() {
            record.outbox.confirmed = Arc::new(ledger);
            record.ledger = record.outbox.confirmed.clone();
            record.outbox.want = None;
        }
        record.invalid = capacity::broken(&record.ledger);
        let (name, ledger) = (record.name.clone(), record.ledger.clone());
        self.world.highest_term = self.world.highest_term.max(ledger.term);
        self.index(place);
        if foreign {
            self.reindex_holdings(place);
        }
        self.relist(place);
        self.invention_came(&name);
        self.touch_around(place);
        let waiting: Vec<ClaimIx> = self.world.resources[place].queue.iter().map(|(_, standing)| standing.claim).collect();
        self.work.claims.extend(waiting);
        let holding: Vec<ClaimIx> = self.world.resources[place].holders.iter().copied().collect();
        self.work.claims.extend(holding);
        for (order, claim) in self.aside_of(place) {
            let _ = order;
            self.work.claims.insert(claim);
        }
    }

    fn aside_of(&self, place: ResourceIx) -> Vec<(super::order::Order, ClaimIx)> {
        let name = &self.world.resources[place].name;
        let groups = self.world.groups.iter().filter(|group| group.members.contains_key(name));
        let waiters = groups.flat_map(|group| group.waiters.iter());
        waiters.filter(|(_, claim)| self.world.claims[**claim].aside).map(|(order, claim)| (order.clone(), *claim)).collect()
    }

    /// This Resource, those around it in the tree and those of its key are looked at again.
    pub(super) fn touch_around(&mut self, place: ResourceIx) {
        self.work.ledgers.insert(place);
        self.work.queues.insert(place);
        let record = &self.world.resources[place];
        let parent = record.spec.parent.as_deref().and_then(|parent| self.world.resource(parent));
        let below: Vec<ResourceIx> = self.world.children.get(&*record.name).into_iter().flat_map(|below| below.values().copied()).collect();
        let key = record.spec.key.as_deref().unwrap_or(&record.name);
        let same: Vec<ResourceIx> =
            self.world.declared.get(key).into_iter().flatten().map(|(_, _, same)| *same).collect();
        for other in parent.into_iter().chain(below).chain(same) {
            self.work.ledgers.insert(other);
            self.work.queues.insert(other);
        }
    }

    fn index(&mut self, place: ResourceIx) {
        let record = &self.world.resources[place];
        let key = record.spec.key.clone().unwrap_or_else(|| record.name.to_string());
        match &record.spec.invented {
            None => {
                self.world.declared.entry(key).or_default().insert((record.created, record.uid.clone(), place));
            }
            Some(invented) => {
                let namespace = invented.namespace.clone().unwrap_or_default();
                if self.world.invented.entry(key).or_default().insert(namespace.clone(), place).is_none() {
                    *self.world.invented_count.entry(namespace).or_default() += 1;
                }
            }
        }
        if let Some(class) = &record.spec.class {
            self.world.by_class.entry(class.clone()).or_default().insert(place);
        }
    }

    fn unindex(&mut self, place: ResourceIx) {
        let record = &self.world.resources[place];
        let key = record.spec.key.clone().unwrap_or_else(|| record.name.to_string());
        if let Some(declared) = self.world.declared.get_mut(&key) {
            declared.remove(&(record.created, record.uid.clone(), place));
            if declared.is_empty() {
                self.world.declared.remove(&key);
            }
        }
        if let Some(invented) = &record.spec.invented
            && let Some(places) = self.world.invented.get_mut(&key)
        {
            let namespace = invented.namespace.clone().unwrap_or_default();
            if places.get(&namespace) == Some(&place) {
                places.remove(&namespace);
                if let Some(count) = self.world.invented_count.get_mut(&namespace) {
                    *count = count.saturating_sub(1);
                }
            }
            if places.is_empty() {
                self.world.invented.remove(&key);
            }
        }
        if let Some(class) = &record.spec.class
            && let Some(places) = self.world.by_class.get_mut(class)
        {
            places.remove(&place);
        }
    }

    fn lose_resource(&mut self, name: &str, uid: &str) {
        let Some(place) = self.world.resource(name) else { return };
        if !uid.is_empty() && self.world.resources[place].uid != uid {
            return;
        }
        self.touch_around(place);
        self.unindex(place);
        self.work.ledgers.remove(&place);
        self.work.queues.remove(&place);
        self.work.writes.remove(&Object::Resource(place));
        self.world.steady.set(Object::Resource(place), None);
        self.world.wall.set(Object::Resource(place), None);
        self.world.lazy.set(place, None);
        let waiting: Vec<ClaimIx> = self.world.resources[place].queue.iter().map(|(_, standing)| standing.claim).collect();
        for claim in waiting {
            self.leave(claim);
            self.world.claims[claim].stage = Stage::Undecided;
            self.work.claims.insert(claim);
        }
        for group in self.world.groups.iter_mut() {
            group.members.remove(name);
            group.list(place, &Arc::from(name), None);
        }
        self.index_child(place, None);
        let Some(record) = self.world.resources.remove(place) else { return };
        self.world.resource_by_name.remove(name);
        for claim in record.awaited.iter().chain(&record.holders) {
            self.work.claims.insert(*claim);
        }
        for uid in &record.names {
            if let Some(holdings) = self.world.holdings.get_mut(uid) {
                holdings.remove(&place);
            }
            if let Some(claim) = self.world.claim(uid)
                && reserves(&self.world.claims[claim], place)
            {
                self.withdraw(claim);
            }
        }
        if !record.holders.is_empty() {
            self.world.orphans.insert(name.to_owned(), record.holders);
        }
        if (uid.is_empty() || !record.outbox.confirmed.occupants.is_empty()) && self.world.ghosts.len() < GHOSTS {
            let ghost = Ghost { ledger: record.outbox.confirmed, until: self.now.wall + HAUNTED };
            self.world.ghosts.insert(name.to_owned(), ghost);
        }
    }

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
                let created = object.metadata.creation_timestamp.as_ref().map_or(0, |time| time.0.as_millisecond());
                let record = ClaimRecord { namespace: namespace.clone(), name: name.clone(), uid: uid.clone(), created, ..Default::default() };
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

    fn lose_claim(&mut self, namespace: &str, name: &str, uid: &str) {
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

    fn see_heartbeat(&mut self, uid: &str, namespace: &str, holder: &str, renewed: String) {
        if holder != uid {
            return;
        }
        let now = self.holder_now();
        let Some(claim) = self.world.claim(uid) else {
            return;
        };
        let record = &mut self.world.claims[claim];
        if *record.namespace != *namespace || record.renewed.as_ref() == Some(&renewed) {
            return;
        }
        record.renewed = Some(renewed);
        if record.status.phase == Phase::Active {
            self.world.beats.renew(claim, now);
        }
    }

    /// True when this machine's clock is too far off to grant anything (L6).
    pub(super) fn is_skewed(&self) -> bool {
        self.world.skew.abs() > 60_000
    }

    /// A Resource with this much taken from its neighbours is looked at; used when an occupant changed.
    pub(super) fn occupants_changed(&mut self, resource: ResourceIx) {
        self.reindex_holdings(resource);
        self.relist(resource);
        self.watch_idleness(resource);
        self.work.queues.insert(resource);
        let record = &self.world.resources[resource];
        if !record.ledger.children.is_empty() {
            let under = self.world.under(resource, super::world::UNDER);
            self.work.ledgers.extend(under.iter().copied());
            self.work.queues.extend(under);
        }
        if record.spec.invented.is_some() {
            let key = record.spec.key.clone().unwrap_or_default();
            let declared: Vec<ResourceIx> = self.world.declared.get(&key).into_iter().flatten().map(|(_, _, place)| *place).collect();
            self.work.queues.extend(declared);
        }
    }
}

fn reserves(claim: &ClaimRecord, place: ResourceIx) -> bool {
    matches!(&claim.stage, Stage::Reserving(shares) if shares.iter().any(|share| share.resource == place))
}

/// A Namespace as a scope target.
pub(super) fn namespace_target(name: &str) -> ScopeTarget {
    ScopeTarget { kind: ScopeKind { api_version: "v1".to_owned(), kind: "Namespace".to_owned() }, namespace: String::new(), name: name.to_owned() }
}

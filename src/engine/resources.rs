//! Resources as they are seen, and the indexes that lead to them.

use std::sync::Arc;

use crate::api::Resource;

use super::{
    capacity,
    outbox::version,
    step::Engine,
    world::{ClaimIx, ClaimRecord, Ghost, Object, ResourceIx, ResourceRecord, Stage},
};

/// How long the name of a Resource that was deleted while occupied is granted to nobody. Milliseconds.
const HAUNTED: i64 = 180_000;
/// How many deleted Resources are remembered.
const GHOSTS: usize = 10_000;

impl Engine {
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
        record.invalid = capacity::broken(&record.outbox.confirmed);
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
        let same: Vec<ResourceIx> = self.world.declared.get(key).into_iter().flatten().map(|(_, _, same)| *same).collect();
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

    pub(super) fn lose_resource(&mut self, name: &str, uid: &str) {
        self.world.departed.note(uid);
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
            group.unlist(place);
        }
        self.index_child(place, None);
        let Some(mut record) = self.world.resources.remove(place) else { return };
        self.world.departed.note(&record.uid);
        if let Some(last) = record.outbox.seen.take() {
            record.outbox.confirmed = Arc::new(last.status.unwrap_or_default());
        }
        self.world.resource_by_name.remove(name);
        for claim in record.awaited.iter().chain(&record.holders) {
            self.work.claims.insert(*claim);
        }
        for uid in &record.names {
            if let Some(holdings) = self.world.holdings.get_mut(uid) {
                holdings.remove(&place);
                if holdings.is_empty() {
                    self.world.holdings.remove(uid);
                    self.world.absent.remove(uid);
                }
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

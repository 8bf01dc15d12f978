//! Facts become knowledge. What they mean for decisions is worked out afterwards.

use crate::api::Phase;

use super::{
    event::{Event, ScopeKind, ScopeTarget},
    step::Engine,
    world::{ClaimIx, NamespaceRecord, ResourceIx, ScopeFact, Stage},
};

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
            Event::Looked { claim, found } => self.looked(&claim, found),
            Event::Found { uid, finding } => self.found(&uid, finding),
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
            Event::Wrote { number, target, outcome } => self.wrote(number, target, outcome),
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
        let claims: Vec<ClaimIx> =
            self.world.claims.iter().filter(|(_, record)| record.stage != Stage::Final).map(|(place, _)| place).collect();
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
}

/// A Namespace as a scope target.
pub(super) fn namespace_target(name: &str) -> ScopeTarget {
    ScopeTarget {
        kind: ScopeKind { api_version: "v1".to_owned(), kind: "Namespace".to_owned() },
        namespace: String::new(),
        name: name.to_owned(),
    }
}

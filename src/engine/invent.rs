//! Keys that nothing declares (M3).

use std::{collections::BTreeSet, fmt::Write as _};

use sha2::{Digest, Sha256};

use crate::api::{Invented, KeyScope, Reason, Request, ResourceSpec};

use super::{
    action::{Action, Body, Urgency, Write},
    event::Target,
    look::Sought,
    several::Resolved,
    step::Engine,
    world::{ClaimIx, ResourceIx},
};

/// How many keys a namespace may have invented at a time (M3).
pub const MOST: usize = 1_000;
/// How long an invented Resource stays idle before it goes. Milliseconds (M3).
pub const IDLE: i64 = 600_000;
/// How often making one is tried before its claims are denied.
const TRIES: u32 = 5;
/// How long it rests after that. Milliseconds.
const REST: i64 = 60_000;

/// A Resource that is being invented (M3).
#[derive(Clone, Debug, Default)]
pub struct Invention {
    /// What is to be made.
    pub spec: ResourceSpec,
    /// Who waits for it.
    pub claims: BTreeSet<ClaimIx>,
    /// After too many tries: no other before this. Milliseconds of the holders' clock.
    pub not_before: i64,
    /// How often it was refused.
    pub failures: u32,
    /// The write was sent.
    pub sent: bool,
    /// Its number.
    pub number: u64,
    /// What the API server said last.
    pub message: String,
}

/// The name of the Resource that is invented for a key; `namespace` is empty when all namespaces share it.
pub fn name(namespace: &str, key: &str) -> String {
    let mut text = String::from("invented-");
    for byte in Sha256::digest(format!("{namespace}\n{key}").as_bytes()).iter().take(20) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl Engine {
    /// Where a request by name or key leads.
    pub(super) fn resolve(&mut self, claim: ClaimIx, request: &Request) -> Resolved {
        if let Some(name) = &request.resource {
            return self.world.resource(name).map_or(Resolved::Missing(Reason::NotFound), Resolved::Found);
        }
        let Some(key) = &request.key else { return Resolved::Missing(Reason::NotFound) };
        if let Some((_, _, resource)) = self.world.declared.get(key).and_then(|declared| declared.first()) {
            return Resolved::Found(*resource);
        }
        let namespace = self.world.claims[claim].namespace.clone();
        let invented = self.world.invented.get(key);
        let found = invented.and_then(|invented| invented.get(&*namespace).or_else(|| invented.get("")).copied());
        if let Some(resource) = found {
            let record = &mut self.world.resources[resource];
            if record.outbox.flight == Some(None) {
                record.awaited.insert(claim);
                return Resolved::Awaited;
            }
            return Resolved::Found(resource);
        }
        self.invent(claim, &namespace, key)
    }

    fn invent(&mut self, claim: ClaimIx, namespace: &str, key: &str) -> Resolved {
        let fitting =
            self.world.classes.iter().filter(|(_, class)| class.on_demand && key.starts_with(class.prefix.as_deref().unwrap_or("")));
        let Some((class_name, class)) = fitting.max_by_key(|(_, class)| class.prefix.as_deref().unwrap_or("").len()) else {
            return Resolved::Missing(Reason::NotFound);
        };
        let now = self.holder_now();
        let owner = if class.key_scope == KeyScope::Cluster { "" } else { namespace };
        let made = name(owner, key);
        let spec = ResourceSpec {
            key: Some(key.to_owned()),
            class: Some(class_name.clone()),
            invented: Some(Invented { namespace: (!owner.is_empty()).then(|| owner.to_owned()) }),
            ..Default::default()
        };
        if !self.world.inventing.contains_key(&made) && self.world.invented_count.get(owner).copied().unwrap_or(0) >= MOST {
            return Resolved::Missing(Reason::TooManyInvented);
        }
        if !self.world.inventing.contains_key(&made) && self.look(claim, vec![Sought::Key(key.to_owned())]) {
            return Resolved::Awaited;
        }
        let invention = self.world.inventing.entry(made.clone()).or_insert_with(|| Invention { spec, ..Default::default() });
        if invention.failures >= TRIES {
            if now < invention.not_before {
                return Resolved::Missing(Reason::NotFound);
            }
            invention.failures = 0;
        }
        invention.claims.insert(claim);
        if !invention.sent {
            invention.sent = true;
            self.last_write += 1;
            invention.number = self.last_write;
            let body = Body::Invent(Box::new(invention.spec.clone()));
            self.work.actions.push(Action::Write(Write {
                number: self.last_write,
                target: Target::Resource(made),
                uid: String::new(),
                resource_version: String::new(),
                body,
                urgency: Urgency::Decision,
                cause: "invent a Resource for a key",
            }));
        }
        Resolved::Awaited
    }

    /// A Resource that was being made has come.
    pub(super) fn invention_came(&mut self, name: &str) {
        if let Some(invention) = self.world.inventing.remove(name) {
            self.work.claims.extend(invention.claims);
        }
    }

    /// Making a Resource was refused, or nobody knows. After some tries its claims are denied.
    pub(super) fn invention_failed(&mut self, name: &str, message: &str) {
        let now = self.holder_now();
        let Some(invention) = self.world.inventing.get_mut(name) else { return };
        invention.sent = false;
        invention.failures += 1;
        invention.message = message.to_owned();
        let claims = std::mem::take(&mut invention.claims);
        if invention.failures >= TRIES {
            invention.not_before = now + REST;
            self.work.claims.extend(claims);
            return;
        }
        let wait = 500 << invention.failures;
        let at = now + wait;
        for claim in claims {
            self.world.steady.set(super::world::Object::Claim(claim), Some(at));
        }
    }

    /// Starts or stops the time after which an invented Resource goes.
    pub(super) fn watch_idleness(&mut self, resource: ResourceIx) {
        let now = self.holder_now();
        let record = &mut self.world.resources[resource];
        if record.spec.invented.is_none() {
            return;
        }
        let idle = record.ledger.occupants.is_empty() && record.queue.is_empty();
        if idle && record.idle_since.is_none() {
            record.idle_since = Some(now);
            self.schedule_resource(resource);
        } else if !idle && record.idle_since.is_some() {
            record.idle_since = None;
            self.schedule_resource(resource);
        }
    }

    /// True when an invented Resource has been idle for long enough.
    pub(super) fn is_done_with(&self, resource: ResourceIx) -> bool {
        let record = &self.world.resources[resource];
        record.idle_since.is_some_and(|since| since + IDLE <= self.holder_now())
    }
}

//! Objects in memory, with the guards of a real API server: a write names the version it was decided on.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::{
    api::{Claim, ClaimReference, ClaimSpec, Receipt, ReceiptSpec, Resource, ResourceSpec},
    engine::{
        action::{Body, Write},
        capacity,
        event::{Event, Finding, Outcome, Target},
        look::Sought,
        selection,
    },
};

/// All objects, by name.
#[derive(Debug, Default)]
pub struct Store {
    /// Resources.
    pub resources: BTreeMap<String, Resource>,
    /// Claims, by namespace and name.
    pub claims: HashMap<(String, String), Claim>,
    /// Receipts.
    pub receipts: BTreeMap<String, Receipt>,
    version: u64,
    uids: u64,
    /// How many writes took effect.
    pub written: u64,
}

impl Store {
    fn meta(&mut self, namespace: Option<&str>, name: &str, wall: i64) -> ObjectMeta {
        self.uids += 1;
        ObjectMeta {
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            uid: Some(format!("uid-{:08}", self.uids)),
            resource_version: Some(self.next_version()),
            creation_timestamp: Some(Time(Timestamp::from_millisecond(wall / 1_000 * 1_000).unwrap_or_default())),
            generation: Some(1),
            ..Default::default()
        }
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Makes a Resource; `None` if the name is taken.
    pub fn add_resource(&mut self, name: &str, labels: &[(&str, &str)], spec: ResourceSpec, wall: i64) -> Option<Event> {
        if self.resources.contains_key(name) {
            return None;
        }
        let mut metadata = self.meta(None, name, wall);
        let labels: BTreeMap<String, String> = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        metadata.labels = (!labels.is_empty()).then_some(labels);
        let resource = Resource { metadata, spec, status: None };
        self.resources.insert(name.to_owned(), resource.clone());
        Some(Event::Resource(Box::new(resource)))
    }

    /// Changes a Resource's spec.
    pub fn change_resource(&mut self, name: &str, change: impl FnOnce(&mut ResourceSpec)) -> Option<Event> {
        let version = self.next_version();
        let resource = self.resources.get_mut(name)?;
        change(&mut resource.spec);
        resource.metadata.resource_version = Some(version);
        Some(Event::Resource(Box::new(resource.clone())))
    }

    /// Deletes a Resource without asking whether it is occupied. Its last state comes first, as from a watch.
    pub fn remove_resource(&mut self, name: &str) -> Vec<Event> {
        let Some(resource) = self.resources.remove(name) else { return Vec::new() };
        let uid = resource.metadata.uid.clone().unwrap_or_default();
        vec![Event::Resource(Box::new(resource)), Event::ResourceGone { name: name.to_owned(), uid }]
    }

    /// Makes a Claim; `None` if the name is taken.
    pub fn add_claim(&mut self, namespace: &str, name: &str, spec: ClaimSpec, wall: i64) -> Option<Event> {
        let key = (namespace.to_owned(), name.to_owned());
        if self.claims.contains_key(&key) {
            return None;
        }
        let claim = Claim { metadata: self.meta(Some(namespace), name, wall), spec, status: None };
        self.claims.insert(key, claim.clone());
        Some(Event::Claim(Box::new(claim)))
    }

    /// Releases a Claim, as its holder would.
    pub fn release(&mut self, namespace: &str, name: &str) -> Option<Event> {
        let version = self.next_version();
        let claim = self.claims.get_mut(&(namespace.to_owned(), name.to_owned()))?;
        claim.spec.release.get_or_insert_default();
        claim.metadata.resource_version = Some(version);
        Some(Event::Claim(Box::new(claim.clone())))
    }

    /// Deletes a Claim. Its last state comes first, as from a watch.
    pub fn remove_claim(&mut self, namespace: &str, name: &str) -> Vec<Event> {
        let Some(claim) = self.claims.remove(&(namespace.to_owned(), name.to_owned())) else { return Vec::new() };
        let uid = claim.metadata.uid.clone().unwrap_or_default();
        let gone = Event::ClaimGone { namespace: namespace.to_owned(), name: name.to_owned(), uid };
        vec![Event::Claim(Box::new(claim)), gone]
    }

    /// Makes a Receipt.
    pub fn add_receipt(&mut self, name: &str, spec: ReceiptSpec, wall: i64) -> Event {
        let receipt = Receipt { metadata: self.meta(None, name, wall), spec, status: None };
        self.receipts.insert(name.to_owned(), receipt.clone());
        Event::Receipt(Box::new(receipt))
    }

    /// Everything as a fresh list would report it, then `Filled`.
    pub fn list(&self) -> Vec<Event> {
        let mut events: Vec<Event> = self.resources.values().map(|resource| Event::Resource(Box::new(resource.clone()))).collect();
        let mut claims: Vec<&Claim> = self.claims.values().collect();
        claims.sort_by_key(|claim| (claim.metadata.namespace.clone(), claim.metadata.name.clone()));
        events.extend(claims.into_iter().map(|claim| Event::Claim(Box::new(claim.clone()))));
        events.extend(self.receipts.values().map(|receipt| Event::Receipt(Box::new(receipt.clone()))));
        events.push(Event::Filled);
        events
    }

    /// Carries out one write at `wall` if its guards hold. The events say what its writer would be told, in order.
    pub fn write(&mut self, write: &Write, wall: i64) -> Vec<Event> {
        match self.take(write, wall) {
            Ok(mut told) => {
                self.written += 1;
                told.push(Event::Wrote {
                    number: write.number,
                    target: write.target.clone(),
                    outcome: Outcome::Written { resource_version: self.version.to_string() },
                });
                told
            }
            Err(message) => {
                let mut told = self.read(&write.target);
                told.push(Event::Wrote {
                    number: write.number,
                    target: write.target.clone(),
                    outcome: Outcome::Refused { message, permanent: false },
                });
                told
            }
        }
    }

    /// The object as a read of the store shows it.
    pub fn read(&self, target: &Target) -> Vec<Event> {
        vec![match target {
            Target::Resource(name) => match self.resources.get(name) {
                Some(resource) => Event::Resource(Box::new(resource.clone())),
                None => Event::ResourceGone { name: name.clone(), uid: String::new() },
            },
            Target::Claim(namespace, name) => match self.claims.get(&(namespace.clone(), name.clone())) {
                Some(claim) => Event::Claim(Box::new(claim.clone())),
                None => Event::ClaimGone { namespace: namespace.clone(), name: name.clone(), uid: String::new() },
            },
            Target::Receipt(name) => match self.receipts.get(name) {
                Some(receipt) => Event::Receipt(Box::new(receipt.clone())),
                None => Event::ReceiptGone { name: name.clone() },
            },
        }]
    }

    /// The Resources that a look finds.
    pub fn look(&self, sought: &[Sought]) -> Vec<Resource> {
        let found = |resource: &&Resource| {
            sought.iter().any(|sought| match sought {
                Sought::Resource(name) => resource.metadata.name.as_ref() == Some(name),
                Sought::Key(key) => resource.spec.key.as_ref().or(resource.metadata.name.as_ref()) == Some(key),
                Sought::Selector(selector) => selection::matches(selector, resource.metadata.labels.as_ref().unwrap_or(&BTreeMap::new())),
            })
        };
        self.resources.values().filter(found).cloned().collect()
    }

    /// What became of a Claim.
    pub fn find(&self, claim: &ClaimReference) -> Event {
        let found = self.claims.get(&(claim.namespace.clone(), claim.name.clone()));
        let finding = found.map_or(Finding::Absent, |claim| Finding::Present(Box::new(claim.clone())));
        Event::Found { uid: claim.uid.clone(), finding }
    }

    fn take(&mut self, write: &Write, wall: i64) -> Result<Vec<Event>, String> {
        if let (Body::Invent(spec), Target::Resource(name)) = (&write.body, &write.target) {
            return self.add_resource(name, &[], (**spec).clone(), wall).map(|event| vec![event]).ok_or("AlreadyExists".to_owned());
        }
        let metadata = match &write.target {
            Target::Resource(name) => self.resources.get(name).map(|object| &object.metadata),
            Target::Claim(namespace, name) => self.claims.get(&(namespace.clone(), name.clone())).map(|object| &object.metadata),
            Target::Receipt(name) => self.receipts.get(name).map(|object| &object.metadata),
        };
        let metadata = metadata.ok_or("NotFound")?;
        if metadata.uid.as_deref() != Some(&write.uid) || metadata.resource_version.as_deref() != Some(&write.resource_version) {
            return Err("Conflict".to_owned());
        }
        self.replace(write)?;
        Ok(Vec::new())
    }

    fn replace(&mut self, write: &Write) -> Result<(), String> {
        let version = (self.version + 1).to_string();
        match (&write.target, &write.body) {
            (Target::Resource(name), Body::Ledger { after, .. }) => {
                let resource = self.resources.get_mut(name).ok_or("NotFound")?;
                let before = resource.status.clone().unwrap_or_default();
                if after.revision <= before.revision || after.last_fence < before.last_fence || after.term < before.term {
                    return Err(format!(
                        "Invalid: revision {} after {}, fence {} after {}",
                        after.revision, before.revision, after.last_fence, before.last_fence
                    ));
                }
                if let Some(broken) = capacity::broken(after) {
                    return Err(format!("Invalid: {broken}"));
                }
                resource.status = Some((**after).clone());
                resource.metadata.resource_version = Some(version);
            }
            (Target::Claim(namespace, name), Body::Claim(status)) => {
                let claim = self.claims.get_mut(&(namespace.clone(), name.clone())).ok_or("NotFound")?;
                let before = claim.status.as_ref().map(|status| status.phase).unwrap_or_default();
                if before.is_final() && before != status.phase {
                    return Err(format!("Invalid: {} is final", before.as_str()));
                }
                claim.status = Some((**status).clone());
                claim.metadata.resource_version = Some(version);
            }
            (Target::Receipt(name), Body::Receipt(status)) => {
                let receipt = self.receipts.get_mut(name).ok_or("NotFound")?;
                receipt.status = Some((**status).clone());
                receipt.metadata.resource_version = Some(version);
            }
            (Target::Resource(name), Body::Delete) => {
                self.resources.remove(name);
            }
            (Target::Claim(namespace, name), Body::Delete) => {
                self.claims.remove(&(namespace.clone(), name.clone()));
            }
            _ => return Err("Invalid: no such write".to_owned()),
        }
        self.version += 1;
        Ok(())
    }
}

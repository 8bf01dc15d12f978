//! Which Resources a label selector finds, kept up to date so that a claim need not look at all of them (M2).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{
    order::Order,
    world::{ClaimIx, ResourceIx},
};

/// How many selectors that nobody waits with are kept for the next claim.
const KEPT: usize = 64;

/// One selector and what it finds.
#[derive(Debug, Default)]
pub struct Group {
    /// The selector.
    pub selector: LabelSelector,
    /// All Resources with these labels, by name.
    pub members: BTreeMap<Arc<str>, ResourceIx>,
    /// Those that may have something to give and that nobody waits for, by free units, then name.
    pub open: BTreeSet<(i64, Arc<str>, ResourceIx)>,
    /// How many free units each member was listed with.
    pub listed: BTreeMap<ResourceIx, (i64, Arc<str>)>,
    /// Claims that wait with this selector, in order.
    pub waiters: BTreeMap<Order, ClaimIx>,
}

impl Group {
    /// Lists a member with so many free units, or not at all.
    pub fn list(&mut self, resource: ResourceIx, name: &Arc<str>, free: Option<i64>) {
        if self.listed.get(&resource).map(|(listed, _)| *listed) == free {
            return;
        }
        if let Some((before, name)) = self.listed.remove(&resource) {
            self.open.remove(&(before, name, resource));
        }
        if let Some(free) = free {
            self.listed.insert(resource, (free, name.clone()));
            self.open.insert((free, name.clone(), resource));
        }
    }
}

/// All selectors in use, by their canonical text.
#[derive(Debug, Default)]
pub struct Groups {
    groups: BTreeMap<String, Group>,
}

impl Groups {
    /// The group of a selector, if it is known.
    pub fn get(&self, selector: &LabelSelector) -> Option<&Group> {
        self.groups.get(&canonical(selector))
    }

    /// The group of a selector, to change.
    pub fn get_mut(&mut self, selector: &LabelSelector) -> Option<&mut Group> {
        self.groups.get_mut(&canonical(selector))
    }

    /// True when this selector still has to be looked up.
    pub fn lacks(&self, selector: &LabelSelector) -> bool {
        !self.groups.contains_key(&canonical(selector))
    }

    /// Adds a group; one that nobody waits with makes place for it.
    pub fn add(&mut self, group: Group) {
        if self.groups.len() >= KEPT
            && let Some(unused) = self.groups.iter().find(|(_, group)| group.waiters.is_empty()).map(|(text, _)| text.clone())
        {
            self.groups.remove(&unused);
        }
        self.groups.insert(canonical(&group.selector), group);
    }

    /// All groups.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.values_mut()
    }

    /// All groups.
    pub fn iter(&self) -> impl Iterator<Item = &Group> {
        self.groups.values()
    }
}

fn canonical(selector: &LabelSelector) -> String {
    serde_json::to_string(selector).unwrap_or_default()
}

/// Whether labels satisfy a selector, as Kubernetes defines it. An operator that does not exist matches nothing.
pub fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let exact = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    exact
        && selector.match_expressions.iter().flatten().all(|wanted| {
            let value = labels.get(&wanted.key);
            let listed = || value.is_some_and(|value| wanted.values.iter().flatten().any(|other| other == value));
            match wanted.operator.as_str() {
                "In" => listed(),
                "NotIn" => !listed(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

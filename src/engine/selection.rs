//! Which Resources a label selector finds, kept up to date so that a claim need not look at all of them (M2).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
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
    /// All of them, by when the last of their occupants ends, then name.
    pub ending: BTreeSet<(i64, Arc<str>, ResourceIx)>,
    /// How each member was listed.
    listed: HashMap<ResourceIx, (Listed, Arc<str>)>,
    /// Claims that wait with this selector, in order.
    pub waiters: BTreeMap<Order, ClaimIx>,
}

/// What a member is sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// How many units are free, if it may have something to give and nobody waits for it.
    pub free: Option<i64>,
    /// When the last of its occupants ends. Unix milliseconds; 0 when nothing occupies it.
    pub ends: i64,
}

impl Group {
    /// A group that lists nothing yet.
    pub fn new(selector: LabelSelector) -> Self {
        Self { selector, ..Self::default() }
    }

    /// Lists a Resource that the selector finds, or one listed before as it is now.
    pub fn list(&mut self, resource: ResourceIx, name: &Arc<str>, listed: Listed) {
        if self.listed.get(&resource).is_some_and(|(before, _)| *before == listed) {
            return;
        }
        self.unlist(resource);
        self.members.insert(name.clone(), resource);
        self.ending.insert((listed.ends, name.clone(), resource));
        if let Some(free) = listed.free {
            self.open.insert((free, name.clone(), resource));
        }
        self.listed.insert(resource, (listed, name.clone()));
    }

    /// Where a member stands in `ending`.
    pub fn place(&self, resource: ResourceIx) -> Option<(i64, &Arc<str>)> {
        self.listed.get(&resource).map(|(listed, name)| (listed.ends, name))
    }

    /// The selector finds this Resource no more.
    pub fn unlist(&mut self, resource: ResourceIx) {
        let Some((before, name)) = self.listed.remove(&resource) else { return };
        if let Some(free) = before.free {
            self.open.remove(&(free, name.clone(), resource));
        }
        self.ending.remove(&(before.ends, name.clone(), resource));
        self.members.remove(&name);
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

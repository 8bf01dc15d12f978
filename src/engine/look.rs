//! A second look before a claim is refused for good.
//!
//! Claims and Resources come by different watches, so a claim may be seen before a Resource that was made earlier. What is refused
//! stays refused, and a key that is invented stays invented for a while; so before either, what the claim names is read from the
//! store once, at a time after the claim was made.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::api::{ClaimReference, OccupantClaim, OccupantState, Reason, Resource, ResourceStatus};

use super::{
    action::Action,
    event::Finding,
    step::Engine,
    weigh::Obstacle,
    world::{ClaimIx, LEVELS, ResourceIx},
};

/// How many deleted Resources are remembered, so that an older reading does not bring one back.
const DEPARTED: usize = 8_192;

/// What is to be read.
#[derive(Clone, Debug, PartialEq)]
pub enum Sought {
    /// The Resource of this name.
    Resource(String),
    /// The Resources that declare this key.
    Key(String),
    /// The Resources that this selector finds.
    Selector(LabelSelector),
}

/// The uids of Resources that were deleted lately.
#[derive(Debug, Default)]
pub struct Departed {
    order: VecDeque<String>,
    uids: HashSet<String>,
}

impl Departed {
    /// Keeps the uid of one that has gone.
    pub fn note(&mut self, uid: &str) {
        if uid.is_empty() || !self.uids.insert(uid.to_owned()) {
            return;
        }
        self.order.push_back(uid.to_owned());
        if self.order.len() > DEPARTED
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    fn has(&self, uid: &str) -> bool {
        self.uids.contains(uid)
    }
}

/// True for a word that a Resource or Namespace not seen yet, or seen as it was, can be the cause of.
fn may_be_old_news(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NotFound
            | Reason::KeyConflict
            | Reason::KeyInUse
            | Reason::ParentMissing
            | Reason::Withdrawing
            | Reason::LendingUnavailable
            | Reason::NamespaceNotServed
            | Reason::DrainForbidden
            | Reason::ModeUnsupported
            | Reason::QuantityOutOfRange
            | Reason::Unsatisfiable
            | Reason::TooManyUnder
    )
}

impl Engine {
    /// Before a claim is refused: reads what its obstacles come from, unless that was read for it already. True while that
    /// goes on.
    pub(super) fn look_before_refusing(&mut self, claim: ClaimIx, obstacles: &[Obstacle]) -> bool {
        let old = obstacles.iter().filter(|obstacle| may_be_old_news(obstacle.reason));
        let sought: Vec<Sought> = old.clone().flat_map(|obstacle| self.sources(claim, obstacle)).collect();
        // A claim can't be where no Namespace is: it is only not seen yet, and wakes the claim when it is.
        let namespace = &*self.world.claims[claim].namespace;
        let homeless =
            old.clone().any(|obstacle| obstacle.reason == Reason::NamespaceNotServed) && !self.world.namespaces.contains_key(namespace);
        let parents: Vec<ResourceIx> = old
            .filter(|obstacle| obstacle.reason == Reason::ParentMissing)
            .filter_map(|obstacle| self.parent_about_to_list(obstacle.resource?))
            .collect();
        for parent in &parents {
            self.world.resources[*parent].awaited.insert(claim);
        }
        self.look(claim, sought) || homeless || !parents.is_empty()
    }

    /// The Resource above this one whose ledger is on its way to list what is under it.
    fn parent_about_to_list(&self, resource: ResourceIx) -> Option<ResourceIx> {
        let mut at = resource;
        for _ in 0..=LEVELS {
            let parent = self.world.resource(self.world.resources[at].spec.parent.as_deref()?)?;
            let record = &self.world.resources[parent];
            let lists = |ledger: &ResourceStatus| ledger.children.iter().any(|child| **child == *self.world.resources[at].name);
            if lists(&record.ledger) && !lists(&record.outbox.confirmed) {
                return Some(parent);
            }
            at = parent;
        }
        None
    }

    /// Asks for what was not read for this claim yet. True while a reading goes on.
    pub(super) fn look(&mut self, claim: ClaimIx, sought: Vec<Sought>) -> bool {
        let record = &mut self.world.claims[claim];
        let mut new: Vec<Sought> = Vec::new();
        for one in sought {
            if !record.looked_for.contains(&one) {
                record.looked_for.push(one.clone());
                new.push(one);
            }
        }
        if !new.is_empty() {
            record.looking += 1;
            self.work.actions.push(Action::Look { claim: record.uid.to_string(), sought: new });
        }
        self.world.claims[claim].looking > 0
    }

    fn sources(&self, claim: ClaimIx, obstacle: &Obstacle) -> Vec<Sought> {
        let Some(resource) = obstacle.resource else {
            let Some(request) = self.world.claims[claim].spec.requests.get(obstacle.request) else { return Vec::new() };
            let name = request.resource.clone().map(Sought::Resource);
            let key = request.key.clone().map(Sought::Key);
            let selector = request.selector.clone().map(Sought::Selector);
            return name.or(key).or(selector).into_iter().collect();
        };
        let mut sought = vec![Sought::Resource(self.world.resources[resource].name.to_string())];
        if obstacle.reason == Reason::ParentMissing {
            sought.extend(self.parents(resource).into_iter().map(Sought::Resource));
        }
        sought
    }

    /// The names of the Resources above one, as far as they are known, with the first that is not.
    fn parents(&self, resource: ResourceIx) -> Vec<String> {
        let mut names = Vec::new();
        let mut at = resource;
        while names.len() <= LEVELS
            && let Some(parent) = self.world.resources[at].spec.parent.clone()
        {
            let next = self.world.resource(&parent);
            names.push(parent);
            let Some(next) = next else { break };
            at = next;
        }
        names
    }

    /// A ledger may name a claim that was deleted while nobody watched, or one that is only not seen yet: asks which.
    pub(super) fn find_claims(&mut self, resource: ResourceIx) {
        let unseen = |named: &&OccupantClaim| {
            self.world.claim(&named.uid).is_none() && !self.world.absent.contains(&*named.uid) && !self.world.sought.contains(&*named.uid)
        };
        let occupants = self.world.resources[resource].ledger.occupants.iter();
        let holding = occupants.filter(|occupant| matches!(occupant.state, OccupantState::Reserved | OccupantState::Held));
        let unseen: Vec<OccupantClaim> = holding.flat_map(|occupant| &occupant.claims).filter(unseen).cloned().collect();
        for named in unseen {
            if self.world.sought.insert(Arc::from(named.uid.as_str())) {
                let claim = ClaimReference { namespace: named.namespace, name: named.name, uid: named.uid };
                self.work.actions.push(Action::Find(claim));
            }
        }
    }

    /// What became of a claim that a ledger names.
    pub(super) fn found(&mut self, uid: &str, finding: Finding) {
        self.world.sought.remove(uid);
        let places: Vec<ResourceIx> = self.world.holdings.get(uid).into_iter().flatten().copied().collect();
        match finding {
            Finding::Present(claim) if claim.metadata.uid.as_deref() == Some(uid) => {
                // A deletion that was told meanwhile is later than this.
                if !self.world.absent.contains(uid) && !places.is_empty() {
                    self.see_claim(*claim, false);
                }
            }
            Finding::Present(_) | Finding::Absent => {
                if !places.is_empty() && self.world.claim(uid).is_none() {
                    self.world.absent.insert(Arc::from(uid));
                }
            }
            Finding::Unknown => {}
        }
        self.work.ledgers.extend(places);
    }

    /// What a look found. It is older than what the watch has told of the same Resource, or news.
    pub(super) fn looked(&mut self, claim: &str, found: Vec<Resource>) {
        for resource in found {
            let departed = resource.metadata.uid.as_deref().is_some_and(|uid| self.world.departed.has(uid));
            let other = resource.metadata.name.as_deref().and_then(|name| self.world.resource(name));
            let replaced = other.is_some_and(|other| Some(&self.world.resources[other].uid) != resource.metadata.uid.as_ref());
            // Which of two of one name is the later one, the watch says.
            if !departed && !replaced {
                self.see_resource(resource, false);
            }
        }
        if let Some(claim) = self.world.claim(claim) {
            let record = &mut self.world.claims[claim];
            record.looking = record.looking.saturating_sub(1);
            self.work.claims.insert(claim);
        }
    }
}

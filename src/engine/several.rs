//! One decision for all requests of a claim: all of them or none (M1, M2, M4, M7).

use std::collections::BTreeSet;

use crate::api::{Mode, Reason, Request};

use super::{
    capacity,
    matching::{SLOTS, assign},
    order::Order,
    selection::{self, Listed},
    step::Engine,
    weigh::{self, Ask, Obstacle, Weighed},
    world::{ClaimIx, ResourceIx, Share, UNDER},
};

/// What a claim can be given now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Planned {
    /// All of it.
    Grant(Vec<Share>),
    /// Nothing, and why, in the order of the list.
    Blocked(Vec<Obstacle>),
    /// First these Resources have to be made, or to be gone (M3).
    Invent,
}

impl Engine {
    /// What this claim can be given now. `focus` is a Resource that has just got something to give.
    pub(super) fn plan(&mut self, claim: ClaimIx, focus: Option<ResourceIx>) -> Planned {
        let spec = self.world.claims[claim].spec.clone();
        let order = self.world.claims[claim].order();
        let mut obstacles = self.held_back(claim);
        let mut shares: Vec<Share> = Vec::new();
        let mut inventing = false;
        for (place, request) in spec.requests.iter().enumerate().filter(|(_, request)| request.selector.is_none()) {
            match self.resolve(claim, request) {
                Resolved::Found(resource) => self.plan_named(claim, place, request, resource, &order, &mut shares, &mut obstacles),
                Resolved::Missing(reason) => obstacles.push(Obstacle { reason, request: place, resource: None }),
                Resolved::Awaited => inventing = true,
            }
        }
        if inventing && obstacles.is_empty() {
            return Planned::Invent;
        }
        self.check_tree_of_one_claim(&shares, &mut obstacles);
        if obstacles.is_empty() {
            self.plan_selected(claim, &spec.requests, &order, focus, &mut shares, &mut obstacles);
        }
        if obstacles.is_empty() {
            shares.sort_by_key(|share| share.request);
            return Planned::Grant(shares);
        }
        weigh::sort(&mut obstacles);
        obstacles.dedup();
        Planned::Blocked(obstacles)
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one decision, passed on as they are")]
    fn plan_named(
        &self,
        claim: ClaimIx,
        place: usize,
        request: &Request,
        resource: ResourceIx,
        order: &Order,
        shares: &mut Vec<Share>,
        obstacles: &mut Vec<Obstacle>,
    ) {
        let scope = self.scope_uid(claim, &request.name);
        let beside = shares.iter().filter(|share| share.resource == resource && !share.joins).map(|share| share.quantity).sum();
        let ask = ask(claim, place, request, scope.as_deref(), order, beside);
        let units = ask.units(&self.world, resource);
        let mut share = Share { request: place, resource, mode: ask.mode, quantity: units, fence: 0, joins: false };
        match weigh::weigh(&self.world, &ask, resource, self.now.wall) {
            Weighed::Fits => shares.push(share),
            Weighed::Joins(fence) => {
                share.joins = true;
                share.fence = fence;
                shares.push(share);
            }
            Weighed::Blocked(found) => obstacles.extend(found),
        }
    }

    /// C10, M6: an Exclusive request and one for something under it can never hold together.
    fn check_tree_of_one_claim(&self, shares: &[Share], obstacles: &mut Vec<Obstacle>) {
        for share in shares.iter().filter(|share| share.mode == Mode::Exclusive) {
            let under = self.world.under(share.resource, UNDER);
            if let Some(other) = shares.iter().find(|other| under.contains(&other.resource)) {
                obstacles.push(Obstacle { reason: Reason::SelfConflict, request: other.request, resource: Some(other.resource) });
            }
        }
    }

    fn plan_selected(
        &mut self,
        claim: ClaimIx,
        requests: &[Request],
        order: &Order,
        focus: Option<ResourceIx>,
        shares: &mut Vec<Share>,
        obstacles: &mut Vec<Obstacle>,
    ) {
        let colocate = self.world.claims[claim].spec.colocate;
        let selecting: Vec<usize> = (0..requests.len()).filter(|&place| requests[place].selector.is_some()).collect();
        if selecting.is_empty() {
            if colocate && !self.share_one_parent(shares) {
                obstacles.push(Obstacle { reason: Reason::Unsatisfiable, request: 0, resource: None });
            }
            return;
        }
        let taken = self.taken_by(shares);
        let mut fitting: Vec<Vec<ResourceIx>> = Vec::new();
        for &place in &selecting {
            fitting.push(self.candidates(claim, place, &requests[place], order, focus, &taken, colocate));
        }
        let counts: Vec<usize> = selecting.iter().map(|&place| count(&requests[place])).collect();
        let chosen = if colocate { self.assign_under_one_parent(&fitting, &counts, shares) } else { assign(&slots(&fitting, &counts)) };
        let Some(chosen) = chosen else {
            for &place in &selecting {
                obstacles.extend(self.why_not_selected(claim, place, &requests[place], order, &taken));
            }
            if obstacles.is_empty() {
                obstacles.push(Obstacle { reason: Reason::CapacityHeld, request: selecting[0], resource: None });
            }
            return;
        };
        let mut chosen = chosen.into_iter();
        for (&place, &count) in selecting.iter().zip(&counts) {
            for resource in chosen.by_ref().take(count) {
                let mode = requests[place].mode.unwrap_or_default();
                let whole =
                    self.world.resources[resource].ledger.effective.as_ref().and_then(|effective| capacity::units(&effective.capacity));
                let quantity = if mode == Mode::Exclusive { whole.unwrap_or(1) } else { requests[place].quantity.unwrap_or(1) };
                shares.push(Share { request: place, resource, mode, quantity, fence: 0, joins: false });
            }
        }
        let chosen: BTreeSet<ResourceIx> = shares.iter().map(|share| share.resource).collect();
        let inside = shares.iter().filter(|share| share.mode == Mode::Exclusive).flat_map(|share| self.world.under(share.resource, UNDER));
        if let Some(resource) = inside.into_iter().find(|inside| chosen.contains(inside)) {
            obstacles.push(Obstacle { reason: Reason::CapacityHeld, request: selecting[0], resource: Some(resource) });
        }
    }

    /// What a claim's named shares leave nothing of for its selectors, with what they take along (C10).
    pub(super) fn taken_by(&self, shares: &[Share]) -> BTreeSet<ResourceIx> {
        let mut taken: BTreeSet<ResourceIx> = shares.iter().map(|share| share.resource).collect();
        for share in shares.iter().filter(|share| share.mode == Mode::Exclusive) {
            taken.extend(self.world.under(share.resource, UNDER));
        }
        taken
    }

    /// Resources that a selecting request could take now, the best first: fewest free units left over, then name (M2).
    #[allow(clippy::too_many_arguments, reason = "the parts of one decision, passed on as they are")]
    fn candidates(
        &mut self,
        claim: ClaimIx,
        place: usize,
        request: &Request,
        order: &Order,
        focus: Option<ResourceIx>,
        taken: &BTreeSet<ResourceIx>,
        colocate: bool,
    ) -> Vec<ResourceIx> {
        let Some(selector) = &request.selector else { return Vec::new() };
        self.know_group(selector);
        let scope = self.scope_uid(claim, &request.name);
        let ask = ask(claim, place, request, scope.as_deref(), order, 0);
        let enough = if colocate { usize::MAX } else { SLOTS };
        let Some(group) = self.world.groups.get(selector) else { return Vec::new() };
        let world = &self.world;
        let fits = |resource: ResourceIx| {
            !taken.contains(&resource) && matches!(weigh::weigh(world, &ask, resource, self.now.wall), Weighed::Fits)
        };
        let least = if ask.mode == Mode::Shared { ask.quantity.unwrap_or(1) } else { 0 };
        let empty: std::sync::Arc<str> = std::sync::Arc::from("");
        let open = group.open.range((least, empty, ResourceIx::FIRST)..).map(|(_, _, resource)| *resource);
        let mut found: Vec<ResourceIx> = open.filter(|&resource| fits(resource)).take(enough).collect();
        let own = world.claims[claim].picks.get(place).into_iter().flatten().copied();
        for resource in own.chain(focus) {
            let member = world.resources.get(resource).is_some_and(|record| group.members.contains_key(&record.name));
            if member && !found.contains(&resource) && fits(resource) {
                found.push(resource);
            }
        }
        let left = |resource: ResourceIx| {
            let record = &world.resources[resource];
            let capacity = record.ledger.effective.as_ref().map(|effective| &effective.capacity);
            match ask.mode {
                Mode::Exclusive => 0,
                Mode::Shared => capacity.and_then(|capacity| capacity::free(&record.ledger, capacity)).unwrap_or(i64::MAX),
            }
        };
        found.sort_by(|a, b| (left(*a), &world.resources[*a].name).cmp(&(left(*b), &world.resources[*b].name)));
        found
    }

    fn parent(&self, resource: ResourceIx) -> Option<&str> {
        self.world.resources[resource].ledger.effective.as_ref()?.parent.as_deref()
    }

    fn share_one_parent(&self, shares: &[Share]) -> bool {
        let parents: BTreeSet<Option<&str>> = shares.iter().map(|share| self.parent(share.resource)).collect();
        parents.len() <= 1 && !parents.contains(&None)
    }

    fn assign_under_one_parent(&self, fitting: &[Vec<ResourceIx>], counts: &[usize], shares: &[Share]) -> Option<Vec<ResourceIx>> {
        let fixed: BTreeSet<Option<&str>> = shares.iter().map(|share| self.parent(share.resource)).collect();
        let parents: BTreeSet<&str> = fitting.iter().flatten().filter_map(|&resource| self.parent(resource)).collect();
        parents.into_iter().filter(|parent| fixed.iter().all(|fixed| *fixed == Some(*parent))).find_map(|parent| {
            let under = |all: &Vec<ResourceIx>| all.iter().copied().filter(|&resource| self.parent(resource) == Some(parent)).collect();
            assign(&slots(&fitting.iter().map(under).collect::<Vec<_>>(), counts))
        })
    }

    /// What holds a selecting request back: the obstacles of the Resources it would stand in line for.
    fn why_not_selected(
        &mut self,
        claim: ClaimIx,
        place: usize,
        request: &Request,
        order: &Order,
        taken: &BTreeSet<ResourceIx>,
    ) -> Vec<Obstacle> {
        let scope = self.scope_uid(claim, &request.name);
        let ask = ask(claim, place, request, scope.as_deref(), order, 0);
        match self.choose_picks(claim, place, request, order, taken) {
            Err(reason) => vec![Obstacle { reason, request: place, resource: None }],
            Ok(picks) => picks
                .into_iter()
                .flat_map(|pick| match weigh::weigh(&self.world, &ask, pick, self.now.wall) {
                    Weighed::Blocked(found) => found,
                    Weighed::Joins(_) => vec![Obstacle { reason: Reason::CapacityHeld, request: place, resource: Some(pick) }],
                    Weighed::Fits => Vec::new(),
                })
                .collect(),
        }
    }

    /// The Resources a waiting selector request stands in line for: free first, then earliest end, then name; one parent if
    /// they must share it (M4). Otherwise the word for why there are not enough.
    pub(super) fn choose_picks(
        &mut self,
        claim: ClaimIx,
        place: usize,
        request: &Request,
        order: &Order,
        taken: &BTreeSet<ResourceIx>,
    ) -> Result<Vec<ResourceIx>, Reason> {
        let Some(selector) = &request.selector else { return Err(Reason::NotFound) };
        self.know_group(selector);
        let record = &self.world.claims[claim];
        let Some(group) = self.world.groups.get(selector) else { return Err(Reason::NotFound) };
        let scope = self.scope_uid(claim, &request.name);
        let ask = ask(claim, place, request, scope.as_deref(), order, 0);
        let count = count(request);
        let colocate = record.spec.colocate;
        let weigh = |resource| weigh::weigh(&self.world, &ask, resource, self.now.wall);
        let open = group.open.iter().map(|(_, _, resource)| *resource).filter(|resource| !taken.contains(resource));
        let mut chosen: Vec<ResourceIx> = open.filter(|&resource| weigh(resource) == Weighed::Fits).collect();
        chosen.sort_by_key(|&resource| group.place(resource));
        let free: BTreeSet<ResourceIx> = chosen.iter().copied().collect();
        let (mut ruled_out, mut full) = (Vec::new(), 0);
        // The others are weighed as they end, until it is enough.
        let enough = if colocate { usize::MAX } else { count };
        let others = group.ending.iter().map(|(_, _, resource)| *resource);
        for resource in others.filter(|resource| !taken.contains(resource) && !free.contains(resource)) {
            if chosen.len() >= enough {
                break;
            }
            let stands = record.stands.contains(&resource);
            match weigh(resource) {
                Weighed::Blocked(found) if found.iter().any(|obstacle| weigh::rules_out(obstacle.reason)) && !stands => {
                    ruled_out.extend(found.first().map(|obstacle| obstacle.reason));
                }
                _ if self.world.resources[resource].queue.is_full(order) && !stands => full += 1,
                _ => chosen.push(resource),
            }
        }
        if colocate {
            let parents: BTreeSet<Option<&str>> = chosen.iter().map(|resource| self.parent(*resource)).collect();
            let enough = |parent: &Option<&str>| chosen.iter().filter(|chosen| self.parent(**chosen) == *parent).count() >= count;
            let parent = parents.into_iter().filter(Option::is_some).find(enough).ok_or(Reason::Unsatisfiable)?;
            chosen.retain(|resource| self.parent(*resource) == parent);
        }
        if chosen.len() >= count {
            chosen.truncate(count);
            return Ok(chosen);
        }
        let never = |reason: &&Reason| {
            matches!(reason, Reason::ModeUnsupported | Reason::QuantityOutOfRange | Reason::Unsatisfiable | Reason::TooManyUnder)
        };
        if group.members.len() - ruled_out.iter().filter(never).count() < count {
            return Err(Reason::Unsatisfiable);
        }
        let first = ruled_out.into_iter().min_by_key(|reason| reason.rank());
        Err(if full > 0 { Reason::QueueFull } else { first.unwrap_or(Reason::Unsatisfiable) })
    }

    /// Makes sure that a selector's Resources are known.
    pub(super) fn know_group(&mut self, selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector) {
        if !self.world.groups.lacks(selector) {
            return;
        }
        let mut group = selection::Group::new(selector.clone());
        for (place, record) in self.world.resources.iter() {
            if selection::matches(selector, &record.labels) {
                group.list(place, &record.name, listed(record));
            }
        }
        self.world.groups.add(group);
    }

    /// Shows a Resource to every selector as it is now.
    pub(super) fn relist(&mut self, resource: ResourceIx) {
        let record = &self.world.resources[resource];
        for group in self.world.groups.iter_mut() {
            if selection::matches(&group.selector, &record.labels) {
                group.list(resource, &record.name, listed(record));
            } else {
                group.unlist(resource);
            }
        }
    }
}

/// How a Resource is listed among those that a selector finds.
fn listed(record: &super::world::ResourceRecord) -> Listed {
    let effective = record.ledger.effective.as_ref();
    let free = effective.map_or(0, |effective| capacity::free(&record.ledger, &effective.capacity).unwrap_or(i64::MAX));
    let gives = free > 0 && record.queue.is_empty() && record.invalid.is_none();
    let occupants = record.ledger.occupants.iter();
    let ends = occupants.map(|occupant| occupant.expires_at.map_or(i64::MAX, |end| end.as_millisecond())).max();
    Listed { free: gives.then_some(free), ends: ends.unwrap_or(0) }
}

/// How many Resources a request wants (M2).
pub(super) fn count(request: &Request) -> usize {
    request.count.unwrap_or(1).clamp(1, SLOTS as i64) as usize
}

fn slots(fitting: &[Vec<ResourceIx>], counts: &[usize]) -> Vec<Vec<ResourceIx>> {
    fitting.iter().zip(counts).flat_map(|(fitting, count)| std::iter::repeat_n(fitting.clone(), *count)).collect()
}

/// A request as the scale takes it.
pub(super) fn ask<'a>(claim: ClaimIx, place: usize, request: &Request, scope: Option<&'a str>, order: &'a Order, beside: i64) -> Ask<'a> {
    Ask { claim, request: place, mode: request.mode.unwrap_or_default(), quantity: request.quantity, scope, order, beside }
}

/// Where a request leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolved {
    /// To this Resource.
    Found(ResourceIx),
    /// To none, and why.
    Missing(Reason),
    /// To one that is being made or is about to go (M3).
    Awaited,
}

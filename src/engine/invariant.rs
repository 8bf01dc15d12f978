//! What must hold at every moment, as checks of a World and of the objects themselves.

use crate::api::{GrantState, OccupantState, Phase, ResourceStatus};

use super::{
    capacity,
    ledger::{Debt, debt},
    world::{Stage, World},
};

/// A rule that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule's letter and number.
    pub rule: &'static str,
    /// What is wrong.
    pub what: String,
}

/// C9 on one ledger as it stands: what is occupied fits, an Exclusive claim is alone, fences are in order.
pub fn ledger(name: &str, ledger: &ResourceStatus) -> Option<Violation> {
    capacity::broken(ledger).map(|what| Violation { rule: "C9", what: format!("{name}: {what}") })
}

/// Everything that can be checked at any time.
pub fn check(world: &World) -> Vec<Violation> {
    let mut found = Vec::new();
    for (_, record) in world.resources.iter() {
        found.extend(ledger(&record.name, &record.ledger));
        found.extend(ledger(&record.name, &record.outbox.confirmed));
    }
    whole_grants(world, &mut found);
    order(world, &mut found);
    debts(world, &mut found);
    found
}

/// M1: a committed claim was granted all it asked for, and each grant has its occupancy (O6).
fn whole_grants(world: &World, found: &mut Vec<Violation>) {
    for (_, claim) in world.claims.iter() {
        let status = &claim.outbox.confirmed;
        if !status.phase.is_holding() {
            continue;
        }
        for request in &claim.spec.requests {
            let wanted = if request.selector.is_some() { request.count.unwrap_or(1) as usize } else { 1 };
            let given = status.grants.iter().filter(|grant| grant.request == request.name).count();
            if given != wanted {
                found.push(Violation {
                    rule: "M1",
                    what: format!("{}/{} was given {given} of {wanted} for {}", claim.namespace, claim.name, request.name),
                });
            }
        }
        for grant in status.grants.iter().filter(|grant| grant.state == GrantState::Held) {
            let Some(resource) = world.resource(&grant.resource) else { continue };
            let names = |ledger: &ResourceStatus| {
                ledger
                    .occupants
                    .iter()
                    .any(|occupant| occupant.fence == grant.fence && occupant.claims.iter().any(|named| *named.uid == *claim.uid))
            };
            if !names(&world.resources[resource].outbox.confirmed)
                && world.resources[resource].outbox.flight.is_none()
                && world.resources[resource].invalid.is_none()
            {
                found.push(Violation {
                    rule: "C9",
                    what: format!("{}/{} holds {} and its ledger does not say so", claim.namespace, claim.name, grant.resource),
                });
            }
        }
    }
}

/// Q3: nobody holds a Resource who came after somebody that stood in its queue when it was granted.
fn order(world: &World, found: &mut Vec<Violation>) {
    for (_, resource) in world.resources.iter() {
        for occupant in resource.ledger.occupants.iter().filter(|occupant| occupant.via.is_none() && occupant.claims.len() == 1) {
            let Some(holder) = world.claim(&occupant.claims[0].uid).map(|claim| &world.claims[claim]) else { continue };
            let granted = occupant.granted_at.map_or(0, |at| at.as_millisecond());
            let order = holder.order();
            let passed = resource.queue.iter().find(|(waiter, standing)| **waiter < order && standing.since < granted);
            if let Some((waiter, _)) = passed {
                let what = format!("{} passed ticket {} on {}", holder.name, waiter.ticket, resource.name);
                found.push(Violation { rule: "Q3", what });
            }
        }
    }
}

/// No debt is lost: what a finished claim owes stands in its ledger until it is settled.
fn debts(world: &World, found: &mut Vec<Violation>) {
    for (_, claim) in world.claims.iter() {
        let status = &claim.outbox.confirmed;
        if claim.stage != Stage::Final || !status.phase.is_final() || status.phase == Phase::Denied {
            continue;
        }
        for grant in &status.grants {
            let Some(resource) = world.resource(&grant.resource).map(|resource| &world.resources[resource]) else { continue };
            let free = resource.ledger.effective.as_ref().is_some_and(capacity::needs_no_receipt);
            // A Resource whose ledger is broken is lent to nobody until its owner frees it, so that nothing is forgotten there.
            if debt(status, grant, free) == Debt::None || resource.created > grant.fence || resource.invalid.is_some() {
                continue;
            }
            let stands = resource.ledger.occupants.iter().any(|occupant| occupant.fence == grant.fence)
                || resource.ledger.settled.iter().any(|settled| settled.fence == grant.fence);
            if !stands {
                let what = format!(
                    "{}/{} ended owing {} under fence {}, and its ledger forgot",
                    claim.namespace, claim.name, resource.name, grant.fence
                );
                found.push(Violation { rule: "L7", what });
            }
        }
    }
}

/// What is still under way: writes without an answer, reservations without a commit. Nothing when all is at rest.
pub fn under_way(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for (_, record) in world.resources.iter() {
        let reserved =
            record.ledger.occupants.iter().filter(|occupant| occupant.state == OccupantState::Reserved).map(|occupant| occupant.fence);
        found.extend(reserved.map(|fence| format!("{} is reserved under {fence}", record.name)));
        if record.outbox.flight.is_some() {
            found.push(format!("{} is being written", record.name));
        }
    }
    for (_, record) in world.claims.iter().filter(|(_, record)| {
        record.outbox.flight.is_some() || matches!(record.stage, Stage::Committing(_) | Stage::Reserving(_) | Stage::TakingBack)
    }) {
        found.push(format!("{}/{} is {:?}", record.namespace, record.name, record.stage));
    }
    found
}

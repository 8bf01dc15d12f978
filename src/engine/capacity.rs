//! What a Resource has to give (C1 to C8), read off its ledger.

use crate::api::{Capacity, Effective, IdentityKind, Mode, Occupant, OccupantState, ResourceClassSpec, ResourceSpec, ResourceStatus};

/// How many sharers may have joined the occupancies of one Resource in all (C6, M5).
pub const JOINED: usize = 64;
/// How many claims may share one occupancy (M5).
pub const SHARERS: usize = 8;

/// The fields that count, from spec and, where spec leaves them out, its class (C7).
pub fn effective(spec: &ResourceSpec, class: Option<&ResourceClassSpec>) -> Effective {
    Effective {
        capacity: spec.capacity.clone().or_else(|| class.and_then(|class| class.capacity.clone())).unwrap_or_default(),
        identity: spec.identity.clone().unwrap_or_default(),
        receipt_provider: spec.receipt_provider.clone().or_else(|| class.and_then(|class| class.receipt_provider.clone())),
        enforcement: spec.enforcement.clone().or_else(|| class.and_then(|class| class.enforcement.clone())).unwrap_or_default(),
        policy: spec.policy.or_else(|| class.and_then(|class| class.policy)).unwrap_or_default(),
        parent: spec.parent.clone(),
        node: spec.node.clone(),
    }
}

/// How many units there are; `None` when there is no limit (C1).
pub fn units(capacity: &Capacity) -> Option<i64> {
    match (capacity.mode, capacity.unlimited) {
        (Mode::Exclusive, _) => Some(1),
        (Mode::Shared, true) => None,
        (Mode::Shared, false) => Some(capacity.quantity.unwrap_or(1)),
    }
}

/// How many occupancies there may be (C6).
pub fn most_occupants(effective: &Effective) -> usize {
    let default = match (effective.identity.kind, units(&effective.capacity)) {
        (IdentityKind::Logical, Some(units)) => units.min(256),
        (IdentityKind::Logical, None) => 256,
        _ => 16,
    };
    effective.capacity.max_occupants.unwrap_or(default).max(1) as usize
}

/// True when it needs nobody's receipt to be admitted or free (R5).
pub fn needs_no_receipt(effective: &Effective) -> bool {
    effective.identity.kind == IdentityKind::Logical && effective.receipt_provider.is_none()
}

/// What is occupied: the whole, once an Exclusive claim occupies it (C3).
pub fn occupied(ledger: &ResourceStatus) -> i64 {
    ledger.occupants.iter().map(|occupant| occupant.quantity).sum()
}

/// True when an Exclusive claim occupies it (C3).
pub fn is_taken_whole(ledger: &ResourceStatus) -> bool {
    ledger.occupants.iter().any(|occupant| occupant.mode == Mode::Exclusive)
}

/// What is free: `None` when there is no limit and nothing takes it whole (C8).
pub fn free(ledger: &ResourceStatus, capacity: &Capacity) -> Option<i64> {
    if is_taken_whole(ledger) {
        return Some(0);
    }
    units(capacity).map(|units| (units - occupied(ledger)).max(0))
}

/// True when so much more fits (C3, C4).
pub fn fits(ledger: &ResourceStatus, capacity: &Capacity, mode: Mode, quantity: i64) -> bool {
    match mode {
        Mode::Exclusive => ledger.occupants.is_empty(),
        Mode::Shared => !is_taken_whole(ledger) && units(capacity).is_none_or(|units| occupied(ledger) + quantity <= units),
    }
}

/// The occupancy that claims of this scope share, if there is one (M5).
pub fn shared_with<'a>(ledger: &'a ResourceStatus, scope: Option<&str>) -> Option<&'a Occupant> {
    let scope = scope?;
    ledger.occupants.iter().find(|occupant| {
        occupant.scope_uid.as_deref() == Some(scope)
            && occupant.via.is_none()
            && matches!(occupant.state, OccupantState::Held | OccupantState::Reserved)
    })
}

/// How many sharers have joined in all, beyond the first of each occupancy.
pub fn joined(ledger: &ResourceStatus) -> usize {
    ledger.occupants.iter().map(|occupant| occupant.claims.len().saturating_sub(1)).sum()
}

/// Why a ledger can't be worked with, or `None` if it holds together (C9, O6).
pub fn broken(ledger: &ResourceStatus) -> Option<String> {
    if ledger.format_version > FORMAT {
        return Some(format!(
            "its ledger has format {}, this controller knows up to {FORMAT}: run the newer controller",
            ledger.format_version
        ));
    }
    if ledger.occupants.windows(2).any(|pair| pair[0].fence >= pair[1].fence) {
        return Some("two occupants carry one fence, or they are out of order".to_owned());
    }
    if ledger.occupants.last().is_some_and(|last| last.fence > ledger.last_fence) {
        return Some("an occupant's fence is above the ledger's lastFence".to_owned());
    }
    if is_taken_whole(ledger) && ledger.occupants.len() > 1 {
        return Some("an Exclusive claim occupies it and it is not alone".to_owned());
    }
    let units = ledger.effective.as_ref().and_then(|effective| units(&effective.capacity));
    match units {
        Some(units) if occupied(ledger) > units => Some(format!("{} units are occupied of {units}", occupied(ledger))),
        _ => None,
    }
}

/// The form of the ledgers this controller writes.
pub const FORMAT: i64 = 1;

/// A capacity in words for people: `3 of 5 seats`, `unlimited`.
pub fn text(ledger: &ResourceStatus, capacity: &Capacity) -> String {
    let unit = capacity.unit.as_deref().unwrap_or("");
    match (units(capacity), capacity.mode) {
        (None, _) => "unlimited".to_owned(),
        (Some(_), Mode::Exclusive) => "1".to_owned(),
        (Some(units), _) => format!("{} of {units} {unit}", free(ledger, capacity).unwrap_or(0)).trim_end().to_owned(),
    }
}

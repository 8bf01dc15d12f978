//! The one order of waiting claims, and the queue of a Resource (M4, Q3, Q4, Q8).

use std::{collections::BTreeMap, sync::Arc};

use super::world::ClaimIx;

/// How many ordinary claims may queue on a Resource (Q5).
pub const ORDINARY: usize = 64;
/// How many drains may (Q5).
pub const DRAINS: usize = 16;

/// A claim's place in the global order. Drains come first, then lower tickets; without a ticket, and with equal ones, the older
/// claim, then the lower uid (Q8). Creation times have whole seconds, so that the store's version tells who was first within one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    /// False for a drain, so that drains sort ahead (Q4).
    pub ordinary: bool,
    /// The ticket.
    pub ticket: i64,
    /// When the claim was made. Unix milliseconds.
    pub created: i64,
    /// Its version when it was first seen, while it has no ticket: the API server's own order within one second.
    pub born: u64,
    /// The claim's uid.
    pub uid: Arc<str>,
}

/// A claim in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Which claim.
    pub claim: ClaimIx,
    /// Since when it stands here. Unix milliseconds.
    pub since: i64,
}

/// Who waits for a Resource, in order.
#[derive(Debug, Default)]
pub struct Lanes {
    line: BTreeMap<Order, Standing>,
    drains: usize,
}

impl Lanes {
    /// Puts a claim in its place.
    pub fn insert(&mut self, order: Order, standing: Standing) {
        let drain = !order.ordinary;
        if self.line.insert(order, standing).is_none() && drain {
            self.drains += 1;
        }
    }

    /// Takes a claim out; false if it did not stand here.
    pub fn remove(&mut self, order: &Order) -> bool {
        let found = self.line.remove(order).is_some();
        if found && !order.ordinary {
            self.drains -= 1;
        }
        found
    }

    /// The first in line.
    pub fn head(&self) -> Option<(&Order, Standing)> {
        self.line.first_key_value().map(|(order, standing)| (order, *standing))
    }

    /// True when somebody stands ahead of this place.
    pub fn is_ahead_of(&self, order: &Order) -> bool {
        self.head().is_some_and(|(head, _)| head < order)
    }

    /// True when one more claim of this lane would be too many (Q5).
    pub fn is_full(&self, order: &Order) -> bool {
        if order.ordinary { self.line.len() - self.drains >= ORDINARY } else { self.drains >= DRAINS }
    }

    /// All who wait, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Order, Standing)> {
        self.line.iter().map(|(order, standing)| (order, *standing))
    }

    /// A claim's place, 1 being the head.
    pub fn position(&self, order: &Order) -> Option<i64> {
        self.line.keys().position(|other| other == order).map(|place| place as i64 + 1)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// True when nobody waits.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }
}

//! What the engine wants done. The caller does it and reports how it ended; it decides nothing.

use std::sync::Arc;

use crate::api::{ClaimReference, ClaimStatus, ReceiptStatus, ResourceSpec, ResourceStatus};

use super::{
    event::{ScopeKind, Target},
    look::Sought,
};

/// In what order writes that wait for a place are sent: the first is the most urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Urgency {
    /// What a grant or an end waits for: ledgers, commits, final phases, inventions.
    Decision,
    /// What a person waits for: queued, admitted, a receipt's verdict.
    Verdict,
    /// What may lag by seconds: reservations marked held, positions, queues, removals of what is over.
    Display,
}

/// The content of one write. Each goes to one object and is guarded by `Write::resource_version` and `Write::uid`.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Replace a Resource's status (its ledger).
    Ledger {
        /// The new ledger.
        after: Arc<ResourceStatus>,
        /// What the engine believes stands there, for the audit stream.
        before: Arc<ResourceStatus>,
    },
    /// Replace a Claim's status.
    Claim(Arc<ClaimStatus>),
    /// Replace a Receipt's status.
    Receipt(Box<ReceiptStatus>),
    /// Create a Resource for an invented key (M3). There is no guard: an existing object refuses it.
    Invent(Box<ResourceSpec>),
    /// Delete the object, with uid and resourceVersion as preconditions (M3, L10).
    Delete,
}

/// One guarded write. The engine never asks for a second one on an object before it heard how the first ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// Which write, so that its end is told apart from that of another one: the object may have been made anew meanwhile.
    pub number: u64,
    /// The object.
    pub target: Target,
    /// Its uid; empty for `Invent`.
    pub uid: String,
    /// The resourceVersion it must still have; empty for `Invent`.
    pub resource_version: String,
    /// What to write.
    pub body: Body,
    /// How soon.
    pub urgency: Urgency,
    /// Why, in a few words, for the audit stream and the trace.
    pub cause: &'static str,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Write, then report `Event::Wrote`.
    Write(Write),
    /// Read this kind from now on: `Scope` events, then `ScopeKindFilled` or `ScopeKindUnreadable`.
    Follow(ScopeKind),
    /// Read these from the store, not from a cache, then report `Event::Looked` for the claim of this uid.
    Look {
        /// The claim's uid.
        claim: String,
        /// What to read.
        sought: Vec<Sought>,
    },
    /// A ledger names this Claim, and no watch has told of it: read it from the store, then report `Event::Found`.
    Find(ClaimReference),
    /// No claim names this kind any more: stop reading it.
    Unfollow(ScopeKind),
}

//! What the engine is told. Every event is a fact that somebody else saw; none of them is a request.

use std::collections::BTreeMap;

use crate::api::{Claim, Receipt, Resource, ResourceClass};

/// Both clocks at one instant, read by the caller (`runtime::clock`) just before a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Unix milliseconds. Waits and windows run on it (L11).
    pub wall: i64,
    /// Milliseconds of a clock that counts suspend and never jumps; its zero is arbitrary. Deadlines of holders run on it (L11).
    pub steady: i64,
}

/// A kind that a claim's scope may name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeKind {
    /// Group and version, as in `apiVersion`.
    pub api_version: String,
    /// The kind, as in `kind`.
    pub kind: String,
}

/// One object that a claim's scope may name. A cluster-scoped one (a Namespace) has an empty `namespace`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeTarget {
    /// Its kind.
    pub kind: ScopeKind,
    /// Its namespace; empty for a Namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The object a write was meant for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// A Resource, by name.
    Resource(String),
    /// A Claim, by namespace and name.
    Claim(String, String),
    /// A Receipt, by name.
    Receipt(String),
}

/// How a write ended. Before any outcome but `Written` the caller reads the object back (a read that goes to the store,
/// not a cache) and reports what it found as an object event in the same batch, ahead of the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It took effect; the object has this resourceVersion now. A created object is reported as an event ahead of it.
    Written {
        /// The object's new resourceVersion.
        resource_version: String,
    },
    /// It did not take effect: a conflict, a precondition, a missing object, a rule of the API server.
    Refused {
        /// For people: what the API server said.
        message: String,
        /// True when the same write would be refused again (schema, CEL, policy, RBAC), so that it is tried less often.
        permanent: bool,
    },
    /// No answer came, so it may have taken effect, and may still do so.
    Unknown,
}

/// Whether a Claim is there.
#[derive(Clone, Debug)]
pub enum Finding {
    /// It is, as read from the store.
    Present(Box<Claim>),
    /// The store has no Claim of this uid, so there will never be one again.
    Absent,
    /// It could not be read.
    Unknown,
}

/// One fact.
#[derive(Clone, Debug)]
pub enum Event {
    /// A Resource as somebody read it.
    Resource(Box<Resource>),
    /// A Resource is gone. `uid` is empty when only the absence was seen.
    ResourceGone {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// A ResourceClass as somebody read it.
    Class(Box<ResourceClass>),
    /// A ResourceClass is gone.
    ClassGone {
        /// Its name.
        name: String,
    },
    /// A Claim as somebody read it.
    Claim(Box<Claim>),
    /// A Claim is gone. `uid` is empty when only the absence was seen.
    ClaimGone {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// A Receipt as somebody read it.
    Receipt(Box<Receipt>),
    /// A Receipt is gone.
    ReceiptGone {
        /// Its name.
        name: String,
    },
    /// A Namespace as somebody read it. It is also the scope target `v1/Namespace`, which needs no event of its own.
    Namespace {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
        /// Its labels, which `lending.namespaces` selects by.
        labels: BTreeMap<String, String>,
        /// `tenure.dev/frozen: "true"` (Q2).
        frozen: bool,
        /// `tenure.dev/paused: "true"`; read on the operator's own namespace only (L13).
        paused: bool,
    },
    /// A Namespace is gone.
    NamespaceGone {
        /// Its name.
        name: String,
    },
    /// A heartbeat: a Lease named `tenure-<claim uid>` (L2). Other Leases are never reported.
    Heartbeat {
        /// The claim's uid, from the Lease's name.
        claim: String,
        /// The Lease's namespace, which must be the claim's.
        namespace: String,
        /// `holderIdentity`.
        holder: String,
        /// `renewTime` as written: only a change of it is a renewal, its value is never compared with a clock.
        renewed: String,
    },
    /// A scope target as somebody read it (S1). Of Namespaces only `Namespace` is reported.
    Scope {
        /// Which object.
        target: ScopeTarget,
        /// Its uid.
        uid: String,
        /// True when its own status says it is finished (S1).
        finished: bool,
    },
    /// A scope target is gone: a 404 for the object on a served kind, or a deletion a watch reported (S5).
    ScopeGone {
        /// Which object.
        target: ScopeTarget,
    },
    /// Every object of this kind has been reported: what was not reported does not exist.
    ScopeKindFilled {
        /// Which kind.
        kind: ScopeKind,
    },
    /// This kind can't be read just now: not served, forbidden, or its list failed. What was known of it is Unknown (S5).
    ScopeKindUnreadable {
        /// Which kind.
        kind: ScopeKind,
        /// For people: why.
        message: String,
    },
    /// What `Action::Look` asked for was read, or could not be for so long that the claim goes on without.
    Looked {
        /// The claim's uid.
        claim: String,
        /// The Resources that were found.
        found: Vec<Resource>,
    },
    /// What became of the Claim that `Action::Find` asked for.
    Found {
        /// Its uid.
        uid: String,
        /// What was found.
        finding: Finding,
    },
    /// Tenure's own kinds, Namespaces, Leases and Pods have been read whole: decisions begin.
    Filled,
    /// The API can't be read: holders' time stands still (L11).
    ReadingLost,
    /// The API can be read again.
    ReadingBack,
    /// How far this machine's wall clock is from the API server's, in milliseconds, positive when it is ahead (L6).
    ClockSkew {
        /// The difference.
        milliseconds: i64,
    },
    /// How a write ended.
    Wrote {
        /// `Write::number`.
        number: u64,
        /// The object it was meant for.
        target: Target,
        /// How it ended.
        outcome: Outcome,
    },
}

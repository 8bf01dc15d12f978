//! Names that Tenure reads or writes on objects of other kinds.

/// On a Pod: the claims it waits for, written by its author.
pub const CLAIMS: &str = "tenure.dev/claims";
/// On a Namespace: `"true"` grants nothing new there (Q2).
pub const FROZEN: &str = "tenure.dev/frozen";
/// On the operator's own Namespace: `"true"` grants and expires nothing (L13).
pub const PAUSED: &str = "tenure.dev/paused";
/// What a holder's Lease is named before the claim's uid (L2).
pub const LEASE_PREFIX: &str = "tenure-";

//! The stable words for why something is refused, held back or over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why: one word that programs may rely on. Each is explained in `docs/operate.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "each word is explained in docs/operate.md")]
pub enum Reason {
    // Weighed before a grant, in the order of [`WEIGHED`].
    #[default]
    Paused,
    ClockSkew,
    ScopeNotFound,
    ScopeForbidden,
    ScopeUnknown,
    NotFound,
    KeyConflict,
    KeyInUse,
    ParentMissing,
    LedgerInvalid,
    Withdrawing,
    LendingUnavailable,
    NamespaceNotServed,
    NamespaceFrozen,
    DrainForbidden,
    ModeUnsupported,
    QuantityOutOfRange,
    Unsatisfiable,
    SelfConflict,
    ModeConflict,
    Quarantined,
    Unproven,
    DrainRefused,
    Unhealthy,
    ParentHeld,
    CapacityHeld,
    OccupantLimit,
    QueueAhead,
    QueueFull,
    ProtectedWindow,
    // Refused for what a claim or an object is.
    TooManyInvented,
    TooManyUnder,
    ResumesInvalid,
    // How a claim went on or ended.
    Granted,
    Joined,
    WaitedTooLong,
    NotWeighed,
    AdmissionDeadline,
    AdmissionRefused,
    Lapsed,
    HoldLimit,
    NeverStarted,
    DrainTimedOut,
    ReleasedByHolder,
    ScopeEnded,
    RevokedByAdapter,
    RevokedByOwner,
    ExpiryPaused,
    // Why a change is refused.
    CapacityInUse,
    ResourceInUse,
    RoleRequired,
    // Why a receipt does not count.
    NotClean,
    WrongProvider,
    WrongHostKey,
    WrongDevice,
    NotAnAdapter,
    LookedTooEarly,
    SharerLives,
    PodsAlive,
    NotParty,
    NotAdmitted,
    ObservedAtOutOfRange,
    FenceOutOfRange,
    Superseded,
}

/// What is weighed before a grant, in this order: the first that applies is the reason, and all are shown (Q9).
pub const WEIGHED: [Reason; 30] = [
    Reason::Paused,
    Reason::ClockSkew,
    Reason::ScopeNotFound,
    Reason::ScopeForbidden,
    Reason::ScopeUnknown,
    Reason::NotFound,
    Reason::KeyConflict,
    Reason::KeyInUse,
    Reason::ParentMissing,
    Reason::LedgerInvalid,
    Reason::Withdrawing,
    Reason::LendingUnavailable,
    Reason::NamespaceNotServed,
    Reason::NamespaceFrozen,
    Reason::DrainForbidden,
    Reason::ModeUnsupported,
    Reason::QuantityOutOfRange,
    Reason::Unsatisfiable,
    Reason::SelfConflict,
    Reason::ModeConflict,
    Reason::Quarantined,
    Reason::Unproven,
    Reason::DrainRefused,
    Reason::Unhealthy,
    Reason::ParentHeld,
    Reason::CapacityHeld,
    Reason::OccupantLimit,
    Reason::QueueAhead,
    Reason::QueueFull,
    Reason::ProtectedWindow,
];

impl Reason {
    /// Its place in [`WEIGHED`], or past the end.
    pub fn rank(self) -> usize {
        self as usize
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::WEIGHED;

    #[test]
    fn q9_the_rank_of_a_reason_is_its_place_in_the_one_list() {
        for (place, reason) in WEIGHED.iter().enumerate() {
            assert_eq!(reason.rank(), place, "{reason} must be declared in the order in which it is weighed");
        }
    }
}

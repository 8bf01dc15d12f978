//! What became of a Claim. Only the controller writes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{API_VERSION, COLUMN, COUNT, GRANTS, KEY, LABEL, MESSAGE, NAME, QUANTITY, TITLE, UID};
use super::{Cleanup, Control, Execution, Instant, Mode, OccupantState, Reason, Window, YieldPolicy};

/// What became of a Claim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimStatus {
    /// Where it stands. The last six phases are final and never change.
    #[serde(default)]
    pub phase: Phase,
    /// Why: the first word of the list in Q9 that applies, or how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MESSAGE))]
    pub message: Option<String>,
    /// Its place in the one global order (M4, Q8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = COUNT))]
    pub ticket: Option<i64>,
    /// Which attempt at granting it counts; reservations of earlier ones are void.
    #[serde(default)]
    #[schemars(range(min = 0, max = COUNT))]
    pub attempt: i64,
    /// Its place in the longest queue it stands in, 1 being the head (Q7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = COUNT))]
    pub position: Option<i64>,
    /// The granted Resources, for a column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = COLUMN))]
    pub resources: Option<String>,
    /// Their nodes, for a column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = COLUMN))]
    pub nodes: Option<String>,
    /// What was granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = GRANTS))]
    pub grants: Vec<Grant>,
    /// The scopes as they were first seen (S1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub scopes: Vec<PinnedScope>,
    /// When it was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_at: Option<Instant>,
    /// When it was admitted on every Resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted_at: Option<Instant>,
    /// By when it must be admitted (L1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission_deadline: Option<Instant>,
    /// Its hard end (L3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
    /// When its wait runs out (Q1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_deadline: Option<Instant>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Instant>,
    /// What its job does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// What stands in its way, and who (Q1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub blocking: Vec<Blocking>,
    /// The window in its way (W2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// A drain that was granted (D5).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
    /// Decided, Granted, Admitted, Finished, Settled, ScopeUnknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
}

/// Where a claim stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Not decided yet.
    #[default]
    Pending,
    /// It waits.
    Queued,
    /// It holds, and must be admitted.
    Granted,
    /// It holds and may work.
    Active,
    /// Another holds what it asked for, and it works all the same (A1).
    Contended,
    /// It ended by release or with its scope.
    Released,
    /// It ended before it was Active.
    Cancelled,
    /// It was refused.
    Denied,
    /// Its wait ran out.
    TimedOut,
    /// A deadline of its hold passed.
    Expired,
    /// An adapter or the owner took it back.
    Revoked,
}

impl Phase {
    /// True for the six phases that never change.
    pub fn is_final(self) -> bool {
        self >= Self::Released
    }

    /// True while it holds what it was granted.
    pub fn is_holding(self) -> bool {
        matches!(self, Self::Granted | Self::Active | Self::Contended)
    }

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Queued => "Queued",
            Self::Granted => "Granted",
            Self::Active => "Active",
            Self::Contended => "Contended",
            Self::Released => "Released",
            Self::Cancelled => "Cancelled",
            Self::Denied => "Denied",
            Self::TimedOut => "TimedOut",
            Self::Expired => "Expired",
            Self::Revoked => "Revoked",
        }
    }
}

/// What one request was granted of one Resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// Which request.
    #[schemars(length(max = LABEL))]
    pub request: String,
    /// The Resource's name.
    #[schemars(length(max = NAME))]
    pub resource: String,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = KEY))]
    pub key: Option<String>,
    /// The fencing token: what the holder shows wherever it works (L6).
    #[schemars(range(min = 0, max = COUNT))]
    pub fence: i64,
    /// The Resource's node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME))]
    pub node: Option<String>,
    /// The device's UUID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME))]
    pub device: Option<String>,
    /// Exclusive or Shared.
    pub mode: Mode,
    /// How many units.
    #[schemars(range(min = 1, max = QUANTITY))]
    pub quantity: i64,
    /// Whether it still holds.
    pub state: GrantState,
    /// When an adapter admitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted_at: Option<Instant>,
    /// When it ended, if before its claim or with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Instant>,
    /// What an adapter that refused it said of the Resource (L4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_with: Option<Cleanup>,
    /// How far the binding to the device was enforced when it was admitted (E2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_binding: Option<Control>,
    /// What its job does there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
}

/// Whether a grant holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GrantState {
    /// It does.
    #[default]
    Held,
    /// Another holds it (A1).
    Contended,
    /// It ended.
    Ended,
}

/// A scope as it was first seen (S1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PinnedScope {
    /// The request whose own scope it is; the claim's when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LABEL))]
    pub request: Option<String>,
    /// Group and version.
    #[schemars(length(max = API_VERSION))]
    pub api_version: String,
    /// Kind.
    #[schemars(length(max = LABEL))]
    pub kind: String,
    /// Name.
    #[schemars(length(max = NAME))]
    pub name: String,
    /// The uid that counts: a namesake made later is another.
    #[schemars(length(max = UID))]
    pub uid: String,
}

/// One Resource that stands in a claim's way (Q1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blocking {
    /// The Resource's name; left out when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME))]
    pub resource: Option<String>,
    /// The key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = KEY))]
    pub key: Option<String>,
    /// Its capacity, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE))]
    pub capacity: Option<String>,
    /// Why.
    pub reason: Reason,
    /// Who occupies it; at most 16 in all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub holders: Vec<Holder>,
}

/// Who occupies a Resource, as others may know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// Who, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE))]
    pub label: Option<String>,
    /// Held, Reconciling or Quarantined.
    pub state: OccupantState,
    /// Exclusive or Shared.
    pub mode: Mode,
    /// How many units.
    #[schemars(range(min = 1, max = QUANTITY))]
    pub quantity: i64,
    /// How it makes way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yield_policy: Option<YieldPolicy>,
    /// Its hard end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
}

//! The ledger: the one authority on who occupies a Resource. Only the controller writes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{CHILDREN, COUNT, DRAINS, LABEL, NAME, OCCUPANTS, ORDINARY, QUANTITY, TEXT, TITLE, UID, USER};
use super::{Capacity, Enforcement, Execution, Identity, Instant, Mode, Policy, Reason, YieldPolicy};

/// The ledger of one Resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceStatus {
    /// The form of this ledger. A controller that finds a newer one decides nothing here.
    #[serde(default)]
    #[schemars(range(min = 0, max = COUNT))]
    pub format_version: i64,
    /// Grows with every write of the ledger.
    #[serde(default)]
    #[schemars(range(min = 0, max = COUNT))]
    pub revision: i64,
    /// The term of the leader that wrote it.
    #[serde(default)]
    #[schemars(range(min = 0, max = COUNT))]
    pub term: i64,
    /// The highest fence ever given here (L6).
    #[serde(default)]
    #[schemars(range(min = 0, max = COUNT))]
    pub last_fence: i64,
    /// The copy of spec that counts, taken only when allowed (C7).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<Effective>,
    /// One word for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability: Option<Availability>,
    /// How much is occupied; the whole capacity while an Exclusive claim occupies it.
    #[serde(default)]
    #[schemars(range(min = 0, max = COUNT))]
    pub occupied_quantity: i64,
    /// How much is free; left out when unlimited (C8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = COUNT))]
    pub free_quantity: Option<i64>,
    /// Who occupies it, in the order of their fences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = OCCUPANTS))]
    pub occupants: Vec<Occupant>,
    /// The oldest claim holding it (C8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_claim: Option<ClaimReference>,
    /// The oldest share that waits for a look (R11).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconciling_for: Option<Share>,
    /// All shares that wait for a look, oldest first (R11).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = OCCUPANTS))]
    pub reconciling: Vec<Share>,
    /// Present while nobody has seen it clean (R10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unproven: Option<Unproven>,
    /// The last shares that were freed, and what freed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub settled: Vec<Settlement>,
    /// The Resources directly inside this one (C10).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = CHILDREN), inner(length(max = NAME)))]
    pub children: Vec<String>,
    /// Who waits, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// What its adapter says of it (Q6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// When the owner freed it on their own word (R8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_released_at: Option<Instant>,
    /// How many contentions there were (A2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = COUNT))]
    pub contentions: Option<i64>,
    /// Who holds it, for a column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub holder: Option<String>,
    /// How much there is and how much is free, for a column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE))]
    pub capacity_text: Option<String>,
    /// How many wait, for a column.
    #[serde(default)]
    #[schemars(range(min = 0, max = COUNT))]
    pub queue_depth: i64,
    /// Ready, Healthy, Grantable, Quarantined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
}

/// The fields of spec and class that count, frozen while anything occupies the Resource (C7).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Effective {
    /// How much can be lent.
    pub capacity: Capacity,
    /// What it is physically.
    #[serde(default)]
    pub identity: Identity,
    /// Whose receipts count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE))]
    pub receipt_provider: Option<String>,
    /// What its adapter enforces.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// Blocking or Advisory.
    #[serde(default)]
    pub policy: Policy,
    /// The Resource it is inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME))]
    pub parent: Option<String>,
    /// The node it sits on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME))]
    pub node: Option<String>,
}

/// The state of a Resource in one word: the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the words are explained in docs/concepts.md")]
pub enum Availability {
    Withdrawn,
    Withdrawing,
    LedgerInvalid,
    Quarantined,
    Unproven,
    Unhealthy,
    Unavailable,
    Reconciling,
    Held,
    PartlyFree,
    Free,
}

/// What the ledger knew of an occupancy when it was last written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum OccupantState {
    /// Kept for a claim whose commit had not been seen.
    #[default]
    Reserved,
    /// A claim holds it.
    Held,
    /// Its claims ended and nobody has seen it clean.
    Reconciling,
    /// It was seen dirty.
    Quarantined,
}

/// One occupancy of a Resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Occupant {
    /// The fencing token of this occupancy (L6).
    #[schemars(range(min = 1, max = COUNT))]
    pub fence: i64,
    /// What the last write knew.
    pub state: OccupantState,
    /// Exclusive or Shared.
    pub mode: Mode,
    /// How many units; the whole capacity when Exclusive.
    #[schemars(range(min = 1, max = QUANTITY))]
    pub quantity: i64,
    /// Whose it is; several when they share (M5).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub claims: Vec<OccupantClaim>,
    /// The Resource above that was granted and takes this one with it (C10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME))]
    pub via: Option<String>,
    /// The fence of that grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = COUNT))]
    pub via_fence: Option<i64>,
    /// The uid of the scope its claims share (M5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = UID))]
    pub scope_uid: Option<String>,
    /// Who, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE))]
    pub label: Option<String>,
    /// The account that claimed, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = USER))]
    pub claimant: Option<String>,
    /// How it makes way (Y1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yield_policy: Option<YieldPolicy>,
    /// When it was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_at: Option<Instant>,
    /// Its hard end, if it has one (L3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Instant>,
    /// What its job does, as far as reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// The revision at which it took its present state (R2).
    #[serde(default)]
    #[schemars(range(min = 0, max = COUNT))]
    pub since_revision: i64,
    /// The last receipt for it, and why it did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_receipt: Option<LastReceipt>,
}

/// A claim in an occupancy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OccupantClaim {
    /// Its namespace.
    #[schemars(length(max = LABEL))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(max = NAME))]
    pub name: String,
    /// Its uid.
    #[schemars(length(max = UID))]
    pub uid: String,
    /// Which of its requests.
    #[schemars(length(max = LABEL))]
    pub request: String,
    /// Which attempt at granting it.
    #[serde(default)]
    #[schemars(range(min = 0, max = COUNT))]
    pub attempt: i64,
}

/// A claim, named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimReference {
    /// Its namespace.
    #[schemars(length(max = LABEL))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(max = NAME))]
    pub name: String,
    /// Its uid.
    #[schemars(length(max = UID))]
    pub uid: String,
}

/// A share that waits for a look (R11).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Share {
    /// Its fence.
    #[schemars(range(min = 0, max = COUNT))]
    pub fence: i64,
    /// The claim that held it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimReference>,
}

/// What freed a share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Settlement {
    /// The share's fence.
    #[schemars(range(min = 0, max = COUNT))]
    pub fence: i64,
    /// The Receipt or OwnerRelease.
    #[schemars(length(max = NAME))]
    pub by: String,
    /// When.
    pub at: Instant,
}

/// The last receipt for a share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastReceipt {
    /// Its name.
    #[schemars(length(max = NAME))]
    pub name: String,
    /// Why it did not count, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

/// Why nobody has seen the Resource clean (R10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UnprovenReason {
    /// It is new.
    New,
    /// An adapter knows a higher fence or revision than the ledger (L6).
    LedgerBehind,
    /// Its ledger was repaired (O6).
    Repaired,
    /// An object of this name was deleted while it was occupied, a moment ago.
    Recreated,
}

/// That nobody has seen the Resource clean, and since when (R10).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unproven {
    /// The revision at which it became so.
    #[schemars(range(min = 0, max = COUNT))]
    pub since_revision: i64,
    /// Why.
    pub reason: UnprovenReason,
    /// When it passes by itself, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Instant>,
}

/// What an adapter says of a Resource (Q6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HealthState {
    /// It can be used.
    Healthy,
    /// It can't.
    Unhealthy,
    /// Nobody knows.
    #[default]
    Unknown,
}

/// What an adapter says of a Resource (Q6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Healthy, Unhealthy or Unknown.
    pub state: HealthState,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TEXT))]
    pub reason: Option<String>,
    /// When it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Instant>,
}

/// Who waits for a Resource, in order (Q3, Q4).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// Drains, which wait ahead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = DRAINS))]
    pub drains: Vec<Waiter>,
    /// Everybody else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ORDINARY))]
    pub ordinary: Vec<Waiter>,
}

/// A claim that waits for a Resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiter {
    /// Its place in the one global order (M4).
    #[schemars(range(min = 0, max = COUNT))]
    pub ticket: i64,
    /// Which claim.
    pub claim: ClaimReference,
    /// Exclusive or Shared.
    pub mode: Mode,
    /// How many units.
    #[schemars(range(min = 1, max = QUANTITY))]
    pub quantity: i64,
    /// Since when it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Instant>,
    /// What holds it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

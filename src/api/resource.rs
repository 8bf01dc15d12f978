//! The Resource: a thing that can be lent. Its status is the ledger, in `resource_status`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{DAY, KEY, LABEL, NAME, QUANTITY, TEXT, TITLE, USER, WINDOWS, YEAR};
use super::{Instant, ResourceStatus};

/// A thing that can be lent: a GPU, a host, a licence pool, a lock.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tenure.dev",
    version = "v1alpha1",
    kind = "Resource",
    doc = "A thing that can be lent: a GPU, a host, a licence pool, a lock. Its status is the ledger of who occupies it.",
    status = "ResourceStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "tres",
    category = "tenure",
    selectable = ".spec.key",
    selectable = ".spec.parent",
    selectable = ".spec.node",
    selectable = ".spec.class",
    printcolumn(name = "Availability", type_ = "string", json_path = ".status.availability"),
    printcolumn(name = "Free", type_ = "integer", json_path = ".status.freeQuantity"),
    printcolumn(name = "Capacity", type_ = "string", json_path = ".status.capacityText"),
    printcolumn(name = "Queue", type_ = "integer", json_path = ".status.queueDepth"),
    printcolumn(name = "Health", type_ = "string", json_path = ".status.health.state"),
    printcolumn(name = "Holder", type_ = "string", json_path = ".status.holder"),
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.node"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Key", type_ = "string", json_path = ".spec.key", priority = 1),
    printcolumn(name = "Parent", type_ = "string", json_path = ".spec.parent", priority = 1),
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.class", priority = 1),
    printcolumn(name = "Fence", type_ = "integer", json_path = ".status.lastFence", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSpec {
    /// What claims may name. Unique in the cluster; the object's name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = KEY))]
    pub key: Option<String>,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE))]
    pub display_name: Option<String>,
    /// The ResourceClass whose defaults apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME))]
    pub class: Option<String>,
    /// The Resource this one is inside (C10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME))]
    pub parent: Option<String>,
    /// The node it sits on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME))]
    pub node: Option<String>,
    /// How much can be lent (C1). Exclusive, one unit, when left out by the class too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// What it is physically. Logical when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Whose receipts count (R2, R5). Required unless Logical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = TITLE))]
    pub receipt_provider: Option<String>,
    /// What its adapter enforces (O5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// How long a granted claim may take to be admitted (L1). Seconds; 300 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = DAY))]
    pub admission_deadline_seconds: Option<i64>,
    /// Who registered it. Stamped; a value given by anybody is overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered_by: Option<Account>,
    /// Who may speak for it besides the account that registered it (O2).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub adapters: Vec<Adapter>,
    /// Present on a Resource that was made for a key nothing declared (M3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invented: Option<Invented>,
    /// How it is lent; the owner's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lending: Option<Lending>,
    /// Whether claims block each other. Blocking when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// What the incumbent publishes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incumbent: Option<Incumbent>,
    /// Whether it is being taken back (O1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawal: Option<Withdrawal>,
}

/// Exclusive or Shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// The whole of it, alone.
    #[default]
    Exclusive,
    /// A quantity of it, beside others.
    Shared,
}

/// How much of a Resource there is to lend (C1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    /// Exclusive: one unit. Shared: `quantity`, or `unlimited`.
    pub mode: Mode,
    /// How many units, when Shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = QUANTITY))]
    pub quantity: Option<i64>,
    /// What a unit is, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub unit: Option<String>,
    /// Shared without limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlimited: bool,
    /// How many occupancies at most (C6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub max_occupants: Option<i64>,
}

/// What a Resource is physically.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// Which sort of thing.
    pub kind: IdentityKind,
    /// Its host key or device UUID. Required unless Logical.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME))]
    pub key: Option<String>,
}

/// Which sort of thing a Resource is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IdentityKind {
    /// Nothing physical: a lock, a licence.
    #[default]
    Logical,
    /// A host, known by its host key.
    Machine,
    /// A device, known by its UUID.
    DeviceUUID,
}

/// How far one control goes (O5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Control {
    /// It can't be done.
    #[default]
    Unavailable,
    /// It is asked for and nobody makes sure.
    Advisory,
    /// It is made sure of.
    Enforced,
}

/// What an adapter enforces, declared whole: what is left out reads Unavailable (O5).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Enforcement {
    /// That nothing starts before the claim is Active.
    pub launch: Control,
    /// That nobody else uses it.
    pub exclusivity: Control,
    /// That a job is stopped when its claim is lost.
    pub revocation: Control,
    /// That it is clean after a job.
    pub cleanup: Control,
    /// That a job runs on the granted device (E2).
    pub device_binding: Control,
}

/// Somebody the API server authenticated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// The user name.
    #[schemars(length(min = 1, max = USER))]
    pub user: String,
    /// The node its token is bound to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME))]
    pub node: Option<String>,
}

/// What an adapter may do (O2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Role {
    /// Its receipts may count. Every adapter has it.
    Reconcile,
    /// The Resource exists for its work: drains, windows, demand.
    Incumbent,
    /// Drains.
    Maintainer,
}

/// An account that may speak for a Resource, and its roles (O2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Adapter {
    /// The user name.
    #[schemars(length(min = 1, max = USER))]
    pub user: String,
    /// Its roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 3))]
    pub roles: Vec<Role>,
}

/// Where an invented key belongs (M3).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Invented {
    /// The namespace it is private to; left out when the class says `keyScope: Cluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = LABEL))]
    pub namespace: Option<String>,
}

/// Whether new claims are granted (Q2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum LendingMode {
    /// It is lent.
    #[default]
    Lendable,
    /// Nothing new is granted.
    Unavailable,
}

/// How a Resource is lent; the owner's word.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lending {
    /// Lendable when left out.
    #[serde(default)]
    pub mode: LendingMode,
    /// The longest hold, counted from the grant (L3). Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = YEAR))]
    pub max_hold_seconds: Option<i64>,
    /// Which namespaces it is lent to, by their labels; all when left out (Q2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<LabelSelector>,
    /// How much holding may pass a waiter that another Resource holds back (Q10). Seconds; 0 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = YEAR))]
    pub overtake_seconds: Option<i64>,
}

/// Whether claims on a Resource block each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Policy {
    /// They do.
    #[default]
    Blocking,
    /// They are told of each other and go on (A).
    Advisory,
}

/// What the incumbent publishes (W).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Incumbent {
    /// When it needs the Resource for itself (W1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = WINDOWS))]
    pub protected_windows: Vec<Window>,
    /// How much it wants it just now (W5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demand: Option<Demand>,
}

/// A time the incumbent needs the Resource for itself: from `starts_at` to just before `ends_at` (W1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// What for.
    #[schemars(length(min = 1, max = 64))]
    pub label: String,
    /// When it opens.
    pub starts_at: Instant,
    /// When it closes.
    pub ends_at: Instant,
}

/// How much the incumbent wants the Resource (W5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DemandLevel {
    /// Not at all.
    Idle,
    /// A little.
    Low,
    /// Much.
    High,
}

/// The incumbent's demand (W5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Demand {
    /// How much.
    pub level: DemandLevel,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TEXT))]
    pub summary: Option<String>,
    /// When it was so. Stamped when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Instant>,
}

/// Who is taking the Resource back (O1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Withdrawal {
    /// The owner is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owner: bool,
    /// The account that registered it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adapter: bool,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TEXT))]
    pub reason: Option<String>,
}

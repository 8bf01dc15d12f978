//! The ResourceClass: defaults and policy for a family of Resources.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{API_VERSION, DAY, KEY, LABEL, MIB, NAME, TITLE};
use super::{Capacity, Enforcement, Lending, Policy};

/// Defaults and policy for a family of Resources.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tenure.dev",
    version = "v1alpha1",
    kind = "ResourceClass",
    doc = "Defaults and policy for a family of Resources.",
    derive = "PartialEq",
    derive = "Default",
    shortname = "tresclass",
    category = "tenure",
    printcolumn(name = "Prefix", type_ = "string", json_path = ".spec.prefix"),
    printcolumn(name = "OnDemand", type_ = "boolean", json_path = ".spec.onDemand"),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.capacity.mode"),
    printcolumn(name = "Policy", type_ = "string", json_path = ".spec.policy"),
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.receiptProvider"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceClassSpec {
    /// Keys that begin so may be invented, when `onDemand` (M3). The longest prefix wins; the empty one matches every key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = KEY))]
    pub prefix: Option<String>,
    /// Keys that nothing declares are invented (M3).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_demand: bool,
    /// Whom an invented key belongs to.
    #[serde(default)]
    pub key_scope: KeyScope,
    /// How much can be lent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// Whose receipts count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = TITLE))]
    pub receipt_provider: Option<String>,
    /// What adapters enforce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    /// Whether claims block each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// How they are lent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lending: Option<Lending>,
    /// How long an adapter, or a node's Pods, may be silent (Q6, L2). Seconds; 600 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = DAY))]
    pub silence_seconds: Option<i64>,
    /// How a device reaches a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    /// The RuntimeClass that Pods need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME))]
    pub runtime_class_name: Option<String>,
    /// When an object of another kind is finished (S1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub scope_conditions: Vec<ScopeCondition>,
    /// How long receipts are kept (R9). Days; 90 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3_650))]
    pub receipt_retention_days: Option<i64>,
    /// Device memory above which nothing is clean (G2). MiB.
    #[serde(default, rename = "baselineMaxMiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MIB))]
    pub baseline_max_mib: Option<i64>,
    /// How near to the baseline is clean (G4). MiB.
    #[serde(default, rename = "cleanupToleranceMiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MIB))]
    pub cleanup_tolerance_mib: Option<i64>,
    /// How long to look again before saying what was seen (G4). Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 3_600))]
    pub cleanup_retry_seconds: Option<i64>,
    /// The device-plugin resources that are the same devices (P5).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = API_VERSION)))]
    pub device_plugin_resources: Vec<String>,
    /// Root-owned executables that may be on a device (G7).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = NAME)))]
    pub system_processes: Vec<String>,
}

/// Whom an invented key belongs to (M3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum KeyScope {
    /// Each namespace has its own.
    #[default]
    Namespace,
    /// All namespaces share it.
    Cluster,
}

/// How a device reaches a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Binding {
    /// By environment variables.
    #[default]
    Environment,
}

/// When an object of another kind is finished: when this condition is True (S1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScopeCondition {
    /// Group and version.
    #[schemars(length(min = 1, max = API_VERSION))]
    pub api_version: String,
    /// Kind.
    #[schemars(length(min = 1, max = LABEL))]
    pub kind: String,
    /// The condition's type.
    #[schemars(length(min = 1, max = API_VERSION))]
    pub condition: String,
}

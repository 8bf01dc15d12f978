//! The AdapterReport: what one adapter sees of its Resources and of the Pods on its node.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{ALIVE, CHILDREN, COUNT, LABEL, MIB, NAME, PROCESSES, TEXT, UID};
use super::{Account, HealthState, Instant};

/// What one adapter sees, written on change and at least every 60 s.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tenure.dev",
    version = "v1alpha1",
    kind = "AdapterReport",
    doc = "What one adapter sees of its Resources and of the Pods on its node.",
    derive = "PartialEq",
    derive = "Default",
    shortname = "treport",
    category = "tenure",
    selectable = ".spec.node",
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.node"),
    printcolumn(name = "Observed", type_ = "string", json_path = ".spec.observedAt"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Reporter", type_ = "string", json_path = ".spec.reporter.user", priority = 1),
    printcolumn(name = "Boot", type_ = "string", json_path = ".spec.bootID", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct AdapterReportSpec {
    /// The node it speaks of, if it is a node's agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME))]
    pub node: Option<String>,
    /// The boot of that machine.
    #[serde(default, rename = "bootID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = UID))]
    pub boot_id: Option<String>,
    /// When it looked.
    pub observed_at: Instant,
    /// Who reports. Stamped; a value given by anybody is overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reporter: Option<Account>,
    /// What it sees of each Resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = CHILDREN))]
    pub resources: Vec<ReportedResource>,
    /// The claims whose Pods it sees alive (L2).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = ALIVE))]
    pub alive: Vec<AliveClaim>,
}

/// What an adapter sees of one Resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedResource {
    /// Its name.
    #[schemars(length(min = 1, max = NAME))]
    pub name: String,
    /// The highest fence its journal knows (L6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = COUNT))]
    pub last_fence: Option<i64>,
    /// The highest revision of the ledger its journal knows (L6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = COUNT))]
    pub ledger_revision: Option<i64>,
    /// Whether it can be used (Q6).
    pub health: ReportedHealth,
    /// What its gauges read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
}

/// Whether a Resource can be used (Q6).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedHealth {
    /// Healthy, Unhealthy or Unknown.
    pub state: HealthState,
    /// Why, in one word, as in `ForeignProcess`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LABEL))]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TEXT))]
    pub message: Option<String>,
}

/// What a device's gauges read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Telemetry {
    /// How busy it is. Percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub utilization_percent: Option<i64>,
    /// Memory in use. MiB.
    #[serde(default, rename = "memoryUsedMiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MIB))]
    pub memory_used_mib: Option<i64>,
    /// Memory it has. MiB.
    #[serde(default, rename = "memoryTotalMiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MIB))]
    pub memory_total_mib: Option<i64>,
    /// Degrees Celsius.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -273, max = 1_000))]
    pub temperature_celsius: Option<i64>,
    /// Watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub power_watts: Option<i64>,
    /// Memory errors that could not be corrected, since the driver was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = COUNT))]
    pub ecc_uncorrected: Option<i64>,
    /// The number of the last Xid error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = COUNT))]
    pub last_xid: Option<i64>,
    /// Whether it is partitioned; left out where it can't be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mig_mode: Option<MigMode>,
    /// The processes on it; names and arguments never leave the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = PROCESSES))]
    pub processes: Vec<DeviceProcess>,
}

/// Whether a GPU is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MigMode {
    /// It is not.
    Disabled,
    /// It is.
    Enabled,
}

/// A process on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceProcess {
    /// Its number on the host.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub pid: i64,
    /// Device memory it uses. MiB.
    #[serde(default, rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MIB))]
    pub memory_mib: Option<i64>,
    /// The Pod it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = UID))]
    pub pod_uid: Option<String>,
    /// The claim it works under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = UID))]
    pub claim_uid: Option<String>,
}

/// A claim whose Pods were seen alive (L2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AliveClaim {
    /// Its uid.
    #[schemars(length(min = 1, max = UID))]
    pub claim_uid: String,
    /// The fence they work under.
    #[schemars(range(min = 1, max = COUNT))]
    pub fence: i64,
    /// How many.
    #[schemars(range(min = 0, max = 1_000))]
    pub pods: i64,
}

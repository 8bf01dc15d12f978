//! The Receipt: what somebody who may speak for a Resource says they saw.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{COUNT, MIB, NAME, TEXT, TITLE};
use super::{Account, ClaimReference, Instant, Reason};

/// What an adapter says it saw of one share of a Resource, at one moment. Never changed once written.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tenure.dev",
    version = "v1alpha1",
    kind = "Receipt",
    doc = "What somebody who may speak for a Resource says they saw. Never changed once written.",
    status = "ReceiptStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "treceipt",
    category = "tenure",
    selectable = ".spec.resource",
    printcolumn(name = "Resource", type_ = "string", json_path = ".spec.resource"),
    printcolumn(name = "Fence", type_ = "integer", json_path = ".spec.fence"),
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.kind"),
    printcolumn(name = "Cleanup", type_ = "string", json_path = ".spec.cleanup"),
    printcolumn(name = "Counted", type_ = "boolean", json_path = ".status.counted"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.provider", priority = 1),
    printcolumn(name = "Reporter", type_ = "string", json_path = ".spec.reporter.user", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptSpec {
    /// The Resource's name.
    #[schemars(length(min = 1, max = NAME))]
    pub resource: String,
    /// The fence of the share it speaks of.
    #[schemars(range(min = 0, max = COUNT))]
    pub fence: i64,
    /// The claim that holds or held the share; left out in a proof that an Unproven Resource is clean (R10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimReference>,
    /// On what occasion.
    pub kind: ReceiptKind,
    /// Whether the claim may start, in a receipt of kind Admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
    /// What was seen of the Resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
    /// What was seen of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// Through which provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE))]
    pub provider: Option<String>,
    /// On which host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME))]
    pub provider_host_key: Option<String>,
    /// On which device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME))]
    pub device_key: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Instant>,
    /// The ledger's revision, read before the look (R2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = COUNT))]
    pub ledger_revision: Option<i64>,
    /// The numbers it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// Who says so. Stamped; a value given by anybody is overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reporter: Option<Account>,
}

/// On what occasion a receipt is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReceiptKind {
    /// Before a job starts.
    #[default]
    Admission,
    /// While it runs.
    Execution,
    /// When its holder lets go.
    Release,
    /// When somebody looks afterwards.
    Reconcile,
}

/// Whether a claim may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Admission {
    /// It may.
    Admitted,
    /// It may not.
    Refused,
}

/// What was seen of a Resource (R1, L4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Cleanup {
    /// Nothing of any job is left.
    VerifiedClean,
    /// Something is.
    Residue,
    /// Cleaning was tried and failed.
    CleanupFailed,
    /// Nobody knows.
    Unknown,
    /// Nothing was ever started.
    Pristine,
}

/// What was seen of a job (E1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// How far it got.
    pub state: ExecutionState,
    /// When that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Instant>,
    /// When it was first seen on the granted device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_observed_at: Option<Instant>,
}

/// How far a job got (E1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExecutionState {
    /// Not seen to run.
    #[default]
    Pending,
    /// Seen to run.
    Running,
    /// Ended well.
    Completed,
    /// Ended badly.
    Failed,
    /// Stopped.
    Aborted,
}

/// The numbers a receipt rests on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// Memory in use on the device. MiB.
    #[serde(default, rename = "memoryUsedMiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MIB))]
    pub memory_used_mib: Option<i64>,
    /// Memory in use when nothing runs. MiB.
    #[serde(default, rename = "memoryBaselineMiB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MIB))]
    pub memory_baseline_mib: Option<i64>,
    /// Processes seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4_194_304))]
    pub processes: Option<i64>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TEXT))]
    pub detail: Option<String>,
}

/// What the controller made of a receipt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptStatus {
    /// It counts.
    #[serde(default)]
    pub counted: bool,
    /// It came after the claim had ended.
    #[serde(default)]
    pub late: bool,
    /// When it was weighed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_at: Option<Instant>,
    /// Why it does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

//! The Claim: who asks for what. Its status is in `claim_status`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{API_VERSION, DAY, KEY, LABEL, NAME, QUANTITY, REQUESTS, TEXT, TITLE, UID, WEEK, YEAR};
use super::{Account, ClaimStatus, Cleanup, Execution, Instant, Mode};

/// Asks for one or more Resources, all of them or none.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tenure.dev",
    version = "v1alpha1",
    kind = "Claim",
    namespaced,
    doc = "Asks for one or more Resources, all of them or none.",
    status = "ClaimStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "tclaim",
    category = "tenure",
    selectable = ".status.phase",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(name = "Position", type_ = "integer", json_path = ".status.position"),
    printcolumn(name = "Resources", type_ = "string", json_path = ".status.resources"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.nodes"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Claimant", type_ = "string", json_path = ".spec.claimant.user", priority = 1),
    printcolumn(name = "Expires", type_ = "string", json_path = ".status.expiresAt", priority = 1),
    printcolumn(name = "Execution", type_ = "string", json_path = ".status.execution.state", priority = 1),
    printcolumn(name = "Label", type_ = "string", json_path = ".spec.label", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct ClaimSpec {
    /// What it asks for, each by a name of its own.
    #[schemars(length(min = 1, max = REQUESTS))]
    pub requests: Vec<Request>,
    /// All granted Resources share one parent (M2).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub colocate: bool,
    /// How long it will wait (Q1). Seconds; 0, the default, is granted now or denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = DAY))]
    pub max_wait_seconds: Option<i64>,
    /// A hard end of its own, counted from the grant (L3). Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = YEAR))]
    pub max_hold_seconds: Option<i64>,
    /// How long its heartbeat may be silent (L2). Seconds; left out: 120, or none when every request has a scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = DAY))]
    pub lease_seconds: Option<i64>,
    /// How long its Pods may take to start a container (L12). Seconds; 900 when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = DAY))]
    pub start_deadline_seconds: Option<i64>,
    /// How long it expects to hold (W2). Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = WEEK))]
    pub expected_seconds: Option<i64>,
    /// How it makes way (Y1). Finish when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yield_policy: Option<YieldPolicy>,
    /// Makes it a drain (D).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
    /// The claimant's own earlier claim that this one goes on from (L9).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<Resumes>,
    /// The object it lives as long as (S1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Who, shown to others; never executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE))]
    pub label: Option<String>,
    /// An identifier of the claimant's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE))]
    pub intent: Option<String>,
    /// Contentions of one change are entries (A2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE))]
    pub change: Option<String>,
    /// The claimant's own notes, shown only to those who may read the Claim. At most 4 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::schema::opaque_object")]
    pub job: Option<serde_json::Map<String, serde_json::Value>>,
    /// How long it stays after its end (L10). Seconds; a day when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = YEAR))]
    pub ttl_seconds_after_finished: Option<i64>,
    /// Who claimed. Stamped; a value given by anybody is overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimant: Option<Account>,
    /// Set once, to end it: `{}`, or with what the holder saw (S3, R5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Release>,
}

/// One thing a claim asks for: exactly one of `resource`, `key` and `selector`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Its name within the claim.
    #[schemars(length(min = 1, max = LABEL))]
    pub name: String,
    /// A Resource by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = NAME))]
    pub resource: Option<String>,
    /// A Resource by its key; one that nothing declares may be invented (M3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = KEY))]
    pub key: Option<String>,
    /// Any Resources with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How many the selector is to find; 1 when left out (M2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 16))]
    pub count: Option<i64>,
    /// Exclusive when left out (C2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// How many units, when Shared; 1 when left out (C2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = QUANTITY))]
    pub quantity: Option<i64>,
    /// A scope of its own (M6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

/// An object that a claim, or one request of it, lives as long as: in the claim's namespace, or that Namespace itself (S1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scope {
    /// Its group and version.
    #[schemars(length(min = 1, max = API_VERSION))]
    pub api_version: String,
    /// Its kind.
    #[schemars(length(min = 1, max = LABEL))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1, max = NAME))]
    pub name: String,
}

/// How a holder makes way when somebody waits (Y1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum YieldPolicy {
    /// It runs to its end.
    #[default]
    Finish,
    /// It checkpoints and releases by a drain's deadline.
    Checkpoint,
    /// It stops promptly when asked.
    Yield,
    /// Its adapter may cancel it to meet a deadline.
    Cancel,
    /// It does not.
    None,
}

/// That a claim is a drain (D1).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drain {
    /// How long it waits, whatever `maxWaitSeconds` says. Seconds.
    #[schemars(range(min = 30, max = DAY))]
    pub deadline_seconds: i64,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TEXT))]
    pub reason: Option<String>,
}

/// An earlier claim (L9).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resumes {
    /// Its name.
    #[schemars(length(min = 1, max = NAME))]
    pub name: String,
    /// Its uid.
    #[schemars(length(min = 1, max = UID))]
    pub uid: String,
}

/// The holder's word that it is done, and what it saw (R1, R5).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// What it saw of the Resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
    /// What became of its job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// Through which provider it looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = TITLE))]
    pub provider: Option<String>,
    /// On which host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME))]
    pub provider_host_key: Option<String>,
    /// When it looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Instant>,
    /// Who said so. Stamped; a value given by anybody is overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reporter: Option<Account>,
}

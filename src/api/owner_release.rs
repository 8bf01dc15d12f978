//! The OwnerRelease: a person frees a share, or vouches for a Resource, on their own word.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Reason;
use super::bounds::{COUNT, NAME, TEXT};

/// Frees one Reconciling or Quarantined share, proves an Unproven Resource, or lets a broken ledger be repaired, on a person's word
/// (R8, O6). Never changed once written.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tenure.dev",
    version = "v1alpha1",
    kind = "OwnerRelease",
    doc = "Frees a share that waits for a look, or vouches for an unproven Resource, on a person's own word. Never changed once written.",
    status = "OwnerReleaseStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "tfree",
    category = "tenure",
    selectable = ".spec.resource",
    printcolumn(name = "Resource", type_ = "string", json_path = ".spec.resource"),
    printcolumn(name = "Fence", type_ = "integer", json_path = ".spec.fence"),
    printcolumn(name = "Ledger", type_ = "boolean", json_path = ".spec.ledger"),
    printcolumn(name = "Applied", type_ = "boolean", json_path = ".status.applied"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Why", type_ = "string", json_path = ".spec.reason", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReleaseSpec {
    /// The Resource's name.
    #[schemars(length(min = 1, max = NAME))]
    pub resource: String,
    /// Which share of it. Neither this nor `ledger`: it is vouched for an Unproven Resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = COUNT))]
    pub fence: Option<i64>,
    /// A ledger that was found broken may be repaired (O6).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ledger: bool,
    /// Why, for people.
    #[schemars(length(min = 1, max = TEXT))]
    pub reason: String,
    /// The Resource's name once more, typed by whoever vouches.
    #[schemars(length(min = 1, max = NAME))]
    pub confirm_name: String,
}

/// What the controller made of an OwnerRelease.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReleaseStatus {
    /// It took effect.
    #[serde(default)]
    pub applied: bool,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

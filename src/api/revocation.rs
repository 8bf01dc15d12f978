//! The Revocation: an adapter or the owner takes a claim's hold, or its place in the queue, back.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{COUNT, NAME, TEXT};
use super::{Account, ClaimReference, Reason};

/// Ends a queued or holding claim (L5). Never changed once written.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "tenure.dev",
    version = "v1alpha1",
    kind = "Revocation",
    doc = "Takes back what a claim holds, or its place in the queue. Never changed once written.",
    status = "RevocationStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "trevoke",
    category = "tenure",
    selectable = ".spec.resource",
    printcolumn(name = "Resource", type_ = "string", json_path = ".spec.resource"),
    printcolumn(name = "As", type_ = "string", json_path = ".spec.as"),
    printcolumn(name = "Claim", type_ = "string", json_path = ".spec.claim.name"),
    printcolumn(name = "Fence", type_ = "integer", json_path = ".spec.fence"),
    printcolumn(name = "Applied", type_ = "boolean", json_path = ".status.applied"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Why", type_ = "string", json_path = ".spec.reason", priority = 1),
    printcolumn(name = "Revoker", type_ = "string", json_path = ".spec.revoker.user", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct RevocationSpec {
    /// By which right: Owner needs the verb `own` on the Resource.
    #[serde(rename = "as")]
    pub speaks_as: RevocationRight,
    /// A Resource that the claim asks for or holds.
    #[schemars(length(min = 1, max = NAME))]
    pub resource: String,
    /// Which claim, queued or holding; or else `fence`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimReference>,
    /// Which share of the Resource: all claims in it; or else `claim`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = COUNT))]
    pub fence: Option<i64>,
    /// Why, for people.
    #[schemars(length(min = 1, max = TEXT))]
    pub reason: String,
    /// Who revokes. Stamped; a value given by anybody is overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoker: Option<Account>,
}

/// By which right somebody revokes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RevocationRight {
    /// As an adapter of the Resource.
    #[default]
    Adapter,
    /// As its owner.
    Owner,
}

/// What the controller made of a Revocation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevocationStatus {
    /// The claim ended by it.
    #[serde(default)]
    pub applied: bool,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

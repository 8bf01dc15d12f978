//! What is read of an object: all of Tenure's own kinds, a few fields of every other.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};

use crate::api::{Claim, Receipt, Resource, ResourceClass};

/// An object's name within its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Empty for a cluster-scoped kind.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() { formatter.write_str(&self.name) } else { write!(formatter, "{}/{}", self.namespace, self.name) }
    }
}

/// Which object, and which one of that name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub key: Key,
    /// Its uid.
    pub uid: String,
    /// The version that was read.
    pub resource_version: String,
}

/// Something a collection is read as.
pub trait Observed: DeserializeOwned + Send + 'static {
    /// Which object it is.
    fn identity(&self) -> Identity;
    /// Drops what nobody looks at, so that it isn't kept in memory.
    fn slim(&mut self) {}
}

/// Any kind that isn't Tenure's: what scopes, namespaces and heartbeats need of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Sparse {
    /// Names, labels and annotations.
    pub metadata: SparseMeta,
    /// What a Lease says.
    pub spec: Option<SparseSpec>,
    /// How far it got.
    pub status: Option<SparseStatus>,
}

/// The part of `metadata` that is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub struct SparseMeta {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// The part of a Lease's `spec` that is read; in other kinds fields of these names have other types and are passed over.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub struct SparseSpec {
    #[serde(deserialize_with = "text")]
    pub holder_identity: String,
    #[serde(deserialize_with = "text")]
    pub renew_time: String,
}

/// The part of `status` that is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub struct SparseStatus {
    #[serde(deserialize_with = "text")]
    pub phase: String,
    pub conditions: Vec<SparseCondition>,
}

/// The part of a condition that is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names are Kubernetes' own")]
pub struct SparseCondition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
}

impl Sparse {
    /// The types of its conditions that are True.
    pub fn truths(&self) -> impl Iterator<Item = &str> {
        let conditions = self.status.iter().flat_map(|status| &status.conditions);
        conditions.filter(|condition| condition.status == "True").map(|condition| condition.kind.as_str())
    }
}

impl Observed for Sparse {
    fn identity(&self) -> Identity {
        let meta = &self.metadata;
        Identity {
            key: Key { namespace: meta.namespace.clone(), name: meta.name.clone() },
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
        }
    }
}

macro_rules! observed {
    ($($kind:ty),*) => {$(
        impl Observed for $kind {
            fn identity(&self) -> Identity {
                let meta = &self.metadata;
                Identity {
                    key: Key {
                        namespace: meta.namespace.clone().unwrap_or_default(),
                        name: meta.name.clone().unwrap_or_default(),
                    },
                    uid: meta.uid.clone().unwrap_or_default(),
                    resource_version: meta.resource_version.clone().unwrap_or_default(),
                }
            }

            fn slim(&mut self) {
                self.metadata.managed_fields = None;
            }
        }
    )*};
}

observed!(Resource, ResourceClass, Claim, Receipt);

/// A string, or empty for anything else.
fn text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Text {
        Is(String),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Text::deserialize(deserializer)? {
        Text::Is(text) => text,
        Text::Other(_) => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_kind_is_read_whatever_its_fields_are() {
        let object = serde_json::json!({
            "metadata": {"name": "x", "namespace": "n", "uid": "u", "resourceVersion": "7"},
            "spec": {"renewTime": 3, "replicas": 2},
            "status": {"phase": {"odd": true}, "conditions": [{"type": "Done", "status": "True"}, {"type": "Ill", "status": "False"}]},
        });
        let sparse: Sparse = serde_json::from_value(object).unwrap();
        assert_eq!(sparse.truths().collect::<Vec<_>>(), ["Done"]);
        assert_eq!(sparse.identity().key.to_string(), "n/x");
        assert_eq!(sparse.status.unwrap().phase, "");
    }
}

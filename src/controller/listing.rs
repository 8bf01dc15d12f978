//! What the API server sends: a page of a list, and a line of a watch. Both are decoded at once, and object by object only
//! when one of them can't be.

use serde::Deserialize;
use serde_json::Value;

use super::{
    observed::{Identity, Observed},
    reader::identity_of,
};

/// An object, or which one can't be decoded and why.
pub type Item<T> = Result<T, (Identity, String)>;

/// A page of a list.
pub struct Listing<T> {
    /// Its objects.
    pub items: Vec<Item<T>>,
    /// What the next page is asked for with; empty on the last.
    pub next: String,
    /// The version of the collection.
    pub version: String,
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMeta,
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    #[serde(rename = "continue")]
    next: String,
}

impl<T: Observed> Listing<T> {
    /// Decodes a page.
    ///
    /// # Errors
    /// Only when it is no list at all.
    pub fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        let (items, metadata) = match serde_json::from_slice::<Page<T>>(body) {
            Ok(page) => (page.items.unwrap_or_default().into_iter().map(Ok).collect(), page.metadata),
            Err(_) => {
                let page: Page<Value> = serde_json::from_slice(body)?;
                (page.items.unwrap_or_default().into_iter().map(decode).collect(), page.metadata)
            }
        };
        Ok(Self { items, next: metadata.next, version: metadata.resource_version })
    }
}

/// Whether a line's object is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It is.
    Present,
    /// It was.
    Deleted,
}

/// A line of a watch.
pub enum Line<T> {
    /// An object as it is, or as it last was.
    Object(Word, Item<T>),
    /// How far the watch has come.
    Bookmark {
        /// The version.
        version: String,
        /// Everything that was there at the start has been sent.
        end: bool,
    },
    /// The watch failed.
    Error {
        /// As an HTTP status.
        code: u16,
        /// For people.
        message: String,
    },
}

#[derive(Deserialize)]
struct Raw<T> {
    #[serde(rename = "type")]
    kind: String,
    object: T,
}

impl<T: Observed> Line<T> {
    /// Decodes a line.
    ///
    /// # Errors
    /// Only when it is no line of a watch at all.
    pub fn read(line: &str) -> Result<Self, serde_json::Error> {
        if let Ok(Raw { kind, object }) = serde_json::from_str::<Raw<T>>(line)
            && let Some(word) = word(&kind)
        {
            return Ok(Self::Object(word, Ok(object)));
        }
        let Raw { kind, object } = serde_json::from_str::<Raw<Value>>(line)?;
        Ok(match (word(&kind), kind.as_str()) {
            (Some(word), _) => Self::Object(word, decode(object)),
            (None, "BOOKMARK") => Self::Bookmark {
                version: object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned(),
                end: object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true",
            },
            (None, _) => Self::Error {
                code: object["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500),
                message: object["message"].as_str().unwrap_or("the watch failed").to_owned(),
            },
        })
    }
}

fn word(kind: &str) -> Option<Word> {
    match kind {
        "ADDED" | "MODIFIED" => Some(Word::Present),
        "DELETED" => Some(Word::Deleted),
        _ => None,
    }
}

fn decode<T: Observed>(object: Value) -> Item<T> {
    let identity = identity_of(&object);
    serde_json::from_value(object).map_err(|error| (identity, error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::ResourceClass;

    fn class(name: &str, spec: Value) -> Value {
        json!({"apiVersion": "tenure.dev/v1alpha1", "kind": "ResourceClass",
            "metadata": {"name": name, "uid": name, "resourceVersion": "5"}, "spec": spec})
    }

    #[test]
    fn one_that_cannot_be_decoded_does_not_hide_the_others() {
        let body = json!({"metadata": {"resourceVersion": "9", "continue": "more"},
            "items": [class("a", json!({})), class("b", json!({"prefix": 7})), class("c", json!({}))]});
        let page = Listing::<ResourceClass>::read(body.to_string().as_bytes()).unwrap();
        assert_eq!((page.next.as_str(), page.version.as_str()), ("more", "9"));
        let bad: Vec<_> = page.items.iter().filter_map(|item| item.as_ref().err()).collect();
        assert_eq!((page.items.len(), bad.len()), (3, 1));
        assert_eq!(bad[0].0.key.name, "b");
        assert!(bad[0].1.contains("invalid type"), "{}", bad[0].1);
    }

    #[test]
    fn lines_of_each_type_are_told_apart() {
        let read = |kind: &str, object: Value| Line::<ResourceClass>::read(&json!({"type": kind, "object": object}).to_string()).unwrap();
        assert!(matches!(read("MODIFIED", class("a", json!({}))), Line::Object(Word::Present, Ok(_))));
        assert!(matches!(read("DELETED", class("a", json!({"prefix": 7}))), Line::Object(Word::Deleted, Err(_))));
        let bookmark = json!({"metadata": {"resourceVersion": "8", "annotations": {"k8s.io/initial-events-end": "true"}}});
        assert!(matches!(read("BOOKMARK", bookmark), Line::Bookmark { end: true, .. }));
        assert!(matches!(read("ERROR", json!({"code": 410, "message": "old"})), Line::Error { code: 410, .. }));
    }
}

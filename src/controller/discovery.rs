//! Where the objects of a kind are served.

use std::time::Duration;

use http::Method;
use kube::Client;
use serde::Deserialize;

use super::call::{call, request};
use crate::engine::event::ScopeKind;

/// How long the API server may take.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Served {
    resources: Vec<ServedKind>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServedKind {
    name: String,
    kind: String,
    verbs: Vec<String>,
}

/// The path of a kind's collection.
///
/// # Errors
/// Why it can't be read, for people.
pub async fn discover(client: &Client, wanted: &ScopeKind) -> Result<String, String> {
    let root = root(&wanted.api_version)?;
    let get = request(Method::GET, &root, Vec::new()).map_err(|error| error.to_string())?;
    let answer = call(client, get, LIMIT).await.map_err(|error| error.to_string())?;
    if answer.code == http::StatusCode::NOT_FOUND {
        return Err(format!("{} is not served", wanted.api_version));
    }
    if !answer.is_good() {
        return Err(answer.refusal().message);
    }
    let served: Served = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    let found = served.resources.into_iter().find(|served| served.kind == wanted.kind && !served.name.contains('/'));
    let found = found.ok_or_else(|| format!("{} has no kind {}", wanted.api_version, wanted.kind))?;
    let can = |verb: &str| found.verbs.iter().any(|served| served == verb);
    if can("list") && can("watch") { Ok(format!("{root}/{}", found.name)) } else { Err(format!("{} can't be watched", wanted.kind)) }
}

/// The text comes from a claim: nothing but a group and a version may reach the path.
fn root(api_version: &str) -> Result<String, String> {
    let is_word = |text: &str| {
        (1..=253).contains(&text.len())
            && text.starts_with(|letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte))
    };
    match api_version.split_once('/') {
        None if is_word(api_version) => Ok(format!("/api/{api_version}")),
        Some((group, version)) if is_word(group) && is_word(version) => Ok(format!("/apis/{group}/{version}")),
        _ => Err(format!("{api_version:?} is no apiVersion: give `version` or `group/version`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_version_cannot_name_another_path() {
        assert_eq!(root("v1").unwrap(), "/api/v1");
        assert_eq!(root("batch/v1").unwrap(), "/apis/batch/v1");
        for bad in ["", "v1/", "/v1", "v1/../secrets", "a/b/c", "v1?watch=1", "../v1", "V1", "v1#"] {
            assert!(root(bad).is_err(), "{bad}");
        }
    }
}

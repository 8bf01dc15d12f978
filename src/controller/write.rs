//! A write as a request, its answer as an outcome, and the reading back of an object.
//!
//! A status is replaced by a PUT that carries no spec: the API server keeps the one it has. The PUT's uid and resourceVersion
//! are the guard, both of which it checks (a patch would not be refused for a wrong uid).

use std::time::Duration;

use http::{HeaderValue, Method, Request, StatusCode, header};
use kube::Client;
use serde::{Deserialize, Serialize};

use super::{
    call::{Answer, Error, call, request},
    observed::{Identity, Key, Observed},
};
use crate::{
    api::{Claim, GROUP, Receipt, Resource, VERSION},
    engine::{
        action::{Body, Write},
        event::{Event, Target},
    },
};

/// How long a write may take, and how long the API server may work on it: less, so that a lost one is over soon. Seconds.
const LIMIT: Duration = Duration::from_secs(10);
const SERVER_LIMIT: u32 = 8;
/// Of an object whose status was replaced only the new version is wanted back.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// What one sending of a write led to.
#[derive(Debug)]
pub enum Reply {
    /// It took effect.
    Written {
        /// The object's version now; empty when it is gone.
        resource_version: String,
        /// The object or its absence, when the answer shows it and the engine can't know it.
        events: Vec<Event>,
    },
    /// It surely had no effect and may be tried again as it is, after so long at the least.
    Later(String, Duration),
    /// It surely had no effect.
    Refused(String, bool),
    /// Nobody knows.
    Unknown(String),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replacement<'a, S> {
    api_version: String,
    kind: &'static str,
    metadata: Guard<'a>,
    status: &'a S,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Guard<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Creation<'a, S> {
    api_version: String,
    kind: &'static str,
    metadata: Named<'a>,
    spec: &'a S,
}

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Deletion<'a> {
    api_version: &'static str,
    kind: &'static str,
    propagation_policy: &'static str,
    preconditions: Preconditions<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions<'a> {
    uid: &'a str,
    resource_version: &'a str,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Answered {
    kind: String,
    metadata: AnsweredMeta,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AnsweredMeta {
    resource_version: String,
}

/// Sends a write once.
pub async fn send(client: &Client, write: &Write) -> Reply {
    let prepared = match prepare(write) {
        Ok(prepared) => prepared,
        Err(error) => return Reply::Refused(error, true),
    };
    match call(client, prepared, LIMIT).await {
        Ok(answer) => sort(write, &answer),
        Err(Error::NotSent(why)) => Reply::Later(why, Duration::ZERO),
        Err(Error::Lost(why)) => Reply::Unknown(why),
    }
}

fn prepare(write: &Write) -> Result<Request<Vec<u8>>, String> {
    let (key, kind, plural) = address(&write.target);
    let path = path(&key, plural);
    let bound = format!("fieldManager=tenure&timeout={SERVER_LIMIT}s");
    let (method, path, body) = match &write.body {
        Body::Ledger { after, .. } => (Method::PUT, format!("{path}/status?{bound}"), replacement(write, &key, kind, after.as_ref())),
        Body::Claim(status) => (Method::PUT, format!("{path}/status?{bound}"), replacement(write, &key, kind, status.as_ref())),
        Body::Receipt(status) => (Method::PUT, format!("{path}/status?{bound}"), replacement(write, &key, kind, status.as_ref())),
        Body::Invent(spec) => {
            let collection = path.strip_suffix(&format!("/{}", key.name)).unwrap_or(&path).to_owned();
            (Method::POST, format!("{collection}?{bound}"), creation(&key, kind, spec.as_ref()))
        }
        Body::Delete => (Method::DELETE, format!("{path}?timeout={SERVER_LIMIT}s"), deletion(write)),
    };
    let body = body.map_err(|error| format!("the object can't be written as JSON: {error}"))?;
    let replaces = method == Method::PUT;
    let mut request = request(method, &path, body).map_err(|error| error.to_string())?;
    if replaces {
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(METADATA));
    }
    Ok(request)
}

fn replacement<S: Serialize>(write: &Write, key: &Key, kind: &'static str, status: &S) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Replacement {
        api_version: format!("{GROUP}/{VERSION}"),
        kind,
        metadata: Guard { namespace: &key.namespace, name: &key.name, uid: &write.uid, resource_version: &write.resource_version },
        status,
    })
}

fn creation<S: Serialize>(key: &Key, kind: &'static str, spec: &S) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Creation { api_version: format!("{GROUP}/{VERSION}"), kind, metadata: Named { name: &key.name }, spec })
}

fn deletion(write: &Write) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Deletion {
        api_version: "v1",
        kind: "DeleteOptions",
        propagation_policy: "Background",
        preconditions: Preconditions { uid: &write.uid, resource_version: &write.resource_version },
    })
}

fn sort(write: &Write, answer: &Answer) -> Reply {
    if answer.is_good() {
        return written(write, answer);
    }
    let refusal = answer.refusal();
    match answer.code {
        StatusCode::TOO_MANY_REQUESTS => {
            let seconds = refusal.details.map_or(0, |details| details.retry_after_seconds).min(30);
            Reply::Later(refusal.message, Duration::from_secs(seconds))
        }
        StatusCode::UNAUTHORIZED => Reply::Later(refusal.message, Duration::ZERO),
        StatusCode::CONFLICT | StatusCode::NOT_FOUND | StatusCode::GONE => Reply::Refused(refusal.message, false),
        code if code.is_client_error() => Reply::Refused(refusal.message, true),
        // Whether a failing server did it before it failed nobody can tell from the code.
        _ => Reply::Unknown(refusal.message),
    }
}

fn written(write: &Write, answer: &Answer) -> Reply {
    let Ok(answered) = serde_json::from_slice::<Answered>(&answer.body) else {
        return Reply::Unknown("the answer can't be decoded".to_owned());
    };
    let resource_version = answered.metadata.resource_version;
    match &write.body {
        Body::Delete if answered.kind == "Status" => {
            Reply::Written { resource_version: String::new(), events: gone(&write.target, &write.uid) }
        }
        Body::Delete | Body::Invent(_) => match decode(&write.target, &answer.body) {
            Ok(event) => Reply::Written { resource_version, events: vec![event] },
            Err(_) => Reply::Unknown("the answer can't be decoded".to_owned()),
        },
        Body::Ledger { .. } | Body::Claim(_) | Body::Receipt(_) if resource_version.is_empty() => {
            Reply::Unknown("the answer names no version".to_owned())
        }
        Body::Ledger { .. } | Body::Claim(_) | Body::Receipt(_) => Reply::Written { resource_version, events: Vec::new() },
    }
}

/// What an object read back is.
#[derive(Debug)]
pub enum ReadBack {
    /// It is there, as the event says.
    Present(Event),
    /// It is not there.
    Absent,
    /// It is there and can't be decoded.
    Undecodable(Identity, String),
}

/// Reads an object from the store, not from a cache.
///
/// # Errors
/// When there is no answer that says whether it is there.
pub async fn read_back(client: &Client, target: &Target) -> Result<ReadBack, String> {
    let (key, _, plural) = address(target);
    let get = request(Method::GET, &path(&key, plural), Vec::new()).map_err(|error| error.to_string())?;
    let answer = call(client, get, LIMIT).await.map_err(|error| error.to_string())?;
    if answer.is_absent(&key.name) {
        return Ok(ReadBack::Absent);
    }
    if !answer.is_good() {
        return Err(answer.refusal().message);
    }
    match decode(target, &answer.body) {
        Ok(event) => Ok(ReadBack::Present(event)),
        Err(error) => {
            let object = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
            Ok(ReadBack::Undecodable(super::reader::identity_of(&object), error.to_string()))
        }
    }
}

/// That an object is gone; `uid` is empty when only its absence was seen.
#[must_use]
pub fn gone(target: &Target, uid: &str) -> Vec<Event> {
    let uid = uid.to_owned();
    vec![match target.clone() {
        Target::Resource(name) => Event::ResourceGone { name, uid },
        Target::Claim(namespace, name) => Event::ClaimGone { namespace, name, uid },
        Target::Receipt(name) => Event::ReceiptGone { name },
    }]
}

fn decode(target: &Target, body: &[u8]) -> Result<Event, serde_json::Error> {
    fn slim<T: Observed>(body: &[u8]) -> Result<Box<T>, serde_json::Error> {
        let mut object: T = serde_json::from_slice(body)?;
        object.slim();
        Ok(Box::new(object))
    }
    Ok(match target {
        Target::Resource(_) => Event::Resource(slim::<Resource>(body)?),
        Target::Claim(..) => Event::Claim(slim::<Claim>(body)?),
        Target::Receipt(_) => Event::Receipt(slim::<Receipt>(body)?),
    })
}

/// An object's key, kind and plural.
#[must_use]
pub fn address(target: &Target) -> (Key, &'static str, &'static str) {
    let cluster = |name: &str| Key { namespace: String::new(), name: name.to_owned() };
    match target {
        Target::Resource(name) => (cluster(name), "Resource", "resources"),
        Target::Receipt(name) => (cluster(name), "Receipt", "receipts"),
        Target::Claim(namespace, name) => (Key { namespace: namespace.clone(), name: name.clone() }, "Claim", "claims"),
    }
}

fn path(key: &Key, plural: &str) -> String {
    let Key { namespace, name } = key;
    if namespace.is_empty() {
        format!("/apis/{GROUP}/{VERSION}/{plural}/{name}")
    } else {
        format!("/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{plural}/{name}")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{api::ClaimStatus, engine::action::Urgency};

    fn write(target: Target, body: Body) -> Write {
        Write { number: 1, target, uid: "u-1".into(), resource_version: "41".into(), body, urgency: Urgency::Decision, cause: "test" }
    }

    fn claim() -> Write {
        write(Target::Claim("n".into(), "c".into()), Body::Claim(Arc::default()))
    }

    fn answer(code: u16, body: serde_json::Value) -> Answer {
        Answer { code: StatusCode::from_u16(code).unwrap(), headers: http::HeaderMap::new(), body: body.to_string().into_bytes() }
    }

    #[test]
    fn a_status_is_replaced_with_its_guard_and_without_a_spec() {
        let status = ClaimStatus { ticket: Some(7), ..ClaimStatus::default() };
        let request = prepare(&Write { body: Body::Claim(Arc::new(status)), ..claim() }).unwrap();
        assert_eq!(request.uri().path(), "/apis/tenure.dev/v1alpha1/namespaces/n/claims/c/status");
        let body: serde_json::Value = serde_json::from_slice(request.body()).unwrap();
        let metadata = serde_json::json!({"namespace": "n", "name": "c", "uid": "u-1", "resourceVersion": "41"});
        assert_eq!((&body["metadata"], &body["status"]["ticket"]), (&metadata, &7.into()));
        assert!(body.get("spec").is_none());
    }

    #[test]
    fn an_invention_is_posted_to_the_collection_and_a_deletion_has_preconditions() {
        let invent = prepare(&write(Target::Resource("r".into()), Body::Invent(Box::default()))).unwrap();
        assert_eq!((invent.method(), invent.uri().path()), (&Method::POST, "/apis/tenure.dev/v1alpha1/resources"));
        let delete = prepare(&write(Target::Receipt("r".into()), Body::Delete)).unwrap();
        let body: serde_json::Value = serde_json::from_slice(delete.body()).unwrap();
        assert_eq!(body["preconditions"], serde_json::json!({"uid": "u-1", "resourceVersion": "41"}));
    }

    #[test]
    fn answers_are_told_apart_by_whether_they_had_an_effect() {
        let status = |code| answer(code, serde_json::json!({"kind": "Status", "message": "no"}));
        assert!(matches!(sort(&claim(), &status(409)), Reply::Refused(_, false)));
        assert!(matches!(sort(&claim(), &status(404)), Reply::Refused(_, false)));
        assert!(matches!(sort(&claim(), &status(422)), Reply::Refused(_, true)));
        assert!(matches!(sort(&claim(), &status(403)), Reply::Refused(_, true)));
        assert!(matches!(sort(&claim(), &status(429)), Reply::Later(..)));
        for code in [500, 502, 503, 504] {
            assert!(matches!(sort(&claim(), &status(code)), Reply::Unknown(_)), "{code}");
        }
        let good = answer(200, serde_json::json!({"metadata": {"resourceVersion": "42"}}));
        assert!(matches!(sort(&claim(), &good), Reply::Written { resource_version, .. } if resource_version == "42"));
    }

    #[test]
    fn s5_a_404_of_anything_but_the_object_is_not_its_absence() {
        let named =
            |name| answer(404, serde_json::json!({"kind": "Status", "message": "m", "reason": "NotFound", "details": {"name": name}}));
        assert!(named("c").is_absent("c"));
        assert!(!named("other").is_absent("c"));
        let unserved = Answer { body: b"404 page not found".to_vec(), ..answer(404, serde_json::Value::Null) };
        assert!(!unserved.is_absent("c"));
    }
}

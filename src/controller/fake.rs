//! An API server for tests: a function from requests to reactions, and a record of what was asked.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tower::service_fn;

/// What was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub body: Value,
}

/// What the server does about it.
pub enum Reaction {
    Answer(u16, Value),
    /// The connection breaks before an answer.
    Break,
    /// Lines of a watch; then silence, or the end of the stream.
    Lines(Vec<Value>, bool),
    /// No answer ever.
    Silence,
}

pub type Log = Arc<Mutex<Vec<Asked>>>;

pub fn client(react: impl Fn(&Asked, usize) -> Reaction + Send + Sync + 'static) -> (Client, Log) {
    let log = Log::default();
    let (kept, react) = (log.clone(), Arc::new(react));
    let service = service_fn(move |request: Request<Body>| {
        let (log, react) = (kept.clone(), react.clone());
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect_bytes().await.unwrap();
            let asked = Asked {
                method: head.method,
                path: head.uri.path().to_owned(),
                query: head.uri.query().unwrap_or_default().to_owned(),
                body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            };
            let before = {
                let mut log = log.lock().unwrap();
                let same = log.iter().filter(|earlier| (&earlier.method, &earlier.path) == (&asked.method, &asked.path)).count();
                log.push(asked.clone());
                same
            };
            match react(&asked, before) {
                Reaction::Answer(code, body) => Ok(answer(code, Full::from(body.to_string()).boxed_unsync())),
                Reaction::Break => Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
                Reaction::Lines(lines, ends) => Ok(answer(200, stream(lines, ends))),
                Reaction::Silence => std::future::pending().await,
            }
        }
    });
    (Client::new(service, "default"), log)
}

fn answer(code: u16, body: UnsyncBoxBody<Bytes, Infallible>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
    Response::builder().status(code).body(body).unwrap()
}

fn stream(lines: Vec<Value>, ends: bool) -> UnsyncBoxBody<Bytes, Infallible> {
    let sent = futures::stream::iter(lines).map(|line| Ok(http_body::Frame::data(Bytes::from(format!("{line}\n")))));
    if ends { StreamBody::new(sent).boxed_unsync() } else { StreamBody::new(sent.chain(futures::stream::pending())).boxed_unsync() }
}

pub fn refusal(code: u16, reason: &str, name: &str) -> Reaction {
    Reaction::Answer(code, json!({"kind": "Status", "message": reason, "reason": reason, "code": code, "details": {"name": name}}))
}

pub fn class(name: &str, version: u64, spec: Value) -> Value {
    json!({"apiVersion": "tenure.dev/v1alpha1", "kind": "ResourceClass",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string()}, "spec": spec})
}

pub fn claim(name: &str, version: u64) -> Value {
    json!({"apiVersion": "tenure.dev/v1alpha1", "kind": "Claim",
        "metadata": {"namespace": "n", "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string()},
        "spec": {"requests": [{"name": "r", "key": "k"}]}})
}

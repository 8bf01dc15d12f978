//! One request to the API server and its answer, with nothing retried on the way.

use std::{error::Error as _, io, time::Duration};

use http::{HeaderMap, Request, Response, StatusCode, header};
use kube::{Client, client::Body};
use serde::Deserialize;
use tokio::time::timeout;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its code.
    pub code: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request was surely never sent.
    #[error("not sent: {0}")]
    NotSent(String),
    /// The request may have arrived.
    #[error("no answer: {0}")]
    Lost(String),
}

/// What the API server says when it refuses.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Refusal {
    /// For people.
    pub message: String,
    /// One word.
    pub reason: String,
    /// What it concerns.
    pub details: Option<RefusalDetails>,
}

/// What a refusal concerns.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RefusalDetails {
    /// The object's name.
    pub name: String,
    /// When to try again. Seconds.
    pub retry_after_seconds: u64,
}

impl Answer {
    /// True when it did what was asked.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.code.is_success()
    }

    /// The refusal, made up from the code and the text when it isn't one of the API server's own.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        serde_json::from_slice(&self.body).ok().filter(|refusal: &Refusal| !refusal.message.is_empty()).unwrap_or_else(|| Refusal {
            message: format!("{}: {}", self.code, String::from_utf8_lossy(&self.body).chars().take(200).collect::<String>().trim()),
            ..Refusal::default()
        })
    }

    /// True only when the API server itself says that this object doesn't exist on a served kind (S5).
    #[must_use]
    pub fn is_absent(&self, name: &str) -> bool {
        let refusal = self.refusal();
        self.code == StatusCode::NOT_FOUND && refusal.reason == "NotFound" && refusal.details.is_some_and(|details| details.name == name)
    }
}

/// Sends a request and reads the whole answer, within `limit`.
///
/// # Errors
/// When there is no answer, saying whether the request may have arrived.
pub async fn call(client: &Client, request: Request<Vec<u8>>, limit: Duration) -> Result<Answer, Error> {
    let exchange = async {
        let response: Response<Body> = client.send(request.map(Body::from)).await.map_err(|error| sort(&error))?;
        let (head, body) = response.into_parts();
        let bytes = body.collect_bytes().await.map_err(|error| Error::Lost(error.to_string()))?;
        Ok(Answer { code: head.status, headers: head.headers, body: bytes.to_vec() })
    };
    timeout(limit, exchange).await.unwrap_or_else(|_elapsed| Err(Error::Lost(format!("none within {limit:?}"))))
}

/// A request with JSON in both directions.
///
/// # Errors
/// When the path is no path.
pub fn request(method: http::Method, path: &str, body: Vec<u8>) -> Result<Request<Vec<u8>>, Error> {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|error| Error::NotSent(format!("{path:?} is no path: {error}")))
}

/// Only a refused connection is surely not sent.
fn sort(error: &kube::Error) -> Error {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if inner.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return Error::NotSent("connection refused".to_owned());
        }
        cause = inner.source();
    }
    Error::Lost(error.to_string())
}

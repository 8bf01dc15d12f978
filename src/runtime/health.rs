//! `/healthz`, `/readyz` and `/metrics`.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use axum::{Router, extract::State, http::StatusCode, http::header::CONTENT_TYPE, response::IntoResponse, routing::get};
use tokio::net::TcpListener;

use super::{clock::Clock, metrics::Metrics, shutdown::Shutdown};

/// How long the main loop may be silent before `/healthz` says so, in milliseconds.
const SILENCE: i64 = 60_000;

/// Why an address can't be served.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address can't be listened on.
    #[error("can't listen on {flag} {address}: {source}")]
    Listen {
        /// The flag that named it.
        flag: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

/// How the process feels. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Health {
    clock: Clock,
    ready: Arc<AtomicBool>,
    last_beat: Arc<AtomicI64>,
}

impl Health {
    /// Alive, and not ready yet.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let last_beat = Arc::new(AtomicI64::new(clock.steady()));
        Self { clock, ready: Arc::default(), last_beat }
    }

    /// The main loop is turning.
    pub fn beat(&self) {
        self.last_beat.store(self.clock.steady(), Ordering::Relaxed);
    }

    /// Whether the process does its work: a standby is ready, a leader once everything has been read.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Relaxed);
    }

    /// Whether `set_ready` last said so.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    fn is_alive(&self) -> bool {
        self.clock.steady() - self.last_beat.load(Ordering::Relaxed) < SILENCE
    }
}

/// Serves `/healthz` and `/readyz` until the end is asked for; returns the address in use (port 0 picks one).
///
/// # Errors
/// When the address can't be listened on.
pub async fn serve(address: SocketAddr, health: Health, shutdown: Shutdown) -> Result<SocketAddr, Error> {
    let routes = Router::new()
        .route("/healthz", get(|State(health): State<Health>| async move { answer(health.is_alive()) }))
        .route("/readyz", get(|State(health): State<Health>| async move { answer(health.is_ready()) }))
        .with_state(health);
    listen("--health-address", address, routes, shutdown).await
}

/// Serves `/metrics` until the end is asked for; returns the address in use (port 0 picks one).
///
/// # Errors
/// When the address can't be listened on.
pub async fn serve_metrics(address: SocketAddr, metrics: Arc<Metrics>, shutdown: Shutdown) -> Result<SocketAddr, Error> {
    let routes = Router::new().route("/metrics", get(expose)).with_state(metrics);
    listen("--metrics-address", address, routes, shutdown).await
}

async fn listen(flag: &'static str, address: SocketAddr, routes: Router, shutdown: Shutdown) -> Result<SocketAddr, Error> {
    let refused = |source| Error::Listen { flag, address, source };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    tokio::spawn(async move {
        let served = axum::serve(listener, routes).with_graceful_shutdown(async move { shutdown.wait().await }).await;
        if let Err(error) = served {
            tracing::error!(%error, flag, "stopped serving");
        }
    });
    Ok(bound)
}

async fn expose(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    match metrics.encode() {
        Ok(text) => (StatusCode::OK, [(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, [(CONTENT_TYPE, "text/plain")], error.to_string()),
    }
}

fn answer(good: bool) -> (StatusCode, &'static str) {
    if good { (StatusCode::OK, "ok") } else { (StatusCode::SERVICE_UNAVAILABLE, "not yet") }
}

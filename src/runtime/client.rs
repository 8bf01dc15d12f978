//! The connection to the API server.

use std::time::Duration;

use kube::{Client, Config, config::InferConfigError};

/// How long one connection attempt may take.
const CONNECT: Duration = Duration::from_secs(5);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither a kubeconfig nor a service account was found.
    #[error("no way to the API server: {0}; set KUBECONFIG or run in a Pod with a service account")]
    Configuration(#[source] Box<InferConfigError>),
    /// What was found can't be used.
    #[error("the API server's configuration can't be used: {0}")]
    Client(#[source] Box<kube::Error>),
}

/// A client from the kubeconfig, or from the Pod's service account. It retries nothing by itself: a write whose answer is lost
/// must be read back, never sent again blindly.
///
/// # Errors
/// When neither is there, or its certificates can't be used.
pub async fn connect() -> Result<Client, Error> {
    let mut config = Config::infer().await.map_err(|error| Error::Configuration(Box::new(error)))?;
    config.connect_timeout = Some(CONNECT);
    config.default_retry = false;
    Client::try_from(config).map_err(|error| Error::Client(Box::new(error)))
}

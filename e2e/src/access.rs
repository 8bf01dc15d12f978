//! Ways to the API server for different users: kubeconfigs and clients.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use crate::{ControlPlane, Error};

const CONNECT: Duration = Duration::from_secs(5);

/// The kubeconfig of one user. JSON is YAML too.
pub(crate) fn kubeconfig(server: &str, authority: &str, user: &Value) -> String {
    let cluster = json!({"server": server, "certificate-authority-data": base64(authority)});
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tenure", "cluster": cluster}],
        "users": [{"name": "tenure", "user": user}],
        "contexts": [{"name": "tenure", "context": {"cluster": "tenure", "user": "tenure"}}],
        "current-context": "tenure",
    })
    .to_string()
}

/// The user of a kubeconfig that shows a client certificate.
pub(crate) fn certificate_user(identity: &crate::authority::Identity) -> Value {
    json!({"client-certificate-data": base64(&identity.certificate), "client-key-data": base64(&identity.key)})
}

/// A client by a kubeconfig's text. It repeats nothing by itself, so that a test sees each answer.
pub(crate) async fn connect(kubeconfig: &str) -> Result<Client, Error> {
    let refused = |why: String| Error::Api { what: "a client".to_owned(), why };
    let parsed = Kubeconfig::from_yaml(kubeconfig).map_err(|error| refused(error.to_string()))?;
    let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(|error| refused(error.to_string()))?;
    config.connect_timeout = Some(CONNECT);
    config.default_retry = false;
    Client::try_from(config).map_err(|error| refused(error.to_string()))
}

impl ControlPlane {
    /// Where the API server is, as in `https://127.0.0.1:24001`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.api_address)
    }

    /// The administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.path().join("kubeconfig")
    }

    /// A client for the administrator. It belongs to the runtime in which it was made, that is, to one test.
    ///
    /// # Errors
    /// When its certificate can't be used.
    pub async fn client(&self) -> Result<Client, Error> {
        connect(&kubeconfig(&self.url(), &self.authority.certificate(), &self.admin)).await
    }

    /// A client for a user in some groups (and in `system:authenticated`).
    ///
    /// # Errors
    /// When the certificate can't be used.
    pub async fn client_as(&self, user: &str, groups: &[&str]) -> Result<Client, Error> {
        connect(&self.kubeconfig_text_as(user, groups)).await
    }

    /// A kubeconfig for a user in some groups, for kubectl or the operator.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn kubeconfig_as(&self, user: &str, groups: &[&str]) -> Result<PathBuf, Error> {
        self.write_kubeconfig(&self.kubeconfig_text_as(user, groups))
    }

    /// A client with a token of a service account, which must be there.
    ///
    /// # Errors
    /// When the API server issues none.
    pub async fn client_for_service_account(&self, namespace: &str, name: &str) -> Result<Client, Error> {
        connect(&self.kubeconfig_text_for(namespace, name).await?).await
    }

    /// A kubeconfig with a token of a service account, which must be there. It lasts for an hour.
    ///
    /// # Errors
    /// When the API server issues none.
    pub async fn kubeconfig_for_service_account(&self, namespace: &str, name: &str) -> Result<PathBuf, Error> {
        let text = self.kubeconfig_text_for(namespace, name).await?;
        self.write_kubeconfig(&text)
    }

    /// The administrator speaking as somebody else: the API server judges that user's rights alone.
    fn kubeconfig_text_as(&self, user: &str, groups: &[&str]) -> String {
        let mut identity = self.admin.clone();
        identity["as"] = user.into();
        identity["as-groups"] = groups.into();
        kubeconfig(&self.url(), &self.authority.certificate(), &identity)
    }

    async fn kubeconfig_text_for(&self, namespace: &str, name: &str) -> Result<String, Error> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client().await?, namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec { expiration_seconds: Some(3_600), ..TokenRequestSpec::default() },
            ..TokenRequest::default()
        };
        let issued = accounts.create_token_request(name, &PostParams::default(), &request).await;
        let issued = issued.map_err(Error::api(format!("a token of service account {namespace}/{name}")))?;
        let token = issued.status.map(|status| status.token).unwrap_or_default();
        Ok(kubeconfig(&self.url(), &self.authority.certificate(), &json!({"token": token})))
    }

    fn write_kubeconfig(&self, text: &str) -> Result<PathBuf, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let path = self.path().join(format!("kubeconfig-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
        std::fs::write(&path, text).map_err(Error::machine(path.display().to_string()))?;
        Ok(path)
    }
}

/// As kubeconfigs want it.
fn base64(text: &str) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).unwrap_or_default()
}

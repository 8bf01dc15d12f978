//! Namespaces, whose contents no controller deletes here.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, ListParams, ObjectMeta, PostParams},
    core::ApiResource,
    discovery::{Discovery, Scope, verbs},
};
use tokio::time::sleep;

use crate::{ControlPlane, Error};

/// As long as objects with finalizers may take to go.
const EMPTYING: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(100);

impl ControlPlane {
    /// Makes a namespace whose name begins with `prefix`, and gives its name. Tests that share a control plane each take one.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn new_namespace(&self, prefix: &str) -> Result<String, Error> {
        let metadata = ObjectMeta { generate_name: Some(format!("{prefix}-")), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let namespaces: Api<Namespace> = Api::all(self.client().await?);
        let made = namespaces.create(&PostParams::default(), &namespace).await;
        let made = made.map_err(Error::api(format!("creating namespace {prefix}-…")))?;
        Ok(made.metadata.name.unwrap_or_default())
    }

    /// Deletes a namespace as the namespace controller of a whole cluster does: marks it, deletes all objects in it, waits until those with
    /// finalizers are gone, and lets it go.
    ///
    /// # Errors
    /// When the API server refuses, or an object is still there after 30 seconds; the error names its kind.
    pub async fn delete_namespace(&self, name: &str) -> Result<(), Error> {
        let client = self.client().await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.delete(name, &DeleteParams::default()).await.map_err(Error::api(format!("deleting namespace {name}")))?;
        empty(&client, name).await?;
        let mut namespace = namespaces.get(name).await.map_err(Error::api(format!("reading namespace {name}")))?;
        namespace.spec.get_or_insert_default().finalizers = None;
        namespaces
            .replace_subresource("finalize", name, &PostParams::default(), &namespace)
            .await
            .map(|_| ())
            .map_err(Error::api(format!("letting namespace {name} go")))
    }
}

/// Deletes all objects in a namespace, and waits until they are gone.
async fn empty(client: &Client, namespace: &str) -> Result<(), Error> {
    let started = Instant::now();
    let mut left = kinds(client).await?;
    for kind in &left {
        let objects: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, kind);
        let deleted = objects.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
        deleted.map_err(Error::api(format!("deleting the {} of namespace {namespace}", kind.plural)))?;
    }
    while let Some(kind) = left.last() {
        let objects: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, kind);
        let found = objects.list(&ListParams::default().limit(1)).await;
        let found = found.map_err(Error::api(format!("listing the {} of namespace {namespace}", kind.plural)))?;
        let Some(object) = found.items.first() else {
            left.pop();
            continue;
        };
        if started.elapsed() >= EMPTYING {
            let what = format!("emptying namespace {namespace}");
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let finalizers = object.metadata.finalizers.as_deref().unwrap_or_default().join(", ");
            let why = format!("{} {name} is still there after {EMPTYING:?}; its finalizers: {finalizers}", kind.kind);
            return Err(Error::Api { what, why });
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

/// All kinds of which a namespace can hold objects that can be deleted together.
async fn kinds(client: &Client) -> Result<Vec<ApiResource>, Error> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await.map_err(Error::api("what kinds there are"))?;
    let all = discovery.groups().flat_map(|group| group.recommended_resources());
    let wanted = all.filter(|(_, capabilities)| {
        capabilities.scope == Scope::Namespaced
            && capabilities.supports_operation(verbs::LIST)
            && capabilities.supports_operation(verbs::DELETE_COLLECTION)
    });
    Ok(wanted.map(|(kind, _)| kind).collect())
}

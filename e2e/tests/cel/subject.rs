//! A kind, offered objects one by one.

use std::collections::BTreeSet;

use e2e::{ControlPlane, shared};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, PostParams},
    core::{GroupVersionKind, ObjectMeta},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// A kind, and the messages that it was seen to refuse with.
pub struct Subject {
    api: Api<DynamicObject>,
    kind: ApiResource,
    control_plane: &'static ControlPlane,
    seen: BTreeSet<String>,
}

impl Subject {
    /// A kind of the cluster.
    pub async fn cluster(plural: &str, kind: &str) -> Self {
        Self::new(plural, kind, false).await
    }

    /// A kind of namespaces.
    pub async fn namespaced(plural: &str, kind: &str) -> Self {
        Self::new(plural, kind, true).await
    }

    async fn new(plural: &str, kind: &str, namespaced: bool) -> Self {
        static APPLIED: OnceCell<()> = OnceCell::const_new();
        let control_plane = shared().await.unwrap();
        APPLIED.get_or_init(|| async { control_plane.apply_crds().await.unwrap() }).await;
        let client = control_plane.client().await.unwrap();
        let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("tenure.dev", "v1alpha1", kind), plural);
        let api = if namespaced { Api::namespaced_with(client, "default", &kind) } else { Api::all_with(client, &kind) };
        Self { api, kind, control_plane, seen: BTreeSet::new() }
    }

    /// An object of this kind, with a name of its own.
    pub fn object(&self, spec: Value) -> DynamicObject {
        let mut object = DynamicObject::new("", &self.kind).data(json!({"spec": spec}));
        object.metadata = ObjectMeta { generate_name: Some("cel-".to_owned()), ..ObjectMeta::default() };
        object
    }

    /// Makes an object.
    pub async fn made(&self, spec: Value) -> DynamicObject {
        self.api.create(&PostParams::default(), &self.object(spec.clone())).await.unwrap_or_else(|error| panic!("{spec}: {error}"))
    }

    /// Asserts that an object could be made so.
    pub async fn taken(&self, spec: Value) {
        let trial = PostParams { dry_run: true, ..PostParams::default() };
        self.api.create(&trial, &self.object(spec.clone())).await.unwrap_or_else(|error| panic!("{spec}: {error}"));
    }

    /// Asserts that no object can be made so, and that the answer says where and why.
    pub async fn refused(&mut self, spec: Value, place: &str, message: &str) {
        let object = self.object(spec);
        self.refused_object(&object, place, message).await;
    }

    /// Asserts that this object can't be made, and that the answer says where and why.
    pub async fn refused_object(&mut self, object: &DynamicObject, place: &str, message: &str) {
        let answer = self.api.create(&PostParams::default(), object).await;
        self.refusal(answer, &object.data["spec"], place, message);
    }

    /// Asserts that the spec can become this.
    pub async fn spec_taken(&self, object: &mut DynamicObject, spec: Value) {
        object.data["spec"] = spec.clone();
        let name = object.metadata.name.clone().unwrap();
        *object = self.api.replace(&name, &PostParams::default(), object).await.unwrap_or_else(|error| panic!("{spec}: {error}"));
    }

    /// Asserts that the spec can't become this.
    pub async fn spec_refused(&mut self, object: &DynamicObject, spec: Value, place: &str, message: &str) {
        let mut changed = object.clone();
        changed.data["spec"] = spec;
        let name = object.metadata.name.as_deref().unwrap();
        let answer = self.api.replace(name, &PostParams::default(), &changed).await;
        self.refusal(answer, &changed.data["spec"], place, message);
    }

    /// Asserts that the status can become this.
    pub async fn status_taken(&self, object: &mut DynamicObject, status: Value) {
        object.data["status"] = status.clone();
        let name = object.metadata.name.clone().unwrap();
        *object = self.api.replace_status(&name, &PostParams::default(), object).await.unwrap_or_else(|error| panic!("{status}: {error}"));
    }

    /// Asserts that the status can't become this, or be removed.
    pub async fn status_refused(&mut self, object: &DynamicObject, status: Option<Value>, place: &str, message: &str) {
        let mut changed = object.clone();
        match status {
            Some(status) => changed.data["status"] = status,
            None => drop(changed.data.as_object_mut().unwrap().remove("status")),
        }
        let name = object.metadata.name.as_deref().unwrap();
        let answer = self.api.replace_status(name, &PostParams::default(), &changed).await;
        self.refusal(answer, &changed.data["status"], place, message);
    }

    fn refusal(&mut self, answer: Result<DynamicObject, kube::Error>, offered: &Value, place: &str, message: &str) {
        match answer {
            Err(kube::Error::Api(status)) if status.code == 422 => {
                let said = &status.message;
                assert!(said.contains(place) && said.contains(message), "wanted \"{place}: {message}\" for {offered}, not: {said}");
                self.seen.insert(said.clone());
            }
            Err(error) => panic!("wanted \"{place}: {message}\" for {offered}, not: {error}"),
            Ok(_) => panic!("wanted \"{place}: {message}\", but this was taken: {offered}"),
        }
    }

    async fn schema(&self) -> Value {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.control_plane.client().await.unwrap());
        let definition = definitions.get(&format!("{}.tenure.dev", self.kind.plural)).await.unwrap();
        serde_json::to_value(&definition.spec.versions[0].schema).unwrap()["openAPIV3Schema"].take()
    }

    /// Asserts that a spec has these fields and no other.
    pub async fn has_only(&self, fields: &[&str]) {
        let schema = self.schema().await;
        let known: BTreeSet<&str> = schema["properties"]["spec"]["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(known, fields.iter().copied().collect());
    }

    /// Asserts that each message of this kind's rules was seen.
    pub async fn proven(&self) {
        let mut unproven = Vec::new();
        messages(&self.schema().await, &mut unproven);
        unproven.retain(|message| !self.seen.iter().any(|said| said.contains(message.as_str())));
        assert!(unproven.is_empty(), "no test saw {} refuse with: {unproven:#?}", self.kind.kind);
    }
}

fn messages(part: &Value, found: &mut Vec<String>) {
    for rule in part["x-kubernetes-validations"].as_array().into_iter().flatten() {
        found.push(rule["message"].as_str().unwrap_or_default().to_owned());
    }
    for property in part["properties"].as_object().into_iter().flat_map(|properties| properties.values()) {
        messages(property, found);
    }
    if part["items"].is_object() {
        messages(&part["items"], found);
    }
}

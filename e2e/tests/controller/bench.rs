//! A namespace on the shared control plane, and the only controllers that run on it meanwhile.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use e2e::{ControlPlane, Controller, shared};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::ApiResource,
};
use serde_json::{Value, json};
use tenure::api::{Claim, ClaimStatus, Phase, Resource, ResourceStatus};
use tokio::{
    sync::{Mutex, MutexGuard},
    time::{Instant, sleep},
};

/// Long enough for a busy machine; no test waits so long unless it fails.
pub const SOON: Duration = Duration::from_secs(30);
/// So that a test need not wait long for the Lease of one that was killed.
pub const QUICK: [&str; 4] = ["--lease-duration=4", "--renew-deadline=3", "--retry-period=1", "--log=tenure=debug,info"];

/// Controllers compete for one Lease: tests take turns.
static TURN: Mutex<()> = Mutex::const_new(());
static COUNT: AtomicU32 = AtomicU32::new(0);

pub struct Bench {
    pub plane: &'static ControlPlane,
    pub client: Client,
    pub namespace: String,
    pub resources: Api<Resource>,
    pub claims: Api<Claim>,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    pub async fn start() -> Self {
        let turn = TURN.lock().await;
        let plane = shared().await.unwrap();
        plane.install().await.unwrap();
        let namespace = plane.new_namespace("controller").await.unwrap();
        let client = plane.client().await.unwrap();
        let (resources, claims) = (Api::all(client.clone()), Api::namespaced(client.clone(), &namespace));
        hand_back(&client).await;
        Self { plane, client, namespace, resources, claims, _turn: turn }
    }

    /// Starts a controller, with the rights that the chart gives it.
    pub async fn begin(&self, flags: &[&str]) -> Controller {
        let name = COUNT.fetch_add(1, Ordering::Relaxed).to_string();
        let given = |quick: &&str| flags.iter().any(|flag| flag.split('=').next() == quick.split('=').next());
        let quick = QUICK.into_iter().filter(|quick| !given(quick));
        let flags: Vec<&str> = flags.iter().copied().chain(quick).collect();
        self.plane.controller(&name, self.plane.install().await.unwrap(), &flags).await.unwrap()
    }

    /// Starts a controller and waits until it leads and has read everything.
    pub async fn lead(&self, flags: &[&str]) -> Controller {
        let mut controller = self.begin(flags).await;
        leads(&mut controller).await;
        controller
    }

    /// The name of a Resource of this test.
    pub fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }

    /// Makes a Resource of this test, also one whose spec the type can't hold.
    pub async fn resource(&self, name: &str, spec: Value) {
        let kind = ApiResource::erase::<Resource>(&());
        let object = DynamicObject::new(&self.name(name), &kind).data(json!({"spec": spec}));
        Api::<DynamicObject>::all_with(self.client.clone(), &kind).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Makes a claim for one Resource of this test, with further fields.
    pub async fn claim(&self, name: &str, resource: &str, mut spec: Value) -> Claim {
        let request = &mut spec["requests"];
        if request.is_null() {
            *request = json!([{"name": "it", "resource": self.name(resource)}]);
        }
        let claim = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        self.claims.create(&PostParams::default(), &claim).await.unwrap()
    }

    /// A request for some of a pool.
    pub fn some(&self, resource: &str, quantity: i64) -> Value {
        json!({"requests": [{"name": "it", "resource": self.name(resource), "mode": "Shared", "quantity": quantity}]})
    }

    /// Waits until a claim is in a phase.
    pub async fn phase(&self, name: &str, phase: Phase) -> ClaimStatus {
        let begun = Instant::now();
        loop {
            let status = self.claims.get(name).await.unwrap().status.unwrap_or_default();
            if status.phase == phase {
                return status;
            }
            let hopeless = status.phase.is_final() || begun.elapsed() > SOON;
            assert!(!hopeless, "claim {name} should be {phase:?}: {status:?}\n{:?}", self.plane.path());
            sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn ledger(&self, name: &str) -> ResourceStatus {
        self.resources.get(&self.name(name)).await.unwrap().status.unwrap_or_default()
    }

    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let begun = Instant::now();
        while !holds().await {
            assert!(begun.elapsed() < SOON, "waited in vain: {what}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Frees the Lease that the killed controller of an earlier test left behind: a test may use a Lease far longer than it waits.
async fn hand_back(client: &Client) {
    let leases = Api::<Lease>::namespaced(client.clone(), "tenure-system");
    if leases.get_opt("tenure-controller").await.unwrap().is_some() {
        let free = Patch::Merge(json!({"spec": {"holderIdentity": ""}}));
        leases.patch("tenure-controller", &PatchParams::default(), &free).await.unwrap();
    }
}

/// Waits until a controller leads and has read everything.
pub async fn leads(controller: &mut Controller) {
    controller.logged("everything has been read: deciding", SOON).await.unwrap();
}

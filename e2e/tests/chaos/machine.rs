//! A machine whose last holder let go, and which nobody has seen clean since.

use std::time::{Duration, Instant};

use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use tenure::api::{
    Account, Adapter, Admission, Claim, ClaimReference, ClaimSpec, Identity, IdentityKind, OccupantState, Phase, Receipt, ReceiptKind,
    ReceiptSpec, Resource, ResourceSpec, Role,
};
use tokio::time::sleep;

use crate::{
    churn::{labelled, named, release},
    seen::{Seen, phase, uid},
};

/// After the namespace's name.
pub const NAME: &str = "machine";
const HOST_KEY: &str = "SHA256:chaos";
const PROVIDER: &str = "generic";
const BOUND: Duration = Duration::from_secs(20);

/// What a test holds on a machine.
pub struct Machine {
    claims: Api<Claim>,
    resources: Api<Resource>,
    resource: String,
    fence: i64,
}

impl Machine {
    /// Makes the machine and a claim on it, which is Active once `adapter`, whose client this is, has admitted it.
    pub async fn held(client: &Client, adapter: &str, namespace: &str) -> Self {
        let identity = Identity { kind: IdentityKind::Machine, key: Some(HOST_KEY.to_owned()) };
        let spec = ResourceSpec {
            identity: Some(identity),
            receipt_provider: Some(PROVIDER.to_owned()),
            adapters: vec![Adapter { user: adapter.to_owned(), roles: vec![Role::Reconcile] }],
            ..ResourceSpec::default()
        };
        let resources: Api<Resource> = Api::all(client.clone());
        let made = resources.create(&PostParams::default(), &labelled(namespace, NAME, NAME, spec)).await.unwrap();
        let resource = made.metadata.name.unwrap();
        let claims: Api<Claim> = Api::namespaced(client.clone(), namespace);
        let spec =
            ClaimSpec { requests: vec![named("only", resource.clone(), None, None)], max_wait_seconds: Some(20), ..ClaimSpec::default() };
        let claim = claims.create(&PostParams::default(), &Claim::new(NAME, spec)).await.unwrap();
        let mut machine = Self { claims, resources, resource, fence: 0 };
        machine.fence = machine.until(Phase::Granted).await.status.unwrap().grants[0].fence;
        let receipt = ReceiptSpec {
            resource: machine.resource.clone(),
            fence: machine.fence,
            claim: Some(ClaimReference { namespace: namespace.to_owned(), name: NAME.to_owned(), uid: uid(&claim) }),
            kind: ReceiptKind::Admission,
            admission: Some(Admission::Admitted),
            provider: Some(PROVIDER.to_owned()),
            provider_host_key: Some(HOST_KEY.to_owned()),
            reporter: Some(Account { user: adapter.to_owned(), node: None }),
            ..ReceiptSpec::default()
        };
        let receipts: Api<Receipt> = Api::all(client.clone());
        receipts.create(&PostParams::default(), &Receipt::new(&format!("{namespace}-admission"), receipt)).await.unwrap();
        machine.until(Phase::Active).await;
        machine
    }

    async fn until(&self, wanted: Phase) -> Claim {
        let started = Instant::now();
        loop {
            let claim = self.claims.get(NAME).await.unwrap();
            if phase(&claim) == wanted {
                return claim;
            }
            assert!(started.elapsed() < BOUND, "not {wanted:?} after {BOUND:?}: {:?}", claim.status);
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Its holder lets go. Nobody looked at it, so its share is owed a look from then on, and `seen` must never lose sight of that.
    pub async fn let_go(&self) {
        release(&self.claims, NAME).await;
    }

    /// Waits until the ledger says so.
    pub async fn owes_a_look(&self, seen: &Seen) {
        self.until(Phase::Released).await;
        let started = Instant::now();
        while !self.is_reconciling().await {
            assert!(started.elapsed() < BOUND, "the share isn't Reconciling after {BOUND:?}");
            sleep(Duration::from_millis(50)).await;
        }
        seen.lock().owes(&self.resource, self.fence);
    }

    /// Whether the released share alone occupies it, to be reconciled.
    pub async fn is_reconciling(&self) -> bool {
        let only = ListParams::default().fields(&format!("metadata.name={}", self.resource));
        let machine = self.resources.list(&only).await.unwrap().items.remove(0);
        let occupants = machine.status.unwrap_or_default().occupants;
        matches!(&occupants[..], [one] if one.fence == self.fence && one.state == OccupantState::Reconciling)
    }
}

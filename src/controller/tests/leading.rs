use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    controller::fake::{Asked, Log, Reaction, client, refusal},
    engine::event::Now,
    runtime::{
        clock::Clock,
        leader::{Election, Elector},
        shutdown,
    },
};

/// A store of one Lease and two ledgers, the higher of term 6.
#[derive(Clone, Default)]
struct Store {
    lease: Arc<Mutex<Option<Value>>>,
    version: Arc<AtomicI64>,
    /// How many writes of the Lease fail before the store sees them.
    broken: Arc<AtomicI64>,
}

impl Store {
    fn react(&self, asked: &Asked) -> Reaction {
        if asked.path.ends_with("/resources") {
            let ledger = |term: i64| json!({"status": {"term": term}});
            return match asked.query.contains("continue") {
                false => Reaction::Answer(200, json!({"metadata": {"continue": "more"}, "items": [ledger(6), json!({})]})),
                true => Reaction::Answer(200, json!({"metadata": {}, "items": [ledger(2)]})),
            };
        }
        let mut lease = self.lease.lock().unwrap();
        match (asked.method.as_str(), lease.as_ref()) {
            ("GET", Some(lease)) => Reaction::Answer(200, lease.clone()),
            ("GET", None) | ("PUT", None) => refusal(404, "NotFound", "tenure-controller"),
            ("PUT" | "POST", _) if self.broken.fetch_sub(1, Ordering::SeqCst) > 0 => Reaction::Break,
            ("PUT", Some(before)) if before["metadata"]["resourceVersion"] != asked.body["metadata"]["resourceVersion"] => {
                refusal(409, "Conflict", "tenure-controller")
            }
            ("POST", Some(_)) => refusal(409, "AlreadyExists", "tenure-controller"),
            _ => {
                let mut written = asked.body.clone();
                written["metadata"]["resourceVersion"] = json!(self.version.fetch_add(1, Ordering::SeqCst).to_string());
                *lease = Some(written.clone());
                Reaction::Answer(200, written)
            }
        }
    }

    fn holder(&self) -> String {
        self.lease.lock().unwrap().as_ref().unwrap()["spec"]["holderIdentity"].as_str().unwrap().to_owned()
    }

    fn term(&self) -> String {
        self.lease.lock().unwrap().as_ref().unwrap()["metadata"]["annotations"]["tenure.dev/term"].as_str().unwrap().to_owned()
    }

    fn steal(&self) {
        let mut lease = self.lease.lock().unwrap();
        let lease = lease.as_mut().unwrap();
        lease["spec"]["holderIdentity"] = json!("thief");
        lease["metadata"]["resourceVersion"] = json!(self.version.fetch_add(1, Ordering::SeqCst).to_string());
    }

    fn elector(&self, identity: &str) -> (Elector, Log) {
        let store = self.clone();
        let (client, log) = client(move |asked, _| store.react(asked));
        let started = tokio::time::Instant::now();
        let clock = Clock::from_fn(move || Now { wall: 0, steady: i64::try_from(started.elapsed().as_millis()).unwrap() });
        let election = Election {
            namespace: "tenure-system".into(),
            name: "tenure-controller".into(),
            identity: identity.into(),
            lease_duration: 15_000,
            renew_deadline: 10_000,
            retry_period: 2_000,
        };
        (Elector::new(client, clock, election), log)
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_takes_a_term_above_every_ledger_and_lease() {
    let store = Store::default();
    let (_trigger, shutdown) = shutdown::channel();
    let (mut first, _) = store.elector("first");
    assert_eq!(first.acquire(&shutdown).await.unwrap().term(), 7);
    assert_eq!((store.holder().as_str(), store.term().as_str()), ("first", "7"));
    first.hand_back().await.unwrap();
    assert_eq!(store.holder(), "");
    let (mut second, _) = store.elector("second");
    assert_eq!(second.acquire(&shutdown).await.unwrap().term(), 8);
    assert_eq!(store.elector("alone").0.adopt().await.unwrap().term(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_standby_waits_the_whole_lease_of_a_leader_that_is_gone() {
    let store = Store::default();
    let (_trigger, shutdown) = shutdown::channel();
    let (mut gone, _) = store.elector("gone");
    gone.acquire(&shutdown).await.unwrap();
    let (mut standby, _) = store.elector("standby");
    let before = tokio::time::Instant::now();
    standby.acquire(&shutdown).await.unwrap();
    let waited = before.elapsed();
    assert!(waited >= Duration::from_secs(15) && waited < Duration::from_secs(18), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_standby_never_takes_a_lease_that_is_renewed() {
    let store = Store::default();
    let (trigger, shutdown) = shutdown::channel();
    let (mut leader, _) = store.elector("leader");
    let leadership = leader.acquire(&shutdown).await.unwrap();
    let keeps = tokio::spawn(leader.keep(leadership.clone(), shutdown.clone()));
    let (mut standby, _) = store.elector("standby");
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(120)).await;
        trigger.fire();
    });
    assert!(standby.acquire(&shutdown).await.is_none());
    assert!(leadership.may_write());
    drop(keeps.await.unwrap());
    assert_eq!(store.holder(), "leader");
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_is_noticed_at_the_next_renewal() {
    let store = Store::default();
    let (_trigger, shutdown) = shutdown::channel();
    let (mut leader, _) = store.elector("leader");
    let leadership = leader.acquire(&shutdown).await.unwrap();
    store.steal();
    let leader = leader.keep(leadership.clone(), shutdown).await;
    assert!(!leadership.may_write());
    leadership.lost().await;
    assert!(leader.hand_back().await.is_err(), "what is another's is not handed back");
    assert_eq!(store.holder(), "thief");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_is_tried_again_until_the_deadline() {
    let store = Store::default();
    let (trigger, shutdown) = shutdown::channel();
    let (mut leader, _) = store.elector("leader");
    let leadership = leader.acquire(&shutdown).await.unwrap();
    store.broken.store(3, Ordering::SeqCst);
    let keeps = tokio::spawn(leader.keep(leadership.clone(), shutdown.clone()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(leadership.may_write());
    store.broken.store(1_000, Ordering::SeqCst);
    let before = tokio::time::Instant::now();
    leadership.lost().await;
    assert!(before.elapsed() <= Duration::from_secs(13), "{:?}", before.elapsed());
    trigger.fire();
    drop(keeps.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn who_leads_without_the_lease_keeps_leading() {
    let store = Store::default();
    let (elector, log) = store.elector("alone");
    let leadership = elector.adopt().await.unwrap();
    let asked = log.lock().unwrap().len();
    let (stop, stopped) = shutdown::channel();
    let keeper = tokio::spawn(elector.keep(leadership.clone(), stopped));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(leadership.may_write());
    assert_eq!(log.lock().unwrap().len(), asked, "there is no Lease to renew");
    stop.fire();
    keeper.await.unwrap().hand_back().await.unwrap();
    assert!(store.lease.lock().unwrap().is_none(), "nothing was handed back");
}

//! Controllers that are killed, frozen and doubled, on a real API server, while claims come and go.
//!
//! Whatever happens, each version of each Resource and Claim is checked as it is seen (`seen`). A failure names its seed; the
//! variable `TENURE_CHAOS_SEED` repeats its choices, though not its timing.

#![allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]

#[path = "chaos/churn.rs"]
mod churn;
#[path = "chaos/dice.rs"]
mod dice;
#[path = "chaos/machine.rs"]
mod machine;
#[path = "chaos/seen.rs"]
mod seen;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use churn::Churn;
use dice::{Dice, seed};
use e2e::{ControlPlane, Controller, shared};
use machine::Machine;
use seen::Seen;
use tokio::{
    sync::{Mutex, MutexGuard},
    task::JoinSet,
    time::sleep,
};

const ADAPTER: &str = "chaos-adapter";
const ELECTED: [&str; 3] = ["--lease-duration=3", "--renew-deadline=2", "--retry-period=1"];
const UNELECTED: [&str; 1] = ["--leader-election=false"];
const READY: Duration = Duration::from_secs(20);
/// The exit status of one that leads no more.
const LEADERSHIP_LOST: i32 = 10;

/// A namespace and its Resources, watched, with the cluster's controllers for itself.
struct Scene {
    control_plane: &'static ControlPlane,
    kubeconfig: &'static Path,
    seen: Seen,
    seed: u64,
    churn: Churn,
    machine: Option<Machine>,
    watchers: JoinSet<()>,
    /// One scene at a time: the controllers of two would serve one cluster.
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    async fn set(prefix: &str) -> Self {
        static ALONE: Mutex<()> = Mutex::const_new(());
        let alone = ALONE.lock().await;
        let control_plane = shared().await.unwrap();
        let kubeconfig = control_plane.install().await.unwrap();
        let seed = seed();
        let namespace = control_plane.new_namespace(prefix).await.unwrap();
        let client = control_plane.client_as(ADAPTER, &["system:masters"]).await.unwrap();
        let (seen, mut watchers) = (Seen::default(), JoinSet::new());
        seen.watch(&client, &namespace, &mut watchers).await;
        let churn = Churn::new(&client, &namespace, seen.clone(), Dice::new(seed)).await;
        Self { control_plane, kubeconfig, seen, seed, churn, machine: None, watchers, _alone: alone }
    }

    async fn controller(&self, name: &str, flags: &[&str]) -> Controller {
        self.control_plane.controller(name, self.kubeconfig, flags).await.unwrap()
    }

    /// A machine that is held, in a scene in which a controller runs.
    async fn hold_a_machine(&mut self) -> &Machine {
        let client = self.control_plane.client_as(ADAPTER, &["system:masters"]).await.unwrap();
        self.machine.insert(Machine::held(&client, ADAPTER, &self.churn.namespace).await)
    }

    /// Lets all come to rest, and asserts that nothing was ever seen that can't be, and that enough was seen to say so.
    async fn end(&mut self, least_held: usize) {
        self.churn.settle().await;
        if let Some(machine) = &self.machine {
            assert!(machine.is_reconciling().await, "the machine's debt was lost; seed {}", self.seed);
        }
        assert!(!self.watchers.is_empty() && self.watchers.try_join_next().is_none(), "nobody watched");
        let record = self.seen.lock();
        assert!(record.broken.is_empty(), "seed {}: {:#?}", self.seed, record.broken);
        let (held, ledgers, remade) = (record.held.len(), record.ledgers.len(), self.churn.remade);
        eprintln!("{held} claims were seen to hold, {ledgers} ledgers to change, {remade} Resources were made anew");
        assert!(held >= least_held, "only {held} claims ever held");
        assert!(remade > 0, "no Resource was deleted and made again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c9_l6_q8_kill_nine_while_claims_churn() {
    let mut scene = Scene::set("kill").await;
    let mut controller = scene.controller("kill-0", &ELECTED).await;
    controller.ready(READY).await.unwrap();
    scene.hold_a_machine().await.let_go().await;
    controller.kill().unwrap();
    controller = scene.controller("kill-1", &UNELECTED).await;
    scene.machine.as_ref().unwrap().owes_a_look(&scene.seen).await;

    let mut dice = Dice::new(scene.seed + 1);
    let (control_plane, kubeconfig) = (scene.control_plane, scene.kubeconfig);
    let killing = async {
        for life in 2..10 {
            sleep(dice.milliseconds(200, 2_500)).await;
            controller.kill().unwrap();
            // Those of one kind never meet another: the one before is dead.
            let flags = if life % 2 == 0 { &ELECTED[..] } else { &UNELECTED };
            controller = control_plane.controller(&format!("kill-{life}"), kubeconfig, flags).await.unwrap();
            controller.logged("everything has been read", READY).await.unwrap();
        }
    };
    tokio::join!(scene.churn.run(200, Duration::from_millis(150)), killing);
    scene.end(70).await;
    assert!(controller.ended().unwrap().is_none(), "the last controller ended by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn c9_a_frozen_leader_that_thaws_writes_nothing() {
    let mut scene = Scene::set("freeze").await;
    let mut first = scene.controller("freeze-1", &ELECTED).await;
    first.logged("everything has been read", READY).await.unwrap();
    let mut second = scene.controller("freeze-2", &ELECTED).await;
    scene.hold_a_machine().await.let_go().await;
    scene.machine.as_ref().unwrap().owes_a_look(&scene.seen).await;

    let seen = scene.seen.clone();
    let freezing = async {
        sleep(Duration::from_secs(3)).await;
        let term = term(&first).await;
        first.freeze().unwrap();
        second.logged("everything has been read", READY).await.unwrap();
        assert!(self::term(&second).await > term);
        until("the second grants", || seen.lock().ledgers.iter().any(|(_, wrote)| *wrote > term)).await;
        let thawed = Instant::now();
        first.thaw().unwrap();
        let status = first.wait(READY).await.unwrap();
        assert_eq!(status.code(), Some(LEADERSHIP_LOST), "the first ended otherwise");
        (term, thawed)
    };
    let ((), (term, thawed)) = tokio::join!(scene.churn.run(80, Duration::from_millis(150)), freezing);
    scene.end(30).await;
    assert!(second.ended().unwrap().is_none(), "the second ended by itself");
    let written = scene.seen.lock().ledgers.iter().filter(|(at, wrote)| *at >= thawed && *wrote == term).count();
    assert_eq!(written, 0, "the first wrote ledgers after it was thawed");
}

#[tokio::test(flavor = "multi_thread")]
async fn c9_two_without_election() {
    let mut scene = Scene::set("two").await;
    scene.seen.lock().two_lead = true;
    let mut first = scene.controller("two-1", &UNELECTED).await;
    let mut second = scene.controller("two-2", &UNELECTED).await;
    first.logged("everything has been read", READY).await.unwrap();
    second.logged("everything has been read", READY).await.unwrap();
    scene.hold_a_machine().await.let_go().await;
    scene.machine.as_ref().unwrap().owes_a_look(&scene.seen).await;

    scene.churn.run(80, Duration::from_millis(150)).await;
    scene.end(30).await;
    assert!(first.ended().unwrap().is_none() && second.ended().unwrap().is_none(), "one of them ended by itself");
}

/// The term that a leader counts its writes by.
async fn term(controller: &Controller) -> i64 {
    let metrics = controller.metrics().await.unwrap();
    let line = metrics.lines().find(|line| line.contains("term") && !line.starts_with('#'));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no term in {metrics}"))
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < READY, "{what}: not within {READY:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

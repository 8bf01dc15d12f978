use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    api::ResourceStatus,
    controller::{
        apply::{Apply, Error, Means},
        fake::{Asked, Log, Reaction, claim, client, refusal},
        notice,
    },
    engine::{
        action::{Body, Urgency, Write},
        event::{Event, Now, Outcome, Target},
    },
    runtime::{
        audit::{Audit, Destination, Flush},
        clock::Clock,
        leader::Leadership,
        metrics::Metrics,
    },
};

struct Bench {
    apply: Apply,
    events: mpsc::Receiver<Vec<Event>>,
    tasks: JoinSet<Result<(), Error>>,
    log: Log,
    time: Arc<AtomicI64>,
    metrics: Arc<Metrics>,
}

fn bench(audit: Audit, react: impl Fn(&Asked, usize) -> Reaction + Send + Sync + 'static) -> Bench {
    let (client, log) = client(react);
    let time = Arc::new(AtomicI64::new(0));
    let reads = time.clone();
    let clock = Clock::from_fn(move || Now { wall: 0, steady: reads.load(Ordering::SeqCst) });
    let metrics = Arc::new(Metrics::new());
    let (sender, events) = mpsc::channel(16);
    let (notes, _writer) = notice::channel(metrics.clone());
    let leadership = Leadership::new(3, clock.clone(), 10_000);
    let means = Means { clock, leadership, metrics: metrics.clone(), audit, notes, events: sender };
    Bench { apply: Apply::new(client, 1, means), events, tasks: JoinSet::new(), log, time, metrics }
}

fn write(name: &str, urgency: Urgency) -> Write {
    Write {
        number: 1,
        target: Target::Claim("n".into(), name.into()),
        uid: format!("uid-{name}"),
        resource_version: "1".into(),
        body: Body::Claim(Arc::default()),
        urgency,
        cause: "test",
    }
}

impl Bench {
    async fn one(&mut self, write: Write) -> Vec<Event> {
        assert!(self.apply.submit(write).is_none());
        self.apply.start(&mut self.tasks);
        self.events.recv().await.unwrap()
    }

    fn asked(&self, method: &str) -> Vec<String> {
        let log = self.log.lock().unwrap();
        log.iter().filter(|asked| asked.method == method).map(|asked| asked.path.rsplit("/claims/").next().unwrap().to_owned()).collect()
    }
}

fn written(version: &str) -> Reaction {
    Reaction::Answer(200, json!({"kind": "Claim", "metadata": {"resourceVersion": version}}))
}

#[tokio::test(start_paused = true)]
async fn a_write_that_took_effect_reports_the_new_version() {
    let mut bench = bench(Audit::off(), |_, _| written("2"));
    let events = bench.one(write("a", Urgency::Decision)).await;
    assert!(matches!(&events[..], [Event::Wrote { outcome: Outcome::Written { resource_version }, .. }] if resource_version == "2"));
    let log = bench.log.lock().unwrap();
    assert_eq!((log.len(), &log[0].body["metadata"]["resourceVersion"]), (1, &json!("1")));
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_read_back_and_reported_with_what_is_there() {
    let mut bench = bench(Audit::off(), |asked, _| match asked.method.as_str() {
        "PUT" => refusal(409, "Conflict", "a"),
        _ => Reaction::Answer(200, claim("a", 7)),
    });
    let events = bench.one(write("a", Urgency::Decision)).await;
    let [Event::Claim(object), Event::Wrote { outcome: Outcome::Refused { permanent: false, .. }, .. }] = &events[..] else {
        unreachable!("{events:?}")
    };
    assert_eq!(object.metadata.resource_version.as_deref(), Some("7"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_unknown_and_read_back_never_sent_again() {
    for reaction in ["break", "silence", "500"] {
        let mut bench = bench(Audit::off(), move |asked, _| match (asked.method.as_str(), reaction) {
            ("PUT", "break") => Reaction::Break,
            ("PUT", "silence") => Reaction::Silence,
            ("PUT", _) => refusal(500, "InternalError", "a"),
            _ => Reaction::Answer(200, claim("a", 1)),
        });
        let events = bench.one(write("a", Urgency::Decision)).await;
        assert!(matches!(&events[..], [Event::Claim(_), Event::Wrote { outcome: Outcome::Unknown, .. }]), "{reaction}: {events:?}");
        assert_eq!(bench.asked("PUT").len(), 1, "{reaction}");
    }
}

#[tokio::test(start_paused = true)]
async fn s5_only_the_objects_own_404_is_its_absence() {
    let mut bench = bench(Audit::off(), |asked, before| match (asked.method.as_str(), before) {
        ("PUT", _) => refusal(404, "NotFound", "a"),
        (_, 0) => refusal(403, "Forbidden", "a"),
        (_, 1) => Reaction::Answer(404, Value::String("404 page not found".into())),
        _ => refusal(404, "NotFound", "a"),
    });
    let events = bench.one(write("a", Urgency::Decision)).await;
    let [Event::ClaimGone { uid, .. }, Event::Wrote { outcome: Outcome::Refused { .. }, .. }] = &events[..] else {
        unreachable!("{events:?}")
    };
    assert_eq!((uid.as_str(), bench.asked("GET").len()), ("", 3));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_surely_had_no_effect_is_sent_again() {
    let mut bench = bench(Audit::off(), |_, before| if before < 3 { refusal(429, "TooManyRequests", "a") } else { written("2") });
    let events = bench.one(write("a", Urgency::Decision)).await;
    assert!(matches!(&events[..], [Event::Wrote { outcome: Outcome::Written { .. }, .. }]), "{events:?}");
    assert_eq!(bench.asked("PUT").len(), 4);
    assert_eq!(bench.metrics.write_retries.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn sending_again_has_an_end() {
    let mut bench = bench(Audit::off(), |asked, _| match asked.method.as_str() {
        "PUT" => refusal(429, "TooManyRequests", "a"),
        _ => Reaction::Answer(200, claim("a", 1)),
    });
    let events = bench.one(write("a", Urgency::Decision)).await;
    assert!(matches!(&events[..], [Event::Claim(_), Event::Wrote { outcome: Outcome::Refused { permanent: false, .. }, .. }]));
    assert_eq!(bench.asked("PUT").len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_stops_every_write_and_ends_the_workers() {
    let mut bench = bench(Audit::off(), |_, _| written("2"));
    bench.time.store(10_000, Ordering::SeqCst);
    assert!(bench.apply.submit(write("a", Urgency::Decision)).is_none());
    bench.apply.start(&mut bench.tasks);
    assert_eq!(bench.tasks.join_next().await.unwrap().unwrap(), Err(Error::LeadershipLost));
    assert!(bench.log.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lease_lost_while_a_write_waits_to_be_sent_again_stops_it() {
    let time = Arc::new(AtomicI64::new(0));
    let moves = time.clone();
    let mut bench = bench(Audit::off(), move |_, _| {
        moves.store(10_000, Ordering::SeqCst);
        refusal(429, "TooManyRequests", "a")
    });
    let shared = bench.time.clone();
    assert!(bench.apply.submit(write("a", Urgency::Decision)).is_none());
    bench.apply.start(&mut bench.tasks);
    let frozen = tokio::spawn(async move {
        while time.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        shared.store(10_000, Ordering::SeqCst);
    });
    assert_eq!(bench.tasks.join_next().await.unwrap().unwrap(), Err(Error::LeadershipLost));
    frozen.await.unwrap();
    assert_eq!(bench.asked("PUT").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_most_urgent_write_is_sent_first() {
    let mut bench = bench(Audit::off(), |_, _| written("2"));
    for (name, urgency) in [("c", Urgency::Display), ("b", Urgency::Verdict), ("a", Urgency::Decision)] {
        assert!(bench.apply.submit(write(name, urgency)).is_none());
    }
    bench.apply.start(&mut bench.tasks);
    for _ in 0..3 {
        bench.events.recv().await.unwrap();
    }
    assert_eq!(bench.asked("PUT"), ["a/status", "b/status", "c/status"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_reported_and_the_write_counts_as_refused() {
    let mut bench = bench(Audit::off(), |asked, _| match asked.method.as_str() {
        "PUT" => refusal(409, "Conflict", "a"),
        _ => Reaction::Answer(200, json!({"metadata": {"name": "a"}, "spec": {"requests": 3}})),
    });
    let events = bench.one(write("a", Urgency::Decision)).await;
    assert!(matches!(&events[..], [Event::Wrote { outcome: Outcome::Refused { .. }, .. }]), "{events:?}");
    assert!(bench.metrics.encode().unwrap().contains("tenure_undecodable_objects_total{source=\"Claim\"} 1"));
}

fn ledger(revision: i64) -> Arc<ResourceStatus> {
    Arc::new(ResourceStatus { revision, term: 3, ..ResourceStatus::default() })
}

fn ledger_write() -> Write {
    Write {
        number: 1,
        target: Target::Resource("r".into()),
        uid: "uid-r".into(),
        body: Body::Ledger { after: ledger(8), before: ledger(7) },
        ..write("r", Urgency::Decision)
    }
}

fn resource(revision: i64) -> Value {
    json!({"metadata": {"name": "r", "uid": "uid-r", "resourceVersion": "9"}, "spec": {}, "status": {"revision": revision, "term": 3}})
}

async fn audited(name: &str, react: impl Fn(&Asked, usize) -> Reaction + Send + Sync + 'static) -> Vec<Value> {
    let path = std::env::temp_dir().join(format!("tenure-applying-{name}-{}", std::process::id()));
    let (audit, flush): (Audit, Flush) = Audit::open(&Destination::File(path.clone())).unwrap();
    let mut bench = bench(audit, react);
    bench.one(ledger_write()).await;
    bench.tasks.shutdown().await;
    drop(bench);
    flush.wait();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn every_ledger_write_that_is_confirmed_leaves_one_line() {
    let lines = audited("written", |_, _| written("2")).await;
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert_eq!((&line["resource"], &line["outcome"], &line["term"]), (&json!("r"), &json!("Written"), &json!(3)));
    assert_eq!((&line["before"]["revision"], &line["after"]["revision"]), (&json!(7), &json!(8)));

    let lost_but_there = |asked: &Asked, _| if asked.method == "PUT" { Reaction::Break } else { Reaction::Answer(200, resource(8)) };
    assert_eq!(audited("there", lost_but_there).await[0]["outcome"], "ReadBack");
    let lost = |asked: &Asked, _| if asked.method == "PUT" { Reaction::Break } else { Reaction::Answer(200, resource(7)) };
    assert!(audited("lost", lost).await.is_empty());
}

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use serde_json::json;

use crate::{
    controller::{
        fake::{Asked, Reaction, claim, client, refusal},
        run::{Decider, Ended},
        serve::Lead,
    },
    engine::{
        action::{Action, Body, Urgency, Write},
        clockwork::Deadlines,
        event::{Event, Now, Outcome, ScopeKind, Target},
    },
    runtime::{
        audit::Audit,
        clock::Clock,
        health::Health,
        leader::Leadership,
        metrics::Metrics,
        shutdown::{self, Shutdown, Trigger},
    },
};

type Script = Box<dyn FnMut(&Event) -> Vec<Action> + Send>;

/// Remembers what it was told, and acts by a script.
struct Scripted {
    told: Arc<Mutex<Vec<(Now, String)>>>,
    script: Script,
}

impl Decider for Scripted {
    fn step(&mut self, now: Now, events: Vec<Event>) -> Vec<Action> {
        let mut actions = Vec::new();
        for event in events {
            self.told.lock().unwrap().push((now, format!("{event:?}")));
            actions.extend((self.script)(&event));
        }
        actions
    }

    fn next_deadline(&self) -> Deadlines {
        Deadlines::default()
    }
}

struct Bench {
    told: Arc<Mutex<Vec<(Now, String)>>>,
    lead: Lead,
    time: Arc<AtomicI64>,
    trigger: Trigger,
    shutdown: Shutdown,
}

fn bench(react: impl Fn(&Asked, usize) -> Reaction + Send + Sync + 'static) -> Bench {
    let (client, _) = client(react);
    let time = Arc::new(AtomicI64::new(0));
    let reads = time.clone();
    let started = tokio::time::Instant::now();
    let clock = Clock::from_fn(move || {
        let passed = i64::try_from(started.elapsed().as_millis()).unwrap();
        Now { wall: passed, steady: passed + reads.load(Ordering::SeqCst) }
    });
    let lead = Lead {
        client,
        leadership: Leadership::new(3, clock.clone(), 3_600_000),
        metrics: Arc::new(Metrics::new()),
        health: Health::new(clock.clone()),
        clock,
        audit: Audit::off(),
        identity: "me".into(),
        concurrency: 4,
        renewals: None,
    };
    let (trigger, shutdown) = shutdown::channel();
    Bench { told: Arc::default(), lead, time, trigger, shutdown }
}

impl Bench {
    fn decider(&self, script: impl FnMut(&Event) -> Vec<Action> + Send + 'static) -> Scripted {
        Scripted { told: self.told.clone(), script: Box::new(script) }
    }

    fn told(&self, word: &str) -> Vec<Now> {
        self.told.lock().unwrap().iter().filter(|(_, event)| event.starts_with(word)).map(|(now, _)| *now).collect()
    }
}

/// Everything is empty, but for what `other` answers.
fn quiet(asked: &Asked, other: impl Fn(&Asked) -> Option<Reaction>) -> Reaction {
    if let Some(reaction) = other(asked) {
        return reaction;
    }
    let end =
        json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}}});
    match asked.query.as_str() {
        query if query.contains("sendInitialEvents") => Reaction::Lines(vec![end], false),
        query if query.contains("watch=true") => Reaction::Lines(Vec::new(), false),
        _ => Reaction::Answer(200, json!({"metadata": {"resourceVersion": "5"}, "items": []})),
    }
}

#[tokio::test(start_paused = true)]
async fn decisions_begin_only_after_every_watch_has_filled() {
    let opened = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = opened.clone();
    let late = Arc::new(AtomicI64::new(0));
    let fails = late.clone();
    let bench = bench(move |asked, _| {
        quiet(asked, |asked| {
            if asked.query.contains("sendInitialEvents") {
                seen.lock().unwrap().insert(asked.path.rsplit('/').next().unwrap().to_owned());
                if asked.path.ends_with("/leases") && fails.fetch_add(1, Ordering::SeqCst) < 3 {
                    return Some(refusal(503, "ServiceUnavailable", ""));
                }
            }
            None
        })
    });
    let trigger = bench.trigger.clone();
    let (decider, health) = (
        bench.decider(move |event| {
            if matches!(event, Event::Filled) {
                trigger.fire();
            }
            Vec::new()
        }),
        bench.lead.health.clone(),
    );
    assert!(!health.is_ready());
    assert_eq!(bench.lead.clone().run(decider, &bench.shutdown).await, Ended::Asked);
    assert_eq!(bench.told("Filled").len(), 1);
    assert_eq!(late.load(Ordering::SeqCst), 4);
    let expected = ["claims", "leases", "namespaces", "pods", "receipts", "resourceclasses", "resources"];
    assert_eq!(opened.lock().unwrap().iter().collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_write_is_carried_out_and_its_outcome_told() {
    let bench = bench(|asked, _| {
        quiet(asked, |asked| (asked.method == "PUT").then(|| Reaction::Answer(200, json!({"metadata": {"resourceVersion": "8"}}))))
    });
    let trigger = bench.trigger.clone();
    let decider = bench.decider(move |event| match event {
        Event::Filled => vec![Action::Write(Write {
            number: 1,
            target: Target::Claim("n".into(), "c".into()),
            uid: "u".into(),
            resource_version: "7".into(),
            body: Body::Claim(Arc::default()),
            urgency: Urgency::Decision,
            cause: "test",
        })],
        Event::Wrote { outcome: Outcome::Written { resource_version }, .. } => {
            assert_eq!(resource_version, "8");
            trigger.fire();
            Vec::new()
        }
        _ => Vec::new(),
    });
    assert_eq!(bench.lead.clone().run(decider, &bench.shutdown).await, Ended::Asked);
    assert_eq!(bench.told("Wrote").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_followed_on_demand_and_one_that_is_not_served_is_unreadable() {
    let bench = bench(|asked, _| {
        quiet(asked, |asked| match asked.path.as_str() {
            "/apis/batch/v1" => Some(Reaction::Answer(
                200,
                json!({"resources": [{"name": "jobs/status", "kind": "Job", "verbs": ["get"]},
                    {"name": "jobs", "kind": "Job", "verbs": ["list", "watch"]}]}),
            )),
            "/apis/example.dev/v1" => Some(Reaction::Answer(404, "404 page not found".into())),
            _ => None,
        })
    });
    let trigger = bench.trigger.clone();
    let kind = |api_version: &str, kind: &str| ScopeKind { api_version: api_version.into(), kind: kind.into() };
    let mut left = 4;
    let decider = bench.decider(move |event| match event {
        Event::Filled => ["batch/v1 Job", "example.dev/v1 Run", "../v1 Pod"]
            .into_iter()
            .filter_map(|text| text.split_once(' '))
            .map(|(version, name)| Action::Follow(kind(version, name)))
            .collect(),
        Event::ScopeKindFilled { .. } | Event::ScopeKindUnreadable { .. } => {
            left -= 1;
            if left == 0 {
                trigger.fire();
            }
            Vec::new()
        }
        _ => Vec::new(),
    });
    assert_eq!(bench.lead.clone().run(decider, &bench.shutdown).await, Ended::Asked);
    assert_eq!(bench.told("ScopeKindFilled { kind: ScopeKind { api_version: \"batch/v1\"").len(), 1);
    assert_eq!(bench.told("ScopeKindFilled { kind: ScopeKind { api_version: \"v1\", kind: \"Pod\"").len(), 1);
    assert_eq!(bench.told("ScopeKindUnreadable").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn l11_time_in_which_the_process_stood_still_is_told_as_of_its_beginning() {
    let bench = bench(|asked, _| quiet(asked, |_| None));
    let (trigger, time) = (bench.trigger.clone(), bench.time.clone());
    let decider = bench.decider(move |event| {
        match event {
            Event::Filled => {
                let time = time.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_secs(20)).await;
                    time.store(60_000, Ordering::SeqCst);
                });
            }
            Event::ReadingBack => trigger.fire(),
            _ => {}
        }
        Vec::new()
    });
    assert_eq!(bench.lead.clone().run(decider, &bench.shutdown).await, Ended::Asked);
    let (lost, back) = (bench.told("ReadingLost"), bench.told("ReadingBack"));
    assert_eq!((lost.len(), back.len()), (1, 1));
    assert!(lost[0].steady < 30_000 && back[0].steady > 80_000, "{lost:?} {back:?}");
}

#[tokio::test(start_paused = true)]
async fn losing_the_lease_ends_the_loop_with_nothing_more_written() {
    let bench = bench(|asked, _| quiet(asked, |asked| (asked.method == "PUT").then(|| Reaction::Answer(200, claim("c", 8)))));
    let leadership = bench.lead.leadership.clone();
    let decider = bench.decider(move |event| {
        if matches!(event, Event::Filled) {
            leadership.lose();
        }
        Vec::new()
    });
    assert_eq!(bench.lead.clone().run(decider, &bench.shutdown).await, Ended::LeadershipLost);
}

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
    time::timeout,
};

use crate::{
    api::ResourceClass,
    controller::{
        fake::{Asked, Log, Reaction, class, client, refusal},
        pulse::Pulse,
        reader::{Change, Collection, Reader},
    },
    engine::event::Event,
    runtime::{clock::Clock, metrics::Metrics},
};

struct Bench {
    events: mpsc::Receiver<Vec<Event>>,
    changes: std::sync::mpsc::Receiver<String>,
    log: Log,
    pulse: Arc<Pulse>,
    task: JoinHandle<()>,
}

/// Changes as words: `+name@version`, `-name` (`-name!` when its last state was told), `?name`, `all`, `ill`.
fn word(change: Change<ResourceClass>) -> String {
    match change {
        Change::Seen(object) => {
            format!("+{}@{}", object.metadata.name.unwrap_or_default(), object.metadata.resource_version.unwrap_or_default())
        }
        Change::Undecodable(identity, _) => format!("?{}", identity.key),
        Change::Deleted(identity) if identity.uid.is_empty() => format!("-{}", identity.key),
        Change::Deleted(identity) => format!("-{}!", identity.key),
        Change::Filled => "all".into(),
        Change::Unreadable(_) => "ill".into(),
        Change::Review => "review".into(),
    }
}

fn bench(react: impl Fn(&Asked, usize) -> Reaction + Send + Sync + 'static) -> Bench {
    let (client, log) = client(react);
    let (sender, events) = mpsc::channel(64);
    let (words, changes) = std::sync::mpsc::channel();
    let pulse = Arc::new(Pulse::new(Clock::machine()));
    let reader = Reader {
        client,
        collection: Collection { source: "things".into(), path: "/things".into(), fields: None, silence: Duration::from_secs(100) },
        pulse: pulse.clone(),
        metrics: Arc::new(Metrics::new()),
        nudge: Arc::new(Notify::new()),
        events: sender,
        barrier: None,
        convert: move |change, events: &mut Vec<Event>| {
            words.send(word(change)).unwrap();
            events.push(Event::Filled);
        },
    };
    Bench { events, changes, log, pulse, task: tokio::spawn(reader.run::<ResourceClass>()) }
}

impl Bench {
    /// The next so many changes.
    async fn words(&mut self, count: usize) -> String {
        let mut words = Vec::new();
        while words.len() < count {
            timeout(Duration::from_secs(2_000), self.events.recv()).await.unwrap().unwrap();
            words.extend(self.changes.try_iter());
        }
        assert_eq!(words.len(), count, "{words:?}");
        words.join(" ")
    }

    fn queries(&self) -> Vec<String> {
        self.log.lock().unwrap().iter().map(|asked| asked.query.clone()).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn added(name: &str, version: u64) -> Value {
    json!({"type": "ADDED", "object": class(name, version, json!({}))})
}

fn bookmark(version: u64, end: bool) -> Value {
    let annotations = if end { json!({"k8s.io/initial-events-end": "true"}) } else { json!({}) };
    json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": version.to_string(), "annotations": annotations}}})
}

fn streams(asked: &Asked) -> bool {
    asked.query.contains("sendInitialEvents")
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_reported_and_the_rest_is_read() {
    let mut bench = bench(|_, _| {
        let odd = json!({"type": "ADDED", "object": class("odd", 2, json!({"prefix": 7}))});
        let odd_again = json!({"type": "MODIFIED", "object": class("odd", 5, json!({"onDemand": "very"}))});
        Reaction::Lines(vec![added("a", 1), odd, added("b", 3), bookmark(4, true), odd_again, added("c", 6)], false)
    });
    assert_eq!(bench.words(6).await, "+a@1 ?odd +b@3 all ?odd +c@6");
    assert!(bench.pulse.failing_since().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_resumed_from_the_last_version_seen() {
    let mut bench = bench(|asked, before| match (streams(asked), before) {
        (true, _) => Reaction::Lines(vec![added("a", 1), bookmark(4, true), bookmark(9, false)], true),
        (false, 1) => Reaction::Break,
        _ => Reaction::Lines(vec![added("b", 12)], false),
    });
    assert_eq!(bench.words(3).await, "+a@1 all +b@12");
    assert!(bench.queries()[1..].iter().all(|query| query.ends_with("resourceVersion=9")), "{:?}", bench.queries());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_was_missed_is_reported_by_the_next_reading_of_everything() {
    let mut bench = bench(|asked, before| match (streams(asked), before) {
        (true, 0) => Reaction::Lines(vec![added("a", 1), added("b", 2), bookmark(4, true)], true),
        (true, _) => Reaction::Lines(vec![added("b", 2), bookmark(30, true)], false),
        (false, _) => refusal(410, "Expired", ""),
    });
    assert_eq!(bench.words(6).await, "+a@1 +b@2 all +b@2 -a all");
}

#[tokio::test(start_paused = true)]
async fn a_namesake_that_replaced_another_unseen_is_reported_as_gone_first() {
    let mut bench = bench(|_, _| {
        let mut other = added("a", 7);
        other["object"]["metadata"]["uid"] = json!("another");
        Reaction::Lines(vec![added("a", 1), bookmark(4, true), other], false)
    });
    assert_eq!(bench.words(4).await, "+a@1 all -a +a@7");
}

#[tokio::test(start_paused = true)]
async fn without_streaming_lists_pages_are_read() {
    let mut bench = bench(|asked, _| {
        if streams(asked) {
            return refusal(422, "Invalid", "");
        }
        let page = |items: Value, next: &str| {
            Reaction::Answer(200, json!({"metadata": {"resourceVersion": "8", "continue": next}, "items": items}))
        };
        match asked.query.as_str() {
            "limit=500" => page(json!([class("a", 1, json!({})), class("odd", 2, json!({"prefix": 7}))]), "more"),
            "limit=500&continue=more" => page(json!([class("b", 3, json!({}))]), ""),
            _ => Reaction::Lines(vec![added("c", 9)], false),
        }
    });
    assert_eq!(bench.words(5).await, "+a@1 ?odd +b@3 all +c@9");
    assert!(bench.queries().last().unwrap().ends_with("resourceVersion=8"));
}

#[tokio::test(start_paused = true)]
async fn s5_what_can_not_be_listed_any_more_is_unreadable_and_nothing_is_gone() {
    let mut bench = bench(|asked, before| match (streams(asked), before) {
        (true, 0) => Reaction::Lines(vec![added("a", 1), bookmark(4, true)], true),
        (true, 3..) => Reaction::Lines(vec![added("a", 1), bookmark(9, true)], false),
        _ => refusal(403, "Forbidden", ""),
    });
    assert_eq!(bench.words(3).await, "+a@1 all ill");
    assert!(bench.pulse.failing_since().is_some());
    let mut rest = Vec::new();
    while rest.last().map(String::as_str) != Some("all") {
        timeout(Duration::from_secs(200), bench.events.recv()).await.unwrap().unwrap();
        rest.extend(bench.changes.try_iter());
    }
    assert!(rest.iter().all(|word| !word.starts_with('-')), "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_begun_again_and_silence_alone_makes_nothing_unreadable() {
    let mut bench = bench(|asked, before| match (streams(asked), before) {
        (true, _) => Reaction::Lines(vec![added("a", 1), bookmark(4, true)], false),
        (false, 1..=8) => Reaction::Lines(Vec::new(), false),
        (false, _) => Reaction::Lines(vec![added("b", 6)], false),
    });
    assert_eq!(bench.words(3).await, "+a@1 all +b@6");
    assert!(bench.pulse.failing_since().is_none());
    assert!(bench.queries()[1..].iter().all(|query| query.contains("resourceVersion=4")));
}

#[tokio::test(start_paused = true)]
async fn l4_a_deletion_is_told_after_the_last_state_and_says_so() {
    let mut bench = bench(|_, _| {
        let deleted = |name: &str, version, spec| json!({"type": "DELETED", "object": class(name, version, spec)});
        Reaction::Lines(
            vec![added("a", 1), added("b", 2), bookmark(3, true), deleted("a", 4, json!({})), deleted("b", 5, json!({"prefix": 7}))],
            false,
        )
    });
    assert_eq!(bench.words(6).await, "+a@1 +b@2 all +a@4 -a! -b");
}

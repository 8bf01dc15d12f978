//! Whether the API can be read at all: while it can't, holders' time stands still (L11).

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use http::{Method, header::DATE};
use kube::Client;
use tokio::{sync::mpsc, time::sleep};

use super::{
    call::{call, request},
    pulse::Pulse,
};
use crate::{
    engine::event::Event,
    runtime::{clock::Clock, metrics::Metrics},
};

/// A source that fails for so long is lost. Milliseconds.
const PATIENCE: i64 = 3_000;
/// Nothing is taken as read again sooner after it was lost, so that what waited can arrive. Milliseconds.
const CALM: i64 = 1_000;
/// How often the API server is asked, and how long it may take.
const EVERY: Duration = Duration::from_secs(2);
const LIMIT: Duration = Duration::from_secs(3);
/// A probe that succeeded is good for so long: the pause, the limit, and a second. Milliseconds.
const GOOD_FOR: i64 = 6_000;
/// How often the clocks' difference is reported. Milliseconds.
const SKEW_EVERY: i64 = 30_000;
/// The cheapest read that goes to the store.
const PATH: &str = "/apis/tenure.dev/v1alpha1/resourceclasses?limit=1";

/// When the last successful probe was begun. Milliseconds of the steady clock.
#[derive(Debug)]
pub struct Probe(AtomicI64);

impl Probe {
    /// Good as of now.
    #[must_use]
    pub fn new(now: i64) -> Self {
        Self(AtomicI64::new(now))
    }

    /// Asks the API server every two seconds, for ever.
    pub async fn run(self: Arc<Self>, client: Client, clock: Clock, metrics: Arc<Metrics>, events: mpsc::Sender<Vec<Event>>) {
        let mut reported = None;
        loop {
            let begun = clock.now();
            let answer = match request(Method::GET, PATH, Vec::new()) {
                Ok(request) => call(&client, request, LIMIT).await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(answer) if answer.is_good() => {
                    self.0.store(begun.steady, Ordering::Relaxed);
                    let due = reported.is_none_or(|at| begun.steady - at >= SKEW_EVERY);
                    let date = answer.headers.get(DATE).and_then(|date| date.to_str().ok());
                    if let Some(ahead) = date.filter(|_| due).and_then(|date| ahead(date, begun.wall, clock.now().wall)) {
                        reported = Some(begun.steady);
                        metrics.clock_skew.set(ahead);
                        if events.send(vec![Event::ClockSkew { milliseconds: ahead }]).await.is_err() {
                            return;
                        }
                    }
                }
                Ok(answer) => tracing::debug!(message = answer.refusal().message, "the API server can't be read"),
                Err(error) => tracing::debug!(%error, "the API server can't be read"),
            }
            sleep(EVERY).await;
        }
    }
}

/// How far the local clock is ahead of a `Date` header, which has whole seconds, read between two moments. Milliseconds.
fn ahead(date: &str, before: i64, after: i64) -> Option<i64> {
    let server = jiff::fmt::rfc2822::parse(date).ok()?.timestamp().as_millisecond();
    // The server's clock was somewhere in this second at some moment between the two: no difference that this explains counts.
    if server > after {
        Some(after - server)
    } else if server + 999 < before {
        Some(before - server - 999)
    } else {
        Some(0)
    }
}

/// Decides whether the API can be read.
#[derive(Debug)]
pub struct Reading {
    sources: Vec<Arc<Pulse>>,
    chatty: Option<(Arc<Pulse>, i64)>,
    probe: Arc<Probe>,
    lost_at: Option<i64>,
}

impl Reading {
    /// All of `sources` must be readable, and `chatty` must not be silent for longer than its limit (milliseconds).
    #[must_use]
    pub fn new(sources: Vec<Arc<Pulse>>, chatty: Option<(Arc<Pulse>, i64)>, probe: Arc<Probe>) -> Self {
        Self { sources, chatty, probe, lost_at: None }
    }

    /// This process stood still until `now`: nothing of that time was read.
    pub fn stood_still(&mut self, now: i64) -> Option<Event> {
        let first = self.lost_at.is_none();
        self.lost_at = Some(now);
        first.then_some(Event::ReadingLost)
    }

    /// What changed, if anything. Milliseconds of the steady clock.
    pub fn judge(&mut self, now: i64) -> Option<Event> {
        let probed = self.probe.0.load(Ordering::Relaxed);
        let silent = self.chatty.as_ref().is_some_and(|(pulse, limit)| now - pulse.heard_at() > *limit);
        match self.lost_at {
            None => {
                let failing = self.sources.iter().filter_map(|source| source.failing_since()).any(|since| now - since >= PATIENCE);
                let lost = failing || silent || now - probed > GOOD_FOR;
                lost.then(|| {
                    self.lost_at = Some(now);
                    Event::ReadingLost
                })
            }
            Some(at) => {
                let all_good = self.sources.iter().all(|source| source.failing_since().is_none());
                let back = all_good && !silent && probed >= at && now - at >= CALM;
                back.then(|| {
                    self.lost_at = None;
                    Event::ReadingBack
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event::Now;

    struct Bench {
        time: Arc<AtomicI64>,
        pulse: Arc<Pulse>,
        probe: Arc<Probe>,
        reading: Reading,
    }

    impl Bench {
        fn new() -> Self {
            let time = Arc::new(AtomicI64::new(0));
            let reads = time.clone();
            let pulse = Arc::new(Pulse::new(Clock::from_fn(move || Now { wall: 0, steady: reads.load(Ordering::SeqCst) })));
            pulse.good();
            let probe = Arc::new(Probe::new(0));
            let reading = Reading::new(vec![pulse.clone()], Some((pulse.clone(), 10_000)), probe.clone());
            Self { time, pulse, probe, reading }
        }

        fn at(&mut self, now: i64) -> Option<&'static str> {
            self.time.store(now, Ordering::SeqCst);
            self.reading.judge(now).map(|event| if matches!(event, Event::ReadingLost) { "lost" } else { "back" })
        }

        fn probed(&self, at: i64) {
            self.probe.0.store(at, Ordering::SeqCst);
        }
    }

    #[test]
    fn l11_a_source_that_fails_for_seconds_is_lost_once_and_back_once() {
        let mut bench = Bench::new();
        bench.probed(5_000);
        assert_eq!(bench.at(5_000), None);
        bench.pulse.fail();
        assert_eq!(bench.at(7_999), None);
        assert_eq!(bench.at(8_000), Some("lost"));
        assert_eq!(bench.at(9_000), None);
        bench.pulse.good();
        assert_eq!(bench.at(9_500), None, "no probe was begun since");
        bench.probed(9_000);
        assert_eq!(bench.at(9_600), Some("back"));
        assert_eq!(bench.at(9_700), None);
    }

    #[test]
    fn l11_silence_where_there_is_never_any_is_a_loss() {
        let mut bench = Bench::new();
        bench.probed(10_000);
        assert_eq!(bench.at(10_000), None);
        assert_eq!(bench.at(10_001), Some("lost"));
    }

    #[test]
    fn l11_a_probe_without_an_answer_is_a_loss() {
        let mut bench = Bench::new();
        assert_eq!(bench.at(6_000), None);
        assert_eq!(bench.at(6_001), Some("lost"));
    }

    #[test]
    fn l11_time_in_which_the_process_stood_still_is_a_loss_until_it_has_read_again() {
        let mut bench = Bench::new();
        assert!(matches!(bench.reading.stood_still(5_000), Some(Event::ReadingLost)));
        assert!(bench.reading.stood_still(5_100).is_none());
        bench.probed(5_000);
        assert_eq!(bench.at(7_000), None, "that probe was begun before");
        bench.probed(5_200);
        assert_eq!(bench.at(7_000), Some("back"));
    }

    #[test]
    fn l6_only_a_difference_that_whole_seconds_do_not_explain_counts() {
        let date = "Thu, 01 Jan 1970 00:01:40 GMT";
        assert_eq!(ahead(date, 100_000, 100_010), Some(0));
        assert_eq!(ahead(date, 100_999, 101_010), Some(0));
        assert_eq!(ahead(date, 170_999, 171_010), Some(70_000));
        assert_eq!(ahead(date, 30_000, 30_010), Some(-69_990));
        assert_eq!(ahead("yesterday", 0, 0), None);
    }
}

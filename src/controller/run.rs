//! The loop: what happened goes in, what is to be done comes out. The engine runs here and nowhere else.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::{sync::mpsc, task::JoinSet, time::sleep};

use super::{
    apply::{self, Apply},
    look::Looker,
    reading::Reading,
    scope::Followers,
};
use crate::{
    engine::{
        Deadlines, Engine,
        action::Action,
        event::{Event, Now},
    },
    runtime::{clock::Clock, health::Health, leader::Leadership, metrics::Metrics, shutdown::Shutdown},
};

/// Events told in one step at most.
const TOGETHER: usize = 1_024;
/// The loop wakes at least so often, to see that it still runs, and at most so often when only time has passed. Milliseconds.
const TICK: i64 = 1_000;
const BREATH: i64 = 2;
/// A process that was not woken for so long stood still. Milliseconds.
const STILL: i64 = 3_000;

/// What decides: the engine, or a stand-in.
pub trait Decider: Send {
    /// What happened leads to what is to be done.
    fn step(&mut self, now: Now, events: Vec<Event>) -> Vec<Action>;
    /// When to step without an event.
    fn next_deadline(&self) -> Deadlines;
}

impl Decider for Engine {
    fn step(&mut self, now: Now, events: Vec<Event>) -> Vec<Action> {
        Engine::step(self, now, events)
    }

    fn next_deadline(&self) -> Deadlines {
        Engine::next_deadline(self)
    }
}

/// Why the loop ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was asked to.
    Asked,
    /// This process leads no more.
    LeadershipLost,
    /// A part that must run for ever ended, and why.
    Broken(String),
}

/// What the loop works with.
pub struct Loop<D> {
    /// What decides.
    pub decider: D,
    /// The clocks.
    pub clock: Clock,
    /// Where events come from.
    pub events: mpsc::Receiver<Vec<Event>>,
    /// Where writes go.
    pub apply: Apply,
    /// Who follows kinds.
    pub followers: Followers,
    /// Who looks again.
    pub looker: Looker,
    /// Whether the API can be read.
    pub reading: Reading,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Told that the loop turns, and when it decides.
    pub health: Health,
}

impl<D: Decider> Loop<D> {
    /// Turns until it is asked to end, leadership is lost or a task that must run for ever ended.
    pub async fn run(&mut self, shutdown: &Shutdown, leadership: &Leadership, tasks: &mut JoinSet<Result<(), apply::Error>>) -> Ended {
        let mut last = self.clock.now();
        let mut waiting: VecDeque<Event> = VecDeque::new();
        let mut batch = Vec::new();
        loop {
            let pause = pause(self.decider.next_deadline(), self.clock.now());
            tokio::select! {
                biased;
                () = leadership.lost() => return Ended::LeadershipLost,
                () = shutdown.wait() => return Ended::Asked,
                ended = tasks.join_next(), if !tasks.is_empty() => return broken(ended),
                _count = self.events.recv_many(&mut batch, TOGETHER) => waiting.extend(batch.drain(..).flatten()),
                () = std::future::ready(()), if !waiting.is_empty() => {}
                () = sleep(pause) => {}
            }
            let now = self.clock.now();
            self.health.beat();
            if !leadership.may_write() {
                return Ended::LeadershipLost;
            }
            if now.steady - last.steady > STILL
                && let Some(event) = self.reading.stood_still(now.steady)
            {
                // Told as of the last moment this process knows of, or the time it missed would count against holders.
                tracing::warn!(milliseconds = now.steady - last.steady, "this process stood still");
                self.metrics.reading_lost.inc();
                self.step(last, vec![event], &mut waiting);
            }
            last = now;
            if let Some(event) = self.reading.judge(now.steady) {
                self.note_reading(&event);
                waiting.push_front(event);
            }
            if !waiting.is_empty() || is_due(self.decider.next_deadline(), now) {
                let taken = together(&waiting);
                let events = waiting.drain(..taken).collect();
                self.step(now, events, &mut waiting);
            }
        }
    }

    fn step(&mut self, now: Now, events: Vec<Event>, waiting: &mut VecDeque<Event>) {
        let filled = events.iter().any(|event| matches!(event, Event::Filled));
        self.metrics.events.inc_by(events.len() as u64);
        let watch = self.clock.stopwatch();
        let actions = self.decider.step(now, events);
        self.metrics.step_seconds.observe(watch.elapsed().as_secs_f64());
        self.metrics.steps.inc();
        if filled {
            tracing::info!("everything has been read: deciding");
            self.health.set_ready(true);
        }
        for action in actions {
            match action {
                Action::Write(write) => waiting.extend(self.apply.submit(write).unwrap_or_default()),
                Action::Look { claim, sought } => self.looker.look(claim, sought),
                Action::Find(claim) => self.looker.find(claim),
                Action::Follow(kind) => waiting.extend(self.followers.follow(kind)),
                Action::Unfollow(kind) => self.followers.unfollow(&kind),
            }
        }
    }

    fn note_reading(&self, event: &Event) {
        if matches!(event, Event::ReadingLost) {
            self.metrics.reading_lost.inc();
            tracing::warn!("the API can't be read: holders' time stands still");
        } else {
            tracing::info!("the API can be read");
        }
    }
}

/// How many events the next step is told. An object's last state and its end are never told apart, or the engine would grant
/// something to what is gone.
fn together(waiting: &VecDeque<Event>) -> usize {
    let ends = |event: &&Event| matches!(event, Event::ClaimGone { .. } | Event::ResourceGone { .. });
    let taken = waiting.len().min(TOGETHER);
    taken + waiting.iter().skip(taken).take_while(ends).take(TOGETHER).count()
}

fn broken(ended: Option<Result<Result<(), apply::Error>, tokio::task::JoinError>>) -> Ended {
    match ended {
        Some(Ok(Err(apply::Error::LeadershipLost))) => Ended::LeadershipLost,
        Some(Ok(Err(error))) => Ended::Broken(error.to_string()),
        Some(Err(error)) => Ended::Broken(format!("a task failed: {error}")),
        Some(Ok(Ok(()))) | None => Ended::Broken("a task that must run for ever ended".to_owned()),
    }
}

/// Until the earlier deadline, but never longer than a tick nor shorter than a breath.
fn pause(deadlines: Deadlines, now: Now) -> Duration {
    let wall = deadlines.wall.map(|at| at - now.wall);
    let steady = deadlines.steady.map(|at| at - now.steady);
    let left = wall.into_iter().chain(steady).fold(TICK, i64::min).max(BREATH);
    Duration::from_millis(u64::try_from(left).unwrap_or(0))
}

fn is_due(deadlines: Deadlines, now: Now) -> bool {
    deadlines.wall.is_some_and(|at| at <= now.wall) || deadlines.steady.is_some_and(|at| at <= now.steady)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l4_a_last_state_and_the_end_are_told_in_one_step() {
        let gone = || Event::ClaimGone { namespace: "n".into(), name: "c".into(), uid: "u".into() };
        let mut waiting: VecDeque<Event> = (0..TOGETHER - 1).map(|_| Event::Filled).collect();
        waiting.extend([Event::Claim(Box::default()), gone(), Event::Filled]);
        assert_eq!(together(&waiting), TOGETHER + 1);
        waiting.truncate(3);
        assert_eq!(together(&waiting), 3);
    }

    #[test]
    fn the_earlier_deadline_wakes_and_nothing_sleeps_past_a_tick() {
        let now = Now { wall: 1_000_000, steady: 500 };
        let milliseconds = |wall, steady| pause(Deadlines { wall, steady }, now).as_millis();
        assert_eq!(milliseconds(None, None), 1_000);
        assert_eq!(milliseconds(Some(1_000_300), Some(900)), 300);
        assert_eq!(milliseconds(Some(1_000_300), Some(510)), 10);
        assert_eq!(milliseconds(Some(999_000), None), 2);
        assert!(is_due(Deadlines { wall: Some(1_000_000), steady: None }, now));
        assert!(!is_due(Deadlines { wall: None, steady: Some(501) }, now));
    }
}

//! Writes that wait for a place: the most urgent first, and nobody waits for ever.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::{
    engine::{
        action::{Urgency, Write},
        event::Target,
    },
    runtime::clock::Clock,
};

/// After waiting this long a less urgent write gets every `TURN`th place. Milliseconds.
const PATIENCE: i64 = 1_000;
/// One place in so many goes to whoever lost patience.
const TURN: u32 = 4;

/// Writes that wait, at most one for each object.
#[derive(Debug)]
pub struct Queue {
    clock: Clock,
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: [VecDeque<(i64, Write)>; 3],
    objects: HashSet<Target>,
    taken: u32,
    closed: bool,
}

impl Queue {
    /// Nothing waits.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, waiting: Mutex::default(), arrived: Notify::new() }
    }

    /// Adds a write; gives it back when one for the same object waits already or nothing is taken any more.
    ///
    /// # Errors
    /// The write that was not taken.
    pub fn push(&self, write: Write) -> Result<(), Box<Write>> {
        let mut waiting = self.lock();
        if waiting.closed || !waiting.objects.insert(write.target.clone()) {
            return Err(Box::new(write));
        }
        let since = self.clock.steady();
        waiting.lines[place(write.urgency)].push_back((since, write));
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    /// The next write, once there is one; `None` when nothing is taken any more.
    pub async fn pop(&self) -> Option<Write> {
        loop {
            let arrived = self.arrived.notified();
            {
                let mut waiting = self.lock();
                if waiting.closed {
                    drop(waiting);
                    self.arrived.notify_one();
                    return None;
                }
                if let Some(write) = waiting.take(self.clock.steady()) {
                    let more = !waiting.objects.is_empty();
                    drop(waiting);
                    if more {
                        self.arrived.notify_one();
                    }
                    return Some(write);
                }
            }
            arrived.await;
        }
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().objects.len()
    }

    /// True when none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes nothing more and forgets what waits.
    pub fn close(&self) {
        let mut waiting = self.lock();
        *waiting = Waiting { closed: true, ..Waiting::default() };
        drop(waiting);
        self.arrived.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take(&mut self, now: i64) -> Option<Write> {
        self.taken = self.taken.wrapping_add(1);
        let impatient = self.lines.iter().skip(1).position(|line| line.front().is_some_and(|(since, _)| now - since >= PATIENCE));
        let first = self.lines.iter().position(|line| !line.is_empty())?;
        let chosen = impatient.filter(|_| self.taken.is_multiple_of(TURN)).map_or(first, |place| place + 1);
        let (_, write) = self.lines[chosen].pop_front()?;
        self.objects.remove(&write.target);
        Some(write)
    }
}

fn place(urgency: Urgency) -> usize {
    match urgency {
        Urgency::Decision => 0,
        Urgency::Verdict => 1,
        Urgency::Display => 2,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    };

    use super::*;
    use crate::engine::{action::Body, event::Now};

    fn write(name: &str, urgency: Urgency) -> Write {
        Write {
            number: 1,
            target: Target::Receipt(name.into()),
            uid: "u".into(),
            resource_version: "1".into(),
            body: Body::Delete,
            urgency,
            cause: "test",
        }
    }

    fn queue() -> (Arc<AtomicI64>, Queue) {
        let time = Arc::new(AtomicI64::new(0));
        let reads = time.clone();
        (time, Queue::new(Clock::from_fn(move || Now { wall: 0, steady: reads.load(Ordering::SeqCst) })))
    }

    async fn order(queue: &Queue, count: usize) -> String {
        let mut names = String::new();
        for _ in 0..count {
            let Target::Receipt(name) = queue.pop().await.unwrap().target else { continue };
            names.push_str(&name);
        }
        names
    }

    #[tokio::test]
    async fn the_most_urgent_goes_first_and_equals_in_order() {
        let (_, queue) = queue();
        for (name, urgency) in [("f", Urgency::Display), ("d", Urgency::Verdict), ("a", Urgency::Decision), ("b", Urgency::Decision)] {
            queue.push(write(name, urgency)).unwrap();
        }
        assert_eq!(order(&queue, 4).await, "abdf");
        assert!(queue.is_empty());
    }

    #[tokio::test]
    async fn whoever_waited_long_gets_one_place_in_four() {
        let (time, queue) = queue();
        queue.push(write("z", Urgency::Display)).unwrap();
        time.store(PATIENCE, Ordering::SeqCst);
        for name in ["a", "b", "c", "d", "e"] {
            queue.push(write(name, Urgency::Decision)).unwrap();
        }
        assert_eq!(order(&queue, 6).await, "abczde");
    }

    #[tokio::test]
    async fn a_second_write_for_an_object_and_any_after_the_end_are_given_back() {
        let (_, queue) = queue();
        queue.push(write("a", Urgency::Decision)).unwrap();
        assert!(queue.push(write("a", Urgency::Display)).is_err());
        queue.close();
        assert!(queue.push(write("b", Urgency::Decision)).is_err());
        assert!(queue.pop().await.is_none());
    }
}

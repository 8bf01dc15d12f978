//! One controller leads: it holds a Lease that it must renew, and stops every write the moment it can't be sure of it.
//!
//! Others judge the Lease by their own clock, from the last change they saw (`evaluate`), never by the times written in it. The
//! leader judges itself by the time it sent its last confirmed renewal, with a shorter limit: `Leadership::may_write` is asked
//! before every write, so that a process which was frozen finds out before it writes anything.

mod elect;
mod evaluate;
mod term;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use tokio::sync::watch;

use super::clock::Clock;

pub use elect::{Elector, Error};
pub use evaluate::{Observation, Record, Verdict, evaluate};
pub use term::{TERM_ANNOTATION, highest_term};

/// How the Lease is used. Durations in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Election {
    /// Where the Lease is: the operator's own namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// Who this process is; no two processes ever share it.
    pub identity: String,
    /// After this long without a change others may take the Lease.
    pub lease_duration: i64,
    /// After this long without a confirmed renewal this process writes nothing more; less than `lease_duration`.
    pub renew_deadline: i64,
    /// How often the Lease is renewed, or looked at.
    pub retry_period: i64,
}

/// The right to write. Cheap to clone; once lost it never comes back.
#[derive(Clone)]
pub struct Leadership {
    term: i64,
    clock: Clock,
    until: Arc<AtomicI64>,
    lost: Arc<watch::Sender<bool>>,
}

impl Leadership {
    /// Leads until `until` (milliseconds of the steady clock) unless extended.
    #[must_use]
    pub fn new(term: i64, clock: Clock, until: i64) -> Self {
        Self { term, clock, until: Arc::new(AtomicI64::new(until)), lost: Arc::new(watch::channel(false).0) }
    }

    /// Leads without a Lease, for a single process that nobody else competes with.
    #[must_use]
    pub fn unguarded(term: i64, clock: Clock) -> Self {
        Self::new(term, clock, i64::MAX)
    }

    /// This leader's term.
    #[must_use]
    pub fn term(&self) -> i64 {
        self.term
    }

    /// Whether a write may be sent at this instant. The first `false` is the last answer: leadership is lost from then on.
    #[must_use]
    pub fn may_write(&self) -> bool {
        let still = self.clock.steady() < self.until.load(Ordering::Acquire);
        if !still {
            self.lose();
        }
        still
    }

    /// A renewal was confirmed: writing is allowed until `until`. Returns false, and changes nothing, when it came too late.
    #[must_use]
    pub fn extend(&self, until: i64) -> bool {
        let now = self.clock.steady();
        self.until.fetch_update(Ordering::AcqRel, Ordering::Acquire, |current| (now < current).then_some(until.max(current))).is_ok() || {
            self.lose();
            false
        }
    }

    /// Gives up: no write is sent any more.
    pub fn lose(&self) {
        self.until.store(i64::MIN, Ordering::Release);
        self.lost.send_replace(true);
    }

    /// Returns once leadership is lost.
    pub async fn lost(&self) {
        let mut receiver = self.lost.subscribe();
        let _ended = receiver.wait_for(|lost| *lost).await;
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Leadership").field("term", &self.term).field("until", &self.until).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event::Now;

    fn manual() -> (Arc<AtomicI64>, Clock) {
        let time = Arc::new(AtomicI64::new(0));
        let reads = time.clone();
        (time, Clock::from_fn(move || Now { wall: 0, steady: reads.load(Ordering::SeqCst) }))
    }

    #[test]
    fn a_leader_that_was_frozen_past_its_deadline_writes_nothing_and_cannot_renew() {
        let (time, clock) = manual();
        let leadership = Leadership::new(7, clock, 10_000);
        assert!(leadership.may_write());
        time.store(10_000, Ordering::SeqCst);
        assert!(!leadership.extend(20_000), "a renewal confirmed too late");
        time.store(5_000, Ordering::SeqCst);
        assert!(!leadership.may_write(), "lost is lost");
    }

    #[tokio::test]
    async fn the_first_refused_write_tells_everybody() {
        let (time, clock) = manual();
        let leadership = Leadership::new(7, clock, 10_000);
        assert!(leadership.extend(12_000));
        time.store(11_000, Ordering::SeqCst);
        assert!(leadership.may_write());
        time.store(12_000, Ordering::SeqCst);
        assert!(!leadership.may_write());
        leadership.lost().await;
    }
}

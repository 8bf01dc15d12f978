//! How reading one source goes, told by its reader and asked by the main loop.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::runtime::clock::Clock;

/// How reading one source goes. Milliseconds of the steady clock.
#[derive(Debug)]
pub struct Pulse {
    clock: Clock,
    failing_since: AtomicI64,
    heard_at: AtomicI64,
}

impl Pulse {
    /// Failing from now on until it is first read.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let now = clock.steady();
        Self { clock, failing_since: AtomicI64::new(now), heard_at: AtomicI64::new(now) }
    }

    /// It can be read.
    pub fn good(&self) {
        self.failing_since.store(i64::MAX, Ordering::Relaxed);
        self.heard();
    }

    /// It can't; the first time counts.
    pub fn fail(&self) {
        self.failing_since.fetch_min(self.clock.steady(), Ordering::Relaxed);
    }

    /// Something came.
    pub fn heard(&self) {
        self.heard_at.store(self.clock.steady(), Ordering::Relaxed);
    }

    /// Since when it can't be read, if so.
    #[must_use]
    pub fn failing_since(&self) -> Option<i64> {
        Some(self.failing_since.load(Ordering::Relaxed)).filter(|since| *since != i64::MAX)
    }

    /// When something last came.
    #[must_use]
    pub fn heard_at(&self) -> i64 {
        self.heard_at.load(Ordering::Relaxed)
    }
}

//! How long to wait before trying again: twice as long each time up to a limit, and never two in step.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// Pauses that grow. Milliseconds.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: u64,
    limit: u64,
    tried: u32,
}

impl Backoff {
    /// Begins at `first` milliseconds and grows to `limit`.
    #[must_use]
    pub fn new(first: u64, limit: u64) -> Self {
        Self { first, limit, tried: 0 }
    }

    /// It worked: begin anew.
    pub fn reset(&mut self) {
        self.tried = 0;
    }

    /// How often it was asked since it began.
    #[must_use]
    pub fn tried(&self) -> u32 {
        self.tried
    }

    /// The next pause: between half and all of what it has grown to.
    pub fn pause(&mut self) -> Duration {
        let grown = self.first.saturating_mul(1 << self.tried.min(20)).min(self.limit);
        self.tried = self.tried.saturating_add(1);
        let half = grown / 2;
        Duration::from_millis(half + RandomState::new().hash_one(self.tried) % (half + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_limit_and_begin_anew() {
        let mut backoff = Backoff::new(100, 1_000);
        for grown in [100, 200, 400, 800, 1_000, 1_000] {
            let pause = backoff.pause().as_millis();
            assert!((grown / 2..=grown).contains(&pause), "{pause} of {grown}");
        }
        assert_eq!(backoff.tried(), 6);
        backoff.reset();
        assert!(backoff.pause().as_millis() <= 100);
    }
}

//! The two clocks (L11), and the only place that reads them.

use std::{fmt, sync::Arc, time::Duration};

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::engine::event::Now;

/// Where the time comes from. Cheap to clone; every part of one process shares one.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Now + Send + Sync>);

impl Clock {
    /// The machine's own clocks: the wall clock, and one that counts suspend and never jumps.
    #[must_use]
    pub fn machine() -> Self {
        Self(Arc::new(|| Now {
            wall: milliseconds(clock_gettime(ClockId::Realtime)),
            steady: milliseconds(clock_gettime(ClockId::Boottime)),
        }))
    }

    /// A clock that reads what the function returns: for the simulator and for tests.
    #[must_use]
    pub fn from_fn(read: impl Fn() -> Now + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Both clocks at this instant.
    #[must_use]
    pub fn now(&self) -> Now {
        (self.0)()
    }

    /// Milliseconds of the clock that never jumps.
    #[must_use]
    pub fn steady(&self) -> i64 {
        self.now().steady
    }

    /// The wall clock as an instant, for timestamps that people read.
    #[must_use]
    pub fn instant(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.now().wall).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }

    /// Nanoseconds of a clock that only measures how long something took; its zero is arbitrary.
    #[must_use]
    pub fn stopwatch(&self) -> Stopwatch {
        Stopwatch(nanoseconds(clock_gettime(ClockId::Monotonic)))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Clock")
    }
}

/// Measures how long something took on this machine, for metrics only.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(i128);

impl Stopwatch {
    /// Time since it was started.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        let spent = nanoseconds(clock_gettime(ClockId::Monotonic)) - self.0;
        Duration::from_nanos(u64::try_from(spent).unwrap_or(0))
    }
}

fn milliseconds(time: Timespec) -> i64 {
    time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
}

fn nanoseconds(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l11_the_steady_clock_never_goes_back_and_the_wall_clock_is_this_century() {
        let clock = Clock::machine();
        let (first, second) = (clock.now(), clock.now());
        assert!(second.steady >= first.steady);
        assert!(first.wall > 1_700_000_000_000, "{first:?}");
    }
}

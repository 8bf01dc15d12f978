//! When something must be looked at again. Two clocks, one alarm for each record on each of them.

use std::collections::{BTreeMap, BTreeSet};

use super::event::Now;

/// The earliest moments at which `Engine::step` has something to do without an event. Milliseconds of each clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadlines {
    /// On the wall clock (waits, Q11, times to live).
    pub wall: Option<i64>,
    /// On the steady clock (heartbeats, admission, hard ends, lazy writes).
    pub steady: Option<i64>,
}

/// Alarms of one clock: each record has at most one, and setting it again moves it.
#[derive(Debug)]
pub struct Alarms<K> {
    by_time: BTreeSet<(i64, K)>,
    by_record: BTreeMap<K, i64>,
}

impl<K> Default for Alarms<K> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_record: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> Alarms<K> {
    /// Sets, moves or (with `None`) clears the alarm of a record.
    pub fn set(&mut self, record: K, when: Option<i64>) {
        if self.by_record.get(&record).copied() == when {
            return;
        }
        if let Some(before) = self.by_record.remove(&record) {
            self.by_time.remove(&(before, record));
        }
        if let Some(when) = when {
            self.by_record.insert(record, when);
            self.by_time.insert((when, record));
        }
    }

    /// When the next alarm rings.
    pub fn next(&self) -> Option<i64> {
        self.by_time.first().map(|(when, _)| *when)
    }

    /// Takes the next alarm that has rung by `now`.
    pub fn pop(&mut self, now: i64) -> Option<K> {
        let (when, record) = *self.by_time.first()?;
        if when > now {
            return None;
        }
        self.by_time.pop_first();
        self.by_record.remove(&record);
        Some(record)
    }
}

/// The time that counts against holders: the steady clock less the time in which the API could not be read (L11).
#[derive(Clone, Copy, Debug, Default)]
pub struct HolderClock {
    lost: i64,
    lost_since: Option<i64>,
}

impl HolderClock {
    /// What this clock says at `now`, in milliseconds. It stands still while the API can't be read.
    pub fn read(&self, now: Now) -> i64 {
        self.lost_since.unwrap_or(now.steady) - self.lost
    }

    /// The API can't be read any more.
    pub fn stop(&mut self, now: Now) {
        self.lost_since.get_or_insert(now.steady);
    }

    /// The API can be read again.
    pub fn go_on(&mut self, now: Now) {
        if let Some(since) = self.lost_since.take() {
            self.lost += (now.steady - since).max(0);
        }
    }

    /// True while it stands still.
    pub fn stands_still(&self) -> bool {
        self.lost_since.is_some()
    }

    /// When the steady clock will say what this clock calls `when`; never while it stands still.
    pub fn steady(&self, when: i64) -> Option<i64> {
        self.lost_since.is_none().then_some(when + self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l11_time_without_the_api_counts_against_no_holder() {
        let mut clock = HolderClock::default();
        let at = |steady| Now { wall: 0, steady };
        clock.stop(at(1_000));
        clock.stop(at(2_000));
        assert_eq!(clock.read(at(9_000)), 1_000);
        assert_eq!(clock.steady(5_000), None);
        clock.go_on(at(11_000));
        assert_eq!(clock.read(at(11_500)), 1_500);
        assert_eq!(clock.steady(5_000), Some(15_000));
    }

    #[test]
    fn an_alarm_moves_and_rings_once() {
        let mut alarms = Alarms::default();
        alarms.set("a", Some(5));
        alarms.set("b", Some(6));
        alarms.set("a", Some(7));
        assert_eq!((alarms.next(), alarms.pop(5)), (Some(6), None));
        assert_eq!((alarms.pop(7), alarms.pop(7), alarms.pop(7)), (Some("b"), Some("a"), None));
    }
}

//! Holders that are kept by a heartbeat, and the pause when too many fall silent at once (L2, L11).

use std::collections::{BTreeMap, BTreeSet};

use super::world::ClaimIx;

/// How long lapsing pauses when too many would lapse at once. Milliseconds (L11).
pub const PAUSE: i64 = 600_000;
/// How near a lapse must be to count as coming. Milliseconds (L11).
const SOON: i64 = 60_000;
/// Fewer coming lapses than this never pause anything (L11).
const FEW: usize = 5;

/// One holder's heartbeat.
#[derive(Clone, Copy, Debug)]
struct Beat {
    lease: i64,
    silent_at: i64,
    lapses_at: i64,
}

/// All heartbeats. Times are milliseconds of the holders' clock.
///
/// A holder renews at half its lease; one that let three quarters pass is silent, and only silent ones count as about to lapse.
#[derive(Debug, Default)]
pub struct Beats {
    beats: BTreeMap<ClaimIx, Beat>,
    coming: BTreeSet<(i64, ClaimIx)>,
    silent: BTreeSet<(i64, ClaimIx)>,
    paused_until: Option<i64>,
    incident: bool,
}

/// What to do about a holder that fell silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rung {
    /// Its lease ran out.
    Lapsed(ClaimIx),
    /// Too many would lapse: nobody does for a while.
    Paused,
}

impl Beats {
    /// A heartbeat was seen, or its clock starts.
    pub fn beat(&mut self, claim: ClaimIx, lease: i64, now: i64) {
        self.forget(claim);
        let beat = Beat { lease, silent_at: now + lease / 4 * 3, lapses_at: now + lease };
        self.beats.insert(claim, beat);
        self.coming.insert((beat.silent_at, claim));
    }

    /// A heartbeat was seen of a claim whose clock has started; false if it has not.
    pub fn renew(&mut self, claim: ClaimIx, now: i64) -> bool {
        let Some(lease) = self.beats.get(&claim).map(|beat| beat.lease) else { return false };
        self.beat(claim, lease, now);
        true
    }

    /// The claim is over.
    pub fn forget(&mut self, claim: ClaimIx) {
        if let Some(beat) = self.beats.remove(&claim) {
            self.coming.remove(&(beat.silent_at, claim));
            self.silent.remove(&(beat.lapses_at, claim));
            if self.silent.is_empty() && self.paused_until.is_none() {
                self.incident = false;
            }
        }
    }

    /// When to look again.
    pub fn next(&self) -> Option<i64> {
        let lapse = self.silent.first().map(|(when, _)| *when);
        let lapse = match (lapse, self.paused_until) {
            (Some(lapse), Some(until)) => Some(lapse.max(until)),
            (None, Some(until)) => Some(until),
            (lapse, None) => lapse,
        };
        [lapse, self.coming.first().map(|(when, _)| *when)].into_iter().flatten().min()
    }

    /// What has come due.
    pub fn ring(&mut self, now: i64) -> Option<Rung> {
        while let Some(&(when, claim)) = self.coming.first()
            && when <= now
        {
            self.coming.pop_first();
            if let Some(beat) = self.beats.get(&claim) {
                self.silent.insert((beat.lapses_at, claim));
            }
        }
        if let Some(until) = self.paused_until {
            if now < until {
                return None;
            }
            self.paused_until = None;
        }
        let &(when, claim) = self.silent.first()?;
        if when > now {
            return None;
        }
        let soon = self.silent.range(..(now + SOON, claim)).count();
        if !self.incident && soon >= FEW && soon * 5 > self.beats.len() {
            self.incident = true;
            self.paused_until = Some(now + PAUSE);
            return Some(Rung::Paused);
        }
        Some(Rung::Lapsed(claim))
    }

    /// True when this claim's clock has started.
    pub fn has(&self, claim: ClaimIx) -> bool {
        self.beats.contains_key(&claim)
    }

    /// The claims that are silent, the next to lapse first.
    pub fn silent_ones(&self) -> Vec<ClaimIx> {
        self.silent.iter().map(|(_, claim)| *claim).collect()
    }

    /// True while nobody lapses (`ExpiryPaused`).
    pub fn is_paused(&self) -> bool {
        self.paused_until.is_some()
    }
}

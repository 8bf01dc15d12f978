//! Who may take the Lease: a pure function of what was seen and of the local clock.

/// What a Lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// `holderIdentity`; empty when it was handed back.
    pub holder: String,
    /// `leaseDurationSeconds`, in milliseconds; 0 when left out.
    pub duration: i64,
    /// Changes at every write.
    pub resource_version: String,
}

/// When this process first saw the Lease as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The version that was seen.
    pub resource_version: String,
    /// Milliseconds of the local steady clock at which it was first seen.
    pub since: i64,
}

impl Observation {
    /// Remembers when a version was first seen; keeps the earlier time while the version stays.
    pub fn note(seen: &mut Option<Self>, record: &Record, now: i64) {
        if seen.as_ref().is_none_or(|before| before.resource_version != record.resource_version) {
            *seen = Some(Self { resource_version: record.resource_version.clone(), since: now });
        }
    }
}

/// What to do about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is none: create it.
    Create,
    /// Take it over, guarded by the version seen.
    Take,
    /// It is this process's own.
    Own,
    /// Somebody else's, for at least so many milliseconds.
    Wait(i64),
}

/// Judges the Lease. `now` is the local steady clock, `duration` this process's own lease duration; the longer of that and the
/// holder's counts, so that two configurations never overlap. All in milliseconds.
#[must_use]
pub fn evaluate(me: &str, record: Option<&Record>, seen: Option<&Observation>, now: i64, duration: i64) -> Verdict {
    let Some(record) = record else { return Verdict::Create };
    if record.holder.is_empty() {
        return Verdict::Take;
    }
    if record.holder == me {
        return Verdict::Own;
    }
    let length = duration.max(record.duration);
    let since = match seen {
        Some(seen) if seen.resource_version == record.resource_version => seen.since,
        _ => now,
    };
    match since.saturating_add(length) - now {
        left if left <= 0 => Verdict::Take,
        left => Verdict::Wait(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(holder: &str, version: &str) -> Record {
        Record { holder: holder.into(), duration: 15_000, resource_version: version.into() }
    }

    #[test]
    fn no_lease_is_created_and_one_handed_back_is_taken_at_once() {
        assert_eq!(evaluate("a", None, None, 0, 15_000), Verdict::Create);
        assert_eq!(evaluate("a", Some(&held("", "1")), None, 0, 15_000), Verdict::Take);
    }

    #[test]
    fn a_lease_is_judged_from_the_last_change_seen_never_from_what_it_says() {
        let record = held("b", "1");
        let mut seen = None;
        Observation::note(&mut seen, &record, 100);
        Observation::note(&mut seen, &record, 9_000);
        assert_eq!(evaluate("a", Some(&record), seen.as_ref(), 15_099, 15_000), Verdict::Wait(1));
        assert_eq!(evaluate("a", Some(&record), seen.as_ref(), 15_100, 15_000), Verdict::Take);
        let renewed = held("b", "2");
        assert_eq!(evaluate("a", Some(&renewed), seen.as_ref(), 15_100, 15_000), Verdict::Wait(15_000));
    }

    #[test]
    fn the_longer_duration_counts() {
        let record = held("b", "1");
        let seen = Observation { resource_version: "1".into(), since: 0 };
        assert_eq!(evaluate("a", Some(&record), Some(&seen), 10_000, 4_000), Verdict::Wait(5_000));
        assert_eq!(evaluate("a", Some(&record), Some(&seen), 15_000, 60_000), Verdict::Wait(45_000));
    }

    #[test]
    fn ones_own_is_known() {
        assert_eq!(evaluate("b", Some(&held("b", "1")), None, 0, 15_000), Verdict::Own);
    }
}

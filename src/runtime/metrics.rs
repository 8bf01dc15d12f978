//! What the controller counts.

use std::fmt;

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// Seconds, for a decision and for a write.
const STEP_BUCKETS: [f64; 10] = [0.000_05, 0.000_2, 0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0];
const WRITE_BUCKETS: [f64; 11] = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// What kind of write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[allow(missing_docs)]
pub enum WriteKind {
    Ledger,
    Claim,
    Receipt,
    Invent,
    Delete,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[allow(missing_docs)]
pub enum WriteOutcome {
    Written,
    Refused,
    Unknown,
}

/// Labels of `tenure_writes_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WriteLabels {
    /// What kind of write.
    pub kind: WriteKind,
    /// How it ended.
    pub outcome: WriteOutcome,
}

/// A label that names what was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SourceLabels {
    /// The plural of the kind, in lower case.
    pub source: String,
}

/// Everything that is counted. One for a process.
pub struct Metrics {
    registry: Registry,
    /// Steps the engine made.
    pub steps: Counter,
    /// Seconds each step took.
    pub step_seconds: Histogram,
    /// Events the engine was told.
    pub events: Counter,
    /// Writes that ended.
    pub writes: Family<WriteLabels, Counter>,
    /// Seconds from sending a write to knowing how it ended.
    pub write_seconds: Histogram,
    /// Writes tried again because they surely had no effect.
    pub write_retries: Counter,
    /// Writes that wait for a place.
    pub queued_writes: Gauge,
    /// Writes on their way.
    pub writes_in_flight: Gauge,
    /// Watches started again, by what they read.
    pub watch_restarts: Family<SourceLabels, Counter>,
    /// Objects that could not be decoded, by kind.
    pub undecodable: Family<SourceLabels, Counter>,
    /// Objects that can't be decoded now, by kind.
    pub undecodable_now: Family<SourceLabels, Gauge>,
    /// Notices dropped because too many waited.
    pub notices_dropped: Counter,
    /// Shares granted: occupancies that confirmed ledger writes added, but for those that came with a parent.
    pub granted: Counter,
    /// Times the API could not be read.
    pub reading_lost: Counter,
    /// 1 while this process leads.
    pub leading: Gauge,
    /// The leader's term.
    pub term: Gauge,
    /// Milliseconds that this machine's wall clock is ahead of the API server's.
    pub clock_skew: Gauge,
}

impl Metrics {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("tenure"),
            steps: Counter::default(),
            step_seconds: Histogram::new(STEP_BUCKETS),
            events: Counter::default(),
            writes: Family::default(),
            write_seconds: Histogram::new(WRITE_BUCKETS),
            write_retries: Counter::default(),
            queued_writes: Gauge::default(),
            writes_in_flight: Gauge::default(),
            watch_restarts: Family::default(),
            undecodable: Family::default(),
            undecodable_now: Family::default(),
            notices_dropped: Counter::default(),
            granted: Counter::default(),
            reading_lost: Counter::default(),
            leading: Gauge::default(),
            term: Gauge::default(),
            clock_skew: Gauge::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let names = &mut self.registry;
        names.register("steps", "Steps the engine made", self.steps.clone());
        names.register("step_seconds", "Seconds a step took", self.step_seconds.clone());
        names.register("events", "Events the engine was told", self.events.clone());
        names.register("writes", "Writes that ended, by kind and outcome", self.writes.clone());
        names.register("write_seconds", "Seconds until a write's end was known", self.write_seconds.clone());
        names.register("write_retries", "Writes tried again that surely had no effect", self.write_retries.clone());
        names.register("queued_writes", "Writes that wait for a place", self.queued_writes.clone());
        names.register("writes_in_flight", "Writes on their way", self.writes_in_flight.clone());
        names.register("watch_restarts", "Watches started again", self.watch_restarts.clone());
        names.register("undecodable_objects", "Objects that could not be decoded", self.undecodable.clone());
        names.register("undecodable_objects_now", "Objects that can't be decoded now", self.undecodable_now.clone());
        names.register("notices_dropped", "Notices dropped because too many waited", self.notices_dropped.clone());
        names.register("granted", "Shares granted", self.granted.clone());
        names.register("reading_lost", "Times the API could not be read", self.reading_lost.clone());
        names.register("leading", "1 while this process leads", self.leading.clone());
        names.register("term", "The leader's term", self.term.clone());
        names.register("clock_skew_milliseconds", "Wall clock ahead of the API server's", self.clock_skew.clone());
    }

    /// All of it, as OpenMetrics text.
    ///
    /// # Errors
    /// When a value can't be written as text.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Metrics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_the_prefix_and_counters_their_suffix() {
        let metrics = Metrics::new();
        metrics.granted.inc();
        metrics.writes.get_or_create(&WriteLabels { kind: WriteKind::Ledger, outcome: WriteOutcome::Refused }).inc();
        let text = metrics.encode().unwrap();
        assert!(text.contains("tenure_granted_total 1"), "{text}");
        assert!(text.contains("tenure_writes_total{kind=\"Ledger\",outcome=\"Refused\"} 1"), "{text}");
    }
}

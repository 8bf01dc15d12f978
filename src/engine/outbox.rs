//! Writes of one object's status: what stands there, what is wanted and what is on its way.

use std::sync::Arc;

use super::action::Urgency;

/// What is on its way to one object's status, and what stands there.
#[derive(Debug)]
pub struct Outbox<S, O> {
    /// The object's version as last seen or written.
    pub version: String,
    /// The status that stands there as far as known.
    pub confirmed: Arc<S>,
    /// That a write is wanted, how soon and why.
    pub want: Option<(Urgency, &'static str)>,
    /// What was sent and not answered; `None` inside for a deletion.
    pub flight: Option<Option<Arc<S>>>,
    /// The number of the write that was sent last.
    pub number: u64,
    /// What was seen of the object while a write was on its way.
    pub seen: Option<Box<O>>,
    /// How often in a row a write was refused for good.
    pub failures: u32,
    /// No write before this. Milliseconds of the holders' clock.
    pub not_before: i64,
}

impl<S: Default, O> Default for Outbox<S, O> {
    fn default() -> Self {
        Self {
            version: String::new(),
            confirmed: Arc::default(),
            want: None,
            flight: None,
            number: 0,
            seen: None,
            failures: 0,
            not_before: i64::MIN,
        }
    }
}

impl<S, O> Outbox<S, O> {
    /// Wants a write: the more urgent of this wish and an earlier one counts.
    pub fn want(&mut self, urgency: Urgency, cause: &'static str) {
        if self.want.is_none_or(|(earlier, _)| urgency < earlier) {
            self.want = Some((urgency, cause));
        }
    }
}

/// The version of an object as a number: larger is newer.
pub fn version(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

//! Decisions begin when everything they need has been read once.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use crate::engine::event::Event;

/// Counts the collections that have not been read whole yet.
#[derive(Debug)]
pub struct Barrier(AtomicUsize);

impl Barrier {
    /// Waits for so many collections.
    #[must_use]
    pub fn new(collections: usize) -> Self {
        Self(AtomicUsize::new(collections))
    }

    /// One collection was read whole and handed over; the last says `Event::Filled`. `None` when nobody takes events any more.
    pub async fn pass(&self, events: &mpsc::Sender<Vec<Event>>) -> Option<()> {
        if self.0.fetch_sub(1, Ordering::AcqRel) == 1 { events.send(vec![Event::Filled]).await.ok() } else { Some(()) }
    }
}

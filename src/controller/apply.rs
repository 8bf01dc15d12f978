//! Carries out writes: the most urgent first, a bounded number at one time, each reported back with how it ended.
//!
//! Before every sending leadership is asked. A write that was refused or whose answer is missing is followed by reading the
//! object back, and both are reported together.

use std::{sync::Arc, time::Duration};

use kube::Client;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    backoff::Backoff,
    notice::Notes,
    queue::Queue,
    write::{ReadBack, Reply, address, gone, read_back, send},
};
use crate::{
    engine::{
        action::{Body, Write},
        event::{Event, Outcome},
    },
    runtime::{
        audit::{Audit, Record},
        clock::Clock,
        leader::Leadership,
        metrics::{Metrics, WriteKind, WriteLabels, WriteOutcome},
    },
};

/// How often a write that surely had no effect is sent before it is reported as refused.
const SENDINGS: u32 = 8;
/// How often an object is read back before the process gives up: ten minutes of no answer.
const READINGS: u32 = 150;
/// How long a write without an answer is given to take effect before the object is read back.
const SETTLE: Duration = Duration::from_millis(200);
/// Writes at one time at most, whatever is configured.
const PLACES: usize = 512;

/// What a write needs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Means {
    /// The clocks.
    pub clock: Clock,
    /// Whether anything may be written.
    pub leadership: Leadership,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Keeps ledger writes.
    pub audit: Audit,
    /// Tells people about objects that can't be decoded.
    pub notes: Notes,
    /// Where outcomes go.
    pub events: mpsc::Sender<Vec<Event>>,
}

/// Carries out writes. Cheap to clone.
#[derive(Clone)]
pub struct Apply {
    client: Client,
    means: Means,
    queue: Arc<Queue>,
    places: Arc<Semaphore>,
    concurrency: usize,
}

/// Why workers end before they are told to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No write may be sent any more.
    #[error("leadership is lost")]
    LeadershipLost,
    /// How a write ended could not be found out.
    #[error("no object could be read back for ten minutes")]
    NoAnswer,
}

impl Apply {
    /// Writes at most `concurrency` objects at one time (1 to 512).
    #[must_use]
    pub fn new(client: Client, concurrency: usize, means: Means) -> Self {
        let concurrency = concurrency.clamp(1, PLACES);
        let queue = Arc::new(Queue::new(means.clock.clone()));
        Self { client, means, queue, places: Arc::new(Semaphore::new(concurrency)), concurrency }
    }

    /// Adds a write to those that wait. A second one for an object would break the engine's promise: it is reported as refused.
    pub fn submit(&self, write: Write) -> Option<Vec<Event>> {
        let refused = self.queue.push(write).err();
        self.means.metrics.queued_writes.set(i64::try_from(self.queue.len()).unwrap_or(i64::MAX));
        refused.map(|write| {
            tracing::error!(target = ?write.target, cause = write.cause, "a second write for an object that has one waiting");
            vec![Event::Wrote {
                number: write.number,
                target: write.target,
                outcome: Outcome::Refused { message: "another write of this object waits".to_owned(), permanent: false },
            }]
        })
    }

    /// Starts the workers. One that ends before `close` ends with the reason.
    pub fn start(&self, tasks: &mut JoinSet<Result<(), Error>>) {
        for _ in 0..self.concurrency {
            let apply = self.clone();
            tasks.spawn(async move { apply.work().await });
        }
    }

    /// Takes nothing more, forgets what waits, and lets what is on its way end, for at most `limit`.
    pub async fn close(&self, limit: Duration) {
        self.queue.close();
        let all = u32::try_from(self.concurrency).unwrap_or(u32::MAX);
        if timeout(limit, self.places.acquire_many(all)).await.is_err() {
            tracing::warn!("some writes are still on their way");
        }
    }

    async fn work(&self) -> Result<(), Error> {
        while let Some(write) = self.queue.pop().await {
            let Ok(_place) = self.places.acquire().await else { return Ok(()) };
            self.means.metrics.queued_writes.set(i64::try_from(self.queue.len()).unwrap_or(i64::MAX));
            self.means.metrics.writes_in_flight.inc();
            let done = self.carry_out(write).await;
            self.means.metrics.writes_in_flight.dec();
            if self.means.events.send(done?).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn carry_out(&self, write: Write) -> Result<Vec<Event>, Error> {
        let watch = self.means.clock.stopwatch();
        let (mut events, outcome) = match self.send(&write).await? {
            Reply::Written { resource_version, events } => {
                self.confirmed(&write, "Written").await;
                (events, Outcome::Written { resource_version })
            }
            Reply::Refused(message, permanent) => {
                tracing::debug!(target = ?write.target, cause = write.cause, message, permanent, "refused");
                (self.read_back(&write).await?, Outcome::Refused { message, permanent })
            }
            Reply::Later(message, _) => (self.read_back(&write).await?, Outcome::Refused { message, permanent: false }),
            Reply::Unknown(message) => {
                tracing::warn!(target = ?write.target, cause = write.cause, message, "no answer to a write: reading back");
                sleep(SETTLE).await;
                let events = self.read_back(&write).await?;
                if shows(&write, &events) {
                    self.confirmed(&write, "ReadBack").await;
                }
                (events, Outcome::Unknown)
            }
        };
        self.count(&write, &outcome, watch.elapsed());
        events.push(Event::Wrote { number: write.number, target: write.target, outcome });
        Ok(events)
    }

    /// Sends until there is an answer that says something about the object.
    async fn send(&self, write: &Write) -> Result<Reply, Error> {
        let mut backoff = Backoff::new(100, 5_000);
        loop {
            if !self.means.leadership.may_write() {
                return Err(Error::LeadershipLost);
            }
            match send(&self.client, write).await {
                Reply::Later(_, least) if backoff.tried() + 1 < SENDINGS => {
                    self.means.metrics.write_retries.inc();
                    sleep(backoff.pause().max(least)).await;
                }
                reply => return Ok(reply),
            }
        }
    }

    async fn read_back(&self, write: &Write) -> Result<Vec<Event>, Error> {
        let mut backoff = Backoff::new(50, 5_000);
        for _ in 0..READINGS {
            match read_back(&self.client, &write.target).await {
                Ok(ReadBack::Present(event)) => return Ok(vec![event]),
                Ok(ReadBack::Absent) => return Ok(gone(&write.target, "")),
                Ok(ReadBack::Undecodable(identity, why)) => {
                    self.means.notes.undecodable(address(&write.target).1, &identity, &why);
                    return Ok(Vec::new());
                }
                Err(message) => {
                    tracing::warn!(target = ?write.target, message, "can't read an object back, trying again");
                    sleep(backoff.pause()).await;
                }
            }
        }
        Err(Error::NoAnswer)
    }

    async fn confirmed(&self, write: &Write, outcome: &'static str) {
        let Body::Ledger { after, before } = &write.body else { return };
        let granted = after.occupants.iter().filter(|occupant| occupant.via.is_none() && occupant.fence > before.last_fence);
        self.means.metrics.granted.inc_by(granted.count() as u64);
        let (resource, _, _) = address(&write.target);
        let record = Record {
            at: self.means.clock.instant(),
            resource: &resource.name,
            before: before.as_ref(),
            after: after.as_ref(),
            cause: write.cause,
            term: after.term,
            outcome,
        };
        self.means.audit.record(&record).await;
    }

    fn count(&self, write: &Write, outcome: &Outcome, spent: Duration) {
        let kind = match write.body {
            Body::Ledger { .. } => WriteKind::Ledger,
            Body::Claim(_) => WriteKind::Claim,
            Body::Receipt(_) => WriteKind::Receipt,
            Body::Invent(_) => WriteKind::Invent,
            Body::Delete => WriteKind::Delete,
        };
        let outcome = match outcome {
            Outcome::Written { .. } => WriteOutcome::Written,
            Outcome::Refused { .. } => WriteOutcome::Refused,
            Outcome::Unknown => WriteOutcome::Unknown,
        };
        self.means.metrics.writes.get_or_create(&WriteLabels { kind, outcome }).inc();
        self.means.metrics.write_seconds.observe(spent.as_secs_f64());
    }
}

/// Whether what was read back is the ledger that was written.
fn shows(write: &Write, events: &[Event]) -> bool {
    let Body::Ledger { after, .. } = &write.body else { return false };
    events.iter().any(|event| match event {
        Event::Resource(object) => {
            object.metadata.uid.as_deref() == Some(write.uid.as_str())
                && object.status.as_ref().is_some_and(|ledger| (ledger.revision, ledger.term) == (after.revision, after.term))
        }
        _ => false,
    })
}

//! `tenure controller`: becomes the leader, reads, decides, writes, and ends in order.

use std::{sync::Arc, time::Duration};

use kube::Client;
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
    time::interval,
};

use super::{
    apply::{Apply, Means},
    look::Looker,
    notice,
    reading::{Probe, Reading},
    run::{Decider, Ended, Loop},
    scope::{Finishing, Followers, SILENCE},
    watch::Watches,
};
use crate::runtime::{
    audit::{self, Audit},
    client,
    clock::Clock,
    config::{self, Controller},
    health::{self, Health},
    leader::{self, Elector, Leadership},
    metrics::Metrics,
    shutdown::{self, Shutdown},
};

/// Batches of events that may wait for the loop.
const BATCHES: usize = 1_024;
/// How long writes on their way may take once the process was asked to end.
const LAST_WRITES: Duration = Duration::from_secs(8);
/// A leader's own renewals are among the Leases: so many missed in a row are silence.
const MISSED_RENEWALS: u32 = 5;

/// Why the controller can't run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A flag says what it can't.
    #[error(transparent)]
    Configuration(#[from] config::Error),
    /// There is no way to the API server.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// An address can't be served.
    #[error(transparent)]
    Health(#[from] health::Error),
    /// The audit stream can't be written.
    #[error(transparent)]
    Audit(#[from] audit::Error),
    /// The term can't be found out.
    #[error(transparent)]
    Leader(#[from] leader::Error),
    /// Signals or random numbers can't be had.
    #[error("this machine refuses {what}: {source}")]
    Machine {
        /// What was asked of it.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
}

/// What leading needs.
#[derive(Clone)]
pub struct Lead {
    /// The way to the API server.
    pub client: Client,
    /// The clocks.
    pub clock: Clock,
    /// The right to write.
    pub leadership: Leadership,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// How the process feels.
    pub health: Health,
    /// Keeps ledger writes.
    pub audit: Audit,
    /// Who this process is, for notices.
    pub identity: String,
    /// Writes at one time.
    pub concurrency: usize,
    /// How often the leader's own Lease changes; `None` when there is none.
    pub renewals: Option<Duration>,
}

/// Runs until asked to end or leadership is lost. `decider` makes what decides, given the term.
///
/// # Errors
/// When it can't begin.
pub async fn serve<D: Decider>(config: &Controller, decider: impl FnOnce(i64) -> D) -> Result<Ended, Error> {
    config.check()?;
    let clock = Clock::machine();
    let (_trigger, shutdown) = shutdown::on_signal().map_err(|source| Error::Machine { what: "signal handlers", source })?;
    let unique = config::unique().map_err(|source| Error::Machine { what: "random numbers", source })?;
    let (audit, flush) = Audit::open(&config.audit)?;
    let client = client::connect().await?;
    let metrics = Arc::new(Metrics::new());
    let health = Health::new(clock.clone());
    let health_address = health::serve(config.health_address, health.clone(), shutdown.clone()).await?;
    let metrics_address = health::serve_metrics(config.metrics_address, metrics.clone(), shutdown.clone()).await?;
    tracing::info!(%health_address, %metrics_address, version = env!("CARGO_PKG_VERSION"), "controller");

    let election = config.election(&unique);
    let identity = election.identity.clone();
    let renewals = config.leader_election.then(|| Duration::from_secs(u64::from(config.retry_period)));
    let mut elector = Elector::new(client.clone(), clock.clone(), election);
    health.set_ready(true);
    let leadership = tokio::select! {
        leadership = become_leader(&mut elector, config.leader_election, &shutdown) => leadership?,
        () = beat(&health) => None,
    };
    let Some(leadership) = leadership else { return Ok(Ended::Asked) };
    health.set_ready(false);
    metrics.leading.set(1);
    metrics.term.set(leadership.term());
    tracing::info!(term = leadership.term(), identity, "leading");

    let (stop, stopped) = shutdown::channel();
    let keeper = tokio::spawn(elector.keep(leadership.clone(), stopped));
    let decider = decider(leadership.term());
    let concurrency = usize::from(config.concurrency);
    let lead = Lead { client, clock, leadership: leadership.clone(), metrics, health, audit, identity, concurrency, renewals };
    let ended = lead.run(decider, &shutdown).await;

    stop.fire();
    if let (Ended::Asked, Ok(elector)) = (&ended, keeper.await)
        && let Err(error) = elector.hand_back().await
    {
        tracing::warn!(%error, "the Lease runs out by itself");
    }
    flush.wait();
    Ok(ended)
}

async fn become_leader(elector: &mut Elector, competes: bool, shutdown: &Shutdown) -> Result<Option<Leadership>, leader::Error> {
    if competes { Ok(elector.acquire(shutdown).await) } else { elector.adopt().await.map(Some) }
}

/// Standing by is being alive.
async fn beat(health: &Health) {
    let mut ticks = interval(Duration::from_secs(5));
    loop {
        ticks.tick().await;
        health.beat();
    }
}

impl Lead {
    /// Reads, decides and writes until asked to end, leadership is lost, or something broke. No write is on its way afterwards
    /// when it was asked to end, but for those that took too long.
    pub async fn run<D: Decider>(self, decider: D, shutdown: &Shutdown) -> Ended {
        let Self { client, clock, leadership, metrics, health, audit, identity, concurrency, renewals } = self;
        let (sender, events) = mpsc::channel(BATCHES);
        let (notes, writer) = notice::channel(metrics.clone());
        let mut tasks = JoinSet::new();
        let means = Means {
            clock: clock.clone(),
            leadership: leadership.clone(),
            metrics: metrics.clone(),
            audit,
            notes: notes.clone(),
            events: sender.clone(),
        };
        let apply = Apply::new(client.clone(), concurrency, means);
        apply.start(&mut tasks);

        let finishing = Arc::new(Finishing::default());
        let pods = (Arc::new(Notify::new()), Arc::default());
        let lease_silence = renewals.map_or(SILENCE, |period| period * MISSED_RENEWALS);
        let watches = Watches {
            client: client.clone(),
            clock: clock.clone(),
            metrics: metrics.clone(),
            notes,
            finishing: finishing.clone(),
            events: sender.clone(),
            lease_silence,
            pods: pods.clone(),
        };
        let pulses = watches.start(&mut tasks);
        let chatty = renewals.map(|_| (pulses.leases.clone(), i64::try_from(lease_silence.as_millis()).unwrap_or(i64::MAX)));
        let probe = Arc::new(Probe::new(clock.steady()));
        tasks.spawn(forever(probe.clone().run(client.clone(), clock.clone(), metrics.clone(), sender.clone())));
        let notes_written = tokio::spawn(writer.run(client.clone(), clock.clone(), identity));

        let looker = Looker::new(client.clone(), sender.clone());
        let followers = Followers::new(client, clock.clone(), metrics.clone(), finishing, sender, pods);
        let reading = Reading::new(pulses.all, chatty, probe);
        let mut turning =
            Loop { decider, clock, events, apply: apply.clone(), followers, looker, reading, metrics, health: health.clone() };
        let ended = turning.run(shutdown, &leadership, &mut tasks).await;
        health.set_ready(false);
        drop(turning);
        if ended == Ended::Asked {
            apply.close(LAST_WRITES).await;
        }
        tasks.shutdown().await;
        notes_written.abort();
        ended
    }
}

async fn forever(task: impl Future<Output = ()>) -> Result<(), super::apply::Error> {
    task.await;
    Ok(())
}

//! Taking the Lease, keeping it, handing it back. Every write of it is guarded by its resourceVersion.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::time::{sleep, timeout};

use super::{Election, Leadership, Observation, Record, TERM_ANNOTATION, Verdict, evaluate, highest_term};
use crate::runtime::{clock::Clock, shutdown::Shutdown};

/// Why the Lease was not taken, kept or handed back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or gave no answer.
    #[error("{doing}: {source}")]
    Api {
        /// What was tried.
        doing: &'static str,
        /// How it ended.
        source: Box<kube::Error>,
    },
    /// No answer in time.
    #[error("{doing}: no answer within {limit:?}")]
    Late {
        /// What was tried.
        doing: &'static str,
        /// How long it was waited for.
        limit: Duration,
    },
    /// Somebody else holds the Lease now.
    #[error("the Lease is held by {0:?}")]
    Taken(String),
}

/// One process's way to lead.
pub struct Elector {
    client: Client,
    leases: Api<Lease>,
    clock: Clock,
    election: Election,
    held: Option<Lease>,
}

impl Elector {
    /// Nothing is read or written yet.
    #[must_use]
    pub fn new(client: Client, clock: Clock, election: Election) -> Self {
        let leases = Api::namespaced(client.clone(), &election.namespace);
        Self { client, leases, clock, election, held: None }
    }

    /// Waits until this process leads; `None` when the end was asked for first. Errors are logged and tried again.
    pub async fn acquire(&mut self, shutdown: &Shutdown) -> Option<Leadership> {
        let mut seen = None;
        let mut said = String::new();
        loop {
            let pause = match self.attempt(&mut seen).await {
                Ok(Ok(leadership)) => return Some(leadership),
                Ok(Err((holder, left))) => {
                    if said != holder {
                        tracing::info!(holder, "standing by");
                        said = holder;
                    }
                    left.min(self.election.retry_period)
                }
                Err(error) => {
                    tracing::warn!(%error, "can't become leader yet");
                    self.election.retry_period
                }
            };
            tokio::select! {
                () = sleep(milliseconds(pause)) => {}
                () = shutdown.wait() => return None,
            }
        }
    }

    /// Leads without taking the Lease, with the highest term that any Lease or ledger carries, but at least 1.
    ///
    /// # Errors
    /// When the Lease or the ledgers can't be read.
    pub async fn adopt(&self) -> Result<Leadership, Error> {
        let noted = self.read().await?.as_ref().map_or(0, term_of);
        let listed = self.within("reading every ledger's term", highest_term(&self.client)).await?;
        Ok(Leadership::unguarded(noted.max(listed).max(1), self.clock.clone()))
    }

    /// Renews until told to stop or the Lease is lost; in the latter case `leadership` says so before this returns. Who leads
    /// without the Lease has nothing to renew.
    pub async fn keep(mut self, leadership: Leadership, stop: Shutdown) -> Self {
        if self.held.is_none() {
            tokio::select! {
                () = stop.wait() => {}
                () = leadership.lost() => {}
            }
            return self;
        }
        loop {
            tokio::select! {
                () = sleep(milliseconds(self.election.retry_period)) => {}
                () = stop.wait() => return self,
                () = leadership.lost() => return self,
            }
            if !leadership.may_write() {
                tracing::error!("the Lease was not renewed in time: this process leads no more");
                return self;
            }
            match self.renew(&leadership).await {
                Ok(()) => {}
                Err(Error::Taken(holder)) => {
                    tracing::error!(holder, "the Lease was taken: this process leads no more");
                    leadership.lose();
                    return self;
                }
                Err(error) => tracing::warn!(%error, "the Lease was not renewed, trying again"),
            }
        }
    }

    /// Hands the Lease back, so that a standby need not wait for it to run out. Does nothing when it isn't held.
    ///
    /// # Errors
    /// When the API server refuses or doesn't answer; the Lease then runs out by itself.
    pub async fn hand_back(mut self) -> Result<(), Error> {
        let Some(mut lease) = self.held.take() else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.renew_time = Some(MicroTime(self.clock.instant()));
        self.replace(&lease, "handing the Lease back").await.map(drop)
    }

    async fn attempt(&mut self, seen: &mut Option<Observation>) -> Result<Result<Leadership, (String, i64)>, Error> {
        let lease = self.read().await?;
        let record = lease.as_ref().map(record);
        let now = self.clock.steady();
        if let Some(record) = &record {
            Observation::note(seen, record, now);
        }
        match evaluate(&self.election.identity, record.as_ref(), seen.as_ref(), now, self.election.lease_duration) {
            Verdict::Wait(left) => Ok(Err((record.unwrap_or_default().holder, left))),
            Verdict::Create | Verdict::Take | Verdict::Own => self.take(lease).await.map(Ok),
        }
    }

    async fn take(&mut self, lease: Option<Lease>) -> Result<Leadership, Error> {
        let noted = lease.as_ref().map_or(0, term_of);
        let listed = self.within("reading every ledger's term", highest_term(&self.client)).await?;
        let term = noted.max(listed) + 1;
        let sent = self.clock.steady();
        let wanted = self.filled(lease.clone(), term);
        let held = match lease {
            Some(_) => self.replace(&wanted, "taking the Lease").await?,
            None => self.within("creating the Lease", self.leases.create(&PostParams::default(), &wanted)).await?,
        };
        self.held = Some(held);
        Ok(Leadership::new(term, self.clock.clone(), sent + self.election.renew_deadline))
    }

    async fn renew(&mut self, leadership: &Leadership) -> Result<(), Error> {
        let Some(mut lease) = self.held.clone() else { return Err(Error::Taken(String::new())) };
        lease.spec.get_or_insert_default().renew_time = Some(MicroTime(self.clock.instant()));
        let sent = self.clock.steady();
        match self.replace(&lease, "renewing the Lease").await {
            Ok(renewed) => {
                self.held = Some(renewed);
                let _kept = leadership.extend(sent + self.election.renew_deadline);
                Ok(())
            }
            Err(failed) => {
                // Perhaps only the answer was lost, or somebody annotated the Lease: its holder decides.
                match self.read().await? {
                    Some(lease) if record(&lease).holder == self.election.identity => self.held = Some(lease),
                    Some(lease) => return Err(Error::Taken(record(&lease).holder)),
                    None => return Err(Error::Taken(String::new())),
                }
                Err(failed)
            }
        }
    }

    fn filled(&self, lease: Option<Lease>, term: i64) -> Lease {
        let mut lease = lease.unwrap_or_else(|| Lease {
            metadata: ObjectMeta { name: Some(self.election.name.clone()), ..ObjectMeta::default() },
            spec: None,
        });
        lease.metadata.annotations.get_or_insert_with(BTreeMap::new).insert(TERM_ANNOTATION.into(), term.to_string());
        let before = lease.spec.take().unwrap_or_default();
        let now = MicroTime(self.clock.instant());
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.election.identity.clone()),
            lease_duration_seconds: i32::try_from(self.election.lease_duration.div_euclid(1_000).max(1)).ok(),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: Some(before.lease_transitions.unwrap_or(0).saturating_add(1)),
            ..before
        });
        lease
    }

    async fn read(&self) -> Result<Option<Lease>, Error> {
        self.within("reading the Lease", self.leases.get_opt(&self.election.name)).await
    }

    async fn replace(&self, lease: &Lease, doing: &'static str) -> Result<Lease, Error> {
        self.within(doing, self.leases.replace(&self.election.name, &PostParams::default(), lease)).await
    }

    async fn within<T>(&self, doing: &'static str, work: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Error> {
        let limit = milliseconds(self.election.renew_deadline / 2);
        match timeout(limit, work).await {
            Ok(done) => done.map_err(|source| Error::Api { doing, source: Box::new(source) }),
            Err(_elapsed) => Err(Error::Late { doing, limit }),
        }
    }
}

/// The term a Lease was last held with, 0 when it says none.
fn term_of(lease: &Lease) -> i64 {
    let noted = lease.metadata.annotations.as_ref().and_then(|all| all.get(TERM_ANNOTATION));
    noted.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn record(lease: &Lease) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    Record {
        holder: spec.holder_identity.unwrap_or_default(),
        duration: i64::from(spec.lease_duration_seconds.unwrap_or(0)) * 1_000,
        resource_version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}

fn milliseconds(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or(0))
}

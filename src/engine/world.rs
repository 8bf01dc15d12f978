//! All the engine knows, indexed so that a step touches only what its events touched.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use crate::api::{Claim, ClaimSpec, ClaimStatus, Mode, Resource, ResourceClassSpec, ResourceSpec, ResourceStatus};

use super::{
    clockwork::{Alarms, HolderClock},
    event::{ScopeKind, ScopeTarget},
    look::{Departed, Sought},
    order::{Lanes, Order},
    outbox::Outbox,
    selection::Groups,
    slab::{Place, Slab},
};

/// Where a Resource is kept.
pub type ResourceIx = Place<ResourceRecord>;
/// Where a Claim is kept.
pub type ClaimIx = Place<ClaimRecord>;

/// A Resource and what was decided about it.
#[derive(Debug, Default)]
pub struct ResourceRecord {
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: String,
    /// When it was made. Unix milliseconds.
    pub created: i64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its spec as last seen.
    pub spec: Arc<ResourceSpec>,
    /// Its ledger as decided: what stands there and what is on its way.
    pub ledger: Arc<ResourceStatus>,
    /// Writes of its ledger.
    pub outbox: Outbox<ResourceStatus, Resource>,
    /// Who waits for it.
    pub queue: Lanes,
    /// Claims whose confirmed grants name it.
    pub holders: BTreeSet<ClaimIx>,
    /// The uids of the claims its ledger names as reserving or holding, as `World::holdings` has them.
    pub names: BTreeSet<Arc<str>>,
    /// By when its queue and reservations are to be shown. Milliseconds of the holders' clock.
    pub shown_by: Option<i64>,
    /// Under which parent it is kept in `World::children`.
    pub listed_under: Option<String>,
    /// Why its ledger can't be worked with.
    pub invalid: Option<String>,
    /// Since when nothing occupies or awaits it, for an invented one. Milliseconds of the holders' clock.
    pub idle_since: Option<i64>,
    /// Claims that wait for the end of the write that is on its way: its deletion, or its listing what is under it.
    pub awaited: BTreeSet<ClaimIx>,
}

/// What was decided of one request: which Resource, how much, under which fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which request of the claim, by its place.
    pub request: usize,
    /// Which Resource.
    pub resource: ResourceIx,
    /// Exclusive or Shared.
    pub mode: Mode,
    /// How many units.
    pub quantity: i64,
    /// The fence; that of the share it joins when `joins` (M5).
    pub fence: i64,
    /// It joins an occupancy that is there already (M5).
    pub joins: bool,
}

/// How far the engine is with a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// To be decided.
    #[default]
    Undecided,
    /// It waits for its scope to be seen, without a place in a queue (S1).
    AwaitingScope,
    /// It waits for Resources that are being invented (M3), or for a second look at what it names.
    AwaitingResources,
    /// It stands in queues.
    Queued,
    /// Its shares are on their way into the ledgers.
    Reserving(Vec<Share>),
    /// Its commit is on its way.
    Committing(Vec<Share>),
    /// A higher attempt is on its way, so that its reservations become void.
    TakingBack,
    /// It holds.
    Live,
    /// It is over.
    Final,
}

/// A Claim and what was decided about it.
#[derive(Debug, Default)]
pub struct ClaimRecord {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
    /// When it was made. Unix milliseconds.
    pub created: i64,
    /// Its version when it was first seen.
    pub born: u64,
    /// `metadata.generation`.
    pub generation: i64,
    /// It is being deleted, or its holder released it.
    pub released: bool,
    /// Its spec as last seen.
    pub spec: Arc<ClaimSpec>,
    /// Its status as decided.
    pub status: Arc<ClaimStatus>,
    /// Writes of its status.
    pub outbox: Outbox<ClaimStatus, Claim>,
    /// How far the engine is with it.
    pub stage: Stage,
    /// The Resources it stands in line for, by request.
    pub picks: Vec<Vec<ResourceIx>>,
    /// All queues it stands in: its picks and what is under them (C10).
    pub stands: BTreeSet<ResourceIx>,
    /// It became unsatisfiable while it waited and stands in no one's way (M7).
    pub aside: bool,
    /// Its scope targets: the claim's own first, then those of requests.
    pub scopes: Vec<ScopeTarget>,
    /// Its admission deadline. Milliseconds of the holders' clock.
    pub admit_by: Option<i64>,
    /// Its hard end. Milliseconds of the holders' clock.
    pub end_by: Option<i64>,
    /// The last renewal of its Lease that was seen (L2).
    pub renewed: Option<String>,
    /// What was read from the store, or is being read, before it is refused.
    pub looked_for: Vec<Sought>,
    /// How many such readings go on.
    pub looking: u32,
    /// Receipts whose verdict waits for the claim's status to be confirmed.
    pub verdicts: Vec<String>,
}

impl ClaimRecord {
    /// Its place in the one global order (M4, Q4, Q8).
    pub fn order(&self) -> Order {
        let ticket = self.status.ticket;
        Order {
            ordinary: self.spec.drain.is_none(),
            ticket: ticket.unwrap_or(i64::MAX),
            created: self.created,
            born: if ticket.is_some() { 0 } else { self.born },
            uid: self.uid.clone(),
        }
    }

    /// How long it may wait. Seconds (Q1, D1).
    pub fn wait_seconds(&self) -> i64 {
        match &self.spec.drain {
            Some(drain) => drain.deadline_seconds,
            None => self.spec.max_wait_seconds.unwrap_or(0),
        }
    }
}

/// What is known of an object that a claim's scope may name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeFact {
    /// Its uid.
    pub uid: String,
    /// It is finished (S1).
    pub finished: bool,
}

/// A kind that scopes name.
#[derive(Debug, Default)]
pub struct KindRecord {
    /// All its objects were reported, so that what was not reported does not exist (S5).
    pub readable: bool,
    /// How many claims name it.
    pub named: usize,
}

/// A Namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamespaceRecord {
    /// Its uid.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Nothing new is granted there (Q2).
    pub frozen: bool,
}

/// What a deleted Resource leaves behind until its name is used again.
#[derive(Clone, Debug)]
pub struct Ghost {
    /// Its ledger as last known.
    pub ledger: Arc<ResourceStatus>,
    /// Until when a new object of its name is granted to nobody. Unix milliseconds.
    pub until: i64,
}

/// A record with an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// A Resource.
    Resource(ResourceIx),
    /// A Claim.
    Claim(ClaimIx),
}

/// A receipt whose verdict has not been written yet.
#[derive(Clone, Debug)]
pub struct ReceiptRecord {
    /// The receipt.
    pub receipt: crate::api::Receipt,
    /// What the engine made of it.
    pub verdict: Option<crate::api::ReceiptStatus>,
    /// The verdict was sent.
    pub sent: bool,
    /// The number of its write.
    pub number: u64,
}

/// All the engine knows.
#[derive(Debug, Default)]
pub struct World {
    /// All Resources.
    pub resources: Slab<ResourceRecord>,
    /// All Claims.
    pub claims: Slab<ClaimRecord>,
    /// Resources by name.
    pub resource_by_name: HashMap<Arc<str>, ResourceIx>,
    /// Claims by uid.
    pub claim_by_uid: HashMap<Arc<str>, ClaimIx>,
    /// Claims by namespace and name.
    pub claim_by_name: BTreeMap<(Arc<str>, Arc<str>), ClaimIx>,
    /// Declared Resources by key, the oldest first (M3).
    pub declared: HashMap<String, BTreeSet<(i64, String, ResourceIx)>>,
    /// Invented Resources by key and namespace; the namespace is empty when all share it (M3).
    pub invented: HashMap<String, BTreeMap<String, ResourceIx>>,
    /// How many invented keys each namespace has (M3).
    pub invented_count: HashMap<String, usize>,
    /// Names being invented, the claims that wait for them, and how often it failed.
    pub inventing: BTreeMap<String, super::invent::Invention>,
    /// Resources by the name of the parent that counts, by name (C10).
    pub children: HashMap<String, BTreeMap<Arc<str>, ResourceIx>>,
    /// Resources by class.
    pub by_class: HashMap<String, BTreeSet<ResourceIx>>,
    /// Classes by name.
    pub classes: BTreeMap<String, ResourceClassSpec>,
    /// Selectors that claims use.
    pub groups: Groups,
    /// Which Resources' ledgers name a claim, by the claim's uid.
    pub holdings: HashMap<Arc<str>, BTreeSet<ResourceIx>>,
    /// Claims that ledgers name and that are surely gone, by uid.
    pub absent: HashSet<Arc<str>>,
    /// Claims that ledgers name and that are being read, by uid.
    pub sought: HashSet<Arc<str>>,
    /// Living claims whose granted Resource is missing, by its name (O6).
    pub orphans: HashMap<String, BTreeSet<ClaimIx>>,
    /// The uids of Resources that were deleted lately.
    pub departed: Departed,
    /// Deleted Resources that were occupied or not seen to be free, by name.
    pub ghosts: BTreeMap<String, Ghost>,
    /// What is known of scope targets.
    pub scope_facts: HashMap<ScopeTarget, ScopeFact>,
    /// Which claims name a scope target.
    pub scoped: HashMap<ScopeTarget, BTreeSet<ClaimIx>>,
    /// Kinds of scope targets.
    pub kinds: BTreeMap<ScopeKind, KindRecord>,
    /// Namespaces.
    pub namespaces: HashMap<String, NamespaceRecord>,
    /// Claims that are not decided, by namespace.
    pub undecided: HashMap<Arc<str>, BTreeSet<ClaimIx>>,
    /// Receipts with a verdict on its way.
    pub receipts: BTreeMap<String, ReceiptRecord>,
    /// The highest ticket given (Q8).
    pub last_ticket: i64,
    /// The highest term seen in a ledger.
    pub highest_term: i64,
    /// Everything has been read: decisions are made.
    pub filled: bool,
    /// The operator's namespace says so (L13).
    pub paused: bool,
    /// Clock skew from the API server. Milliseconds.
    pub skew: i64,
    /// The time that counts against holders.
    pub holder_clock: HolderClock,
    /// Alarms on the wall clock.
    pub wall: Alarms<Object>,
    /// Alarms on the holders' clock.
    pub steady: Alarms<Object>,
    /// Resources whose queue or reservations are to be shown soon, on the holders' clock.
    pub lazy: Alarms<ResourceIx>,
    /// Holders kept by heartbeat.
    pub beats: super::heartbeat::Beats,
}

impl World {
    /// The Resource of this name.
    pub fn resource(&self, name: &str) -> Option<ResourceIx> {
        self.resource_by_name.get(name).copied()
    }

    /// The Claim of this uid.
    pub fn claim(&self, uid: &str) -> Option<ClaimIx> {
        self.claim_by_uid.get(uid).copied()
    }

    /// Everything under a Resource, all levels, as its ledgers list it; at most `limit` and one more.
    pub fn under(&self, resource: ResourceIx, limit: usize) -> Vec<ResourceIx> {
        let mut found = Vec::new();
        let mut next = 0;
        let mut at = resource;
        loop {
            for child in &self.resources[at].ledger.children {
                if let Some(child) = self.resource(child)
                    && child != resource
                    && !found.contains(&child)
                    && found.len() <= limit
                {
                    found.push(child);
                }
            }
            let Some(&following) = found.get(next) else { return found };
            at = following;
            next += 1;
        }
    }

    /// The Resources a Resource is inside, the nearest first, or `None` if one is missing, does not list it, or there is a cycle (C10).
    pub fn above(&self, resource: ResourceIx) -> Option<Vec<ResourceIx>> {
        let mut found = Vec::new();
        let mut at = resource;
        while let Some(parent) = self.resources[at].ledger.effective.as_ref().and_then(|effective| effective.parent.as_deref()) {
            let parent = self.resource(parent)?;
            let name = &*self.resources[at].name;
            let lists = self.resources[parent].outbox.confirmed.children.iter().any(|child| child == name);
            if !lists || found.len() >= LEVELS || parent == resource {
                return None;
            }
            found.push(parent);
            at = parent;
        }
        Some(found)
    }
}

/// How many levels of Resources there may be above one (C10).
pub const LEVELS: usize = 3;
/// How many Resources one may have under it (C10).
pub const UNDER: usize = 128;

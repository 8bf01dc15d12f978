//! A workload made from a seed: Resources, and claims that come, hold and let go.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::api::{Capacity, ClaimSpec, Mode, Request, ResourceSpec};

/// What a run is to look like.
#[derive(Clone, Debug)]
pub struct Workload {
    /// How many Resources there are: one in ten a pool, one in five a GPU that selectors find, the rest locks.
    pub resources: usize,
    /// How many claims come in all.
    pub claims: usize,
    /// How long a claim holds on average. Seconds.
    pub hold_seconds: u64,
    /// How long a claim waits at most. Seconds.
    pub wait_seconds: i64,
    /// How busy the Resources are on average. Percent of what they could hold.
    pub load_percent: u64,
    /// How many claims of a hundred ask for two Resources.
    pub several_percent: u64,
    /// How many claims of a hundred ask by selector.
    pub selector_percent: u64,
    /// What decides every choice.
    pub seed: u64,
}

/// Numbers that a seed decides (xorshift64*).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `sides`, or 0 when there are none.
    pub fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D).checked_rem(sides).unwrap_or(0)
    }

    /// A time with this average: the gaps of things that come independently of each other.
    pub fn gap(&mut self, average: u64) -> u64 {
        let unit = (self.below(1 << 30) + 1) as f64 / (1u64 << 30) as f64;
        (-unit.ln() * average as f64) as u64
    }
}

/// What kind of Resource stands at this place, with its labels.
pub fn resource(place: usize) -> (String, Vec<(&'static str, &'static str)>, ResourceSpec) {
    match place % 10 {
        0 => {
            let capacity = Capacity { mode: Mode::Shared, quantity: Some(8), ..Default::default() };
            (format!("pool-{place}"), Vec::new(), ResourceSpec { capacity: Some(capacity), ..Default::default() })
        }
        1 | 2 => (format!("gpu-{place}"), vec![("gpu", "a100")], ResourceSpec::default()),
        _ => (format!("lock-{place}"), Vec::new(), ResourceSpec::default()),
    }
}

impl Workload {
    /// The next claim.
    pub fn claim(&self, dice: &mut Dice) -> ClaimSpec {
        let mut requests = vec![self.request(dice, "first")];
        if dice.below(100) < self.several_percent {
            requests.push(self.request(dice, "second"));
        }
        if requests.len() == 2 && requests[0].resource.is_some() && requests[0].resource == requests[1].resource {
            requests.pop();
        }
        ClaimSpec {
            requests,
            max_wait_seconds: Some(self.wait_seconds),
            lease_seconds: Some(86_400),
            ttl_seconds_after_finished: Some(0),
            ..Default::default()
        }
    }

    fn request(&self, dice: &mut Dice, name: &str) -> Request {
        let mut request = Request { name: name.to_owned(), ..Default::default() };
        if dice.below(100) < self.selector_percent && self.resources > 2 {
            let labels = BTreeMap::from([("gpu".to_owned(), "a100".to_owned())]);
            request.selector = Some(LabelSelector { match_labels: Some(labels), match_expressions: None });
            return request;
        }
        let (resource, _, spec) = resource(dice.below(self.resources as u64) as usize);
        if spec.capacity.is_some() {
            request.mode = Some(Mode::Shared);
            request.quantity = Some(1 + dice.below(3) as i64);
        }
        request.resource = Some(resource);
        request
    }

    /// The average time between two claims, so that Resources are as busy as wanted. Microseconds.
    pub fn gap_micros(&self) -> u64 {
        let busy = (self.resources as u64 * self.load_percent).max(1);
        (self.hold_seconds * 1_000_000 * 100 / busy).max(1)
    }
}

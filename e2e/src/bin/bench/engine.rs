//! The engine alone: how long one step with one event takes, and whether a grant costs more when there are more claims.

use std::{collections::VecDeque, time::Instant};

use tenure::{
    api::{ClaimSpec, Request, ResourceSpec},
    engine::{
        Engine, Settings,
        action::Action,
        event::{Event, Now},
    },
    simulator::{store::Store, workload::Dice},
};

use super::figure::Figure;

const WALL: i64 = 1_700_000_000_000;

struct Bench {
    engine: Engine,
    store: Store,
    now: Now,
    dice: Dice,
    resources: u64,
    made: u64,
}

/// All figures of the engine.
pub fn measure(quick: bool) -> Vec<Figure> {
    let rounds = if quick { 300 } else { 2_000 };
    let mut large = Bench::new(10_000, 100_000);
    let steps = large.steps(rounds);
    let mut small = Bench::new(100, 1_000);
    let mut ratios = Vec::new();
    for _ in 0..if quick { 5 } else { 11 } {
        let few = small.grant(rounds / 4);
        ratios.push(large.grant(rounds / 4) / few);
    }
    vec![Figure::new("engine_step_us", "us", steps), Figure::new("engine_flatness_ratio", "ratio", ratios)]
}

fn claim(resource: u64, wait: i64) -> ClaimSpec {
    let request = Request { name: "it".to_owned(), resource: Some(format!("lock-{resource}")), ..Default::default() };
    ClaimSpec {
        requests: vec![request],
        max_wait_seconds: Some(wait),
        lease_seconds: Some(86_400),
        ttl_seconds_after_finished: Some(0),
        ..Default::default()
    }
}

impl Bench {
    /// So many Resources with so many claims on them: one holds each, the others wait.
    fn new(resources: u64, claims: u64) -> Self {
        let mut bench = Self {
            engine: Engine::new(Settings { term: 1, operator_namespace: String::new() }),
            store: Store::default(),
            now: Now { wall: WALL, steady: 0 },
            dice: Dice::new(1),
            resources,
            made: 0,
        };
        let mut events: Vec<Event> = (0..resources)
            .filter_map(|place| bench.store.add_resource(&format!("lock-{place}"), &[], ResourceSpec::default(), WALL))
            .collect();
        events.push(Event::Filled);
        bench.tell(events, &mut Vec::new());
        for place in 0..claims {
            bench.arrive(place % resources, &mut Vec::new());
        }
        bench
    }

    /// Tells one event at a time and notes how long each step took. Microseconds.
    fn tell(&mut self, events: Vec<Event>, took: &mut Vec<f64>) {
        let mut waiting: VecDeque<Event> = events.into();
        while let Some(event) = waiting.pop_front() {
            let begin = Instant::now();
            let actions = self.engine.step(self.now, vec![event]);
            took.push(begin.elapsed().as_secs_f64() * 1e6);
            for action in actions {
                match action {
                    Action::Write(write) => waiting.extend(self.store.write(&write, self.now.wall)),
                    Action::Look { claim, sought } => waiting.push_back(Event::Looked { claim, found: self.store.look(&sought) }),
                    Action::Find(claim) => waiting.push_back(self.store.find(&claim)),
                    Action::Follow(_) | Action::Unfollow(_) => {}
                }
            }
        }
    }

    fn arrive(&mut self, resource: u64, took: &mut Vec<f64>) {
        let name = format!("claim-{}", self.made);
        self.made += 1;
        let event = self.store.add_claim("bench", &name, claim(resource, 3_600), self.now.wall);
        self.tell(event.into_iter().collect(), took);
    }

    /// A claim comes, and the oldest holder lets go, so that a waiter is granted.
    fn round(&mut self, took: &mut Vec<f64>) {
        self.now.wall += 1;
        self.now.steady += 1;
        let resource = self.dice.below(self.resources);
        self.arrive(resource, took);
        let holder =
            self.store.resources.get(&format!("lock-{resource}")).and_then(|resource| resource.status.as_ref()?.current_claim.clone());
        if let Some(holder) = holder {
            let event = self.store.release("bench", &holder.name);
            self.tell(event.into_iter().collect(), took);
        }
    }

    fn steps(&mut self, rounds: usize) -> Vec<f64> {
        let mut took = Vec::new();
        for _ in 0..rounds {
            self.round(&mut took);
        }
        took
    }

    /// The engine's time for one grant with all that belongs to it, at the median. Microseconds.
    fn grant(&mut self, rounds: usize) -> f64 {
        let mut all = Vec::new();
        for _ in 0..rounds {
            let mut took = Vec::new();
            self.round(&mut took);
            all.push(took.iter().sum::<f64>());
        }
        Figure::new("", "", all).at(500)
    }
}

//! What people and programs do meanwhile: the Resources there are, and claims made, released, deleted and admitted.

use super::{super::bench::*, Chaos, Dice, NAMES};
use crate::{api::*, engine::event::Event};

pub(super) fn spec(name: &str) -> ResourceSpec {
    match name {
        "pool" => pool(4),
        "many" => unlimited(),
        "machine" => machine(),
        "gpu-0" | "gpu-1" => ResourceSpec { parent: Some("host".to_owned()), ..mutex() },
        _ => mutex(),
    }
}

pub(super) fn labels(name: &str) -> &'static [(&'static str, &'static str)] {
    if name.starts_with("gpu") { &[("gpu", "a100")] } else { &[] }
}

impl Chaos {
    pub(super) fn use_it(&mut self) {
        let events = match self.dice.roll(12) {
            0..=5 => self.make_claim(),
            6..=7 => self.pick_claim().and_then(|name| self.store.release("team-a", &name)).into_iter().collect(),
            8 => self.pick_claim().map(|name| self.store.remove_claim("team-a", &name)).unwrap_or_default(),
            9 => {
                let name = NAMES[self.dice.roll(NAMES.len())];
                let text = format!("{}", self.made);
                self.store.change_resource(name, |spec| spec.display_name = Some(text)).into_iter().collect()
            }
            10 => self.make_again(),
            _ => self.admit_something(),
        };
        self.broadcast(events);
    }

    fn make_claim(&mut self) -> Vec<Event> {
        self.made += 1;
        let wait = [0, 20, 600][self.dice.roll(3)];
        let request = |dice: &mut Dice| match dice.roll(8) {
            0 => named("lock"),
            1 => shared("pool", 1 + dice.roll(3) as i64),
            2 => named("pool"),
            3 => named("host"),
            4 => selecting("gpu", "a100", 1 + dice.roll(2) as i64),
            5 => named("machine"),
            6 => shared("many", 1),
            _ => named("gpu-1"),
        };
        let count = 1 + self.dice.roll(5) / 3;
        let requests = (0..count).map(|_| request(&mut self.dice)).collect();
        let lease_seconds = Some([30, 3_600][self.dice.roll(2)]);
        let ttl_seconds_after_finished = [None, Some(0), Some(60)][self.dice.roll(3)];
        let spec = ClaimSpec { lease_seconds, ttl_seconds_after_finished, ..ask(requests, wait) };
        self.store.add_claim("team-a", &format!("c{}", self.made), spec, self.now.wall).into_iter().collect()
    }

    fn pick_claim(&mut self) -> Option<String> {
        let mut names: Vec<&String> = self.store.claims.keys().map(|(_, name)| name).collect();
        names.sort();
        (!names.is_empty()).then(|| names[self.dice.roll(names.len())].clone())
    }

    /// As the API server's policy has it: only what nothing occupies is deleted.
    fn make_again(&mut self) -> Vec<Event> {
        let name = NAMES[self.dice.roll(NAMES.len())];
        let occupied = self
            .store
            .resources
            .get(name)
            .is_some_and(|resource| resource.status.as_ref().is_some_and(|status| !status.occupants.is_empty()));
        if occupied {
            return Vec::new();
        }
        let mut events = self.store.remove_resource(name);
        events.extend(self.store.add_resource(name, labels(name), spec(name), self.now.wall));
        events
    }

    fn admit_something(&mut self) -> Vec<Event> {
        let Some(name) = self.pick_claim() else { return Vec::new() };
        let claim = &self.store.claims[&("team-a".to_owned(), name.clone())];
        let status = claim.status.clone().unwrap_or_default();
        let Some(grant) = status.grants.iter().find(|grant| grant.resource == "machine") else { return Vec::new() };
        let spec = ReceiptSpec {
            resource: "machine".to_owned(),
            fence: grant.fence,
            claim: Some(ClaimReference { namespace: "team-a".to_owned(), name, uid: claim.metadata.uid.clone().unwrap_or_default() }),
            admission: Some(if self.dice.one_in(4) { Admission::Refused } else { Admission::Admitted }),
            cleanup: Some(Cleanup::Pristine),
            provider: Some("generic".to_owned()),
            provider_host_key: Some("host-1".to_owned()),
            reporter: Some(Account { user: "agent".to_owned(), node: None }),
            ..Default::default()
        };
        self.receipts += 1;
        let (name, wall) = (format!("r{}", self.receipts), self.now.wall);
        vec![self.store.add_receipt(&name, spec, wall)]
    }
}

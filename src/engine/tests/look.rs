//! What is refused for good is looked at once more before.

use super::bench::*;
use crate::{
    api::*,
    engine::{
        action::Action,
        event::{Event, Finding},
        look::Sought,
    },
};

/// A Resource that was made and that no watch has told of.
fn unseen(bench: &mut Bench, name: &str, labels: &[(&str, &str)], spec: ResourceSpec) -> Event {
    bench.store.add_resource(name, labels, spec, bench.now.wall).unwrap()
}

#[test]
fn q2_a_resource_that_was_not_seen_yet_is_not_taken_for_missing() {
    let mut bench = Bench::default();
    unseen(&mut bench, "gpu", &[], mutex());
    bench.claim("c", asks(named("gpu"), 0));
    assert_eq!(bench.phase("c"), Phase::Active);
    assert_eq!(bench.looks, [[Sought::Resource("gpu".into())]]);
}

#[test]
fn q2_one_that_is_truly_missing_is_looked_for_once() {
    let mut bench = Bench::default();
    bench.claim("c", asks(named("gpu"), 60));
    assert_eq!((bench.phase("c"), bench.reason("c")), (Phase::Denied, Some(Reason::NotFound)));
    assert_eq!(bench.looks.len(), 1);
}

#[test]
fn m3_a_declared_key_that_was_not_seen_yet_is_not_invented() {
    let mut bench = Bench::default();
    let class = ResourceClass::new("invented", ResourceClassSpec { on_demand: true, ..Default::default() });
    bench.tell(vec![Event::Class(Box::new(class))]);
    unseen(&mut bench, "db", &[], ResourceSpec { key: Some("locks/db".into()), ..mutex() });
    bench.claim("c", asks(Request { key: Some("locks/db".into()), ..Default::default() }, 0));
    assert_eq!(bench.phase("c"), Phase::Active);
    assert_eq!(bench.store.resources.keys().collect::<Vec<_>>(), ["db"]);
}

#[test]
fn m7_unsatisfiable_is_said_of_all_that_there_is() {
    let mut bench = Bench::default();
    bench.labelled("a", &[("kind", "gpu")], mutex());
    unseen(&mut bench, "b", &[("kind", "gpu")], mutex());
    bench.claim("two", asks(selecting("kind", "gpu", 2), 0));
    bench.claim("three", asks(selecting("kind", "gpu", 3), 60));
    assert_eq!(bench.phase("two"), Phase::Active);
    assert_eq!(bench.reason("three"), Some(Reason::Unsatisfiable));
}

#[test]
fn c7_a_resource_is_weighed_as_it_is_before_it_refuses() {
    let mut bench = Bench::default();
    bench.resource("pool", pool(2));
    bench.store.change_resource("pool", |spec| *spec = pool(4)).unwrap();
    bench.claim("c", asks(shared("pool", 3), 0));
    assert_eq!(bench.phase("c"), Phase::Active);
}

#[test]
fn c10_a_parent_that_was_not_seen_yet_is_looked_for() {
    let mut bench = Bench::default();
    unseen(&mut bench, "host", &[], mutex());
    unseen(&mut bench, "gpu", &[], ResourceSpec { parent: Some("host".into()), ..mutex() });
    bench.claim("c", asks(named("gpu"), 0));
    assert_eq!(bench.phase("c"), Phase::Active);
}

#[test]
fn q2_a_claim_whose_namespace_was_not_seen_yet_waits_for_it() {
    let mut bench = Bench::default();
    let selector = selecting("tier", "new", 1).selector;
    bench.resource("gpu", ResourceSpec { lending: Some(Lending { namespaces: selector, ..Default::default() }), ..mutex() });
    let event = bench.store.add_claim("fresh", "c", asks(named("gpu"), 0), bench.now.wall).unwrap();
    bench.tell(vec![event]);
    let phase = |bench: &Bench| bench.store.claims[&("fresh".to_owned(), "c".to_owned())].status.clone().unwrap_or_default().phase;
    assert_eq!(phase(&bench), Phase::Pending);
    bench.tell(vec![namespace("fresh", &[("tier", "new")], false)]);
    assert_eq!(phase(&bench), Phase::Active);
}

#[test]
fn c9_a_reading_older_than_a_deletion_brings_nothing_back() {
    let mut bench = Bench::default();
    bench.resource("gpu", mutex());
    let before = bench.store.resources["gpu"].clone();
    let gone = bench.store.remove_resource("gpu");
    bench.tell(gone);
    let claim = bench.store.add_claim("team-a", "c", asks(named("gpu"), 0), bench.now.wall).unwrap();
    let actions = bench.engine.step(bench.now, vec![claim]);
    assert!(matches!(&actions[..], [Action::Look { .. }]), "{actions:?}");
    let uid = bench.store.claims[&("team-a".to_owned(), "c".to_owned())].metadata.uid.clone().unwrap();
    bench.tell(vec![Event::Looked { claim: uid, found: vec![before] }]);
    assert_eq!(bench.reason("c"), Some(Reason::NotFound));
    assert!(bench.engine.world().resource("gpu").is_none());
}

/// A second leader sees a ledger of the first one, and not yet the claim in it.
fn told_of_the_ledger_only(bench: &mut Bench) -> Vec<Action> {
    bench.resource("lock", mutex());
    let claim = bench.store.add_claim("team-a", "c", asks(named("lock"), 0), bench.now.wall).unwrap();
    let reserves = bench.engine.step(bench.now, vec![claim]);
    let [Action::Write(write)] = &reserves[..] else { panic!("{reserves:?}") };
    bench.store.write(write, bench.now.wall);
    bench.engine = crate::engine::Engine::new(crate::engine::Settings { term: 2, operator_namespace: String::new() });
    let ledger = Event::Resource(Box::new(bench.store.resources["lock"].clone()));
    bench.engine.step(bench.now, vec![namespace("team-a", &[], false), ledger, Event::Filled])
}

#[test]
fn c9_a_claim_that_was_only_not_seen_yet_keeps_its_reservation() {
    let mut bench = Bench::default();
    let actions = told_of_the_ledger_only(&mut bench);
    let [Action::Find(sought)] = &actions[..] else { panic!("{actions:?}") };
    let found = bench.store.find(sought);
    bench.tell(vec![found]);
    assert_eq!(bench.phase("c"), Phase::Active);
    assert_eq!(bench.states("lock"), [OccupantState::Held]);
}

#[test]
fn l8_a_claim_that_is_gone_is_known_by_the_store_not_by_silence() {
    let mut bench = Bench::default();
    let actions = told_of_the_ledger_only(&mut bench);
    let [Action::Find(sought)] = &actions[..] else { panic!("{actions:?}") };
    let unknown = Event::Found { uid: sought.uid.clone(), finding: Finding::Unknown };
    let again = bench.engine.step(bench.now, vec![unknown]);
    assert!(matches!(&again[..], [Action::Find(same)] if same == sought), "{again:?}");
    bench.store.remove_claim("team-a", "c");
    let found = bench.store.find(sought);
    bench.tell(vec![found]);
    assert_eq!(bench.states("lock"), []);
}

use super::bench::*;
use crate::{api::*, engine::action::Body};

fn gpus(bench: &mut Bench, count: usize) {
    for place in 0..count {
        bench.labelled(&format!("gpu-{place}"), &[("gpu", "a100")], mutex());
    }
}

#[test]
fn m1_all_or_none() {
    let mut bench = Bench::default();
    gpus(&mut bench, 2);
    bench.claim("holder", asks(named("gpu-1"), 0));
    bench.claim("both", asks(selecting("gpu", "a100", 2), 600));
    assert_eq!(bench.phase("both"), Phase::Queued);
    assert!(bench.ledger("gpu-0").occupants.is_empty());
    bench.release("holder");
    assert_eq!(bench.phase("both"), Phase::Active);
    assert_eq!(bench.status("both").resources.as_deref(), Some("gpu-0,gpu-1"));
    bench.pass(2);
    assert_eq!(bench.states("gpu-0"), [OccupantState::Held]);
}

#[test]
fn m1_a_reservation_that_fails_is_taken_back_under_a_higher_attempt() {
    let mut bench = Bench::default();
    gpus(&mut bench, 2);
    bench.writes.clear();
    // Somebody changes gpu-1 unseen, so that the reservation there is refused while the one on gpu-0 is taken.
    let _unseen = bench.store.change_resource("gpu-1", |spec| spec.display_name = Some("the second".to_owned()));
    bench.claim("both", ask(vec![named("gpu-0"), named("gpu-1")], 600));
    assert_eq!(bench.phase("both"), Phase::Active);
    assert_eq!(bench.status("both").attempt, 1);
    let first =
        bench.writes.iter().position(|write| matches!(&write.body, Body::Claim(status) if status.attempt == 1)).expect("taken back");
    let reserves = |ledger: &ResourceStatus| ledger.occupants.iter().flat_map(|occupant| &occupant.claims).any(|claim| claim.attempt == 0);
    let freed =
        bench.writes.iter().position(|write| matches!(&write.body, Body::Ledger { after, before } if !reserves(after) && reserves(before)));
    assert!(freed.is_some_and(|freed| freed > first), "nothing is freed before the attempt is void");
}

#[test]
fn m2_fewest_free_units_left_over_then_name() {
    let mut bench = Bench::default();
    for (name, quantity) in [("pool-a", 10), ("pool-b", 4), ("pool-c", 4)] {
        bench.labelled(name, &[("kind", "seats")], pool(quantity));
    }
    let seats = |quantity| Request { mode: Some(Mode::Shared), quantity: Some(quantity), ..selecting("kind", "seats", 1) };
    for (name, quantity, expected) in [("one", 3, "pool-b"), ("two", 1, "pool-b"), ("three", 4, "pool-c"), ("four", 1, "pool-a")] {
        bench.claim(name, asks(seats(quantity), 0));
        assert_eq!(bench.status(name).resources.as_deref(), Some(expected), "{name}");
    }
}

#[test]
fn m2_colocated_resources_share_one_parent() {
    let mut bench = Bench::default();
    for node in ["n1", "n2"] {
        bench.resource(node, mutex());
        for place in 0..2 {
            bench.labelled(&format!("{node}-gpu-{place}"), &[("gpu", "a100")], ResourceSpec { parent: Some(node.to_owned()), ..mutex() });
        }
    }
    bench.claim("one", asks(named("n1-gpu-1"), 0));
    bench.claim("pair", ClaimSpec { colocate: true, ..asks(selecting("gpu", "a100", 2), 0) });
    assert_eq!(bench.status("pair").resources.as_deref(), Some("n2-gpu-0,n2-gpu-1"));
    bench.claim("four", ClaimSpec { colocate: true, ..asks(selecting("gpu", "a100", 3), 600) });
    assert_eq!((bench.phase("four"), bench.reason("four")), (Phase::Denied, Some(Reason::Unsatisfiable)));
}

#[test]
fn m3_a_key_that_nothing_declares_is_invented_and_goes_when_idle() {
    let mut bench = Bench::default();
    bench.claim("early", asks(Request { resource: None, key: Some("env:staging".to_owned()), ..named("x") }, 60));
    assert_eq!(bench.reason("early"), Some(Reason::NotFound));
    let spec = ResourceClassSpec { prefix: Some(String::new()), on_demand: true, capacity: pool(1).capacity, ..Default::default() };
    let class = ResourceClass::new("invented", spec);
    bench.tell(vec![crate::engine::event::Event::Class(Box::new(class))]);
    let key = |mode| Request { resource: None, key: Some("env:staging".to_owned()), mode: Some(mode), ..named("x") };
    bench.claim("a", asks(key(Mode::Exclusive), 0));
    bench.claim("b", asks(key(Mode::Shared), 600));
    assert_eq!((bench.phase("a"), bench.phase("b")), (Phase::Active, Phase::Queued));
    assert_eq!(bench.store.resources.len(), 1);
    let other = bench.store.add_claim("team-b", "other", asks(key(Mode::Exclusive), 0), bench.now.wall).expect("made");
    bench.tell(vec![other]);
    assert_eq!(bench.store.resources.len(), 2, "each namespace has its own");
    bench.release("a");
    assert_eq!(bench.phase("b"), Phase::Active);
    bench.release("b");
    bench.pass(590);
    assert_eq!(bench.store.resources.len(), 2);
    bench.pass(20);
    assert_eq!(bench.store.resources.len(), 1);
}

#[test]
fn m3_a_declared_resource_takes_its_key_when_the_invented_one_is_no_more_in_use() {
    let mut bench = Bench::default();
    let spec = ResourceClassSpec { on_demand: true, capacity: pool(1).capacity, ..Default::default() };
    bench.tell(vec![crate::engine::event::Event::Class(Box::new(ResourceClass::new("invented", spec)))]);
    let key = Request { resource: None, key: Some("env".to_owned()), ..named("x") };
    bench.claim("a", asks(key.clone(), 0));
    bench.resource("declared", ResourceSpec { key: Some("env".to_owned()), ..mutex() });
    bench.claim("b", asks(key.clone(), 600));
    assert_eq!((bench.phase("b"), bench.reason("b")), (Phase::Queued, Some(Reason::KeyInUse)));
    bench.resource("newer", ResourceSpec { key: Some("env".to_owned()), ..mutex() });
    bench.claim("c", asks(named("newer"), 600));
    assert_eq!(bench.reason("c"), Some(Reason::KeyConflict));
    bench.release("a");
    assert_eq!(bench.status("b").resources.as_deref(), Some("declared"));
}

#[test]
fn m4_nobody_passes_a_waiter_that_another_resource_holds_back() {
    let mut bench = Bench::default();
    gpus(&mut bench, 3);
    bench.claim("holder", asks(named("gpu-1"), 0));
    bench.claim("both", ask(vec![named("gpu-0"), named("gpu-1")], 600));
    bench.claim("one", asks(named("gpu-0"), 600));
    assert_eq!((bench.phase("one"), bench.reason("one")), (Phase::Queued, Some(Reason::QueueAhead)));
    bench.claim("other-order", ask(vec![named("gpu-1"), named("gpu-0")], 600));
    bench.release("holder");
    assert_eq!((bench.phase("both"), bench.phase("one")), (Phase::Active, Phase::Queued));
    bench.release("both");
    assert_eq!((bench.phase("one"), bench.phase("other-order")), (Phase::Active, Phase::Queued));
}

#[test]
fn m4_a_waiting_selector_stands_in_as_many_queues_as_it_wants_and_takes_any_set() {
    let mut bench = Bench::default();
    gpus(&mut bench, 4);
    for place in 0..4 {
        bench.claim(&format!("h{place}"), asks(named(&format!("gpu-{place}")), 0));
    }
    bench.claim("two", asks(selecting("gpu", "a100", 2), 600));
    let standing = (0..4).filter(|place| {
        bench.engine.world().resource(&format!("gpu-{place}")).is_some_and(|place| !bench.engine.world().resources[place].queue.is_empty())
    });
    assert_eq!(standing.count(), 2);
    bench.release("h2");
    assert_eq!(bench.phase("two"), Phase::Queued);
    bench.release("h3");
    assert_eq!(bench.status("two").resources.as_deref(), Some("gpu-2,gpu-3"));
}

#[test]
fn m4_among_picks_that_are_free_the_earliest_end_comes_first() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    for name in ["late", "early"] {
        bench.labelled(name, &[("pool", "seats")], pool(5));
    }
    bench.claim("on-lock", asks(named("lock"), 0));
    // The pool that ends last has the fewest units left, so that the best fit and the earliest end are not the same pool.
    bench.claim("on-late", ClaimSpec { max_hold_seconds: Some(500), ..asks(shared("late", 3), 0) });
    bench.claim("on-early", ClaimSpec { max_hold_seconds: Some(50), ..asks(shared("early", 1), 0) });
    let seat = Request { mode: Some(Mode::Shared), quantity: Some(1), ..selecting("pool", "seats", 1) };
    bench.claim("waits", ask(vec![named("lock"), seat], 600));
    assert_eq!(bench.phase("waits"), Phase::Queued);
    bench.pass(2);
    assert_eq!((bench.ledger("late").queue_depth, bench.ledger("early").queue_depth), (0, 1));
}

#[test]
fn m4_an_older_selecting_waiter_comes_before_a_younger_named_one() {
    let mut bench = Bench::default();
    gpus(&mut bench, 2);
    bench.claim("h0", asks(named("gpu-0"), 0));
    bench.claim("h1", asks(named("gpu-1"), 0));
    bench.claim("any", asks(selecting("gpu", "a100", 1), 600));
    bench.claim("named", asks(named("gpu-1"), 600));
    bench.release("h1");
    assert_eq!((bench.phase("any"), bench.phase("named")), (Phase::Active, Phase::Queued));
}

#[test]
fn m6_requests_that_can_never_hold_together_conflict() {
    let mut bench = Bench::default();
    bench.resource("pool", pool(3));
    bench.claim("a", ask(vec![shared("pool", 2), shared("pool", 2)], 600));
    assert_eq!((bench.phase("a"), bench.reason("a")), (Phase::Denied, Some(Reason::SelfConflict)));
}

#[test]
fn m7_what_no_present_resource_could_satisfy_is_denied_at_once() {
    let mut bench = Bench::default();
    gpus(&mut bench, 2);
    bench.claim("three", asks(selecting("gpu", "a100", 3), 600));
    assert_eq!((bench.phase("three"), bench.reason("three")), (Phase::Denied, Some(Reason::Unsatisfiable)));
    bench.claim("none", asks(selecting("gpu", "h100", 1), 600));
    assert_eq!(bench.reason("none"), Some(Reason::Unsatisfiable));
}

#[test]
fn m7_what_becomes_unsatisfiable_steps_aside_and_keeps_its_ticket() {
    let mut bench = Bench::default();
    gpus(&mut bench, 2);
    bench.claim("holder", asks(named("gpu-0"), 0));
    bench.claim("both", asks(selecting("gpu", "a100", 2), 3_600));
    let ticket = bench.status("both").ticket;
    let events = bench.store.remove_resource("gpu-1");
    bench.tell(events);
    assert_eq!((bench.phase("both"), bench.reason("both")), (Phase::Queued, Some(Reason::Unsatisfiable)));
    bench.claim("one", asks(named("gpu-0"), 600));
    bench.release("holder");
    assert_eq!(bench.phase("one"), Phase::Active);
    bench.release("one");
    bench.labelled("gpu-9", &[("gpu", "a100")], mutex());
    assert_eq!((bench.phase("both"), bench.status("both").ticket), (Phase::Active, ticket));
}

use super::bench::*;
use crate::{api::*, engine::event::Event};

#[test]
fn q1_a_claim_waits_as_long_as_it_said_and_is_told_why() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("a", ClaimSpec { label: Some("train#7".to_owned()), ..asks(named("lock"), 0) });
    bench.claim("b", asks(named("lock"), 60));
    let status = bench.status("b");
    assert_eq!((status.phase, status.reason, status.position), (Phase::Queued, Some(Reason::CapacityHeld), Some(1)));
    assert_eq!(status.blocking[0].holders[0].label.as_deref(), Some("train#7"));
    assert!(status.message.expect("a message").contains("train#7"));
    bench.pass(59);
    assert_eq!(bench.phase("b"), Phase::Queued);
    bench.pass(2);
    assert_eq!((bench.phase("b"), bench.reason("b")), (Phase::TimedOut, Some(Reason::WaitedTooLong)));
}

#[test]
fn q2_what_is_weighed_on_arrival_never_queues() {
    let mut bench = Bench::default();
    bench.claim("nobody", asks(named("missing"), 60));
    assert_eq!((bench.phase("nobody"), bench.reason("nobody")), (Phase::Denied, Some(Reason::NotFound)));
    let withdrawal = Some(Withdrawal { owner: true, ..Default::default() });
    bench.resource("gone", ResourceSpec { withdrawal, ..mutex() });
    bench.claim("withdrawn", asks(named("gone"), 60));
    assert_eq!(bench.reason("withdrawn"), Some(Reason::NotFound));
    let lending = Some(Lending { mode: LendingMode::Unavailable, ..Default::default() });
    bench.resource("closed", ResourceSpec { lending, ..mutex() });
    bench.claim("unavailable", asks(named("closed"), 60));
    assert_eq!(bench.reason("unavailable"), Some(Reason::LendingUnavailable));
    let gold = selecting("tier", "gold", 1).selector;
    let lending = Some(Lending { namespaces: gold, ..Default::default() });
    bench.resource("gold", ResourceSpec { lending, ..mutex() });
    bench.claim("not-served", asks(named("gold"), 60));
    assert_eq!(bench.reason("not-served"), Some(Reason::NamespaceNotServed));
    bench.resource("lock", mutex());
    bench.tell(vec![namespace("team-a", &[], true)]);
    bench.claim("frozen", asks(named("lock"), 60));
    assert_eq!(bench.reason("frozen"), Some(Reason::NamespaceFrozen));
}

#[test]
fn q2_what_happens_while_waiting() {
    let mut bench = Bench::default();
    for name in ["one", "two", "three"] {
        bench.resource(name, mutex());
        bench.claim(&format!("holds-{name}"), asks(named(name), 0));
        bench.claim(&format!("waits-{name}"), asks(named(name), 600));
    }
    bench.change("one", |spec| spec.lending = Some(Lending { mode: LendingMode::Unavailable, ..Default::default() }));
    bench.release("holds-one");
    assert_eq!((bench.phase("waits-one"), bench.reason("waits-one")), (Phase::Queued, Some(Reason::LendingUnavailable)));
    bench.change("one", |spec| spec.lending = None);
    assert_eq!(bench.phase("waits-one"), Phase::Active);
    bench.change("two", |spec| spec.withdrawal = Some(Withdrawal { owner: true, ..Default::default() }));
    assert_eq!(bench.phase("waits-two"), Phase::Queued);
    bench.release("holds-two");
    assert_eq!((bench.phase("waits-two"), bench.reason("waits-two")), (Phase::Denied, Some(Reason::NotFound)));
    bench.tell(vec![namespace("team-a", &[], true)]);
    assert_eq!(bench.reason("waits-three"), Some(Reason::NamespaceFrozen));
    assert_eq!(bench.phase("holds-three"), Phase::Active);
}

#[test]
fn q3_newcomer_never_passes_a_waiter() {
    let mut bench = Bench::default();
    bench.resource("pool", pool(5));
    bench.claim("a", asks(shared("pool", 3), 0));
    bench.claim("large", asks(shared("pool", 4), 600));
    bench.claim("small", asks(shared("pool", 1), 600));
    bench.claim("hasty", asks(shared("pool", 1), 0));
    assert_eq!((bench.phase("small"), bench.reason("small")), (Phase::Queued, Some(Reason::QueueAhead)));
    assert_eq!((bench.phase("hasty"), bench.reason("hasty")), (Phase::Denied, Some(Reason::QueueAhead)));
    bench.release("a");
    assert_eq!((bench.phase("large"), bench.phase("small")), (Phase::Active, Phase::Active));
}

#[test]
fn q4_d2_a_drain_waits_ahead_of_ordinary_claims() {
    let mut bench = Bench::default();
    let adapters = vec![Adapter { user: "carol".to_owned(), roles: vec![Role::Maintainer] }];
    bench.resource("lock", ResourceSpec { adapters, ..mutex() });
    bench.claim("a", asks(named("lock"), 0));
    bench.claim("b", asks(named("lock"), 600));
    let drain = Some(Drain { deadline_seconds: 300, reason: None });
    let claimant = Some(Account { user: "carol".to_owned(), node: None });
    bench.claim("drain", ClaimSpec { drain: drain.clone(), claimant, ..asks(named("lock"), 0) });
    assert_eq!(bench.phase("drain"), Phase::Queued);
    bench.claim("forbidden", ClaimSpec { drain, ..asks(named("lock"), 0) });
    assert_eq!((bench.phase("forbidden"), bench.reason("forbidden")), (Phase::Denied, Some(Reason::DrainForbidden)));
    bench.release("a");
    assert_eq!((bench.phase("drain"), bench.phase("b")), (Phase::Active, Phase::Queued));
    assert!(bench.status("drain").drained);
}

#[test]
fn q5_sixty_four_may_queue() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("holder", asks(named("lock"), 0));
    for place in 0..64 {
        bench.claim(&format!("w{place}"), asks(named("lock"), 600));
        assert_eq!(bench.phase(&format!("w{place}")), Phase::Queued);
    }
    bench.claim("late", asks(named("lock"), 600));
    assert_eq!((bench.phase("late"), bench.reason("late")), (Phase::Denied, Some(Reason::QueueFull)));
    bench.claim("hasty", asks(named("lock"), 0));
    assert_eq!(bench.reason("hasty"), Some(Reason::CapacityHeld));
}

#[test]
fn q6_unproven_is_granted_to_nobody_and_waiters_wait() {
    let mut bench = Bench::default();
    bench.resource("host", mutex());
    bench.claim("a", asks(named("host"), 0));
    let events = bench.store.remove_resource("host");
    bench.tell(events);
    bench.delete("a");
    bench.resource("host", mutex());
    bench.claim("b", asks(named("host"), 600));
    assert_eq!((bench.phase("b"), bench.reason("b")), (Phase::Queued, Some(Reason::Unproven)));
    bench.pass(181);
    assert_eq!(bench.phase("b"), Phase::Active);
}

#[test]
fn q7_positions_and_the_queue_are_shown_within_two_seconds() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("holder", asks(named("lock"), 0));
    for name in ["a", "b", "c"] {
        bench.claim(name, asks(named("lock"), 600));
    }
    bench.pass(2);
    let queue = bench.ledger("lock").queue.expect("a queue").ordinary;
    assert_eq!(queue.iter().map(|waiter| waiter.claim.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(bench.status("c").position, Some(3));
    bench.release("holder");
    bench.pass(2);
    assert_eq!((bench.status("b").position, bench.status("c").position), (Some(1), Some(2)));
}

#[test]
fn q8_l6_the_order_and_the_fences_survive_a_change_of_leader() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("holder", asks(named("lock"), 0));
    for name in ["z", "m", "a"] {
        bench.claim(name, asks(named("lock"), 600));
    }
    let fence = bench.ledger("lock").last_fence;
    bench.take_over(2);
    for name in ["holder", "z", "m"] {
        bench.release(name);
    }
    assert_eq!((bench.phase("z"), bench.phase("m"), bench.phase("a")), (Phase::Released, Phase::Released, Phase::Active));
    let ledger = bench.ledger("lock");
    assert!(ledger.last_fence >= fence + 3);
    assert_eq!(ledger.term, 2);
}

#[test]
fn q8_claims_of_one_second_are_ordered_as_the_api_server_took_them() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.store.add_claim("team-a", "first", asks(named("lock"), 60), bench.now.wall).expect("made");
    let first = bench.store.claims.get_mut(&("team-a".to_owned(), "first".to_owned())).expect("made");
    first.metadata.uid = Some("uid-that-sorts-last".to_owned());
    let first = Event::Claim(Box::new(first.clone()));
    let second = bench.store.add_claim("team-a", "second", asks(named("lock"), 60), bench.now.wall).expect("made");
    bench.tell(vec![second, first]);
    assert_eq!((bench.phase("first"), bench.phase("second")), (Phase::Active, Phase::Queued));
}

#[test]
fn q9_the_first_of_the_list_is_the_reason_and_all_are_shown() {
    let mut bench = Bench::default();
    bench.resource("one", mutex());
    bench.resource("two", mutex());
    bench.claim("holder", asks(named("one"), 0));
    bench.change("two", |spec| spec.lending = Some(Lending { mode: LendingMode::Unavailable, ..Default::default() }));
    bench.claim("both", ask(vec![named("one"), named("two")], 0));
    let status = bench.status("both");
    assert_eq!(status.reason, Some(Reason::LendingUnavailable));
    assert_eq!(status.blocking.iter().map(|entry| entry.reason).collect::<Vec<_>>(), [Reason::LendingUnavailable, Reason::CapacityHeld]);
}

#[test]
fn q11_a_claim_nobody_weighed_in_time_is_not_granted_to_somebody_long_gone() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    let old = bench.store.add_claim("team-a", "old", asks(named("lock"), 0), bench.now.wall).expect("made");
    bench.pass(61);
    bench.tell(vec![old]);
    assert_eq!((bench.phase("old"), bench.reason("old")), (Phase::TimedOut, Some(Reason::NotWeighed)));
    let patient = bench.store.add_claim("team-a", "patient", asks(named("lock"), 120), bench.now.wall).expect("made");
    bench.pass(100);
    bench.tell(vec![patient]);
    assert_eq!(bench.phase("patient"), Phase::Active);
}

#[test]
fn l13_nothing_is_granted_while_paused() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    let pause = |paused| Event::Namespace {
        name: "tenure-system".to_owned(),
        uid: "u".to_owned(),
        labels: Default::default(),
        frozen: false,
        paused,
    };
    bench.tell(vec![pause(true)]);
    bench.claim("hasty", asks(named("lock"), 0));
    bench.claim("patient", asks(named("lock"), 600));
    assert_eq!((bench.phase("hasty"), bench.reason("hasty")), (Phase::Denied, Some(Reason::Paused)));
    assert_eq!((bench.phase("patient"), bench.reason("patient")), (Phase::Queued, Some(Reason::Paused)));
    bench.tell(vec![pause(false)]);
    assert_eq!(bench.phase("patient"), Phase::Active);
}

#[test]
fn l6_a_leader_whose_clock_is_off_grants_nothing() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.tell(vec![Event::ClockSkew { milliseconds: -61_000 }]);
    bench.claim("a", asks(named("lock"), 600));
    assert_eq!(bench.reason("a"), Some(Reason::ClockSkew));
    bench.tell(vec![Event::ClockSkew { milliseconds: 5 }]);
    assert_eq!(bench.phase("a"), Phase::Active);
}

use super::bench::*;
use crate::api::*;

fn tree(bench: &mut Bench) {
    bench.resource("host", mutex());
    for place in 0..3 {
        bench.resource(&format!("gpu-{place}"), ResourceSpec { parent: Some("host".to_owned()), ..mutex() });
    }
}

#[test]
fn c10_an_exclusive_claim_takes_all_that_is_inside() {
    let mut bench = Bench::default();
    tree(&mut bench);
    bench.claim("whole", asks(named("host"), 0));
    assert_eq!(bench.phase("whole"), Phase::Active);
    bench.claim("part", asks(named("gpu-1"), 600));
    assert_eq!((bench.phase("part"), bench.reason("part")), (Phase::Queued, Some(Reason::ParentHeld)));
    assert_eq!(bench.ledger("gpu-1").occupants[0].via.as_deref(), Some("host"));
    bench.release("whole");
    assert_eq!(bench.phase("part"), Phase::Active);
    assert!(bench.ledger("gpu-0").occupants.is_empty());
}

#[test]
fn c10_it_waits_in_the_queue_of_each_and_claims_side_by_side_do_not_matter() {
    let mut bench = Bench::default();
    tree(&mut bench);
    bench.claim("one", asks(named("gpu-0"), 0));
    bench.claim("two", asks(named("gpu-1"), 0));
    assert_eq!(bench.phase("two"), Phase::Active);
    bench.claim("whole", asks(named("host"), 600));
    bench.claim("three", asks(named("gpu-2"), 600));
    assert_eq!((bench.phase("three"), bench.reason("three")), (Phase::Queued, Some(Reason::QueueAhead)));
    bench.release("one");
    bench.release("two");
    assert_eq!((bench.phase("whole"), bench.phase("three")), (Phase::Active, Phase::Queued));
}

#[test]
fn c10_one_that_appears_while_its_parent_is_held_starts_reserved() {
    let mut bench = Bench::default();
    tree(&mut bench);
    bench.claim("whole", asks(named("host"), 0));
    bench.resource("gpu-9", ResourceSpec { parent: Some("host".to_owned()), ..mutex() });
    assert_eq!(bench.ledger("gpu-9").occupants[0].via.as_deref(), Some("host"));
    bench.claim("part", asks(named("gpu-9"), 0));
    assert_eq!(bench.reason("part"), Some(Reason::ParentHeld));
    bench.release("whole");
    assert!(bench.ledger("gpu-9").occupants.is_empty());
}

#[test]
fn c10_without_its_parent_or_in_a_cycle_it_is_granted_to_nobody() {
    let mut bench = Bench::default();
    bench.resource("orphan", ResourceSpec { parent: Some("missing".to_owned()), ..mutex() });
    bench.resource("x", ResourceSpec { parent: Some("y".to_owned()), ..mutex() });
    bench.resource("y", ResourceSpec { parent: Some("x".to_owned()), ..mutex() });
    for name in ["orphan", "x", "y"] {
        bench.claim(&format!("for-{name}"), asks(named(name), 600));
        assert_eq!(bench.reason(&format!("for-{name}")), Some(Reason::ParentMissing));
    }
    bench.resource("missing", mutex());
    assert_eq!(bench.phase("for-orphan"), Phase::Active);
}

#[test]
fn c10_what_is_under_a_machine_waits_with_it_for_a_look() {
    let mut bench = Bench::default();
    bench.resource("host", machine());
    bench.resource("gpu", ResourceSpec { parent: Some("host".to_owned()), ..machine() });
    bench.claim("whole", asks(named("host"), 0));
    super::capacity::admit(&mut bench, "whole", "host", Admission::Admitted, None);
    bench.release("whole");
    assert_eq!(bench.states("host"), [OccupantState::Reconciling]);
    assert_eq!(bench.states("gpu"), [OccupantState::Reconciling]);
}

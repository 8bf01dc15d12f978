use super::bench::*;
use crate::api::*;

#[test]
fn c1_c2_an_exclusive_resource_is_a_mutex() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("a", asks(named("lock"), 0));
    bench.claim("b", asks(named("lock"), 0));
    assert_eq!(bench.phase("a"), Phase::Active);
    assert_eq!((bench.phase("b"), bench.reason("b")), (Phase::Denied, Some(Reason::CapacityHeld)));
    bench.release("a");
    assert_eq!(bench.phase("a"), Phase::Released);
    assert!(bench.ledger("lock").occupants.is_empty());
    bench.claim("c", asks(named("lock"), 0));
    assert_eq!(bench.phase("c"), Phase::Active);
}

#[test]
fn c3_shared_claims_fit_by_quantity_and_the_writer_waits_for_all_readers() {
    let mut bench = Bench::default();
    bench.resource("pool", pool(5));
    for (name, quantity) in [("a", 2), ("b", 3)] {
        bench.claim(name, asks(shared("pool", quantity), 0));
        assert_eq!(bench.phase(name), Phase::Active);
    }
    bench.claim("c", asks(shared("pool", 1), 0));
    assert_eq!(bench.reason("c"), Some(Reason::CapacityHeld));
    bench.claim("writer", asks(named("pool"), 600));
    bench.release("a");
    assert_eq!(bench.phase("writer"), Phase::Queued);
    bench.release("b");
    assert_eq!(bench.phase("writer"), Phase::Active);
    assert_eq!(bench.ledger("pool").free_quantity, Some(0));
}

#[test]
fn c3_readers_without_limit_and_a_writer() {
    let mut bench = Bench::default();
    bench.resource("files", unlimited());
    for place in 0..20 {
        bench.claim(&format!("reader-{place}"), asks(shared("files", 1), 0));
        assert_eq!(bench.phase(&format!("reader-{place}")), Phase::Active);
    }
    bench.claim("writer", asks(named("files"), 0));
    assert_eq!(bench.reason("writer"), Some(Reason::CapacityHeld));
}

#[test]
fn c4_l7_what_ended_badly_stays_occupied_and_the_rest_is_lent() {
    let mut bench = Bench::default();
    bench.resource("host", ResourceSpec { capacity: pool(4).capacity, ..machine() });
    bench.claim("a", asks(shared("host", 3), 0));
    admit(&mut bench, "a", "host", Admission::Admitted, None);
    bench.release("a");
    assert_eq!(bench.states("host"), [OccupantState::Reconciling]);
    bench.claim("b", asks(shared("host", 1), 0));
    bench.claim("c", asks(shared("host", 1), 0));
    assert_eq!((bench.phase("b"), bench.reason("c")), (Phase::Granted, Some(Reason::CapacityHeld)));
}

#[test]
fn c5_a_quarantined_share_stops_new_grants_and_holders_go_on() {
    let mut bench = Bench::default();
    bench.resource("host", ResourceSpec { capacity: pool(4).capacity, ..machine() });
    bench.claim("a", asks(shared("host", 1), 0));
    bench.claim("b", asks(shared("host", 1), 0));
    admit(&mut bench, "b", "host", Admission::Refused, Some(Cleanup::Residue));
    assert_eq!(bench.phase("a"), Phase::Granted);
    bench.claim("c", asks(shared("host", 1), 60));
    assert_eq!((bench.phase("c"), bench.reason("c")), (Phase::Denied, Some(Reason::Quarantined)));
}

#[test]
fn c6_no_more_occupants_than_there_may_be() {
    let mut bench = Bench::default();
    let mut spec = pool(100);
    spec.capacity.as_mut().expect("a pool").max_occupants = Some(2);
    bench.resource("pool", spec);
    bench.claim("a", asks(shared("pool", 1), 0));
    bench.claim("b", asks(shared("pool", 1), 0));
    bench.claim("c", asks(shared("pool", 1), 0));
    assert_eq!(bench.reason("c"), Some(Reason::OccupantLimit));
}

#[test]
fn c7_what_could_never_be_is_refused_with_its_word() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.resource("pool", pool(5));
    bench.claim("shared", asks(shared("lock", 1), 600));
    assert_eq!(bench.reason("shared"), Some(Reason::ModeUnsupported));
    bench.claim("much", asks(shared("pool", 6), 600));
    assert_eq!(bench.reason("much"), Some(Reason::QuantityOutOfRange));
    bench.claim("part", asks(Request { quantity: Some(3), ..named("pool") }, 600));
    assert_eq!(bench.reason("part"), Some(Reason::QuantityOutOfRange));
}

#[test]
fn c7_capacity_that_counts_changes_only_when_nothing_occupies_or_waits() {
    let mut bench = Bench::default();
    bench.resource("pool", pool(2));
    bench.claim("a", asks(shared("pool", 2), 0));
    bench.change("pool", |spec| *spec = pool(1));
    assert_eq!(bench.ledger("pool").effective.expect("taken").capacity.quantity, Some(2));
    bench.release("a");
    bench.claim("b", asks(shared("pool", 1), 0));
    bench.claim("c", asks(shared("pool", 1), 0));
    assert_eq!((bench.phase("b"), bench.phase("c")), (Phase::Active, Phase::Denied));
}

#[test]
fn c8_what_is_free_and_who_holds_it_are_shown() {
    let mut bench = Bench::default();
    bench.resource("pool", pool(5));
    assert_eq!(bench.ledger("pool").free_quantity, Some(5));
    bench.claim("a", asks(shared("pool", 2), 0));
    bench.claim("b", asks(shared("pool", 1), 0));
    let ledger = bench.ledger("pool");
    assert_eq!((ledger.free_quantity, ledger.availability), (Some(2), Some(Availability::PartlyFree)));
    assert_eq!(ledger.current_claim.map(|claim| claim.name), Some("a".to_owned()));
    bench.resource("files", unlimited());
    assert_eq!(bench.ledger("files").free_quantity, None);
}

/// Writes a receipt of kind Admission as the machine's agent would.
pub fn admit(bench: &mut Bench, claim: &str, resource: &str, admission: Admission, cleanup: Option<Cleanup>) {
    let spec = admission_receipt(bench, claim, resource, admission, cleanup);
    let wall = bench.now.wall;
    let event = bench.store.add_receipt(&format!("{resource}-{claim}-admission"), spec, wall);
    bench.tell(vec![event]);
}

pub fn admission_receipt(bench: &Bench, claim: &str, resource: &str, admission: Admission, cleanup: Option<Cleanup>) -> ReceiptSpec {
    let object = &bench.store.claims[&("team-a".to_owned(), claim.to_owned())];
    let status = object.status.clone().expect("granted");
    let grant = status.grants.iter().find(|grant| grant.resource == resource).expect("granted this one");
    let uid = object.metadata.uid.clone().expect("made");
    ReceiptSpec {
        resource: resource.to_owned(),
        fence: grant.fence,
        claim: Some(ClaimReference { namespace: "team-a".to_owned(), name: claim.to_owned(), uid }),
        admission: Some(admission),
        cleanup,
        provider: Some("generic".to_owned()),
        provider_host_key: Some("HOST-1".to_owned()),
        reporter: Some(Account { user: "agent".to_owned(), node: None }),
        ..Default::default()
    }
}

#[test]
fn c2_a_request_takes_the_whole_unless_it_says_shared_and_one_unit_unless_it_says_more() {
    let mut bench = Bench::default();
    bench.resource("pool", pool(5));
    bench.claim("one", asks(Request { mode: Some(Mode::Shared), ..named("pool") }, 0));
    assert_eq!(bench.ledger("pool").free_quantity, Some(4));
    bench.release("one");
    bench.claim("whole", asks(named("pool"), 0));
    assert_eq!((bench.ledger("pool").free_quantity, bench.ledger("pool").occupants[0].quantity), (Some(0), 5));
}

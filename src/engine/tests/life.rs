use super::{
    bench::*,
    capacity::{admission_receipt, admit},
};
use crate::{api::*, engine::event::Event};

#[test]
fn l1_a_grant_that_no_adapter_admits_expires() {
    let mut bench = Bench::default();
    bench.resource("host", machine());
    bench.claim("a", asks(named("host"), 0));
    assert_eq!(bench.phase("a"), Phase::Granted);
    bench.pass(299);
    assert_eq!(bench.phase("a"), Phase::Granted);
    bench.pass(2);
    assert_eq!((bench.phase("a"), bench.reason("a")), (Phase::Expired, Some(Reason::AdmissionDeadline)));
    assert_eq!(bench.states("host"), [OccupantState::Reconciling]);
}

#[test]
fn l1_admitted_on_every_resource_it_is_active() {
    let mut bench = Bench::default();
    bench.resource("host", machine());
    bench.resource("other", machine());
    bench.claim("a", ask(vec![named("host"), named("other")], 0));
    admit(&mut bench, "a", "host", Admission::Admitted, None);
    assert_eq!(bench.phase("a"), Phase::Granted);
    admit(&mut bench, "a", "other", Admission::Admitted, None);
    assert_eq!(bench.phase("a"), Phase::Active);
    assert!(bench.store.receipts.values().all(|receipt| receipt.status.as_ref().is_some_and(|status| status.counted)));
}

#[test]
fn l1_o2_only_an_adapter_of_the_resource_admits() {
    let mut bench = Bench::default();
    bench.resource("host", machine());
    bench.claim("a", asks(named("host"), 0));
    let mut spec = admission_receipt(&bench, "a", "host", Admission::Admitted, None);
    spec.reporter = Some(Account { user: "mallory".to_owned(), node: None });
    let event = bench.store.add_receipt("forged", spec.clone(), bench.now.wall);
    bench.tell(vec![event]);
    spec.reporter = Some(Account { user: "agent".to_owned(), node: None });
    spec.fence -= 1;
    let event = bench.store.add_receipt("stale", spec, bench.now.wall);
    bench.tell(vec![event]);
    assert_eq!(bench.phase("a"), Phase::Granted);
    let reason = |name: &str| bench.store.receipts[name].status.as_ref().and_then(|status| status.reason);
    assert_eq!((reason("forged"), reason("stale")), (Some(Reason::NotAnAdapter), Some(Reason::NotParty)));
}

fn beat(bench: &mut Bench, name: &str, renewed: &str) {
    let uid = bench.store.claims[&("team-a".to_owned(), name.to_owned())].metadata.uid.clone().expect("made");
    bench.tell(vec![Event::Heartbeat { claim: uid.clone(), namespace: "team-a".to_owned(), holder: uid, renewed: renewed.to_owned() }]);
}

#[test]
fn l2_a_holder_whose_heartbeat_stops_lapses() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("a", ClaimSpec { lease_seconds: Some(30), ..asks(named("lock"), 0) });
    for turn in 0..5 {
        bench.pass(20);
        beat(&mut bench, "a", &format!("{turn}"));
        assert_eq!(bench.phase("a"), Phase::Active);
    }
    bench.pass(20);
    beat(&mut bench, "a", "4");
    bench.pass(11);
    assert_eq!((bench.phase("a"), bench.reason("a")), (Phase::Expired, Some(Reason::Lapsed)));
    assert!(bench.ledger("lock").occupants.is_empty());
}

#[test]
fn l3_the_hard_end_is_the_shorter_of_the_limit_and_the_claims_own() {
    let mut bench = Bench::default();
    bench.resource("lock", ResourceSpec { lending: Some(Lending { max_hold_seconds: Some(100), ..Default::default() }), ..mutex() });
    bench.claim("a", ClaimSpec { max_hold_seconds: Some(50), lease_seconds: Some(600), ..asks(named("lock"), 0) });
    bench.pass(49);
    assert_eq!(bench.phase("a"), Phase::Active);
    bench.pass(2);
    assert_eq!((bench.phase("a"), bench.reason("a")), (Phase::Expired, Some(Reason::HoldLimit)));
    bench.claim("long", ClaimSpec { max_hold_seconds: Some(101), ..asks(named("lock"), 0) });
    assert_eq!(bench.reason("long"), Some(Reason::Unsatisfiable));
    bench.claim("b", ClaimSpec { lease_seconds: Some(600), ..asks(named("lock"), 0) });
    bench.change("lock", |spec| spec.lending = None);
    bench.pass(101);
    assert_eq!(bench.reason("b"), Some(Reason::HoldLimit));
}

#[test]
fn l4_a_claim_released_before_it_was_active_frees_without_a_receipt() {
    let mut bench = Bench::default();
    bench.resource("host", machine());
    bench.claim("a", asks(named("host"), 0));
    bench.release("a");
    assert_eq!(bench.phase("a"), Phase::Cancelled);
    assert!(bench.ledger("host").occupants.is_empty());
    bench.claim("b", asks(named("host"), 0));
    bench.delete("b");
    assert!(bench.ledger("host").occupants.is_empty());
}

#[test]
fn l4_a_refused_admission_frees_when_pristine_and_quarantines_with_residue() {
    for (cleanup, left) in [
        (Cleanup::Pristine, vec![]),
        (Cleanup::Residue, vec![OccupantState::Quarantined]),
        (Cleanup::Unknown, vec![OccupantState::Reconciling]),
    ] {
        let mut bench = Bench::default();
        bench.resource("host", machine());
        bench.resource("other", machine());
        bench.claim("a", ask(vec![named("host"), named("other")], 0));
        admit(&mut bench, "a", "host", Admission::Refused, Some(cleanup));
        assert_eq!((bench.phase("a"), bench.reason("a")), (Phase::Cancelled, Some(Reason::AdmissionRefused)));
        assert_eq!(bench.states("host"), left);
        assert!(bench.ledger("other").occupants.is_empty());
    }
}

#[test]
fn l5_nothing_but_release_ends_a_hold() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("a", ClaimSpec { lease_seconds: Some(600), ..asks(named("lock"), 0) });
    let claim = bench.store.claims.get_mut(&("team-a".to_owned(), "a".to_owned())).expect("there");
    claim.metadata.labels = Some([("x".to_owned(), "y".to_owned())].into());
    claim.metadata.resource_version = Some("900000".to_owned());
    let event = Event::Claim(Box::new(claim.clone()));
    bench.tell(vec![event]);
    assert_eq!(bench.phase("a"), Phase::Active);
}

#[test]
fn l6_fences_grow_through_deletion() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("a", asks(named("lock"), 0));
    let first = bench.status("a").grants[0].fence;
    bench.release("a");
    let events = bench.store.remove_resource("lock");
    bench.tell(events);
    bench.pass(1);
    bench.resource("lock", mutex());
    bench.claim("b", asks(named("lock"), 0));
    assert!(bench.status("b").grants[0].fence > first);
}

#[test]
fn l7_r5_a_machine_that_was_in_use_waits_for_a_look() {
    let mut bench = Bench::default();
    bench.resource("host", machine());
    bench.claim("a", asks(named("host"), 0));
    admit(&mut bench, "a", "host", Admission::Admitted, None);
    bench.release("a");
    assert_eq!(bench.phase("a"), Phase::Released);
    assert_eq!(bench.ledger("host").availability, Some(Availability::Reconciling));
    bench.claim("b", asks(named("host"), 0));
    assert_eq!(bench.reason("b"), Some(Reason::CapacityHeld));
}

#[test]
fn l8_a_deleted_claim_leaves_its_debt_in_the_ledger() {
    let mut bench = Bench::default();
    bench.resource("host", machine());
    bench.claim("a", asks(named("host"), 0));
    admit(&mut bench, "a", "host", Admission::Admitted, None);
    bench.delete("a");
    assert_eq!(bench.states("host"), [OccupantState::Reconciling]);
    bench.take_over(2);
    assert_eq!(bench.states("host"), [OccupantState::Reconciling]);
    bench.resource("lock", mutex());
    bench.claim("b", asks(named("lock"), 0));
    bench.delete("b");
    assert!(bench.ledger("lock").occupants.is_empty());
}

#[test]
fn l10_a_finished_claim_goes_after_its_time_to_live() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("a", ClaimSpec { ttl_seconds_after_finished: Some(60), ..asks(named("lock"), 0) });
    bench.release("a");
    bench.pass(59);
    assert_eq!(bench.store.claims.len(), 1);
    bench.pass(2);
    assert_eq!(bench.store.claims.len(), 0);
    bench.claim("at-once", ClaimSpec { ttl_seconds_after_finished: Some(0), ..asks(named("missing"), 0) });
    assert_eq!(bench.store.claims.len(), 0);
}

#[test]
fn l11_a_new_leader_gives_every_heartbeat_its_full_length() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("a", ClaimSpec { lease_seconds: Some(60), ..asks(named("lock"), 0) });
    bench.pass(50);
    bench.take_over(2);
    bench.pass(59);
    assert_eq!(bench.phase("a"), Phase::Active);
    bench.pass(2);
    assert_eq!(bench.reason("a"), Some(Reason::Lapsed));
}

#[test]
fn l11_time_without_the_api_counts_against_no_holder() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("a", ClaimSpec { lease_seconds: Some(60), ..asks(named("lock"), 0) });
    bench.tell(vec![Event::ReadingLost]);
    bench.pass(600);
    bench.tell(vec![Event::ReadingBack]);
    assert_eq!(bench.phase("a"), Phase::Active);
    bench.pass(61);
    assert_eq!(bench.reason("a"), Some(Reason::Lapsed));
}

#[test]
fn l11_when_many_fall_silent_at_once_lapsing_pauses_once() {
    let mut bench = Bench::default();
    bench.resource("pool", pool(20));
    for place in 0..10 {
        bench.claim(&format!("c{place}"), ClaimSpec { lease_seconds: Some(60), ..asks(shared("pool", 1), 0) });
    }
    bench.pass(300);
    assert_eq!(bench.phase("c0"), Phase::Active);
    beat(&mut bench, "c0", "1");
    bench.pass(420);
    assert_eq!(bench.reason("c9"), Some(Reason::Lapsed));
}

#[test]
fn o6_a_living_claim_that_a_ledger_lost_is_put_back_with_its_fence() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("a", ClaimSpec { lease_seconds: Some(600), ..asks(named("lock"), 0) });
    let fence = bench.ledger("lock").occupants[0].fence;
    let resource = bench.store.resources.get_mut("lock").expect("there");
    resource.status.as_mut().expect("written").occupants.clear();
    bench.take_over(2);
    assert_eq!(bench.ledger("lock").occupants[0].fence, fence);
    bench.claim("b", asks(named("lock"), 0));
    assert_eq!(bench.reason("b"), Some(Reason::CapacityHeld));
}

#[test]
fn l8_what_a_deleted_resource_owed_comes_back_with_its_name() {
    for (spec, fits) in [(machine(), true), (ResourceSpec { capacity: pool(1).capacity, ..machine() }, false)] {
        let mut bench = Bench::default();
        let original = if fits { machine() } else { ResourceSpec { capacity: pool(4).capacity, ..machine() } };
        bench.resource("host", original);
        let request = if fits { named("host") } else { shared("host", 3) };
        bench.claim("a", asks(request, 0));
        admit(&mut bench, "a", "host", Admission::Admitted, None);
        bench.release("a");
        let events = bench.store.remove_resource("host");
        bench.tell(events);
        bench.resource("host", spec);
        bench.pass(600);
        bench.claim("b", asks(Request { mode: (!fits).then_some(Mode::Shared), ..named("host") }, 60));
        let reason = if fits { Reason::CapacityHeld } else { Reason::LedgerInvalid };
        assert_eq!((bench.phase("b"), bench.reason("b")), (Phase::Queued, Some(reason)));
        assert_eq!(bench.states("host").len(), usize::from(fits));
    }
}

#[test]
fn r5_a_logical_resource_is_admitted_by_its_grant_and_free_when_its_claim_ends_in_any_way() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    let short = ClaimSpec { lease_seconds: Some(10), ..asks(named("lock"), 0) };
    for how in ["released", "deleted", "lapsed"] {
        bench.claim(how, short.clone());
        assert_eq!(bench.phase(how), Phase::Active);
        match how {
            "released" => bench.release(how),
            "deleted" => bench.delete(how),
            _ => bench.pass(11),
        }
        assert!(bench.ledger("lock").occupants.is_empty(), "{how}");
    }
}

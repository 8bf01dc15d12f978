use super::{bench::*, capacity::admit};
use crate::{api::*, engine::event::Event};

fn scoped(name: &str, wait: i64) -> ClaimSpec {
    ClaimSpec { scope: Some(job_scope(name)), ..asks(named("lock"), wait) }
}

#[test]
fn s1_a_claim_ends_with_its_scope_and_a_namesake_is_another() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.see_job("train", "job-1", false);
    bench.claim("a", scoped("train", 0));
    assert_eq!(bench.phase("a"), Phase::Active);
    assert_eq!(bench.status("a").scopes[0].uid, "job-1");
    bench.see_job("train", "job-2", false);
    assert_eq!((bench.phase("a"), bench.reason("a")), (Phase::Released, Some(Reason::ScopeEnded)));
    bench.claim("b", scoped("train", 0));
    bench.see_job("train", "job-2", true);
    assert_eq!(bench.reason("b"), Some(Reason::ScopeEnded));
}

#[test]
fn s1_a_scope_that_is_not_there_yet_is_awaited_for_300_seconds_without_a_place() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.see_job("other", "job-0", false);
    bench.claim("a", scoped("train", 0));
    assert_eq!((bench.phase("a"), bench.reason("a")), (Phase::Pending, Some(Reason::ScopeNotFound)));
    bench.claim("b", asks(named("lock"), 0));
    assert_eq!(bench.phase("b"), Phase::Active);
    bench.release("b");
    bench.claim("c", scoped("late", 0));
    bench.see_job("train", "job-1", false);
    assert_eq!(bench.phase("a"), Phase::Active);
    bench.pass(301);
    assert_eq!((bench.phase("c"), bench.reason("c")), (Phase::Denied, Some(Reason::ScopeNotFound)));
}

#[test]
fn s2_a_scope_that_ended_while_nobody_looked_frees_what_it_held() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.resource("host", machine());
    bench.see_job("train", "job-1", false);
    bench.claim("a", scoped("train", 0));
    bench.claim("b", ClaimSpec { scope: Some(job_scope("train")), ..asks(named("host"), 0) });
    admit(&mut bench, "b", "host", Admission::Admitted, None);
    bench.take_over(2);
    assert_eq!(bench.phase("a"), Phase::Active);
    bench.tell(vec![Event::ScopeKindFilled { kind: job("train").kind }]);
    assert_eq!((bench.reason("a"), bench.reason("b")), (Some(Reason::ScopeEnded), Some(Reason::ScopeEnded)));
    assert!(bench.ledger("lock").occupants.is_empty());
    assert_eq!(bench.states("host"), [OccupantState::Reconciling]);
}

#[test]
fn s3_releasing_what_is_released_costs_nothing() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.claim("a", asks(named("lock"), 0));
    bench.release("a");
    let status = bench.status("a");
    bench.release("a");
    assert_eq!(bench.status("a"), status);
}

#[test]
fn s4_the_ledger_names_no_claim_whose_scope_has_ended_as_holder() {
    let mut bench = Bench::default();
    bench.resource("host", machine());
    bench.see_job("train", "job-1", false);
    bench.claim("a", ClaimSpec { scope: Some(job_scope("train")), ..asks(named("host"), 0) });
    admit(&mut bench, "a", "host", Admission::Admitted, None);
    bench.see_job("train", "job-1", true);
    let ledger = bench.ledger("host");
    assert_eq!((ledger.current_claim, ledger.holder), (None, None));
    assert_eq!(ledger.reconciling_for.and_then(|share| share.claim).map(|claim| claim.name), Some("a".to_owned()));
}

#[test]
fn s5_a_kind_that_cannot_be_read_frees_nothing() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.see_job("train", "job-1", false);
    bench.claim("a", scoped("train", 0));
    bench.tell(vec![Event::ScopeKindUnreadable { kind: job("train").kind, message: "403".to_owned() }]);
    assert_eq!(bench.phase("a"), Phase::Active);
    assert!(bench.status("a").conditions.iter().any(|condition| condition.type_ == "ScopeUnknown" && condition.status == "True"));
    bench.claim("b", scoped("train", 60));
    assert_eq!((bench.phase("b"), bench.reason("b")), (Phase::Pending, Some(Reason::ScopeUnknown)));
    bench.tell(vec![Event::ScopeKindFilled { kind: job("train").kind }]);
    assert_eq!(bench.reason("a"), Some(Reason::ScopeEnded));
}

#[test]
fn m5_claims_of_one_scope_share_one_occupancy() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.see_job("train", "job-1", false);
    bench.claim("a", scoped("train", 0));
    bench.claim("waits", asks(named("lock"), 600));
    bench.claim("b", scoped("train", 0));
    assert_eq!(bench.phase("b"), Phase::Active);
    assert_eq!(bench.status("a").grants[0].fence, bench.status("b").grants[0].fence);
    assert_eq!(bench.ledger("lock").occupants.len(), 1);
    bench.release("a");
    assert_eq!((bench.phase("b"), bench.phase("waits")), (Phase::Active, Phase::Queued));
    bench.release("b");
    assert_eq!(bench.phase("waits"), Phase::Active);
}

#[test]
fn m5_another_mode_or_quantity_in_the_same_scope_conflicts() {
    let mut bench = Bench::default();
    bench.resource("lock", pool(5));
    bench.see_job("train", "job-1", false);
    let ask = |quantity| ClaimSpec { scope: Some(job_scope("train")), ..asks(shared("lock", quantity), 600) };
    bench.claim("a", ask(2));
    bench.claim("b", ask(1));
    assert_eq!((bench.phase("b"), bench.reason("b")), (Phase::Denied, Some(Reason::ModeConflict)));
    for place in 0..7 {
        bench.claim(&format!("s{place}"), ask(2));
        assert_eq!(bench.phase(&format!("s{place}")), Phase::Active);
    }
    bench.claim("ninth", ask(2));
    assert_eq!((bench.phase("ninth"), bench.reason("ninth")), (Phase::Queued, Some(Reason::OccupantLimit)));
}

#[test]
fn m6_each_part_ends_with_its_own_scope_and_the_claim_with_the_last() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    bench.resource("other", mutex());
    bench.see_job("one", "job-1", false);
    bench.see_job("two", "job-2", false);
    let part = |resource, scope| Request { scope: Some(job_scope(scope)), ..named(resource) };
    bench.claim("a", ask(vec![part("lock", "one"), part("other", "two")], 0));
    assert_eq!(bench.phase("a"), Phase::Active);
    bench.see_job("one", "job-1", true);
    assert!(bench.ledger("lock").occupants.is_empty());
    assert_eq!((bench.phase("a"), bench.ledger("other").occupants.len()), (Phase::Active, 1));
    bench.see_job("two", "job-2", true);
    assert_eq!(bench.reason("a"), Some(Reason::ScopeEnded));
    assert!(bench.ledger("other").occupants.is_empty());
}

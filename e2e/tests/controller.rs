//! The controller's own binary on a real API server: it grants, queues, denies and frees, survives what can't be decoded, a
//! restart, a kill and a freeze, and nobody deletes what is occupied.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "controller/bench.rs"]
mod bench;

use std::{collections::BTreeMap, time::Duration};

use bench::{Bench, SOON, leads};
use k8s_openapi::{
    api::{batch::v1::Job, coordination::v1::Lease},
    jiff,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tenure::api::{Phase, Reason};

/// What the controller exits with when another leads.
const LEADERSHIP_LOST: i32 = 10;

async fn merge(bench: &Bench, claim: &str, change: Value) {
    bench.claims.patch(claim, &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
}

async fn delete(bench: &Bench, claim: &str) {
    bench.claims.delete(claim, &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn q1_a_claim_is_granted_one_queued_one_denied_and_one_times_out_until_the_first_is_released() {
    let bench = Bench::start().await;
    let _controller = bench.lead(&[]).await;
    bench.resource("lock", json!({})).await;
    let first = bench.claim("first", "lock", json!({})).await;
    bench.phase("first", Phase::Active).await;
    bench.claim("impatient", "lock", json!({"maxWaitSeconds": 1})).await;
    bench.phase("impatient", Phase::Queued).await;
    bench.claim("second", "lock", json!({"maxWaitSeconds": 600})).await;
    bench.claim("third", "lock", json!({})).await;
    let third = bench.phase("third", Phase::Denied).await;
    assert_eq!((third.reason, third.blocking.len()), (Some(Reason::CapacityHeld), 2), "{third:?}");
    bench.phase("impatient", Phase::TimedOut).await;
    bench.until("it moved up", async || bench.phase("second", Phase::Queued).await.position == Some(1)).await;

    let ledger = bench.ledger("lock").await;
    assert_eq!(ledger.occupants.len(), 1);
    assert_eq!(Some(&ledger.occupants[0].claims[0].uid), first.metadata.uid.as_ref());

    merge(&bench, "first", json!({"spec": {"release": {}}})).await;
    bench.phase("first", Phase::Released).await;
    bench.phase("second", Phase::Active).await;
    delete(&bench, "second").await;
    bench.until("the deleted claim's share is free", async || bench.ledger("lock").await.occupants.is_empty()).await;
}

#[tokio::test]
async fn m1_a_claim_for_two_resources_waits_for_both_and_holds_neither_meanwhile() {
    let bench = Bench::start().await;
    let _controller = bench.lead(&[]).await;
    bench.resource("one", json!({})).await;
    bench.resource("two", json!({})).await;
    bench.claim("holder", "two", json!({})).await;
    bench.phase("holder", Phase::Active).await;
    let both = json!([{"name": "a", "resource": bench.name("one")}, {"name": "b", "resource": bench.name("two")}]);
    bench.claim("pair", "", json!({"requests": both, "maxWaitSeconds": 600})).await;
    bench.phase("pair", Phase::Queued).await;
    assert!(bench.ledger("one").await.occupants.is_empty());
    delete(&bench, "holder").await;
    let pair = bench.phase("pair", Phase::Active).await;
    assert_eq!(pair.resources, Some(format!("{},{}", bench.name("one"), bench.name("two"))));
    assert_eq!((bench.ledger("one").await.occupants.len(), bench.ledger("two").await.occupants.len()), (1, 1));
}

#[tokio::test]
async fn m3_a_key_that_nothing_declares_is_invented_and_the_ledger_names_its_holder() {
    let bench = Bench::start().await;
    let mut controller = bench.lead(&[]).await;
    // Many at once: watches and answers overtake one another.
    for count in 0..40 {
        let spec = json!({"requests": [{"name": "it", "key": format!("deploy/{count}")}]});
        bench.claim(&format!("c{count}"), "", spec).await;
    }
    for count in 0..40 {
        let status = bench.phase(&format!("c{count}"), Phase::Active).await;
        let resource = bench.resources.get(&status.grants[0].resource).await.unwrap();
        assert_eq!(resource.spec.invented.and_then(|invented| invented.namespace), Some(bench.namespace.clone()));
        let ledger = resource.status.unwrap_or_default();
        assert_eq!(ledger.occupants.iter().map(|occupant| occupant.fence).collect::<Vec<_>>(), [status.grants[0].fence]);
    }
    assert!(!controller.metrics().await.unwrap().contains("outcome=\"Refused\""), "{}", controller.metrics().await.unwrap());
    controller.terminate(SOON).await.unwrap();
}

#[tokio::test]
async fn an_object_that_cannot_be_decoded_is_reported_and_the_rest_goes_on() {
    let bench = Bench::start().await;
    let controller = bench.lead(&[]).await;
    // The schema takes this instant, the type doesn't.
    let window = json!({"label": "late", "startsAt": "2026-12-31T23:59:59Z", "endsAt": "9999-12-31T23:59:59Z"});
    bench.resource("odd", json!({"incumbent": {"protectedWindows": [window]}})).await;
    bench.resource("lock", json!({})).await;
    bench.claim("first", "lock", json!({})).await;
    bench.phase("first", Phase::Active).await;
    let now = |count| format!("tenure_undecodable_objects_now{{source=\"Resource\"}} {count}");
    bench.until("it is counted", async || controller.metrics().await.unwrap().contains(&now(1))).await;
    let correction = json!({"spec": {"incumbent": null}});
    bench.resources.patch(&bench.name("odd"), &PatchParams::default(), &Patch::Merge(correction)).await.unwrap();
    bench.until("it is corrected", async || controller.metrics().await.unwrap().contains(&now(0))).await;
    bench.claim("second", "odd", json!({})).await;
    bench.phase("second", Phase::Active).await;
}

#[tokio::test]
async fn q8_the_order_survives_a_restart() {
    let bench = Bench::start().await;
    let mut controller = bench.lead(&[]).await;
    bench.resource("lock", json!({})).await;
    bench.claim("holder", "lock", json!({})).await;
    bench.phase("holder", Phase::Active).await;
    for name in ["zebra", "mule", "ant"] {
        bench.claim(name, "lock", json!({"maxWaitSeconds": 600})).await;
        bench.phase(name, Phase::Queued).await;
    }
    assert_eq!(controller.terminate(SOON).await.unwrap().code(), Some(0));
    let _controller = bench.lead(&[]).await;
    let mut leaving = "holder";
    for next in ["zebra", "mule", "ant"] {
        delete(&bench, leaving).await;
        bench.phase(next, Phase::Active).await;
        leaving = next;
    }
}

#[tokio::test]
async fn a_leader_that_ends_in_order_hands_its_lease_back() {
    let bench = Bench::start().await;
    let patient = ["--lease-duration=60", "--renew-deadline=40", "--retry-period=1"];
    let mut leader = bench.lead(&patient).await;
    let leases: Api<Lease> = Api::namespaced(bench.client.clone(), "tenure-system");
    let lease = async || leases.get("tenure-controller").await.unwrap();
    let term = |lease: &Lease| lease.metadata.annotations.as_ref().unwrap()["tenure.dev/term"].parse::<i64>().unwrap();
    let first = term(&lease().await);
    let mut standby = bench.begin(&patient).await;
    standby.ready(SOON).await.unwrap();
    assert_eq!(leader.terminate(SOON).await.unwrap().code(), Some(0));
    leads(&mut standby).await;
    assert_eq!(term(&lease().await), first + 1);
    assert_eq!(standby.terminate(SOON).await.unwrap().code(), Some(0));
    assert_eq!(lease().await.spec.unwrap().holder_identity.as_deref().unwrap_or_default(), "");
}

#[tokio::test]
async fn c9_a_frozen_leader_that_thaws_writes_nothing_and_ends() {
    let bench = Bench::start().await;
    let mut frozen = bench.lead(&[]).await;
    bench.resource("lock", json!({})).await;
    bench.claim("first", "lock", json!({})).await;
    bench.phase("first", Phase::Active).await;
    frozen.freeze().unwrap();
    let mut second = bench.lead(&[]).await;
    bench.claim("second", "lock", json!({"maxWaitSeconds": 600})).await;
    bench.phase("second", Phase::Queued).await;
    bench.until("the new term is in the ledger", async || bench.ledger("lock").await.queue_depth == 1).await;
    let term = bench.ledger("lock").await.term;
    frozen.thaw().unwrap();
    assert_eq!(frozen.wait(SOON).await.unwrap().code(), Some(LEADERSHIP_LOST));
    delete(&bench, "first").await;
    bench.phase("second", Phase::Active).await;
    let ledger = bench.ledger("lock").await;
    assert_eq!((ledger.term, ledger.occupants.len()), (term, 1));
    second.terminate(SOON).await.unwrap();
}

#[tokio::test]
async fn c9_a_leader_killed_in_the_middle_of_its_work_is_followed_by_one_that_finishes_it() {
    let bench = Bench::start().await;
    let mut killed = bench.lead(&[]).await;
    bench.resource("pool", json!({"capacity": {"mode": "Shared", "quantity": 8, "maxOccupants": 8}})).await;
    for count in 0..60 {
        let mut spec = bench.some("pool", 1 + count % 3);
        spec["maxWaitSeconds"] = json!(600);
        bench.claim(&format!("c{count}"), "pool", spec).await;
        if count == 30 {
            killed.kill().unwrap();
        }
    }
    let _second = bench.begin(&[]).await;
    // By fence: that is the order of the grants, whichever claim was told first.
    let mut over = BTreeMap::new();
    while over.len() < 60 {
        let ledger = bench.ledger("pool").await;
        let occupied: i64 = ledger.occupants.iter().map(|occupant| occupant.quantity).sum();
        assert!(occupied <= 8 && occupied == ledger.occupied_quantity, "{ledger:?}");
        let claims = bench.claims.list(&ListParams::default()).await.unwrap();
        let active = claims.items.iter().filter(|claim| claim.status.as_ref().is_some_and(|status| status.phase == Phase::Active));
        for claim in active {
            let status = claim.status.as_ref().unwrap();
            if over.insert(status.grants[0].fence, status.ticket).is_none() {
                delete(&bench, claim.metadata.name.as_deref().unwrap()).await;
            }
        }
        let waiting = claims.items.iter().all(|claim| claim.status.as_ref().is_none_or(|status| !status.phase.is_final()));
        assert!(waiting, "nobody is turned away: {claims:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(over.values().is_sorted(), "first come, first served: {over:?}");
    bench.until("it is free", async || bench.ledger("pool").await.occupants.is_empty()).await;
}

#[tokio::test]
async fn l8_an_occupied_resource_cannot_be_deleted() {
    let bench = Bench::start().await;
    let _controller = bench.lead(&[]).await;
    bench.resource("lock", json!({})).await;
    bench.claim("first", "lock", json!({})).await;
    bench.phase("first", Phase::Active).await;
    let name = bench.name("lock");
    // A policy is in force about a second after it was applied.
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    bench.until("the policy is in force", async || bench.resources.delete(&name, &dry).await.is_err()).await;
    let own = ListParams::default().fields(&format!("metadata.name={name}"));
    let one = bench.resources.delete(&name, &DeleteParams::default()).await.unwrap_err();
    let all = bench.resources.delete_collection(&DeleteParams::default(), &own).await.unwrap_err();
    for refused in [one, all] {
        let kube::Error::Api(status) = refused else { panic!("{refused}") };
        assert!(status.code == 403 && status.message.contains("ResourceInUse"), "{status:?}");
    }
    delete(&bench, "first").await;
    bench.until("it is free", async || bench.ledger("lock").await.occupants.is_empty()).await;
    bench.resources.delete(&name, &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn s1_a_claim_ends_with_the_job_it_lives_as_long_as() {
    let bench = Bench::start().await;
    let _controller = bench.lead(&[]).await;
    bench.resource("lock", json!({})).await;
    let jobs: Api<Job> = Api::namespaced(bench.client.clone(), &bench.namespace);
    let containers = json!([{"name": "c", "image": "none"}]);
    let template = json!({"spec": {"restartPolicy": "Never", "containers": containers}});
    let job = json!({"metadata": {"name": "train"}, "spec": {"suspend": true, "template": template}});
    jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.unwrap();
    bench.claim("first", "lock", json!({"scope": {"apiVersion": "batch/v1", "kind": "Job", "name": "train"}})).await;
    bench.phase("first", Phase::Active).await;
    jobs.delete("train", &DeleteParams::background()).await.unwrap();
    assert_eq!(bench.phase("first", Phase::Released).await.reason, Some(Reason::ScopeEnded));
}

#[tokio::test]
async fn l2_a_holder_outside_a_pod_lives_by_its_lease() {
    let bench = Bench::start().await;
    let _controller = bench.lead(&[]).await;
    bench.resource("kept", json!({})).await;
    bench.resource("lapsed", json!({})).await;
    let kept = bench.claim("kept", "kept", json!({"leaseSeconds": 10})).await.metadata.uid.unwrap();
    bench.claim("lapsed", "lapsed", json!({"leaseSeconds": 10})).await;
    bench.phase("kept", Phase::Active).await;
    let leases: Api<Lease> = Api::namespaced(bench.client.clone(), &bench.namespace);
    let name = format!("tenure-{kept}");
    let renew = async || {
        let renewed = jiff::fmt::strtime::format("%Y-%m-%dT%H:%M:%S%.6fZ", jiff::Timestamp::now()).unwrap();
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
            "spec": {"holderIdentity": kept, "leaseDurationSeconds": 10, "renewTime": renewed}});
        leases.patch(&name, &PatchParams::apply("holder").force(), &Patch::Apply(lease)).await.unwrap();
    };
    for _ in 0..8 {
        renew().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    bench.phase("kept", Phase::Active).await;
    assert_eq!(bench.phase("lapsed", Phase::Expired).await.reason, Some(Reason::Lapsed));
    assert!(bench.ledger("lapsed").await.occupants.is_empty());
}

#[tokio::test]
async fn every_ledger_write_is_in_the_audit_stream() {
    let bench = Bench::start().await;
    let file = bench.plane.path().join(format!("audit-{}", bench.namespace));
    let mut controller = bench.lead(&[&format!("--audit={}", file.display())]).await;
    bench.resource("lock", json!({})).await;
    let claim = bench.claim("first", "lock", json!({})).await;
    bench.phase("first", Phase::Active).await;
    let ledger = bench.ledger("lock").await;
    assert_eq!(controller.terminate(SOON).await.unwrap().code(), Some(0));
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let own: Vec<Value> = lines.filter(|line| line["resource"] == bench.name("lock")).collect();
    let revisions: Vec<i64> = own.iter().filter_map(|line| line["after"]["revision"].as_i64()).collect();
    assert_eq!(revisions, (1..=ledger.revision).collect::<Vec<_>>(), "one line a write, none left out");
    let last = &own[own.len() - 1];
    let uid = claim.metadata.uid.as_deref().unwrap();
    assert_eq!(last["after"]["occupants"][0]["claims"][0]["uid"], uid);
    assert_eq!((&last["term"], &last["outcome"]), (&json!(ledger.term), &json!("Written")));
}

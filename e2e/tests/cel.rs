//! The rules in the CRDs, each by an object that a real API server takes and one that it refuses, saying why.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "cel/subject.rs"]
mod subject;

use serde_json::{Value, json};
use subject::Subject;

/// `object` with some of its fields set anew; one set to null is left out.
fn with(object: &Value, changes: Value) -> Value {
    let mut object = object.clone();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => object.as_object_mut().unwrap().remove(name).map(|_| ()).unwrap_or_default(),
            value => object[name] = value.clone(),
        }
    }
    object
}

fn ledger(revision: i64, occupants: Value) -> Value {
    json!({
        "formatVersion": 1, "revision": revision, "term": 7, "lastFence": 100, "occupiedQuantity": 0,
        "effective": {"capacity": {"mode": "Shared", "quantity": 4}}, "occupants": occupants,
    })
}

fn occupant(fence: i64, mode: &str, quantity: i64) -> Value {
    json!({"fence": fence, "state": "Held", "mode": mode, "quantity": quantity, "sinceRevision": 1})
}

async fn resources() -> Subject {
    Subject::cluster("resources", "Resource").await
}

async fn claims() -> Subject {
    Subject::namespaced("claims", "Claim").await
}

/// Runs the tests below once more, on one subject, so that a rule without a test is found.
#[tokio::test]
async fn each_rule_was_seen_to_refuse() {
    let mut resource = resources().await;
    a_resource_says_what_can_be_lent(&mut resource).await;
    what_is_in_use_can_not_change(&mut resource).await;
    no_ledger_falls_back_or_gives_more_than_there_is(&mut resource).await;
    resource.proven().await;
    let mut claim = claims().await;
    a_claim_says_what_it_asks_for(&mut claim).await;
    two_requests_for_one_resource_need_two_scopes(&mut claim).await;
    nothing_but_release_changes_a_claim(&mut claim).await;
    a_final_phase_stays(&mut claim).await;
    claim.proven().await;
}

#[tokio::test]
async fn c1_a_resource_says_what_can_be_lent() {
    a_resource_says_what_can_be_lent(&mut resources().await).await;
}

async fn a_resource_says_what_can_be_lent(resource: &mut Subject) {
    resource.taken(json!({})).await;
    for capacity in [json!({"mode": "Exclusive"}), json!({"mode": "Shared", "quantity": 80}), json!({"mode": "Shared", "unlimited": true})]
    {
        resource.taken(json!({"capacity": capacity})).await;
    }
    let exclusive = "spec.capacity.mode: Invalid value";
    resource.refused(json!({"capacity": {"mode": "Exclusive", "quantity": 1}}), exclusive, "an Exclusive Resource is one unit").await;
    resource.refused(json!({"capacity": {"mode": "Exclusive", "unlimited": true}}), exclusive, "an Exclusive Resource is one unit").await;
    let shared = "spec.capacity.quantity: Invalid value";
    resource.refused(json!({"capacity": {"mode": "Shared"}}), shared, "either a quantity or unlimited: true").await;
    let both = json!({"capacity": {"mode": "Shared", "quantity": 2, "unlimited": true}});
    resource.refused(both, shared, "either a quantity or unlimited: true").await;

    let machine = json!({"identity": {"kind": "Machine", "key": "SHA256:abc"}, "receiptProvider": "generic"});
    resource.taken(machine.clone()).await;
    resource.taken(with(&machine, json!({"receiptProvider": null, "class": "hosts"}))).await;
    resource.refused(with(&machine, json!({"identity": {"kind": "Machine"}})), "spec.identity.key: Required", "needs its host key").await;
    resource.refused(with(&machine, json!({"receiptProvider": null})), "spec.receiptProvider: Required", "needs a receiptProvider").await;

    resource.taken(json!({"policy": "Advisory"})).await;
    for more in
        [json!({"capacity": {"mode": "Shared", "quantity": 1}}), json!({"receiptProvider": "generic"}), json!({"parent": "host"}), machine]
    {
        let advisory = with(&more, json!({"policy": "Advisory"}));
        resource.refused(advisory, "spec.policy: Invalid value", "an Advisory Resource is Logical and Exclusive").await;
    }

    let window =
        |ends: &str| json!({"incumbent": {"protectedWindows": [{"label": "night", "startsAt": "2026-01-01T02:00:00Z", "endsAt": ends}]}});
    resource.taken(window("2026-01-01T03:00:01+01:00")).await;
    let place = "spec.incumbent.protectedWindows[0].endsAt: Invalid value";
    resource.refused(window("2026-01-01T03:00:00+01:00"), place, "a window ends after it starts").await;

    resource.taken(json!({"parent": "another"})).await;
    let mut inside = resource.object(json!({}));
    let name = "cel-inside-itself".to_owned();
    inside.data["spec"] = json!({"parent": name});
    inside.metadata.name = Some(name);
    resource.refused_object(&inside, "spec.parent: Invalid value", "a Resource can't be inside itself").await;
}

#[tokio::test]
async fn c7_what_is_in_use_can_not_change() {
    what_is_in_use_can_not_change(&mut resources().await).await;
}

async fn what_is_in_use_can_not_change(resource: &mut Subject) {
    let spec = json!({
        "capacity": {"mode": "Shared", "quantity": 4}, "identity": {"kind": "Machine", "key": "a"}, "receiptProvider": "generic",
        "parent": "rack", "node": "node-1",
    });
    let changes = [
        ("identity", json!({"identity": {"kind": "Machine", "key": "b"}})),
        ("receiptProvider", json!({"receiptProvider": "nvml"})),
        ("parent", json!({"parent": null})),
        ("node", json!({"node": "node-2"})),
        ("policy", json!({"policy": "Blocking"})),
    ];
    let more = json!({"capacity": {"mode": "Shared", "quantity": 5}});
    let (capacity, word) = ("spec.capacity: Forbidden", "CapacityInUse: capacity can't change");

    let mut object = resource.made(spec.clone()).await;
    resource.spec_taken(&mut object, with(&spec, more.clone())).await;
    resource.spec_taken(&mut object, spec.clone()).await;
    resource.status_taken(&mut object, ledger(1, json!([occupant(100, "Shared", 1)]))).await;
    resource.spec_refused(&object, with(&spec, more.clone()), capacity, word).await;
    resource.spec_refused(&object, with(&spec, json!({"capacity": null})), capacity, word).await;
    for (field, change) in &changes {
        resource.spec_refused(&object, with(&spec, change.clone()), &format!("spec.{field}: Forbidden"), "ResourceInUse: ").await;
    }
    resource.spec_taken(&mut object, with(&spec, json!({"displayName": "the big one", "lending": {"mode": "Unavailable"}}))).await;
    resource.spec_taken(&mut object, spec.clone()).await;

    let waiter = json!({"ticket": 1, "claim": {"namespace": "a", "name": "b", "uid": "c"}, "mode": "Shared", "quantity": 1});
    for (revision, queue) in [(2, "ordinary"), (3, "drains")] {
        let mut status = ledger(revision, json!([]));
        status["queue"] = json!({queue: [waiter]});
        resource.status_taken(&mut object, status).await;
        resource.spec_refused(&object, with(&spec, more.clone()), capacity, word).await;
    }
    for (_, change) in changes {
        resource.spec_taken(&mut object, with(&spec, change)).await;
    }
    resource.spec_taken(&mut object, spec.clone()).await;
    resource.status_taken(&mut object, ledger(4, json!([]))).await;
    resource.spec_taken(&mut object, with(&spec, more)).await;
}

#[tokio::test]
async fn o6_no_ledger_falls_back_or_gives_more_than_there_is() {
    no_ledger_falls_back_or_gives_more_than_there_is(&mut resources().await).await;
}

async fn no_ledger_falls_back_or_gives_more_than_there_is(resource: &mut Subject) {
    let mut object = resource.made(json!({"capacity": {"mode": "Shared", "quantity": 4}})).await;
    let full = ledger(5, json!([occupant(90, "Shared", 3), occupant(100, "Shared", 1)]));
    resource.status_taken(&mut object, full.clone()).await;
    resource.status_taken(&mut object, full.clone()).await;
    let next = with(&full, json!({"revision": 6}));
    let refusals = [
        (with(&full, json!({"availability": "Held"})), "status.revision: Forbidden", "revision must grow"),
        (with(&full, json!({"revision": 4})), "status.revision: Forbidden", "revision must grow"),
        (with(&next, json!({"term": 6})), "status.term: Forbidden", "term can't fall"),
        (with(&next, json!({"lastFence": 99, "occupants": []})), "status.lastFence: Forbidden", "lastFence can't fall"),
        (
            with(&next, json!({"occupants": [occupant(90, "Shared", 3), occupant(100, "Shared", 2)]})),
            "status.occupants: Forbidden",
            "more than effective.capacity",
        ),
        (
            with(&next, json!({"effective": {"capacity": {"mode": "Exclusive"}}})),
            "status.occupants: Forbidden",
            "more than effective.capacity",
        ),
        (
            with(&next, json!({"occupants": [occupant(90, "Shared", 1), occupant(100, "Exclusive", 1)]})),
            "status.occupants: Forbidden",
            "an Exclusive occupant must be alone",
        ),
        (
            with(&next, json!({"occupants": [occupant(100, "Shared", 1), occupant(100, "Shared", 1)]})),
            "status.occupants: Forbidden",
            "in the order of their fences",
        ),
        (with(&next, json!({"occupants": [occupant(101, "Shared", 1)]})), "status.lastFence: Forbidden", "above lastFence"),
    ];
    for (status, place, message) in refusals {
        resource.status_refused(&object, Some(status), place, message).await;
    }
    resource.status_refused(&object, None, "status: Forbidden", "the ledger can't be removed").await;
    for missing in ["revision", "term", "lastFence"] {
        let status = with(&next, json!({missing: null}));
        resource.status_refused(&object, Some(status), &format!("status.{missing}: Required value"), "").await;
    }
    resource.status_taken(&mut object, with(&next, json!({"occupants": [occupant(100, "Exclusive", 4)]}))).await;
    let unlimited = json!({"revision": 7, "effective": {"capacity": {"mode": "Shared", "unlimited": true}},
        "occupants": [occupant(99, "Shared", 1_000_000), occupant(100, "Shared", 1_000_000)]});
    resource.status_taken(&mut object, with(&next, unlimited)).await;
}

#[tokio::test]
async fn a_class_is_held_to_what_its_resources_are() {
    let mut class = Subject::cluster("resourceclasses", "ResourceClass").await;
    class.taken(json!({"policy": "Advisory"})).await;
    let shared = json!({"capacity": {"mode": "Shared", "quantity": 1}});
    class.taken(shared.clone()).await;
    let advisory = ("spec.policy: Invalid value", "Advisory Resources are Exclusive");
    class.refused(with(&shared, json!({"policy": "Advisory"})), advisory.0, advisory.1).await;
    class.refused(json!({"policy": "Advisory", "receiptProvider": "nvml"}), advisory.0, advisory.1).await;
    class.refused(json!({"capacity": {"mode": "Shared"}}), "spec.capacity.quantity: Invalid value", "either a quantity or").await;
    class.refused(json!({"capacity": {"mode": "Exclusive", "quantity": 1}}), "spec.capacity.mode: Invalid value", "is one unit").await;
    class.proven().await;
}

#[tokio::test]
async fn m1_a_claim_says_what_it_asks_for() {
    a_claim_says_what_it_asks_for(&mut claims().await).await;
}

async fn a_claim_says_what_it_asks_for(claim: &mut Subject) {
    let asking = |requests: Value| json!({"requests": requests});
    let selector = json!({"matchLabels": {"gpu": "a100"}});
    claim
        .taken(asking(json!([{"name": "a", "key": "x"}, {"name": "b", "resource": "y"}, {"name": "c", "selector": selector, "count": 14}])))
        .await;
    let one_of = ("spec.requests[0]: Invalid value", "exactly one of resource, key and selector");
    claim.refused(asking(json!([{"name": "a"}])), one_of.0, one_of.1).await;
    claim.refused(asking(json!([{"name": "a", "key": "x", "resource": "y"}])), one_of.0, one_of.1).await;
    claim
        .refused(asking(json!([{"name": "a", "key": "x", "count": 2}])), "spec.requests[0].count: Invalid value", "with a selector only")
        .await;
    claim.refused(asking(json!([{"name": "a", "key": "x"}, {"name": "a", "key": "y"}])), "spec.requests[1]: Duplicate value", "").await;
    let many = json!([{"name": "a", "key": "x"}, {"name": "c", "selector": selector, "count": 16}]);
    claim.refused(asking(many), "spec.requests: Invalid value", "at most 16 Resources in all").await;
    let drain = json!({"drain": {"deadlineSeconds": 30}});
    claim.taken(with(&asking(json!([{"name": "a", "key": "x"}])), drain.clone())).await;
    let drained = with(&asking(json!([{"name": "a", "selector": selector}])), drain);
    claim.refused(drained, "spec.drain: Invalid value", "not by selector").await;
}

#[tokio::test]
async fn m6_two_requests_for_one_resource_need_two_scopes() {
    two_requests_for_one_resource_need_two_scopes(&mut claims().await).await;
}

async fn two_requests_for_one_resource_need_two_scopes(claim: &mut Subject) {
    let scope = |name: &str| json!({"apiVersion": "batch/v1", "kind": "Job", "name": name});
    let twice = |what: &str, first: Value, second: Value, of_claim: Value| {
        let request = |name: &str, scope: Value| with(&json!({"name": name, what: "x"}), json!({"scope": scope}));
        with(&json!({"requests": [request("a", first), request("b", second)]}), json!({"scope": of_claim}))
    };
    for what in ["key", "resource"] {
        claim.taken(twice(what, scope("one"), scope("two"), Value::Null)).await;
        claim.taken(twice(what, scope("one"), Value::Null, Value::Null)).await;
        claim.taken(twice(what, Value::Null, scope("one"), scope("two"))).await;
        for (first, second, of_claim) in [
            (Value::Null, Value::Null, Value::Null),
            (scope("one"), scope("one"), Value::Null),
            (Value::Null, Value::Null, scope("one")),
            (scope("one"), Value::Null, scope("one")),
            (Value::Null, scope("one"), scope("one")),
        ] {
            let place = "spec.requests: Invalid value";
            claim.refused(twice(what, first, second, of_claim), place, "two requests name the same Resource or key").await;
        }
    }
    claim.taken(json!({"requests": [{"name": "a", "key": "x"}, {"name": "b", "resource": "x"}]})).await;
}

#[tokio::test]
async fn l5_nothing_but_release_changes_a_claim() {
    nothing_but_release_changes_a_claim(&mut claims().await).await;
}

async fn nothing_but_release_changes_a_claim(claim: &mut Subject) {
    let scope = json!({"apiVersion": "v1", "kind": "Pod", "name": "p"});
    let spec = json!({
        "requests": [{"name": "a", "key": "x"}], "colocate": true, "maxWaitSeconds": 1, "maxHoldSeconds": 1, "leaseSeconds": 10,
        "startDeadlineSeconds": 1, "expectedSeconds": 1, "yieldPolicy": "Yield", "drain": {"deadlineSeconds": 30},
        "resumes": {"name": "a", "uid": "b"}, "scope": scope, "label": "l", "intent": "i", "change": "c",
        "job": {"image": "a", "steps": [{"deep": 1}]}, "claimant": {"user": "ada"},
    });
    let mut object = claim.made(spec.clone()).await;
    let others = [
        ("requests", json!([{"name": "a", "key": "y"}])),
        ("colocate", json!(false)),
        ("yieldPolicy", json!("Finish")),
        ("drain", json!({"deadlineSeconds": 31})),
        ("resumes", json!({"name": "a", "uid": "c"})),
        ("scope", json!({"apiVersion": "v1", "kind": "Pod", "name": "q"})),
        ("job", json!({"image": "a", "steps": [{"deep": 2}]})),
        ("claimant", json!({"user": "eve"})),
    ];
    let strings = ["label", "intent", "change"].map(|field| (field, json!("other")));
    let seconds =
        ["maxWaitSeconds", "maxHoldSeconds", "leaseSeconds", "startDeadlineSeconds", "expectedSeconds"].map(|field| (field, json!(77)));
    let changes: Vec<(&str, Value)> = others.into_iter().chain(strings).chain(seconds).collect();
    let fields: Vec<&str> = changes.iter().map(|(field, _)| *field).chain(["release", "ttlSecondsAfterFinished"]).collect();
    claim.has_only(&fields).await;
    for (field, value) in changes {
        let place = format!("spec.{field}: Forbidden");
        claim.spec_refused(&object, with(&spec, json!({field: value})), &place, "a claim can't be changed").await;
        if field != "requests" {
            claim.spec_refused(&object, with(&spec, json!({field: null})), &place, "a claim can't be changed").await;
        }
    }
    let later = with(&spec, json!({"ttlSecondsAfterFinished": 5}));
    claim.spec_taken(&mut object, later.clone()).await;
    let released = with(&later, json!({"release": {"cleanup": "VerifiedClean"}}));
    claim.spec_taken(&mut object, released.clone()).await;
    let once = ("spec.release: Forbidden", "release is set once");
    claim.spec_refused(&object, later, once.0, once.1).await;
    claim.spec_refused(&object, with(&released, json!({"release": {}})), once.0, once.1).await;
    claim.spec_taken(&mut object, with(&released, json!({"ttlSecondsAfterFinished": 6}))).await;
}

#[tokio::test]
async fn no_claim_leaves_a_final_phase() {
    a_final_phase_stays(&mut claims().await).await;
}

async fn a_final_phase_stays(claim: &mut Subject) {
    let phase = |phase: &str| json!({"phase": phase, "attempt": 0});
    for last in ["Released", "Cancelled", "Denied", "TimedOut", "Expired", "Revoked"] {
        let mut object = claim.made(json!({"requests": [{"name": "a", "key": "x"}]})).await;
        for next in ["Pending", "Queued", "Granted", "Active", last, last] {
            claim.status_taken(&mut object, phase(next)).await;
        }
        claim.status_taken(&mut object, json!({"phase": last, "attempt": 0, "message": "told again"})).await;
        claim.status_refused(&object, Some(phase("Active")), "status.phase: Forbidden", "this phase is final").await;
        claim.status_refused(&object, Some(json!({"attempt": 0})), "status.phase: Required value", "").await;
        claim.status_refused(&object, None, "status: Forbidden", "the status of a claim can't be removed").await;
    }
}

#[tokio::test]
async fn r9_what_is_written_once_stays() {
    let mut receipt = Subject::cluster("receipts", "Receipt").await;
    let spec = json!({"resource": "r", "fence": 1, "kind": "Release", "cleanup": "Residue"});
    let mut object = receipt.made(spec.clone()).await;
    receipt.spec_refused(&object, with(&spec, json!({"cleanup": "VerifiedClean"})), "spec: Forbidden", "a Receipt can't be changed").await;
    receipt.status_taken(&mut object, json!({"counted": false, "late": false, "reason": "NotClean"})).await;
    receipt.proven().await;

    let mut revocation = Subject::cluster("revocations", "Revocation").await;
    let spec = json!({"as": "Owner", "resource": "r", "fence": 1, "reason": "needed"});
    let claim = json!({"namespace": "a", "name": "b", "uid": "c"});
    let object = revocation.made(spec.clone()).await;
    revocation.taken(with(&spec, json!({"fence": null, "claim": claim}))).await;
    let either = ("spec.claim: Invalid value", "either a claim or a fence");
    revocation.refused(with(&spec, json!({"claim": claim})), either.0, either.1).await;
    revocation.refused(with(&spec, json!({"fence": null})), either.0, either.1).await;
    revocation.refused(with(&spec, json!({"reason": ""})), "spec.reason: Invalid value", "").await;
    revocation.spec_refused(&object, with(&spec, json!({"fence": 2})), "spec: Forbidden", "a Revocation can't be changed").await;
    revocation.proven().await;

    let mut release = Subject::cluster("ownerreleases", "OwnerRelease").await;
    let spec = json!({"resource": "r", "fence": 1, "reason": "I looked", "confirmName": "r"});
    let object = release.made(spec.clone()).await;
    release.taken(with(&spec, json!({"fence": null}))).await;
    release.taken(with(&spec, json!({"fence": null, "ledger": true}))).await;
    release.refused(with(&spec, json!({"ledger": true})), "spec.ledger: Invalid value", "not both").await;
    release.refused(with(&spec, json!({"confirmName": "s"})), "spec.confirmName: Invalid value", "type it again").await;
    release.spec_refused(&object, with(&spec, json!({"reason": "no"})), "spec: Forbidden", "an OwnerRelease can't be changed").await;
    release.proven().await;
}

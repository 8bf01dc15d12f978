//! What is told late, or after the object it is about has gone.

use super::{
    bench::*,
    capacity::{admission_receipt, admit},
};
use crate::{
    api::*,
    engine::{
        action::{Action, Body, Write},
        event::{Event, Target},
    },
};

/// One step, and what looks lead to; nothing is carried out: the writes it asks for.
fn step(bench: &mut Bench, events: Vec<Event>) -> Vec<Write> {
    let mut writes = Vec::new();
    for action in bench.engine.step(bench.now, events) {
        match action {
            Action::Write(write) => writes.push(write),
            Action::Look { claim, sought } => {
                let found = bench.store.look(&sought);
                writes.extend(step(bench, vec![Event::Looked { claim, found }]));
            }
            Action::Find(claim) => {
                let found = bench.store.find(&claim);
                writes.extend(step(bench, vec![found]));
            }
            Action::Follow(_) | Action::Unfollow(_) => {}
        }
    }
    writes
}

#[test]
fn c9_the_end_of_an_invention_is_never_taken_for_that_of_a_ledgers_first_write() {
    let mut bench = Bench::default();
    let class = ResourceClass::new("invented", ResourceClassSpec { on_demand: true, ..Default::default() });
    bench.tell(vec![Event::Class(Box::new(class))]);
    let request = Request { name: "it".to_owned(), key: Some("lock".to_owned()), ..Default::default() };
    let claim = bench.store.add_claim("team-a", "a", asks(request, 0), bench.now.wall).expect("the name is free");
    let invention = step(&mut bench, vec![claim]).remove(0);
    let mut told = bench.store.write(&invention, bench.now.wall);
    assert_eq!(told.len(), 2, "the object, then how the write ended");

    // A watch is faster than the answer.
    let first = step(&mut bench, vec![told.remove(0)]).remove(0);
    assert!(matches!(first.body, Body::Ledger { .. }));
    assert_eq!(step(&mut bench, told), [], "the ledger's first write is still on its way");
    let told = bench.store.write(&first, bench.now.wall);
    bench.tell(told);
    assert_eq!(bench.phase("a"), Phase::Active);
    let name = bench.status("a").grants[0].resource.clone();
    assert_eq!(bench.ledger(&name).occupants.len(), 1);
}

#[test]
fn c9_the_end_of_a_write_of_a_resource_is_never_taken_for_that_of_its_namesake() {
    let mut bench = Bench::default();
    bench.resource("lock", mutex());
    let claim = bench.store.add_claim("team-a", "a", asks(named("lock"), 0), bench.now.wall).expect("the name is free");
    let old = step(&mut bench, vec![claim]).remove(0);
    let removed = bench.store.resources.remove("lock").expect("it is there");
    let gone = Event::ResourceGone { name: "lock".to_owned(), uid: removed.metadata.uid.clone().expect("made") };
    let created = bench.store.add_resource("lock", &[], mutex(), bench.now.wall).expect("the name is free");
    let writes = step(&mut bench, vec![Event::Resource(Box::new(removed)), gone, created]);
    let is_lock = |write: &&Write| write.target == Target::Resource("lock".to_owned());
    assert_eq!(writes.iter().filter(is_lock).count(), 1, "the new one's first ledger");

    let refused = bench.store.write(&old, bench.now.wall);
    let more = step(&mut bench, refused);
    assert_eq!(more.iter().filter(is_lock).count(), 0, "its first write is still on its way");
}

#[test]
fn l4_a_claim_deleted_while_it_became_active_leaves_a_debt() {
    let mut bench = Bench::default();
    bench.resource("host", machine());
    bench.claim("a", asks(named("host"), 0));
    assert_eq!(bench.phase("a"), Phase::Granted);
    let spec = admission_receipt(&bench, "a", "host", Admission::Admitted, None);
    let receipt = bench.store.add_receipt("admitted", spec, bench.now.wall);
    let active = step(&mut bench, vec![receipt]).remove(0);
    assert!(matches!(&active.body, Body::Claim(status) if status.phase == Phase::Active));

    // It took effect, its holder saw it and deleted the claim, and all of that is known before the answer.
    let answer = bench.store.write(&active, bench.now.wall);
    bench.delete("a");
    bench.tell(answer);
    assert_eq!(bench.states("host"), [OccupantState::Reconciling]);
    assert!(bench.store.claims.is_empty());
}

#[test]
fn l4_a_claim_deleted_before_it_was_active_leaves_none() {
    let mut bench = Bench::default();
    bench.resource("host", machine());
    bench.claim("a", asks(named("host"), 0));
    bench.delete("a");
    assert_eq!(bench.states("host"), []);
    bench.claim("b", asks(named("host"), 0));
    admit(&mut bench, "b", "host", Admission::Admitted, None);
    bench.delete("b");
    assert_eq!(bench.states("host"), [OccupantState::Reconciling]);
}

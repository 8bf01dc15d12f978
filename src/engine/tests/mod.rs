//! Tests of the rules, each named for its rule. They run the engine on the in-memory store.

mod bench;
mod capacity;
mod chaos;
mod late;
mod life;
mod look;
mod queue;
mod scope;
mod several;
mod tree;

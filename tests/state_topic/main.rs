//! A state in a topic: an instance that has lost its directory goes on where its last batch ended, exactly once, and nobody reads anything
//! in the topic (docs/scale.md).
#![cfg(feature = "failpoints")]

#[path = "../support/mod.rs"]
mod support;

mod damaged;
mod erased;
mod lost;
mod measured;
mod moved;
mod overtaken;
mod refusals;
mod returned;
mod scene;

//! Instances of one group that share a ledger: what one releases supports the others, and the union of all that leaves is k-anonymous
//! whatever is killed, late or wrong.
#![cfg(feature = "failpoints")]

#[path = "../support/mod.rs"]
mod support;

mod erased;
mod measured;
mod refusals;
mod repeated;
mod scene;
mod skewed;
mod supporting;
mod union;

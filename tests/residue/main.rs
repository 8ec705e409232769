//! Instances of one group that hand each other records which find no crowd: they are pooled, leave once or not at all, and every one of them
//! is accounted for, whatever is killed, forged or late.
#![cfg(feature = "failpoints")]

#[path = "../support/mod.rs"]
mod support;

mod forged;
mod gone;
mod measured;
mod moved;
mod pooled;
mod refusals;
mod renamed;
mod scene;
mod union;

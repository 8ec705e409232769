//! Helpers of the scenario tests. Each scenario uses a part of them.
#![allow(dead_code, reason = "every scenario is a crate of its own and uses a part of what is here")]

pub mod binary;
pub mod canaries;
pub mod copies;
pub mod crash_points;
pub mod daemon;
pub mod desk;
pub mod instances;
pub mod invariants;
pub mod kafka;
pub mod models;
pub mod ports;
pub mod proxy;
pub mod random_attributes;
pub mod registry;
pub mod schemas;
pub mod small_disk;
pub mod stand;

//! Anonymity: lattices and ladders, the plan, the planner that makes it and the treatment that follows it.

pub mod domain;
pub mod lattice;
pub mod microaggregation;
mod numbering;
pub mod plan;
pub mod planner;
pub mod privacy;
pub mod quality;
pub mod series;
pub mod treatment;

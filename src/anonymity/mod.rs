//! k-anonymity: generalization lattices and ladders, the plan, its planner, and the treatment of batches.

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

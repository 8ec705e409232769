//! Anonymity: lattices and ladders, the plan, the planner that makes it and the treatment that follows it.
//!
//! | room | what it holds |
//! |---|---|
//! | [`plan`] | identifiers, groups, ladders and paces, as an immutable value; the evidence for it |
//! | [`planner`] | from a sample of the stream to a plan |
//! | [`treatment`] | from a batch and a plan to a proposal of what may leave |
//! | [`lattice`] | the search for the best generalization of one data set |
//! | [`privacy`] | privacy models as predicates on equivalence classes |
//! | [`quality`] | measures of a release |
//! | [`domain`] | the values of one attribute and their generalizations, for the search |
//! | [`microaggregation`] | aggregates of the numbers of a class |

pub mod domain;
pub mod lattice;
pub mod microaggregation;
pub mod plan;
pub mod planner;
pub mod privacy;
pub mod quality;
pub mod treatment;

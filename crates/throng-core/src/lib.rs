//! Anonymization core of throng, without I/O, clock or configuration.
//!
//! Modules, from input to release:
//!
//! | module | contents |
//! |---|---|
//! | [`values`] | schema, hierarchies, canonical values, codes |
//! | [`ledger`] | release log, tenure and class budgets of each subject |
//! | [`domain`], [`lattice`] | domains of attributes; policy search |
//! | [`privacy`], [`quality`] | privacy models; quality measures |
//! | [`attribute_dependence`] | mutual information of attributes |
//! | [`plan`] | groups of attributes and their ladders |
//! | [`treatment`] | recoding, suppression, holding, counterfeits |
//! | [`microaggregation`] | aggregates of numbers in classes |
//! | [`series`] | statistics of locked cohorts |
//! | [`line_encoder`], [`counterfeit_catalog`] | interface of the line formats; counterfeit catalog |
//! | [`release`] | verification of the encoded lines |
//! | [`stream`] | interface of sources and sinks |
//! | [`faults`] | crash points of the tests |
//! | [`printable`] | escaping of external text, shares in percent |

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod attribute_dependence;
pub mod counterfeit_catalog;
pub mod domain;
pub mod faults;
pub mod lattice;
pub mod ledger;
pub mod line_encoder;
pub mod microaggregation;
pub mod numbering;
pub mod plan;
pub mod printable;
pub mod privacy;
pub mod quality;
pub mod release;
pub mod series;
pub mod stream;
pub mod treatment;
pub mod values;

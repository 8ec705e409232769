//! Anonymization core of throng: schemas, values, generalization, treatment, statistics of locked cohorts, and the
//! verification of every release. Without I/O, clock or configuration.
//!
//! The modules, from input to release:
//!
//! | module | contents |
//! |---|---|
//! | [`values`] | schema, hierarchies, canonical values, codes |
//! | [`ledger`] | release log, tenure and class budgets of each subject |
//! | [`domain`], [`lattice`] | domains of attributes; search for the policy of least cost for a complete data set |
//! | [`privacy`], [`quality`] | privacy models of classes; quality measures of policies |
//! | [`attribute_dependence`] | mutual information of attributes |
//! | [`plan`] | groups of attributes and their ladders of levels |
//! | [`treatment`] | classes of a batch: levels, suppression, holding, counterfeits |
//! | [`microaggregation`] | aggregates of numbers in classes |
//! | [`series`] | statistics of locked cohorts |
//! | [`line_encoder`], [`counterfeit_catalog`] | interface of the line formats; the catalog of counterfeits |
//! | [`release`] | verification of the encoded lines of a batch or data set |
//! | [`stream`] | interface of sources and sinks: batches of input, envelopes of released batches |
//! | [`faults`] | crash points of the tests |
//! | [`printable`] | escaping of external text for log lines and errors |
//!
//! Planning needs evidence on quasi-identifiers (crate throng-risk) and is part of the daemon.

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

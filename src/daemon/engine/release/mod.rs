//! Treatment, verification and delivery of a batch, and the statistics of its cohorts.

pub(crate) mod batch_steps;
pub(crate) mod series_exchange;
pub(crate) mod series_stream;
pub(crate) mod treatment;
pub mod verifier_terms;

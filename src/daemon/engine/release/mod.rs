//! Treatment, verification, delivery and series of a batch.

pub(crate) mod batch_steps;
pub(crate) mod series_exchange;
pub(crate) mod series_stream;
pub(crate) mod treatment;
pub mod verifier_terms;

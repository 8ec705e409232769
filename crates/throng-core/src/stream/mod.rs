//! Interface of sources and sinks: a batch of input, and the envelope of a released batch.
//!
//! | module | content |
//! |---|---|
//! | [`input_batch`] | a batch from a source, and the limits that close it |
//! | [`subject_share`] | the limit on the share of a batch per subject |
//! | [`release_sink`] | interface of the sinks that receive verified batches |
//! | [`dead_letter`] | the report on a rejected record |

pub mod dead_letter;
pub mod input_batch;
pub mod release_sink;
pub mod subject_share;

//! Interface of sources and sinks: input batches and envelopes of released batches.

pub mod batch_encoding;
pub mod dead_letter;
pub mod input_batch;
pub mod release_sink;
pub mod subject_share;

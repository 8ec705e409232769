//! Learned statistics of the stream, and searches for plans on separate threads.

pub(crate) mod dictionary_compaction;
pub(crate) mod model;
pub(crate) mod planning;
pub(crate) mod search;
pub(crate) mod stream_knowledge;

//! First steps of a batch: records are read, joined, limited and combined with held records.

pub(crate) mod contribution_limit;
pub(crate) mod encode_ahead;
pub(crate) mod gathered_batch;
pub(crate) mod held_records;
pub(crate) mod profile_joins;

//! First steps of a batch: encoding, joins, limits, held records.

pub(crate) mod contribution_limit;
pub(crate) mod encode_ahead;
pub(crate) mod gathered_batch;
pub(crate) mod held_records;
pub(crate) mod profile_joins;

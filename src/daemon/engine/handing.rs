//! What an engine has of the way to other instances for records that find no crowd, and what a batch hands on.

use crate::io::residue::Door;
use std::collections::BTreeSet;

/// The way to other instances; none where records are suppressed instead.
#[derive(Default)]
pub(super) struct Handing(pub Option<Way>);

/// How records are handed on, and taken up.
pub(super) struct Way {
    /// Seals and opens.
    pub door: Door,
    /// Partitions of the topic.
    pub partitions: i32,
    /// Identity of the state.
    pub instance: [u8; 16],
    /// How old a record may be.
    pub max_age_ms: i64,
}

/// What a batch hands on.
#[derive(Debug, Default)]
pub(super) struct HandedOn {
    /// The rows.
    pub rows: BTreeSet<u32>,
    /// Their records, sealed.
    pub records: Vec<Vec<u8>>,
    /// The partition that they are sealed for.
    pub partition: i32,
}

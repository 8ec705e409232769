//! A batch before its treatment.

use super::held::Remaining;
use super::turnout::Turnout;
use crate::anonymity::plan::Plan;
use crate::io::input::InputBatch;
use crate::records::table::Batch;
use crate::release::sink::Rejected;
use crate::telemetry::StageSeconds;
use std::sync::Arc;

/// What became of planning before a batch.
#[derive(Debug, Default)]
pub(super) struct Planned {
    /// A plan that is in force from this batch on.
    pub plan: Option<Plan>,
    /// A search has ended, with a plan or without: the next is due an interval from now.
    pub ended: bool,
}

impl Planned {
    pub fn with(plan: Plan) -> Self {
        Self { plan: Some(plan), ended: true }
    }
}

/// A batch before its treatment.
pub(super) struct Gathered<'a> {
    pub input: &'a InputBatch,
    /// The records that have just been read.
    pub fresh: Arc<Batch>,
    /// The held records that come along, then the fresh ones; how long each has waited, and its number in the stream.
    pub batch: Batch,
    pub waited: Vec<u8>,
    pub ordinals: Vec<u64>,
    /// Where the held records that come along lie among all, and what they waited for.
    pub taken: Vec<usize>,
    pub waits: Vec<Remaining>,
    /// Records that could not be read or encoded, in the order of the source.
    pub rejected: Vec<Rejected>,
    /// Cells that their hierarchies miss.
    pub uncovered_cells: u64,
    /// Who takes part in which group.
    pub turnout: Turnout,
    pub altered_cells: u64,
    /// Records to which a join brought nothing.
    pub unjoined: u64,
    pub planned: Planned,
    /// The model and the sample have its fresh records already.
    pub is_learned: bool,
    /// Held records settle with this batch.
    pub last: bool,
    pub clock_ms: i64,
    pub age_ms: i64,
    pub seconds: StageSeconds,
}

/// The rows of a batch, and what those of them that were held have waited for.
pub(super) struct Before<'a> {
    pub batch: &'a Batch,
    /// What its first rows have waited for: those that were held.
    pub waits: &'a [Remaining],
    pub waited: &'a [u8],
}

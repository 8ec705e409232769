//! Why a batch did not leave.

use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::Intent;
use crate::io::profiles::ProfilesError;
use crate::release::verify::Refusal;

/// Why a batch did not leave.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// Undone; it may be tried again with the same ranges and clock.
    #[error("{why}")]
    Aborted {
        /// What the sink says of it.
        why: String,
        /// What the next attempt repeats: the ranges, and what was settled.
        intent: Box<Intent>,
    },
    /// Verification refuses the batch: none of it leaves, and the run ends.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The sink takes nothing more, or one batch was aborted too often: only a new start can mend it.
    #[error("{0}")]
    Fatal(String),
    /// The state failed; the next start finds out whether the batch left.
    #[error(transparent)]
    State(#[from] StateError),
    /// The profiles that the batch would be joined to cannot be read.
    #[error(transparent)]
    Profiles(#[from] ProfilesError),
    /// The source gives records again that this state has settled; `--accept-rewind` takes them nevertheless.
    #[error(
        "partition {partition} of topic number {topic} starts at offset {offset}, but this state has released up to offset {position}: releasing records a second time could undo their generalization (restore the offsets, or accept it with --accept-rewind)"
    )]
    Rewound {
        /// Index into the topics of the source; 0 for a file.
        topic: u16,
        /// 0 for a file.
        partition: i32,
        /// Where the source would go on reading.
        offset: i64,
        /// The first offset that the state has not settled; above `offset`.
        position: i64,
    },
}

//! Why a batch did not leave.

use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::Intent;
use crate::release::verify::Refusal;

/// Why a batch did not leave.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// Undone; it may be tried again with the same ranges and clock.
    #[error("{why}")]
    Aborted { why: String, intent: Box<Intent> },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Fatal(String),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(
        "partition {partition} of topic number {topic} starts at offset {offset}, but this state has released up to offset {position}: releasing records a second time could undo their generalization (restore the offsets, or accept it with --accept-rewind)"
    )]
    Rewound { topic: u16, partition: i32, offset: i64, position: i64 },
}

//! A configuration on its way to the stream, which swaps it in between two batches.

use crate::start::checked::Checked;
use crossbeam_channel::Sender;
use std::time::Duration;

/// What the stream says: how long the swap took, or why the old configuration stays.
pub type Swapped = Result<Duration, Vec<String>>;

/// A configuration that was read, tried and may take the place of the one in force.
pub struct Candidate {
    /// The configuration.
    pub checked: Checked,
    /// Where the stream says what became of it.
    pub answer: Sender<Swapped>,
}

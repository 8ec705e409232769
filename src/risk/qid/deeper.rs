//! Where witnesses see nothing, because every class of the parts of a set is too large to be kept, somebody may look at the table.

use super::witnesses::{Sight, Witnesses};
use crate::counting::{AttributeSet, ComputeError};

/// Looks at the whole table.
pub(super) trait Deeper {
    /// What each set is, and a class of it where one is small enough to be kept; `witnesses` get its rows. Sets that `stop` came
    /// before are tentative, without a class.
    fn look(
        &self,
        sets: &[AttributeSet],
        witnesses: &mut Witnesses<'_>,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Sight>, ComputeError>;
}

//! The adjacency, counted on threads of its own while the next batch is treated.

use crate::records::codebook::Code;
use crate::risk::multigrid::{CoarseAdjacency, CoarseError};
use crossbeam_channel::{Receiver, bounded};
use rayon::ThreadPool;

/// What a batch changes of the counts, in this order.
pub(super) struct Change {
    /// Records that leave the window.
    pub leaving: Vec<Vec<Code>>,
    /// Records that enter it.
    pub entering: Vec<Vec<Code>>,
}

impl Change {
    fn apply(&self, adjacency: &mut CoarseAdjacency) -> Result<(), CoarseError> {
        adjacency.subtract(&self.leaving).and(adjacency.add(&self.entering).map(drop))
    }
}

/// An adjacency whose counts may be on their way.
pub(super) enum Counting {
    Settled(CoarseAdjacency),
    Under(Receiver<(CoarseAdjacency, Result<(), CoarseError>)>),
}

impl Counting {
    /// Begins to count `change`, on this thread where there is no pool. What was under way is settled before.
    ///
    /// # Errors
    /// Those of what was under way; `change` is not counted then.
    pub fn begin(&mut self, change: Change, pool: Option<&ThreadPool>) -> Result<(), CoarseError> {
        self.settle()?;
        let (give, take) = bounded(1);
        let Self::Settled(mut adjacency) = std::mem::replace(self, Self::Under(take)) else {
            unreachable!("just settled")
        };
        let count = move || {
            let counted = change.apply(&mut adjacency);
            if give.send((adjacency, counted)).is_err() {
                tracing::debug!("the model was given up while it was counted");
            }
        };
        match pool {
            Some(pool) => pool.spawn(count),
            None => count(),
        }
        Ok(())
    }

    /// Waits for what is under way.
    ///
    /// # Errors
    /// When the counts cannot be changed that way; they are of no use then.
    pub fn settle(&mut self) -> Result<(), CoarseError> {
        let Self::Under(answer) = self else { return Ok(()) };
        let (adjacency, counted) = answer.recv().expect("counting does not panic");
        *self = Self::Settled(adjacency);
        counted
    }
}

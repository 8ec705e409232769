//! When held records are settled without waiting any longer.

use crate::daemon::state::records::Intent;

/// Why held records are settled without new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// The batch is an ordinary one.
    No,
    /// The source has ended: no later record can complete a crowd.
    EndOfStream,
    /// The process was asked to stop.
    Shutdown,
    /// Partitions are taken away: only what came from them settles.
    Revoked,
    /// Nothing, or too few subjects, came for `batch.max_age`. What waits for a delay waits on.
    Quiet,
}

/// Whether a batch settles as well what waits for a delay; the repetition of one does what it did.
pub(super) fn is_all(settling: Settling, retry: Option<&Intent>) -> bool {
    let over = matches!(settling, Settling::EndOfStream | Settling::Shutdown | Settling::Revoked);
    retry.map_or(over, |intent| intent.all)
}

//! What one batch adds to the ledger.

use super::said::SaidDelta;
use super::supporters::SupportDelta;
use serde::{Deserialize, Serialize};

/// What one batch adds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LedgerDelta {
    /// Who was in the batch and whom its classes counted; empty where nothing is asked of supporters.
    pub support: SupportDelta,
    /// Lines of groups that say things once a window; empty where none does.
    pub said: SaidDelta,
}

impl LedgerDelta {
    /// Bytes that it takes in the state, about.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        28 + 8 * self.support.people.len() + 40 * self.support.pairs.len() + 24 * self.said.0.len()
    }
}

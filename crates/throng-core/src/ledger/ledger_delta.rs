//! Changes that one batch makes to the ledger.

use super::release_log::ReleaseLogDelta;
use super::supporters::SupportDelta;
use serde::{Deserialize, Serialize};

/// Ledger changes of one batch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LedgerDelta {
    /// Subjects of the batch and its classes.
    pub support: SupportDelta,
    /// Release log entries.
    pub said: ReleaseLogDelta,
}

impl LedgerDelta {
    /// Approximate stored size, in bytes.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        28 + 8 * self.support.people.len() + 40 * self.support.pairs.len() + 24 * self.said.0.len()
    }
}

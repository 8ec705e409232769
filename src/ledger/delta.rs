//! What one batch adds to the ledger.

use super::bytes::Reader;
use super::said::SaidDelta;
use super::supporters::SupportDelta;

/// What one batch adds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerDelta {
    /// Who was in the batch and whom its classes counted; empty where nothing is asked of supporters.
    pub support: SupportDelta,
    /// Lines of groups that say things once a window; empty where none does.
    pub said: SaidDelta,
}

impl LedgerDelta {
    /// The delta as it is written to the state.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.support.append_to(&mut out);
        self.said.append_to(&mut out);
        out
    }

    /// `None` when `bytes` are not what [`to_bytes`](Self::to_bytes) writes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let delta = Self { support: SupportDelta::read(&mut reader)?, said: SaidDelta::read(&mut reader)? };
        reader.is_empty().then_some(delta)
    }
}

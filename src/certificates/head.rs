//! Where a chain stands.

use super::hex::{bytes_of, hex};
use serde::{Deserialize, Serialize};

/// The last certificate of a chain, as the next one names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Its number in the chain, from 1.
    pub number: u64,
    /// The batch that it is of.
    pub sequence: u64,
    /// SHA-256 of its statement.
    pub digest: [u8; 32],
}

impl Head {
    /// The digest in lower-case hex.
    #[must_use]
    pub fn hex(&self) -> String {
        hex(&self.digest)
    }

    /// The digest that 64 hex digits spell; none for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<[u8; 32]> {
        bytes_of(text)
    }
}

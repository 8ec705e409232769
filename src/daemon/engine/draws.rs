//! Draws from the secret, which nobody can guess.

use crate::records::digest::{DigestKey, Keyed};
use crate::records::raw::Coordinate;

/// Draws what must not be guessed.
pub struct Draws {
    delays: Keyed,
    choices: Keyed,
}

impl Draws {
    /// Derives one key for delays and one for choices: the same secret gives the same draws in every process.
    #[must_use]
    pub fn new(secret: &DigestKey) -> Self {
        Self { delays: Keyed::new(secret, "throng delay"), choices: Keyed::new(secret, "throng choice") }
    }

    /// The delay of the line of `key` in window `number`: uniform between 0 and `most_ms`.
    pub(super) fn delay_ms(&self, key: u128, number: i64, most_ms: i64) -> i64 {
        let mut text = [0; 24];
        text[..16].copy_from_slice(&key.to_be_bytes());
        text[16..].copy_from_slice(&number.to_be_bytes());
        (self.delays.digest(&text) % (u128::from(most_ms.unsigned_abs()) + 1)) as i64
    }

    /// The rank of a record among those of its subject.
    pub(super) fn rank(&self, at: Coordinate) -> u128 {
        let mut text = [0; 18];
        text[..2].copy_from_slice(&at.topic.to_be_bytes());
        text[2..6].copy_from_slice(&at.partition.to_be_bytes());
        text[6..14].copy_from_slice(&at.offset.to_be_bytes());
        text[14..].copy_from_slice(&at.element.to_be_bytes());
        // A message as a whole is drawn as it was before there were elements: a batch that is repeated repeats its draws.
        self.choices.digest(if at.element == 0 { &text[..14] } else { &text })
    }
}

//! What is remembered of each subject: the release log (one line per subject, group and window), tenure and budgets.
//!
//! No class counts anybody from here: a class has its crowd in its own batch. Everything is bounded by the configuration, keyed
//! by digests, and merged by union and maximum, so that a delta may be applied twice (docs/architecture.md rule 6).

use super::SHARDS;
use super::delta::LedgerDelta;
use super::said::Said;
use super::supporters::{SupportLimits, Supporters};
use crate::values::digest::DigestKey;

/// What this instance remembers of subjects.
#[derive(Default)]
pub struct Ledger {
    /// Tenure and budgets, where they are kept.
    pub supporters: Option<Supporters>,
    /// The release log, where it is kept.
    pub said: Option<Said>,
}

impl Ledger {
    /// From here on the windows of the release log are those of `secret`.
    pub fn key_said(&mut self, secret: &DigestKey) {
        self.said = self.said.take().map(|said| said.keyed(secret));
    }

    /// The ledger as it is seen at `now_ms`.
    #[must_use]
    pub fn at(&self, now_ms: i64) -> LedgerAt<'_> {
        LedgerAt { ledger: self, now_ms }
    }

    /// Remembers a batch that has left.
    pub fn apply(&mut self, delta: &LedgerDelta) {
        if let Some(said) = &mut self.said {
            said.apply(&delta.said);
        }
        if let Some(supporters) = &mut self.supporters {
            supporters.apply(&delta.support);
        }
    }

    /// Forgets what has left its window in one shard.
    pub fn expire(&mut self, shard: usize, now_ms: i64) {
        if let Some(supporters) = &mut self.supporters {
            supporters.expire(shard, now_ms);
        }
        if let Some(said) = &mut self.said {
            said.expire(shard, now_ms);
        }
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        self.supporters.as_ref().map_or(0, Supporters::approximate_bytes)
            + self.said.as_ref().map_or(0, Said::approximate_bytes)
    }

    /// Bytes that a shard takes in the state, about.
    #[must_use]
    pub fn shard_bytes(&self, shard: usize) -> usize {
        debug_assert!(shard < SHARDS);
        self.supporters.as_ref().map_or(0, |s| s.shard_bytes(shard))
            + self.said.as_ref().map_or(0, |said| said.shard_bytes(shard))
    }
}

/// The ledger at one moment: what of it counts now.
#[derive(Clone, Copy)]
pub struct LedgerAt<'a> {
    ledger: &'a Ledger,
    now_ms: i64,
}

impl<'a> LedgerAt<'a> {
    /// The release log, where it is kept.
    #[must_use]
    pub fn said(&self) -> Option<&'a Said> {
        self.ledger.said.as_ref()
    }

    /// Tenure and budgets, where they are kept.
    #[must_use]
    pub fn supporters(&self) -> Option<SupportersAt<'a>> {
        let supporters = self.ledger.supporters.as_ref();
        supporters.map(|supporters| SupportersAt { supporters, now_ms: self.now_ms })
    }
}

/// How many classes of a group each subject supports inside its window, and who may support any.
#[derive(Clone, Copy)]
pub struct SupportersAt<'a> {
    supporters: &'a Supporters,
    now_ms: i64,
}

impl SupportersAt<'_> {
    /// What is asked of supporters.
    #[must_use]
    pub fn limits(&self) -> SupportLimits {
        self.supporters.limits()
    }

    /// Whether a subject has been seen for long enough to support others.
    #[must_use]
    pub fn is_settled(&self, subject: u64) -> bool {
        self.supporters.is_settled(subject, self.now_ms)
    }

    /// Writes the classes of `group` that `subject` supports already to `out`.
    pub fn supported(&self, group: u128, subject: u64, out: &mut Vec<u128>) {
        self.supporters.supported(group, subject, self.now_ms, out);
    }

    /// Whether a class more for each of `rows` rows could be remembered.
    #[must_use]
    pub fn has_room(&self, rows: usize) -> bool {
        self.supporters.has_room(rows)
    }
}

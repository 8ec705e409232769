//! Bounded per-subject history, which never adds to a class size.
//!
//! Entries merge by union and maximum, so a delta may be applied twice (docs/internals/architecture.md rule 6).

use super::SHARDS;
use super::ledger_delta::LedgerDelta;
use super::release_log::ReleaseLog;
use super::supporters::{SupportLimits, SupporterTable};
use crate::values::digest::DigestKey;

/// History of all subjects of this instance.
#[derive(Default)]
pub struct SubjectLedger {
    /// Tenure and class budgets, if configured.
    pub supporters: Option<SupporterTable>,
    /// Release log, if configured.
    pub release_log: Option<ReleaseLog>,
}

impl SubjectLedger {
    /// Derives window phases from `secret`.
    pub fn set_window_key(&mut self, secret: &DigestKey) {
        self.release_log = self.release_log.take().map(|said| said.with_window_key(secret));
    }

    /// View of the ledger at `now_ms`.
    #[must_use]
    pub fn at(&self, now_ms: i64) -> LedgerView<'_> {
        LedgerView { ledger: self, now_ms }
    }

    /// Records a released batch.
    pub fn apply(&mut self, delta: &LedgerDelta) {
        if let Some(said) = &mut self.release_log {
            said.apply(&delta.said);
        }
        if let Some(supporters) = &mut self.supporters {
            supporters.apply(&delta.support);
        }
    }

    /// Evicts expired entries of one shard.
    pub fn expire(&mut self, shard: usize, now_ms: i64) {
        if let Some(supporters) = &mut self.supporters {
            supporters.expire(shard, now_ms);
        }
        if let Some(said) = &mut self.release_log {
            said.expire(shard, now_ms);
        }
    }

    /// Memory, in bytes.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        self.supporters.as_ref().map_or(0, SupporterTable::approximate_bytes)
            + self.release_log.as_ref().map_or(0, ReleaseLog::approximate_bytes)
    }

    /// Approximate stored size of a shard, in bytes.
    #[must_use]
    pub fn shard_bytes(&self, shard: usize) -> usize {
        debug_assert!(shard < SHARDS);
        self.supporters.as_ref().map_or(0, |s| s.shard_bytes(shard))
            + self.release_log.as_ref().map_or(0, |said| said.shard_bytes(shard))
    }
}

/// View at one point in time, without expired entries.
#[derive(Clone, Copy)]
pub struct LedgerView<'a> {
    ledger: &'a SubjectLedger,
    now_ms: i64,
}

impl<'a> LedgerView<'a> {
    /// Release log, if configured.
    #[must_use]
    pub fn release_log(&self) -> Option<&'a ReleaseLog> {
        self.ledger.release_log.as_ref()
    }

    /// Tenure and class budgets, if configured.
    #[must_use]
    pub fn supporters(&self) -> Option<SupporterView<'a>> {
        let supporters = self.ledger.supporters.as_ref();
        supporters.map(|supporters| SupporterView { supporters, now_ms: self.now_ms })
    }
}

/// View of tenure and class budgets at one point in time.
#[derive(Clone, Copy)]
pub struct SupporterView<'a> {
    supporters: &'a SupporterTable,
    now_ms: i64,
}

impl SupporterView<'_> {
    /// Configured limits.
    #[must_use]
    pub fn limits(&self) -> SupportLimits {
        self.supporters.limits()
    }

    /// Checks the minimum tenure of a subject.
    #[must_use]
    pub fn has_tenure(&self, subject: u64) -> bool {
        self.supporters.has_tenure(subject, self.now_ms)
    }

    /// Writes the classes of `group` and `subject` to `out`.
    pub fn supported_classes(&self, group: u128, subject: u64, out: &mut Vec<u128>) {
        self.supporters.supported_classes(group, subject, self.now_ms, out);
    }

    /// Checks that one more class for each of `rows` rows fits.
    #[must_use]
    pub fn has_room(&self, rows: usize) -> bool {
        self.supporters.has_room(rows)
    }
}

//! Share of a batch that one subject may fill, so that a single sender cannot end batches for everybody.

use super::input::{InputBatch, Limits, Place};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use throng_core::values::raw::{Mark, Token};
use throng_core::values::schema::SubjectAttribute;
use throng_core::values::subject::canonical_name;

/// Rows and bytes of values that a subject has in a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    rows: u64,
    bytes: u64,
}

/// Per-subject limiter of a batch that is being read.
///
/// With `n` = [`Limits::min_subjects`], a subject fills at most 1/`n` of the rows and of the bytes that close a batch; its further rows are
/// dropped and counted as thinned. Records of one partition come in a fixed order, but partitions are interleaved differently when a batch is
/// read again: the limit is therefore kept per partition, and a repeated batch drops the same rows. All spellings of one name are one subject, as
/// they are for the crowds. Rows without a subject, and those whose subject cannot be read, share one limit of
/// bytes; their number is not limited, since they may be rejected later and are reported as such.
/// Where the schema names no subject, every row counts for itself and nothing is limited.
#[derive(Debug)]
pub struct SubjectShare {
    subject: Option<SubjectAttribute>,
    rows: u64,
    bytes: u64,
    min_subjects: usize,
    /// By partition and keyed hash of the subject's canonical name; `None`: rows without a subject.
    usage: BTreeMap<(Place, Option<u64>), Usage>,
    /// Rows without a subject.
    unnamed: u64,
    hasher: RandomState,
    /// Spellings that were read, by their keyed hash, so that each is read once.
    spellings: HashMap<u64, Option<u64>>,
}

/// Spellings that are remembered at most.
const MOST_SPELLINGS: usize = 1 << 16;

impl SubjectShare {
    /// Of the batches that `limits` close.
    pub fn new(subject: Option<SubjectAttribute>, limits: &Limits) -> Self {
        let parts = limits.min_subjects.max(1) as u64;
        Self {
            subject,
            rows: (limits.max_records / parts).max(1),
            bytes: (limits.max_bytes / parts).max(1),
            min_subjects: limits.min_subjects,
            usage: BTreeMap::new(),
            unnamed: 0,
            hasher: RandomState::new(),
            spellings: HashMap::new(),
        }
    }

    /// Forgets the rows of a partition: they were never consumed.
    pub fn forget(&mut self, place: Place) {
        self.usage.retain(|(of, _), _| *of != place);
        self.unnamed = self.usage.iter().filter(|((_, of), _)| of.is_none()).map(|(_, used)| used.rows).sum();
    }

    /// Drops the rows of `batch` since `mark` that exceed the share of their subject, and counts them. `bytes` is the size of their input; where
    /// no row came of it, it is not kept and closes no batch.
    pub fn admit(&mut self, batch: &mut InputBatch, mark: Mark, place: Place, bytes: u64) {
        let (from, to) = (mark.rows(), batch.raw.rows());
        if from == to {
            return;
        }
        let Some(attribute) = self.subject.as_ref().map(|subject| subject.position) else {
            batch.kept_bytes += bytes;
            return;
        };
        let each = bytes / (to - from) as u64;
        let mut keep = Vec::with_capacity(to - from);
        let mut subject = None;
        for row in from..to {
            // All elements of a message may have one subject: it is hashed once.
            if row == from || !batch.raw.repeats(row, attribute) {
                subject = self.name(batch.raw.token(row, attribute));
            }
            let used = self.usage.entry((place, subject)).or_default();
            let fits = (subject.is_none() || used.rows < self.rows) && used.bytes < self.bytes;
            if fits {
                used.rows += 1;
                used.bytes += each;
                self.unnamed += u64::from(subject.is_none());
            }
            keep.push(fits);
        }
        let kept = keep.iter().filter(|keep| **keep).count() as u64;
        let dropped = keep.len() as u64 - kept;
        batch.kept_bytes += bytes - each * dropped;
        if dropped > 0 {
            batch.raw.retain_since(mark, &keep);
            *batch.thinned.entry(place).or_default() += dropped;
        }
    }

    /// Keyed hash of the canonical name in `token`; none where it names nobody or cannot be read.
    fn name(&mut self, token: Token<'_>) -> Option<u64> {
        let attribute = &self.subject.as_ref()?.attribute;
        let spelling = self.hasher.hash_one(token.parts());
        if let Some(known) = self.spellings.get(&spelling) {
            return *known;
        }
        let mut text = String::new();
        let is_named = canonical_name(attribute, token, &mut text).unwrap_or(false);
        let name = is_named.then(|| self.hasher.hash_one(&text));
        if self.spellings.len() >= MOST_SPELLINGS {
            self.spellings.clear();
        }
        self.spellings.insert(spelling, name);
        name
    }

    /// Returns true when `batch` has enough subjects to be treated. Each subject has an entry per partition, so that this takes
    /// at most `min_subjects` × partitions steps while they are too few.
    pub fn is_enough(&self, batch: &InputBatch) -> bool {
        if self.subject.is_none() {
            return batch.raw.rows() >= self.min_subjects;
        }
        let mut seen = HashSet::new();
        self.min_subjects == 0
            || self.usage.keys().filter_map(|(_, subject)| *subject).any(|subject| {
                seen.insert(subject);
                seen.len() >= self.min_subjects
            })
    }

    /// Returns true when `batch` has reached a limit of size: enough records of enough subjects, or the memory that a batch may take.
    ///
    /// Rejected records, rows without a subject and tombstones count only up to the number of the other rows, and close a batch by themselves
    /// only in much larger numbers: anybody can send them, and nobody is released with them.
    pub fn is_full(&self, batch: &InputBatch, limits: &Limits) -> bool {
        let rows = batch.raw.rows() as u64 - self.unnamed;
        let other = self.unnamed + batch.rejected.len() as u64 + batch.tombstones();
        batch.weight() >= limits.max_bytes
            || other >= limits.max_records.saturating_mul(OTHER)
            || rows + other.min(rows) >= limits.max_records && self.is_enough(batch)
    }
}

/// Rejected records, rows without a subject and tombstones that close a batch, as a multiple of `batch.max_records`.
const OTHER: u64 = 8;

#[cfg(test)]
#[path = "subject_share_tests.rs"]
mod tests;

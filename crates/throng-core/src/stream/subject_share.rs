//! Limits the share of a batch per subject, so that a single sender cannot close batches early.

use super::input_batch::{BatchLimits, InputBatch, InputPartition};
use crate::values::raw_batch::{BatchMark, RawToken};
use crate::values::schema::SubjectAttribute;
use crate::values::subject_digest::canonical_name;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

#[derive(Clone, Copy, Debug, Default)]
struct SubjectUsage {
    rows: u64,
    bytes: u64,
}

/// Per-subject limiter of the batch that is being read.
///
/// With `n` = [`BatchLimits::min_subjects`], a subject fills at most 1/`n` of the rows and of the bytes that close a
/// batch, per partition. Further rows are dropped and counted as thinned.
///
/// Records of one partition have a fixed order, but partitions are interleaved differently when a batch is read
/// again. The limit is therefore applied per partition, and a replay drops the same rows. All spellings of one name
/// are one subject, as in the count of distinct subjects.
///
/// Rows without a subject, or with an unreadable one, share one limit of bytes. Their number is not limited, because
/// they may be rejected and reported later. If the schema has no subject, every row counts as one, and nothing is
/// limited.
#[derive(Debug)]
pub struct SubjectShare {
    subject: Option<SubjectAttribute>,
    rows: u64,
    bytes: u64,
    min_subjects: usize,
    /// Usage per partition and keyed hash of the subject's canonical name; `None` for rows without a subject.
    used: BTreeMap<(InputPartition, Option<u64>), SubjectUsage>,
    /// Number of rows without a subject.
    unnamed: u64,
    hasher: RandomState,
    /// Cache of spellings by their keyed hash, so that each is parsed once.
    spellings: HashMap<u64, Option<u64>>,
}

const MAX_CACHED_SPELLINGS: usize = 1 << 16;

impl SubjectShare {
    /// Creates the limiter of batches that `limits` close.
    pub fn new(subject: Option<SubjectAttribute>, limits: &BatchLimits) -> Self {
        let parts = limits.min_subjects.max(1) as u64;
        Self {
            subject,
            rows: (limits.max_records / parts).max(1),
            bytes: (limits.max_bytes / parts).max(1),
            min_subjects: limits.min_subjects,
            used: BTreeMap::new(),
            unnamed: 0,
            hasher: RandomState::new(),
            spellings: HashMap::new(),
        }
    }

    /// Removes the rows of a partition, as if they were never consumed.
    pub fn forget(&mut self, place: InputPartition) {
        self.used.retain(|(of, _), _| *of != place);
        self.unnamed = self.used.iter().filter(|((_, of), _)| of.is_none()).map(|(_, used)| used.rows).sum();
    }

    /// Drops the rows of `batch` since `mark` that exceed the share of their subject, and counts them. `bytes` is the
    /// size of their input. Input without a row is not counted and closes no batch.
    pub fn admit(&mut self, batch: &mut InputBatch, mark: BatchMark, place: InputPartition, bytes: u64) {
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
            // All elements of a message may have the same subject, which is hashed once.
            if row == from || !batch.raw.repeats_previous(row, attribute) {
                subject = self.subject_hash(batch.raw.token(row, attribute));
            }
            let used = self.used.entry((place, subject)).or_default();
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

    /// Returns the keyed hash of the canonical name in `token`; `None` if there is no name, or it cannot be read.
    fn subject_hash(&mut self, token: RawToken<'_>) -> Option<u64> {
        let attribute = &self.subject.as_ref()?.attribute;
        let spelling = self.hasher.hash_one(token.parts());
        if let Some(known) = self.spellings.get(&spelling) {
            return *known;
        }
        let mut text = String::new();
        let is_named = canonical_name(attribute, token, &mut text).unwrap_or(false);
        let name = is_named.then(|| self.hasher.hash_one(&text));
        if self.spellings.len() >= MAX_CACHED_SPELLINGS {
            self.spellings.clear();
        }
        self.spellings.insert(spelling, name);
        name
    }

    /// Returns true if `batch` has enough subjects to be treated. Each subject has one entry per partition. The
    /// search therefore takes at most `min_subjects` × partitions steps while there are too few.
    pub fn is_enough(&self, batch: &InputBatch) -> bool {
        if self.subject.is_none() {
            return batch.raw.rows() >= self.min_subjects;
        }
        let mut seen = HashSet::new();
        self.min_subjects == 0
            || self.used.keys().filter_map(|(_, subject)| *subject).any(|subject| {
                seen.insert(subject);
                seen.len() >= self.min_subjects
            })
    }

    /// Returns true if `batch` has reached a size limit: enough records of enough subjects, or the memory of a batch.
    ///
    /// Rejected records, rows without a subject and tombstones count only up to the number of the other rows. Alone
    /// they close a batch only in much larger numbers, because any sender can produce them and they add no distinct
    /// subject.
    pub fn is_full(&self, batch: &InputBatch, limits: &BatchLimits) -> bool {
        let rows = batch.raw.rows() as u64 - self.unnamed;
        let other = self.unnamed + batch.rejected.len() as u64 + batch.tombstones();
        batch.weight() >= limits.max_bytes
            || other >= limits.max_records.saturating_mul(OTHER_ROWS_FACTOR)
            || rows + other.min(rows) >= limits.max_records && self.is_enough(batch)
    }
}

/// Number of rejected records, rows without a subject and tombstones that closes a batch, as a multiple of
/// `batch.max_records`.
const OTHER_ROWS_FACTOR: u64 = 8;

#[cfg(test)]
#[path = "subject_share_tests.rs"]
mod tests;

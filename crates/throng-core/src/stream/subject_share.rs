//! Limits the share of a batch per subject, so that no single sender closes batches early.

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

/// Per-subject limiter of the current batch.
///
/// With `n` = [`BatchLimits::min_subjects`], a subject fills at most 1/`n` of a batch's rows and bytes per partition;
/// further rows are thinned. Only the order within a partition is the same in a replay.
///
/// Rows without a readable subject share one limit of bytes, not of rows: they may be rejected and reported. Without a
/// subject in the schema, nothing is limited.
#[derive(Debug)]
pub struct SubjectShare {
    subject: Option<SubjectAttribute>,
    rows: u64,
    bytes: u64,
    min_subjects: usize,
    /// By partition and keyed hash of the canonical name; `None` without a subject.
    used: BTreeMap<(InputPartition, Option<u64>), SubjectUsage>,
    unnamed: u64,
    hasher: RandomState,
    /// Parsed spellings by keyed hash.
    spellings: HashMap<u64, Option<u64>>,
}

const MAX_CACHED_SPELLINGS: usize = 1 << 16;

impl SubjectShare {
    /// Creates a limiter for batches with `limits`.
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

    /// Removes a partition's rows, as if never consumed.
    pub fn forget(&mut self, place: InputPartition) {
        self.used.retain(|(of, _), _| *of != place);
        self.unnamed = self.used.iter().filter(|((_, of), _)| of.is_none()).map(|(_, used)| used.rows).sum();
    }

    /// Drops and counts rows since `mark` that exceed their subject's share. `bytes` is their input size.
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

    /// `None` without a readable name.
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

    /// Checks for enough subjects, in at most `min_subjects` × partitions steps if too few.
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

    /// Checks for enough records of enough subjects, or the memory limit.
    ///
    /// Rejected records, rows without a subject and tombstones count at most as often as other rows: any sender can
    /// produce them.
    pub fn is_full(&self, batch: &InputBatch, limits: &BatchLimits) -> bool {
        let rows = batch.raw.rows() as u64 - self.unnamed;
        let other = self.unnamed + batch.rejected.len() as u64 + batch.tombstones();
        batch.weight() >= limits.max_bytes
            || other >= limits.max_records.saturating_mul(OTHER_ROWS_FACTOR)
            || rows + other.min(rows) >= limits.max_records && self.is_enough(batch)
    }
}

/// Multiple of `batch.max_records` at which rejected records and rows without a subject close a batch.
const OTHER_ROWS_FACTOR: u64 = 8;

#[cfg(test)]
#[path = "subject_share_tests.rs"]
mod tests;

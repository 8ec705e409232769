//! Working state of a batch: the state before it, overlaid with the entries that it changes.

use super::published_row::SeriesRow;
use super::state::{
    CohortState, OpenBucket, SeriesChanges, SeriesState, SharedSeriesState, SourcePartition, SubjectMoments,
    SubjectState,
};
use super::terms::AllSeriesTerms;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Draws a number for a subject or a cohort under the secret.
pub type KeyedDraw<'a> = &'a dyn Fn(u128) -> u128;

/// Rows to publish and entries to store for a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesProposal {
    /// Rows in the order of release.
    pub rows: Vec<SeriesRow>,
    /// Late, early and over-limit records, by row and series: they contribute nothing. For received contributions:
    /// position of the sums and series.
    pub dropped: BTreeSet<(usize, usize)>,
    /// Changed entries after the release of the batch.
    pub changes: SeriesChanges,
}

/// Data of a subject read before the first bucket closes, in a job over files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubjectPreview {
    /// Preview per channel.
    pub channels: Vec<ChannelPreview>,
    /// Share of buckets with a value, per part of the time span and attribute of a signal.
    pub presence: Vec<f32>,
    /// Per series: rows of the first epoch with enough rows; empty if no series has moments.
    pub moments: Vec<SubjectMoments>,
}

/// Data of a subject's channel read before the first bucket closes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChannelPreview {
    /// Number of buckets with a value in earlier jobs.
    pub earlier_values: u32,
    /// Number of buckets with a value in this job.
    pub values: u32,
    /// Value of the first bucket of this job.
    pub first: f64,
    /// First bucket of this job.
    pub bucket: i64,
}

impl ChannelPreview {
    /// Counts a bucket with a value. Buckets must be passed in their order.
    pub(super) fn count_value(&mut self, bucket: i64, value: f64) {
        if self.values == 0 {
            (self.first, self.bucket) = (value, bucket);
        }
        self.values += 1;
    }
}

/// State with the changes of one batch as an overlay.
pub struct SeriesBatchStep<'a> {
    pub(super) terms: &'a AllSeriesTerms,
    pub(super) state: &'a SeriesState,
    pub(super) draw: KeyedDraw<'a>,
    pub(super) head: SharedSeriesState,
    people: BTreeMap<u64, SubjectState>,
    open: BTreeMap<u64, Vec<OpenBucket>>,
    pub(super) cohorts: BTreeMap<u32, CohortState>,
    pub(super) changed_cohorts: BTreeSet<u32>,
    pub(super) cells: usize,
    pub(super) rows: Vec<SeriesRow>,
    pub(super) dropped: BTreeSet<(usize, usize)>,
    /// Preview of each subject's channels, in a job over files.
    pub(super) previews: HashMap<u64, SubjectPreview>,
    /// All source partitions, and those without an unread record; none if this instance reads the records.
    pub(super) source_limits: Option<(Vec<SourcePartition>, BTreeMap<SourcePartition, i64>)>,
}

impl<'a> SeriesBatchStep<'a> {
    pub(super) fn new(terms: &'a AllSeriesTerms, state: &'a SeriesState, draw: KeyedDraw<'a>) -> Self {
        Self {
            terms,
            state,
            draw,
            head: state.head.clone(),
            people: BTreeMap::new(),
            open: BTreeMap::new(),
            cohorts: BTreeMap::new(),
            changed_cohorts: BTreeSet::new(),
            cells: state.cells,
            rows: Vec::new(),
            dropped: BTreeSet::new(),
            previews: HashMap::new(),
            source_limits: None,
        }
    }

    pub(super) fn person(&self, subject: u64) -> Option<&SubjectState> {
        self.people.get(&subject).or_else(|| self.state.people.get(&subject))
    }

    pub(super) fn person_mut(&mut self, subject: u64) -> &mut SubjectState {
        let state = self.state;
        self.people.entry(subject).or_insert_with(|| state.people.get(&subject).cloned().unwrap_or_default())
    }

    /// Upper bound of the number of known subjects.
    pub(super) fn known_subjects_bound(&self) -> usize {
        self.state.people.len() + self.people.len()
    }

    pub(super) fn all_subjects(&self) -> BTreeSet<u64> {
        self.state.people.keys().chain(self.people.keys()).copied().collect()
    }

    pub(super) fn open_mut(&mut self, subject: u64) -> &mut Vec<OpenBucket> {
        let state = self.state;
        self.open.entry(subject).or_insert_with(|| state.open.get(&subject).cloned().unwrap_or_default())
    }

    pub(super) fn open_of(&self, subject: u64) -> &[OpenBucket] {
        self.open.get(&subject).or_else(|| self.state.open.get(&subject)).map_or(&[], Vec::as_slice)
    }

    /// Subjects with an open bucket, or with one that this batch has closed.
    pub(super) fn contributors(&self) -> BTreeSet<u64> {
        self.state.open.keys().chain(self.open.keys()).copied().collect()
    }

    pub(super) fn into_proposal(self) -> SeriesProposal {
        let changed = self.changed_cohorts;
        let cohorts = self.cohorts.into_iter().filter(|(number, _)| changed.contains(number)).collect();
        let changes = SeriesChanges {
            head: self.head,
            people: self.people.into_iter().collect(),
            open: self.open.into_iter().collect(),
            cohorts,
        };
        SeriesProposal { rows: self.rows, dropped: self.dropped, changes }
    }
}

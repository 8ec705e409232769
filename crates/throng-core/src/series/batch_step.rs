//! Overlay of the entries that a batch changes.

use super::published_row::SeriesRow;
use super::state::{
    CohortState, OpenBucket, SeriesChanges, SeriesState, SharedSeriesState, SourcePartition, SubjectMoments,
    SubjectState,
};
use super::terms::AllSeriesTerms;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Keyed random number.
pub type KeyedDraw<'a> = &'a dyn Fn(u128) -> u128;

/// Rows to publish and entries to store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesProposal {
    /// Rows in release order.
    pub rows: Vec<SeriesRow>,
    /// Dropped records as (row, series); received sums as (position, series).
    pub dropped: BTreeSet<(usize, usize)>,
    /// Entries after the release.
    pub changes: SeriesChanges,
}

/// Subject data of a job over files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubjectPreview {
    /// Previews by channel.
    pub channels: Vec<ChannelPreview>,
    /// Share of buckets with a value, by time and attribute.
    pub presence: Vec<f32>,
    /// First epoch with enough rows, by series.
    pub moments: Vec<SubjectMoments>,
}

/// Channel data of a job over files.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChannelPreview {
    /// Earlier buckets with a value.
    pub earlier_values: u32,
    /// Buckets with a value.
    pub values: u32,
    /// First value.
    pub first: f64,
    /// First bucket.
    pub bucket: i64,
}

impl ChannelPreview {
    /// Requires buckets in order.
    pub(super) fn count_value(&mut self, bucket: i64, value: f64) {
        if self.values == 0 {
            (self.first, self.bucket) = (value, bucket);
        }
        self.values += 1;
    }
}

/// State with the changes of a batch.
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
    pub(super) previews: HashMap<u64, SubjectPreview>,
    /// Source partitions, and those without unread records.
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

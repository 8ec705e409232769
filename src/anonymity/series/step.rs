//! A batch on its way into the series: the state before it, and over that the entries that it changes.

use super::row::SeriesRow;
use super::state::{Cohort, Head, OpenBucket, Participant, PersonMoments, SeriesChanges, SeriesState, SourcePartition};
use super::terms::Terms;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Draws a number for a subject or a cohort under the secret.
pub type Draw<'a> = &'a dyn Fn(u128) -> u128;

/// What a batch asks to publish and to remember.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesProposal {
    /// Rows in the order in which they leave.
    pub rows: Vec<SeriesRow>,
    /// Records that came too late, are ahead of the clock or found no room, by row and series: they contribute nothing. Of contributions
    /// that have arrived, sums by their position and series.
    pub dropped: BTreeSet<(usize, usize)>,
    /// Entries as they are once the batch has left.
    pub changes: SeriesChanges,
}

/// What is known of a person before the first bucket closes, in a job over files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Foreknown {
    /// By channel.
    pub channels: Vec<KnownChannel>,
    /// By part of the whole time and attribute of a signal, the share of its buckets with a value.
    pub presence: Vec<f32>,
    /// By series: rows of the first epoch with enough; empty where no series has moments.
    pub moments: Vec<PersonMoments>,
}

/// What is known of a person's channel before the first bucket closes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KnownChannel {
    /// Buckets with a value in earlier jobs.
    pub past: u32,
    /// Buckets with a value in this one.
    pub values: u32,
    /// Value of the first of them.
    pub first: f64,
    /// The first of them.
    pub bucket: i64,
}

impl KnownChannel {
    /// Counts a bucket with a value; buckets come in their order.
    pub(super) fn note(&mut self, bucket: i64, value: f64) {
        if self.values == 0 {
            (self.first, self.bucket) = (value, bucket);
        }
        self.values += 1;
    }
}

/// A state with the changes of one batch over it.
pub struct Step<'a> {
    pub(super) terms: &'a Terms,
    pub(super) state: &'a SeriesState,
    pub(super) draw: Draw<'a>,
    pub(super) head: Head,
    people: BTreeMap<u64, Participant>,
    open: BTreeMap<u64, Vec<OpenBucket>>,
    pub(super) cohorts: BTreeMap<u32, Cohort>,
    pub(super) changed_cohorts: BTreeSet<u32>,
    /// Cells of open buckets.
    pub(super) cells: usize,
    pub(super) rows: Vec<SeriesRow>,
    pub(super) dropped: BTreeSet<(usize, usize)>,
    /// In a job over files, what is known of each person's channels beforehand.
    pub(super) foreknown: HashMap<u64, Foreknown>,
    /// All source partitions, and those without an unread record; none where the records are taken in here.
    pub(super) source_limits: Option<(Vec<SourcePartition>, BTreeMap<SourcePartition, i64>)>,
}

impl<'a> Step<'a> {
    pub(super) fn new(terms: &'a Terms, state: &'a SeriesState, draw: Draw<'a>) -> Self {
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
            foreknown: HashMap::new(),
            source_limits: None,
        }
    }

    pub(super) fn person(&self, subject: u64) -> Option<&Participant> {
        self.people.get(&subject).or_else(|| self.state.people.get(&subject))
    }

    pub(super) fn person_mut(&mut self, subject: u64) -> &mut Participant {
        let state = self.state;
        self.people.entry(subject).or_insert_with(|| state.people.get(&subject).cloned().unwrap_or_default())
    }

    /// At least the number of people known.
    pub(super) fn people_known(&self) -> usize {
        self.state.people.len() + self.people.len()
    }

    /// Everybody, changed or not, by digest.
    pub(super) fn everybody(&self) -> BTreeSet<u64> {
        self.state.people.keys().chain(self.people.keys()).copied().collect()
    }

    pub(super) fn open_mut(&mut self, subject: u64) -> &mut Vec<OpenBucket> {
        let state = self.state;
        self.open.entry(subject).or_insert_with(|| state.open.get(&subject).cloned().unwrap_or_default())
    }

    pub(super) fn open_of(&self, subject: u64) -> &[OpenBucket] {
        self.open.get(&subject).or_else(|| self.state.open.get(&subject)).map_or(&[], Vec::as_slice)
    }

    /// Everybody with an open bucket.
    pub(super) fn contributors(&self) -> BTreeSet<u64> {
        self.state.open.keys().chain(self.open.keys()).copied().collect()
    }

    pub(super) fn finish(self) -> SeriesProposal {
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

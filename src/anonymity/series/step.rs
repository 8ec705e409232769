//! One step of the series: a batch of records in, rows and changed entries out. The state itself does not change.

use super::intake::Readings;
use super::row::SeriesRow;
use super::state::{Cohort, Head, OpenBucket, Participant, SeriesChanges, SeriesState};
use super::terms::Terms;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Draws a number for a subject or a cohort under the secret.
pub type Draw<'a> = &'a dyn Fn(u128) -> u128;

/// What a batch asks to publish and to remember.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesProposal {
    /// Rows in the order in which they leave.
    pub rows: Vec<SeriesRow>,
    /// Records that came too late or found no room, by row and series: they contribute nothing.
    pub dropped: BTreeSet<(usize, usize)>,
    /// Entries as they are once the batch has left.
    pub changes: SeriesChanges,
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
    pub(super) foreknown: HashMap<u64, super::publish::Foreknown>,
}

/// Adds the records of a batch and closes the buckets that it completes. With `is_end` the source has ended: of a job over files all
/// buckets close.
#[must_use]
pub fn propose(
    terms: &Terms,
    state: &SeriesState,
    readings: &Readings,
    clock_ms: Option<i64>,
    is_end: bool,
    draw: Draw<'_>,
) -> SeriesProposal {
    let mut step = Step {
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
    };
    step.take_in(readings, clock_ms);
    step.close_due(is_end);
    step.finish()
}

impl Step<'_> {
    pub(super) fn person(&self, subject: u64) -> Option<&Participant> {
        self.people.get(&subject).or_else(|| self.state.people.get(&subject))
    }

    pub(super) fn person_mut(&mut self, subject: u64) -> &mut Participant {
        let state = self.state;
        self.people.entry(subject).or_insert_with(|| state.people.get(&subject).cloned().unwrap_or_default())
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

    fn finish(self) -> SeriesProposal {
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

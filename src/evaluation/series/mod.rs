//! Released series beside their original.
//!
//! | module | content |
//! |---|---|
//! | `rows` | released rows, read back |
//! | `lineage` | cohorts, contributor sets and dropped records |
//! | `contributions` | contributions of people, computed from the original |
//! | `usefulness` | people and records represented, error of a mean |
//! | `quality` | signal by signal: cells, error, correlation, contrasts between strata |
//! | `noise` | people of rows with noise, noise against sampling error |
//! | `models` | linear models from moments beside those from the original |
//! | `fragments` | the same figures for fragments |

mod contributions;
mod fragments;
mod lineage;
mod models;
mod noise;
mod quality;
mod rows;
mod usefulness;

pub use contributions::{Contribution, Contributions, PlacedRecord};
pub use fragments::of_fragments;
pub use lineage::{CohortRecord, Conflict, LockedSet, PublishedRows, SeriesLineage};
pub use models::{MissingMoment, ModelCoefficient, MomentModel};
pub use noise::NoiseRatio;
pub use quality::{Contrast, SeriesQuality, SignalQuality};
pub use rows::{ReadRow, ReadRows};
pub use usefulness::{PopulationBucket, SignalSeries, Usefulness, median};

use super::error::EvaluationError;
use super::lineage::refused;
use super::original::Original;
use crate::anonymity::series::{SeriesRow, Terms};
use crate::config::Config;
use crate::html::series_chart::SeriesCharts;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use throng_core::values::subject::NO_SUBJECT;

/// A release of series beside its original.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Terms of the series.
    pub terms: Arc<Terms>,
    /// Subject digests of the original and of the lineage, ascending. A person is a position in this list.
    pub people: Vec<u64>,
    /// By person: labels of the stratum, of the first record that has all of them.
    pub strata: Vec<Option<Vec<String>>>,
    /// Records with a person and a time, in the order of the original.
    pub records: Vec<PlacedRecord>,
    /// Records without a person or a time.
    pub unplaced: u64,
    /// Records that could not be read.
    pub unreadable: u64,
    /// Contributions of the records that were not dropped.
    pub contributions: Contributions,
    /// Rows of buckets as published, series after series; `sets` from the lineage.
    pub rows: Vec<SeriesRow>,
    /// Rows of moments likewise, of series with moments.
    pub moments: Vec<SeriesRow>,
    /// Cohorts, contributor sets, rounding steps and dropped records.
    pub lineage: SeriesLineage,
}

/// Values of all signals in the buckets of a person, by epoch and position of the person.
pub type RowsOfEpochs = BTreeMap<(i64, usize), Vec<Vec<f64>>>;

impl Evidence {
    /// Charts of the published means.
    #[must_use]
    pub fn charts(&self) -> SeriesCharts {
        let mut charts = SeriesCharts::default();
        self.rows.iter().filter_map(|row| row.published_mean(&self.terms)).for_each(|mean| charts.add(&mean));
        let undrawn = self.terms.series.iter().filter_map(|series| Some((&series.name, series.undrawn()?)));
        undrawn.for_each(|(series, sentence)| charts.note(series, sentence));
        charts
    }

    /// Reads the release at `path` and its `lineage`. `original` must have been read with the key by which the run digested subjects.
    ///
    /// # Errors
    /// When a file cannot be read, a row is not spelled as the product writes it, the lineage contradicts itself or has no set for a row,
    /// or nobody of the lineage is in the original: another secret, or another original.
    pub fn read(
        config: &Config,
        terms: &Arc<Terms>,
        original: &Original,
        path: &Path,
        lineage: &Path,
    ) -> Result<Self, EvaluationError> {
        let read = SeriesLineage::read(lineage, terms)?;
        if let Some(Conflict { line, claim }) = read.conflicts.first() {
            return Err(refused(lineage, *line, &format!("it contradicts an earlier line: {claim}")));
        }
        let released = ReadRows::read(config, terms, path)?;
        let mut rows = Vec::with_capacity(released.rows.len());
        for ReadRow { series, number, row } in &released.rows {
            let (file, line) = released.place(*series, *number);
            let refused = |why: &str| EvaluationError::Line { path: file.to_owned(), line, why: why.to_owned() };
            let mut row = row.clone().map_err(refused)?;
            row.sets = sets_of(&row, *number, terms, &read);
            if row.sets.is_empty() && is_of_sets(&row, terms) {
                return Err(refused("the lineage has no contributor set for it"));
            }
            rows.push(row);
        }
        Self::new(terms, original, rows, read)
    }

    fn new(
        terms: &Arc<Terms>,
        original: &Original,
        rows: Vec<SeriesRow>,
        lineage: SeriesLineage,
    ) -> Result<Self, EvaluationError> {
        let People { people, records, unplaced, contributions } = people_of(original, terms, &lineage)?;
        let strata = contributions::strata(original, terms, &people);
        let (moments, rows) = rows.into_iter().partition(SeriesRow::is_of_epoch);
        Ok(Self {
            terms: Arc::clone(terms),
            people,
            strata,
            records,
            unplaced,
            unreadable: original.rejected,
            contributions,
            rows,
            moments,
            lineage,
        })
    }

    /// Position of a person.
    #[must_use]
    pub fn person(&self, digest: u64) -> Option<usize> {
        self.people.binary_search(&digest).ok()
    }

    /// Rows of a series with moments by epoch and person, where they are enough for the epoch to count: the values of all signals in each
    /// bucket that has them. None of another series.
    #[must_use]
    pub fn rows_of_epochs(&self, series: usize) -> RowsOfEpochs {
        let mut rows = RowsOfEpochs::new();
        let Some(moments) = &self.terms.series[series].moments else { return rows };
        for ((_, bucket), people) in self.contributions.range((series, i64::MIN)..=(series, i64::MAX)) {
            for (person, contribution) in people {
                if let Some(row) = contribution.values.iter().copied().collect::<Option<Vec<f64>>>() {
                    rows.entry((moments.epoch(*bucket), *person)).or_default().push(row);
                }
            }
        }
        rows.retain(|_, rows| rows.len() >= self.terms.series[series].min_values as usize);
        rows
    }

    /// People of the contributor set of a row; nobody for a row that rolls up others.
    pub fn members<'a>(&'a self, row: &'a SeriesRow) -> impl Iterator<Item = usize> + 'a {
        let digests = row.sets.iter().filter_map(|(number, atoms)| Some((self.lineage.cohorts.get(number)?, *atoms)));
        digests.flat_map(|(cohort, atoms)| cohort.members(atoms)).filter_map(|digest| self.person(digest))
    }
}

/// People with their contributions.
#[derive(Clone, Debug)]
pub struct People {
    /// Subject digests of the original and of the lineage, ascending. A person is a position in this list.
    pub people: Vec<u64>,
    /// Records with a person and a time, in the order of the original.
    pub records: Vec<PlacedRecord>,
    /// Records without a person or a time.
    pub unplaced: u64,
    /// Contributions of the records that were not dropped.
    pub contributions: Contributions,
}

/// Computes the contributions of all people of an original that was read with the key by which the run digested subjects.
///
/// # Errors
/// When nobody of the lineage is in the original: another secret, or another original.
pub fn people_of(original: &Original, terms: &Terms, lineage: &SeriesLineage) -> Result<People, EvaluationError> {
    let subjects = original.batch.subjects.iter().copied();
    let present: BTreeSet<u64> = subjects.filter(|subject| *subject != NO_SUBJECT).collect();
    let members: BTreeSet<u64> = lineage.cohorts.values().flat_map(|cohort| cohort.members(u16::MAX)).collect();
    if !members.is_empty() && members.is_disjoint(&present) {
        return Err(EvaluationError::OtherPeople { path: lineage.path.clone() });
    }
    let people: Vec<u64> = present.union(&members).copied().collect();
    let (records, unplaced) = contributions::placed(original, terms, &people, lineage);
    let contributions = contributions::contributions(original, terms, &records);
    Ok(People { people, records, unplaced, contributions })
}

/// Whether a row is of contributor sets and does not roll up other rows.
#[must_use]
pub fn is_of_sets(row: &SeriesRow, terms: &Terms) -> bool {
    if !terms.series[row.series].pooled {
        return row.cohort.is_some();
    }
    row.cohort.is_none() && row.stratum.is_some()
}

/// Contributor sets of a row, which is number `number` of its file; none where the lineage has none.
#[must_use]
pub fn sets_of(row: &SeriesRow, number: u64, terms: &Terms, lineage: &SeriesLineage) -> Vec<(u32, u16)> {
    let channel = row.channel(terms);
    let set = |cohort: &CohortRecord| (cohort.number, cohort.set(channel));
    let found: Vec<(u32, u16)> = match &row.cohort {
        Some(token) => lineage.cohort_of(token).map(set).into_iter().collect(),
        None if is_of_sets(row, terms) => {
            let cohorts = lineage.pooled.get(&(row.series, number)).into_iter().flatten();
            cohorts.filter_map(|number| lineage.cohorts.get(number)).map(set).collect()
        }
        None => Vec::new(),
    };
    if found.iter().any(|(_, atoms)| *atoms == 0) { Vec::new() } else { found }
}

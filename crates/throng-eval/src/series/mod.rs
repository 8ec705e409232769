//! Compares released series with their original.
//!
//! | module | content |
//! |---|---|
//! | `lineage` | cohorts, contributor sets and dropped records |
//! | `compute_contributions` | contributions of subjects, computed from the original |
//! | `usefulness` | subjects and records represented, error of a mean |
//! | `quality` | per signal: cells, error, correlation, contrasts between strata |
//! | `noise` | subjects of rows with noise, noise relative to sampling error |
//! | `models` | linear models from moments and from the original |
//! | `fragments` | the same figures for fragments |

mod fragment_figures;
mod noise_comparison;
mod original_contributions;
mod release_utility;
mod series_lineage;
mod series_models;
mod signal_quality;

pub use fragment_figures::fragment_utility;
pub use noise_comparison::NoiseRatio;
pub use original_contributions::{OriginalContributions, PlacedRecord, SubjectContribution};
pub use release_utility::{PopulationBucket, ReleaseUtility, SignalSeries, median};
pub use series_lineage::{CohortRecord, LineageConflict, LockedSet, RowsDigest, SeriesLineage};
pub use series_models::{MissingMoment, ModelCoefficient, MomentModel};
pub use signal_quality::{SeriesQuality, SignalQuality, StratumContrast};

use super::error::EvaluationError;
use super::original::OriginalData;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use throng_core::series::{AllSeriesTerms, SeriesRow};
use throng_core::values::subject_digest::NO_SUBJECT;

/// Release of series with its original.
#[derive(Clone, Debug)]
pub struct SeriesEvidence {
    /// Settings of the series.
    pub terms: Arc<AllSeriesTerms>,
    /// Subject digests of the original and of the lineage, ascending. A subject is identified by its position in this
    /// list.
    pub people: Vec<u64>,
    /// Labels of the stratum per subject, from the first record that has all of them.
    pub strata: Vec<Option<Vec<String>>>,
    /// Records with a subject and an event time, in the order of the original.
    pub records: Vec<PlacedRecord>,
    /// Number of records without a subject or an event time.
    pub unplaced: u64,
    /// Number of records that could not be read.
    pub unreadable: u64,
    /// Contributions of the records that were not dropped.
    pub contributions: OriginalContributions,
    /// Published rows of buckets, series after series; `sets` comes from the lineage.
    pub rows: Vec<SeriesRow>,
    /// Published rows of moments, of series with moments.
    pub moments: Vec<SeriesRow>,
    /// Cohorts, contributor sets and dropped records.
    pub lineage: SeriesLineage,
}

/// Values of all signals in the buckets of a subject, by epoch and position of the subject.
pub type EpochRows = BTreeMap<(i64, usize), Vec<Vec<f64>>>;

impl SeriesEvidence {
    /// Builds the evidence of a release with these rows; `sets` of each comes from the lineage. `original` must have been
    /// read with the key that the run used for subject digests.
    ///
    /// # Errors
    /// When the original contains no subject of the lineage: another secret, or another original.
    pub fn from_rows(
        terms: &Arc<AllSeriesTerms>,
        original: &OriginalData,
        rows: Vec<SeriesRow>,
        lineage: SeriesLineage,
    ) -> Result<Self, EvaluationError> {
        let OriginalSubjects { people, records, unplaced, contributions } =
            compute_original_subjects(original, terms, &lineage)?;
        let strata = original_contributions::subject_strata(original, terms, &people);
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

    /// Position of a subject.
    #[must_use]
    pub fn subject_position(&self, digest: u64) -> Option<usize> {
        self.people.binary_search(&digest).ok()
    }

    /// Rows of a series with moments by epoch and subject: the values of all signals in each bucket that has them.
    /// Contains only epochs with enough rows. Empty for a series without moments.
    #[must_use]
    pub fn rows_of_epochs(&self, series: usize) -> EpochRows {
        let mut rows = EpochRows::new();
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

    /// Subjects of the contributor set of a row; none for a row that combines others.
    pub fn members_of_row<'a>(&'a self, row: &'a SeriesRow) -> impl Iterator<Item = usize> + 'a {
        let digests = row.sets.iter().filter_map(|(number, atoms)| Some((self.lineage.cohorts.get(number)?, *atoms)));
        digests.flat_map(|(cohort, atoms)| cohort.members(atoms)).filter_map(|digest| self.subject_position(digest))
    }
}

/// Subjects with their contributions.
#[derive(Clone, Debug)]
pub struct OriginalSubjects {
    /// Subject digests of the original and of the lineage, ascending. A subject is identified by its position in this
    /// list.
    pub people: Vec<u64>,
    /// Records with a subject and an event time, in the order of the original.
    pub records: Vec<PlacedRecord>,
    /// Number of records without a subject or an event time.
    pub unplaced: u64,
    /// Contributions of the records that were not dropped.
    pub contributions: OriginalContributions,
}

/// Computes the contributions of all subjects of an original. The original must have been read with the key that the
/// run used for subject digests.
///
/// # Errors
/// When the original contains no subject of the lineage: another secret, or another original.
pub fn compute_original_subjects(
    original: &OriginalData,
    terms: &AllSeriesTerms,
    lineage: &SeriesLineage,
) -> Result<OriginalSubjects, EvaluationError> {
    let subjects = original.batch.subjects.iter().copied();
    let present: BTreeSet<u64> = subjects.filter(|subject| *subject != NO_SUBJECT).collect();
    let members: BTreeSet<u64> = lineage.cohorts.values().flat_map(|cohort| cohort.members(u16::MAX)).collect();
    if !members.is_empty() && members.is_disjoint(&present) {
        return Err(EvaluationError::ForeignSubjects { path: lineage.path.clone() });
    }
    let people: Vec<u64> = present.union(&members).copied().collect();
    let (records, unplaced) = original_contributions::locate_records(original, terms, &people, lineage);
    let contributions = original_contributions::compute_contributions(original, terms, &records);
    Ok(OriginalSubjects { people, records, unplaced, contributions })
}

/// Returns true if a row describes contributor sets and does not combine other rows.
#[must_use]
pub fn is_contributor_row(row: &SeriesRow, terms: &AllSeriesTerms) -> bool {
    if !terms.series[row.series].pooled {
        return row.cohort.is_some();
    }
    row.cohort.is_none() && row.stratum.is_some()
}

/// Contributor sets of row `number` of its file; empty if the lineage has none.
#[must_use]
pub fn contributor_sets(
    row: &SeriesRow,
    number: u64,
    terms: &AllSeriesTerms,
    lineage: &SeriesLineage,
) -> Vec<(u32, u16)> {
    let channel = row.channel(terms);
    let set = |cohort: &CohortRecord| (cohort.number, cohort.locked_atoms(channel));
    let found: Vec<(u32, u16)> = match &row.cohort {
        Some(token) => lineage.cohort_by_token(token).map(set).into_iter().collect(),
        None if is_contributor_row(row, terms) => {
            let cohorts = lineage.pooled.get(&(row.series, number)).into_iter().flatten();
            cohorts.filter_map(|number| lineage.cohorts.get(number)).map(set).collect()
        }
        None => Vec::new(),
    };
    if found.iter().any(|(_, atoms)| *atoms == 0) { Vec::new() } else { found }
}

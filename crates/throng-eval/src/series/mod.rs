//! Comparison of released series with their original.

mod fragment_figures;
mod noise_comparison;
mod original_contributions;
mod release_utility;
mod row_counts;
mod series_lineage;
mod series_models;
mod signal_quality;

pub use fragment_figures::fragment_utility;
pub use noise_comparison::NoiseRatio;
pub use original_contributions::{OriginalContributions, PlacedRecord, SubjectContribution};
pub use release_utility::{PopulationBucket, ReleaseUtility, SignalSeries, median};
pub use row_counts::{CarriedValues, SignalRows};
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
    /// Series settings.
    pub terms: Arc<AllSeriesTerms>,
    /// Subject digests of original and lineage, ascending; a position identifies a subject.
    pub people: Vec<u64>,
    /// Stratum labels per subject, from the first complete record.
    pub strata: Vec<Option<Vec<String>>>,
    /// Records with subject and event time, in original order.
    pub records: Vec<PlacedRecord>,
    /// Number of other readable records.
    pub unplaced: u64,
    /// Number of unreadable records.
    pub unreadable: u64,
    /// Contributions of records that were not dropped.
    pub contributions: OriginalContributions,
    /// Published bucket rows by series; `sets` comes from the lineage.
    pub rows: Vec<SeriesRow>,
    /// Published rows of moments.
    pub moments: Vec<SeriesRow>,
    /// Cohorts, contributor sets and dropped records.
    pub lineage: SeriesLineage,
}

/// Signal values by epoch and subject, per bucket.
pub type EpochRows = BTreeMap<(i64, usize), Vec<Vec<f64>>>;

impl SeriesEvidence {
    /// Builds the evidence from `rows` with `sets`; `original` must use the run's digest key.
    ///
    /// # Errors
    ///
    /// When the original has no subject of the lineage.
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

    /// Returns a subject's position.
    #[must_use]
    pub fn subject_position(&self, digest: u64) -> Option<usize> {
        self.people.binary_search(&digest).ok()
    }

    /// Returns complete buckets by epoch and subject, for epochs with enough rows.
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

    /// Returns a row's contributors; none for a roll-up.
    pub fn members_of_row<'a>(&'a self, row: &'a SeriesRow) -> impl Iterator<Item = usize> + 'a {
        let digests = row.sets.iter().filter_map(|(number, atoms)| Some((self.lineage.cohorts.get(number)?, *atoms)));
        digests.flat_map(|(cohort, atoms)| cohort.members(atoms)).filter_map(|digest| self.subject_position(digest))
    }
}

/// Subjects with their contributions.
#[derive(Clone, Debug)]
pub struct OriginalSubjects {
    /// Subject digests, ascending.
    pub people: Vec<u64>,
    /// Records with subject and event time.
    pub records: Vec<PlacedRecord>,
    /// Number of other readable records.
    pub unplaced: u64,
    /// Contributions of records that were not dropped.
    pub contributions: OriginalContributions,
}

/// Computes the contributions; `original` must use the run's digest key.
///
/// # Errors
///
/// When the original has no subject of the lineage.
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

/// Returns true for contributor sets, false for a roll-up.
#[must_use]
pub fn is_contributor_row(row: &SeriesRow, terms: &AllSeriesTerms) -> bool {
    if !terms.series[row.series].pooled {
        return row.cohort.is_some();
    }
    row.cohort.is_none() && row.stratum.is_some()
}

/// Returns the contributor sets of row `number` in its file, if known.
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

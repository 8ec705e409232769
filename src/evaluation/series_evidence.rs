//! Reader of released series with lineage, and charts of their means.

use super::released_series_rows::{ReleasedSeriesFiles, ReleasedSeriesRow};
use crate::config::Config;
use crate::html::series_chart::SeriesCharts;
use std::path::Path;
use std::sync::Arc;
use throng_core::series::AllSeriesTerms;
use throng_eval::error::EvaluationError;
use throng_eval::lineage::lineage_entry_error;
use throng_eval::original::OriginalData;
use throng_eval::series::{LineageConflict, SeriesEvidence, SeriesLineage, contributor_sets, is_contributor_row};

/// Returns the charts of published means.
#[must_use]
pub fn series_charts(evidence: &SeriesEvidence) -> SeriesCharts {
    let mut charts = SeriesCharts::default();
    evidence.rows.iter().filter_map(|row| row.published_mean(&evidence.terms)).for_each(|mean| charts.add(&mean));
    let undrawn =
        evidence.terms.series.iter().filter_map(|series| Some((&series.name, series.sentence_without_chart()?)));
    undrawn.for_each(|(series, sentence)| charts.add_sentence(series, sentence));
    charts
}

/// Reads the release at `path` and its `lineage`; `original` must use the run's digest key.
///
/// # Errors
///
/// When a file is unreadable, a row is not exactly spelled or has no set, the lineage contradicts itself, or `original`
/// has no subject of it.
pub fn read_series_evidence(
    config: &Config,
    terms: &Arc<AllSeriesTerms>,
    original: &OriginalData,
    path: &Path,
    lineage: &Path,
) -> Result<SeriesEvidence, EvaluationError> {
    let read = SeriesLineage::read(lineage, terms)?;
    if let Some(LineageConflict { line, claim }) = read.conflicts.first() {
        return Err(lineage_entry_error(lineage, *line, &format!("contradicts an earlier line: {claim}")));
    }
    let released = ReleasedSeriesFiles::read(config, terms, path)?;
    let mut rows = Vec::with_capacity(released.rows.len());
    for ReleasedSeriesRow { series, number, row } in &released.rows {
        let (file, line) = released.file_and_line(*series, *number);
        let refused = |why: &str| EvaluationError::Line { path: file.to_owned(), line, why: why.to_owned() };
        let mut row = row.clone().map_err(refused)?;
        row.sets = contributor_sets(&row, *number, terms, &read);
        if row.sets.is_empty() && is_contributor_row(&row, terms) {
            return Err(refused("no contributor set in the lineage"));
        }
        rows.push(row);
    }
    SeriesEvidence::from_rows(terms, original, rows, read)
}

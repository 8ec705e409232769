//! Entry point of `throng anonymize`.

use super::anonymization_report::{self, AnonymizationReport, SubjectCounts};
use super::ceiling_release;
use super::dataset_source::{DatasetSource, RunCallbacks};
use super::encoded_dataset::{self, EncodedDataset};
use super::error::{AnonymizeError, operator_error};
use super::file_mode_refusals::refuse_memory_only_settings;
use super::microaggregated_cells;
use super::policy_search::{
    PolicyRelease, PolicySearchResult, check_feasible, class_terms, search_policy, search_table,
};
use super::release_parts;
use super::release_writer::{ReleaseContent, lock_output, verify_and_write};
use crate::config::{Config, RecodingMode, RowContent};
use std::time::Instant;
use throng_core::lattice::search_deadline::SearchDeadline;

/// Refuses settings that apply to streams only.
fn refuse_stream_settings(config: &Config, file: &str) -> Result<(), AnonymizeError> {
    if !config.treatment.rules().is_empty() {
        let key = if config.treatment.rule.is_empty() { "treatment.preset" } else { "treatment.rule" };
        let message = "a data set has one policy for all records; treatment rules apply to streams only";
        let remedy =
            "remove the key, or use the daemon (throng run); anonymize.microaggregation aggregates numbers here";
        return Err(operator_error(file, key, message.to_owned(), remedy));
    }
    if !config.plan.shared.is_empty() {
        let message = "a data set is released as one fragment per record: groups share no attributes".to_owned();
        let remedy = "remove the key, or use the daemon (throng run)";
        return Err(operator_error(file, "plan.shared", message, remedy));
    }
    if let Some(index) = config.group.iter().position(|group| group.treatment == RecodingMode::Ranges) {
        let message =
            "a data set has one policy of levels for all records; classes have ranges in streams only".to_owned();
        let remedy = "set \"levels\", or use the daemon (throng run)";
        return Err(operator_error(file, format!("group[{index}].treatment"), message, remedy));
    }
    if config.sink.rows == RowContent::Joined {
        let message = "a data set is released as whole records: there are no groups to join".to_owned();
        let remedy = "set sink.rows = \"fragments\" (THRONG__SINK__ROWS=fragments), or use the daemon (throng run)";
        return Err(operator_error(file, "sink.rows", message, remedy));
    }
    Ok(())
}

/// Anonymizes the source file of `config`, followed by the files of `source`, into the sink file of `config`.
///
/// Memory: codes of 1 to 4 bytes per cell, twice, and the encoded output. If the codes are in a file, the limit of
/// `source` applies.
///
/// # Errors
/// See [`AnonymizeError`]. No line has been written then, except if writing itself failed.
pub fn anonymize(
    config: &Config,
    file: &str,
    source: &DatasetSource<'_>,
    attended: RunCallbacks<'_>,
) -> Result<AnonymizationReport, AnonymizeError> {
    let begun = Instant::now();
    refuse_stream_settings(config, file)?;
    if source.temp.is_some() {
        refuse_memory_only_settings(config, file)?;
    }
    let place = lock_output(config)?;
    let mut data = encoded_dataset::read_dataset(config, file, source, attended)?;
    let aggregates = microaggregated_cells::microaggregation_targets(config, file, &data.input.schema)?;
    let terms = class_terms(config, file, &data)?;
    let wanted = ceiling_release::ceiling_request(config, file, &data.input)?;
    let (mut table, pool) = search_table(&data, &terms, attended)?;
    let risk_before = anonymization_report::raw_risk(&table);
    let searching = Instant::now();
    let clock = || searching.elapsed();
    let until = SearchDeadline::new(&clock, config.anonymize.time_limit, attended.stop);
    let (PolicySearchResult { recoded, policy_release: settled }, insertion, ceiled) = if let Some(wanted) = wanted {
        let asked = (config, &terms);
        let (searched, insertion, ceiled) =
            ceiling_release::release_under_ceiling((&data, &mut table), asked, &wanted, until, attended)?;
        (searched, Some(insertion), Some(ceiled))
    } else {
        let of = (&mut data, &mut table);
        let searched = search_policy(of, &pool, (config, &terms), &aggregates, until, attended)?;
        let say = |policy: &[u8]| anonymization_report::format_policy(&data.domains(), &data.input, policy);
        pool.install(|| check_feasible(&say, &searched.recoded, &table, &terms, until))?;
        (searched, None, None)
    };
    let PolicyRelease { kept, hidden, aggregated } = settled.ok_or(AnonymizeError::SaysNothing)?;
    let lattice = table.lattice().approximate_size();
    drop(table);
    let k = config.privacy.required_subjects();
    // Counterfeits are drawn over all classes in one part.
    let most = if insertion.is_some() { usize::MAX } else { release_parts::max_part_records(&data, &kept, k) };
    let most = source.part.unwrap_or(usize::MAX).min(most).max(1);
    let (parts, seen) = release_parts::divide_into_parts(&data, &kept, &hidden, (k, most), attended.step)?;
    let rare_sensitive_cells = hidden.masks.iter().map(|mask| u64::from(mask.count_ones())).sum();
    drop(hidden);
    let people = seen.subject_totals.map(|(all, left)| SubjectCounts { all, without_release: all - left });
    let (aggregates, insertion) = (&aggregates[..], insertion.as_ref());
    let leaving = ReleaseContent { config, data: &data, kept: &kept, aggregates, models: &terms.models, insertion };
    let risk = verify_and_write(place, &leaving, (&parts, seen), attended.step)?;
    let EncodedDataset { input, codes, released, .. } = data;
    Ok(AnonymizationReport {
        rows: codes.rows as u64,
        to_release: released,
        swallowed: input.swallowed,
        quasi: input.quasi.iter().map(|&a| input.schema.attributes[a].name.clone()).collect(),
        labels: anonymization_report::level_labels(&input),
        people,
        risk_before,
        transformation: config.anonymize.transformation,
        recoded,
        measure: config.anonymize.measure,
        strategy: config.anonymize.strategy,
        lattice,
        risk,
        rare_sensitive_cells,
        aggregated,
        ceiled,
        warnings: input.schema.warnings(),
        seconds: begun.elapsed().as_secs_f64(),
    })
}

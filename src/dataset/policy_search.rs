//! Search for a policy and its release.

use super::class_lookup::ReleasedClasses;
use super::dataset_source::{AnonymizationStep, RunCallbacks};
use super::encoded_dataset::EncodedDataset;
use super::error::AnonymizeError;
use super::microaggregated_cells::{MicroaggregationReport, MicroaggregationTarget, aggregate};
use super::privacy_models;
use super::sensitive_masks::{self, CellHidingInput, SensitiveMasks};
use crate::config::{Config, RecodingScope};
use rayon::ThreadPool;
use std::time::Duration;
use throng_core::lattice::nearest_policy::{NearestPolicy, find_nearest_policy};
use throng_core::lattice::policy_check::PolicyTerms;
use throng_core::lattice::recoding_passes::{
    EarlyEndReason, LocalRecodingResult, LocalRecodingSettings, recode_locally,
};
use throng_core::lattice::search::LatticeSearchProgress;
use throng_core::lattice::search_deadline::SearchDeadline;
use throng_core::lattice::table::LatticeTable;
use throng_core::privacy::ClassPrivacyModel;

const MAX_RECODING_PASSES: u8 = 10;

/// For the policy nearest to impossible models.
const NEAREST_POLICY_TIME: Duration = Duration::from_secs(10);

fn configured_passes(config: &Config) -> LocalRecodingSettings {
    let settings = &config.anonymize;
    let most = match settings.transformation {
        RecodingScope::FullDomain => 1,
        RecodingScope::Local => MAX_RECODING_PASSES,
    };
    LocalRecodingSettings {
        max_passes: most,
        first_pass_unreleased_share: settings.pass_limit,
        strategy: settings.strategy,
    }
}

/// Requirements for every class.
pub(super) fn class_terms(config: &Config, file: &str, data: &EncodedDataset) -> Result<PolicyTerms, AnonymizeError> {
    let models = privacy_models::models(config, file, &data.input, &data.sensitive_domains())?;
    Ok(PolicyTerms { models, limit: config.anonymize.suppression_limit, measure: config.anonymize.measure })
}

/// Distinct records and thread pool.
pub(super) fn search_table(
    data: &EncodedDataset,
    terms: &PolicyTerms,
    attended: RunCallbacks<'_>,
) -> Result<(LatticeTable, ThreadPool), AnonymizeError> {
    let of_population = |model: &ClassPrivacyModel| {
        matches!(model, ClassPrivacyModel::KMap { .. } | ClassPrivacyModel::Presence { .. })
    };
    let table = data.distinct_records(terms.models.iter().any(of_population), attended.step)?;
    let people = data.codes.people.unwrap_or(0);
    let (table, threads) = data.room.allow_search(table, terms, people, rayon::current_num_threads())?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok((table, pool.map_err(|error| AnonymizeError::Threads(error.to_string()))?))
}

/// Repeated when values become rare among the released records.
const MAX_POLICY_SEARCHES: usize = 8;
/// For a search that may be repeated.
const REPEATABLE_TIME_SHARE: f64 = 0.75;

pub(super) struct PolicySearchResult {
    pub recoded: LocalRecodingResult,
    /// `None` if too many records would be suppressed.
    pub policy_release: Option<PolicyRelease>,
}

pub(super) struct PolicyRelease {
    pub kept: ReleasedClasses,
    pub hidden: SensitiveMasks,
    pub aggregated: Vec<MicroaggregationReport>,
}

/// Repeats the search when values assumed common turn out rare and a class cannot hide them. `until` ends all searches;
/// one cut short without a result returns the previous result.
pub(super) fn search_policy(
    (data, table): (&mut EncodedDataset, &mut LatticeTable),
    pool: &ThreadPool,
    (config, terms): (&Config, &PolicyTerms),
    aggregates: &[MicroaggregationTarget],
    until: SearchDeadline<'_>,
    attended: RunCallbacks<'_>,
) -> Result<PolicySearchResult, AnonymizeError> {
    let RunCallbacks { watch, step, .. } = attended;
    let k = config.privacy.required_subjects();
    let told = |progress: &LatticeSearchProgress| {
        watch(&LatticeSearchProgress { left: until.remaining_time(), ..progress.clone() });
    };
    let mut before: Option<PolicySearchResult> = None;
    let mut known = data.rare_values(k, step)?;
    for turn in 1.. {
        let one = data.sensitive.is_empty() || turn == MAX_POLICY_SEARCHES;
        let time = if one { until } else { until.share(REPEATABLE_TIME_SHARE) };
        table.set_rare(&known);
        step(AnonymizationStep::Searching)?;
        let mut recoded = pool.install(|| recode_locally(table, terms, configured_passes(config), time, &told))?;
        if recoded.passes.is_empty() || recoded.overall_figures.suppressed > recoded.limit {
            if let Some(mut before) = before.filter(|_| recoded.early_end_reason.is_some()) {
                before.recoded.early_end_reason = recoded.early_end_reason;
                return Ok(before);
            }
            return Ok(PolicySearchResult { recoded, policy_release: None });
        }
        let mut kept = ReleasedClasses::of(data, table, &recoded);
        // Stored in `kept` now.
        recoded.classes = Vec::new();
        let aggregated = aggregate(data, aggregates, &mut kept, k)?;
        let asked =
            CellHidingInput { data, kept: &kept, table, models: &terms.models, k, assumed_hidden: &known, step };
        let hidden = sensitive_masks::hide_sensitive_cells(&asked)?;
        let mut wider = hidden.rare.clone();
        for (wider, known) in wider.iter_mut().flatten().zip(known.iter().flatten()) {
            *wider |= *known;
        }
        let last =
            hidden.removed_records.is_empty() || turn == MAX_POLICY_SEARCHES || wider == known || until.must_stop_now();
        recoded.overall_figures.suppressed += hidden.removed_records.len() as u64;
        let possible = recoded.overall_figures.suppressed <= recoded.limit;
        let found = PolicySearchResult { recoded, policy_release: Some(PolicyRelease { kept, hidden, aggregated }) };
        if last {
            return Ok(found);
        }
        before = possible.then_some(found).or(before);
        known = wider;
    }
    unreachable!("the last turn returns")
}

/// Refuses no release, or too many suppressed records.
pub(super) fn check_feasible(
    say: &(dyn Fn(&[u8]) -> String + Sync),
    recoded: &LocalRecodingResult,
    table: &LatticeTable,
    terms: &PolicyTerms,
    until: SearchDeadline<'_>,
) -> Result<(), AnonymizeError> {
    let (limit, records) = (recoded.limit, table.records());
    if let Some(last) = recoded.searches.last().filter(|_| recoded.passes.is_empty()) {
        return match &last.best {
            _ if recoded.early_end_reason == Some(EarlyEndReason::Stopped) => Err(AnonymizeError::Stopped),
            _ if recoded.early_end_reason.is_some() => Err(AnonymizeError::OutOfTime),
            Some(_) => Err(AnonymizeError::SaysNothing),
            None => {
                let time = if until.remaining_time().is_some() { until } else { until.within(NEAREST_POLICY_TIME) };
                let NearestPolicy { best, proved } = find_nearest_policy(table, terms, time)?;
                let nearest = match (best, proved) {
                    (None, true) => "every policy suppresses all records".to_owned(),
                    (None, false) => "no policy that releases records was found in time".to_owned(),
                    (Some((policy, suppressed)), _) => {
                        let found = if proved { "the nearest policy" } else { "the nearest policy found in time" };
                        format!("{found} ({}) suppresses {suppressed}", say(&policy))
                    }
                };
                Err(AnonymizeError::Impossible { limit, records, nearest })
            }
        };
    }
    let suppressed = recoded.overall_figures.suppressed;
    if suppressed > limit {
        return Err(AnonymizeError::LeftTooMany { passes: recoded.passes.len(), suppressed, records, limit });
    }
    Ok(())
}

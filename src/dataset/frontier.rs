//! Frontier of quality against k.

use super::dataset_source::{DatasetSource, RunCallbacks};
use super::encoded_dataset;
use super::error::{AnonymizeError, operator_error};
use super::microaggregated_cells;
use super::policy_search::{PolicySearchResult, class_terms, search_policy, search_table};
use crate::config::Config;
use std::time::Instant;
use throng_core::domain::Domain;
use throng_core::lattice::search_deadline::SearchDeadline;

/// Point of the frontier.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontierPoint {
    /// Value instead of `privacy.k`.
    pub k: u64,
    /// Quality; `None` without an admissible policy.
    pub quality: Option<f64>,
    /// Records suppressed by the best policies, admissible or not.
    pub suppressed: u64,
    /// Policy of the first pass; the top of the lattice without one.
    pub policy: Vec<u8>,
    /// Passes that released records.
    pub passes: usize,
    /// Every search was complete: with one pass the quality is optimal, and `None` means an impossible k.
    pub complete: bool,
}

/// Computes the best quality for each of `ks`, otherwise as configured.
///
/// # Errors
/// As [`anonymize`](super::anonymize()); an impossible k is a point without quality.
pub fn frontier(
    config: &Config,
    file: &str,
    source: &DatasetSource<'_>,
    ks: &[u64],
    attended: RunCallbacks<'_>,
) -> Result<Vec<FrontierPoint>, AnonymizeError> {
    if config.anonymize.ceiling.is_enabled() {
        let message = "a frontier compares generalization only, without counterfeits".to_owned();
        return Err(operator_error(file, "anonymize.ceiling.lines", message, "remove the key for --frontier"));
    }
    let mut data = encoded_dataset::read_dataset(config, file, source, attended)?;
    let aggregates = microaggregated_cells::microaggregation_targets(config, file, &data.input.schema)?;
    let (mut table, pool) = search_table(&data, &class_terms(config, file, &data)?, attended)?;
    let measure = config.anonymize.measure;
    let searching = Instant::now();
    let clock = || searching.elapsed();
    let until = SearchDeadline::new(&clock, config.anonymize.time_limit, attended.stop);
    let mut points = Vec::with_capacity(ks.len());
    for (index, &k) in ks.iter().enumerate() {
        if until.is_stopped() {
            break;
        }
        let mut config = config.clone();
        config.privacy.k = usize::try_from(k).unwrap_or(usize::MAX);
        let terms = class_terms(&config, file, &data)?;
        let time = until.share(1.0 / (ks.len() - index) as f64);
        let of = (&mut data, &mut table);
        let PolicySearchResult { recoded, .. } =
            search_policy(of, &pool, (&config, &terms), &aggregates, time, attended)?;
        let possible = !recoded.passes.is_empty() && recoded.overall_figures.suppressed <= recoded.limit;
        points.push(FrontierPoint {
            k,
            quality: possible.then(|| recoded.overall_figures.policy_quality.measure_value(measure)),
            suppressed: recoded.overall_figures.suppressed,
            policy: recoded
                .passes
                .first()
                .map_or_else(|| data.domains().iter().map(Domain::top).collect(), |pass| pass.policy.to_vec()),
            passes: recoded.passes.len(),
            complete: recoded.is_proved_optimal(),
        });
    }
    Ok(points)
}

//! The frontier of quality against k.

use super::aggregate;
use super::data;
use super::error::{AnonymizeError, problem};
use super::search::{Searched, searched, table, terms};
use super::source::{Attended, Source};
use crate::anonymity::domain::Domain;
use crate::anonymity::lattice::until::Until;
use crate::config::Config;
use std::time::Instant;

/// A point of the frontier of quality against k.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// In place of `privacy.k`.
    pub k: u64,
    /// As shown; none where no policy is admissible.
    pub quality: Option<f64>,
    /// Records that are suppressed by the best policies found, admissible or not.
    pub suppressed: u64,
    /// That of the first pass, by quasi attribute; the top of the lattice where there is no pass.
    pub policy: Vec<u8>,
    /// Passes that released something; 0 where nothing can leave.
    pub passes: usize,
    /// Whether every search came to its end: with one pass the quality is then the best there is, and none means that k
    /// is impossible.
    pub complete: bool,
}

/// The best quality for each of `ks`, everything else as configured: what a higher k costs.
///
/// # Errors
/// As [`anonymize`](super::anonymize()); an impossible k is a point without quality.
pub fn frontier(
    config: &Config,
    file: &str,
    source: &Source<'_>,
    ks: &[u64],
    attended: Attended<'_>,
) -> Result<Vec<Point>, AnonymizeError> {
    if config.anonymize.ceiling.is_on() {
        let message = "a frontier is of generalization alone, and counterfeits would count in it".to_owned();
        return Err(problem(file, "anonymize.ceiling.lines", message, "remove the key for --frontier"));
    }
    let mut data = data::read(config, file, source, attended)?;
    let aggregates = aggregate::asked(config, file, &data.input.schema)?;
    let (mut table, pool) = table(&data, &terms(config, file, &data)?, attended)?;
    let measure = config.anonymize.measure;
    let searching = Instant::now();
    let clock = || searching.elapsed();
    let until = Until::new(&clock, config.anonymize.time_limit, attended.stop);
    let mut points = Vec::with_capacity(ks.len());
    for (index, &k) in ks.iter().enumerate() {
        if until.is_stopped() {
            break;
        }
        let mut config = config.clone();
        config.privacy.k = usize::try_from(k).unwrap_or(usize::MAX);
        let terms = terms(&config, file, &data)?;
        let time = until.share(1.0 / (ks.len() - index) as f64);
        let of = (&mut data, &mut table);
        let Searched { recoded, .. } = searched(of, &pool, (&config, &terms), &aggregates, time, attended)?;
        let possible = !recoded.passes.is_empty() && recoded.account.suppressed <= recoded.limit;
        points.push(Point {
            k,
            quality: possible.then(|| recoded.account.worth.of(measure)),
            suppressed: recoded.account.suppressed,
            policy: recoded
                .passes
                .first()
                .map_or_else(|| data.domains().iter().map(Domain::top).collect(), |pass| pass.policy.to_vec()),
            passes: recoded.passes.len(),
            complete: recoded.is_proved(),
        });
    }
    Ok(points)
}

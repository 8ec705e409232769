//! One data set at once: read, search, treat, verify, write.
//!
//! What leaves is verified by the release room from its bytes, as a batch of the daemon is; nothing is written before.

mod aggregate;
mod claims;
mod error;
mod hide;
mod models;
mod read;
mod told;
mod write;

pub use aggregate::Aggregated;
pub use error::AnonymizeError;
pub use told::{People, RawRisk};

use crate::anonymity::domain::Domain;
use crate::anonymity::lattice::check::{Checker, Terms};
use crate::anonymity::lattice::coding;
use crate::anonymity::lattice::nearest::{Nearest, nearest};
use crate::anonymity::lattice::passes::{Cut, Passes, Recoded, recode};
use crate::anonymity::lattice::search::{Progress, Strategy};
use crate::anonymity::lattice::table::{Records, Table};
use crate::anonymity::lattice::until::Until;
use crate::anonymity::quality::{Measure, Worth};
use crate::config::{Config, Transformation, Used};
use crate::release::verified::Risk;
use crate::start::findings::Finding;
use hide::Settled;
use read::Input;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What a data set became.
#[derive(Debug)]
pub struct Anonymized {
    pub rows: u64,
    pub to_release: u64,
    /// Lines that a quote left open has swallowed: records that were read as part of another one.
    pub swallowed: u64,
    /// Names of the quasi attributes, in the order of the schema and of every policy.
    pub quasi: Vec<String>,
    /// By quasi attribute and level: what it shows, in words.
    pub labels: Vec<Vec<String>>,
    pub transformation: Transformation,
    pub recoded: Recoded,
    pub before: Worth,
    pub measure: Measure,
    pub strategy: Strategy,
    pub lattice: f64,
    pub risk: Risk,
    pub risk_before: RawRisk,
    /// None where every record counts for itself.
    pub people: Option<People>,
    /// Sensitive cells that leave as `*`: those of rare values, and those that hide them.
    pub rare_sensitive_cells: u64,
    /// Attributes whose cells are aggregates, not truths.
    pub aggregated: Vec<Aggregated>,
    /// What the schema says twice.
    pub warnings: Vec<String>,
    pub seconds: f64,
}

/// A point of the frontier of quality against k.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub k: u64,
    /// As shown; none where no policy is admissible.
    pub quality: Option<f64>,
    pub suppressed: u64,
    /// That of the first pass.
    pub policy: Vec<u8>,
    pub passes: usize,
    pub complete: bool,
}

/// What is watched while the search runs.
pub type Watch<'a> = &'a (dyn Fn(&Progress) + Sync);

/// Who attends while a data set is anonymized.
#[derive(Clone, Copy)]
pub struct Attended<'a> {
    pub watch: Watch<'a>,
    /// Once set, the search ends with the best that it has found.
    pub stop: &'a AtomicBool,
    /// Hears what the data lack, before the search.
    pub note: &'a dyn Fn(&Finding),
}

/// How long the policy that comes nearest to impossible models is looked for.
const NEAREST: Duration = Duration::from_secs(10);

/// The input as the search sees it.
struct Coded {
    input: Input,
    domains: Vec<Domain>,
    /// Of the sensitive attributes.
    beside: Vec<Domain>,
    records: Records,
}

fn coded(config: &Config, file: &str, note: &dyn Fn(&Finding)) -> Result<Coded, AnonymizeError> {
    let input = read::read(config, file, note)?;
    let (domains, beside, mut records) =
        coding::records(&input.books, &input.batch.columns, &input.quasi, &input.sensitive)?;
    records.subjects.clone_from(&input.subjects);
    records.released.clone_from(&input.released);
    Ok(Coded { input, domains, beside, records })
}

fn passes(config: &Config) -> Passes {
    let settings = &config.anonymize;
    let most = match settings.transformation {
        Transformation::FullDomain => 1,
        Transformation::Local => settings.passes,
    };
    Passes { most, leaves: settings.pass_limit, strategy: settings.strategy }
}

fn terms(config: &Config, file: &str, coded: &Coded) -> Result<Terms, AnonymizeError> {
    let models = models::models(config, file, &coded.input, &coded.beside)?;
    Ok(Terms { models, limit: config.anonymize.suppression_limit, measure: config.anonymize.measure })
}

/// Anonymizes the file that `config` names as its source into the one that it names as its sink.
///
/// Memory: the records as codes, 4 bytes a cell, and three times the encoded output.
///
/// # Errors
/// See [`AnonymizeError`]; no line has been written then, but where writing itself failed.
pub fn anonymize(config: &Config, file: &str, attended: Attended<'_>) -> Result<Anonymized, AnonymizeError> {
    let begun = Instant::now();
    let place = write::ready(config)?;
    let mut coded = coded(config, file, attended.note)?;
    let aggregates = aggregate::asked(config, file, &coded.input.schema)?;
    let measure = config.anonymize.measure;
    let terms = terms(config, file, &coded)?;
    let searching = Instant::now();
    let clock = || searching.elapsed();
    let until = Until::new(&clock, config.anonymize.time_limit, attended.stop);
    let Searched { recoded, settled, table } =
        searched(config, &mut coded, &aggregates, &terms, until, attended.watch)?;
    possible(&coded, &recoded, &table, &terms, until)?;
    let input = &coded.input;
    let quasi: Vec<String> = input.quasi.iter().map(|&a| input.schema.attributes[a].name.clone()).collect();
    let settled = settled.ok_or(AnonymizeError::SaysNothing)?;
    let written = write::release(place, config, input, settled, &aggregates, &terms.models)?;
    Ok(Anonymized {
        rows: input.batch.rows() as u64,
        to_release: table.records(),
        swallowed: input.swallowed,
        quasi,
        labels: told::labels(input),
        people: told::people(&coded.records, &recoded),
        risk_before: told::raw_risk(&coded.records),
        transformation: config.anonymize.transformation,
        recoded,
        before: Checker::new(&table, &terms)?.raw_worth(&table.lattice().bottom()),
        measure,
        strategy: config.anonymize.strategy,
        lattice: table.lattice().approximate_size(),
        risk: written.risk,
        rare_sensitive_cells: written.hidden,
        aggregated: written.aggregated,
        warnings: input.schema.warnings(),
        seconds: begun.elapsed().as_secs_f64(),
    })
}

/// How often the search is made again because values turned out rare among the records that leave.
const TURNS: usize = 8;
/// Share of the time left that a search has which may have to be made again.
const OF_TURN: f64 = 0.75;

/// What a search came to.
struct Searched {
    recoded: Recoded,
    /// None where too much would have to be suppressed.
    settled: Option<Settled>,
    table: Table,
}

/// Searches, and settles what would leave; once more where values that hide in it had been taken for common ones, and a
/// class could not hide them. `until` is the end of them all; where it cuts one short that has found nothing, what the one
/// before it found leaves.
fn searched(
    config: &Config,
    coded: &mut Coded,
    aggregates: &[aggregate::Asked],
    terms: &Terms,
    until: Until<'_>,
    watch: Watch<'_>,
) -> Result<Searched, AnonymizeError> {
    let Coded { input, domains, records, .. } = coded;
    let k = config.privacy.crowd();
    let mut before: Option<Searched> = None;
    let told = |progress: &Progress| watch(&Progress { left: until.left(), ..progress.clone() });
    records.rare = hide::rare(records, |row| records.is_released(row), k);
    for turn in 1.. {
        let one = records.sensitive.is_empty() || turn == TURNS;
        let time = if one { until } else { until.share(OF_TURN) };
        let mut recoded = recode(domains, records, terms, passes(config), time, &told)?;
        let table = Table::new(domains.clone(), records)?;
        if recoded.passes.is_empty() || recoded.account.suppressed > recoded.limit {
            if let Some(mut before) = before.filter(|_| recoded.cut.is_some()) {
                before.recoded.cut = recoded.cut;
                return Ok(before);
            }
            return Ok(Searched { recoded, settled: None, table });
        }
        let settled = hide::settle(input, &recoded, aggregates, (records, &table), &terms.models, k)?;
        let mut wider = hide::rare(records, |row| recoded.by[row].is_some(), k);
        for (wider, known) in wider.iter_mut().flatten().zip(records.rare.iter().flatten()) {
            *wider |= *known;
        }
        let last = settled.lost.is_empty() || turn == TURNS || wider == records.rare || until.is_over();
        recoded.account.suppressed += settled.lost.len() as u64;
        settled.lost.iter().for_each(|&row| recoded.by[row as usize] = None);
        let possible = recoded.account.suppressed <= recoded.limit;
        let found = Searched { recoded, settled: Some(settled), table };
        if last {
            return Ok(found);
        }
        before = possible.then_some(found).or(before);
        records.rare = wider;
    }
    unreachable!("the last turn returns")
}

/// Refuses what released nothing, or suppresses more than it may.
fn possible(
    coded: &Coded,
    recoded: &Recoded,
    table: &Table,
    terms: &Terms,
    until: Until<'_>,
) -> Result<(), AnonymizeError> {
    let (limit, records) = (recoded.limit, table.records());
    if let Some(last) = recoded.searches.last().filter(|_| recoded.passes.is_empty()) {
        return match &last.best {
            _ if recoded.cut == Some(Cut::Stopped) => Err(AnonymizeError::Stopped),
            _ if recoded.cut.is_some() => Err(AnonymizeError::OutOfTime),
            Some(_) => Err(AnonymizeError::SaysNothing),
            None => {
                let time = if until.left().is_some() { until } else { until.within(NEAREST) };
                let Nearest { best, proved } = nearest(table, terms, time)?;
                let nearest = match (best, proved) {
                    (None, true) => "every policy suppresses them all".to_owned(),
                    (None, false) => "none was found in time that keeps any".to_owned(),
                    (Some((policy, suppressed)), _) => {
                        let found = if proved { "the nearest" } else { "the nearest found in time" };
                        format!("{found} ({}) suppresses {suppressed}", told::policy(coded, &policy))
                    }
                };
                Err(AnonymizeError::Impossible { limit, records, nearest })
            }
        };
    }
    let suppressed = recoded.account.suppressed;
    if suppressed > limit {
        return Err(AnonymizeError::LeftTooMany { passes: recoded.passes.len(), suppressed, records, limit });
    }
    Ok(())
}

/// The files that [`anonymize`] would write or remove for its release.
#[must_use]
pub fn files_written(config: &Config) -> Vec<Used> {
    write::files(config)
}

/// The best quality for each of `ks`, everything else as configured: what a higher k costs.
///
/// # Errors
/// As [`anonymize`]; an impossible k is a point without quality.
pub fn frontier(config: &Config, file: &str, ks: &[u64], attended: Attended<'_>) -> Result<Vec<Point>, AnonymizeError> {
    let mut coded = coded(config, file, attended.note)?;
    let aggregates = aggregate::asked(config, file, &coded.input.schema)?;
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
        let terms = terms(&config, file, &coded)?;
        let time = until.share(1.0 / (ks.len() - index) as f64);
        let Searched { recoded, .. } = searched(&config, &mut coded, &aggregates, &terms, time, attended.watch)?;
        let possible = !recoded.passes.is_empty() && recoded.account.suppressed <= recoded.limit;
        points.push(Point {
            k,
            quality: possible.then(|| recoded.account.worth.of(measure)),
            suppressed: recoded.account.suppressed,
            policy: recoded
                .passes
                .first()
                .map_or_else(|| coded.domains.iter().map(Domain::top).collect(), |pass| pass.policy.to_vec()),
            passes: recoded.passes.len(),
            complete: recoded.is_proved(),
        });
    }
    Ok(points)
}

/// The name of a file in messages.
fn named(path: &Path) -> String {
    path.display().to_string()
}

//! One data set at once: read, search, treat, verify, write.
//!
//! What leaves is verified by the release room from its bytes, as a batch of the daemon is; nothing is written before.

mod models;
mod read;
mod write;

use super::run_error::RunError;
use crate::anonymity::domain::DomainError;
use crate::anonymity::lattice::check::{Account, Checker, Terms, TermsError};
use crate::anonymity::lattice::coding;
use crate::anonymity::lattice::search::{Found, Progress, SearchError, Strategy, search};
use crate::anonymity::lattice::table::{Table, TableError};
use crate::anonymity::quality::{Measure, Worth};
use crate::config::{Config, Problem};
use crate::release::verified::Risk;
use crate::release::verify::Refusal;
use std::path::Path;

/// Why a data set was not anonymized.
#[derive(Debug, thiserror::Error)]
pub enum AnonymizeError {
    #[error(transparent)]
    Run(Box<RunError>),
    #[error(transparent)]
    Domain(#[from] DomainError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Terms(#[from] TermsError),
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(
        "{path}: {records} record(s) cannot be read or do not have the types of the schema, the first is number {first}; correct them, or take them out"
    )]
    Rejected { path: String, records: u64, first: i64 },
    #[error(
        "no policy satisfies the models with at most {limit} of {records} records suppressed; the nearest, everything at `*`, suppresses {suppressed}: raise anonymize.suppression_limit, or relax a model"
    )]
    Impossible { limit: u64, records: u64, suppressed: u64 },
    #[error("the system has no randomness to give: {0}")]
    Randomness(std::io::Error),
    #[error("no policy was found within anonymize.time_limit; raise it, or generalize attributes by their schema")]
    OutOfTime,
    #[error(
        "the only policy that satisfies the models says nothing of any quasi attribute; relax a model, raise anonymize.suppression_limit, or release fewer attributes"
    )]
    SaysNothing,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    ModelRefused(#[from] crate::release::models::ModelRefusal),
    #[error(transparent)]
    Deliver(#[from] crate::release::sink::DeliveryError),
}

impl From<RunError> for AnonymizeError {
    fn from(error: RunError) -> Self {
        Self::Run(Box::new(error))
    }
}

impl AnonymizeError {
    /// Whether the user can mend it in the configuration or the input.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Run(error) => error.is_usage(),
            Self::Domain(_) | Self::Table(_) | Self::Terms(_) | Self::Search(_) | Self::Rejected { .. } => true,
            _ => false,
        }
    }
}

/// What a data set became.
#[derive(Debug)]
pub struct Anonymized {
    pub rows: u64,
    pub to_release: u64,
    /// Level by quasi attribute, in the order of the schema.
    pub policy: Vec<(String, u8)>,
    pub account: Account,
    pub before: Worth,
    pub measure: Measure,
    pub strategy: Strategy,
    pub lattice: f64,
    pub found: Found,
    pub risk: Risk,
    /// Sensitive cells suppressed for want of support of their own value.
    pub rare_sensitive_cells: u64,
    pub seconds: f64,
}

/// A point of the frontier of quality against k.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub k: u64,
    /// As shown; none where no policy is admissible.
    pub quality: Option<f64>,
    pub suppressed: u64,
    pub policy: Vec<u8>,
    pub complete: bool,
}

/// What is watched while the search runs.
pub type Watch<'a> = &'a (dyn Fn(&Progress) + Sync);

/// Anonymizes the file that `config` names as its source into the one that it names as its sink.
///
/// Memory: the records as codes, 4 bytes a cell, and three times the encoded output.
///
/// # Errors
/// See [`AnonymizeError`]; no line has been written then, but where writing itself failed.
pub fn anonymize(config: &Config, file: &str, watch: Watch<'_>) -> Result<Anonymized, AnonymizeError> {
    let begun = std::time::Instant::now();
    let input = read::read(config, file)?;
    let (domains, beside, mut records) =
        coding::records(&input.books, &input.batch.columns, &input.quasi, &input.sensitive)?;
    records.subjects.clone_from(&input.subjects);
    records.released.clone_from(&input.released);
    let models = models::models(config, file, &input, &beside)?;
    let table = Table::new(domains, &records)?;
    let measure = config.anonymize.measure;
    let strategy = config.anonymize.strategy;
    let terms = Terms { models, limit: config.anonymize.suppression_limit, measure };
    let checker = Checker::new(&table, &terms)?;
    let found = search(&checker, strategy, config.anonymize.time_limit, watch)?;
    let lattice = table.lattice();
    let Some(best) = &found.best else {
        if !found.complete {
            return Err(AnonymizeError::OutOfTime);
        }
        let suppressed = checker.account(lattice.top()).suppressed;
        return Err(AnonymizeError::Impossible { limit: checker.limit(), records: table.records(), suppressed });
    };
    if *best.policy == *lattice.top() {
        return Err(AnonymizeError::SaysNothing);
    }
    let suppressed = checker.suppressed_records(&best.policy, &records);
    let written = write::release(config, &input, &best.policy, &suppressed, &terms.models)?;
    let names = input.quasi.iter().map(|&a| input.schema.attributes[a].name.clone());
    Ok(Anonymized {
        rows: input.batch.rows() as u64,
        to_release: table.records(),
        policy: names.zip(best.policy.iter().copied()).collect(),
        account: checker.account(&best.policy),
        before: before(&table, &checker),
        measure,
        strategy,
        lattice: lattice.approximate_size(),
        risk: written.risk,
        rare_sensitive_cells: written.rare,
        seconds: begun.elapsed().as_secs_f64(),
        found,
    })
}

/// Every measure of the raw table, nothing suppressed.
fn before(table: &Table, checker: &Checker<'_>) -> Worth {
    checker.raw_worth(&table.lattice().bottom())
}

/// The best quality for each of `ks`, everything else as configured: what a higher k costs.
///
/// # Errors
/// As [`anonymize`]; an impossible k is a point without quality.
pub fn frontier(config: &Config, file: &str, ks: &[u64], watch: Watch<'_>) -> Result<Vec<Point>, AnonymizeError> {
    let input = read::read(config, file)?;
    let (domains, beside, mut records) =
        coding::records(&input.books, &input.batch.columns, &input.quasi, &input.sensitive)?;
    records.subjects.clone_from(&input.subjects);
    records.released.clone_from(&input.released);
    let table = Table::new(domains, &records)?;
    let measure = config.anonymize.measure;
    let strategy = config.anonymize.strategy;
    let mut points = Vec::with_capacity(ks.len());
    for &k in ks {
        let mut config = config.clone();
        config.privacy.k = usize::try_from(k).unwrap_or(usize::MAX);
        let models = models::models(&config, file, &input, &beside)?;
        let terms = Terms { models, limit: config.anonymize.suppression_limit, measure };
        let checker = Checker::new(&table, &terms)?;
        let found = search(&checker, strategy, config.anonymize.time_limit, watch)?;
        let best = found.best.as_ref();
        points.push(Point {
            k,
            quality: best.map(|best| measure.shown(best.cost, best.policy.len())),
            suppressed: best.map_or(table.records(), |best| best.suppressed),
            policy: best.map_or_else(|| table.lattice().top().to_vec(), |best| best.policy.to_vec()),
            complete: found.complete,
        });
    }
    Ok(points)
}

/// A problem of a file that a person can mend.
fn problem(file: impl Into<String>, key: impl Into<String>, message: String, remedy: &str) -> AnonymizeError {
    let problem = Problem { file: file.into(), key: key.into(), message, remedy: remedy.to_owned() };
    RunError::Configuration(vec![problem]).into()
}

/// The name of a file in messages.
fn named(path: &Path) -> String {
    path.display().to_string()
}

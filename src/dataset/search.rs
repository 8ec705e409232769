//! The search for a policy, and what would leave by it.

use super::aggregate::{AggregateQuestion, Aggregated, aggregate};
use super::data::Data;
use super::error::AnonymizeError;
use super::hide::{self, Asked, Hidden};
use super::kept::Kept;
use super::models;
use super::source::{Attended, Step};
use crate::anonymity::lattice::check::Terms;
use crate::anonymity::lattice::nearest::{Nearest, nearest};
use crate::anonymity::lattice::passes::{Cut, Passes, Recoded, recode};
use crate::anonymity::lattice::search::Progress;
use crate::anonymity::lattice::table::Table;
use crate::anonymity::lattice::until::Until;
use crate::anonymity::privacy::Model;
use crate::config::{Config, Transformation};
use rayon::ThreadPool;
use std::time::Duration;

/// Passes of local recoding at most.
const PASSES: u8 = 10;

/// How long the policy that comes nearest to impossible models is looked for.
const NEAREST: Duration = Duration::from_secs(10);

/// How the records are recoded.
fn passes(config: &Config) -> Passes {
    let settings = &config.anonymize;
    let most = match settings.transformation {
        Transformation::FullDomain => 1,
        Transformation::Local => PASSES,
    };
    Passes { most, leaves: settings.pass_limit, strategy: settings.strategy }
}

/// What is asked of every class.
pub(super) fn terms(config: &Config, file: &str, data: &Data) -> Result<Terms, AnonymizeError> {
    let models = models::models(config, file, &data.input, &data.sensitive_domains())?;
    Ok(Terms { models, limit: config.anonymize.suppression_limit, measure: config.anonymize.measure })
}

/// The distinct records that a search by `terms` goes over, and the threads that it may have.
pub(super) fn table(data: &Data, terms: &Terms, attended: Attended<'_>) -> Result<(Table, ThreadPool), AnonymizeError> {
    let of_population = |model: &Model| matches!(model, Model::KMap { .. } | Model::Presence { .. });
    let table = data.table(terms.models.iter().any(of_population), attended.step)?;
    let people = data.codes.people.unwrap_or(0);
    let (table, threads) = data.room.search(table, terms, people, rayon::current_num_threads())?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    Ok((table, pool.map_err(|error| AnonymizeError::Threads(error.to_string()))?))
}

/// How often the search is made again because values turned out rare among the records that leave.
const TURNS: usize = 8;
/// Share of the time left that a search has which may have to be made again.
const OF_TURN: f64 = 0.75;

/// What a search came to.
pub(super) struct Searched {
    pub recoded: Recoded,
    /// None where too much would have to be suppressed.
    pub settled: Option<Settled>,
}

/// What would leave.
pub(super) struct Settled {
    pub kept: Kept,
    pub hidden: Hidden,
    pub aggregated: Vec<Aggregated>,
}

/// Searches, and settles what would leave; once more where values that hide in it had been taken for common ones, and a
/// class could not hide them. `until` is the end of them all; where it cuts one short that has found nothing, what the one
/// before it found leaves.
pub(super) fn searched(
    (data, table): (&mut Data, &mut Table),
    pool: &ThreadPool,
    (config, terms): (&Config, &Terms),
    aggregates: &[AggregateQuestion],
    until: Until<'_>,
    attended: Attended<'_>,
) -> Result<Searched, AnonymizeError> {
    let Attended { watch, step, .. } = attended;
    let k = config.privacy.crowd();
    let told = |progress: &Progress| watch(&Progress { left: until.left(), ..progress.clone() });
    let mut before: Option<Searched> = None;
    let mut known = data.rare(k, step)?;
    for turn in 1.. {
        let one = data.sensitive.is_empty() || turn == TURNS;
        let time = if one { until } else { until.share(OF_TURN) };
        table.set_rare(&known);
        step(Step::Searching)?;
        let mut recoded = pool.install(|| recode(table, terms, passes(config), time, &told))?;
        if recoded.passes.is_empty() || recoded.account.suppressed > recoded.limit {
            if let Some(mut before) = before.filter(|_| recoded.cut.is_some()) {
                before.recoded.cut = recoded.cut;
                return Ok(before);
            }
            return Ok(Searched { recoded, settled: None });
        }
        let mut kept = Kept::of(data, table, &recoded);
        // What is in `kept` by now.
        recoded.classes = Vec::new();
        let aggregated = aggregate(data, aggregates, &mut kept, k)?;
        let asked = Asked { data, kept: &kept, table, models: &terms.models, k, known: &known, step };
        let hidden = hide::hidden(&asked)?;
        let mut wider = hidden.rare.clone();
        for (wider, known) in wider.iter_mut().flatten().zip(known.iter().flatten()) {
            *wider |= *known;
        }
        let last = hidden.lost.is_empty() || turn == TURNS || wider == known || until.is_over();
        recoded.account.suppressed += hidden.lost.len() as u64;
        let possible = recoded.account.suppressed <= recoded.limit;
        let found = Searched { recoded, settled: Some(Settled { kept, hidden, aggregated }) };
        if last {
            return Ok(found);
        }
        before = possible.then_some(found).or(before);
        known = wider;
    }
    unreachable!("the last turn returns")
}

/// Refuses what released nothing, or suppresses more than it may; `say` tells a policy in words.
pub(super) fn possible(
    say: &(dyn Fn(&[u8]) -> String + Sync),
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
                        format!("{found} ({}) suppresses {suppressed}", say(&policy))
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

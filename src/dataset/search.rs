//! The search for a policy, and what would leave by it.

use super::aggregate::AggregateQuestion;
use super::attended::Watch;
use super::coded::Coded;
use super::error::AnonymizeError;
use super::hide::{self, Settled};
use super::models;
use super::read::Input;
use crate::anonymity::domain::Domain;
use crate::anonymity::lattice::check::Terms;
use crate::anonymity::lattice::nearest::{Nearest, nearest};
use crate::anonymity::lattice::passes::{Cut, Passes, Recoded, recode};
use crate::anonymity::lattice::search::Progress;
use crate::anonymity::lattice::table::Table;
use crate::anonymity::lattice::until::Until;
use crate::config::{Config, Transformation};
use std::time::Duration;

/// Passes of local recoding at most.
const PASSES: u8 = 10;

/// How long the policy that comes nearest to impossible models is looked for.
const NEAREST: Duration = Duration::from_secs(10);

/// How the records are recoded.
pub(super) fn passes(config: &Config) -> Passes {
    let settings = &config.anonymize;
    let most = match settings.transformation {
        Transformation::FullDomain => 1,
        Transformation::Local => PASSES,
    };
    Passes { most, leaves: settings.pass_limit, strategy: settings.strategy }
}

/// What is asked of every class.
pub(super) fn terms(
    config: &Config,
    file: &str,
    input: &Input,
    sensitive_domains: &[Domain],
) -> Result<Terms, AnonymizeError> {
    let models = models::models(config, file, input, sensitive_domains)?;
    Ok(Terms { models, limit: config.anonymize.suppression_limit, measure: config.anonymize.measure })
}

/// How often the search is made again because values turned out rare among the records that leave.
pub(super) const TURNS: usize = 8;
/// Share of the time left that a search has which may have to be made again.
pub(super) const OF_TURN: f64 = 0.75;

/// What a search came to.
pub(super) struct Searched {
    pub recoded: Recoded,
    /// None where too much would have to be suppressed.
    pub settled: Option<Settled>,
    pub table: Table,
}

/// Searches, and settles what would leave; once more where values that hide in it had been taken for common ones, and a
/// class could not hide them. `until` is the end of them all; where it cuts one short that has found nothing, what the one
/// before it found leaves.
pub(super) fn searched(
    config: &Config,
    coded: &mut Coded,
    aggregates: &[AggregateQuestion],
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

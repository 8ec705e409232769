//! `throng anonymize`: a data set becomes a release.

use super::aggregate;
use super::ceiling;
use super::data::{self, Data};
use super::error::{AnonymizeError, problem};
use super::parts;
use super::refusals::refuse;
use super::release::{Leaving, ready, release};
use super::search::{Searched, Settled, possible, searched, table, terms};
use super::source::{Attended, Source};
use super::summary::{self, Anonymized, People};
use crate::anonymity::lattice::until::Until;
use crate::config::{Config, Recoding, Rows};
use std::time::Instant;

/// Anonymizes the file that `config` names as its source, with those of `source` behind it, into the one that it names as its sink.
///
/// Memory: codes of 1 to 4 bytes a cell, twice, and the encoded output; what `source` allows where they lie in a file.
///
/// # Errors
/// See [`AnonymizeError`]; no line has been written then, but where writing itself failed.
pub fn anonymize(
    config: &Config,
    file: &str,
    source: &Source<'_>,
    attended: Attended<'_>,
) -> Result<Anonymized, AnonymizeError> {
    let begun = Instant::now();
    if !config.treatment.rules().is_empty() {
        let key = if config.treatment.rule.is_empty() { "treatment.preset" } else { "treatment.rule" };
        let message = "one policy is looked for that fits all records; attributes are treated by rules in streams only";
        let remedy = "remove the key, or run the file through the daemon (throng run); anonymize.microaggregation aggregates numbers here";
        return Err(problem(file, key, message.to_owned(), remedy));
    }
    if !config.plan.shared.is_empty() {
        let message = "a data set at once leaves as one fragment a record: nothing stands in several groups".to_owned();
        let remedy = "remove the key, or run the file through the daemon (throng run)";
        return Err(problem(file, "plan.shared", message, remedy));
    }
    if let Some(index) = config.group.iter().position(|group| group.treatment == Recoding::Ranges) {
        let message =
            "one policy of levels is looked for that fits all records; classes show ranges in streams only".to_owned();
        let remedy = "set \"levels\", or run the file through the daemon (throng run)";
        return Err(problem(file, format!("group[{index}].treatment"), message, remedy));
    }
    if config.sink.rows == Rows::Joined {
        let message = "a data set at once leaves as whole records: there are no groups to join".to_owned();
        let remedy = "set sink.rows = \"fragments\" (THRONG__SINK__ROWS=fragments), or run the file through the daemon (throng run)";
        return Err(problem(file, "sink.rows", message, remedy));
    }
    if source.temp.is_some() {
        refuse(config, file)?;
    }
    let place = ready(config)?;
    let mut data = data::read(config, file, source, attended)?;
    let aggregates = aggregate::asked(config, file, &data.input.schema)?;
    let terms = terms(config, file, &data)?;
    let wanted = ceiling::wanted(config, file, &data.input)?;
    let (mut table, pool) = table(&data, &terms, attended)?;
    let risk_before = summary::raw_risk(&table);
    let searching = Instant::now();
    let clock = || searching.elapsed();
    let until = Until::new(&clock, config.anonymize.time_limit, attended.stop);
    let (Searched { recoded, settled }, insertion, ceiled) = if let Some(wanted) = wanted {
        let asked = (config, &terms);
        let (searched, insertion, ceiled) = ceiling::ceiled((&data, &mut table), asked, &wanted, until, attended)?;
        (searched, Some(insertion), Some(ceiled))
    } else {
        let of = (&mut data, &mut table);
        let searched = searched(of, &pool, (config, &terms), &aggregates, until, attended)?;
        let say = |policy: &[u8]| summary::policy(&data.domains(), &data.input, policy);
        pool.install(|| possible(&say, &searched.recoded, &table, &terms, until))?;
        (searched, None, None)
    };
    let Settled { kept, hidden, aggregated } = settled.ok_or(AnonymizeError::SaysNothing)?;
    let lattice = table.lattice().approximate_size();
    drop(table);
    let k = config.privacy.crowd();
    // Counterfeits are drawn among all classes at once.
    let most = if insertion.is_some() { usize::MAX } else { parts::most(&data, &kept, k) };
    let most = source.part.unwrap_or(usize::MAX).min(most).max(1);
    let (parts, seen) = parts::divided(&data, &kept, &hidden, (k, most), attended.step)?;
    let rare_sensitive_cells = hidden.masks.iter().map(|mask| u64::from(mask.count_ones())).sum();
    drop(hidden);
    let people = seen.people.map(|(all, left)| People { all, lost: all - left });
    let (aggregates, insertion) = (&aggregates[..], insertion.as_ref());
    let leaving = Leaving { config, data: &data, kept: &kept, aggregates, models: &terms.models, insertion };
    let risk = release(place, &leaving, (&parts, seen), attended.step)?;
    let Data { input, codes, released, .. } = data;
    Ok(Anonymized {
        rows: codes.rows as u64,
        to_release: released,
        swallowed: input.swallowed,
        quasi: input.quasi.iter().map(|&a| input.schema.attributes[a].name.clone()).collect(),
        labels: summary::labels(&input),
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

//! `throng anonymize`: a data set becomes a release.

use super::aggregate;
use super::attended::Attended;
use super::beyond;
use super::ceiling;
use super::coded::coded;
use super::done::Anonymized;
use super::error::{AnonymizeError, problem};
use super::search::{Searched, possible, searched, terms};
use super::source::Source;
use super::summary;
use super::write;
use crate::anonymity::lattice::check::Checker;
use crate::anonymity::lattice::until::Until;
use crate::config::Config;
use std::time::Instant;

/// Anonymizes the file that `config` names as its source, with those of `source` behind it, into the one that it names as its sink.
///
/// Memory: the records as codes, 4 bytes a cell, and three times the encoded output; what `source` allows where they lie in a file.
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
        return Err(problem(
            file,
            "plan.shared",
            message,
            "remove the key, or run the file through the daemon (throng run)",
        ));
    }
    if let Some(directory) = source.temp {
        return beyond::anonymize::anonymize(config, file, (source, directory), attended);
    }
    let place = write::ready(config)?;
    let mut coded = coded(config, file, source, attended)?;
    let aggregates = aggregate::asked(config, file, &coded.input.schema)?;
    let measure = config.anonymize.measure;
    let terms = terms(config, file, &coded.input, &coded.sensitive_domains)?;
    let searching = Instant::now();
    let clock = || searching.elapsed();
    let until = Until::new(&clock, config.anonymize.time_limit, attended.stop);
    let wanted = ceiling::wanted(config, file, &coded.input)?;
    let (Searched { recoded, settled, table }, insertion, ceiled) = if let Some(wanted) = wanted {
        let (searched, insertion, ceiled) = ceiling::ceiled(config, &mut coded, &terms, &wanted, until, attended)?;
        (searched, Some(insertion), Some(ceiled))
    } else {
        let searched = searched(config, &mut coded, &aggregates, &terms, until, attended.watch)?;
        let say = |policy: &[u8]| summary::policy(&coded.domains, &coded.input, policy);
        possible(&say, &searched.recoded, &searched.table, &terms, until)?;
        (searched, None, None)
    };
    let input = &coded.input;
    let quasi: Vec<String> = input.quasi.iter().map(|&a| input.schema.attributes[a].name.clone()).collect();
    let settled = settled.ok_or(AnonymizeError::SaysNothing)?;
    let written = write::release(place, config, input, settled, &aggregates, &terms.models, insertion.as_ref())?;
    Ok(Anonymized {
        rows: input.batch.rows() as u64,
        to_release: table.records(),
        swallowed: input.swallowed,
        quasi,
        labels: summary::labels(input),
        people: summary::people(&coded.records, &recoded),
        risk_before: summary::raw_risk(&coded.records),
        transformation: config.anonymize.transformation,
        recoded,
        before: Checker::new(&table, &terms)?.raw_worth(&table.lattice().bottom()),
        measure,
        strategy: config.anonymize.strategy,
        lattice: table.lattice().approximate_size(),
        risk: written.risk,
        rare_sensitive_cells: written.hidden,
        aggregated: written.aggregated,
        ceiled,
        warnings: input.schema.warnings(),
        seconds: begun.elapsed().as_secs_f64(),
    })
}

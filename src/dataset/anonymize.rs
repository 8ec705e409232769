//! `throng anonymize`: a data set becomes a release.

use super::aggregate::{self, Aggregated};
use super::ceiling::{self, Ceiled};
use super::coded::coded;
use super::error::{AnonymizeError, problem};
use super::search::{Attended, Searched, possible, searched, terms};
use super::summary::{self, People, RawRisk};
use super::write;
use crate::anonymity::lattice::check::Checker;
use crate::anonymity::lattice::passes::Recoded;
use crate::anonymity::lattice::search::Strategy;
use crate::anonymity::lattice::until::Until;
use crate::anonymity::quality::{Measure, Worth};
use crate::config::{Config, Transformation};
use crate::release::verified::Risk;
use std::time::Instant;

/// What a data set became.
#[derive(Debug)]
pub struct Anonymized {
    /// Records that were read.
    pub rows: u64,
    /// Those of them that `anonymize.released` marks; all where it names no attribute.
    pub to_release: u64,
    /// Lines that a quote left open has swallowed: records that were read as part of another one.
    pub swallowed: u64,
    /// Names of the quasi attributes, in the order of the schema and of every policy.
    pub quasi: Vec<String>,
    /// By quasi attribute and level: what it shows, in words.
    pub labels: Vec<Vec<String>>,
    /// As configured: one policy for all records, or one a pass.
    pub transformation: Transformation,
    /// The policies, by which of them each record leaves, and how many are suppressed.
    pub recoded: Recoded,
    /// Every measure of the records as they are, nothing generalized.
    pub before: Worth,
    /// The measure that the search has optimized.
    pub measure: Measure,
    /// The way through the lattice, as configured.
    pub strategy: Strategy,
    /// Number of policies; approximate, since there may be more than 128 bits can count.
    pub lattice: f64,
    /// Of the lines that leave, as verification has counted them.
    pub risk: Risk,
    /// Of the records to be released, were they to leave as they are.
    pub risk_before: RawRisk,
    /// None where every record counts for itself.
    pub people: Option<People>,
    /// Sensitive cells that leave as `*`: those of rare values, and those that hide them.
    pub rare_sensitive_cells: u64,
    /// Attributes whose cells are aggregates, not truths.
    pub aggregated: Vec<Aggregated>,
    /// What a ceiling came to, where one was asked for. Everything else here is of true records alone.
    pub ceiled: Option<Ceiled>,
    /// What the schema says twice.
    pub warnings: Vec<String>,
    /// Wall time of all of it, reading and writing included.
    pub seconds: f64,
}

/// Anonymizes the file that `config` names as its source into the one that it names as its sink.
///
/// Memory: the records as codes, 4 bytes a cell, and three times the encoded output.
///
/// # Errors
/// See [`AnonymizeError`]; no line has been written then, but where writing itself failed.
pub fn anonymize(config: &Config, file: &str, attended: Attended<'_>) -> Result<Anonymized, AnonymizeError> {
    let begun = Instant::now();
    if !config.treatment.rules().is_empty() {
        let key = if config.treatment.rule.is_empty() { "treatment.preset" } else { "treatment.rule" };
        let message = "one policy is looked for that fits all records; attributes are treated by rules in streams only";
        let remedy = "remove the key, or run the file through the daemon (throng run); [[anonymize.microaggregation]] aggregates numbers here";
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
    let place = write::ready(config)?;
    let mut coded = coded(config, file, attended.note)?;
    let aggregates = aggregate::asked(config, file, &coded.input.schema)?;
    let measure = config.anonymize.measure;
    let terms = terms(config, file, &coded)?;
    let searching = Instant::now();
    let clock = || searching.elapsed();
    let until = Until::new(&clock, config.anonymize.time_limit, attended.stop);
    let wanted = ceiling::wanted(config, file, &coded.input)?;
    let (Searched { recoded, settled, table }, insertion, ceiled) = if let Some(wanted) = wanted {
        let (searched, insertion, ceiled) = ceiling::ceiled(config, &mut coded, &terms, &wanted, until, attended)?;
        (searched, Some(insertion), Some(ceiled))
    } else {
        let searched = searched(config, &mut coded, &aggregates, &terms, until, attended.watch)?;
        possible(&coded, &searched.recoded, &searched.table, &terms, until)?;
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

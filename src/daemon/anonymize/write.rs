//! The treated records as lines, verified and written.

use super::AnonymizeError;
use super::aggregate::{Aggregated, Asked, terms as aggregate_terms};
use super::claims;
use super::hide::Settled;
use super::read::Input;
use crate::anonymity::privacy::Model;
use crate::anonymity::treatment::proposal::{ProposedGroup, Run};
use crate::config::{Config, Format as Spelling};
use crate::daemon::from_file::file_format;
use crate::daemon::run_error::RunError;
use crate::io::file::{FileSink, Format, GroupColumns, SinkError, whole};
use crate::records::codebook::CellId;
use crate::records::digest::NameDigest;
use crate::records::line::{LineFormat, LineLayout};
use crate::release::aggregates::verify_aggregates;
use crate::release::ledger::Ledger;
use crate::release::models::verify_models;
use crate::release::population::verify_population;
use crate::release::repetition::LineLimit;
use crate::release::verified::{Risk, Verified};
use crate::release::verify::{Given, GroupTerms, Needs, verify};
use std::collections::BTreeMap;
use std::path::Path;

/// What was written.
pub struct Written {
    pub risk: Risk,
    /// Sensitive cells that leave as `*`.
    pub hidden: u64,
    pub aggregated: Vec<Aggregated>,
}

/// Writes what was settled.
pub fn release(
    config: &Config,
    input: &Input,
    settled: Settled,
    aggregates: &[Asked],
    models: &[Model],
) -> Result<Written, AnonymizeError> {
    let k = config.privacy.crowd();
    let Settled { rows, cells, aggregated, hidden, .. } = settled;
    let attributes = input.leaving.clone();
    let schema = &input.schema;
    let format = file_format(config.sink.format(), config.sink.separator);
    let names: Vec<&str> = attributes.iter().map(|&a| schema.attributes[a].name.as_str()).collect();
    let layout = LineLayout::new(
        match config.sink.format() {
            Spelling::Csv => LineFormat::Csv { separator: u8::try_from(config.sink.separator).unwrap_or(b',') },
            Spelling::Json | Spelling::Parquet => LineFormat::Json,
        },
        &names,
    );
    let proposed = proposal(input, &attributes, &rows, &cells, &layout);
    let digest = NameDigest::new(&input.key);
    let terms = [GroupTerms {
        quasi: attributes.iter().map(|a| input.quasi.contains(a)).collect(),
        sensitive: attributes.iter().map(|a| input.sensitive.contains(a)).collect(),
        attributes: attributes.clone(),
        layout: layout.clone(),
        base: digest.digest("all"),
        beside: schema.attributes.iter().map(|a| digest.digest(&format!("beside {}", a.name))).collect(),
        // The models of a data set are verified over all its lines, below.
        protected: Vec::new(),
        listed: Vec::new(),
        narrowing: None,
        lines: LineLimit::None,
    }];
    let (ledger, subjects) = (Ledger::new(k, 0, 1), &input.batch.subjects);
    let given = Given { subjects, columns: &input.batch.columns, waiting: 0, sequence: 0, age_ms: 0 };
    let needs = Needs { k, batch_crowd: 0 };
    let verified = verify(vec![proposed], &given, &terms, &input.books, ledger.at(0), needs)?;
    let quasi = &terms[0].quasi;
    verify_models(&verified, 0, &layout, quasi, &claims::of_values(input, &attributes, models))?;
    let population = claims::population(input, &attributes, aggregates);
    verify_population(&verified, 0, &layout, &population, &claims::of_population(models))?;
    let aggregate_terms = aggregate_terms(input, &attributes, aggregates);
    verify_aggregates(&verified, 0, &layout, quasi, &aggregate_terms, subjects, k)?;
    let columns = GroupColumns { name: "all".into(), columns: names.iter().map(|&n| n.to_owned()).collect() };
    write(&config.sink.path, columns, format, &verified)?;
    Ok(Written { risk: verified.risk(), hidden, aggregated })
}

/// Writes the lines whole or not at all: a disk that is full leaves what was there before.
fn write(path: &Path, columns: GroupColumns, format: Format, verified: &Verified) -> Result<(), AnonymizeError> {
    let group = columns.name.clone();
    let fill = |path: &Path| {
        let mut sink = FileSink::open(path, &[columns], format, &[])?;
        let mut lines = Vec::new();
        for line in verified.lines(0) {
            lines.extend_from_slice(line.bytes);
            lines.push(b'\n');
        }
        sink.append(0, &lines)?;
        sink.sync().map(drop)
    };
    let found = std::fs::metadata(path).ok();
    // Standard output is no file; what is neither file nor directory is refused when it is opened.
    if path == Path::new("-") || found.is_some_and(|found| !found.is_file() && !found.is_dir()) {
        return fill(path).map_err(|error| RunError::from(error).into());
    }
    let unnamed = |source| RunError::from(SinkError::Open { path: path.to_owned(), source });
    let (place, unfinished) = whole::beside(path).map_err(unnamed)?;
    let _claimed = whole::claim(&place).map_err(|_| RunError::from(SinkError::Locked { path: path.to_owned() }))?;
    let named = |()| {
        let fault = |source| SinkError::Write { path: path.to_owned(), byte: 0, source };
        let (from, to) = match format {
            Format::Parquet => (unfinished.join(&group), place.join(&group)),
            Format::Ndjson | Format::Csv { .. } => (unfinished.clone(), place.clone()),
        };
        if to.is_dir() {
            std::fs::remove_dir_all(&to).map_err(fault)?;
        }
        if format == Format::Parquet {
            std::fs::create_dir_all(&place).map_err(fault)?;
        }
        whole::name(&from, &to).map_err(fault)
    };
    let written = fill(&unfinished).map_err(|error| error.at(path)).and_then(named);
    if written.is_err() || format == Format::Parquet {
        whole::forget(&unfinished);
    }
    written.map_err(|error| RunError::from(error).into())
}

/// One line a distinct tuple, sorted by their bytes, with the rows that it stands for.
fn proposal(
    input: &Input,
    attributes: &[usize],
    rows: &[usize],
    cells: &[Vec<CellId>],
    layout: &LineLayout,
) -> ProposedGroup {
    let mut lines: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
    let mut line = Vec::new();
    for (at, &row) in rows.iter().enumerate() {
        line.clear();
        let texts = attributes.iter().zip(cells).map(|(&a, column)| input.books[a].text(column[at]));
        layout.write(texts, &mut line);
        match lines.get_mut(&line) {
            Some(rows) => rows.push(row as u32),
            None => drop(lines.insert(line.clone(), vec![row as u32])),
        }
    }
    let mut proposed = ProposedGroup::default();
    for (line, rows) in lines {
        let (start, first) = (proposed.arena.len(), proposed.rows.len());
        proposed.arena.extend_from_slice(&line);
        proposed.rows.extend(rows);
        proposed.runs.push(Run { line: start..proposed.arena.len(), rows: first..proposed.rows.len() });
    }
    proposed
}

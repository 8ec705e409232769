//! The treated records as lines, verified and written.

use super::aggregate::{AggregateQuestion, Aggregated, terms as aggregate_terms};
use super::claims;
use super::error::AnonymizeError;
use super::hide::Settled;
use super::read::Input;
use crate::anonymity::privacy::Model;
use crate::anonymity::treatment::proposal::{ProposedGroup, Run};
use crate::codec::{CatalogGroup, LineLayout};
use crate::config::{Config, Used, placed};
use crate::io::file::{Replacement, whole};
use crate::ledger::per_subject::Ledger;
use crate::records::codebook::{CellId, Codebook};
use crate::records::digest::NameDigest;
use crate::records::holders::Holders;
use crate::release::aggregates::verify_aggregates;
use crate::release::ceiling::{CeilingTerms, Mixed, verify_ceiling};
use crate::release::given::{Given, GroupTerms};
use crate::release::models::verify_models;
use crate::release::population::verify_population;
use crate::release::repetition::LineLimit;
use crate::release::verified::{Risk, Verified};
use crate::release::verify::verify;
use crate::start::reading::{file_format, line_format};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What was written.
pub struct Written {
    pub risk: Risk,
    /// Sensitive cells that leave as `*`.
    pub hidden: u64,
    pub aggregated: Vec<Aggregated>,
}

/// What a ceiling adds to what was settled.
#[derive(Clone, Debug, Default)]
pub struct Insertion {
    /// Like which of the settled records, showing which sensitive cell, how many.
    pub counterfeits: Vec<(usize, CellId, u32)>,
    /// The groups of the catalog: one settled record of each class, and how many counterfeits show which cell.
    pub groups: Vec<(Vec<usize>, Vec<(CellId, u64)>)>,
    /// Lines of a class at least.
    pub lines: usize,
    /// How far a record is generalized at most.
    pub h: f64,
    /// Where the catalog goes.
    pub catalog: PathBuf,
}

/// The group that leaves.
const GROUP: &str = "all";

/// The files that [`anonymize`](super::anonymize()) would write or remove for its release.
#[must_use]
pub fn files(config: &Config) -> Vec<Used> {
    let mut files = Replacement::files(&placed(&config.sink.path, GROUP));
    files.extend(config.anonymize.ceiling.catalog.iter().map(|path| Used::file("the catalog of counterfeits", path)));
    files
}

/// The place of the release, looked at and locked before the work.
pub fn ready(config: &Config) -> Result<Replacement, AnonymizeError> {
    if let Some(path) = &config.anonymize.ceiling.catalog {
        whole::check(path)?;
    }
    let format = file_format(config.sink.format(), config.source.separator);
    Ok(Replacement::ready(&placed(&config.sink.path, GROUP), format)?)
}

/// Writes what was settled.
pub fn release(
    place: Replacement,
    config: &Config,
    input: &Input,
    settled: Settled,
    aggregates: &[AggregateQuestion],
    models: &[Model],
    insertion: Option<&Insertion>,
) -> Result<Written, AnonymizeError> {
    let k = config.privacy.crowd();
    let Settled { rows, cells, aggregated, hidden, .. } = settled;
    let attributes = input.leaving.clone();
    let names = names(input);
    let terms = [group_terms(config, input)];
    let layout = terms[0].layout.clone();
    let proposed = proposal(&input.books, &attributes, &rows, &cells, &layout);
    let subjects = &input.batch.subjects;
    let given = Given { subjects, columns: &input.batch.columns, waiting: 0, sequence: 0, age_ms: 0 };
    let verified = verify(vec![proposed], &given, &terms, &input.books, Ledger::default().at(0), k)?;
    let quasi = &terms[0].quasi;
    verify_models(&verified, 0, &layout, quasi, &claims::of_values(input, &attributes, models))?;
    let population = claims::population(input, &attributes, aggregates);
    verify_population(&verified, 0, &layout, &population, &claims::of_population(models))?;
    let aggregate_terms = aggregate_terms(input, &attributes, aggregates);
    verify_aggregates(&verified, 0, &layout, quasi, &aggregate_terms, subjects, k)?;
    let mut lines = Vec::new();
    if let Some(insertion) = insertion {
        let mixed = mixed(insertion, input, (&attributes, &cells), (&verified, &layout), quasi, k)?;
        for line in mixed.lines() {
            lines.extend_from_slice(line);
            lines.push(b'\n');
        }
        // Without its catalog the release would be untruthful: it is there first.
        whole::write(&insertion.catalog, mixed.catalog())?;
    } else {
        for line in verified.lines(0) {
            lines.extend_from_slice(line.bytes);
            lines.push(b'\n');
        }
    }
    place.fill(&columns(&names), |write| write(&lines))?;
    Ok(Written { risk: verified.risk(), hidden, aggregated })
}

/// The attributes that leave, by name.
pub fn names(input: &Input) -> Vec<&str> {
    input.leaving.iter().map(|&a| input.schema.attributes[a].name.as_str()).collect()
}

/// The columns of the group that leaves.
pub fn columns(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// What verification is told of the group.
pub fn group_terms(config: &Config, input: &Input) -> GroupTerms {
    let (attributes, schema) = (input.leaving.clone(), &input.schema);
    let digest = NameDigest::new(&input.key);
    GroupTerms {
        quasi: attributes.iter().map(|a| input.quasi.contains(a)).collect(),
        sensitive: attributes.iter().map(|a| input.sensitive.contains(a)).collect(),
        attributes,
        layout: LineLayout::new(&line_format(config, schema), &names(input)),
        base: digest.digest(GROUP),
        sensitive_bases: schema.attributes.iter().map(|a| digest.digest(&format!("beside {}", a.name))).collect(),
        // The models of a data set are verified over all its lines, below.
        protected: Vec::new(),
        narrowing: None,
        lines: LineLimit::None,
        shown_beside: Vec::new(),
        holders_beside: Holders::default(),
    }
}

/// The verified lines with the counterfeits among them, and the catalog, verified in turn.
fn mixed(
    insertion: &Insertion,
    input: &Input,
    (attributes, cells): (&[usize], &[Vec<CellId>]),
    (verified, layout): (&Verified, &LineLayout),
    quasi: &[bool],
    people: usize,
) -> Result<Mixed, AnonymizeError> {
    let text = |at: usize, cell: CellId| input.books[attributes[at]].text(cell);
    let sensitive = quasi.iter().position(|quasi| !quasi).unwrap_or_default();
    let mut counterfeits = Vec::new();
    for &(like, value, count) in &insertion.counterfeits {
        let cell = |(at, column): (usize, &Vec<CellId>)| text(at, if at == sensitive { value } else { column[like] });
        let texts: Vec<&str> = cells.iter().enumerate().map(cell).collect();
        let mut line = Vec::new();
        layout.write(&texts, &mut line);
        counterfeits.extend(std::iter::repeat_n(line, count as usize));
    }
    let names: Vec<String> = attributes.iter().map(|&a| input.schema.attributes[a].name.clone()).collect();
    let class = |&like: &usize| {
        let quasi = cells.iter().enumerate().filter(|(at, _)| *at != sensitive);
        quasi.map(|(at, column)| text(at, column[like]).to_owned()).collect::<Vec<String>>()
    };
    let group = |(classes, counts): &(Vec<usize>, Vec<(CellId, u64)>)| {
        let mut group = CatalogGroup {
            attributes: names.clone(),
            sensitive: names[sensitive].clone(),
            classes: classes.iter().map(class).collect(),
            counterfeits: counts.iter().map(|&(value, count)| (text(sensitive, value).to_owned(), count)).collect(),
        };
        // Their order would tell which class was filled, and which conceals.
        group.classes.sort_unstable();
        group.counterfeits.sort_unstable();
        group.line() + "\n"
    };
    let mut catalog: Vec<String> = insertion.groups.iter().map(group).collect();
    catalog.sort_unstable();
    let loss = |at: usize, text: &str| {
        let book = &input.books[attributes[at]];
        book.cell_of(text).map(|cell| f64::from(book.loss(cell)))
    };
    let book = &input.books[attributes[sensitive]];
    let is_exact = |text: &str| book.exact_coverage_of(text).is_some();
    let (lines, h) = (insertion.lines, insertion.h);
    let terms = CeilingTerms { quasi, sensitive, lines, people, h, loss: &loss, is_exact: &is_exact };
    Ok(verify_ceiling(verified, 0, layout, &counterfeits, catalog.concat().into_bytes(), &terms)?)
}

/// One line a distinct tuple, sorted by their bytes, with the rows that it stands for.
pub fn proposal(
    books: &[Codebook],
    attributes: &[usize],
    rows: &[usize],
    cells: &[Vec<CellId>],
    layout: &LineLayout,
) -> ProposedGroup {
    let mut lines: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
    let (mut line, mut texts) = (Vec::new(), Vec::with_capacity(attributes.len()));
    for (at, &row) in rows.iter().enumerate() {
        line.clear();
        texts.clear();
        texts.extend(attributes.iter().zip(cells).map(|(&a, column)| books[a].text(column[at])));
        layout.write(&texts, &mut line);
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

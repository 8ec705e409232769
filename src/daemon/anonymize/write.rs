//! The treated records as lines, verified and written.

use super::AnonymizeError;
use super::read::Input;
use crate::anonymity::lattice::coding::put_in_order;
use crate::anonymity::lattice::table::NOBODY;
use crate::anonymity::privacy::{Ground, Model};
use crate::anonymity::treatment::proposal::{ProposedGroup, Run};
use crate::config::{Config, Format};
use crate::daemon::from_file::file_format;
use crate::daemon::run_error::RunError;
use crate::io::file::delivery::FileDelivery;
use crate::io::file::{FileSink, GroupColumns};
use crate::records::codebook::{CellId, SUPPRESSED};
use crate::records::digest::NameDigest;
use crate::records::line::{LineFormat, LineLayout};
use crate::records::schema::Role;
use crate::release::ledger::Ledger;
use crate::release::models::{Claim, Distance, SensitiveTerms, verify_models};
use crate::release::sink::{Envelope, Positions, Sink};
use crate::release::verified::Risk;
use crate::release::verify::{GroupTerms, verify};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What was written.
pub struct Written {
    pub risk: Risk,
    /// Sensitive cells suppressed for want of support of their own value.
    pub rare: u64,
}

/// Writes the records that `suppressed` does not name, at `policy`.
pub fn release(
    config: &Config,
    input: &Input,
    policy: &[u8],
    suppressed: &[bool],
    models: &[Model],
) -> Result<Written, AnonymizeError> {
    let schema = &input.schema;
    let attributes: Vec<usize> = schema.releasable().collect();
    let kept = |row: &usize| !suppressed[*row] && input.released.as_ref().is_none_or(|marks| marks[*row]);
    let rows: Vec<usize> = (0..input.batch.rows()).filter(kept).collect();
    let k = config.privacy.k;
    let mut rare = 0;
    let cells: Vec<Vec<CellId>> = attributes
        .iter()
        .map(|&attribute| {
            let (book, column) = (&input.books[attribute], &input.batch.columns[attribute]);
            let level = input.quasi.iter().position(|&a| a == attribute).map_or(0, |at| usize::from(policy[at]));
            let mut cells: Vec<CellId> = rows.iter().map(|&row| book.cell(column[row], level)).collect();
            if schema.attributes[attribute].role == Role::Sensitive {
                rare += suppress_rare(&mut cells, &rows, input, k);
            }
            cells
        })
        .collect();
    let format = file_format(config.sink.format(), config.sink.separator);
    let names: Vec<&str> = attributes.iter().map(|&a| schema.attributes[a].name.as_str()).collect();
    let layout = LineLayout::new(
        match config.sink.format() {
            Format::Csv => LineFormat::Csv { separator: u8::try_from(config.sink.separator).unwrap_or(b',') },
            Format::Json | Format::Parquet => LineFormat::Json,
        },
        &names,
    );
    let claims = claims(input, &attributes, models);
    let proposed = proposal(input, &attributes, &rows, &cells, &layout);
    let digest = NameDigest::new(&input.key);
    let terms = GroupTerms {
        quasi: attributes.iter().map(|a| input.quasi.contains(a)).collect(),
        sensitive: attributes.iter().map(|a| input.sensitive.contains(a)).collect(),
        attributes: attributes.clone(),
        layout: layout.clone(),
        base: digest.digest("all"),
        beside: schema.attributes.iter().map(|a| digest.digest(&format!("beside {}", a.name))).collect(),
        // The models of a data set are verified over all its lines, below.
        protected: Vec::new(),
    };
    let ledger = Ledger::new(k, 0, 1);
    let terms = [terms];
    let verified = verify(vec![proposed], &input.batch.subjects, &terms, &input.books, ledger.at(0), k, 0)?;
    verify_models(&verified, 0, &layout, &terms[0].quasi, &claims)?;
    let columns = GroupColumns { name: "all".into(), columns: names.iter().map(|&n| n.to_owned()).collect() };
    let sink = FileSink::open(&config.sink.path, &[columns], format, &[]).map_err(RunError::from)?;
    let mut delivery = FileDelivery::new(sink, None, None, vec!["all".into()], Vec::new(), String::new(), Vec::new());
    delivery.begin().map_err(RunError::from)?;
    let envelope = Envelope {
        sequence: 0,
        attempt: 0,
        clock_ms: 0,
        positions: &Positions::new(),
        rejected: &[],
        subjects: &input.batch.subjects,
        coordinates: &input.batch.coordinates,
    };
    delivery.deliver(&verified, &envelope)?;
    Ok(Written { risk: verified.risk(), rare })
}

/// What the models claim of each sensitive attribute, in the words of the verifier.
fn claims(input: &Input, attributes: &[usize], models: &[Model]) -> Vec<SensitiveTerms> {
    let of = |(position, &attribute): (usize, &usize)| {
        let claim = |model: &Model| match model {
            &Model::DistinctDiversity { l, .. } => Some(Claim::Distinct { l }),
            &Model::EntropyDiversity { l, .. } => Some(Claim::Entropy { l }),
            &Model::RecursiveDiversity { c, l, .. } => Some(Claim::Recursive { c, l }),
            Model::Closeness { t, ground, .. } => {
                let ground = match ground {
                    Ground::Equal => Distance::Equal,
                    Ground::Ordered => Distance::Ordered,
                    Ground::Hierarchical(levels) => Distance::Hierarchical(levels.clone()),
                };
                Some(Claim::Closeness { t: *t, ground })
            }
            Model::KAnonymity { .. } | Model::KMap { .. } | Model::Presence { .. } => None,
        };
        let claims = models.iter().filter(|model| model.attribute() == Some(position)).filter_map(claim).collect();
        let (book, column) = (&input.books[attribute], &input.batch.columns[attribute]);
        let released = |row: usize| input.released.as_ref().is_none_or(|marks| marks[row]);
        let mut counts: BTreeMap<u32, f64> = BTreeMap::new();
        for (row, &code) in column.iter().enumerate() {
            *counts.entry(code).or_default() += f64::from(u8::from(released(row)));
        }
        let all: f64 = counts.values().sum();
        // The order of the search's domain, which an ordered distance goes by.
        let mut codes: Vec<u32> = counts.keys().copied().collect();
        put_in_order(book, &mut codes);
        SensitiveTerms {
            column: attributes.iter().position(|&a| a == attribute).unwrap_or_default(),
            texts: codes.iter().map(|&code| book.text(book.cell(code, 0)).to_owned()).collect(),
            shares: codes.iter().map(|code| counts[code] / all).collect(),
            claims,
        }
    };
    input.sensitive.iter().enumerate().map(of).collect()
}

/// Suppresses the cells of values that fewer than k subjects have among the rows; how many.
fn suppress_rare(cells: &mut [CellId], rows: &[usize], input: &Input, k: usize) -> u64 {
    let mut support: HashMap<CellId, HashSet<u32>> = HashMap::new();
    for (&cell, &row) in cells.iter().zip(rows) {
        let known = support.entry(cell).or_default();
        let subject = input.subjects.as_ref().map_or(row as u32, |subjects| subjects[row]);
        if known.len() < k && subject != NOBODY {
            known.insert(subject);
        }
    }
    let mut rare = 0;
    for cell in cells.iter_mut().filter(|cell| **cell != SUPPRESSED) {
        if support.get(cell).is_none_or(|subjects| subjects.len() < k) {
            *cell = SUPPRESSED;
            rare += 1;
        }
    }
    rare
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

//! The records that leave as lines: verified part by part, and written once all parts are.

use super::aggregate::{self, AggregateQuestion};
use super::claims::{self, Members};
use super::data::Data;
use super::error::AnonymizeError;
use super::kept::Kept;
use super::lines::Lines;
use super::parts::{Part, Parts, Seen};
use super::read::Input;
use super::source::{OnStep, Step};
use crate::anonymity::privacy::Model;
use crate::anonymity::treatment::proposal::{ProposedGroup, Run};
use crate::config::{Config, Used, placed};
use crate::io::file::{Replacement, SinkError, whole};
use crate::release::aggregates::verify_aggregates;
use crate::release::ceiling::{CeilingTerms, Mixed, verify_ceiling};
use crate::release::given::{Given, GroupTerms};
use crate::release::models::{SensitiveTerms, verify_models};
use crate::release::parts::Parts as Verification;
use crate::release::population::{Claim, Population, verify_population};
use crate::release::repetition::LineLimit;
use crate::release::verified::{Risk, Verified};
use crate::start::reading::{file_format, line_format};
use std::collections::BTreeMap;
use std::path::PathBuf;
use throng_core::values::codebook::{CellId, Code, SUPPRESSED};
use throng_core::values::digest::NameDigest;
use throng_core::values::holders::Holders;
use throng_formats::{CatalogGroup, LineLayout};

/// What a ceiling adds to what was settled. Classes are those that were found.
#[derive(Clone, Debug, Default)]
pub struct Insertion {
    /// In which class, showing which sensitive cell, how many.
    pub counterfeits: Vec<(u32, CellId, u32)>,
    /// The groups of the catalog: the classes, and how many counterfeits show which cell.
    pub groups: Vec<(Vec<u32>, Vec<(CellId, u64)>)>,
    /// Lines of a class at least.
    pub lines: usize,
    /// How far a record is generalized at most.
    pub h: f64,
    /// Where the catalog goes.
    pub catalog: PathBuf,
}

/// Lines that are written between two steps.
const LINES_A_STEP: u64 = 1 << 12;

/// The one group of a data set that is released at once.
pub const GROUP: &str = "all";

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

/// What is to leave.
pub struct Leaving<'a> {
    pub config: &'a Config,
    pub data: &'a Data,
    pub kept: &'a Kept,
    pub aggregates: &'a [AggregateQuestion],
    pub models: &'a [Model],
    pub insertion: Option<&'a Insertion>,
}

/// Verifies the parts, and writes their lines to `place` once all have been. Gives their risk.
pub fn release(
    place: Replacement,
    leaving: &Leaving<'_>,
    (parts, seen): (&Parts, Seen),
    step: OnStep<'_>,
) -> Result<Risk, AnonymizeError> {
    let Leaving { config, data, .. } = *leaving;
    let input = &data.input;
    let terms = group_terms(config, input);
    let verification = Verification::new(data.codes.rows, seen.told, terms, &input.books, config.privacy.crowd())?;
    let claims = claims::of_population(leaving.models);
    let members = Members::of(data, &claims)?;
    let mut verifying = Verifying {
        leaving,
        verification,
        values: claims::of_values(data, leaving.models),
        population: (members.population(input, leaving.aggregates), claims),
        lines: Lines::new(data.codes.directory.as_deref())?,
        mixed: None,
    };
    let of = parts.len() as u64;
    for part in 0..parts.len() {
        step(Step::Verifying { part: part as u64, of })?;
        verifying.part(parts.read(part)?)?;
    }
    // From here on, and not before, anything may leave.
    let Verifying { verification, lines, mixed, .. } = verifying;
    let whole = verification.whole()?;
    let count = lines.count;
    step(Step::Writing { lines: 0, of: count })?;
    let columns: Vec<String> = names(input).into_iter().map(str::to_owned).collect();
    if let Some((mixed, catalog)) = mixed.as_ref().zip(leaving.insertion.map(|insertion| &insertion.catalog)) {
        // Without its catalog the release would be untruthful: it is there first.
        whole::write(catalog, mixed.catalog())?;
        place.fill::<SinkError>(&columns, |write| mixed.lines().try_for_each(|line| write(&[line, b"\n"].concat())))?;
        return Ok(whole.risk());
    }
    let (mut done, mut told) = (0, 0);
    place.fill(&columns, |write| {
        lines.each(&whole, data.room.left() / 2, |line, times| {
            (0..times).try_for_each(|_| write(line))?;
            done += u64::from(times);
            if done - told >= LINES_A_STEP {
                told = done;
                step(Step::Writing { lines: done, of: count })?;
            }
            Ok(())
        })
    })?;
    Ok(whole.risk())
}

/// A release whose parts are being verified.
struct Verifying<'a> {
    leaving: &'a Leaving<'a>,
    verification: Verification<'a>,
    values: Vec<SensitiveTerms>,
    population: (Population<'a>, Vec<Claim>),
    lines: Lines,
    /// With counterfeits: the lines of the only part with them, and the catalog.
    mixed: Option<Mixed>,
}

impl Verifying<'_> {
    /// Makes a part into lines, verifies them, and hands them on.
    fn part(&mut self, part: Part) -> Result<(), AnonymizeError> {
        let Leaving { config, data, kept, aggregates, insertion, .. } = *self.leaving;
        let (input, k) = (&data.input, config.privacy.crowd());
        let layout = self.verification.terms().layout.clone();
        let quasi = self.verification.terms().quasi.clone();
        let proposed = proposal(input, kept, &part, &layout);
        let mut own: Vec<Vec<Code>> = vec![Vec::new(); input.schema.attributes.len()];
        for (&attribute, codes) in input.leaving.iter().zip(part.codes) {
            own[attribute] = codes;
        }
        let given = Given { subjects: &part.digests, columns: &own, waiting: 0, sequence: 0, age_ms: 0 };
        let verified = self.verification.part(proposed, &given, &part.numbers)?;
        verify_models(&verified, 0, &layout, &quasi, &self.values)?;
        verify_population(&verified, 0, &layout, &self.population.0, &self.population.1)?;
        let terms = aggregate::terms(input, &own, aggregates);
        verify_aggregates(&verified, 0, &layout, &quasi, &terms, &part.digests, k)?;
        match insertion {
            Some(insertion) => self.mixed = Some(mixed(insertion, input, kept, (&verified, &layout), &quasi, k)?),
            None => self.lines.take(&verified)?,
        }
        Ok(())
    }
}

/// The attributes that leave, by name.
fn names(input: &Input) -> Vec<&str> {
    input.leaving.iter().map(|&a| input.schema.attributes[a].name.as_str()).collect()
}

/// What verification is told of the group.
fn group_terms(config: &Config, input: &Input) -> GroupTerms {
    let (attributes, schema) = (input.leaving.clone(), &input.schema);
    let digest = NameDigest::new(&input.key);
    GroupTerms {
        quasi: attributes.iter().map(|a| input.quasi.contains(a)).collect(),
        sensitive: attributes.iter().map(|a| input.sensitive.contains(a)).collect(),
        attributes,
        layout: LineLayout::new(&line_format(config, schema), &names(input)),
        base: digest.digest(GROUP),
        sensitive_bases: schema.attributes.iter().map(|a| digest.digest(&format!("beside {}", a.name))).collect(),
        // The models of a data set are verified over all its lines.
        protected: Vec::new(),
        narrowing: None,
        lines: LineLimit::None,
        ranges: false,
        shown_beside: Vec::new(),
        holders_beside: Holders::default(),
    }
}

/// The verified lines with the counterfeits among them, and the catalog, verified in turn.
fn mixed(
    insertion: &Insertion,
    input: &Input,
    kept: &Kept,
    (verified, layout): (&Verified, &LineLayout),
    quasi: &[bool],
    people: usize,
) -> Result<Mixed, AnonymizeError> {
    let book = |at: usize| &input.books[input.leaving[at]];
    let sensitive = quasi.iter().position(|quasi| !quasi).unwrap_or_default();
    // The texts of a class, by quasi attribute that leaves.
    let class = |&found: &u32| -> Vec<String> {
        let quasi = (0..quasi.len()).filter(|&at| at != sensitive).zip(kept.cells(found));
        quasi.map(|(at, &cell)| book(at).text(cell).to_owned()).collect()
    };
    let mut counterfeits = Vec::new();
    for &(found, value, count) in &insertion.counterfeits {
        let mut texts = class(&found);
        texts.insert(sensitive, book(sensitive).text(value).to_owned());
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut line = Vec::new();
        layout.write(&texts, &mut line);
        counterfeits.extend(std::iter::repeat_n(line, count as usize));
    }
    let names: Vec<String> = names(input).into_iter().map(str::to_owned).collect();
    let group = |(classes, counts): &(Vec<u32>, Vec<(CellId, u64)>)| {
        let shown = |&(value, count): &(CellId, u64)| (book(sensitive).text(value).to_owned(), count);
        let mut group = CatalogGroup {
            attributes: names.clone(),
            sensitive: names[sensitive].clone(),
            classes: classes.iter().map(class).collect(),
            counterfeits: counts.iter().map(shown).collect(),
        };
        // Their order would tell which class was filled, and which conceals.
        group.classes.sort_unstable();
        group.counterfeits.sort_unstable();
        group.line() + "\n"
    };
    let mut catalog: Vec<String> = insertion.groups.iter().map(group).collect();
    catalog.sort_unstable();
    let loss = |at: usize, text: &str| book(at).cell_of(text).map(|cell| f64::from(book(at).loss(cell)));
    let is_exact = |text: &str| book(sensitive).exact_coverage_of(text).is_some();
    let (lines, h) = (insertion.lines, insertion.h);
    let terms = CeilingTerms { quasi, sensitive, lines, people, h, loss: &loss, is_exact: &is_exact };
    Ok(verify_ceiling(verified, 0, layout, &counterfeits, catalog.concat().into_bytes(), &terms)?)
}

/// One line a distinct tuple, sorted by their bytes, with the rows of the part that it stands for.
fn proposal(input: &Input, kept: &Kept, part: &Part, layout: &LineLayout) -> ProposedGroup {
    // By attribute that leaves: the cells of quasi attributes are those of the class, others leave exactly or hide.
    let places: Vec<(Option<usize>, Option<usize>)> = input
        .leaving
        .iter()
        .map(|a| (input.quasi.iter().position(|of| of == a), input.sensitive.iter().position(|of| of == a)))
        .collect();
    let mut lines: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
    let (mut line, mut texts) = (Vec::new(), Vec::with_capacity(places.len()));
    for row in 0..part.numbers.len() {
        line.clear();
        texts.clear();
        let class = kept.cells(part.found[row]);
        texts.extend(input.leaving.iter().zip(&places).zip(&part.codes).map(|((&attribute, place), codes)| {
            let book = &input.books[attribute];
            book.text(match *place {
                (Some(quasi), _) => class[quasi],
                (None, Some(sensitive)) if part.hides(row, sensitive) => SUPPRESSED,
                _ => book.cell(codes[row], 0),
            })
        }));
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

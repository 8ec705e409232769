//! Builds and verifies lines part by part, and writes them after all are verified.

use super::class_lookup::ReleasedClasses;
use super::dataset_source::{AnonymizationStep, StepCallback};
use super::encoded_dataset::EncodedDataset;
use super::error::AnonymizeError;
use super::input_encoding::DatasetInput;
use super::microaggregated_cells::{self, MicroaggregationTarget};
use super::model_claims::{self, PopulationMembers};
use super::release_parts::{DivisionSummary, ReleasePart, ReleaseParts};
use super::verified_lines::VerifiedLines;
use crate::config::{Config, UsedFile, with_group_name};
use crate::io::file::{OutputColumn, ReleaseTarget, SinkError, atomic_file};
use crate::start::record_formats::{file_format, line_format};
use std::collections::BTreeMap;
use std::path::PathBuf;
use throng_core::counterfeit_catalog::CatalogGroup;
use throng_core::line_encoder::LineLayout;
use throng_core::privacy::ClassPrivacyModel;
use throng_core::release::aggregates::verify_aggregates;
use throng_core::release::ceiling::{CeilingTerms, MixedLines, verify_ceiling};
use throng_core::release::line_limits::LineLimit;
use throng_core::release::models::{SensitiveTerms, verify_models};
use throng_core::release::parts::PartVerifier as Verification;
use throng_core::release::population::{PopulationClaim, PopulationTerms, verify_population};
use throng_core::release::verified_batch::{ReidentificationRisk, ReleasableBatch};
use throng_core::release::verifier_input::{GroupTerms, VerifierInput};
use throng_core::treatment::proposal::{LineRun, ProposedGroup};
use throng_core::values::codebook::{CellId, Code, SUPPRESSED};
use throng_core::values::digest::NameDigest;
use throng_core::values::subjects_by_value::SubjectsByValue;

/// Counterfeits and catalog of a ceiling, by found classes.
#[derive(Clone, Debug, Default)]
pub struct CounterfeitInsertion {
    /// Found class, shown sensitive cell, and counterfeits.
    pub counterfeits: Vec<(u32, CellId, u32)>,
    /// Catalog groups: classes, and counterfeits per cell.
    pub groups: Vec<(Vec<u32>, Vec<(CellId, u64)>)>,
    /// Minimum lines per class.
    pub lines: usize,
    /// Maximum degree of generalization.
    pub h: f64,
    /// Path of the catalog.
    pub catalog: PathBuf,
}

const LINES_PER_STEP: u64 = 1 << 12;

/// Only group of a data set.
pub const DATASET_GROUP: &str = "all";

/// Returns the files that [`anonymize`](super::anonymize()) writes or removes.
#[must_use]
pub fn output_files(config: &Config) -> Vec<UsedFile> {
    let mut files = ReleaseTarget::files(&with_group_name(&config.sink.path, DATASET_GROUP));
    files.extend(
        config.anonymize.ceiling.catalog.iter().map(|path| UsedFile::file("the catalog of counterfeits", path)),
    );
    files
}

/// Checks and locks the output before any work.
pub fn lock_output(config: &Config) -> Result<ReleaseTarget, AnonymizeError> {
    if let Some(path) = &config.anonymize.ceiling.catalog {
        atomic_file::check_writable(path)?;
    }
    let format = file_format(config.sink.format(), config.source.separator);
    Ok(ReleaseTarget::claim_target(&with_group_name(&config.sink.path, DATASET_GROUP), format)?)
}

/// Content of the release.
pub struct ReleaseContent<'a> {
    pub config: &'a Config,
    pub data: &'a EncodedDataset,
    pub kept: &'a ReleasedClasses,
    pub aggregates: &'a [MicroaggregationTarget],
    pub models: &'a [ClassPrivacyModel],
    pub insertion: Option<&'a CounterfeitInsertion>,
}

/// Verifies all parts, then writes their lines to `place`. Returns the re-identification risk.
pub fn verify_and_write(
    place: ReleaseTarget,
    leaving: &ReleaseContent<'_>,
    (parts, seen): (&ReleaseParts, DivisionSummary),
    step: StepCallback<'_>,
) -> Result<ReidentificationRisk, AnonymizeError> {
    let ReleaseContent { config, data, .. } = *leaving;
    let input = &data.input;
    let terms = group_terms(config, input);
    let verification = Verification::new(
        data.codes.rows,
        seen.part_premises,
        terms,
        &input.books,
        config.privacy.required_subjects(),
    )?;
    let claims = model_claims::population_claims(leaving.models);
    let members = PopulationMembers::of(data, &claims)?;
    let mut verifying = PartwiseVerification {
        leaving,
        verification,
        values: model_claims::sensitive_claims(data, leaving.models),
        population: (members.population(input, leaving.aggregates), claims),
        lines: VerifiedLines::new(data.codes.directory.as_deref())?,
        mixed: None,
    };
    let of = parts.len() as u64;
    for part in 0..parts.len() {
        step(AnonymizationStep::Verifying { part: part as u64, of })?;
        verifying.verify_and_store(parts.read(part)?)?;
    }
    // Output is allowed only from here on.
    let PartwiseVerification { verification, lines, mixed, .. } = verifying;
    let whole = verification.finish_release()?;
    let count = lines.count;
    step(AnonymizationStep::Writing { lines: 0, of: count })?;
    let released = input.released_attributes.iter().map(|&a| input.schema.attributes[a].as_ref());
    let columns = OutputColumn::of_attributes(released);
    if let Some((mixed, catalog)) = mixed.as_ref().zip(leaving.insertion.map(|insertion| &insertion.catalog)) {
        // First, because the release is untruthful without it.
        atomic_file::write(catalog, mixed.catalog())?;
        place.write_release::<SinkError>(&columns, |write| {
            mixed.lines().try_for_each(|line| write(&[line, b"\n"].concat()))
        })?;
        return Ok(whole.risk());
    }
    let (mut done, mut told) = (0, 0);
    place.write_release(&columns, |write| {
        lines.visit_sorted(&whole, data.room.bytes_left() / 2, |line, times| {
            (0..times).try_for_each(|_| write(line))?;
            done += u64::from(times);
            if done - told >= LINES_PER_STEP {
                told = done;
                step(AnonymizationStep::Writing { lines: done, of: count })?;
            }
            Ok(())
        })
    })?;
    Ok(whole.risk())
}

struct PartwiseVerification<'a> {
    leaving: &'a ReleaseContent<'a>,
    verification: Verification<'a>,
    values: Vec<SensitiveTerms>,
    population: (PopulationTerms<'a>, Vec<PopulationClaim>),
    lines: VerifiedLines,
    /// Lines of the only part with counterfeits, and the catalog.
    mixed: Option<MixedLines>,
}

impl PartwiseVerification<'_> {
    fn verify_and_store(&mut self, part: ReleasePart) -> Result<(), AnonymizeError> {
        let ReleaseContent { config, data, kept, aggregates, insertion, .. } = *self.leaving;
        let (input, k) = (&data.input, config.privacy.required_subjects());
        let layout = self.verification.terms().layout.clone();
        let quasi = self.verification.terms().quasi.clone();
        let proposed = propose_part_lines(input, kept, &part, &layout);
        let mut own: Vec<Vec<Code>> = vec![Vec::new(); input.schema.attributes.len()];
        for (&attribute, codes) in input.released_attributes.iter().zip(part.codes) {
            own[attribute] = codes;
        }
        let given = VerifierInput { subjects: &part.digests, columns: &own, waiting: 0, sequence: 0, age_ms: 0 };
        let verified = self.verification.verify_part(proposed, &given, &part.numbers)?;
        verify_models(&verified, 0, &layout, &quasi, &self.values)?;
        verify_population(&verified, 0, &layout, &self.population.0, &self.population.1)?;
        let terms = microaggregated_cells::part_aggregate_terms(input, &own, aggregates);
        verify_aggregates(&verified, 0, &layout, &quasi, &terms, &part.digests, k)?;
        match insertion {
            Some(insertion) => {
                self.mixed = Some(mix_counterfeits(insertion, input, kept, (&verified, &layout), &quasi, k)?);
            }
            None => self.lines.add_part(&verified)?,
        }
        Ok(())
    }
}

fn released_names(input: &DatasetInput) -> Vec<&str> {
    input.released_attributes.iter().map(|&a| input.schema.attributes[a].name.as_str()).collect()
}

fn group_terms(config: &Config, input: &DatasetInput) -> GroupTerms {
    let (attributes, schema) = (input.released_attributes.clone(), &input.schema);
    let digest = NameDigest::new(&input.key);
    GroupTerms {
        quasi: attributes.iter().map(|a| input.quasi.contains(a)).collect(),
        sensitive: attributes.iter().map(|a| input.sensitive.contains(a)).collect(),
        attributes,
        layout: line_format(config, schema).layout(&released_names(input)),
        base: digest.digest(DATASET_GROUP),
        sensitive_bases: schema.attributes.iter().map(|a| digest.digest(&format!("beside {}", a.name))).collect(),
        // Models of a data set are verified over all lines.
        protected: Vec::new(),
        narrowing: None,
        lines: LineLimit::None,
        ranges: false,
        shown_elsewhere: Vec::new(),
        holders_elsewhere: SubjectsByValue::default(),
    }
}

/// Both are verified.
fn mix_counterfeits(
    insertion: &CounterfeitInsertion,
    input: &DatasetInput,
    kept: &ReleasedClasses,
    (verified, layout): (&ReleasableBatch, &LineLayout),
    quasi: &[bool],
    people: usize,
) -> Result<MixedLines, AnonymizeError> {
    let book = |at: usize| &input.books[input.released_attributes[at]];
    let sensitive = quasi.iter().position(|quasi| !quasi).unwrap_or_default();
    // Texts by released quasi attribute.
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
    let names: Vec<String> = released_names(input).into_iter().map(str::to_owned).collect();
    let group = |(classes, counts): &(Vec<u32>, Vec<(CellId, u64)>)| {
        let shown = |&(value, count): &(CellId, u64)| (book(sensitive).text(value).to_owned(), count);
        let mut group = CatalogGroup {
            attributes: names.clone(),
            sensitive: names[sensitive].clone(),
            classes: classes.iter().map(class).collect(),
            counterfeits: counts.iter().map(shown).collect(),
        };
        // The original order would reveal which class was filled.
        group.classes.sort_unstable();
        group.counterfeits.sort_unstable();
        group.line() + "\n"
    };
    let mut catalog: Vec<String> = insertion.groups.iter().map(group).collect();
    catalog.sort_unstable();
    let loss = |at: usize, text: &str| book(at).find_cell(text).map(|cell| f64::from(book(at).loss(cell)));
    let is_exact = |text: &str| book(sensitive).exact_coverage_of(text).is_some();
    let (lines, h) = (insertion.lines, insertion.h);
    let terms = CeilingTerms { quasi, sensitive, lines, people, h, loss: &loss, is_exact: &is_exact };
    Ok(verify_ceiling(verified, 0, layout, &counterfeits, catalog.concat().into_bytes(), &terms)?)
}

/// One line per distinct tuple, sorted, with the rows that it represents.
fn propose_part_lines(
    input: &DatasetInput,
    kept: &ReleasedClasses,
    part: &ReleasePart,
    layout: &LineLayout,
) -> ProposedGroup {
    // Quasi attributes take the cells of the class; the others are exact or hidden.
    let places: Vec<(Option<usize>, Option<usize>)> = input
        .released_attributes
        .iter()
        .map(|a| (input.quasi.iter().position(|of| of == a), input.sensitive.iter().position(|of| of == a)))
        .collect();
    let mut lines: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
    let (mut line, mut texts) = (Vec::new(), Vec::with_capacity(places.len()));
    for row in 0..part.numbers.len() {
        line.clear();
        texts.clear();
        let class = kept.cells(part.found_classes[row]);
        texts.extend(input.released_attributes.iter().zip(&places).zip(&part.codes).map(
            |((&attribute, place), codes)| {
                let book = &input.books[attribute];
                book.text(match *place {
                    (Some(quasi), _) => class[quasi],
                    (None, Some(sensitive)) if part.hides(row, sensitive) => SUPPRESSED,
                    _ => book.cell(codes[row], 0),
                })
            },
        ));
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
        proposed.runs.push(LineRun { line: start..proposed.arena.len(), rows: first..proposed.rows.len() });
    }
    proposed
}

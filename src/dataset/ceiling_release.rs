//! Generalization under an h-ceiling with counterfeits (\[HCE]; docs/internals/methods.md §15). The cells released as
//! `*` are known only for a fixed policy. Therefore the classes of the best policies are filled again by their shown
//! values. The first policy that hides every counterfeit is released.

use super::class_lookup::ReleasedClasses;
use super::dataset_source::{AnonymizationStep, RunCallbacks, StepCallback};
use super::encoded_dataset::EncodedDataset;
use super::error::{AnonymizeError, file_label, operator_error};
use super::input_encoding::DatasetInput;
use super::policy_search::{PolicyRelease, PolicySearchResult};
use super::release_writer::CounterfeitInsertion;
use super::sensitive_masks::{CellHidingInput as ToHide, SensitiveMasks, hide_sensitive_cells};
use crate::config::{Config, QualityMeasure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use throng_core::lattice::policy_check::{PolicyChecker, PolicyFigures, PolicyTerms};
use throng_core::lattice::recoding_passes::{EarlyEndReason, LocalRecodingResult, RecodingPass};
use throng_core::lattice::row_decisions::DecidedClass;
use throng_core::lattice::search::{BestLatticePolicy, LatticeSearchResult as Searches};
use throng_core::lattice::search_deadline::SearchDeadline;
use throng_core::lattice::table::{LatticeTable, TableRecords, UNCOUNTED_SUBJECT};
use throng_core::privacy::DecimalRatio;
use throng_core::quality::{ClassSums, LevelPart, ReconstructionError};
use throng_core::treatment::ceiling::fill::{FillLimits, FilledClasses};
use throng_core::treatment::ceiling::grouping::CatalogClass;
use throng_core::treatment::ceiling::search::{
    CeilingCandidate, CeilingOutcome, CeilingQuery, CeilingSearch, ReleasedLines, search_under_ceiling,
};
use throng_core::values::codebook::{CellId, SUPPRESSED};
use throng_core::values::digest::KeyedDigest;
use throng_core::values::schema::Role;

/// Result under a ceiling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CeilingReport {
    /// Ceiling: configured, or with the least reconstruction error.
    pub h: f64,
    /// The search found the ceiling.
    pub is_found: bool,
    /// Highest degree of a record, at most `h`.
    pub degree: f64,
    /// Minimum lines per class.
    pub lines: usize,
    /// Counterfeits.
    pub counterfeits: u64,
    /// Classes with counterfeits.
    pub filled: u64,
    /// Catalog groups, and classes in them.
    pub groups: (u64, u64),
    /// Reconstruction error of the records to be released.
    pub rce: ReconstructionError,
}

pub(super) struct CeilingRequest {
    h: Option<f64>,
    lines: usize,
    share: DecimalRatio,
    catalog: PathBuf,
}

/// Returns the validated `[anonymize.ceiling]`, if configured.
pub(super) fn ceiling_request(
    config: &Config,
    file: &str,
    input: &DatasetInput,
) -> Result<Option<CeilingRequest>, AnonymizeError> {
    let ceiling = &config.anonymize.ceiling;
    let Some(lines) = ceiling.lines else { return Ok(None) };
    let refuse = |key: &str, message: String, remedy: &str| {
        Err(operator_error(file, format!("anonymize.ceiling.{key}"), message, remedy))
    };
    let Some(catalog) = ceiling.catalog.clone() else {
        let message = "counterfeits without a catalog make the release permanently untruthful".to_owned();
        return refuse("catalog", message, "name a file, or give --catalog FILE");
    };
    let of = |wanted: &dyn Fn(Role) -> bool| -> Vec<&str> {
        let leaving = input.released_attributes.iter().map(|&a| &input.schema.attributes[a]);
        leaving.filter(|attribute| wanted(attribute.role)).map(|attribute| attribute.name.as_str()).collect()
    };
    let sensitive = of(&|role| role == Role::Sensitive);
    let schema = file_label(&config.schema.file);
    if sensitive.len() != 1 {
        let message = match sensitive.len() {
            0 => format!("{schema} has no sensitive attribute, but a catalog needs one"),
            _ => format!(
                "{schema} has several sensitive attributes ({}), but a catalog covers only one",
                sensitive.join(", ")
            ),
        };
        return refuse("lines", message, "give exactly one attribute the role sensitive, or remove the key");
    }
    let others = of(&|role| !role.is_quasi() && role != Role::Sensitive);
    if !others.is_empty() {
        let message = format!(
            "{} of {schema} would be released unchanged, but counterfeits have no values for it",
            others.join(", ")
        );
        return refuse("lines", message, "give it the role quasi or identifier, or remove the key");
    }
    let share = DecimalRatio::from_decimal_text(ceiling.share).filter(|share| share.value() <= 1.0);
    let Some(share) = share else {
        return refuse("share", "a share is between 0 and 1".to_owned(), "give 0 to 1; 0.02 is usual");
    };
    Ok(Some(CeilingRequest { h: ceiling.h, lines, share, catalog }))
}

/// Searches under the ceiling, hides cells and fills classes.
pub(super) fn release_under_ceiling(
    (data, table): (&EncodedDataset, &mut LatticeTable),
    (config, terms): (&Config, &PolicyTerms),
    wanted: &CeilingRequest,
    until: SearchDeadline<'_>,
    attended: RunCallbacks<'_>,
) -> Result<(PolicySearchResult, CounterfeitInsertion, CeilingReport), AnonymizeError> {
    let k = config.privacy.required_subjects();
    let mut records = data.records()?;
    records.rare = data.rare_values(k, attended.step)?;
    table.set_rare(&records.rare);
    let (table, records) = (&*table, &records);
    let checker = PolicyChecker::new(table, terms)?;
    let key = data.input.covering_key.clone();
    let (of_class, of_draw, of_value) = (
        key.keyed_digest("class of counterfeits"),
        key.keyed_digest("counterfeit"),
        key.keyed_digest("value of counterfeits"),
    );
    let texts = CellTexts::new(data, records, &of_value);
    let question = CeilingQuery {
        checker: &checker,
        records,
        h: wanted.h,
        fill_limits: FillLimits {
            min_lines: wanted.lines as u32,
            min_true_lines: k as u32,
            max_counterfeits: wanted.share.floor_of(table.records()),
        },
        identity: &|policy, row| of_class.digest(&texts.class_identity(policy, row)),
        seed: &|identity, number| of_draw.digest(&[&identity.to_be_bytes()[..], &number.to_be_bytes()].concat()),
        sensitive_number: &|value| texts.marks[value as usize],
    };
    (attended.step)(AnonymizationStep::Searching)?;
    let found = search_under_ceiling(&question, until, attended.watch)?;
    let work = CeilingSearch::new(&question);
    let cut =
        (!found.complete).then(|| if until.is_stopped() { EarlyEndReason::Stopped } else { EarlyEndReason::Time });
    let step = attended.step;
    let making =
        CeilingReleaseBuilder { config, data, question: &question, work: &work, terms, texts: &texts, table, step };
    for (place, candidate) in found.candidates.iter().enumerate() {
        let Some(made) = making.build_release(candidate)? else { continue };
        let complete = found.complete && place == 0;
        let (recoded, insertion, ceiled) = making.report_figures(candidate, &made, (&found, complete, cut), wanted);
        let CeilingRelease { kept, hidden, .. } = made;
        let settled = Some(PolicyRelease { kept, hidden, aggregated: Vec::new() });
        return Ok((PolicySearchResult { recoded, policy_release: settled }, insertion, ceiled));
    }
    Err(match cut {
        Some(EarlyEndReason::Stopped) => AnonymizeError::Stopped,
        Some(EarlyEndReason::Time) => AnonymizeError::OutOfTime,
        None => AnonymizeError::NoCeiling { h: wanted.h.unwrap_or(1.0), checked: found.checked },
    })
}

/// Texts identify classes and values independently of the input order.
struct CellTexts<'a> {
    data: &'a EncodedDataset,
    records: &'a TableRecords,
    of_value: &'a KeyedDigest,
    /// Derived from the text, per sensitive value.
    marks: Vec<u64>,
}

impl<'a> CellTexts<'a> {
    fn new(data: &'a EncodedDataset, records: &'a TableRecords, of_value: &'a KeyedDigest) -> Self {
        let mut texts = Self { data, records, of_value, marks: Vec::new() };
        let book = &data.input.books[data.input.sensitive[0]];
        texts.marks =
            data.sensitive[0].codes.iter().map(|&code| texts.sensitive_value_number(book.cell(code, 0))).collect();
        texts
    }

    fn sensitive_value_number(&self, cell: CellId) -> u64 {
        // The number must not depend on which cells are hidden.
        if cell == SUPPRESSED {
            return 0;
        }
        let input = &self.data.input;
        (self.of_value.digest(input.books[input.sensitive[0]].text(cell).as_bytes()) >> 64) as u64
    }

    fn class_identity(&self, policy: &[u8], row: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let columns = self.records.quasi.iter().zip(&self.data.quasi).zip(&self.data.input.quasi);
        for (((column, values), &attribute), &level) in columns.zip(policy) {
            let book = &self.data.input.books[attribute];
            let text = book.text(book.cell(values.codes[column[row as usize] as usize], usize::from(level)));
            bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }
}

struct CeilingReleaseBuilder<'a> {
    config: &'a Config,
    data: &'a EncodedDataset,
    question: &'a CeilingQuery<'a>,
    work: &'a CeilingSearch<'a>,
    terms: &'a PolicyTerms,
    texts: &'a CellTexts<'a>,
    table: &'a LatticeTable,
    step: StepCallback<'a>,
}

/// Hides its counterfeits.
struct CeilingRelease {
    kept: ReleasedClasses,
    hidden: SensitiveMasks,
    /// Found class in `build_classes`, per class.
    found: BTreeMap<u32, u32>,
    leaving: ReleasedLines,
    filled: FilledClasses,
    rce: ReconstructionError,
}

/// A class that cannot be filled is decided again.
const MAX_FILL_ATTEMPTS: usize = 8;

impl CeilingReleaseBuilder<'_> {
    /// Returns `None` if the shown values do not allow the classes to be filled.
    fn build_release(&self, candidate: &CeilingCandidate) -> Result<Option<CeilingRelease>, AnonymizeError> {
        let (records, k) = (self.question.records, self.config.privacy.required_subjects());
        let policy = &candidate.policy;
        let book = &self.data.input.books[self.data.input.sensitive[0]];
        let (column, codes) = (&records.sensitive[0].0, &self.data.sensitive[0].codes);
        let mut rows = self.work.released_lines(policy).rows;
        for _ in 0..MAX_FILL_ATTEMPTS {
            let lines = self.work.group_lines(policy, rows);
            let (kept, found) = self.build_classes(policy, &lines);
            let (data, table, models, step) = (self.data, self.table, &self.terms.models, self.step);
            let hidden = hide_sensitive_cells(&ToHide {
                data,
                kept: &kept,
                table,
                models,
                k,
                assumed_hidden: &records.rare,
                step,
            })?;
            rows = lines.rows;
            rows.retain(|row| hidden.removed_records.binary_search(row).is_err());
            let leaving = self.work.group_lines(policy, rows);
            if self.table.records() - leaving.rows.len() as u64 > self.question.checker.limit()
                || leaving.rows.is_empty()
            {
                return Ok(None);
            }
            let shows = |row: &u32| match hidden.masked_records.binary_search(row) {
                Ok(_) => SUPPRESSED,
                Err(_) => book.cell(codes[column[*row as usize] as usize], 0),
            };
            let shown: Vec<CellId> = leaving.rows.iter().map(shows).collect();
            let (hides, mark) = (|cell: u32| !book.is_exact(cell), |cell: u32| self.texts.sensitive_value_number(cell));
            let filled = self.work.fill_lines(policy, &leaving, &shown, &hides, &mark);
            if filled.removed.is_empty() {
                let beside = 1.0 / records.sensitive[0].1.max(1) as f64;
                let rce = self.work.rce(policy, &leaving, &shown, &filled, (&hides, beside));
                return Ok(Some(CeilingRelease { kept, hidden, found, leaving, filled, rce }));
            }
            let stays = |(row, class): (&u32, &u32)| filled.removed.binary_search(class).is_err().then_some(*row);
            rows = leaving.rows.iter().zip(&leaving.class_of).filter_map(stays).collect();
        }
        Ok(None)
    }

    /// Classes of `min_lines`, with their found classes.
    fn build_classes(&self, policy: &[u8], lines: &ReleasedLines) -> (ReleasedClasses, BTreeMap<u32, u32>) {
        let mut sizes: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
        for (&row, &class) in lines.rows.iter().zip(&lines.class_of) {
            sizes.entry(class).or_insert((row, 0)).1 += 1;
        }
        let mut kept = ReleasedClasses::new(self.data, std::iter::once(policy));
        for &(row, records) in sizes.values() {
            let values: Vec<u32> = self.question.records.quasi.iter().map(|column| column[row as usize]).collect();
            kept.add(self.data, 0, &values, DecidedClass { row, records, is_class_released: true });
        }
        kept.merge_equal_classes(&self.data.input.books, &self.data.input.quasi);
        (kept, sizes.into_keys().zip(0..).collect())
    }

    fn report_figures(
        &self,
        candidate: &CeilingCandidate,
        made: &CeilingRelease,
        (found, complete, cut): (&CeilingOutcome, bool, Option<EarlyEndReason>),
        wanted: &CeilingRequest,
    ) -> (LocalRecodingResult, CounterfeitInsertion, CeilingReport) {
        let CeilingRelease { leaving, filled, rce, .. } = made;
        let account = self.measure_release(&candidate.policy, &leaving.rows, &leaving.class_of);
        let best =
            BestLatticePolicy { policy: candidate.policy.clone(), cost: rce.marginal, suppressed: account.suppressed };
        let search = Searches {
            best: Some(best),
            complete,
            checked: found.checked,
            seconds: 0.0,
            history: Vec::new(),
            knowledge_bytes: 0,
        };
        let pass = RecodingPass {
            policy: candidate.policy.clone(),
            records: self.table.records(),
            released: leaving.rows.len() as u64,
            refused: 0,
            classes: account.classes,
            quality: account.policy_quality.measure_value(QualityMeasure::Loss),
            found: search.clone(),
        };
        let recoded = LocalRecodingResult {
            passes: vec![pass],
            classes: Vec::new(),
            searches: vec![search],
            first_pass_figures: None,
            overall_figures: account,
            raw_quality: self.question.checker.unsuppressed_quality(&self.table.lattice().bottom()),
            limit: self.question.checker.limit(),
            early_end_reason: cut,
        };
        let degree = self.work.highest_record_degree(&candidate.policy);
        let h = wanted.h.unwrap_or(degree);
        let mut insertion = CounterfeitInsertion {
            lines: wanted.lines,
            h,
            catalog: wanted.catalog.clone(),
            ..CounterfeitInsertion::default()
        };
        for group in &filled.groups {
            let mut counts: BTreeMap<CellId, u64> = BTreeMap::new();
            for &at in group {
                for (&value, &count) in &filled.classes[at].counterfeits {
                    insertion.counterfeits.push((made.found[&filled.class_numbers[at]], value, count));
                    *counts.entry(value).or_default() += u64::from(count);
                }
            }
            let classes = group.iter().map(|&at| made.found[&filled.class_numbers[at]]).collect();
            insertion.groups.push((classes, counts.into_iter().collect()));
        }
        let has_any = |class: &&CatalogClass| !class.counterfeits.is_empty();
        let told = CeilingReport {
            h,
            is_found: wanted.h.is_none(),
            degree,
            lines: wanted.lines,
            counterfeits: filled.counterfeits(),
            filled: filled.classes.iter().filter(has_any).count() as u64,
            groups: (filled.groups.len() as u64, filled.classes.len() as u64),
            rce: *rce,
        };
        (recoded, insertion, told)
    }

    /// By the true records alone.
    fn measure_release(&self, policy: &[u8], rows: &[u32], class_of: &[u32]) -> PolicyFigures {
        let (records, table) = (self.question.records, self.table);
        let empty = || -> Vec<Vec<u64>> { table.domains().iter().map(|domain| vec![0; domain.values()]).collect() };
        let mut kept = LevelPart { levels: policy.into(), counts: empty() };
        let mut gone = LevelPart { levels: policy.into(), counts: empty() };
        for ((all, kept), (gone, column)) in
            table.counts().iter().zip(&mut kept.counts).zip(gone.counts.iter_mut().zip(&records.quasi))
        {
            rows.iter().for_each(|&row| kept[column[row as usize] as usize] += 1);
            gone.iter_mut().zip(all.iter().zip(kept.iter())).for_each(|(gone, (all, kept))| *gone = all - kept);
        }
        let mut classes: BTreeMap<u32, (u64, BTreeSet<u32>)> = BTreeMap::new();
        for (&class, &row) in class_of.iter().zip(rows) {
            let person = records.subjects.as_ref().map_or(row, |subjects| subjects[row as usize]);
            let (lines, people) = classes.entry(class).or_default();
            *lines += 1;
            people.extend(Some(person).filter(|&person| person != UNCOUNTED_SUBJECT));
        }
        let mut sums = ClassSums::default();
        for &(lines, _) in classes.values() {
            sums.add(lines);
            sums.add_bits(lines);
        }
        let risk: f64 = classes.values().map(|(lines, people)| *lines as f64 / people.len().max(1) as f64).sum();
        PolicyFigures {
            suppressed: table.records() - rows.len() as u64,
            classes: classes.len() as u64,
            smallest: classes.values().map(|(lines, _)| *lines).min().unwrap_or(0),
            average_risk: risk / rows.len().max(1) as f64,
            policy_quality: self.question.checker.meter().quality_of_parts(
                table.domains(),
                table.counts(),
                &[kept],
                &gone,
                sums,
            ),
        }
    }
}

//! Decides the sensitive cells released as `*`, so that `*` reveals neither a subject nor a value
//! ([`throng_core::treatment::cell_hiding`]).
//!
//! A data set is one large batch. The search judges classes with values of fewer than k subjects hidden, but without
//! the subjects that cover for them. A class that violates its models after covering shows no value of the attribute. A
//! class without rare values hides nothing, and the search has judged its values. Classes of several passes with the
//! same text satisfy each common model.
//!
//! Only the records of the other classes are held, and for the rest at most k subjects per value, which is all that
//! [`CellHiding`] needs. Cells only become coarser: if every value of the rest has k subjects at the end, it had them
//! throughout, and the result is exact. Otherwise its classes are held too, and the procedure restarts.

use super::class_lookup::ReleasedClasses;
use super::code_store::{RecordBlock, RecordFields};
use super::dataset_source::{AnonymizationStep, StepCallback};
use super::encoded_dataset::{DatasetValues, EncodedDataset};
use super::error::AnonymizeError;
use super::input_encoding::DatasetInput;
use super::sensitive_support::SensitiveSupport;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::lattice::table::{LatticeTable, UNCOUNTED_SUBJECT};
use throng_core::privacy::{
    ClassModelError, ClassPrivacyModel, JudgeScratch, JudgedClass, ModelJudge, SensitiveDomain,
};
use throng_core::treatment::cell_hiding::{CellHiding, ClassModels, SensitiveColumn};
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::SUPPRESSED;
use throng_core::values::digest::{ContentKey, DigestKey, mix};
use throng_core::values::subject_digest::NO_SUBJECT;
use throng_core::values::subjects_by_value::SubjectsByValue;

/// Hidden sensitive cells.
#[derive(Debug, Default)]
pub struct SensitiveMasks {
    /// Records of classes that cannot hide their rare values, ascending; not released.
    pub removed_records: Vec<u32>,
    /// Released records with a hidden cell, ascending.
    pub masked_records: Vec<u32>,
    /// Hidden cells per masked record, one bit per sensitive attribute.
    pub masks: Vec<u32>,
    /// True per sensitive attribute that any record shows.
    pub shows: Vec<bool>,
    /// True per sensitive value of fewer than k subjects among the kept records.
    pub rare: Vec<Vec<bool>>,
}

/// Estimates per held record and cell.
const HELD_RECORD_BYTES: u64 = 360;
const HELD_CELL_BYTES: u64 = 40;

const FEWER_RARE_VALUES_REMEDY: &str =
    "give rare sensitive values a coarser spelling in the input, remove a sensitive attribute, or raise --memory";

/// Input of the cell hiding.
pub struct CellHidingInput<'a> {
    pub data: &'a EncodedDataset,
    pub kept: &'a ReleasedClasses,
    pub table: &'a LatticeTable,
    pub models: &'a [ClassPrivacyModel],
    pub k: usize,
    /// True per sensitive value that the search assumed hidden.
    pub assumed_hidden: &'a [Vec<bool>],
    pub step: StepCallback<'a>,
}

#[derive(Default)]
struct RecordsToHide {
    /// Ascending.
    numbers: Vec<u32>,
    people: Vec<u32>,
    digests: Vec<u64>,
    classes: Vec<u32>,
    /// Per sensitive attribute.
    values: Vec<(Vec<u32>, usize)>,
}

/// Decides the sensitive cells of released classes.
pub fn hide_sensitive_cells(asked: &CellHidingInput<'_>) -> Result<SensitiveMasks, AnonymizeError> {
    let CellHidingInput { data, kept, assumed_hidden: known, .. } = *asked;
    if data.sensitive.is_empty() {
        return Ok(SensitiveMasks::default());
    }
    let leaves = !kept.sizes.is_empty();
    let rare = asked.rare_among_released()?;
    let mut doubtful = rare.clone();
    for (doubtful, known) in doubtful.iter_mut().flatten().zip(known.iter().flatten()) {
        *doubtful |= *known;
    }
    // Inexact cells are hidden already.
    for (doubtful, (values, &attribute)) in doubtful.iter_mut().zip(data.sensitive.iter().zip(&data.input.sensitive)) {
        let book = &data.input.books[attribute];
        for (doubtful, &code) in doubtful.iter_mut().zip(&values.codes) {
            let cell = book.cell(code, 0);
            *doubtful |= cell == SUPPRESSED || !book.is_exact(cell);
        }
    }
    loop {
        let affected = asked.affected_classes(&doubtful)?;
        if !affected.contains(&true) {
            return Ok(SensitiveMasks { shows: vec![leaves; data.sensitive.len()], rare, ..SensitiveMasks::default() });
        }
        let (held, beside) = asked.collect_affected(&affected)?;
        match asked.hide_in_affected(&held, &beside)? {
            HidingOutcome::CellsHidden(hidden) => return Ok(SensitiveMasks { rare, ..hidden }),
            HidingOutcome::LacksSubjects(more) => {
                more.into_iter().for_each(|(attribute, value)| doubtful[attribute][value] = true);
            }
        }
    }
}

enum HidingOutcome {
    CellsHidden(SensitiveMasks),
    /// Values of classes not held that lack subjects.
    LacksSubjects(Vec<(usize, usize)>),
}

impl CellHidingInput<'_> {
    fn attributes(&self) -> Vec<usize> {
        let input = &self.data.input;
        input.quasi.iter().chain(&input.sensitive).copied().collect()
    }

    /// Block, position, and class.
    fn visit_released_records(
        &self,
        (digests, people): (bool, bool),
        visit: &mut dyn FnMut(&RecordBlock, u32, u32) -> Result<(), AnonymizeError>,
    ) -> Result<(), AnonymizeError> {
        let attributes = self.attributes();
        let codes = &self.data.codes;
        codes.visit_blocks(RecordFields { attributes: &attributes, digests, people }, &mut |block| {
            (self.step)(AnonymizationStep::Counting { records: block.start as u64, of: codes.rows as u64 })?;
            for &at in &block.released {
                if let Some(found) = self.kept.found_class(block, at) {
                    visit(block, at, self.kept.class_of(found))?;
                }
            }
            Ok(())
        })
    }

    fn sensitive_values<'b>(&'b self, block: &'b RecordBlock, at: u32) -> impl Iterator<Item = (usize, u32)> + 'b {
        let columns = block.codes[self.data.quasi.len()..].iter().zip(&self.data.sensitive).enumerate();
        columns.map(move |(number, (codes, values))| (number, values.value_of[codes[at as usize] as usize]))
    }

    fn empty_support<P: Copy + PartialEq>(&self) -> SensitiveSupport<P> {
        SensitiveSupport::new(self.k, self.data.sensitive.iter().map(|values| values.codes.len()))
    }

    /// True per value of fewer than k subjects among released classes.
    fn rare_among_released(&self) -> Result<Vec<Vec<bool>>, AnonymizeError> {
        let mut support = self.empty_support();
        self.visit_released_records((false, true), &mut |block, at, _| {
            let person = Some(block.people[at as usize]).filter(|person| *person != UNCOUNTED_SUBJECT);
            self.sensitive_values(block, at)
                .for_each(|(attribute, value)| support.count_record(attribute, value, person));
            Ok(())
        })?;
        Ok(support.rare_flags())
    }

    /// Classes with a doubtful value.
    fn affected_classes(&self, doubtful: &[Vec<bool>]) -> Result<Vec<bool>, AnonymizeError> {
        let mut affected = vec![false; self.kept.sizes.len()];
        let occurs = |(number, values): (usize, &DatasetValues)| {
            values.counts.iter().zip(&doubtful[number]).any(|(count, doubtful)| *count > 0 && *doubtful)
        };
        if !self.data.sensitive.iter().enumerate().any(occurs) {
            return Ok(affected);
        }
        self.visit_released_records((false, false), &mut |block, at, class| {
            affected[class as usize] |=
                self.sensitive_values(block, at).any(|(number, value)| doubtful[number][value as usize]);
            Ok(())
        })?;
        Ok(affected)
    }

    /// Records of affected classes, and subjects per value of the others.
    fn collect_affected(&self, affected: &[bool]) -> Result<(RecordsToHide, SensitiveSupport<u64>), AnonymizeError> {
        let records: u64 = self.kept.sizes.iter().zip(affected).filter(|(_, is)| **is).map(|(size, _)| size).sum();
        let sensitive = &self.data.sensitive;
        let needed = records * (HELD_RECORD_BYTES + HELD_CELL_BYTES * sensitive.len() as u64)
            + sensitive.iter().map(|values| values.codes.len() as u64).sum::<u64>() * 8 * (self.k as u64 + 8);
        let room = self.data.room;
        let (table, kept) = (self.table.bytes() as u64, self.kept.bytes());
        let what =
            || format!("the {records} records of classes with rare sensitive values (and {} classes)", affected.len());
        room.ensure_fits(what, needed + table + kept, FEWER_RARE_VALUES_REMEDY)?;
        let values = sensitive.iter().map(|values| (Vec::new(), values.codes.len())).collect();
        let mut held = RecordsToHide { values, ..RecordsToHide::default() };
        let mut beside = self.empty_support();
        self.visit_released_records((true, true), &mut |block, at, class| {
            let digest = block.digests[at as usize];
            if affected[class as usize] {
                held.numbers.push(block.start as u32 + at);
                held.people.push(block.people[at as usize]);
                held.digests.push(digest);
                held.classes.push(class);
                self.sensitive_values(block, at).for_each(|(number, value)| held.values[number].0.push(value));
            } else {
                // A value without any subject lacks subjects.
                let person = Some(digest).filter(|digest| *digest != NO_SUBJECT);
                self.sensitive_values(block, at).for_each(|(number, value)| beside.count_record(number, value, person));
            }
            Ok(())
        })?;
        Ok((held, beside))
    }

    fn hide_in_affected(
        &self,
        held: &RecordsToHide,
        beside: &SensitiveSupport<u64>,
    ) -> Result<HidingOutcome, AnonymizeError> {
        let (input, sensitive) = (&self.data.input, &self.data.sensitive);
        let mut batch = CodeBatch::new(input.schema.attributes.len());
        batch.subjects.clone_from(&held.digests);
        for (&attribute, (values, column)) in input.sensitive.iter().zip(sensitive.iter().zip(&held.values)) {
            batch.columns[attribute] = column.0.iter().map(|&value| values.codes[value as usize]).collect();
        }
        // Distinct, evenly spread keys.
        let spread = |&class: &u32| u128::from(mix(u64::from(class))) << 64 | u128::from(mix(!u64::from(class)));
        let class: Vec<u128> = held.classes.iter().map(spread).collect();
        let keyed = input.key.keyed_digest("beside the classes that are held");
        let bases: Vec<u128> = input.schema.attributes.iter().map(|a| keyed.digest(a.name.as_bytes())).collect();
        let mut holders = SubjectsByValue::default();
        for (number, &attribute) in input.sensitive.iter().enumerate() {
            for (&code, (people, _)) in sensitive[number].codes.iter().zip(beside.value_subjects(number)) {
                let value = input.books[attribute].digests(0)[code as usize];
                holders.add(bases[attribute].wrapping_add(value), people);
            }
        }
        let order = cover_order_key(self.data)?.keyed_digest("who covers");
        let side = |(position, &attribute): (usize, &usize)| SensitiveColumn {
            attribute,
            levels: 1,
            protected: self.models.iter().any(|model| model.attribute() == Some(position)),
            finest_levels: vec![0; held.numbers.len()],
        };
        let sides = input.sensitive.iter().enumerate().map(side).collect();
        let mut judged = DatasetClassModels::new(input, &held.values, self.table, self.models)
            .map_err(|e| AnonymizeError::Terms(e.into()))?;
        let hiding = CellHiding {
            batch: &batch,
            books: &input.books,
            k: self.k,
            first_level_only: false,
            bases: &bases,
            cover_order: &|row| order.digest(&held.people[row as usize].to_be_bytes()),
            holders: &holders,
            class: &class,
            without_quasi: false,
            has_other_lines: beside.has_any_record(),
        };
        let settled = hiding.hide_cells(sides, (0..held.numbers.len() as u32).collect(), &mut judged);
        let lost: BTreeSet<u32> = settled.failing.iter().copied().collect();
        let leaving = || (0..held.numbers.len() as u32).filter(|row| !lost.contains(row));
        let mut lacking = Vec::new();
        for (number, cells) in settled.columns.iter().enumerate() {
            let mut shown = beside.value_subjects(number).to_vec();
            for row in leaving().filter(|&row| cells[row as usize] != SUPPRESSED) {
                let (value, person) = (held.values[number].0[row as usize] as usize, held.digests[row as usize]);
                let known = &mut shown[value].0;
                if person != NO_SUBJECT && known.len() < self.k && !known.contains(&person) {
                    known.push(person);
                }
            }
            let lacks = shown.iter().enumerate().filter(|(_, (people, is_met))| *is_met && people.len() < self.k);
            lacking.extend(lacks.map(|(value, _)| (number, value)));
        }
        if !lacking.is_empty() {
            return Ok(HidingOutcome::LacksSubjects(lacking));
        }
        let shows =
            |cells: &Vec<u32>| beside.has_any_record() || leaving().any(|row| cells[row as usize] != SUPPRESSED);
        let mut hidden = SensitiveMasks {
            shows: settled.columns.iter().map(shows).collect(),
            removed_records: lost.iter().map(|&row| held.numbers[row as usize]).collect(),
            ..SensitiveMasks::default()
        };
        for row in leaving() {
            let hides = |cells: &Vec<u32>| cells[row as usize] == SUPPRESSED;
            if settled.columns.iter().any(hides) {
                hidden.masked_records.push(held.numbers[row as usize]);
                let word = |columns: &[Vec<u32>]| {
                    columns.iter().enumerate().fold(0, |mask, (at, cells)| mask | u32::from(hides(cells)) << at)
                };
                hidden.masks.extend(settled.columns.chunks(u32::BITS as usize).map(word));
            }
        }
        Ok(HidingOutcome::CellsHidden(hidden))
    }
}

/// With the same secret a second release hides the same cells, so a comparison reveals nothing.
fn cover_order_key(data: &EncodedDataset) -> Result<DigestKey, AnonymizeError> {
    let mut key = ContentKey::default();
    key.add(&data.input.covering_key.0);
    for (attribute, book) in data.input.books.iter().enumerate() {
        key.add(book.attribute().name.as_bytes());
        data.codes.visit_blocks(
            RecordFields { attributes: &[attribute], ..RecordFields::default() },
            &mut |block| {
                block.codes[0].iter().for_each(|&code| key.add(book.canonical(code).as_bytes()));
                Ok(())
            },
        )?;
    }
    Ok(key.finish())
}

/// Models applied to shown values.
struct DatasetClassModels<'a> {
    /// Per sensitive attribute and row.
    values: &'a [(Vec<u32>, usize)],
    /// Schema position and models.
    judges: Vec<(usize, ModelJudge)>,
    room: JudgeScratch,
}

impl<'a> DatasetClassModels<'a> {
    /// `sensitive_values` has one column per attribute, `table` the whole distribution.
    fn new(
        input: &DatasetInput,
        values: &'a [(Vec<u32>, usize)],
        table: &LatticeTable,
        models: &[ClassPrivacyModel],
    ) -> Result<Self, ClassModelError> {
        let whole = |domain: &SensitiveDomain| SensitiveDomain { rare: Vec::new(), ..domain.clone() };
        let domains: Vec<SensitiveDomain> = table.sensitive().iter().map(whole).collect();
        let judge = |(position, &attribute): (usize, &usize)| {
            let mine: Vec<ClassPrivacyModel> =
                models.iter().filter(|m| m.attribute() == Some(position)).cloned().collect();
            Ok((attribute, ModelJudge::new(&mine, &domains)?))
        };
        let judges = input.sensitive.iter().enumerate().map(judge).collect::<Result<_, _>>()?;
        Ok(Self { values, judges, room: JudgeScratch::default() })
    }
}

impl ClassModels for DatasetClassModels<'_> {
    fn rejected_classes(&mut self, attribute: usize, showing: &[(u128, u32)]) -> Vec<u128> {
        let Some(position) = self.judges.iter().position(|(of, _)| *of == attribute) else { return Vec::new() };
        let mut refused = Vec::new();
        let mut values: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.judges.len()];
        for of_class in showing.chunk_by(|a, b| a.0 == b.0) {
            let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
            for (_, row) in of_class {
                *counts.entry(self.values[position].0[*row as usize]).or_default() += 1;
            }
            values[position] = counts.into_iter().collect();
            let records = of_class.len() as u64;
            let class = JudgedClass {
                records,
                subjects: records,
                population: records,
                population_subjects: records,
                values: &values,
            };
            if self.judges[position].1.lost_records(&class, &mut self.room).is_some() {
                refused.push(of_class[0].0);
            }
        }
        refused
    }
}

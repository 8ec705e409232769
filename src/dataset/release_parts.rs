//! Divides released records into parts of whole classes that fit in memory.

use super::class_lookup::ReleasedClasses;
use super::code_store::{RecordFields, temporary_file_error};
use super::dataset_source::{AnonymizationStep, StepCallback};
use super::encoded_dataset::EncodedDataset;
use super::error::AnonymizeError;
use super::sensitive_masks::SensitiveMasks;
use std::path::PathBuf;
use throng_core::release::parts::PartPremises;
use throng_core::values::codebook::Code;
use throng_core::values::subject_digest::NO_SUBJECT;
use throng_risk::counting::CodeWriter;
use throng_risk::counting::codes::CodeColumn;

/// Also the minimum buffered before a write.
const PART_READ_RECORDS: usize = 1 << 17;

/// Estimates per record and cell during line building and verification.
const PART_RECORD_BYTES: u64 = 1300;
const PART_CELL_BYTES: u64 = 32;

/// Record number, both halves of the subject digest, and found class.
const LEADING_COLUMNS: usize = 4;

/// Records by part, in memory or in a file.
pub struct ReleaseParts {
    columns: Vec<CodeColumn>,
    /// Records per part.
    rows: Vec<usize>,
    width: usize,
    /// Columns for hidden cells.
    words: usize,
    directory: Option<PathBuf>,
}

/// Records of one part.
#[derive(Default)]
pub struct ReleasePart {
    /// Numbers in the input.
    pub numbers: Vec<u32>,
    /// Subject digests.
    pub digests: Vec<u64>,
    /// Found classes.
    pub found_classes: Vec<u32>,
    /// Hidden cells, one bit per sensitive attribute.
    pub masks: Vec<Vec<u32>>,
    /// Codes per released attribute.
    pub codes: Vec<Vec<Code>>,
}

/// Facts about all released records.
pub struct DivisionSummary {
    /// Premises of verification over all parts.
    pub part_premises: PartPremises,
    /// Distinct subjects to be released, and released.
    pub subject_totals: Option<(u64, u64)>,
}

/// Returns the maximum records per part, for classes of at least `k` subjects.
pub fn max_part_records(data: &EncodedDataset, kept: &ReleasedClasses, k: usize) -> usize {
    let a_record = PART_RECORD_BYTES + PART_CELL_BYTES * data.input.released_attributes.len() as u64;
    // Verification counts every value of a class.
    let values: u64 = data.sensitive.iter().map(|values| values.codes.len() as u64).sum();
    let records: u64 = kept.sizes.iter().sum();
    let a_class = 8 * values * kept.sizes.len() as u64 / records.max(1);
    usize::try_from(data.room.bytes_left().saturating_sub(bytes_besides_part(data, kept, k)) / (a_record + a_class))
        .unwrap_or(usize::MAX)
}

/// All classes, the subjects of every sensitive value (twice), and one bit per record.
fn bytes_besides_part(data: &EncodedDataset, kept: &ReleasedClasses, k: usize) -> u64 {
    let values: u64 = data.input.sensitive.iter().map(|&a| data.input.books[a].codes() as u64).sum();
    kept.bytes() + 24 * kept.sizes.len() as u64 + values * (160 + 48 * k as u64) + data.codes.rows as u64 / 8
}

/// Equal lines are stored once.
fn largest_class_bytes(data: &EncodedDataset, largest: u64) -> u64 {
    let beside = data.input.released_attributes.iter().filter(|a| !data.input.quasi.contains(a));
    let kinds = beside.fold(1u64, |kinds, &a| kinds.saturating_mul(data.input.books[a].codes() as u64));
    let lines = largest.min(kinds);
    lines * PART_RECORD_BYTES
        + (largest - lines) * (PART_RECORD_BYTES / 8)
        + largest * PART_CELL_BYTES * data.input.released_attributes.len() as u64
}

/// Returns the part of each class: the next part begins where the limit would be exceeded.
fn parts_of_classes(sizes: &[u64], most: u64) -> Vec<u32> {
    let mut part_of = Vec::with_capacity(sizes.len());
    let (mut part, mut records) = (0u32, 0);
    for &size in sizes {
        if records > 0 && records + size > most {
            (part, records) = (part + 1, 0);
        }
        records += size;
        part_of.push(part);
    }
    part_of
}

/// Divides the records of released classes into parts of at most `max_part_records` records. A class is never split, so a large
/// class can exceed the limit.
pub fn divide_into_parts(
    data: &EncodedDataset,
    kept: &ReleasedClasses,
    hidden: &SensitiveMasks,
    (k, most): (usize, usize),
    step: StepCallback<'_>,
) -> Result<(ReleaseParts, DivisionSummary), AnonymizeError> {
    step(AnonymizationStep::Dividing { records: 0, of: data.codes.rows as u64 })?;
    let largest = kept.sizes.iter().copied().max().unwrap_or(0);
    let beside = bytes_besides_part(data, kept, k);
    let needed = largest_class_bytes(data, largest) + beside;
    data.room.ensure_fits(|| format!("the {largest} records of the largest class"), needed, SMALLER_CLASS_REMEDY)?;
    let part_of = parts_of_classes(&kept.sizes, most as u64);
    let parts = part_of.last().map_or(1, |part| *part as usize + 1);
    let leaving = &data.input.released_attributes;
    let words = data.sensitive.len().div_ceil(u32::BITS as usize);
    let width = LEADING_COLUMNS + words + leaving.len();
    let directory = data.codes.directory.as_deref();
    let fault = |error| temporary_file_error(directory, error);
    let mut writer = CodeWriter::new(directory, parts * width).map_err(fault)?;
    let mut pending: Vec<ReleasePart> = (0..parts).map(|_| ReleasePart::new(words, leaving.len())).collect();
    // Avoids very small writes to many parts.
    let at_once =
        usize::try_from(data.room.bytes_left().saturating_sub(beside) / 4).unwrap_or(usize::MAX) / (4 * (width + 2));
    let (mut held, at_once) = (0, at_once.max(PART_READ_RECORDS));
    // The class lookup requires quasi attributes first, then sensitive ones.
    let mut attributes: Vec<usize> = data.input.quasi.clone();
    attributes.extend(&data.input.sensitive);
    attributes.extend(leaving.iter().filter(|a| !data.input.quasi.contains(a) && !data.input.sensitive.contains(a)));
    let place = |attribute: &usize| attributes.iter().position(|a| a == attribute).unwrap_or_default();
    let places: Vec<usize> = leaving.iter().map(place).collect();
    let mut holders: Vec<(usize, Vec<Vec<u64>>)> =
        data.input.sensitive.iter().map(|&a| (a, vec![Vec::new(); data.input.books[a].codes()])).collect();
    let mut people = data.codes.people.map(|people| (SubjectBitset::new(people), SubjectBitset::new(people)));
    let (mut lost, mut masked) = (hidden.removed_records.iter().peekable(), hidden.masked_records.iter().peekable());
    let mut masks = hidden.masks.chunks(words.max(1));
    let nothing = vec![0; words];
    let wanted = RecordFields { attributes: &attributes, digests: true, people: people.is_some() };
    data.codes.visit_blocks(wanted, &mut |block| {
        for &at in &block.released {
            let (number, row) = (block.start as u32 + at, at as usize);
            if let Some((all, _)) = &mut people {
                all.set(block.people[row]);
            }
            let Some(found) = kept.found_class(block, at) else { continue };
            if lost.next_if(|lost| **lost == number).is_some() {
                continue;
            }
            let mask = masked.next_if(|masked| **masked == number).and_then(|_| masks.next()).unwrap_or(&nothing);
            if let Some((_, left)) = &mut people {
                left.set(block.people[row]);
            }
            let digest = block.digests[row];
            if digest != NO_SUBJECT {
                let columns = &block.codes[data.quasi.len()..];
                for ((_, by_code), codes) in holders.iter_mut().zip(columns) {
                    let known = &mut by_code[codes[row] as usize];
                    if known.len() < k && !known.contains(&digest) {
                        known.push(digest);
                    }
                }
            }
            let part = &mut pending[part_of[kept.class_of(found) as usize] as usize];
            part.numbers.push(number);
            part.digests.push(digest);
            part.found_classes.push(found);
            part.masks.iter_mut().zip(mask).for_each(|(words, word)| words.push(*word));
            part.codes.iter_mut().zip(&places).for_each(|(codes, &place)| codes.push(block.codes[place][row]));
            held += 1;
        }
        step(AnonymizationStep::Dividing { records: block.start as u64, of: data.codes.rows as u64 })?;
        if held >= at_once {
            held = 0;
            pending
                .iter_mut()
                .enumerate()
                .try_for_each(|(part, of)| of.write(part * width, &mut writer))
                .map_err(fault)?;
        }
        Ok(())
    })?;
    pending.iter_mut().enumerate().try_for_each(|(part, of)| of.write(part * width, &mut writer)).map_err(fault)?;
    let rows = (0..parts).map(|part| writer.rows(part * width)).collect();
    let shown = data.input.sensitive.iter().zip(&hidden.shows).filter(|(_, shows)| **shows).map(|(&a, _)| a);
    let told = PartPremises { holders, shown: shown.collect() };
    let people = people.map(|(all, left)| (all.count(), left.count()));
    let parts =
        ReleaseParts { columns: writer.into_columns(), rows, width, words, directory: data.codes.directory.clone() };
    Ok((parts, DivisionSummary { part_premises: told, subject_totals: people }))
}

const SMALLER_CLASS_REMEDY: &str =
    "raise --memory, or generalize less: raise anonymize.suppression_limit, or relax a model";

impl ReleasePart {
    fn new(words: usize, attributes: usize) -> Self {
        Self { masks: vec![Vec::new(); words], codes: vec![Vec::new(); attributes], ..Self::default() }
    }

    /// Returns true if a record hides this sensitive value.
    pub fn hides(&self, row: usize, sensitive: usize) -> bool {
        let bits = u32::BITS as usize;
        self.masks[sensitive / bits][row] >> (sensitive % bits) & 1 == 1
    }

    /// Writes to the columns from `first` on, and clears the buffer.
    fn write(&mut self, first: usize, writer: &mut CodeWriter) -> std::io::Result<()> {
        let high: Vec<u32> = self.digests.iter().map(|digest| (digest >> 32) as u32).collect();
        let low: Vec<u32> = self.digests.iter().map(|digest| *digest as u32).collect();
        let before = [&self.numbers, &high, &low, &self.found_classes].into_iter();
        for (at, column) in before.chain(&self.masks).chain(&self.codes).enumerate() {
            writer.append_numbers(first + at, column)?;
        }
        // Frees the buffers: in sorted data each part would keep its full capacity.
        *self = Self::new(self.masks.len(), self.codes.len());
        Ok(())
    }
}

impl ReleaseParts {
    /// Returns the number of parts.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Reads one part.
    pub fn read(&self, part: usize) -> Result<ReleasePart, AnonymizeError> {
        let columns = &self.columns[part * self.width..(part + 1) * self.width];
        let (rows, mut bytes) = (self.rows[part], Vec::new());
        let mut read = |column: &CodeColumn| -> Result<Vec<u32>, AnonymizeError> {
            let (mut all, mut some) = (Vec::with_capacity(rows), Vec::new());
            for start in (0..rows).step_by(PART_READ_RECORDS) {
                let range = start..rows.min(start + PART_READ_RECORDS);
                column
                    .read(range, &mut bytes, &mut some)
                    .map_err(|error| temporary_file_error(self.directory.as_deref(), error))?;
                all.extend_from_slice(&some);
            }
            Ok(all)
        };
        let numbers = read(&columns[0])?;
        let (high, low) = (read(&columns[1])?, read(&columns[2])?);
        let digests = high.iter().zip(&low).map(|(high, low)| u64::from(*high) << 32 | u64::from(*low)).collect();
        let found = read(&columns[3])?;
        let mut masks: Vec<Vec<u32>> = columns[LEADING_COLUMNS..].iter().map(read).collect::<Result<_, _>>()?;
        let codes = masks.split_off(self.words);
        Ok(ReleasePart { numbers, digests, found_classes: found, masks, codes })
    }
}

struct SubjectBitset(Vec<u64>);

impl SubjectBitset {
    fn new(bits: usize) -> Self {
        Self(vec![0; bits.div_ceil(64)])
    }

    /// Ignores a number out of range, such as a missing subject.
    fn set(&mut self, bit: u32) {
        if let Some(word) = self.0.get_mut(bit as usize / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

//! The records that leave, divided into parts that memory holds: whole classes each.

use super::codes::{Wanted, unwritten};
use super::data::Data;
use super::error::AnonymizeError;
use super::hide::Hidden;
use super::kept::Kept;
use super::source::{OnStep, Step};
use crate::release::parts::Told;
use std::path::PathBuf;
use throng_core::values::codebook::Code;
use throng_core::values::subject::NO_SUBJECT;
use throng_risk::counting::CodeWriter;
use throng_risk::counting::codes::CodeColumn;

/// Records that are read back at once, and that are held at the least until they are written.
const RECORDS_AT_ONCE: usize = 1 << 17;

/// Bytes of a record of a part while it is made into a line and verified, and of each of its cells.
const A_RECORD: u64 = 1300;
const A_CELL: u64 = 32;

/// Columns before those of what a record hides and of the attributes: its number, both halves of the digest of whom it counts for, and the class
/// that it was found in.
const BEFORE: usize = 4;

/// Records of parts, in memory or in a file.
pub struct Parts {
    columns: Vec<CodeColumn>,
    /// By part: its records.
    rows: Vec<usize>,
    width: usize,
    /// Columns of what a record hides.
    words: usize,
    directory: Option<PathBuf>,
}

/// The records of one part.
#[derive(Default)]
pub struct Part {
    /// Their numbers in the input.
    pub numbers: Vec<u32>,
    /// Digests of whom they count for.
    pub digests: Vec<u64>,
    /// The classes that they were found in.
    pub found: Vec<u32>,
    /// What they hide, a bit by sensitive attribute: so many columns that each attribute has one.
    pub masks: Vec<Vec<u32>>,
    /// By attribute that leaves: their codes.
    pub codes: Vec<Vec<Code>>,
}

/// What has been seen of all records that leave while they were divided.
pub struct Seen {
    /// What verification is told of all parts.
    pub told: Told,
    /// Distinct people of the records to be released, and of those that leave.
    pub people: Option<(u64, u64)>,
}

/// How many records a part may have at the most, where a class needs `k` people.
pub fn most(data: &Data, kept: &Kept, k: usize) -> usize {
    let a_record = A_RECORD + A_CELL * data.input.leaving.len() as u64;
    // Verification counts every value of a class.
    let values: u64 = data.sensitive.iter().map(|values| values.codes.len() as u64).sum();
    let records: u64 = kept.sizes.iter().sum();
    let a_class = 8 * values * kept.sizes.len() as u64 / records.max(1);
    usize::try_from(data.room.left().saturating_sub(held(data, kept, k)) / (a_record + a_class)).unwrap_or(usize::MAX)
}

/// Bytes that are held beside a part: all classes, the people of every sensitive value, here and in verification, and a bit a record.
fn held(data: &Data, kept: &Kept, k: usize) -> u64 {
    let values: u64 = data.input.sensitive.iter().map(|&a| data.input.books[a].codes() as u64).sum();
    kept.bytes() + 24 * kept.sizes.len() as u64 + values * (160 + 48 * k as u64) + data.codes.rows as u64 / 8
}

/// Bytes that the largest class needs while it is verified: lines that are alike are there once.
fn of_largest(data: &Data, largest: u64) -> u64 {
    let beside = data.input.leaving.iter().filter(|a| !data.input.quasi.contains(a));
    let kinds = beside.fold(1u64, |kinds, &a| kinds.saturating_mul(data.input.books[a].codes() as u64));
    let lines = largest.min(kinds);
    lines * A_RECORD + (largest - lines) * (A_RECORD / 8) + largest * A_CELL * data.input.leaving.len() as u64
}

/// Divides the records of the classes that leave into parts of at most `most` records, but that no class is divided.
pub fn divided(
    data: &Data,
    kept: &Kept,
    hidden: &Hidden,
    (k, most): (usize, usize),
    step: OnStep<'_>,
) -> Result<(Parts, Seen), AnonymizeError> {
    step(Step::Dividing { records: 0, of: data.codes.rows as u64 })?;
    let largest = kept.sizes.iter().copied().max().unwrap_or(0);
    let beside = held(data, kept, k);
    let needed = of_largest(data, largest) + beside;
    data.room.holds(|| format!("the {largest} records of the largest class"), needed, SMALLER)?;
    let mut part_of = Vec::with_capacity(kept.sizes.len());
    let (mut part, mut records) = (0u32, 0);
    for &size in &kept.sizes {
        if records > 0 && records + size > most as u64 {
            (part, records) = (part + 1, 0);
        }
        records += size;
        part_of.push(part);
    }
    let parts = part as usize + 1;
    let leaving = &data.input.leaving;
    let words = data.sensitive.len().div_ceil(u32::BITS as usize);
    let width = BEFORE + words + leaving.len();
    let directory = data.codes.directory.as_deref();
    let fault = |error| unwritten(directory, error);
    let mut writer = CodeWriter::new(directory, parts * width).map_err(fault)?;
    let mut pending: Vec<Part> = (0..parts).map(|_| Part::new(words, leaving.len())).collect();
    // Many parts are written in pieces that are not too small.
    let at_once =
        usize::try_from(data.room.left().saturating_sub(beside) / 4).unwrap_or(usize::MAX) / (4 * (width + 2));
    let (mut held, at_once) = (0, at_once.max(RECORDS_AT_ONCE));
    // Quasi and sensitive attributes first, as a class is looked up by.
    let mut attributes: Vec<usize> = data.input.quasi.clone();
    attributes.extend(&data.input.sensitive);
    attributes.extend(leaving.iter().filter(|a| !data.input.quasi.contains(a) && !data.input.sensitive.contains(a)));
    let place = |attribute: &usize| attributes.iter().position(|a| a == attribute).unwrap_or_default();
    let places: Vec<usize> = leaving.iter().map(place).collect();
    let mut holders: Vec<(usize, Vec<Vec<u64>>)> =
        data.input.sensitive.iter().map(|&a| (a, vec![Vec::new(); data.input.books[a].codes()])).collect();
    let mut people = data.codes.people.map(|people| (Bits::new(people), Bits::new(people)));
    let (mut lost, mut masked) = (hidden.lost.iter().peekable(), hidden.masked.iter().peekable());
    let mut masks = hidden.masks.chunks(words.max(1));
    let nothing = vec![0; words];
    let wanted = Wanted { attributes: &attributes, digests: true, people: people.is_some() };
    data.codes.each(wanted, &mut |block| {
        for &at in &block.released {
            let (number, row) = (block.start as u32 + at, at as usize);
            if let Some((all, _)) = &mut people {
                all.set(block.people[row]);
            }
            let Some(found) = kept.found(block, at) else { continue };
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
            part.found.push(found);
            part.masks.iter_mut().zip(mask).for_each(|(words, word)| words.push(*word));
            part.codes.iter_mut().zip(&places).for_each(|(codes, &place)| codes.push(block.codes[place][row]));
            held += 1;
        }
        step(Step::Dividing { records: block.start as u64, of: data.codes.rows as u64 })?;
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
    let told = Told { holders, shown: shown.collect() };
    let people = people.map(|(all, left)| (all.count(), left.count()));
    let parts = Parts { columns: writer.into_columns(), rows, width, words, directory: data.codes.directory.clone() };
    Ok((parts, Seen { told, people }))
}

const SMALLER: &str = "allow more (--memory), or generalize less: raise anonymize.suppression_limit, or relax a model";

impl Part {
    fn new(words: usize, attributes: usize) -> Self {
        Self { masks: vec![Vec::new(); words], codes: vec![Vec::new(); attributes], ..Self::default() }
    }

    /// Whether a record hides its value of a sensitive attribute, by position.
    pub fn hides(&self, row: usize, sensitive: usize) -> bool {
        let bits = u32::BITS as usize;
        self.masks[sensitive / bits][row] >> (sensitive % bits) & 1 == 1
    }

    /// Writes the records to the columns from number `first` on, and holds none of them any longer.
    fn write(&mut self, first: usize, writer: &mut CodeWriter) -> std::io::Result<()> {
        let high: Vec<u32> = self.digests.iter().map(|digest| (digest >> 32) as u32).collect();
        let low: Vec<u32> = self.digests.iter().map(|digest| *digest as u32).collect();
        let before = [&self.numbers, &high, &low, &self.found].into_iter();
        for (at, column) in before.chain(&self.masks).chain(&self.codes).enumerate() {
            writer.append_numbers(first + at, column)?;
        }
        // With its room: in sorted data one part after the other fills, and each would keep the room of all of it.
        *self = Self::new(self.masks.len(), self.codes.len());
        Ok(())
    }
}

impl Parts {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Reads one back.
    pub fn read(&self, part: usize) -> Result<Part, AnonymizeError> {
        let columns = &self.columns[part * self.width..(part + 1) * self.width];
        let (rows, mut bytes) = (self.rows[part], Vec::new());
        let mut read = |column: &CodeColumn| -> Result<Vec<u32>, AnonymizeError> {
            let (mut all, mut some) = (Vec::with_capacity(rows), Vec::new());
            for start in (0..rows).step_by(RECORDS_AT_ONCE) {
                let range = start..rows.min(start + RECORDS_AT_ONCE);
                column
                    .read(range, &mut bytes, &mut some)
                    .map_err(|error| unwritten(self.directory.as_deref(), error))?;
                all.extend_from_slice(&some);
            }
            Ok(all)
        };
        let numbers = read(&columns[0])?;
        let (high, low) = (read(&columns[1])?, read(&columns[2])?);
        let digests = high.iter().zip(&low).map(|(high, low)| u64::from(*high) << 32 | u64::from(*low)).collect();
        let found = read(&columns[3])?;
        let mut masks: Vec<Vec<u32>> = columns[BEFORE..].iter().map(read).collect::<Result<_, _>>()?;
        let codes = masks.split_off(self.words);
        Ok(Part { numbers, digests, found, masks, codes })
    }
}

/// A bit each.
struct Bits(Vec<u64>);

impl Bits {
    fn new(bits: usize) -> Self {
        Self(vec![0; bits.div_ceil(64)])
    }

    /// Sets one, where there is such a one: nobody has none.
    fn set(&mut self, bit: u32) {
        if let Some(word) = self.0.get_mut(bit as usize / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

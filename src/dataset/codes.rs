//! The codes of a data set, column by column, in memory or in a file without a name, and whom each record counts for.

use super::error::AnonymizeError;
use super::read::Marks;
use crate::anonymity::lattice::table::NOBODY;
use hashbrown::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use throng_core::values::codebook::Code;
use throng_core::values::schema::Schema;
use throng_core::values::subject::NO_SUBJECT;
use throng_core::values::table::Batch;
use throng_risk::counting::CodeWriter;
use throng_risk::counting::codes::CodeColumn;

/// Codes that are held until they are written: 16 MiB.
const CELLS_AT_ONCE: usize = 4 << 20;

/// Records that are read back at once.
const RECORDS_AT_ONCE: usize = 1 << 15;

/// Columns behind those of attributes: both halves of the digest of whom a record counts for, and his dense number.
const DIGEST: usize = 2;

/// Codes on their way into memory or a file.
pub struct Writing {
    writer: CodeWriter,
    directory: Option<PathBuf>,
    /// The attributes that have codes.
    attributes: Vec<usize>,
    width: usize,
    pending: Vec<Vec<u32>>,
    /// Dense numbers of the people, where the schema names them.
    people: Option<HashMap<u64, u32>>,
    rows: usize,
}

impl Writing {
    /// A place for records of `schema`: a file in `directory`; none: memory.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn new(directory: Option<&Path>, schema: &Schema) -> Result<Self, AnonymizeError> {
        let attributes: Vec<usize> = schema.releasable().collect();
        let people = schema.subject.map(|_| HashMap::new());
        let columns = attributes.len() + DIGEST + usize::from(people.is_some());
        let writer = CodeWriter::new(directory, columns).map_err(|error| unwritten(directory, error))?;
        let (directory, pending) = (directory.map(Path::to_owned), vec![Vec::new(); columns]);
        Ok(Self { writer, directory, attributes, width: schema.attributes.len(), pending, people, rows: 0 })
    }

    /// Adds the records of a batch.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&mut self, batch: &Batch) -> Result<(), AnonymizeError> {
        let (of_attributes, others) = self.pending.split_at_mut(self.attributes.len());
        for (column, attribute) in of_attributes.iter_mut().zip(&self.attributes) {
            column.extend_from_slice(&batch.columns[*attribute]);
        }
        others[0].extend(batch.subjects.iter().map(|digest| (digest >> 32) as u32));
        others[1].extend(batch.subjects.iter().map(|digest| *digest as u32));
        if let (Some(numbers), Some(people)) = (others.get_mut(DIGEST), &mut self.people) {
            numbers.extend(batch.subjects.iter().map(|&digest| {
                let next = people.len() as u32;
                if digest == NO_SUBJECT { NOBODY } else { *people.entry(digest).or_insert(next) }
            }));
        }
        self.rows += batch.rows();
        if self.pending.len() * self.pending[0].len() >= CELLS_AT_ONCE {
            self.write()?;
        }
        Ok(())
    }

    /// Records so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of attributes.
    pub fn width(&self) -> usize {
        self.attributes.len()
    }

    /// Bytes held for the people: their digests and numbers.
    pub fn people_bytes(&self) -> u64 {
        self.people.as_ref().map_or(0, |people| people.capacity() as u64 * (size_of::<(u64, u32)>() as u64 + 1))
    }

    fn write(&mut self) -> Result<(), AnonymizeError> {
        for (number, codes) in self.pending.iter_mut().enumerate() {
            let written = if number < self.attributes.len() {
                self.writer.append(number, codes)
            } else {
                self.writer.append_numbers(number, codes)
            };
            written.map_err(|error| unwritten(self.directory.as_deref(), error))?;
            codes.clear();
        }
        Ok(())
    }

    /// Writes the rest, and gives what was written.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> Result<Codes, AnonymizeError> {
        self.write()?;
        let mut counts = vec![Vec::new(); self.width];
        for (number, attribute) in self.attributes.iter().enumerate() {
            counts[*attribute] = self.writer.counts(number).to_vec();
        }
        let mut columns = self.writer.into_columns();
        let others = columns.split_off(self.attributes.len());
        let mut by_attribute: Vec<Option<CodeColumn>> = vec![None; self.width];
        for (attribute, column) in self.attributes.into_iter().zip(columns) {
            by_attribute[attribute] = Some(column);
        }
        let people = self.people.map(|people| people.len());
        Ok(Codes {
            columns: by_attribute,
            others,
            counts,
            people,
            rows: self.rows,
            directory: self.directory,
            marks: None,
        })
    }
}

/// Codes that have been written.
pub struct Codes {
    /// By attribute; none where no record has a value of it that leaves or is judged.
    columns: Vec<Option<CodeColumn>>,
    others: Vec<CodeColumn>,
    /// By attribute and code: records.
    pub counts: Vec<Vec<u64>>,
    /// Distinct people, where the schema names them.
    pub people: Option<usize>,
    pub rows: usize,
    /// Where they lie; none: in memory.
    pub directory: Option<PathBuf>,
    /// Which records are to be released; none: all.
    pub marks: Option<Marks>,
}

/// What is read of each record.
#[derive(Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// The codes of these attributes.
    pub attributes: &'a [usize],
    /// The digest of whom it counts for.
    pub digests: bool,
    /// His number.
    pub people: bool,
}

/// Some records, one after the other.
#[derive(Default)]
pub struct Block {
    /// The number of the first.
    pub start: usize,
    /// How many.
    pub rows: usize,
    /// Their codes, by attribute that was wanted.
    pub codes: Vec<Vec<Code>>,
    pub digests: Vec<u64>,
    /// Whom they count for: a dense number, or the record's own where nobody is named.
    pub people: Vec<u32>,
    /// Places in the block of those that are to be released.
    pub released: Vec<u32>,
}

impl Block {
    /// By record whether it is to be released.
    pub fn is_released(&self) -> Vec<bool> {
        let mut is_released = vec![false; self.rows];
        self.released.iter().for_each(|&at| is_released[at as usize] = true);
        is_released
    }
}

impl Codes {
    /// Hands all records over, block by block.
    ///
    /// # Errors
    /// When the file cannot be read, and those of `visit`.
    pub fn each(
        &self,
        wanted: Wanted<'_>,
        visit: &mut dyn FnMut(&Block) -> Result<(), AnonymizeError>,
    ) -> Result<(), AnonymizeError> {
        let mut block = Block { codes: vec![Vec::new(); wanted.attributes.len()], ..Block::default() };
        let (mut bytes, mut numbers) = (Vec::new(), Vec::new());
        for start in (0..self.rows).step_by(RECORDS_AT_ONCE) {
            let rows = start..self.rows.min(start + RECORDS_AT_ONCE);
            let mut read = |column: &CodeColumn, into: &mut Vec<u32>| {
                column.read(rows.clone(), &mut bytes, into).map_err(|error| unwritten(self.directory.as_deref(), error))
            };
            (block.start, block.rows) = (start, rows.len());
            for (attribute, codes) in wanted.attributes.iter().zip(&mut block.codes) {
                match &self.columns[*attribute] {
                    Some(column) => read(column, codes)?,
                    None => {
                        codes.clear();
                        codes.resize(rows.len(), 0);
                    }
                }
            }
            if wanted.digests {
                block.digests.clear();
                read(&self.others[0], &mut numbers)?;
                block.digests.extend(numbers.iter().map(|half| u64::from(*half) << 32));
                read(&self.others[1], &mut numbers)?;
                block.digests.iter_mut().zip(&numbers).for_each(|(digest, half)| *digest |= u64::from(*half));
            }
            if wanted.people {
                match self.others.get(DIGEST) {
                    Some(column) => read(column, &mut block.people)?,
                    None => {
                        block.people.clear();
                        block.people.extend(rows.clone().map(|row| row as u32));
                    }
                }
            }
            block.released.clear();
            match &self.marks {
                None => block.released.extend(0..rows.len() as u32),
                Some(marks) => {
                    if let Some(column) = &self.columns[marks.attribute] {
                        read(column, &mut numbers)?;
                    }
                    let marked = (0..).zip(&numbers).filter(|(_, code)| marks.released[**code as usize]);
                    block.released.extend(marked.map(|(place, _)| place));
                }
            }
            visit(&block)?;
        }
        Ok(())
    }

    /// The codes of some attributes, of whom each record counts for, and whether it is to be released: of all records at once.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn all(&self, attributes: &[usize]) -> Result<(Vec<Vec<Code>>, Vec<u32>, Option<Vec<bool>>), AnonymizeError> {
        let mut codes = vec![Vec::with_capacity(self.rows); attributes.len()];
        let mut people = Vec::with_capacity(self.rows);
        let mut released = self.marks.as_ref().map(|_| Vec::with_capacity(self.rows));
        self.each(Wanted { attributes, people: true, ..Wanted::default() }, &mut |block| {
            codes.iter_mut().zip(&block.codes).for_each(|(all, some)| all.extend_from_slice(some));
            people.extend_from_slice(&block.people);
            if let Some(released) = &mut released {
                released.extend(block.is_released());
            }
            Ok(())
        })?;
        Ok((codes, people, released))
    }

    /// By code of an attribute: the records that are to be released.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn released_counts(&self, attribute: usize) -> Result<Vec<u64>, AnonymizeError> {
        if self.marks.is_none() {
            return Ok(self.counts[attribute].clone());
        }
        let mut counts = vec![0; self.counts[attribute].len()];
        self.each(Wanted { attributes: &[attribute], ..Wanted::default() }, &mut |block| {
            block.released.iter().for_each(|&at| counts[block.codes[0][at as usize] as usize] += 1);
            Ok(())
        })?;
        Ok(counts)
    }
}

/// What has gone wrong with a file in the directory for temporary ones.
pub fn unwritten(directory: Option<&Path>, source: io::Error) -> AnonymizeError {
    AnonymizeError::Temporary { directory: directory.unwrap_or(Path::new("memory")).to_owned(), source }
}

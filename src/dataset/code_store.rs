//! Codes of a data set by column, in memory or in an unnamed file, and the subject of each record.

use super::error::AnonymizeError;
use super::input_encoding::ReleaseMarks;
use hashbrown::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use throng_core::lattice::table::UNCOUNTED_SUBJECT;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::Code;
use throng_core::values::schema::Schema;
use throng_core::values::subject_digest::NO_SUBJECT;
use throng_risk::counting::CodeWriter;
use throng_risk::counting::codes::CodeColumn;

/// 16 MiB.
const BUFFERED_CELLS: usize = 4 << 20;

const BLOCK_RECORDS: usize = 1 << 15;

/// Both halves of the subject digest; the dense subject number follows.
const DIGEST_COLUMNS: usize = 2;

/// Writer into memory or a file.
pub struct CodeStoreWriter {
    writer: CodeWriter,
    directory: Option<PathBuf>,
    /// Attributes with codes.
    attributes: Vec<usize>,
    width: usize,
    pending: Vec<Vec<u32>>,
    /// Dense subject numbers.
    people: Option<HashMap<u64, u32>>,
    rows: usize,
}

impl CodeStoreWriter {
    /// Creates a file in `directory`, or memory.
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub fn new(directory: Option<&Path>, schema: &Schema) -> Result<Self, AnonymizeError> {
        let attributes: Vec<usize> = schema.releasable().collect();
        let people = schema.subject.map(|_| HashMap::new());
        let columns = attributes.len() + DIGEST_COLUMNS + usize::from(people.is_some());
        let writer = CodeWriter::new(directory, columns).map_err(|error| temporary_file_error(directory, error))?;
        let (directory, pending) = (directory.map(Path::to_owned), vec![Vec::new(); columns]);
        Ok(Self { writer, directory, attributes, width: schema.attributes.len(), pending, people, rows: 0 })
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn add(&mut self, batch: &CodeBatch) -> Result<(), AnonymizeError> {
        let (of_attributes, others) = self.pending.split_at_mut(self.attributes.len());
        for (column, attribute) in of_attributes.iter_mut().zip(&self.attributes) {
            column.extend_from_slice(&batch.columns[*attribute]);
        }
        others[0].extend(batch.subjects.iter().map(|digest| (digest >> 32) as u32));
        others[1].extend(batch.subjects.iter().map(|digest| *digest as u32));
        if let (Some(numbers), Some(people)) = (others.get_mut(DIGEST_COLUMNS), &mut self.people) {
            numbers.extend(batch.subjects.iter().map(|&digest| {
                let next = people.len() as u32;
                if digest == NO_SUBJECT { UNCOUNTED_SUBJECT } else { *people.entry(digest).or_insert(next) }
            }));
        }
        self.rows += batch.rows();
        if self.pending.len() * self.pending[0].len() >= BUFFERED_CELLS {
            self.write()?;
        }
        Ok(())
    }

    /// Returns the records so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the attribute columns.
    pub fn width(&self) -> usize {
        self.attributes.len()
    }

    /// Returns the bytes for subjects.
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
            written.map_err(|error| temporary_file_error(self.directory.as_deref(), error))?;
            codes.clear();
        }
        Ok(())
    }

    /// Writes the rest and returns the storage.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn finish(mut self) -> Result<CodeStore, AnonymizeError> {
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
        Ok(CodeStore {
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

/// Stored codes of all records.
pub struct CodeStore {
    /// `None` for attributes that are neither released nor judged.
    columns: Vec<Option<CodeColumn>>,
    others: Vec<CodeColumn>,
    /// Records per attribute and code.
    pub counts: Vec<Vec<u64>>,
    /// Distinct subjects, if named.
    pub people: Option<usize>,
    pub rows: usize,
    /// Directory of the file, or memory.
    pub directory: Option<PathBuf>,
    /// Marks of records to be released, or all.
    pub marks: Option<ReleaseMarks>,
}

/// Fields to read.
#[derive(Clone, Copy, Default)]
pub struct RecordFields<'a> {
    /// Attributes.
    pub attributes: &'a [usize],
    /// With subject digests.
    pub digests: bool,
    /// With subject numbers.
    pub people: bool,
}

/// Consecutive records.
#[derive(Default)]
pub struct RecordBlock {
    /// First record.
    pub start: usize,
    /// Number of records.
    pub rows: usize,
    /// Codes per requested attribute.
    pub codes: Vec<Vec<Code>>,
    pub digests: Vec<u64>,
    /// Dense subject number, or the record number without a subject.
    pub people: Vec<u32>,
    /// Positions of records to be released.
    pub released: Vec<u32>,
}

impl RecordBlock {
    /// Returns true per record to be released.
    pub fn release_flags(&self) -> Vec<bool> {
        let mut is_released = vec![false; self.rows];
        self.released.iter().for_each(|&at| is_released[at as usize] = true);
        is_released
    }
}

impl CodeStore {
    /// Visits all records by block.
    ///
    /// # Errors
    /// Fails if the file cannot be read, and with the errors of `visit`.
    pub fn visit_blocks(
        &self,
        wanted: RecordFields<'_>,
        visit: &mut dyn FnMut(&RecordBlock) -> Result<(), AnonymizeError>,
    ) -> Result<(), AnonymizeError> {
        let mut block = RecordBlock { codes: vec![Vec::new(); wanted.attributes.len()], ..RecordBlock::default() };
        let (mut bytes, mut numbers) = (Vec::new(), Vec::new());
        for start in (0..self.rows).step_by(BLOCK_RECORDS) {
            let rows = start..self.rows.min(start + BLOCK_RECORDS);
            let mut read = |column: &CodeColumn, into: &mut Vec<u32>| {
                column
                    .read(rows.clone(), &mut bytes, into)
                    .map_err(|error| temporary_file_error(self.directory.as_deref(), error))
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
                match self.others.get(DIGEST_COLUMNS) {
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

    /// Returns codes, subject numbers, and release marks of all records.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read_all_records(
        &self,
        attributes: &[usize],
    ) -> Result<(Vec<Vec<Code>>, Vec<u32>, Option<Vec<bool>>), AnonymizeError> {
        let mut codes = vec![Vec::with_capacity(self.rows); attributes.len()];
        let mut people = Vec::with_capacity(self.rows);
        let mut released = self.marks.as_ref().map(|_| Vec::with_capacity(self.rows));
        self.visit_blocks(RecordFields { attributes, people: true, ..RecordFields::default() }, &mut |block| {
            codes.iter_mut().zip(&block.codes).for_each(|(all, some)| all.extend_from_slice(some));
            people.extend_from_slice(&block.people);
            if let Some(released) = &mut released {
                released.extend(block.release_flags());
            }
            Ok(())
        })?;
        Ok((codes, people, released))
    }

    /// Returns the records to be released per code.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn released_counts(&self, attribute: usize) -> Result<Vec<u64>, AnonymizeError> {
        if self.marks.is_none() {
            return Ok(self.counts[attribute].clone());
        }
        let mut counts = vec![0; self.counts[attribute].len()];
        self.visit_blocks(RecordFields { attributes: &[attribute], ..RecordFields::default() }, &mut |block| {
            block.released.iter().for_each(|&at| counts[block.codes[0][at as usize] as usize] += 1);
            Ok(())
        })?;
        Ok(counts)
    }
}

/// Returns the error for a temporary file.
pub fn temporary_file_error(directory: Option<&Path>, source: io::Error) -> AnonymizeError {
    AnonymizeError::Temporary { directory: directory.unwrap_or(Path::new("memory")).to_owned(), source }
}

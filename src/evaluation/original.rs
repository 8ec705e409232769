//! The records before the release, as the schema of their configuration reads them.

use super::error::EvaluationError;
use crate::config::{Config, Format};
use crate::io::file::{FileSource, SourcePosition};
use crate::io::input::InputBatch;
use crate::records::codebook::{CellId, Code, Codebook};
use crate::records::digest::DigestKey;
use crate::records::schema::Schema;
use crate::records::subject::Subjects;
use crate::records::table::Batch;
use crate::start::encode::encode;
use crate::start::reading::{codec_limits, fields, file_format};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Records decoded at a time.
const AT_A_TIME: usize = 10_000;

/// The records of a source. Memory: 4 bytes a cell, and every different value with its generalizations.
pub struct Original {
    /// The record schema.
    pub schema: Arc<Schema>,
    /// From values to codes and labels, by attribute.
    pub books: Vec<Codebook>,
    /// The records that could be read, in the order of the source.
    pub batch: Batch,
    /// Records that could not be read or have a cell of the wrong type: the daemon makes dead letters of them.
    pub rejected: u64,
}

impl Original {
    /// Reads `path` in the source's format.
    ///
    /// # Errors
    /// When the file cannot be read, lacks a column, or has no record.
    pub fn read(config: &Config, schema: &Arc<Schema>, path: &Path) -> Result<Self, EvaluationError> {
        let key = DigestKey::of_this_run().map_err(EvaluationError::Randomness)?;
        let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &key, config.state.max_dictionary_values);
        let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect::<Result<_, _>>()?;
        let mut subjects = schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), &key));
        let (limits, unknown) = codec_limits(config);
        let format = config.source.format();
        let (file, columns) = (file_format(format, config.source.separator), fields(schema, format == Format::Csv));
        let mut source = FileSource::open(path, file, &columns, limits, unknown, SourcePosition::default())?;
        let absent = source.absent_attributes();
        if !absent.is_empty() {
            let attributes = absent.into_iter().map(|a| format!("attribute {:?}", schema.attributes[a].name)).collect();
            return Err(EvaluationError::NoColumn { path: path.to_owned(), attributes });
        }
        let absent_as_null = config.sink.format() != Format::Json;
        let (mut batch, mut rejected) = (Batch::new(schema.attributes.len()), 0);
        loop {
            let (mut input, mut refused) = (InputBatch::new(schema.attributes.len(), 0), Vec::new());
            let outcome = source.read(&mut input.raw, AT_A_TIME, u64::MAX, &mut refused)?;
            let (rows, misfits) = encode(&input, schema, &mut books, subjects.as_mut(), absent_as_null);
            rejected += (refused.len() + misfits.len()) as u64;
            batch.append(&rows);
            if outcome.end {
                break;
            }
        }
        if batch.rows() == 0 {
            return Err(EvaluationError::Empty(path.to_owned()));
        }
        Ok(Self { schema: Arc::clone(schema), books, batch, rejected })
    }

    /// Records.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.batch.rows()
    }

    /// The row of the record at `offset` of the source; none for one that could not be read.
    #[must_use]
    pub fn row_at(&self, offset: i64) -> Option<usize> {
        self.batch.coordinates.binary_search_by_key(&offset, |place| place.offset).ok()
    }

    /// By cell of an attribute, the codes of the occurring values that it stands for, ascending.
    #[must_use]
    pub fn covers(&self, attribute: usize) -> BTreeMap<CellId, Vec<Code>> {
        let book = &self.books[attribute];
        let mut occurring = vec![false; book.codes()];
        self.batch.columns[attribute].iter().for_each(|&code| occurring[code as usize] = true);
        let mut covers: BTreeMap<CellId, Vec<Code>> = BTreeMap::new();
        for code in (0..book.codes() as Code).filter(|&code| occurring[code as usize]) {
            for level in 0..book.levels() {
                let codes = covers.entry(book.cell(code, level)).or_default();
                if codes.last() != Some(&code) {
                    codes.push(code);
                }
            }
        }
        covers
    }
}

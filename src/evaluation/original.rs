//! The records before the release, as the schema of their configuration reads them.

use super::error::EvaluationError;
use crate::config::Config;
use crate::start::profiles::NotRead;
use crate::start::sampling::{self, Read, SamplingError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use throng_core::values::codebook::{CellId, Code, Codebook};
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::Schema;
use throng_core::values::table::Batch;

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
    /// By attribute and row: numbers and times (in milliseconds) that have no code, because they are outside the range of the hierarchy.
    pub uncovered: BTreeMap<(usize, usize), f64>,
}

impl Original {
    /// Reads `path` in the source's format, joined to the profiles of `config`, the file `file` in messages. Subjects are digested by
    /// `key`, as a run digests them; without one by a random key.
    ///
    /// # Errors
    /// When profiles are in a topic or cannot be read, and when the file cannot be read, lacks a column, or has no record.
    pub fn read(
        config: &Config,
        schema: &Arc<Schema>,
        file: &str,
        path: &Path,
        key: Option<&DigestKey>,
    ) -> Result<Self, EvaluationError> {
        let named = |a: usize| format!("attribute {:?}", schema.attributes[a].name);
        let absent_as_null = config.sink.cannot_omit();
        let read =
            sampling::read_joined(config, schema, file, path, absent_as_null, key).map_err(|error| match error {
                SamplingError::Profiles(NotRead::Problems(problems)) => EvaluationError::Configuration(problems),
                error => error.into(),
            })?;
        if !read.absent.is_empty() {
            let attributes = read.absent.into_iter().map(named).collect();
            return Err(EvaluationError::NoColumn { path: path.to_owned(), attributes });
        }
        let Read { books, batch, rejected, uncovered, .. } = read;
        if batch.rows() == 0 {
            return Err(EvaluationError::Empty(path.to_owned()));
        }
        Ok(Self { schema: Arc::clone(schema), books, batch, rejected, uncovered })
    }

    /// Records.
    pub fn rows(&self) -> usize {
        self.batch.rows()
    }

    /// The row of the record at `offset` of the source, which is `element` of it (from 1; 0: all of it); none for one that could not
    /// be read.
    pub fn row_at(&self, offset: i64, element: u32) -> Option<usize> {
        self.batch.coordinates.binary_search_by_key(&(offset, element), |place| (place.offset, place.element)).ok()
    }

    /// By cell of an attribute, the codes of the occurring values that it stands for, ascending.
    /// `ranges` are cells of ranges.
    pub fn covers(&self, attribute: usize, ranges: &BTreeSet<CellId>) -> BTreeMap<CellId, Vec<Code>> {
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
        for &range in ranges {
            let codes = (0..book.codes() as Code).filter(|&code| occurring[code as usize] && book.covers(range, code));
            covers.insert(range, codes.collect());
        }
        covers
    }
}

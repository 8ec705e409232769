//! Original records before the release, read with the schema of their configuration.

use super::error::EvaluationError;
use crate::config::Config;
use crate::start::profile_sources::ProfilesUnavailable;
use crate::start::sampling::{self, SampledRecords, SamplingError};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{CellId, Code, Codebook};
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::Schema;

/// Records of a source. Memory: 4 bytes per cell, plus every distinct value with its generalizations.
pub struct OriginalData {
    /// Record schema.
    pub schema: Arc<Schema>,
    /// Codebook of each attribute: values to codes and labels.
    pub books: Vec<Codebook>,
    /// Readable records, in the order of the source.
    pub batch: CodeBatch,
    /// Number of records that are unreadable or have a cell of the wrong type. The daemon makes dead letters of them.
    pub rejected: u64,
    /// By attribute and row: numbers and times (in milliseconds) without a code because they are outside the range of
    /// the hierarchy.
    pub uncovered: BTreeMap<(usize, usize), f64>,
}

impl OriginalData {
    /// Reads `path` in the source's format, joined to the profiles of `config`. `file` names the configuration file
    /// in messages. Subjects are digested by `key`, as in a run; without one, by a random key.
    ///
    /// # Errors
    /// When profiles are in a topic or cannot be read, and when the file cannot be read, lacks a column, or has no
    /// record.
    pub fn read(
        config: &Config,
        schema: &Arc<Schema>,
        file: &str,
        path: &Path,
        key: Option<&DigestKey>,
    ) -> Result<Self, EvaluationError> {
        let named = |a: usize| format!("attribute {:?}", schema.attributes[a].name);
        let absent_as_null = config.sink.writes_absent_cells();
        let read =
            sampling::read_joined(config, schema, file, path, absent_as_null, key).map_err(|error| match error {
                SamplingError::Profiles(ProfilesUnavailable::Problems(problems)) => {
                    EvaluationError::Configuration(problems)
                }
                error => error.into(),
            })?;
        if !read.absent.is_empty() {
            let attributes = read.absent.into_iter().map(named).collect();
            return Err(EvaluationError::NoColumn { path: path.to_owned(), attributes });
        }
        let SampledRecords { books, batch, rejected, uncovered, .. } = read;
        if batch.rows() == 0 {
            return Err(EvaluationError::Empty(path.to_owned()));
        }
        Ok(Self { schema: Arc::clone(schema), books, batch, rejected, uncovered })
    }

    /// Returns the number of records.
    pub fn rows(&self) -> usize {
        self.batch.rows()
    }

    /// Returns the row of the record at `offset` of the source and at `element` of that message (from 1; 0: the whole
    /// message). Returns none for an unreadable record.
    pub fn row_at(&self, offset: i64, element: u32) -> Option<usize> {
        self.batch.coordinates.binary_search_by_key(&(offset, element), |place| (place.offset, place.element)).ok()
    }

    /// Returns for each cell of an attribute the codes of the occurring values that it covers, ascending. `ranges`
    /// are cells of ranges.
    pub fn covered_codes(&self, attribute: usize, ranges: &BTreeSet<CellId>) -> BTreeMap<CellId, Vec<Code>> {
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

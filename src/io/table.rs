//! A whole file as dictionary-encoded columns: for judging a data set at once, where `file` serves a stream of batches.
//!
//! Memory: 4 bytes a cell, the texts of the different values, and one batch of about 28 MiB. A limit on the first two is
//! kept after every batch.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::file::{ColumnChoice, FileSource, Format, LongRows, SourceError, SourcePosition};
use crate::codec::{Field, Limits, Unknown};
use crate::records::based::Resolved;
use crate::records::dictionary::{ABSENT, Dictionary, DictionaryFull, EncodeError, MISSING};
use crate::records::numbers::RecordNumbers;
use crate::records::raw::{Coordinate, RawBatch, Token};
use crate::records::schema::{Attribute, Origin, Schema};
use crate::records::shapes::{Shape, shape_of};
use crate::telemetry::RejectionReason;

/// Bytes of the cells of one batch, and cells.
const BATCH_BYTES: u64 = 16 << 20;
const BATCH_CELLS: usize = 1 << 20;

/// Records of one batch. Before the first one, nobody knows how wide records without a schema are.
fn batch_records(width: usize) -> usize {
    BATCH_CELLS.checked_div(width).map_or(512, |records| records.clamp(512, 8192))
}

/// Memory for one cell while a table is read and searched: its code, growing, and the copies that a search makes of it
/// (masked cells, narrow columns).
const CELL_BYTES: u64 = 12;

/// What to read.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// `-` is standard input (NDJSON and CSV).
    pub path: &'a Path,
    /// How the file is written down.
    pub format: Format,
    /// Types, rounding, missing values and places of the attributes; without one, columns are texts.
    pub schema: Option<&'a Schema>,
    /// Only these columns, by name.
    pub columns: Option<&'a [String]>,
    /// What a record may cost.
    pub limits: Limits,
    /// More columns are refused.
    pub max_columns: usize,
    /// More memory, in bytes, is refused.
    pub max_bytes: u64,
    /// Only so many records, the first ones.
    pub max_records: Option<u64>,
    /// Leave unreadable records out and count them, instead of failing at the first.
    pub skip_unreadable: bool,
}

/// A column with its values.
#[derive(Clone, Debug)]
pub struct TableColumn {
    /// Its name in the file or in the schema.
    pub name: String,
    /// The keys from the top of a record down to it; its name alone where nothing is nested, or a schema says where it is.
    pub way: Vec<String>,
    /// The part of a message that has it.
    pub from: Origin,
    /// What the schema says about it.
    pub attribute: Option<Arc<Attribute>>,
    /// A code of the dictionary a row.
    pub codes: Vec<u32>,
    /// The values behind the codes.
    pub dictionary: Dictionary,
    /// Cells that are arrays: each is one text, and what is in it is not looked at.
    pub arrays: u64,
}

/// A file that has been read.
#[derive(Clone, Debug, Default)]
pub struct WholeTable {
    /// Its columns, each with a code for every row.
    pub columns: Vec<TableColumn>,
    /// Records that could be read.
    pub rows: u64,
    /// Which record of the file each row is; unreadable ones count.
    pub numbers: RecordNumbers,
    /// Records left out, by reason.
    pub unreadable: BTreeMap<&'static str, u64>,
    /// Columns that no readable record has a cell of; they are not among the columns.
    pub absent: Vec<String>,
    /// Cells of columns that the schema does not know; they are not among the columns either.
    pub unknown_cells: u64,
    /// Rows in which a quote is likely to be open by mistake.
    pub long_rows: Option<LongRows>,
    /// Only the first records were asked for, and there may be more.
    pub cut: bool,
}

/// How far a file has been read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadProgress {
    /// Records read, the unreadable ones included.
    pub records: u64,
    /// Bytes of the file read; for Parquet its length.
    pub bytes: u64,
}

/// A file that could not be read as a table. No message repeats anything of the file but names of columns that were
/// asked for.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum TableError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(
        "record {record} of {path} (counted from 1) cannot be read: {reason}; correct it, or leave such records out \
         and counted (--skip-unreadable)"
    )]
    Unreadable { path: PathBuf, record: u64, reason: String },
    #[error("{path} has no records: nothing can be judged; check the file")]
    NoRecords { path: PathBuf },
    #[error("none of the {records} records of {path} can be read: check its format (--format) and the schema")]
    NothingReadable { path: PathBuf, records: u64 },
    #[error("the schema {schema} has no attribute \"{column}\": correct the name, or add it to the schema")]
    NotInSchema { schema: String, column: String },
    #[error(
        "{path} needs more than {limit} after {records} records: choose columns (--columns), take a sample of the \
         records, or allow more (--memory)"
    )]
    TooLarge { path: PathBuf, records: u64, limit: String },
    #[error("column {place} of {path}: {source}")]
    Full { path: PathBuf, place: usize, source: DictionaryFull },
    #[error(
        "the header of column {place} of {path} has the shape of {shape}: its first row seems to be a record, not a \
         header; add a header row"
    )]
    NoHeader { path: PathBuf, place: usize, shape: &'static str },
    #[error("{path} has a single column whose header holds a separator: name the right one (--separator)")]
    Separator { path: PathBuf },
}

/// Reads a file.
///
/// # Errors
/// When it cannot be read, is too large, holds no records or, unless told to skip them, unreadable ones.
pub fn read(request: &Request<'_>, progress: &mut dyn FnMut(ReadProgress)) -> Result<WholeTable, TableError> {
    read_all(Reading::open(request)?, request, progress)
}

/// Reads lines of NDJSON that somebody makes, `request.path` in messages; no schema describes them.
///
/// # Errors
/// As [`read`].
pub fn read_lines(
    lines: Box<dyn Read + Send>,
    request: &Request<'_>,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<WholeTable, TableError> {
    let columns = ColumnChoice { wanted: request.columns, at_most: request.max_columns };
    let source = FileSource::of_lines(request.path, lines, request.limits, columns);
    read_all(Reading::of(source, Vec::new(), false), request, progress)
}

fn read_all(
    mut reading: Reading,
    request: &Request<'_>,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<WholeTable, TableError> {
    let mut rejected: Vec<(Coordinate, RejectionReason)> = Vec::new();
    loop {
        let mut batch = RawBatch::new(reading.columns.len());
        let left = request.max_records.map_or(u64::MAX, |most| most - reading.source.position().records);
        let records = batch_records(reading.columns.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
        let outcome = reading.source.read(&mut batch, records, BATCH_BYTES, &mut rejected)?;
        reading.long_rows = LongRows::and(reading.long_rows, reading.source.take_long_rows());
        for (at, reason) in rejected.drain(..) {
            reading.unreadable(at, reason.name(), reason.remedy(), request)?;
        }
        reading.widen();
        reading.add(&batch, request)?;
        let position = reading.source.position();
        progress(ReadProgress { records: position.records, bytes: position.bytes });
        if outcome.end {
            break;
        }
        if request.max_records.is_some_and(|most| position.records >= most) {
            reading.cut = true;
            break;
        }
    }
    reading.finish(request)
}

/// What reads a described table: its columns, and the attribute of each cell.
type Described = (FileSource, Vec<TableColumn>, Vec<Arc<Attribute>>);

struct Reading {
    source: FileSource,
    columns: Vec<TableColumn>,
    rows: usize,
    numbers: RecordNumbers,
    unreadable: BTreeMap<&'static str, u64>,
    unknown_cells: u64,
    long_rows: Option<LongRows>,
    described: bool,
    /// Of a described table: the attribute of each cell that is read. Behind those of the columns are others from which their times count.
    attributes: Vec<Arc<Attribute>>,
    cut: bool,
}

impl Reading {
    fn open(request: &Request<'_>) -> Result<Self, TableError> {
        let described = request.schema.is_some();
        let (source, columns, attributes) = match request.schema {
            Some(schema) => Self::described(request, schema)?,
            None => {
                let columns = ColumnChoice { wanted: request.columns, at_most: request.max_columns };
                let source = FileSource::open_undescribed(request.path, request.format, request.limits, columns)?;
                if matches!(request.format, Format::Csv { .. }) {
                    header_is_one(request.path, source.names())?;
                }
                (source, Vec::new(), Vec::new())
            }
        };
        Ok(Self { attributes, ..Self::of(source, columns, described) })
    }

    fn of(source: FileSource, columns: Vec<TableColumn>, described: bool) -> Self {
        let (unreadable, unknown_cells, long_rows) = (BTreeMap::new(), 0, None);
        let numbers = RecordNumbers::default();
        let mut reading = Self {
            source,
            columns,
            rows: 0,
            numbers,
            unreadable,
            unknown_cells,
            long_rows,
            described,
            attributes: Vec::new(),
            cut: false,
        };
        reading.widen();
        reading
    }

    fn described(request: &Request<'_>, schema: &Schema) -> Result<Described, TableError> {
        if let Some(column) = request.columns.into_iter().flatten().find(|name| schema.position(name).is_none()) {
            return Err(TableError::NotInSchema { schema: schema.name.clone(), column: column.clone() });
        }
        let wanted = |a: &&Arc<Attribute>| request.columns.is_none_or(|columns| columns.contains(&a.name));
        let mut attributes: Vec<Arc<Attribute>> = schema.attributes.iter().filter(wanted).cloned().collect();
        let shown = attributes.len();
        let is_base = |a: &&Arc<Attribute>| {
            !wanted(a) && attributes.iter().any(|of| of.base.as_ref().is_some_and(|base| base.attribute == a.name))
        };
        let bases: Vec<Arc<Attribute>> = schema.attributes.iter().filter(is_base).cloned().collect();
        attributes.extend(bases);
        if attributes.len() > request.max_columns {
            let (path, limit) = (request.path.into(), request.max_columns);
            return Err(SourceError::TooManyColumns { path, limit }.into());
        }
        let flat = matches!(request.format, Format::Csv { .. });
        let field = |a: &Arc<Attribute>| if flat { Field::flat(&a.column()) } else { Field::of(a) };
        let fields: Vec<Field> = attributes.iter().map(field).collect();
        let start = SourcePosition::default();
        let source = FileSource::open(request.path, request.format, &fields, request.limits, Unknown::Drop, start)?;
        let column = |attribute: &Arc<Attribute>| TableColumn {
            name: attribute.name.clone(),
            way: vec![attribute.name.clone()],
            from: attribute.from.clone(),
            dictionary: Dictionary::new(Some(attribute.typing.clone())),
            attribute: Some(Arc::clone(attribute)),
            codes: Vec::new(),
            arrays: 0,
        };
        let columns = attributes[..shown].iter().map(column).collect();
        Ok((source, columns, attributes))
    }

    /// Columns for names that have come since; earlier rows have nothing in them.
    fn widen(&mut self) {
        if self.described {
            return;
        }
        for place in self.columns.len()..self.source.names().len() {
            let (name, way, dictionary) =
                (self.source.names()[place].clone(), self.source.way(place), Dictionary::new(None));
            let codes = vec![ABSENT; self.rows];
            let from = Origin::Value;
            self.columns.push(TableColumn { name, way, from, attribute: None, codes, dictionary, arrays: 0 });
        }
    }

    /// Encodes a batch, columns in parallel. A row in which any cell has the wrong type is left out as a whole.
    fn add(&mut self, batch: &RawBatch, request: &Request<'_>) -> Result<(), TableError> {
        let resolved = Resolved::of(batch, &self.attributes);
        let encode = |(index, column): (usize, &mut TableColumn)| {
            let mut faults: Vec<(usize, String)> = Vec::new();
            let (batch, place) =
                resolved.as_ref().and_then(|resolved| resolved.column(index)).unwrap_or((batch, index));
            for row in 0..batch.rows() {
                // A batch that no record has widened knows nothing of the later columns.
                let token = if place < batch.width() { batch.token(row, place) } else { Token::Absent };
                column.arrays += u64::from(matches!(token, Token::Structure(text) if text.starts_with('[')));
                column.codes.push(match column.dictionary.encode(token) {
                    Ok(code) => code,
                    Err(EncodeError::Cell(error)) => {
                        faults.push((row, error.to_string()));
                        ABSENT
                    }
                    Err(EncodeError::Full(source)) => return Err((index, source)),
                });
            }
            Ok(faults)
        };
        let faults: Result<Vec<Vec<(usize, String)>>, (usize, DictionaryFull)> =
            self.columns.par_iter_mut().enumerate().map(encode).collect();
        let faults = faults.map_err(|(index, source)| TableError::Full {
            path: request.path.into(),
            place: index + 1,
            source,
        })?;
        let mut faults: Vec<(usize, String)> = faults.into_iter().flatten().collect();
        // Stable: of several wrong cells of a row, the first is told.
        faults.sort_by_key(|(row, _)| *row);
        faults.dedup_by_key(|(row, _)| *row);
        for (row, error) in &faults {
            self.unreadable(batch.coordinates()[*row], "wrong_type", error, request)?;
        }
        let bad: Vec<usize> = faults.into_iter().map(|(row, _)| row).collect();
        if !bad.is_empty() {
            for column in &mut self.columns {
                let mut row = 0;
                let start = self.rows;
                let mut tail = column.codes.split_off(start);
                tail.retain(|_| {
                    row += 1;
                    bad.binary_search(&(row - 1)).is_err()
                });
                column.codes.append(&mut tail);
            }
        }
        for (row, at) in batch.coordinates().iter().enumerate() {
            if bad.binary_search(&row).is_err() {
                self.numbers.push(at.offset.unsigned_abs() + 1);
            }
        }
        self.rows += batch.rows() - bad.len();
        self.unknown_cells += batch.unknown_cells;
        let dictionaries: usize = self.columns.iter().map(|column| column.dictionary.bytes()).sum();
        let held = self.rows as u64 * self.columns.len() as u64 * CELL_BYTES + dictionaries as u64;
        if held > request.max_bytes {
            return Err(TableError::TooLarge {
                path: request.path.into(),
                records: self.source.position().records,
                limit: crate::config::format_size(request.max_bytes),
            });
        }
        Ok(())
    }

    fn unreadable(
        &mut self,
        at: Coordinate,
        why: &'static str,
        more: &str,
        request: &Request<'_>,
    ) -> Result<(), TableError> {
        if !request.skip_unreadable {
            let record = at.offset.unsigned_abs() + 1;
            let name = why.replace('_', " ");
            let reason = if more.is_empty() { name } else { format!("{name} ({more})") };
            return Err(TableError::Unreadable { path: request.path.into(), record, reason });
        }
        *self.unreadable.entry(why).or_default() += 1;
        Ok(())
    }

    fn finish(mut self, request: &Request<'_>) -> Result<WholeTable, TableError> {
        let records = self.source.position().records;
        if self.rows == 0 {
            let path = request.path.into();
            let skipped: u64 = self.unreadable.values().sum();
            return Err(match skipped {
                0 => TableError::NoRecords { path },
                _ => TableError::NothingReadable { path, records },
            });
        }
        if let (false, Some(wanted)) = (self.described, request.columns) {
            self.source.missing_columns(wanted)?;
        }
        if !self.described {
            fold_nulls(&mut self.columns);
        }
        for column in &mut self.columns {
            column.codes.shrink_to_fit();
            column.dictionary.close();
        }
        let empty = |column: &TableColumn| column.codes.iter().all(|code| *code == ABSENT);
        let (absent, columns): (Vec<_>, Vec<_>) = self.columns.into_iter().partition(empty);
        Ok(WholeTable {
            columns,
            rows: self.rows as u64,
            numbers: self.numbers,
            unreadable: self.unreadable,
            absent: absent.into_iter().map(|column| column.name).collect(),
            unknown_cells: self.unknown_cells,
            long_rows: self.long_rows,
            cut: self.cut,
        })
    }
}

/// `{"a": null}` beside `{"a": {"b": 1}}`: there is no column `a`, its null says that `a.b` is null.
fn fold_nulls(columns: &mut Vec<TableColumn>) {
    let is_null = |column: &TableColumn| {
        column.codes.iter().all(|code| matches!(*code, ABSENT | MISSING)) && column.codes.contains(&MISSING)
    };
    let mut at = 0;
    while at < columns.len() {
        let prefix = format!("{}.", columns[at].name);
        if !is_null(&columns[at]) || !columns.iter().any(|column| column.name.starts_with(&prefix)) {
            at += 1;
            continue;
        }
        let parent = columns.remove(at);
        for below in columns.iter_mut().filter(|column| column.name.starts_with(&prefix)) {
            for (code, above) in below.codes.iter_mut().zip(&parent.codes) {
                if *code == ABSENT {
                    *code = *above;
                }
            }
        }
    }
}

/// Refuses a first row that is a record by all appearances: names of columns are printed, values are not.
fn header_is_one(path: &Path, names: &[String]) -> Result<(), TableError> {
    if let [only] = names
        && only.contains([';', '\t', '|', ','])
    {
        return Err(TableError::Separator { path: path.into() });
    }
    let shaped = (1..).zip(names).find_map(|(place, name)| shape_of(name).map(|shape: Shape| (place, shape)));
    match shaped {
        None => Ok(()),
        Some((place, shape)) => Err(TableError::NoHeader { path: path.into(), place, shape: shape.name() }),
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;

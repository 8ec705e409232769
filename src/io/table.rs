//! A whole file as dictionary-encoded columns: for judging a data set at once, where `file` serves a stream of batches.
//!
//! Memory: 4 bytes a cell, the texts of the different values, and one batch of about 28 MiB. A limit on the first two is
//! kept after every batch.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

mod column;
mod error;
mod request;
mod spilling;

pub use column::{Spilled, TableColumn, WholeTable};
pub use error::TableError;
pub use request::{ReadProgress, Request, Spill, named};
use spilling::Spilling;

use super::file::{ColumnChoice, FileSource, Format, LongRows, SourceError, Standing};
use crate::telemetry::RejectionReason;
use throng_core::values::based::Resolved;
use throng_core::values::dictionary::{ABSENT, Dictionary, DictionaryFull, EncodeError, MISSING};
use throng_core::values::numbers::RecordNumbers;
use throng_core::values::raw::{Coordinate, RawBatch, Token};
use throng_core::values::schema::{Attribute, Origin, Role, Schema};
use throng_core::values::shapes::{Shape, shape_of};
use throng_formats::{Field, Unknown};

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

/// Reads a file.
///
/// # Errors
/// When it cannot be read, is too large, holds no records or, unless told to skip them, unreadable ones.
pub fn read(request: &Request<'_>, progress: &mut dyn FnMut(ReadProgress)) -> Result<WholeTable, TableError> {
    read_all(Reading::open(request)?, request, progress)
}

/// Reads a file, whose codes go to a file of their own once they would need more than `request.max_bytes`.
///
/// # Errors
/// As [`read`]; when that file cannot be written; when a column has more different values than may be held; when what is read
/// changes meanwhile.
pub fn read_spilling(
    request: &Request<'_>,
    spill: &Spill<'_>,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<WholeTable, TableError> {
    let standing = Standing::of(request.path, request.more, request.format)?;
    let spilling = Some(Spilling { asked: *spill, writer: None, rows: 0 });
    let reading = Reading { spilling, ..Reading::open(request)? };
    let read = read_all(reading, request, progress)?;
    standing.refuse_changed(request.path, request.more, request.format)?;
    Ok(read)
}

/// Reads lines of NDJSON that somebody makes, `request.path` in messages; no schema describes them.
pub fn read_lines(
    lines: Box<dyn Read + Send>,
    request: &Request<'_>,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<WholeTable, TableError> {
    let columns = ColumnChoice { wanted: request.columns, at_most: request.max_columns };
    let source = FileSource::of_lines(request.path, lines, request.limits, columns);
    read_all(Reading::of(source, Vec::new(), Vec::new(), false), request, progress)
}

fn read_all(
    mut reading: Reading<'_>,
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

struct Reading<'a> {
    source: FileSource,
    columns: Vec<TableColumn>,
    rows: usize,
    numbers: RecordNumbers,
    unreadable: BTreeMap<&'static str, u64>,
    /// Why the first record that cannot be read cannot.
    first_reason: Option<String>,
    unknown_cells: u64,
    long_rows: Option<LongRows>,
    described: bool,
    /// Of a described table: the attribute of each cell that is read. Behind those of the columns are others from which their times count.
    attributes: Vec<Arc<Attribute>>,
    cut: bool,
    spilling: Option<Spilling<'a>>,
}

impl Reading<'_> {
    fn open(request: &Request<'_>) -> Result<Self, TableError> {
        let described = request.schema.is_some();
        let (source, columns, attributes) = match request.schema {
            Some(schema) => Self::described(request, schema)?,
            None => {
                let columns = ColumnChoice { wanted: request.columns, at_most: request.max_columns };
                let source = FileSource::open_undescribed(request.path, request.format, request.limits, columns)?;
                let source = source.followed_by(request.more)?;
                if matches!(request.format, Format::Csv { .. }) {
                    header_is_one(request.path, source.names())?;
                }
                (source, Vec::new(), Vec::new())
            }
        };
        Ok(Self::of(source, columns, attributes, described))
    }

    fn of(source: FileSource, columns: Vec<TableColumn>, attributes: Vec<Arc<Attribute>>, described: bool) -> Self {
        let mut reading = Self {
            source,
            columns,
            rows: 0,
            numbers: RecordNumbers::default(),
            unreadable: BTreeMap::new(),
            first_reason: None,
            unknown_cells: 0,
            long_rows: None,
            described,
            attributes,
            cut: false,
            spilling: None,
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
            let (path, limit) = (request.named(), request.max_columns);
            return Err(SourceError::TooManyColumns { path, limit }.into());
        }
        let flat = matches!(request.format, Format::Csv { .. });
        let field = |a: &Arc<Attribute>| if flat { Field::flat(&a.column()) } else { Field::of(a) };
        let fields: Vec<Field> = attributes.iter().map(field).collect();
        let source = FileSource::open(request.path, request.format, &fields, request.limits, Unknown::Drop)?;
        let source = source.followed_by(request.more)?;
        // An identifier has no type to keep: no release reads it.
        let typing = |attribute: &Attribute| (attribute.role != Role::Identifier).then(|| attribute.typing.clone());
        let column = |attribute: &Arc<Attribute>| TableColumn {
            name: attribute.name.clone(),
            way: vec![attribute.name.clone()],
            from: attribute.from.clone(),
            dictionary: Dictionary::new(typing(attribute)),
            attribute: Some(Arc::clone(attribute)),
            codes: Vec::new(),
            arrays: 0,
            given_up: None,
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
            let (attribute, given_up) = (None, None);
            self.columns.push(TableColumn { name, way, from, attribute, codes, dictionary, arrays: 0, given_up });
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
                if column.given_up.is_some() {
                    // Its values are not held; what has the wrong type is still told.
                    faults.extend(column.dictionary.check(token).err().map(|error| (row, error.to_string())));
                    continue;
                }
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
        let faults =
            faults.map_err(|(index, source)| TableError::Full { path: request.named(), place: index + 1, source })?;
        let mut faults: Vec<(usize, String)> = faults.into_iter().flatten().collect();
        // Stable: of several wrong cells of a row, the first is told.
        faults.sort_by_key(|(row, _)| *row);
        faults.dedup_by_key(|(row, _)| *row);
        for (row, error) in &faults {
            self.unreadable(batch.coordinates()[*row], "wrong_type", error, request)?;
        }
        let bad: Vec<usize> = faults.into_iter().map(|(row, _)| row).collect();
        if !bad.is_empty() {
            let start = self.rows - self.spilling.as_ref().map_or(0, |spilling| spilling.rows);
            for column in self.columns.iter_mut().filter(|column| column.given_up.is_none()) {
                let mut row = 0;
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
        let records = self.source.position().records;
        if let Some(spilling) = &mut self.spilling {
            return spilling.keep(&mut self.columns, self.rows, held > request.max_bytes, request, records);
        }
        if held > request.max_bytes {
            let limit = crate::config::format_size(request.max_bytes);
            return Err(TableError::TooLarge { path: request.named(), records, limit });
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
        if self.first_reason.is_none() {
            let name = why.replace('_', " ");
            let reason = if more.is_empty() { name } else { format!("{name} ({more})") };
            if !request.skip_unreadable {
                let record = at.offset.unsigned_abs() + 1;
                return Err(TableError::Unreadable { path: request.named(), record, reason });
            }
            self.first_reason = Some(reason);
        }
        *self.unreadable.entry(why).or_default() += 1;
        Ok(())
    }

    fn finish(mut self, request: &Request<'_>) -> Result<WholeTable, TableError> {
        let records = self.source.position().records;
        if self.rows == 0 {
            let path = request.named();
            return Err(match self.first_reason {
                None => TableError::NoRecords { path },
                Some(reason) => TableError::NothingReadable { path, records, reason },
            });
        }
        if let (false, Some(wanted)) = (self.described, request.columns) {
            self.source.missing_columns(wanted)?;
        }
        let mut spilled = match &mut self.spilling {
            Some(spilling) => spilling.finish(&mut self.columns, self.rows)?,
            None => None,
        };
        if !self.described && spilled.is_none() {
            fold_nulls(&mut self.columns);
        }
        for column in &mut self.columns {
            column.codes.shrink_to_fit();
            column.dictionary.close();
        }
        let (absent, columns) = match &mut spilled {
            None => {
                let empty = |column: &TableColumn| column.codes.iter().all(|code| *code == ABSENT);
                self.columns.into_iter().partition::<Vec<_>, _>(empty)
            }
            Some(spilled) => spilled.without_absent(self.columns),
        };
        Ok(WholeTable {
            columns,
            rows: self.rows as u64,
            numbers: self.numbers,
            unreadable: self.unreadable,
            absent: absent.into_iter().map(|column| column.name).collect(),
            unknown_cells: self.unknown_cells,
            long_rows: self.long_rows,
            cut: self.cut,
            spilled,
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
    if let [only] = names
        && only.starts_with('#')
    {
        return Err(TableError::Comment { path: path.into() });
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

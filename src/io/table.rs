//! A complete file as dictionary-encoded columns: 4 bytes per cell, distinct texts, and a batch of about 28 MiB.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

mod code_spiller;
mod table_columns;
mod table_read_error;
mod table_request;

use code_spiller::CodeSpiller;
pub use table_columns::{LoadedTable, SpilledCodes, TableColumn};
pub use table_read_error::TableReadError;
pub use table_request::{ReadProgress, SpillSettings, TableRequest, named};

use super::file::{ColumnChoice, FileFormat, FileSnapshot, FileSource, SourceError};
use crate::telemetry::RejectionReason;
use throng_core::stream::input_batch::LongRows;
use throng_core::values::dictionary::{ABSENT, Dictionary, DictionaryFull, EncodeError, MISSING};
use throng_core::values::identifier_shapes::{IdentifierShape, detect_shape};
use throng_core::values::raw_batch::{RawBatch, RawToken, RecordPosition};
use throng_core::values::record_numbers::RecordNumbers;
use throng_core::values::resolved_cells::ResolvedCells;
use throng_core::values::schema::{Attribute, AttributeOrigin, Role, Schema};
use throng_formats::{FieldPath, UnknownCellPolicy};

const BATCH_BYTES: u64 = 16 << 20;
const BATCH_CELLS: usize = 1 << 20;

fn batch_records(width: usize) -> usize {
    BATCH_CELLS.checked_div(width).map_or(512, |records| records.clamp(512, 8192))
}

/// Includes the copies of a search.
const CELL_BYTES: u64 = 12;

/// Reads a file.
///
/// # Errors
/// If it is unreadable, too large or empty, or a record is unreadable without `skip_unreadable`.
pub fn read(request: &TableRequest<'_>, progress: &mut dyn FnMut(ReadProgress)) -> Result<LoadedTable, TableReadError> {
    read_all(WholeTableReader::open(request)?, request, progress)
}

/// Reads a file; writes codes beyond `request.max_bytes` to a separate file.
///
/// # Errors
/// As [`read`]; if that file fails, a column has too many values, or the input changes.
pub fn read_spilling(
    request: &TableRequest<'_>,
    spill: &SpillSettings<'_>,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<LoadedTable, TableReadError> {
    let standing = FileSnapshot::of(request.path, request.more, request.format)?;
    let spilling = Some(CodeSpiller { spill_limits: *spill, writer: None, rows: 0 });
    let reading = WholeTableReader { spilling, ..WholeTableReader::open(request)? };
    let read = read_all(reading, request, progress)?;
    standing.reject_differences(request.path, request.more, request.format)?;
    Ok(read)
}

/// Reads generated NDJSON lines; `request.path` names them in messages.
pub fn read_lines(
    lines: Box<dyn Read + Send>,
    request: &TableRequest<'_>,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<LoadedTable, TableReadError> {
    let columns = ColumnChoice { wanted: request.columns, at_most: request.max_columns };
    let source = FileSource::of_lines(request.path, lines, request.limits, columns);
    read_all(WholeTableReader::of(source, Vec::new(), Vec::new(), false), request, progress)
}

fn read_all(
    mut reading: WholeTableReader<'_>,
    request: &TableRequest<'_>,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<LoadedTable, TableReadError> {
    let mut rejected: Vec<(RecordPosition, RejectionReason)> = Vec::new();
    loop {
        let mut batch = RawBatch::new(reading.attributes.len().max(reading.columns.len()));
        let left = request.max_records.map_or(u64::MAX, |most| most - reading.source.position().records);
        let records = batch_records(reading.columns.len()).min(usize::try_from(left).unwrap_or(usize::MAX));
        let outcome = reading.source.read(&mut batch, records, BATCH_BYTES, &mut rejected)?;
        reading.long_rows = LongRows::and(reading.long_rows, reading.source.take_long_rows());
        for (at, reason) in rejected.drain(..) {
            reading.unreadable(at, reason.name(), reason.remedy(), request)?;
        }
        reading.add_new_columns();
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

type DescribedSource = (FileSource, Vec<TableColumn>, Vec<Arc<Attribute>>);

struct WholeTableReader<'a> {
    source: FileSource,
    columns: Vec<TableColumn>,
    rows: usize,
    numbers: RecordNumbers,
    unreadable: BTreeMap<&'static str, u64>,
    first_reason: Option<String>,
    unknown_cells: u64,
    long_rows: Option<LongRows>,
    described: bool,
    /// Attributes of the columns, then those that are read with them: bases of times, units, selection of records.
    attributes: Vec<Arc<Attribute>>,
    cut: bool,
    spilling: Option<CodeSpiller<'a>>,
}

impl WholeTableReader<'_> {
    fn open(request: &TableRequest<'_>) -> Result<Self, TableReadError> {
        let described = request.schema.is_some();
        let (source, columns, attributes) = match request.schema {
            Some(schema) => Self::described(request, schema)?,
            None => {
                let columns = ColumnChoice { wanted: request.columns, at_most: request.max_columns };
                let source = FileSource::open_schemaless(request.path, request.format, request.limits, columns)?;
                let source = source.followed_by(request.more)?;
                if matches!(request.format, FileFormat::Csv { .. }) {
                    check_header(request.path, source.names())?;
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
        reading.add_new_columns();
        reading
    }

    fn described(request: &TableRequest<'_>, schema: &Schema) -> Result<DescribedSource, TableReadError> {
        if let Some(column) = request.columns.into_iter().flatten().find(|name| schema.position(name).is_none()) {
            return Err(TableReadError::NotInSchema { schema: schema.name.clone(), column: column.clone() });
        }
        let wanted = |a: &&Arc<Attribute>| request.columns.is_none_or(|columns| columns.contains(&a.name));
        let mut attributes: Vec<Arc<Attribute>> = schema.attributes.iter().filter(wanted).cloned().collect();
        let shown = attributes.len();
        let is_companion = |a: &Attribute| attributes.iter().any(|of| of.companion() == Some(a.name.as_str()));
        let selects = |a: &Attribute| request.selects && !a.selection.only.is_empty();
        let is_needed = |a: &&Arc<Attribute>| !wanted(a) && (is_companion(a) || selects(a));
        let needed: Vec<Arc<Attribute>> = schema.attributes.iter().filter(is_needed).cloned().collect();
        attributes.extend(needed);
        if attributes.len() > request.max_columns {
            let (path, limit) = (request.named(), request.max_columns);
            return Err(SourceError::TooManyColumns { path, limit }.into());
        }
        let flat = matches!(request.format, FileFormat::Csv { .. });
        let field = |a: &Arc<Attribute>| {
            if flat { FieldPath::top_level(&a.column()) } else { FieldPath::for_attribute_path(a) }
        };
        let fields: Vec<FieldPath> = attributes.iter().map(field).collect();
        let source = FileSource::open(request.path, request.format, &fields, request.limits, UnknownCellPolicy::Drop)?;
        let mut source = source.followed_by(request.more)?;
        if request.selects {
            source = source.selecting(&attributes)?;
        }
        // No release reads an identifier.
        let typing = |attribute: &Attribute| (attribute.role != Role::Identifier).then(|| attribute.typing.clone());
        let column = |attribute: &Arc<Attribute>| TableColumn {
            name: attribute.name.clone(),
            key_path: vec![attribute.name.clone()],
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

    fn add_new_columns(&mut self) {
        if self.described {
            return;
        }
        for place in self.columns.len()..self.source.names().len() {
            let (name, way, dictionary) =
                (self.source.names()[place].clone(), self.source.column_key_path(place), Dictionary::new(None));
            let codes = vec![ABSENT; self.rows];
            let from = AttributeOrigin::Value;
            let (attribute, given_up) = (None, None);
            self.columns.push(TableColumn {
                name,
                key_path: way,
                from,
                attribute,
                codes,
                dictionary,
                arrays: 0,
                given_up,
            });
        }
    }

    fn add(&mut self, batch: &RawBatch, request: &TableRequest<'_>) -> Result<(), TableReadError> {
        let resolved = ResolvedCells::from_raw_batch(batch, &self.attributes);
        let encode = |(index, column): (usize, &mut TableColumn)| {
            let mut faults: Vec<(usize, String)> = Vec::new();
            let (batch, place) =
                resolved.as_ref().and_then(|resolved| resolved.column(index)).unwrap_or((batch, index));
            for row in 0..batch.rows() {
                // A batch that no record has widened lacks the later columns.
                let token = if place < batch.width() { batch.token(row, place) } else { RawToken::Absent };
                if column.given_up.is_some() {
                    // A wrong type is still reported.
                    faults.extend(column.dictionary.check(token).err().map(|error| (row, error.to_string())));
                    continue;
                }
                column.arrays += u64::from(matches!(token, RawToken::Structure(text) if text.starts_with('[')));
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
        let faults = faults.map_err(|(index, source)| TableReadError::Full {
            path: request.named(),
            place: index + 1,
            source,
        })?;
        let mut faults: Vec<(usize, String)> = faults.into_iter().flatten().collect();
        // Stable: the first wrong cell of a row is reported.
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
            return spilling.spill_if_needed(&mut self.columns, self.rows, held > request.max_bytes, request, records);
        }
        if held > request.max_bytes {
            let limit = crate::config::format_size(request.max_bytes);
            return Err(TableReadError::TooLarge { path: request.named(), records, limit });
        }
        Ok(())
    }

    fn unreadable(
        &mut self,
        at: RecordPosition,
        why: &'static str,
        more: &str,
        request: &TableRequest<'_>,
    ) -> Result<(), TableReadError> {
        if self.first_reason.is_none() {
            let name = why.replace('_', " ");
            let reason = if more.is_empty() { name } else { format!("{name} ({more})") };
            if !request.skip_unreadable {
                let record = at.offset.unsigned_abs() + 1;
                return Err(TableReadError::Unreadable { path: request.named(), record, reason });
            }
            self.first_reason = Some(reason);
        }
        *self.unreadable.entry(why).or_default() += 1;
        Ok(())
    }

    fn finish(mut self, request: &TableRequest<'_>) -> Result<LoadedTable, TableReadError> {
        let records = self.source.position().records;
        if self.rows == 0 {
            let path = request.named();
            return Err(match self.first_reason {
                None => TableReadError::NoRecords { path },
                Some(reason) => TableReadError::NothingReadable { path, records, reason },
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
            column.dictionary.finish_encoding();
        }
        let (absent, columns) = match &mut spilled {
            None => {
                let empty = |column: &TableColumn| column.codes.iter().all(|code| *code == ABSENT);
                self.columns.into_iter().partition::<Vec<_>, _>(empty)
            }
            Some(spilled) => spilled.split_absent(self.columns),
        };
        Ok(LoadedTable {
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

/// Removes an all-null column `a` if `a.b` exists.
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

/// A first row of values must not be printed as names.
fn check_header(path: &Path, names: &[String]) -> Result<(), TableReadError> {
    if let [only] = names
        && only.contains([';', '\t', '|', ','])
    {
        return Err(TableReadError::Separator { path: path.into() });
    }
    if let [only] = names
        && only.starts_with('#')
    {
        return Err(TableReadError::Comment { path: path.into() });
    }
    let shaped =
        (1..).zip(names).find_map(|(place, name)| detect_shape(name).map(|shape: IdentifierShape| (place, shape)));
    match shaped {
        None => Ok(()),
        Some((place, shape)) => Err(TableReadError::NoHeader { path: path.into(), place, shape: shape.name() }),
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;

//! Reader of released lines, with checks of their form.

use super::cell_validation::{CellValidator, PrintedCellKind, is_compact};
use super::violation_log::ViolationLog;
use crate::config::{Config, JOINED_OUTPUT, RecordFormat};
use crate::evaluation::nested_reader::{RawObject, attribute_ranks, nested_values};
use crate::evaluation::released_columns::{BOUNDS_PROMISE, ReleasedColumns};
use crate::evaluation::released_groups::{is_missing, joined_row_attributes, release_files, without_guard};
use crate::io::file::{FileSource, open_text};
use crate::start::nested_output::{attribute_path, is_nested};
use crate::start::record_formats::file_format;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use throng_core::plan::GroupShape;
use throng_core::values::raw_batch::{RawBatch, RawToken};
use throng_core::values::schema::{Attribute, Schema};
use throng_eval::error::EvaluationError;
use throng_eval::joined_rows::{RowCellState, RowGroupIndex};
use throng_formats::{DecodeLimits, UnknownCellPolicy};

const READ_CHUNK_LINES: usize = 10_000;

pub(super) struct GroupLines {
    /// Name of the group.
    pub name: String,
    /// First of several.
    pub file: PathBuf,
    /// In schema order.
    pub attributes: Vec<usize>,
    /// Names of the attributes.
    pub names: Vec<String>,
    /// Cells by line as JSON; empty if absent.
    pub lines: Vec<Vec<String>>,
    /// Kinds by line; suppressed for invalid cells.
    pub cell_kinds: Vec<Vec<PrintedCellKind>>,
    /// Lines, if the format has them.
    pub bytes: Vec<String>,
    /// File line numbers, if shared with other groups.
    pub line_numbers: Option<Vec<usize>>,
}

impl GroupLines {
    pub(super) fn line_number(&self, line: usize) -> usize {
        self.line_numbers.as_ref().map_or(line, |places| places[line])
    }

    /// None for another group's line.
    pub(super) fn line_at(&self, place: u64) -> Option<usize> {
        let place = usize::try_from(place).ok()?;
        self.line_numbers.as_ref().map_or(Some(place), |places| places.binary_search(&place).ok())
    }
}

pub(super) fn read(
    config: &Config,
    schema: &Schema,
    shape: &GroupShape,
    alone: bool,
    path: &Path,
    spelling: &mut CellValidator,
    findings: &mut ViolationLog,
) -> Result<GroupLines, EvaluationError> {
    let attributes = shape.without_ladder().attributes();
    let mut group = GroupLines::read((config, schema), (&shape.name, attributes), alone, path, findings)?;
    group.classify_cells(shape, spelling, findings);
    Ok(group)
}

/// Ambiguous rows need the groups in `told` and are skipped without it.
pub(super) fn read_joined(
    (config, schema): (&Config, &Schema),
    shapes: &[GroupShape],
    path: &Path,
    told: Option<BTreeMap<u64, usize>>,
    spelling: &mut CellValidator,
    findings: &mut ViolationLog,
) -> Result<Vec<GroupLines>, EvaluationError> {
    let rows =
        GroupLines::read((config, schema), (JOINED_OUTPUT, joined_row_attributes(shapes)), true, path, findings)?;
    let mut groups: Vec<GroupLines> = shapes.iter().map(|shape| rows.empty_group(shape)).collect();
    let owners = RowGroupIndex::new(&rows.attributes, &groups.iter().map(|group| group.attributes.as_slice()), told);
    let mut bytes = rows.bytes.into_iter();
    for (number, cells) in rows.lines.into_iter().enumerate() {
        let bytes = bytes.next();
        let at = cells.iter().map(|cell| match cell.as_str() {
            "" => RowCellState::AbsentKey,
            "null" => RowCellState::Missing,
            _ => RowCellState::Shown,
        });
        let group = match owners.group_of_row(number as u64, at) {
            Ok(group) => group,
            Err(unjoined) => {
                findings.add_violation(unjoined.violated_rule(), &rows.file, number, None, None);
                continue;
            }
        };
        let Some(group) = group.map(|group| &mut groups[group]) else { continue };
        let own = rows.attributes.iter().zip(cells).filter(|(a, _)| group.attributes.contains(a));
        group.lines.push(own.map(|(_, cell)| cell).collect());
        group.bytes.extend(bytes);
        group.line_numbers.get_or_insert_default().push(number);
    }
    for (group, shape) in groups.iter_mut().zip(shapes) {
        group.classify_cells(shape, spelling, findings);
    }
    Ok(groups)
}

impl GroupLines {
    fn read(
        (config, schema): (&Config, &Schema),
        (name, attributes): (&str, Vec<usize>),
        alone: bool,
        path: &Path,
        findings: &mut ViolationLog,
    ) -> Result<Self, EvaluationError> {
        let names: Vec<String> = attributes.iter().map(|&a| schema.attributes[a].name.clone()).collect();
        let format = config.sink.format();
        let files = release_files(config, path, name, alone)?;
        let file = files.first().cloned().unwrap_or_else(|| path.to_owned());
        let (lines, spelled, bytes, name) = (Vec::new(), Vec::new(), Vec::new(), name.to_owned());
        let mut group = Self { name, file, attributes, names, lines, cell_kinds: spelled, bytes, line_numbers: None };
        for file in files {
            if format == RecordFormat::Json {
                group.read_json((config, schema), &file, findings)?;
            } else {
                group.read_table((config, schema), &file, findings)?;
            }
        }
        Ok(group)
    }

    fn empty_group(&self, shape: &GroupShape) -> Self {
        let attributes = shape.without_ladder().attributes();
        let of_group = self.attributes.iter().zip(&self.names).filter(|(a, _)| attributes.contains(a));
        let names = of_group.map(|(_, name)| name.clone()).collect();
        let (name, file, places) = (shape.name.clone(), self.file.clone(), Some(Vec::new()));
        Self {
            name,
            file,
            names,
            attributes,
            lines: Vec::new(),
            cell_kinds: Vec::new(),
            bytes: Vec::new(),
            line_numbers: places,
        }
    }

    fn read_json(
        &mut self,
        (config, schema): (&Config, &Schema),
        path: &Path,
        findings: &mut ViolationLog,
    ) -> Result<(), EvaluationError> {
        let nested = is_nested(config);
        let unreadable = |source| EvaluationError::Release { path: path.to_owned(), source };
        let invalid = |_| std::io::Error::from(std::io::ErrorKind::InvalidData);
        let lines = BufReader::new(open_text(path).map_err(unreadable)?).split(b'\n');
        for (number, line) in lines.enumerate() {
            // A carriage return before the line break belongs to the line.
            let line = line.and_then(|line| String::from_utf8(line).map_err(invalid)).map_err(unreadable)?;
            if !is_compact(&line) {
                let promise = "a line has the canonical format of its cells";
                findings.add_violation(promise, path, number, None, None);
            }
            let mut cells = vec![String::new(); self.attributes.len()];
            match serde_json::from_str::<RawObject>(&line) {
                Err(_) => findings.add_violation("a line is a JSON object", path, number, None, None),
                Ok(object) if nested => self.assign_nested(schema, object, &mut cells, (path, number), findings),
                Ok(object) => self.assign_cells(schema, &object, &mut cells, (path, number), findings),
            }
            self.lines.push(cells);
            self.bytes.push(line);
        }
        Ok(())
    }

    fn assign_cells(
        &self,
        schema: &Schema,
        object: &RawObject,
        cells: &mut [String],
        (path, number): (&Path, usize),
        findings: &mut ViolationLog,
    ) {
        let mut next = 0;
        for (key, value) in &object.0 {
            let Some(at) = self.names.iter().position(|name| name == key) else {
                report_foreign_value(schema, schema.position(key), (path, number), findings);
                continue;
            };
            if at < next {
                findings.add_violation(
                    "attributes are in the order of the schema, each once",
                    path,
                    number,
                    Some(key),
                    None,
                );
            }
            next = at + 1;
            value.get().clone_into(&mut cells[at]);
        }
    }

    fn assign_nested(
        &self,
        schema: &Schema,
        object: RawObject,
        cells: &mut [String],
        (path, number): (&Path, usize),
        findings: &mut ViolationLog,
    ) {
        let all: Vec<&Attribute> = schema.attributes.iter().map(AsRef::as_ref).collect();
        // Own attributes first: an unreleased one can have the same path.
        let own = self.attributes.iter().copied();
        let in_order: Vec<usize> = own.chain((0..all.len()).filter(|a| !self.attributes.contains(a))).collect();
        let ranks = attribute_ranks(schema, &self.attributes);
        let mut next = 0;
        for (found, value) in nested_values(object, &all) {
            let known = in_order.iter().copied().find(|a| attribute_path(all[*a]) == found);
            let Some(at) = known.and_then(|known| self.attributes.iter().position(|a| *a == known)) else {
                report_foreign_value(schema, known, (path, number), findings);
                continue;
            };
            if ranks[at] < next {
                let name = self.names[at].as_str();
                findings.add_violation(
                    "attributes are in the order of the schema, each once",
                    path,
                    number,
                    Some(name),
                    None,
                );
            }
            next = ranks[at] + 1;
            value.get().clone_into(&mut cells[at]);
        }
    }

    fn read_table(
        &mut self,
        (config, schema): (&Config, &Schema),
        path: &Path,
        findings: &mut ViolationLog,
    ) -> Result<(), EvaluationError> {
        let limits = DecodeLimits { max_record_bytes: usize::MAX, ..DecodeLimits::default() };
        let format = file_format(config.sink.format(), config.source.separator);
        let columns = ReleasedColumns::new(schema, &self.attributes, format);
        let cell_count = self.names.len();
        // The reader refuses columns of other groups.
        let mut source = FileSource::open(path, format, columns.fields(), limits, UnknownCellPolicy::Refuse)?;
        let mut number = 0;
        loop {
            let (mut raw, mut refused) = (RawBatch::new(columns.fields().len()), Vec::new());
            let outcome = source.read(&mut raw, READ_CHUNK_LINES, u64::MAX, &mut refused)?;
            if let Some((place, why)) = refused.first() {
                let line = place.offset.unsigned_abs() + 1;
                return Err(EvaluationError::Line { path: path.to_owned(), line, why: why.to_string() });
            }
            for row in 0..raw.rows() {
                let cells = (0..cell_count).map(|at| without_guard(raw.token(row, at), format));
                let missing = |token: &RawToken<'_>| is_missing(*token, format, cell_count);
                self.lines
                    .push(cells.map(|token| json_cell(if missing(&token) { RawToken::Null } else { token })).collect());
                if let Some(cell) = columns.wrong_bounds(&raw, row) {
                    findings.add_violation(BOUNDS_PROMISE, path, number, Some(&self.names[cell]), None);
                }
                number += 1;
            }
            if outcome.end {
                return Ok(());
            }
        }
    }

    fn classify_cells(&mut self, shape: &GroupShape, spelling: &mut CellValidator, findings: &mut ViolationLog) {
        for (line, cells) in self.lines.iter_mut().enumerate() {
            let number = self.line_numbers.as_ref().map_or(line, |places| places[line]);
            let mut spelled = Vec::with_capacity(cells.len());
            for (at, cell) in cells.iter_mut().enumerate() {
                let attribute = self.attributes[at];
                // Tables do not distinguish numbers from texts.
                let as_text = || cell.strip_prefix('\u{0}').map(|text| serde_json::Value::from(text).to_string());
                let judged = match as_text() {
                    None => spelling.printed_kind(attribute, cell),
                    Some(text) => {
                        let bare = cell.trim_start_matches('\u{0}').to_owned();
                        let (found, kept) = match spelling.printed_kind(attribute, &text) {
                            Some(found) => (Some(found), text),
                            None if shape.ranges && spelling.is_range(attribute, &text) => (None, text),
                            None => (spelling.printed_kind(attribute, &bare), bare),
                        };
                        *cell = kept;
                        found
                    }
                };
                let may_be_range = shape.ranges && shape.quasi.contains(&attribute);
                let is_range = || may_be_range && spelling.is_range(attribute, cell);
                let judged = judged.or_else(|| is_range().then_some(PrintedCellKind::Label));
                if judged.is_none() {
                    let promise = "a cell is a value of its attribute, a label of its hierarchy, or `*`";
                    findings.add_violation(promise, &self.file, number, Some(&self.names[at]), None);
                }
                spelled.push(judged.unwrap_or(PrintedCellKind::Suppressed));
            }
            let says = |a: &usize| shape.quasi.contains(a) || shape.sensitive.contains(a);
            let mut guarded = self.attributes.iter().zip(&spelled).filter(|(a, _)| says(a)).peekable();
            if guarded.peek().is_some() && guarded.all(|(_, cell)| *cell == PrintedCellKind::Suppressed) {
                findings.add_violation(
                    "a line is not empty: not all of its cells are `*`",
                    &self.file,
                    number,
                    None,
                    None,
                );
            }
            self.cell_kinds.push(spelled);
        }
    }
}

/// `known` is its attribute in the schema.
fn report_foreign_value(
    schema: &Schema,
    known: Option<usize>,
    (path, number): (&Path, usize),
    findings: &mut ViolationLog,
) {
    let known = known.map(|a| &schema.attributes[a]);
    let promise = match known.map(|attribute| attribute.role.is_releasable()) {
        Some(true) => "a line has attributes of its group only",
        Some(false) => "identifiers and subjects are not released",
        None => "a line has attributes of the schema only",
    };
    // An unknown name may be personal data.
    findings.add_violation(promise, path, number, known.map(|attribute| attribute.name.as_str()), None);
}

/// Marks untyped cells.
fn json_cell(token: RawToken<'_>) -> String {
    match token {
        RawToken::Absent => String::new(),
        RawToken::Null => "null".to_owned(),
        RawToken::Bool(value) => value.to_string(),
        RawToken::Number(number) | RawToken::Structure(number) => number.to_owned(),
        RawToken::Text(text) | RawToken::Untyped(text) => format!("\u{0}{text}"),
    }
}

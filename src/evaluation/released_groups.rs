//! Released lines per group, as cells of the original's codebooks.

use super::released_columns::{BOUNDS_PROMISE, ReleasedColumns};
use crate::config::{Config, JOINED_OUTPUT, RowContent, SinkConfig};
use crate::io::file::{self, FileSource, SourceError, open_text};
use crate::start::nested_output::{is_nested, nesting};
use crate::start::record_formats::file_format;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use throng_core::line_encoder::LineLayout;
use throng_core::plan::GroupShape;
use throng_core::values::codebook::{CellId, Codebook};
use throng_core::values::formula::unguarded;
use throng_core::values::raw_batch::{RawBatch, RawToken};
use throng_eval::error::EvaluationError;
use throng_eval::joined_rows::{JoinedRowError, RowCellState, RowGroupIndex};
use throng_eval::original::OriginalData;
use throng_eval::released_lines::{FIRST_FOREIGN_CELL, ReleasedGroup};
use throng_formats::{DecodeLimits, LineFormat, UnknownCellPolicy};

const LINES_PER_READ: usize = 10_000;

impl From<SourceError> for EvaluationError {
    fn from(error: SourceError) -> Self {
        Self::Input(error.into())
    }
}

/// Reads the release at `path`. Ambiguous joined rows need the groups in `told` and are skipped without it.
///
/// # Errors
///
/// When a file is unreadable or lacks an attribute, or a line belongs to no group.
pub fn read(
    config: &Config,
    shapes: &[GroupShape],
    original: &OriginalData,
    path: &Path,
    told: Option<BTreeMap<u64, usize>>,
) -> Result<Vec<ReleasedGroup>, EvaluationError> {
    if config.sink.rows == RowContent::Joined {
        let ranges = shapes.iter().any(|shape| shape.ranges);
        let rows = OutputLines::read_output(
            config,
            &joined_row_attributes(shapes),
            (JOINED_OUTPUT, true, ranges),
            original,
            path,
        )?;
        return rows.split_by_group(shapes, original, path, told);
    }
    let alone = shapes.len() == 1;
    let group = |shape: &GroupShape| {
        let attributes = shape.without_ladder().attributes();
        let output = (shape.name.as_str(), alone, shape.ranges);
        let OutputLines { attributes, cells, lines } =
            OutputLines::read_output(config, &attributes, output, original, path)?;
        Ok(ReleasedGroup { name: shape.name.clone(), attributes, cells, lines, output_lines: None, origin: None })
    };
    shapes.iter().map(group).collect()
}

/// Returns the attributes of a joined row, ascending and distinct.
pub fn joined_row_attributes(shapes: &[GroupShape]) -> Vec<usize> {
    let all: BTreeSet<usize> = shapes.iter().flat_map(|shape| shape.without_ladder().attributes()).collect();
    all.into_iter().collect()
}

struct OutputLines {
    attributes: Vec<usize>,
    cells: Vec<Vec<CellId>>,
    lines: usize,
}

impl OutputLines {
    fn read_output(
        config: &Config,
        attributes: &[usize],
        (output, alone, ranges): (&str, bool, bool),
        original: &OriginalData,
        path: &Path,
    ) -> Result<Self, EvaluationError> {
        let name = |a: &usize| original.schema.attributes[*a].name.as_str();
        let format = file_format(config.sink.format(), config.source.separator);
        let mut read = Self { cells: vec![Vec::new(); attributes.len()], lines: 0, attributes: attributes.to_vec() };
        let columns = ReleasedColumns::new(&original.schema, attributes, format);
        // By attribute, in order of appearance.
        let mut foreign: Vec<HashMap<String, CellId>> = vec![HashMap::new(); attributes.len()];
        let nested = is_nested(config).then(|| {
            let names: Vec<&str> = attributes.iter().map(&name).collect();
            LineFormat::Nested(nesting(&original.schema)).layout(&names)
        });
        for file in release_files(config, path, output, alone)? {
            if let Some(layout) = &nested {
                read.append_nested((layout, ranges), original, &mut foreign, &file)?;
                continue;
            }
            read.append_table((&columns, format, ranges), original, &mut foreign, file)?;
        }
        Ok(read)
    }

    fn append_table(
        &mut self,
        (columns, format, ranges): (&ReleasedColumns, file::FileFormat, bool),
        original: &OriginalData,
        foreign: &mut [HashMap<String, CellId>],
        file: PathBuf,
    ) -> Result<(), EvaluationError> {
        let limits = DecodeLimits { max_record_bytes: usize::MAX, ..DecodeLimits::default() };
        let mut source = FileSource::open(&file, format, columns.fields(), limits, UnknownCellPolicy::Refuse)?;
        let absent = columns.absent_cells(&source);
        if !absent.is_empty() {
            let name = |cell: usize| &original.schema.attributes[self.attributes[cell]].name;
            let attributes = absent.into_iter().map(|cell| format!("attribute {:?}", name(cell))).collect();
            return Err(EvaluationError::NoColumn { path: file, attributes });
        }
        let mut number = 0;
        loop {
            let (mut raw, mut refused) = (RawBatch::new(columns.fields().len()), Vec::new());
            let outcome = source.read(&mut raw, LINES_PER_READ, u64::MAX, &mut refused)?;
            if let Some((place, why)) = refused.first() {
                let line = place.offset.unsigned_abs() + 1;
                return Err(EvaluationError::Line { path: file, line, why: why.to_string() });
            }
            for row in 0..raw.rows() {
                number += 1;
                if columns.wrong_bounds(&raw, row).is_some() {
                    let why = format!("not as released: {BOUNDS_PROMISE}");
                    return Err(EvaluationError::Line { path: file, line: number, why });
                }
            }
            let cell_count = self.attributes.len();
            for (at, attribute) in self.attributes.iter().enumerate() {
                let (book, cells) = (&original.books[*attribute], &mut self.cells[at]);
                let typed = format == file::FileFormat::Ndjson;
                for row in 0..raw.rows() {
                    let token = raw.token(row, at);
                    let token = without_guard(token, format);
                    let token = if is_missing(token, format, cell_count) { RawToken::Null } else { token };
                    cells.push(
                        printed_cell((book, ranges), token, typed)
                            .unwrap_or_else(|| foreign_cell(&mut foreign[at], token)),
                    );
                }
            }
            self.lines += raw.rows();
            if outcome.end {
                return Ok(());
            }
        }
    }

    fn append_nested(
        &mut self,
        (layout, ranges): (&LineLayout, bool),
        original: &OriginalData,
        foreign: &mut [HashMap<String, CellId>],
        file: &Path,
    ) -> Result<(), EvaluationError> {
        let unreadable = |source| EvaluationError::Release { path: file.to_owned(), source };
        let mut cells = Vec::new();
        for (number, line) in BufReader::new(open_text(file).map_err(unreadable)?).lines().enumerate() {
            let line = line.map_err(unreadable)?;
            layout.read(line.as_bytes(), &mut cells).ok_or_else(|| EvaluationError::Line {
                path: file.to_owned(),
                line: number as u64 + 1,
                why: "not a nested line of its group".to_owned(),
            })?;
            for ((at, attribute), text) in self.attributes.iter().enumerate().zip(&cells) {
                let known = known_cell(&original.books[*attribute], text, ranges);
                let token = RawToken::Structure(text);
                self.cells[at].push(known.unwrap_or_else(|| foreign_cell(&mut foreign[at], token)));
            }
            self.lines += 1;
        }
        Ok(())
    }

    fn split_by_group(
        self,
        shapes: &[GroupShape],
        original: &OriginalData,
        path: &Path,
        told: Option<BTreeMap<u64, usize>>,
    ) -> Result<Vec<ReleasedGroup>, EvaluationError> {
        let empty = |shape: &GroupShape| {
            let attributes = shape.without_ladder().attributes();
            let cells = vec![Vec::new(); attributes.len()];
            let name = shape.name.clone();
            ReleasedGroup { name, attributes, cells, lines: 0, output_lines: Some(Vec::new()), origin: None }
        };
        let mut groups: Vec<ReleasedGroup> = shapes.iter().map(empty).collect();
        let owners =
            RowGroupIndex::new(&self.attributes, &groups.iter().map(|group| group.attributes.as_slice()), told);
        // Null and absent values.
        let nothing = |a: &usize| [original.books[*a].find_cell("null"), original.books[*a].find_cell("")];
        let nothing: Vec<[Option<CellId>; 2]> = self.attributes.iter().map(nothing).collect();
        for row in 0..self.lines {
            let at = self.cells.iter().zip(&nothing).map(|(cells, [null, absent])| match Some(cells[row]) {
                cell if cell == *null => RowCellState::Missing,
                cell if cell == *absent => RowCellState::AbsentKey,
                _ => RowCellState::Shown,
            });
            let refused = |unjoined: JoinedRowError| {
                let (line, why) = (row as u64 + 1, unjoined.violated_rule().to_owned());
                EvaluationError::Line { path: path.to_owned(), line, why }
            };
            let Some(group) = owners.group_of_row(row as u64, at).map_err(refused)? else { continue };
            let group = &mut groups[group];
            let own = self.attributes.iter().zip(&self.cells).filter(|(a, _)| group.attributes.contains(a));
            for ((_, cells), column) in own.zip(&mut group.cells) {
                column.push(cells[row]);
            }
            group.lines += 1;
            group.output_lines.get_or_insert_default().push(row as u64);
        }
        Ok(groups)
    }
}

/// Returns a group's files in name order; `alone`: the release has one output.
///
/// # Errors
///
/// When a directory or pattern has no file or is unreadable.
pub fn release_files(config: &Config, path: &Path, group: &str, alone: bool) -> Result<Vec<PathBuf>, SourceError> {
    if alone {
        // A file name can also be a pattern.
        let format = file_format(config.sink.format(), config.source.separator);
        if !path.is_file()
            && let Some(files) = file::files_of(path, format)?
        {
            return Ok(files);
        }
        if path.is_file() {
            return Ok(vec![path.to_owned()]);
        }
    }
    let of_group = SinkConfig::file_of(path, group, false);
    Ok(vec![if alone && !of_group.is_file() { path.to_owned() } else { of_group }])
}

/// Removes the `'` that CSV writes before a formula.
pub(super) fn without_guard(token: RawToken<'_>, format: file::FileFormat) -> RawToken<'_> {
    match (token, format) {
        (RawToken::Text(text), file::FileFormat::Csv { .. }) => RawToken::Text(unguarded(text)),
        (RawToken::Untyped(text), file::FileFormat::Csv { .. }) => RawToken::Untyped(unguarded(text)),
        (token, _) => token,
    }
}

/// CSV writes an empty cell, or `null` in an otherwise blank row.
pub(super) fn is_missing(token: RawToken<'_>, format: file::FileFormat, columns: usize) -> bool {
    let is_csv = matches!(format, file::FileFormat::Csv { .. });
    matches!(token, RawToken::Null | RawToken::Untyped(""))
        || is_csv && columns == 1 && token == RawToken::Untyped("null")
}

/// Only JSON distinguishes texts from numbers.
fn printed_cell((book, ranges): (&Codebook, bool), token: RawToken<'_>, typed: bool) -> Option<CellId> {
    let text = |text: &str| known_cell(book, &serde_json::Value::from(text).to_string(), ranges);
    let bare = |number: &str| book.find_cell(number);
    match token {
        RawToken::Absent => book.find_cell(""),
        RawToken::Null => book.find_cell("null"),
        RawToken::Bool(value) => bare(if value { "true" } else { "false" }),
        RawToken::Number(number) | RawToken::Structure(number) => bare(number),
        // Not an absent value.
        RawToken::Text(value) if typed || value.is_empty() => text(value),
        // Not a missing value.
        RawToken::Text(value @ "null") | RawToken::Untyped(value @ "null") => text(value),
        RawToken::Text(value) | RawToken::Untyped(value) => bare(value).or_else(|| text(value)),
    }
}

fn known_cell(book: &Codebook, text: &str, ranges: bool) -> Option<CellId> {
    book.find_cell(text).or_else(|| book.find_range(text).filter(|_| ranges))
}

fn foreign_cell(known: &mut HashMap<String, CellId>, token: RawToken<'_>) -> CellId {
    let next = FIRST_FOREIGN_CELL + CellId::try_from(known.len()).unwrap_or(CellId::MAX - FIRST_FOREIGN_CELL);
    *known.entry(format!("{token:?}")).or_insert(next)
}

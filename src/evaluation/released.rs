//! What has left: the lines of every group, as cells of the original's codebooks.

use super::error::EvaluationError;
use super::joined::{At, Owners, Unjoined};
use super::original::Original;
use crate::anonymity::planner::GroupShape;
use crate::config::{Config, JOINED, Rows, Sink};
use crate::io::file::{self, FileSource, SourceError, open_text};
use crate::start::nested::{is_nested, nesting};
use crate::start::reading::file_format;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use throng_core::values::codebook::{CellId, Codebook};
use throng_core::values::formula::unguarded;
use throng_core::values::raw::{RawBatch, Token};
use throng_formats::{Field, Limits, LineFormat, LineLayout, Unknown};

/// Lines read at a time.
const AT_A_TIME: usize = 10_000;

/// Cells from this one on have a text that no generalization of an occurring value prints: a falsified value, or another file. Each
/// such text is a cell of its own: what differs is no crowd.
pub const FOREIGN: CellId = CellId::MAX / 2;

/// Whether nothing prints the text of a cell.
pub fn is_foreign(cell: CellId) -> bool {
    cell >= FOREIGN
}

/// The lines of one group.
pub struct ReleasedGroup {
    /// The group.
    pub name: String,
    /// Its attributes, in the order of the schema.
    pub attributes: Vec<usize>,
    /// By attribute of the group, a cell a line; [from](FOREIGN) a number on where nothing prints the text.
    pub cells: Vec<Vec<CellId>>,
    /// Lines.
    pub lines: usize,
    /// By line its number in the output, ascending, where lines of other groups stand there too.
    pub places: Option<Vec<u64>>,
    /// By line, the record that it came from and its batch; none where nobody has told.
    pub origin: Option<Vec<Origin>>,
}

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Row of the original.
    pub row: u32,
    /// Sequence of the batch.
    pub batch: u64,
}

impl ReleasedGroup {
    /// The line of the group that is number `place` of its output; none where that is another group's.
    pub(super) fn line_at(&self, place: u64) -> Option<usize> {
        match &self.places {
            None => usize::try_from(place).ok(),
            Some(places) => places.binary_search(&place).ok(),
        }
    }

    /// The cells of an attribute; none where the group does not have it.
    pub fn column(&self, attribute: usize) -> Option<&[CellId]> {
        self.attributes.iter().position(|a| *a == attribute).map(|at| self.cells[at].as_slice())
    }
}

/// Reads the release at `path`, written as the sink of `config` writes: a file, a file for each group, or directories of
/// Parquet. Joined rows are taken apart; of those that show nothing only `told`, which is the group by row, says which group they are of, and
/// without it they are of none.
///
/// # Errors
/// When a file cannot be read or lacks an attribute, or when something in it is no line of a group.
pub fn read(
    config: &Config,
    shapes: &[GroupShape],
    original: &Original,
    path: &Path,
    told: Option<BTreeMap<u64, usize>>,
) -> Result<Vec<ReleasedGroup>, EvaluationError> {
    if config.sink.rows == Rows::Joined {
        let ranges = shapes.iter().any(|shape| shape.ranges);
        let rows = Lines::read(config, &joined(shapes), (JOINED, true, ranges), original, path)?;
        return rows.taken_apart(shapes, original, path, told);
    }
    let alone = shapes.len() == 1;
    let group = |shape: &GroupShape| {
        let attributes = shape.without_ladder().attributes();
        let output = (shape.name.as_str(), alone, shape.ranges);
        let Lines { attributes, cells, lines } = Lines::read(config, &attributes, output, original, path)?;
        Ok(ReleasedGroup { name: shape.name.clone(), attributes, cells, lines, places: None, origin: None })
    };
    shapes.iter().map(group).collect()
}

/// The attributes of a joined row, each once, ascending.
pub fn joined(shapes: &[GroupShape]) -> Vec<usize> {
    let all: BTreeSet<usize> = shapes.iter().flat_map(|shape| shape.without_ladder().attributes()).collect();
    all.into_iter().collect()
}

/// The lines of one output.
struct Lines {
    attributes: Vec<usize>,
    /// By attribute, a cell a line.
    cells: Vec<Vec<CellId>>,
    lines: usize,
}

impl Lines {
    /// The lines of the output of this name, which may be `alone` and may show `ranges`.
    fn read(
        config: &Config,
        attributes: &[usize],
        (output, alone, ranges): (&str, bool, bool),
        original: &Original,
        path: &Path,
    ) -> Result<Self, EvaluationError> {
        let name = |a: &usize| original.schema.attributes[*a].name.as_str();
        let format = config.sink.format();
        let mut read = Self { cells: vec![Vec::new(); attributes.len()], lines: 0, attributes: attributes.to_vec() };
        let columns: Vec<Field> = attributes.iter().map(|a| Field::flat(name(a))).collect();
        // Texts that nothing prints, by attribute of the output, in the order in which they are met.
        let mut foreign: Vec<HashMap<String, CellId>> = vec![HashMap::new(); columns.len()];
        let nested = is_nested(config).then(|| {
            let names: Vec<&str> = attributes.iter().map(&name).collect();
            LineLayout::new(&LineFormat::Nested(nesting(&original.schema)), &names)
        });
        for file in files(config, path, output, alone)? {
            if let Some(layout) = &nested {
                read.take_nested((layout, ranges), original, &mut foreign, &file)?;
                continue;
            }
            let limits = Limits { max_record_bytes: usize::MAX, ..Limits::default() };
            let format = file_format(format, config.source.separator);
            let mut source = FileSource::open(&file, format, &columns, limits, Unknown::Refuse)?;
            let absent = source.absent_attributes();
            if !absent.is_empty() {
                let attributes = absent.into_iter().map(|a| format!("attribute {:?}", name(&attributes[a]))).collect();
                return Err(EvaluationError::NoColumn { path: file, attributes });
            }
            loop {
                let (mut raw, mut refused) = (RawBatch::new(columns.len()), Vec::new());
                let outcome = source.read(&mut raw, AT_A_TIME, u64::MAX, &mut refused)?;
                if let Some((place, why)) = refused.first() {
                    let line = place.offset.unsigned_abs() + 1;
                    return Err(EvaluationError::Line { path: file, line, why: why.to_string() });
                }
                for (at, attribute) in attributes.iter().enumerate() {
                    let (book, cells) = (&original.books[*attribute], &mut read.cells[at]);
                    let typed = format == file::Format::Ndjson;
                    for row in 0..raw.rows() {
                        let token = raw.token(row, at);
                        let token = without_guard(token, format);
                        let token = if is_missing(token, format, columns.len()) { Token::Null } else { token };
                        cells.push(
                            cell((book, ranges), token, typed).unwrap_or_else(|| foreign_cell(&mut foreign[at], token)),
                        );
                    }
                }
                read.lines += raw.rows();
                if outcome.end {
                    break;
                }
            }
        }
        Ok(read)
    }

    /// The lines of a file of nested lines.
    fn take_nested(
        &mut self,
        (layout, ranges): (&LineLayout, bool),
        original: &Original,
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
                why: "it is no nested line of its group".to_owned(),
            })?;
            for ((at, attribute), text) in self.attributes.iter().enumerate().zip(&cells) {
                let known = known_cell(&original.books[*attribute], text, ranges);
                let token = Token::Structure(text);
                self.cells[at].push(known.unwrap_or_else(|| foreign_cell(&mut foreign[at], token)));
            }
            self.lines += 1;
        }
        Ok(())
    }

    /// The groups of joined rows.
    fn taken_apart(
        self,
        shapes: &[GroupShape],
        original: &Original,
        path: &Path,
        told: Option<BTreeMap<u64, usize>>,
    ) -> Result<Vec<ReleasedGroup>, EvaluationError> {
        let empty = |shape: &GroupShape| {
            let attributes = shape.without_ladder().attributes();
            let cells = vec![Vec::new(); attributes.len()];
            let name = shape.name.clone();
            ReleasedGroup { name, attributes, cells, lines: 0, places: Some(Vec::new()), origin: None }
        };
        let mut groups: Vec<ReleasedGroup> = shapes.iter().map(empty).collect();
        let owners = Owners::new(&self.attributes, &groups.iter().map(|group| group.attributes.as_slice()), told);
        // By attribute of a row, the cells that say nothing.
        let nothing = |a: &usize| [original.books[*a].cell_of("null"), original.books[*a].cell_of("")];
        let nothing: Vec<[Option<CellId>; 2]> = self.attributes.iter().map(nothing).collect();
        for row in 0..self.lines {
            let at = self.cells.iter().zip(&nothing).map(|(cells, [null, absent])| match Some(cells[row]) {
                cell if cell == *null => At::Missing,
                cell if cell == *absent => At::Left,
                _ => At::Shown,
            });
            let refused = |unjoined: Unjoined| {
                let (line, why) = (row as u64 + 1, unjoined.promise().to_owned());
                EvaluationError::Line { path: path.to_owned(), line, why }
            };
            let Some(group) = owners.of(row as u64, at).map_err(refused)? else { continue };
            let group = &mut groups[group];
            let own = self.attributes.iter().zip(&self.cells).filter(|(a, _)| group.attributes.contains(a));
            for ((_, cells), column) in own.zip(&mut group.cells) {
                column.push(cells[row]);
            }
            group.lines += 1;
            group.places.get_or_insert_default().push(row as u64);
        }
        Ok(groups)
    }
}

/// Where the lines of a group are, which is `alone` or one of several. The files of a directory or a pattern come in the order of their
/// names.
///
/// # Errors
/// When a directory or a pattern has no file, or cannot be read.
pub fn files(config: &Config, path: &Path, group: &str, alone: bool) -> Result<Vec<PathBuf>, SourceError> {
    if alone {
        // What was named is what is measured.
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
    let of_group = Sink::file_of(path, group, false);
    Ok(vec![if alone && !of_group.is_file() { path.to_owned() } else { of_group }])
}

/// A cell without the `'` that CSV writes before a text that a spreadsheet would run.
pub(super) fn without_guard(token: Token<'_>, format: file::Format) -> Token<'_> {
    match (token, format) {
        (Token::Text(text), file::Format::Csv { .. }) => Token::Text(unguarded(text)),
        (Token::Untyped(text), file::Format::Csv { .. }) => Token::Untyped(unguarded(text)),
        (token, _) => token,
    }
}

/// Whether a cell says that there is no value, in an output of `columns` columns: CSV writes nothing there, and `null` where a row would
/// otherwise be blank.
pub(super) fn is_missing(token: Token<'_>, format: file::Format, columns: usize) -> bool {
    let is_csv = matches!(format, file::Format::Csv { .. });
    matches!(token, Token::Null | Token::Untyped("")) || is_csv && columns == 1 && token == Token::Untyped("null")
}

/// The cell that prints a text. JSON tells texts from numbers; where the format does not, either may be meant.
fn cell((book, ranges): (&Codebook, bool), token: Token<'_>, typed: bool) -> Option<CellId> {
    let text = |text: &str| known_cell(book, &serde_json::Value::from(text).to_string(), ranges);
    let bare = |number: &str| book.cell_of(number);
    match token {
        Token::Absent => book.cell_of(""),
        Token::Null => book.cell_of("null"),
        Token::Bool(value) => bare(if value { "true" } else { "false" }),
        Token::Number(number) | Token::Structure(number) => bare(number),
        // An empty text is none that an absent cell would have.
        Token::Text(value) if typed || value.is_empty() => text(value),
        // A missing value is no cell with this text.
        Token::Text(value @ "null") | Token::Untyped(value @ "null") => text(value),
        Token::Text(value) | Token::Untyped(value) => bare(value).or_else(|| text(value)),
    }
}

/// The cell that prints a JSON text: of a level or, where they may leave, a range.
fn known_cell(book: &Codebook, text: &str, ranges: bool) -> Option<CellId> {
    book.cell_of(text).or_else(|| book.range_of(text).filter(|_| ranges))
}

/// The cell of a text that nothing prints.
fn foreign_cell(known: &mut HashMap<String, CellId>, token: Token<'_>) -> CellId {
    let next = FOREIGN + CellId::try_from(known.len()).unwrap_or(CellId::MAX - FOREIGN);
    *known.entry(format!("{token:?}")).or_insert(next)
}

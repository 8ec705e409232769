//! The lines of a release and their form.

use super::finding::Findings;
use super::spelled::{Spelled, Spelling, is_compact};
use crate::anonymity::planner::GroupShape;
use crate::config::{Config, Format, JOINED};
use crate::evaluation::error::EvaluationError;
use crate::evaluation::joined::{At, Owners};
use crate::evaluation::nested::{Object, ranks, values};
use crate::evaluation::released::{files, is_missing, joined, without_guard};
use crate::io::file::{FileSource, open_text};
use crate::start::nested::{is_nested, way};
use crate::start::reading::file_format;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use throng_core::values::raw::{RawBatch, Token};
use throng_core::values::schema::{Attribute, Schema};
use throng_formats::{Field, Limits, Unknown};

/// Lines read at a time.
const AT_A_TIME: usize = 10_000;

/// One group.
pub(super) struct Group {
    /// Its name.
    pub name: String,
    /// Its file, or the first of several.
    pub file: PathBuf,
    /// Its attributes, in the order of the schema, and their names.
    pub attributes: Vec<usize>,
    /// Their names.
    pub names: Vec<String>,
    /// By line the cells, as JSON texts with an empty one for what is absent.
    pub lines: Vec<Vec<String>>,
    /// By line, what each cell is; suppressed where it is nothing that may leave.
    pub spelled: Vec<Vec<Spelled>>,
    /// By line its bytes, where the format has lines.
    pub bytes: Vec<String>,
    /// By line its number in the file, ascending, where lines of other groups stand there too.
    pub places: Option<Vec<usize>>,
}

impl Group {
    /// The number in the file of a line of the group.
    pub(super) fn place(&self, line: usize) -> usize {
        self.places.as_ref().map_or(line, |places| places[line])
    }

    /// The line of the group that is number `place` of the file; none where that is another group's.
    pub(super) fn line_at(&self, place: u64) -> Option<usize> {
        let place = usize::try_from(place).ok()?;
        self.places.as_ref().map_or(Some(place), |places| places.binary_search(&place).ok())
    }
}

/// Reads a group and notes what is wrong with its lines.
pub(super) fn read(
    config: &Config,
    schema: &Schema,
    shape: &GroupShape,
    alone: bool,
    path: &Path,
    spelling: &mut Spelling,
    findings: &mut Findings,
) -> Result<Group, EvaluationError> {
    let attributes = shape.without_ladder().attributes();
    let mut group = Group::read((config, schema), (&shape.name, attributes), alone, path, findings)?;
    group.judge(shape, spelling, findings);
    Ok(group)
}

/// Reads joined rows, notes what is wrong with them, and takes them apart. Of rows that show nothing only `told`, the group by row,
/// says which group they are of; without it they are of none.
pub(super) fn read_joined(
    (config, schema): (&Config, &Schema),
    shapes: &[GroupShape],
    path: &Path,
    told: Option<BTreeMap<u64, usize>>,
    spelling: &mut Spelling,
    findings: &mut Findings,
) -> Result<Vec<Group>, EvaluationError> {
    let rows = Group::read((config, schema), (JOINED, joined(shapes)), true, path, findings)?;
    let mut groups: Vec<Group> = shapes.iter().map(|shape| rows.none_of(shape)).collect();
    let owners = Owners::new(&rows.attributes, &groups.iter().map(|group| group.attributes.as_slice()), told);
    let mut bytes = rows.bytes.into_iter();
    for (number, cells) in rows.lines.into_iter().enumerate() {
        let bytes = bytes.next();
        let at = cells.iter().map(|cell| match cell.as_str() {
            "" => At::Left,
            "null" => At::Missing,
            _ => At::Shown,
        });
        let group = match owners.of(number as u64, at) {
            Ok(group) => group,
            Err(unjoined) => {
                findings.note(unjoined.promise(), &rows.file, number, None, None);
                continue;
            }
        };
        let Some(group) = group.map(|group| &mut groups[group]) else { continue };
        let own = rows.attributes.iter().zip(cells).filter(|(a, _)| group.attributes.contains(a));
        group.lines.push(own.map(|(_, cell)| cell).collect());
        group.bytes.extend(bytes);
        group.places.get_or_insert_default().push(number);
    }
    for (group, shape) in groups.iter_mut().zip(shapes) {
        group.judge(shape, spelling, findings);
    }
    Ok(groups)
}

impl Group {
    /// The lines of an output that has these attributes.
    fn read(
        (config, schema): (&Config, &Schema),
        (name, attributes): (&str, Vec<usize>),
        alone: bool,
        path: &Path,
        findings: &mut Findings,
    ) -> Result<Self, EvaluationError> {
        let names: Vec<String> = attributes.iter().map(|&a| schema.attributes[a].name.clone()).collect();
        let format = config.sink.format();
        let files = files(config, path, name, alone)?;
        let file = files.first().cloned().unwrap_or_else(|| path.to_owned());
        let (lines, spelled, bytes, name) = (Vec::new(), Vec::new(), Vec::new(), name.to_owned());
        let mut group = Self { name, file, attributes, names, lines, spelled, bytes, places: None };
        for file in files {
            if format == Format::Json {
                group.read_json((config, schema), &file, findings)?;
            } else {
                group.read_table(config, &file)?;
            }
        }
        Ok(group)
    }

    /// A group whose rows are among these, without any.
    fn none_of(&self, shape: &GroupShape) -> Self {
        let attributes = shape.without_ladder().attributes();
        let of_group = self.attributes.iter().zip(&self.names).filter(|(a, _)| attributes.contains(a));
        let names = of_group.map(|(_, name)| name.clone()).collect();
        let (name, file, places) = (shape.name.clone(), self.file.clone(), Some(Vec::new()));
        Self { name, file, names, attributes, lines: Vec::new(), spelled: Vec::new(), bytes: Vec::new(), places }
    }

    fn read_json(
        &mut self,
        (config, schema): (&Config, &Schema),
        path: &Path,
        findings: &mut Findings,
    ) -> Result<(), EvaluationError> {
        let nested = is_nested(config);
        let unreadable = |source| EvaluationError::Release { path: path.to_owned(), source };
        let invalid = |_| std::io::Error::from(std::io::ErrorKind::InvalidData);
        let lines = BufReader::new(open_text(path).map_err(unreadable)?).split(b'\n');
        for (number, line) in lines.enumerate() {
            // A carriage return before the line break belongs to the line.
            let line = line.and_then(|line| String::from_utf8(line).map_err(invalid)).map_err(unreadable)?;
            if !is_compact(&line) {
                let promise = "a line is spelled in one way: its cells say all of it";
                findings.note(promise, path, number, None, None);
            }
            let mut cells = vec![String::new(); self.attributes.len()];
            match serde_json::from_str::<Object>(&line) {
                Err(_) => findings.note("a line is a JSON object", path, number, None, None),
                Ok(object) if nested => self.take_nested(schema, object, &mut cells, (path, number), findings),
                Ok(object) => self.take(schema, &object, &mut cells, (path, number), findings),
            }
            self.lines.push(cells);
            self.bytes.push(line);
        }
        Ok(())
    }

    /// Sorts the cells of an object by attribute.
    fn take(
        &self,
        schema: &Schema,
        object: &Object,
        cells: &mut [String],
        (path, number): (&Path, usize),
        findings: &mut Findings,
    ) {
        let mut next = 0;
        for (key, value) in &object.0 {
            let Some(at) = self.names.iter().position(|name| name == key) else {
                note_stranger(schema, schema.position(key), (path, number), findings);
                continue;
            };
            if at < next {
                findings.note("attributes stand in the order of the schema, each once", path, number, Some(key), None);
            }
            next = at + 1;
            value.get().clone_into(&mut cells[at]);
        }
    }

    /// Sorts the cells of a nested line by attribute.
    fn take_nested(
        &self,
        schema: &Schema,
        object: Object,
        cells: &mut [String],
        (path, number): (&Path, usize),
        findings: &mut Findings,
    ) {
        let all: Vec<&Attribute> = schema.attributes.iter().map(AsRef::as_ref).collect();
        // An attribute that leaves may stand where another one came from, which does not.
        let own = self.attributes.iter().copied();
        let in_order: Vec<usize> = own.chain((0..all.len()).filter(|a| !self.attributes.contains(a))).collect();
        let ranks = ranks(schema, &self.attributes);
        let mut next = 0;
        for (found, value) in values(object, &all) {
            let known = in_order.iter().copied().find(|a| way(all[*a]) == found);
            let Some(at) = known.and_then(|known| self.attributes.iter().position(|a| *a == known)) else {
                note_stranger(schema, known, (path, number), findings);
                continue;
            };
            if ranks[at] < next {
                let name = self.names[at].as_str();
                findings.note("attributes stand in the order of the schema, each once", path, number, Some(name), None);
            }
            next = ranks[at] + 1;
            value.get().clone_into(&mut cells[at]);
        }
    }

    fn read_table(&mut self, config: &Config, path: &Path) -> Result<(), EvaluationError> {
        let columns: Vec<Field> = self.names.iter().map(|name| Field::flat(name)).collect();
        let limits = Limits { max_record_bytes: usize::MAX, ..Limits::default() };
        let format = file_format(config.sink.format(), config.source.separator);
        // A column that is not the group's refuses the file, by its name.
        let mut source = FileSource::open(path, format, &columns, limits, Unknown::Refuse)?;
        loop {
            let (mut raw, mut refused) = (RawBatch::new(columns.len()), Vec::new());
            let outcome = source.read(&mut raw, AT_A_TIME, u64::MAX, &mut refused)?;
            if let Some((place, why)) = refused.first() {
                let line = place.offset.unsigned_abs() + 1;
                return Err(EvaluationError::Line { path: path.to_owned(), line, why: why.to_string() });
            }
            for row in 0..raw.rows() {
                let cells = (0..columns.len()).map(|at| without_guard(raw.token(row, at), format));
                let missing = |token: &Token<'_>| is_missing(*token, format, columns.len());
                self.lines
                    .push(cells.map(|token| printed(if missing(&token) { Token::Null } else { token })).collect());
            }
            if outcome.end {
                return Ok(());
            }
        }
    }

    /// What each cell is.
    fn judge(&mut self, shape: &GroupShape, spelling: &mut Spelling, findings: &mut Findings) {
        for (line, cells) in self.lines.iter_mut().enumerate() {
            let number = self.places.as_ref().map_or(line, |places| places[line]);
            let mut spelled = Vec::with_capacity(cells.len());
            for (at, cell) in cells.iter_mut().enumerate() {
                let attribute = self.attributes[at];
                // A table does not tell a number from a text: it may be either.
                let as_text = || cell.strip_prefix('\u{0}').map(|text| serde_json::Value::from(text).to_string());
                let judged = match as_text() {
                    None => spelling.judge(attribute, cell),
                    Some(text) => {
                        let bare = cell.trim_start_matches('\u{0}').to_owned();
                        let (found, kept) = match spelling.judge(attribute, &text) {
                            Some(found) => (Some(found), text),
                            None if shape.ranges && spelling.is_range(attribute, &text) => (None, text),
                            None => (spelling.judge(attribute, &bare), bare),
                        };
                        *cell = kept;
                        found
                    }
                };
                let may_be_range = shape.ranges && shape.quasi.contains(&attribute);
                let is_range = || may_be_range && spelling.is_range(attribute, cell);
                let judged = judged.or_else(|| is_range().then_some(Spelled::Label));
                if judged.is_none() {
                    let promise = "a cell is a value of its attribute, a label of its hierarchy, or `*`";
                    findings.note(promise, &self.file, number, Some(&self.names[at]), None);
                }
                spelled.push(judged.unwrap_or(Spelled::Suppressed));
            }
            let says = |a: &usize| shape.quasi.contains(a) || shape.sensitive.contains(a);
            let mut guarded = self.attributes.iter().zip(&spelled).filter(|(a, _)| says(a)).peekable();
            if guarded.peek().is_some() && guarded.all(|(_, cell)| *cell == Spelled::Suppressed) {
                findings.note("a line says something: not all of its cells are `*`", &self.file, number, None, None);
            }
            self.spelled.push(spelled);
        }
    }
}

/// Notes a value that is no attribute's of the group; `known` is the attribute of the schema that it is.
fn note_stranger(schema: &Schema, known: Option<usize>, (path, number): (&Path, usize), findings: &mut Findings) {
    let known = known.map(|a| &schema.attributes[a]);
    let promise = match known.map(|attribute| attribute.role.is_releasable()) {
        Some(true) => "a line has attributes of its group alone",
        Some(false) => "identifiers and subjects do not leave",
        None => "a line has attributes of the schema alone",
    };
    // A name that the schema does not know may be anything.
    findings.note(promise, path, number, known.map(|attribute| attribute.name.as_str()), None);
}

/// A cell as JSON; an untyped one is marked, since it may be a number or a text.
fn printed(token: Token<'_>) -> String {
    match token {
        Token::Absent => String::new(),
        Token::Null => "null".to_owned(),
        Token::Bool(value) => value.to_string(),
        Token::Number(number) | Token::Structure(number) => number.to_owned(),
        Token::Text(text) | Token::Untyped(text) => format!("\u{0}{text}"),
    }
}

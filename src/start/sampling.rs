//! Records read beside a run: ahead of it, to learn from (they are never released and support nobody), or after it, to measure.

use super::encode::encode;
use super::memory::max_dictionary_values;
use super::profiles::{self, NotRead, Profiles};
use super::reading::{codec_limits, fields, file_format};
use crate::config::{Config, Format, Problem, SourceKind};
use crate::io::file::{FileSource, LongRows, SourceError, is_at_rest};
use crate::io::input::InputBatch;
use crate::telemetry::Label;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use throng_core::values::canonical::Canonical;
use throng_core::values::codebook::{Codebook, CodebookError, UNCOVERED};
use throng_core::values::digest::DigestKey;
use throng_core::values::hierarchy::Hierarchy;
use throng_core::values::json::unquoted;
use throng_core::values::moment;
use throng_core::values::raw::Coordinate;
use throng_core::values::schema::{Attribute, Schema, Type};
use throng_core::values::subject::Subjects;
use throng_core::values::table::Batch;

/// Records decoded at a time.
const AT_A_TIME: usize = 10_000;

/// Records, encoded by books of their own.
pub struct Read {
    /// From values to codes, by attribute.
    pub books: Vec<Codebook>,
    /// The records that could be read, in their order.
    pub batch: Batch,
    /// Records that could not be read or have a cell of the wrong type.
    pub rejected: u64,
    /// Attributes that the file has no column for; nothing is read then.
    pub absent: Vec<usize>,
    /// By attribute and record: numbers that have no code, because they are outside the range of the hierarchy.
    pub uncovered: BTreeMap<(usize, usize), f64>,
}

/// Why records cannot be read.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum SamplingError {
    #[error("no randomness: {0}")]
    Randomness(std::io::Error),
    #[error(transparent)]
    Codebook(#[from] CodebookError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Profiles(#[from] NotRead),
}

/// A file of typical records, named before a run: `plan.prime`, or without it the source file.
fn typical_file(config: &Config) -> Option<&Path> {
    let source = (config.source.kind == SourceKind::File).then_some(config.source.path.as_path());
    config.plan.prime.as_deref().or(source.filter(|path| is_at_rest(path)))
}

/// Reads up to `most` typical records: those of `plan.prime`, or without it of the source file. `what` is wanted of them, by the `key` of
/// the configuration `file`; `otherwise` is what to do without.
///
/// # Errors
/// Where there is no such file, and where nothing of it can be read.
pub fn typical(
    config: &Config,
    schema: &Schema,
    most: usize,
    (file, key): (&str, &str),
    (what, otherwise): (&str, &str),
) -> Result<Read, Vec<Problem>> {
    let problem = |message: String, remedy: String| vec![Problem::new(file, key, message, remedy)];
    let path = typical_file(config).ok_or_else(|| {
        let message = format!("{what} from records, and there is no file of them before the stream begins");
        problem(message, format!("name a file of typical records in plan.prime, or {otherwise}"))
    })?;
    if config.plan.prime.is_none() && !schema.joined().is_empty() {
        let message = format!("{what} from records, and those of the source lack what joins bring");
        let remedy = format!("name a file of typical records that has it in plan.prime, or {otherwise}");
        return Err(problem(message, remedy));
    }
    let unreadable = |why: String| {
        problem(format!("{}: {why}", path.display()), "correct the file, or name another in plan.prime".to_owned())
    };
    if path.exists() && !is_at_rest(path) {
        return Err(unreadable("it is no regular file".to_owned()));
    }
    let read = read(config, schema, path, most, false).map_err(|error| unreadable(error.to_string()))?;
    if let Some(&absent) = read.absent.first() {
        return Err(unreadable(format!("no column for attribute {:?}", schema.attributes[absent].name)));
    }
    if read.batch.rows() == 0 {
        return Err(unreadable("no record of it can be read".to_owned()));
    }
    Ok(read)
}

/// Reads up to `most` records of `path` in the format of the source. With `absent_as_null` an absent cell is a missing one.
pub fn read(
    config: &Config,
    schema: &Schema,
    path: &Path,
    most: usize,
    absent_as_null: bool,
) -> Result<Read, SamplingError> {
    let key = DigestKey::of_this_run().map_err(SamplingError::Randomness)?;
    records(config, schema, (path, most), absent_as_null, &key, &mut [], &[])
}

/// Reads up to `most` records of `path` as [`read`] does, without the cells that joins bring.
pub(super) fn read_unjoined(config: &Config, schema: &Schema, path: &Path, most: usize) -> Result<Read, SamplingError> {
    let key = DigestKey::of_this_run().map_err(SamplingError::Randomness)?;
    records(config, schema, (path, most), false, &key, &mut [], &schema.joined())
}

/// Reads all records of `path` as [`read`] does, joined to the profiles that the configuration, the file `file` in messages, names in files:
/// what these bring is theirs alone, whatever the records have of it. Subjects are digested by `key`; without one by a random key.
///
/// # Errors
/// When the file or the profiles cannot be read, and when profiles are in a topic.
pub fn read_joined(
    config: &Config,
    schema: &Schema,
    file: &str,
    path: &Path,
    absent_as_null: bool,
    key: Option<&DigestKey>,
) -> Result<Read, SamplingError> {
    let key = key.cloned().map_or_else(DigestKey::of_this_run, Ok).map_err(SamplingError::Randomness)?;
    let subjects = schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), &key));
    let mut profiles = profiles::read_whole(config, schema, file, subjects.as_ref())?;
    let joined: Vec<usize> = profiles.iter().flat_map(|join| join.attributes.iter().copied()).collect();
    records(config, schema, (path, usize::MAX), absent_as_null, &key, &mut profiles, &joined)
}

fn records(
    config: &Config,
    schema: &Schema,
    (path, most): (&Path, usize),
    absent_as_null: bool,
    key: &DigestKey,
    profiles: &mut [Profiles],
    joined: &[usize],
) -> Result<Read, SamplingError> {
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), key, max_dictionary_values(config, schema));
    let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect::<Result<_, _>>()?;
    let mut subjects = schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), key));
    let (limits, unknown) = codec_limits(config);
    let format = config.source.format_of_file(path);
    let (file, columns) = (file_format(format, config.source.separator), fields(schema, format == Format::Csv));
    let mut source = FileSource::open(path, file, &columns, limits, unknown)?;
    let (mut batch, mut rejected, mut uncovered) = (Batch::new(schema.attributes.len()), 0, BTreeMap::new());
    let absent: Vec<usize> = source.absent_attributes().into_iter().filter(|a| !joined.contains(a)).collect();
    while absent.is_empty() && batch.rows() < most {
        let (mut input, mut refused) = (InputBatch::new(schema.attributes.len(), 0), Vec::new());
        let outcome = source.read(&mut input.raw, AT_A_TIME.min(most - batch.rows()), u64::MAX, &mut refused)?;
        joined.iter().for_each(|attribute| input.raw.clear(*attribute));
        let (mut rows, misfits) = encode(&input, schema, &mut books, subjects.as_mut(), absent_as_null);
        profiles.iter_mut().for_each(|join| join.join(&mut rows, &mut books));
        rejected += (refused.len() + misfits.len()) as u64;
        note_uncovered(schema, &input, &rows, batch.rows(), &mut uncovered);
        batch.append(&rows);
        if outcome.end {
            break;
        }
    }
    Ok(Read { books, batch, rejected, absent, uncovered })
}

/// Notes the numbers and times (in milliseconds) of the encoded `rows`, which are those from `first` on, that have no code.
fn note_uncovered(
    schema: &Schema,
    input: &InputBatch,
    rows: &Batch,
    first: usize,
    uncovered: &mut BTreeMap<(usize, usize), f64>,
) {
    let is_time = |attribute: &Attribute| matches!(attribute.kind(), Type::Date | Type::Timestamp);
    let is_number = |attribute: &Attribute| {
        (matches!(attribute.kind(), Type::Integer | Type::Float) || is_time(attribute))
            && matches!(attribute.hierarchy, Hierarchy::Ruler(_) | Hierarchy::Calendar(_) | Hierarchy::Flat)
    };
    let mut text = String::new();
    let places: BTreeMap<Coordinate, usize> = input.raw.coordinates().iter().copied().zip(0..).collect();
    for (at, attribute) in schema.attributes.iter().enumerate().filter(|(_, attribute)| is_number(attribute)) {
        for (row, _) in rows.columns[at].iter().enumerate().filter(|(_, code)| **code == UNCOVERED) {
            let Some(place) = places.get(&rows.coordinates[row]) else { continue };
            text.clear();
            let is_value = attribute.typing.canonical(input.raw.token(*place, at), &mut text) == Ok(Canonical::Value);
            let number = if is_time(attribute) {
                unquoted(&text).and_then(|text| moment::parse(&text)).map(|time| time as f64)
            } else {
                text.parse().ok()
            };
            if let Some(number) = number.filter(|_| is_value) {
                uncovered.insert((at, first + row), number);
            }
        }
    }
}

/// Why a file cannot be read as a whole. A record that does not fit refuses the file: nothing becomes a dead letter
/// here.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum WholeFileError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(
        "no column for {} (correct `column` or `pointer` of the attribute in the schema, or take it out of the schema)",
        .0.iter().map(|a| format!("attribute {a:?}")).collect::<Vec<_>>().join(", ")
    )]
    NoColumn(Vec<String>),
    #[error(
        "{records} record(s) cannot be read or do not have the types of the schema, the first is number {first} ({why}); correct them, or take them out"
    )]
    Rejected { records: u64, first: i64, why: String },
}

/// Hears of the records of a file part by part, beside the codebooks as they are by then, and of rows that span many lines; where it breaks
/// off, no more is read.
pub type Take<'a> = &'a mut dyn FnMut(&Batch, &[Codebook], Option<LongRows>) -> ControlFlow<()>;

/// Reads `path`, and `more` behind it, in the source's format and hands their records over in parts, encoded by `books`. With `absent_as_null` an absent
/// cell is a missing one. What `profiles` bring is theirs alone, whatever the file has of it.
///
/// # Errors
/// When the file cannot be read, a column is missing, or any record does not fit the schema.
pub fn read_whole(
    config: &Config,
    (path, more, profiles): (&Path, &[PathBuf], &mut [Profiles]),
    schema: &Schema,
    books: &mut [Codebook],
    mut subjects: Option<&mut Subjects>,
    absent_as_null: bool,
    take: Take<'_>,
) -> Result<(), WholeFileError> {
    let (limits, unknown) = codec_limits(config);
    let format = config.source.format_of_file(path);
    let mut source = FileSource::open(
        path,
        file_format(format, config.source.separator),
        &fields(schema, format == Format::Csv),
        limits,
        unknown,
    )?
    .followed_by(more)?;
    let joined: Vec<usize> = profiles.iter().flat_map(|join| join.attributes.iter().copied()).collect();
    let absent = source.absent_attributes().into_iter().filter(|a| !joined.contains(a));
    let absent: Vec<String> = absent.map(|a| schema.attributes[a].name.clone()).collect();
    if !absent.is_empty() {
        return Err(WholeFileError::NoColumn(absent));
    }
    let (mut rejected, mut first): (u64, Option<(Coordinate, String)>) = (0, None);
    let mut note = |coordinate: Coordinate, why: &dyn Fn() -> String| {
        rejected += 1;
        if first.as_ref().is_none_or(|(before, _)| coordinate.offset < before.offset) {
            first = Some((coordinate, why()));
        }
    };
    loop {
        let mut input = InputBatch::new(schema.attributes.len(), 0);
        let mut refused = Vec::new();
        let outcome = source.read(&mut input.raw, AT_A_TIME, u64::MAX, &mut refused)?;
        for (coordinate, reason) in refused {
            note(coordinate, &|| match reason.remedy() {
                "" => reason.to_string(),
                remedy => format!("{reason}: {remedy}"),
            });
        }
        joined.iter().for_each(|attribute| input.raw.clear(*attribute));
        let (mut batch, misfits) = encode(&input, schema, books, subjects.as_deref_mut(), absent_as_null);
        for misfit in misfits {
            note(misfit.coordinate, &|| match misfit.attribute.map(|a| &schema.attributes[a]) {
                Some(attribute) => format!("attribute {:?} is not of type {}", attribute.name, attribute.kind().name()),
                None => misfit.reason.as_str().to_owned(),
            });
        }
        profiles.iter_mut().for_each(|join| join.join(&mut batch, books));
        if take(&batch, books, source.take_long_rows()).is_break() || outcome.end {
            break;
        }
    }
    match first {
        Some((first, why)) => Err(WholeFileError::Rejected { records: rejected, first: first.offset + 1, why }),
        None => Ok(()),
    }
}

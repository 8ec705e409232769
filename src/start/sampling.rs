//! Reads records outside a run, for planning (never released or counted in classes) or measurement.

use super::memory_budget::max_dictionary_values;
use super::profile_sources::{self, JoinProfiles, ProfilesUnavailable};
use super::record_formats::{codec_limits, fields, file_format};
use crate::config::{Config, ConfigProblem, RecordFormat, SourceKind};
use crate::io::file::{FileSource, SourceError, is_rereadable};
use crate::telemetry::Label;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use throng_core::stream::batch_encoding::encode;
use throng_core::stream::input_batch::InputBatch;
use throng_core::stream::input_batch::LongRows;
use throng_core::values::canonical::CanonicalKind;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{Codebook, CodebookError, UNCOVERED};
use throng_core::values::digest::DigestKey;
use throng_core::values::hierarchy::Hierarchy;
use throng_core::values::json::unquoted;
use throng_core::values::moment;
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::resolved_cells::ResolvedCells;
use throng_core::values::schema::{Attribute, AttributeType, Schema};
use throng_core::values::subject_digest::SubjectDigester;

const SAMPLE_ROWS_PER_READ: usize = 10_000;

/// Records with separate codebooks.
pub struct SampledRecords {
    /// Codebook of each attribute.
    pub books: Vec<Codebook>,
    /// Readable records in order.
    pub batch: CodeBatch,
    /// Records that are unreadable or of a wrong type.
    pub rejected: u64,
    /// Attributes without a column; if any, no records are read.
    pub absent: Vec<usize>,
    /// Numbers outside the range of the hierarchy, by attribute and record.
    pub uncovered: BTreeMap<(usize, usize), f64>,
}

/// Failure to read records.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum SamplingError {
    #[error("no random bytes available: {0}")]
    Randomness(std::io::Error),
    #[error(transparent)]
    Codebook(#[from] CodebookError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Profiles(#[from] ProfilesUnavailable),
}

fn typical_file(config: &Config) -> Option<&Path> {
    let source = (config.source.kind == SourceKind::File).then_some(config.source.path.as_path());
    config.plan.prime.as_deref().or(source.filter(|path| is_rereadable(path)))
}

/// Reads up to `most` typical records from `plan.prime`, else the source file. Problems name `key`, `file`, the use of
/// the records, and the alternative `otherwise`.
///
/// # Errors
/// Fails without a file or a readable record.
pub fn read_typical(
    config: &Config,
    schema: &Schema,
    most: usize,
    (file, key): (&str, &str),
    (what, otherwise): (&str, &str),
) -> Result<SampledRecords, Vec<ConfigProblem>> {
    let problem = |message: String, remedy: String| vec![ConfigProblem::new(file, key, message, remedy)];
    let path = typical_file(config).ok_or_else(|| {
        let message = format!("{what} from records, but no file of records is available before the stream begins");
        problem(message, format!("name a file of typical records in plan.prime, or {otherwise}"))
    })?;
    if schema.differs_by_topic() {
        let message = format!("{what} from records, but attributes differ by topic, and a file has no topics");
        return Err(problem(message, format!("remove plan.prime, or {otherwise}")));
    }
    if config.plan.prime.is_none() && !schema.joined_attributes().is_empty() {
        let message = format!("{what} from records, but those of the source lack the attributes of joins");
        let remedy = format!("name a file of typical records that has them in plan.prime, or {otherwise}");
        return Err(problem(message, remedy));
    }
    let unreadable = |why: String| {
        problem(format!("{}: {why}", path.display()), "correct the file, or name another in plan.prime".to_owned())
    };
    if path.exists() && !is_rereadable(path) {
        return Err(unreadable("not a regular file".to_owned()));
    }
    let read = read_sample(config, schema, path, most, false).map_err(|error| unreadable(error.to_string()))?;
    if let Some(&absent) = read.absent.first() {
        return Err(unreadable(format!("no column for attribute {:?}", schema.attributes[absent].name)));
    }
    if read.batch.rows() == 0 {
        return Err(unreadable("no record can be read".to_owned()));
    }
    Ok(read)
}

/// Reads up to `most` records of `path` in the format of the source. `absent_as_null` turns absent cells into missing
/// ones.
pub fn read_sample(
    config: &Config,
    schema: &Schema,
    path: &Path,
    most: usize,
    absent_as_null: bool,
) -> Result<SampledRecords, SamplingError> {
    let key = DigestKey::random_key().map_err(SamplingError::Randomness)?;
    read_encoded(config, schema, (path, most), absent_as_null, &key, &mut [], &[])
}

/// Like [`read_sample`], without joined cells.
pub(super) fn read_without_joins(
    config: &Config,
    schema: &Schema,
    path: &Path,
    most: usize,
) -> Result<SampledRecords, SamplingError> {
    let key = DigestKey::random_key().map_err(SamplingError::Randomness)?;
    read_encoded(config, schema, (path, most), false, &key, &mut [], &schema.joined_attributes())
}

/// Reads all records of `path` like [`read_sample`], joined to the configured profile files. Subjects are digested with
/// `key`, or a random one.
///
/// # Errors
/// Fails if the file or the profiles cannot be read, and for profiles in a topic.
pub fn read_joined(
    config: &Config,
    schema: &Schema,
    file: &str,
    path: &Path,
    absent_as_null: bool,
    key: Option<&DigestKey>,
) -> Result<SampledRecords, SamplingError> {
    let key = key.cloned().map_or_else(DigestKey::random_key, Ok).map_err(SamplingError::Randomness)?;
    let subjects = schema.subject.map(|a| SubjectDigester::new(Arc::clone(&schema.attributes[a]), &key));
    let mut profiles = profile_sources::read_profile_files(config, schema, file, subjects.as_ref())?;
    let joined: Vec<usize> = profiles.iter().flat_map(|join| join.attributes.iter().copied()).collect();
    read_encoded(config, schema, (path, usize::MAX), absent_as_null, &key, &mut profiles, &joined)
}

fn read_encoded(
    config: &Config,
    schema: &Schema,
    (path, most): (&Path, usize),
    absent_as_null: bool,
    key: &DigestKey,
    profiles: &mut [JoinProfiles],
    joined: &[usize],
) -> Result<SampledRecords, SamplingError> {
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), key, max_dictionary_values(config, schema));
    let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect::<Result<_, _>>()?;
    let mut subjects = schema.subject.map(|a| SubjectDigester::new(Arc::clone(&schema.attributes[a]), key));
    let (limits, unknown) = codec_limits(config);
    let format = config.source.format_of_file(path);
    let (file, columns) = (file_format(format, config.source.separator), fields(schema, format == RecordFormat::Csv));
    let mut source = FileSource::open(path, file, &columns, limits, unknown)?.selecting(&schema.attributes)?;
    let (mut batch, mut rejected, mut uncovered) = (CodeBatch::new(schema.attributes.len()), 0, BTreeMap::new());
    let absent: Vec<usize> = source.absent_attributes().into_iter().filter(|a| !joined.contains(a)).collect();
    while absent.is_empty() && batch.rows() < most {
        let (mut input, mut refused) = (InputBatch::new(schema.attributes.len(), 0), Vec::new());
        let outcome =
            source.read(&mut input.raw, SAMPLE_ROWS_PER_READ.min(most - batch.rows()), u64::MAX, &mut refused)?;
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
    Ok(SampledRecords { books, batch, rejected, absent, uncovered })
}

/// Adds numbers and times (in milliseconds) without a code from `rows`, which start at record `first`.
fn note_uncovered(
    schema: &Schema,
    input: &InputBatch,
    rows: &CodeBatch,
    first: usize,
    uncovered: &mut BTreeMap<(usize, usize), f64>,
) {
    let is_time = |attribute: &Attribute| matches!(attribute.kind(), AttributeType::Date | AttributeType::Timestamp);
    let is_number = |attribute: &Attribute| {
        (matches!(attribute.kind(), AttributeType::Integer | AttributeType::Float) || is_time(attribute))
            && matches!(attribute.hierarchy, Hierarchy::Ruler(_) | Hierarchy::Calendar(_) | Hierarchy::Flat)
    };
    let mut text = String::new();
    let places: BTreeMap<RecordPosition, usize> = input.raw.coordinates().iter().copied().zip(0..).collect();
    let resolved = ResolvedCells::from_raw_batch(&input.raw, &schema.attributes);
    for (at, attribute) in schema.attributes.iter().enumerate().filter(|(_, attribute)| is_number(attribute)) {
        let (cells, column) = resolved.as_ref().and_then(|resolved| resolved.column(at)).unwrap_or((&input.raw, at));
        for (row, _) in rows.columns[at].iter().enumerate().filter(|(_, code)| **code == UNCOVERED) {
            let Some(place) = places.get(&rows.coordinates[row]) else { continue };
            text.clear();
            let is_value =
                attribute.typing.canonical(cells.token(*place, column), &mut text) == Ok(CanonicalKind::Value);
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

/// Failure to read a complete file; any misfit rejects it, because there are no dead letters.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum WholeFileError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(
        "no column for {} (correct `column` or `pointer` of the attribute in the schema, or remove it from the schema)",
        .0.iter().map(|a| format!("attribute {a:?}")).collect::<Vec<_>>().join(", ")
    )]
    NoColumn(Vec<String>),
    #[error(
        "{records} record(s) cannot be read or do not match the types of the schema, the first is number {first} ({why}); correct or remove them"
    )]
    Rejected { records: u64, first: i64, why: String },
}

/// Receives records, current codebooks, and rows that span many lines. A break ends the read.
pub type RecordCallback<'a> = &'a mut dyn FnMut(&CodeBatch, &[Codebook], Option<LongRows>) -> ControlFlow<()>;

/// Reads `path`, then `more`, and passes the records in parts, encoded by `books`. `absent_as_null` turns absent cells
/// into missing ones; `profiles` replace their cells.
///
/// # Errors
/// Fails if the file cannot be read, a column is missing, or any record does not fit.
pub fn read_whole_file(
    config: &Config,
    (path, more, profiles): (&Path, &[PathBuf], &mut [JoinProfiles]),
    schema: &Schema,
    books: &mut [Codebook],
    mut subjects: Option<&mut SubjectDigester>,
    absent_as_null: bool,
    take: RecordCallback<'_>,
) -> Result<(), WholeFileError> {
    let (limits, unknown) = codec_limits(config);
    let format = config.source.format_of_file(path);
    let mut source = FileSource::open(
        path,
        file_format(format, config.source.separator),
        &fields(schema, format == RecordFormat::Csv),
        limits,
        unknown,
    )?
    .followed_by(more)?
    .selecting(&schema.attributes)?;
    let joined: Vec<usize> = profiles.iter().flat_map(|join| join.attributes.iter().copied()).collect();
    let absent = source.absent_attributes().into_iter().filter(|a| !joined.contains(a));
    let absent: Vec<String> = absent.map(|a| schema.attributes[a].name.clone()).collect();
    if !absent.is_empty() {
        return Err(WholeFileError::NoColumn(absent));
    }
    let (mut rejected, mut first): (u64, Option<(RecordPosition, String)>) = (0, None);
    let mut note = |coordinate: RecordPosition, why: &dyn Fn() -> String| {
        rejected += 1;
        if first.as_ref().is_none_or(|(before, _)| coordinate.offset < before.offset) {
            first = Some((coordinate, why()));
        }
    };
    loop {
        let mut input = InputBatch::new(schema.attributes.len(), 0);
        let mut refused = Vec::new();
        let outcome = source.read(&mut input.raw, SAMPLE_ROWS_PER_READ, u64::MAX, &mut refused)?;
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

//! Records read beside a run: ahead of it, to learn from (they are never released and support nobody), or after it, to measure.

use super::encode::encode;
use super::profiles::{self, NotRead, Profiles};
use super::reading::{codec_limits, fields, file_format};
use crate::config::{Config, Format, Problem, SourceKind};
use crate::io::file::{FileSource, SourceError, is_at_rest};
use crate::io::input::InputBatch;
use crate::records::codebook::{Codebook, CodebookError};
use crate::records::digest::DigestKey;
use crate::records::schema::Schema;
use crate::records::subject::Subjects;
use crate::records::table::Batch;
use crate::start::memory::max_dictionary_values;
use std::path::Path;
use std::sync::Arc;

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
    let problem =
        |message: String, remedy: String| vec![Problem { file: file.to_owned(), key: key.to_owned(), message, remedy }];
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
///
/// # Errors
/// When the file cannot be read.
pub fn read(
    config: &Config,
    schema: &Schema,
    path: &Path,
    most: usize,
    absent_as_null: bool,
) -> Result<Read, SamplingError> {
    let key = DigestKey::of_this_run().map_err(SamplingError::Randomness)?;
    records(config, schema, (path, most), absent_as_null, &key, &mut [])
}

/// Reads all records of `path` as [`read`] does, joined to the profiles that the configuration, the file `file` in messages, names in files:
/// what these bring is theirs alone, whatever the records have of it.
///
/// # Errors
/// When the file or the profiles cannot be read, and when profiles are in a topic.
pub fn read_joined(
    config: &Config,
    schema: &Schema,
    file: &str,
    path: &Path,
    absent_as_null: bool,
) -> Result<Read, SamplingError> {
    let key = DigestKey::of_this_run().map_err(SamplingError::Randomness)?;
    let subjects = schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), &key));
    let mut profiles = profiles::read_whole(config, schema, file, subjects.as_ref())?;
    records(config, schema, (path, usize::MAX), absent_as_null, &key, &mut profiles)
}

fn records(
    config: &Config,
    schema: &Schema,
    (path, most): (&Path, usize),
    absent_as_null: bool,
    key: &DigestKey,
    profiles: &mut [Profiles],
) -> Result<Read, SamplingError> {
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), key, max_dictionary_values(config, schema));
    let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect::<Result<_, _>>()?;
    let mut subjects = schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), key));
    let joined: Vec<usize> = profiles.iter().flat_map(|join| join.attributes.iter().copied()).collect();
    let (limits, unknown) = codec_limits(config);
    let format = config.source.format_of_file(path);
    let (file, columns) = (file_format(format, config.source.separator), fields(schema, format == Format::Csv));
    let mut source = FileSource::open(path, file, &columns, limits, unknown)?;
    let (mut batch, mut rejected) = (Batch::new(schema.attributes.len()), 0);
    let absent: Vec<usize> = source.absent_attributes().into_iter().filter(|a| !joined.contains(a)).collect();
    while absent.is_empty() && batch.rows() < most {
        let (mut input, mut refused) = (InputBatch::new(schema.attributes.len(), 0), Vec::new());
        let outcome = source.read(&mut input.raw, AT_A_TIME.min(most - batch.rows()), u64::MAX, &mut refused)?;
        joined.iter().for_each(|attribute| input.raw.clear(*attribute));
        let (mut rows, misfits) = encode(&input, schema, &mut books, subjects.as_mut(), absent_as_null);
        profiles.iter_mut().for_each(|join| join.join(&mut rows, &mut books));
        rejected += (refused.len() + misfits.len()) as u64;
        batch.append(&rows);
        if outcome.end {
            break;
        }
    }
    Ok(Read { books, batch, rejected, absent })
}

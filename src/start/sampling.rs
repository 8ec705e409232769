//! Records read beside a run: ahead of it, to learn from (they are never released and support nobody), or after it, to measure.

use super::encode::encode;
use super::reading::{codec_limits, fields, file_format};
use crate::config::{Config, Format};
use crate::io::file::{FileSource, SourceError, SourcePosition};
use crate::io::input::InputBatch;
use crate::records::codebook::{Codebook, CodebookError};
use crate::records::digest::DigestKey;
use crate::records::schema::Schema;
use crate::records::subject::Subjects;
use crate::records::table::Batch;
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
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &key, config.state.max_dictionary_values);
    let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect::<Result<_, _>>()?;
    let mut subjects = schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), &key));
    let (limits, unknown) = codec_limits(config);
    let format = config.source.format();
    let (file, columns) = (file_format(format, config.source.separator), fields(schema, format == Format::Csv));
    let mut source = FileSource::open(path, file, &columns, limits, unknown, SourcePosition::default())?;
    let (mut batch, mut rejected) = (Batch::new(schema.attributes.len()), 0);
    let absent = source.absent_attributes();
    while absent.is_empty() && batch.rows() < most {
        let (mut input, mut refused) = (InputBatch::new(schema.attributes.len(), 0), Vec::new());
        let outcome = source.read(&mut input.raw, AT_A_TIME.min(most - batch.rows()), u64::MAX, &mut refused)?;
        let (rows, misfits) = encode(&input, schema, &mut books, subjects.as_mut(), absent_as_null);
        rejected += (refused.len() + misfits.len()) as u64;
        batch.append(&rows);
        if outcome.end {
            break;
        }
    }
    Ok(Read { books, batch, rejected, absent })
}

//! A file of records held against a schema: which attributes it has, what does not fit, what the schema drops. Counts and
//! names only.

use super::beside::{Beside, keys_beside};
use super::encode::encode;
use super::reading::{codec_limits, fields, file_format};
use super::sampling::SamplingError;
use crate::config::{Config, Format};
use crate::io::file::FileSource;
use crate::io::input::InputBatch;
use crate::records::codebook::{ABSENT, Codebook, NULL};
use crate::records::digest::DigestKey;
use crate::records::schema::Schema;
use crate::records::subject::Subjects;
use crate::start::memory::max_dictionary_values;
use std::path::Path;
use std::sync::Arc;

/// Records decoded at a time.
const AT_A_TIME: usize = 10_000;

/// What a file has of a schema. Attributes are positions in the schema.
#[derive(Clone, Debug, Default)]
pub struct Probe {
    /// Records of the file, those that cannot be read included.
    pub records: u64,
    /// Records that are none.
    pub unreadable: u64,
    /// Attributes that may leave, and have no value in any record; those that joins bring left out.
    pub never_met: Vec<usize>,
    /// Records by the attribute whose type their cell does not have; the first one of each record.
    pub wrong_type: Vec<(usize, u64)>,
    /// Cells with a value that the hierarchy does not cover, by attribute.
    pub uncovered: Vec<(usize, u64)>,
    /// What the file has and the schema does not, by name.
    pub dropped: Vec<String>,
    /// Keys of JSON objects that too few people have to be named: they may be values.
    pub unnamed: usize,
    /// Whether they have no names since nobody knows of how many people the records are.
    pub uncounted: bool,
}

/// Holds the file at `path`, in the format of the source, against `schema`.
///
/// # Errors
/// When it cannot be read.
pub fn probe(config: &Config, schema: &Schema, path: &Path) -> Result<Probe, SamplingError> {
    let key = DigestKey::of_this_run().map_err(SamplingError::Randomness)?;
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &key, max_dictionary_values(config, schema));
    let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect::<Result<_, _>>()?;
    let mut subjects = schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), &key));
    let (limits, unknown) = codec_limits(config);
    let format = config.source.format();
    let (file, columns) = (file_format(format, config.source.separator), fields(schema, format == Format::Csv));
    let mut source = FileSource::open(path, file, &columns, limits, unknown)?;
    let width = schema.attributes.len();
    let (mut met, mut wrong, mut unreadable, mut records) = (vec![false; width], vec![0_u64; width], 0, 0);
    loop {
        let (mut input, mut refused) = (InputBatch::new(width, 0), Vec::new());
        let outcome = source.read(&mut input.raw, AT_A_TIME, u64::MAX, &mut refused)?;
        schema.joined().into_iter().for_each(|attribute| input.raw.clear(attribute));
        let (rows, misfits) = encode(&input, schema, &mut books, subjects.as_mut(), false);
        unreadable += refused.len() as u64;
        records += outcome.records;
        for misfit in misfits.iter().filter_map(|misfit| misfit.attribute) {
            wrong[misfit] += 1;
        }
        for (met, codes) in met.iter_mut().zip(&rows.columns) {
            *met |= codes.iter().any(|code| !matches!(*code, ABSENT | NULL));
        }
        if outcome.end {
            break;
        }
    }
    let counted = |counts: Vec<u64>| counts.into_iter().enumerate().filter(|(_, count)| *count > 0).collect();
    let Beside { named: dropped, unnamed, uncounted } = match format {
        // No extension names a format of messages.
        Format::Json | Format::JsonSchema | Format::Avro | Format::Protobuf => keys_beside(config, schema, path),
        Format::Csv | Format::Parquet => Beside { named: source.unknown_columns().to_vec(), ..Beside::default() },
    };
    Ok(Probe {
        records,
        unreadable,
        never_met: schema.releasable().filter(|a| !met[*a] && schema.attributes[*a].from.join().is_none()).collect(),
        wrong_type: counted(wrong),
        uncovered: counted(books.iter().map(Codebook::uncovered).collect()),
        dropped,
        unnamed,
        uncounted,
    })
}

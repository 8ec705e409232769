//! A file of records held against a schema: which attributes it has, what does not fit, what the schema drops. Counts and
//! names only.

use super::encode::encode;
use super::reading::{codec_limits, fields, file_format};
use super::sampling::SamplingError;
use crate::codec::Limits;
use crate::config::{Config, Format};
use crate::io::file::{FileSource, SourcePosition};
use crate::io::input::InputBatch;
use crate::io::table::{Request, TableColumn, read};
use crate::records::canonical::Canonical;
use crate::records::codebook::{ABSENT, Codebook, NULL};
use crate::records::dictionary::FIRST_VALUE;
use crate::records::digest::DigestKey;
use crate::records::raw::Token;
use crate::records::schema::{Schema, segments};
use crate::records::subject::Subjects;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Records decoded at a time.
const AT_A_TIME: usize = 10_000;
/// Records whose keys are looked at.
const KEYS_OF: u64 = 100_000;

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
}

/// Holds the file at `path`, in the format of the source, against `schema`.
///
/// # Errors
/// When it cannot be read.
pub fn probe(config: &Config, schema: &Schema, path: &Path) -> Result<Probe, SamplingError> {
    let key = DigestKey::of_this_run().map_err(SamplingError::Randomness)?;
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &key, config.state.max_dictionary_values);
    let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect::<Result<_, _>>()?;
    let mut subjects = schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), &key));
    let (limits, unknown) = codec_limits(config);
    let format = config.source.format();
    let (file, columns) = (file_format(format, config.source.separator), fields(schema, format == Format::Csv));
    let mut source = FileSource::open(path, file, &columns, limits, unknown, SourcePosition::default())?;
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
    let (dropped, unnamed) = match format {
        // No extension names a format of messages.
        Format::Json | Format::Avro | Format::Protobuf => keys_beside(config, schema, path),
        Format::Csv | Format::Parquet => (source.unknown_columns().to_vec(), 0),
    };
    Ok(Probe {
        records,
        unreadable,
        never_met: schema.releasable().filter(|a| !met[*a] && schema.attributes[*a].from.join().is_none()).collect(),
        wrong_type: counted(wrong),
        uncovered: counted(books.iter().map(Codebook::uncovered).collect()),
        dropped,
        unnamed,
    })
}

/// The keys of JSON records that the schema does not have: by name where as many people as a crowd have them, and how many
/// others. Nothing where the records cannot be read as a table.
fn keys_beside(config: &Config, schema: &Schema, path: &Path) -> (Vec<String>, usize) {
    let request = Request {
        path,
        format: file_format(Format::Json, ','),
        schema: None,
        columns: None,
        limits: Limits::default(),
        max_columns: 4096,
        max_bytes: 1 << 30,
        max_records: Some(KEYS_OF),
        skip_unreadable: true,
    };
    let Ok(table) = read(&request, &mut |_| {}) else { return (Vec::new(), 0) };
    let mut known: BTreeSet<Vec<String>> = schema.attributes.iter().map(|attribute| attribute.segments()).collect();
    // The array whose elements are records is one column of the table.
    known.extend(schema.explode.as_deref().map(segments));
    let subject = schema.subject.map(|a| schema.attributes[a].segments());
    let subject = subject.and_then(|way| table.columns.iter().find(|column| column.way == way));
    // Spellings of one subject are one person, as the daemon counts them.
    let named = |a: usize, text: &str| {
        let mut canonical = String::new();
        let read = schema.attributes[a].typing.canonical(Token::Untyped(text), &mut canonical);
        matches!(read, Ok(Canonical::Value)).then_some(canonical)
    };
    let who: Option<Vec<Option<String>>> =
        subject.zip(schema.subject).map(|(column, a)| column.dictionary.texts().map(|text| named(a, text)).collect());
    let people = |column: &TableColumn| {
        let rows = column.codes.iter().enumerate().filter(|(_, code)| **code != crate::records::dictionary::ABSENT);
        match (schema.subject, subject.zip(who.as_ref())) {
            (None, _) => rows.count(),
            // Nobody knows of how many people these records are.
            (Some(_), None) => 0,
            (Some(_), Some((subject, who))) => {
                let codes = rows.map(|(row, _)| subject.codes[row]).filter(|code| *code >= FIRST_VALUE);
                let names = codes.filter_map(|code| who[(code - FIRST_VALUE) as usize].as_deref());
                names.collect::<BTreeSet<&str>>().len()
            }
        }
    };
    let beside = table.columns.iter().filter(|column| !known.contains(&column.way));
    let (named, unnamed): (Vec<_>, Vec<_>) = beside.partition(|column| people(column) >= config.privacy.crowd());
    (named.into_iter().map(|column| column.name.clone()).collect(), unnamed.len())
}

//! Compares a file of records with a schema. Counts and names only.

use super::memory_budget::max_dictionary_values;
use super::record_formats::{codec_limits, fields, file_format};
use super::sampling::SamplingError;
use crate::config::{Config, RecordFormat};
use crate::io::file::{FileSource, SourceError};
use crate::io::table::{TableColumn, TableRequest, read};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use throng_core::stream::batch_encoding::encode;
use throng_core::stream::input_batch::InputBatch;
use throng_core::values::canonical::CanonicalKind;
use throng_core::values::codebook::{ABSENT, Codebook, NULL};
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::digest::DigestKey;
use throng_core::values::raw_batch::{RawBatch, RawToken};
use throng_core::values::schema::{Schema, segments};
use throng_core::values::subject_digest::SubjectDigester;
use throng_formats::{DecodeLimits, FieldPath, UnknownCellPolicy};

const PROBE_ROWS_PER_READ: usize = 10_000;

/// Comparison of a file with a schema, with attributes as positions.
#[derive(Clone, Debug, Default)]
pub struct SchemaComparison {
    /// Records, including those that are unreadable or not selected.
    pub records: u64,
    /// Unreadable records.
    pub unreadable: u64,
    /// Releasable attributes without a value, except joined ones.
    pub empty_attributes: Vec<usize>,
    /// Attributes with records of the wrong type; each record counts for its first one.
    pub wrong_type: Vec<(usize, u64)>,
    /// Cells outside their hierarchy, per attribute.
    pub uncovered: Vec<(usize, u64)>,
    /// Keys or columns outside the schema.
    pub dropped: Vec<String>,
    /// JSON keys with too few subjects to be named: they may be values.
    pub unnamed: usize,
    /// True if no record has a readable subject, so that no key is named.
    pub uncounted: bool,
}

/// Compares the file at `path`, in the format of the source, with `schema`.
pub fn compare_file(config: &Config, schema: &Schema, path: &Path) -> Result<SchemaComparison, SamplingError> {
    let key = DigestKey::random_key().map_err(SamplingError::Randomness)?;
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &key, max_dictionary_values(config, schema));
    let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect::<Result<_, _>>()?;
    let mut subjects = schema.subject.map(|a| SubjectDigester::new(Arc::clone(&schema.attributes[a]), &key));
    let (limits, unknown) = codec_limits(config);
    let format = config.source.format();
    let (file, columns) = (file_format(format, config.source.separator), fields(schema, format == RecordFormat::Csv));
    let mut source = FileSource::open(path, file, &columns, limits, unknown)?.selecting(&schema.attributes)?;
    let width = schema.attributes.len();
    let (mut met, mut wrong, mut unreadable, mut records) = (vec![false; width], vec![0_u64; width], 0, 0);
    loop {
        let (mut input, mut refused) = (InputBatch::new(width, 0), Vec::new());
        let outcome = source.read(&mut input.raw, PROBE_ROWS_PER_READ, u64::MAX, &mut refused)?;
        schema.joined_attributes().into_iter().for_each(|attribute| input.raw.clear(attribute));
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
    let UnknownKeys { named: dropped, unnamed, uncounted } = match format {
        // Files in message formats are read as JSON.
        RecordFormat::Json | RecordFormat::JsonSchema | RecordFormat::Avro | RecordFormat::Protobuf => {
            find_unknown_keys(config, schema, path)
        }
        RecordFormat::Csv | RecordFormat::Parquet | RecordFormat::AppleHealth => {
            UnknownKeys { named: source.unknown_columns().to_vec(), ..UnknownKeys::default() }
        }
    };
    Ok(SchemaComparison {
        records,
        unreadable,
        empty_attributes: schema
            .releasable()
            .filter(|a| !met[*a] && schema.attributes[*a].from.join().is_none())
            .collect(),
        wrong_type: counted(wrong),
        uncovered: counted(books.iter().map(Codebook::uncovered).collect()),
        dropped,
        unnamed,
        uncounted,
    })
}

const KEY_SCAN_RECORDS: u64 = 100_000;

const MAX_KEYS: usize = 4096;

#[derive(Clone, Debug, Default)]
struct UnknownKeys {
    named: Vec<String>,
    unnamed: usize,
    uncounted: bool,
}

/// Returns nothing if the records cannot be read.
fn find_unknown_keys(config: &Config, schema: &Schema, path: &Path) -> UnknownKeys {
    match &schema.explode {
        Some(array) => unknown_keys_of_elements(config, schema, &segments(array), path).unwrap_or_default(),
        None => unknown_keys_of_records(config, schema, path),
    }
}

/// Different spellings count once.
fn canonical_subject(schema: &Schema, subject: usize, token: RawToken<'_>) -> Option<String> {
    let mut canonical = String::new();
    let read = schema.attributes[subject].typing.canonical(token, &mut canonical);
    matches!(read, Ok(CanonicalKind::Value)).then_some(canonical)
}

fn unknown_keys_of_records(config: &Config, schema: &Schema, path: &Path) -> UnknownKeys {
    let request = TableRequest {
        path,
        more: &[],
        format: file_format(RecordFormat::Json, ','),
        schema: None,
        selects: false,
        columns: None,
        limits: DecodeLimits::for_whole_files(),
        max_columns: MAX_KEYS,
        max_bytes: 1 << 30,
        max_records: Some(KEY_SCAN_RECORDS),
        skip_unreadable: true,
    };
    let Ok(table) = read(&request, &mut |_| {}) else { return UnknownKeys::default() };
    let known: BTreeSet<Vec<String>> = schema.attributes.iter().map(|attribute| attribute.segments()).collect();
    let subject = schema.subject.map(|a| schema.attributes[a].segments());
    let subject = subject.and_then(|way| table.columns.iter().find(|column| column.key_path == way));
    let who: Option<Vec<Option<String>>> = subject.zip(schema.subject).map(|(column, a)| {
        column.dictionary.texts().map(|text| canonical_subject(schema, a, RawToken::Untyped(text))).collect()
    });
    let people = |column: &TableColumn| {
        let rows =
            column.codes.iter().enumerate().filter(|(_, code)| **code != throng_core::values::dictionary::ABSENT);
        match (schema.subject, subject.zip(who.as_ref())) {
            (None, _) => rows.count(),
            // The number of subjects is unknown.
            (Some(_), None) => 0,
            (Some(_), Some((subject, who))) => {
                let codes = rows.map(|(row, _)| subject.codes[row]).filter(|code| *code >= FIRST_VALUE);
                let names = codes.filter_map(|code| who[(code - FIRST_VALUE) as usize].as_deref());
                names.collect::<BTreeSet<&str>>().len()
            }
        }
    };
    let beside = table.columns.iter().filter(|column| !known.contains(&column.key_path));
    let (named, unnamed): (Vec<_>, Vec<_>) =
        beside.partition(|column| people(column) >= config.privacy.required_subjects());
    UnknownKeys {
        named: named.into_iter().map(|column| column.name.clone()).collect(),
        unnamed: unnamed.len(),
        uncounted: schema.subject.is_some() && subject.is_none(),
    }
}

/// Key paths with up to `enough` subjects each.
struct KeySubjects<'s> {
    known: BTreeSet<Vec<String>>,
    people: BTreeMap<Vec<String>, BTreeSet<String>>,
    enough: usize,
    schema: &'s Schema,
}

/// Keys in an element count for its subject, keys around `array` for all subjects in it. None if unreadable or too
/// many.
fn unknown_keys_of_elements(config: &Config, schema: &Schema, array: &[String], path: &Path) -> Option<UnknownKeys> {
    let subject = schema.subject?;
    let element = FieldPath { pointer: array.to_vec(), elements: Some(array.len()) };
    let columns = [FieldPath::from_segments(Vec::new()), element, fields(schema, false).swap_remove(subject)];
    // The text of the message is stored once for all elements.
    let limits = DecodeLimits { max_repeated_bytes: u64::MAX, ..codec_limits(config).0 };
    let format = file_format(RecordFormat::Json, ',');
    let source = FileSource::open(path, format, &columns, limits, UnknownCellPolicy::Drop);
    let mut source = source.ok()?;
    let mut known: BTreeSet<Vec<String>> = schema.attributes.iter().map(|attribute| attribute.segments()).collect();
    known.insert(array.to_vec());
    let (people, enough) = (BTreeMap::new(), config.privacy.required_subjects());
    let mut met = KeySubjects { known, people, enough, schema };
    let (mut records, mut counted) = (0, false);
    while records < KEY_SCAN_RECORDS {
        let mut batch = RawBatch::new(columns.len());
        let outcome = source.read(&mut batch, PROBE_ROWS_PER_READ, u64::MAX, &mut Vec::new());
        let outcome = outcome.map_err(|_: SourceError| ()).ok()?;
        counted |= met.add_batch(&batch, array, subject)?;
        records += outcome.records;
        if outcome.end {
            break;
        }
    }
    let (named, unnamed): (Vec<_>, Vec<_>) = met.people.into_iter().partition(|(_, people)| people.len() >= enough);
    let named = named.into_iter().map(|(way, _)| way.join(".")).collect();
    Some(UnknownKeys { named, unnamed: unnamed.len(), uncounted: !counted })
}

impl KeySubjects<'_> {
    /// Returns true if a record has a subject; none for too many keys.
    fn add_batch(&mut self, batch: &RawBatch, array: &[String], subject: usize) -> Option<bool> {
        let within: Vec<String> = array.iter().cloned().chain(["*".to_owned()]).collect();
        let (mut counted, mut around) = (false, Vec::new());
        for row in 0..batch.rows() {
            if !batch.repeats_previous(row, 0) {
                around = self.uncovered_paths(batch.token(row, 0), Vec::new());
            }
            let who = canonical_subject(self.schema, subject, batch.token(row, 2));
            counted |= who.is_some();
            let inside = self.uncovered_paths(batch.token(row, 1), within.clone());
            for way in around.iter().chain(&inside) {
                if self.people.len() >= MAX_KEYS && !self.people.contains_key(way) {
                    return None;
                }
                let people = self.people.entry(way.clone()).or_default();
                if people.len() < self.enough {
                    people.extend(who.clone());
                }
            }
        }
        Some(counted)
    }

    /// Paths of leaves that no attribute covers.
    fn uncovered_paths(&self, token: RawToken<'_>, mut way: Vec<String>) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        if let RawToken::Structure(text) = token
            && let Ok(value) = serde_json::from_str(text)
        {
            self.collect(&value, &mut way, &mut found);
        }
        found
    }

    fn collect(&self, value: &Value, way: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
        if self.known.contains(way) {
            return;
        }
        match value {
            Value::Object(members) if !members.is_empty() => {
                for (key, value) in members {
                    way.push(key.clone());
                    self.collect(value, way, found);
                    way.pop();
                }
            }
            Value::Array(_) if self.known.range(way.clone()..).next().is_some_and(|known| known.starts_with(way)) => {}
            _ => found.push(way.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = "name = \"v\"\nexplode = \"/visits\"\n[[attribute]]\nname = \"person\"\npointer = \"/visits/*/who/id\"\n\
        type = \"string\"\nrole = \"subject\"\n[[attribute]]\nname = \"first\"\npointer = \"/visits/*/beats/0\"\ntype = \"integer\"\n\
        [[attribute]]\nname = \"ward\"\ntype = \"string\"\n";

    fn beside(schema: &str, lines: &[String]) -> UnknownKeys {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("in.ndjson");
        std::fs::write(&path, lines.join("\n")).expect("a file");
        let schema = Schema::parse(schema, "schema.toml", Path::new("")).expect("a sound schema");
        find_unknown_keys(&Config::default(), &schema, &path)
    }

    #[test]
    fn unknown_keys_in_and_around_elements_are_counted_by_subject() {
        let crowd = Config::default().privacy.required_subjects();
        let message = |person: usize| {
            let rare = if person == 0 { "\"rare\":1," } else { "" };
            format!(
                "{{\"ward\":\"a\",\"outer\":{{\"x\":1}},\"visits\":[{{{rare}\"who\":{{\"id\":\"p{person}\",\"age\":3}},\"beats\":[1,2],\"list\":[1]}},7]}}"
            )
        };
        let found = beside(SCHEMA, &(0..crowd).map(message).collect::<Vec<_>>());
        assert_eq!(found.named, ["outer.x", "visits.*.list", "visits.*.who.age"]);
        assert_eq!((found.unnamed, found.uncounted), (1, false));
        // One subject fewer, and each twice.
        let found = beside(SCHEMA, &(1..crowd).chain(1..crowd).map(message).collect::<Vec<_>>());
        assert_eq!((found.named.len(), found.unnamed, found.uncounted), (0, 3, false));
        let nobody = SCHEMA.replace("/who/id", "/who/nobody");
        let found = beside(&nobody, &(0..crowd).map(message).collect::<Vec<_>>());
        assert!(found.named.is_empty() && found.unnamed > 0 && found.uncounted, "{found:?}");
    }

    #[test]
    fn unknown_keys_are_uncounted_without_subject() {
        let schema = "name = \"v\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n[[attribute]]\nname = \"age\"\ntype = \"integer\"\n";
        let lines: Vec<String> = (0..20).map(|number| format!("{{\"age\":1,\"id\":\"p{number}\"}}")).collect();
        let found = beside(schema, &lines);
        assert!(found.named.is_empty() && found.unnamed == 1 && found.uncounted, "{found:?}");
        let found = beside(&schema.replace("\"person\"", "\"id\""), &lines);
        assert!(found.unnamed == 0 && !found.uncounted, "{found:?}");
    }
}

//! A file of records held against a schema: which attributes it has, what does not fit, what the schema drops. Counts and
//! names only.

use super::encode::encode;
use super::memory::max_dictionary_values;
use super::reading::{codec_limits, fields, file_format};
use super::sampling::SamplingError;
use crate::config::{Config, Format};
use crate::io::file::{FileSource, SourceError};
use crate::io::input::InputBatch;
use crate::io::table::{Request, TableColumn, read};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use throng_core::values::canonical::Canonical;
use throng_core::values::codebook::{ABSENT, Codebook, NULL};
use throng_core::values::dictionary::FIRST_VALUE;
use throng_core::values::digest::DigestKey;
use throng_core::values::raw::{RawBatch, Token};
use throng_core::values::schema::{Schema, segments};
use throng_core::values::subject::Subjects;
use throng_formats::{Field, Limits, Unknown};

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

/// Records whose keys are looked at.
const KEYS_OF: u64 = 100_000;

/// Keys that are told apart.
const MOST_KEYS: usize = 4096;

/// Keys beside the schema.
#[derive(Clone, Debug, Default)]
struct Beside {
    /// The names of those that as many people as a crowd have.
    named: Vec<String>,
    /// How many others there are: they may be values.
    unnamed: usize,
    /// Whether nobody knows of how many people the records are: no key has a name then.
    uncounted: bool,
}

/// The keys of the records at `path` that the schema does not have. Nothing where the records cannot be read.
fn keys_beside(config: &Config, schema: &Schema, path: &Path) -> Beside {
    match &schema.explode {
        Some(array) => of_elements(config, schema, &segments(array), path).unwrap_or_default(),
        None => of_records(config, schema, path),
    }
}

/// What the record schema's subject makes of a spelling: those of one person are one.
fn person(schema: &Schema, subject: usize, token: Token<'_>) -> Option<String> {
    let mut canonical = String::new();
    let read = schema.attributes[subject].typing.canonical(token, &mut canonical);
    matches!(read, Ok(Canonical::Value)).then_some(canonical)
}

fn of_records(config: &Config, schema: &Schema, path: &Path) -> Beside {
    let request = Request {
        path,
        more: &[],
        format: file_format(Format::Json, ','),
        schema: None,
        columns: None,
        limits: Limits::of_whole_files(),
        max_columns: MOST_KEYS,
        max_bytes: 1 << 30,
        max_records: Some(KEYS_OF),
        skip_unreadable: true,
    };
    let Ok(table) = read(&request, &mut |_| {}) else { return Beside::default() };
    let known: BTreeSet<Vec<String>> = schema.attributes.iter().map(|attribute| attribute.segments()).collect();
    let subject = schema.subject.map(|a| schema.attributes[a].segments());
    let subject = subject.and_then(|way| table.columns.iter().find(|column| column.way == way));
    let who: Option<Vec<Option<String>>> = subject
        .zip(schema.subject)
        .map(|(column, a)| column.dictionary.texts().map(|text| person(schema, a, Token::Untyped(text))).collect());
    let people = |column: &TableColumn| {
        let rows =
            column.codes.iter().enumerate().filter(|(_, code)| **code != throng_core::values::dictionary::ABSENT);
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
    Beside {
        named: named.into_iter().map(|column| column.name.clone()).collect(),
        unnamed: unnamed.len(),
        uncounted: schema.subject.is_some() && subject.is_none(),
    }
}

/// The ways to keys, and people who have each: as many as a crowd at most.
struct Met<'s> {
    known: BTreeSet<Vec<String>>,
    people: BTreeMap<Vec<String>, BTreeSet<String>>,
    enough: usize,
    schema: &'s Schema,
}

/// The same where the records are the elements of `array`: keys of an element are its person's, those around the array are of all
/// people in it. None where the file cannot be read, or has too many keys.
fn of_elements(config: &Config, schema: &Schema, array: &[String], path: &Path) -> Option<Beside> {
    let subject = schema.subject?;
    let element = Field { pointer: array.to_vec(), elements: Some(array.len()) };
    let columns = [Field::at(Vec::new()), element, fields(schema, false).swap_remove(subject)];
    // The text of the message is a cell of each element here, and stored once.
    let limits = Limits { max_repeated_bytes: u64::MAX, ..codec_limits(config).0 };
    let format = file_format(Format::Json, ',');
    let source = FileSource::open(path, format, &columns, limits, Unknown::Drop);
    let mut source = source.ok()?;
    let mut known: BTreeSet<Vec<String>> = schema.attributes.iter().map(|attribute| attribute.segments()).collect();
    known.insert(array.to_vec());
    let (people, enough) = (BTreeMap::new(), config.privacy.crowd());
    let mut met = Met { known, people, enough, schema };
    let (mut records, mut counted) = (0, false);
    while records < KEYS_OF {
        let mut batch = RawBatch::new(columns.len());
        let outcome = source.read(&mut batch, AT_A_TIME, u64::MAX, &mut Vec::new());
        let outcome = outcome.map_err(|_: SourceError| ()).ok()?;
        counted |= met.take(&batch, array, subject)?;
        records += outcome.records;
        if outcome.end {
            break;
        }
    }
    let (named, unnamed): (Vec<_>, Vec<_>) = met.people.into_iter().partition(|(_, people)| people.len() >= enough);
    let named = named.into_iter().map(|(way, _)| way.join(".")).collect();
    Some(Beside { named, unnamed: unnamed.len(), uncounted: !counted })
}

impl Met<'_> {
    /// Takes the keys of a batch of messages, elements and subjects. Whether a record has named a person; none where there are too many keys.
    fn take(&mut self, batch: &RawBatch, array: &[String], subject: usize) -> Option<bool> {
        let within: Vec<String> = array.iter().cloned().chain(["*".to_owned()]).collect();
        let (mut counted, mut around) = (false, Vec::new());
        for row in 0..batch.rows() {
            if !batch.repeats(row, 0) {
                around = self.ways(batch.token(row, 0), Vec::new());
            }
            let who = person(self.schema, subject, batch.token(row, 2));
            counted |= who.is_some();
            let inside = self.ways(batch.token(row, 1), within.clone());
            for way in around.iter().chain(&inside) {
                if self.people.len() >= MOST_KEYS && !self.people.contains_key(way) {
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

    /// The ways to all that is in a structure and that no attribute is, or lies in.
    fn ways(&self, token: Token<'_>, mut way: Vec<String>) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        if let Token::Structure(text) = token
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

    fn beside(schema: &str, lines: &[String]) -> Beside {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("in.ndjson");
        std::fs::write(&path, lines.join("\n")).expect("a file");
        let schema = Schema::parse(schema, "schema.toml", Path::new("")).expect("a sound schema");
        keys_beside(&Config::default(), &schema, &path)
    }

    #[test]
    fn keys_in_elements_and_around_them_are_counted_by_the_people_in_them() {
        let crowd = Config::default().privacy.crowd();
        let message = |person: usize| {
            let rare = if person == 0 { "\"rare\":1," } else { "" };
            format!(
                "{{\"ward\":\"a\",\"outer\":{{\"x\":1}},\"visits\":[{{{rare}\"who\":{{\"id\":\"p{person}\",\"age\":3}},\"beats\":[1,2],\"list\":[1]}},7]}}"
            )
        };
        let found = beside(SCHEMA, &(0..crowd).map(message).collect::<Vec<_>>());
        assert_eq!(found.named, ["outer.x", "visits.*.list", "visits.*.who.age"]);
        assert_eq!((found.unnamed, found.uncounted), (1, false));
        // One person fewer, and a person many times.
        let found = beside(SCHEMA, &(1..crowd).chain(1..crowd).map(message).collect::<Vec<_>>());
        assert_eq!((found.named.len(), found.unnamed, found.uncounted), (0, 3, false));
        let nobody = SCHEMA.replace("/who/id", "/who/nobody");
        let found = beside(&nobody, &(0..crowd).map(message).collect::<Vec<_>>());
        assert!(found.named.is_empty() && found.unnamed > 0 && found.uncounted, "{found:?}");
    }

    #[test]
    fn records_whose_subject_is_nowhere_cannot_be_counted() {
        let schema = "name = \"v\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n[[attribute]]\nname = \"age\"\ntype = \"integer\"\n";
        let lines: Vec<String> = (0..20).map(|number| format!("{{\"age\":1,\"id\":\"p{number}\"}}")).collect();
        let found = beside(schema, &lines);
        assert!(found.named.is_empty() && found.unnamed == 1 && found.uncounted, "{found:?}");
        let found = beside(&schema.replace("\"person\"", "\"id\""), &lines);
        assert!(found.unnamed == 0 && !found.uncounted, "{found:?}");
    }
}

//! The keys of JSON records that a schema does not have.

use super::reading::{codec_limits, fields, file_format};
use crate::codec::{Field, Limits, Unknown};
use crate::config::{Config, Format};
use crate::io::file::{FileSource, SourceError};
use crate::io::table::{Request, TableColumn, read};
use crate::records::canonical::Canonical;
use crate::records::dictionary::FIRST_VALUE;
use crate::records::raw::{RawBatch, Token};
use crate::records::schema::{Schema, segments};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Records whose keys are looked at.
const KEYS_OF: u64 = 100_000;

/// Records read at a time.
const AT_A_TIME: usize = 10_000;

/// Keys that are told apart.
const MOST_KEYS: usize = 4096;

/// Keys beside the schema.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// The names of those that as many people as a crowd have.
    pub named: Vec<String>,
    /// How many others there are: they may be values.
    pub unnamed: usize,
    /// Whether nobody knows of how many people the records are: no key has a name then.
    pub uncounted: bool,
}

/// The keys of the records at `path` that the schema does not have. Nothing where the records cannot be read.
pub(super) fn keys_beside(config: &Config, schema: &Schema, path: &Path) -> Beside {
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

//! The files of people whom an observer could look up (`population` of a k-map), read once before anything is opened.

use crate::anonymity::treatment::population::Population;
use crate::codec::Unknown;
use crate::config::{Config, Format, ModelKind, Problem};
use crate::io::file::{FileSource, SourceError};
use crate::io::input::InputBatch;
use crate::records::based::Resolved;
use crate::records::codebook::{ABSENT, Code, Codebook, CodebookError, FIRST_VALUE, NULL};
use crate::records::digest::DigestKey;
use crate::records::raw::Token;
use crate::records::schema::Schema;
use crate::records::subject::{NO_SUBJECT, Subjects};
use crate::release::listed::Listed;
use crate::start::memory::max_dictionary_values;
use crate::start::reading::file_format;
use crate::start::reading::{codec_limits, fields};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Records decoded at a time.
const AT_A_TIME: usize = 10_000;

/// A file of people, as it was read.
pub struct People {
    /// As the configuration names it.
    pub path: PathBuf,
    /// People that every class needs.
    pub k: usize,
    /// Records of the file, at least 1.
    pub records: usize,
    /// Distinct people among the records.
    pub count: usize,
    /// Cells that their hierarchy misses: they generalize to `*` alone.
    pub uncovered: u64,
    /// The quasi attributes of the schema that the file has, ascending, each with a codebook of its own.
    known: Vec<(usize, Codebook)>,
    /// A code a record, by known attribute.
    codes: Vec<Vec<Code>>,
    people: Vec<Option<u32>>,
}

/// The populations of a stream, as treatment and verification know them.
#[derive(Debug, Default)]
pub struct Populations {
    /// For treatment, in the order of the configuration.
    pub treated: Vec<Population>,
    /// The same people for verification, which counts them by code of its own.
    pub listed: Vec<Arc<Listed>>,
}

/// Reads every population that the configuration names.
///
/// Time and memory: those of the files' known cells, each kept as 4 bytes.
///
/// # Errors
/// Every file that is missing, empty, cannot be read, has no quasi attribute or fewer than k people, with what to do.
pub fn read_populations(config: &Config, schema: &Schema, file: &str) -> Result<Vec<People>, Vec<Problem>> {
    let (mut read, mut problems) = (Vec::new(), Vec::new());
    for (index, model) in config.privacy.model.iter().enumerate() {
        let Some(path) = model.population.as_deref().filter(|_| model.kind == ModelKind::KMap) else { continue };
        let k = usize::try_from(model.k.unwrap_or_default()).unwrap_or(usize::MAX);
        match People::read(config, schema, path, k) {
            Ok(people) => read.push(people),
            Err(Refused { message, remedy }) => problems.push(Problem {
                file: file.to_owned(),
                key: format!("privacy.model[{index}].population"),
                message: format!("{}: {message}", path.display()),
                remedy: remedy.to_owned(),
            }),
        }
    }
    if problems.is_empty() { Ok(read) } else { Err(problems) }
}

/// Why a file of people cannot be used.
struct Refused {
    message: String,
    remedy: &'static str,
}

impl From<SourceError> for Refused {
    fn from(error: SourceError) -> Self {
        Self { message: error.to_string(), remedy: "correct the file, or name another; for CSV see source.separator" }
    }
}

impl From<CodebookError> for Refused {
    fn from(error: CodebookError) -> Self {
        Self { message: error.to_string(), remedy: "give the attribute fewer levels in the schema" }
    }
}

fn refused<T>(message: String, remedy: &'static str) -> Result<T, Refused> {
    Err(Refused { message, remedy })
}

/// How the file is written down: by its extension, where that says it.
fn format_of(path: &Path, config: &Config) -> Format {
    let extension = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("json" | "jsonl" | "ndjson") => Format::Json,
        Some("csv" | "tsv" | "parquet") => Format::of_path(path),
        _ => config.source.format_of_file(path),
    }
}

/// The columns of a file as they are read, by attribute of the schema.
struct KnownColumns {
    /// A codebook and a code a record for every quasi attribute that the file may have.
    quasi: BTreeMap<usize, (Codebook, Vec<Code>)>,
    subjects: Option<Subjects>,
    /// Whom each record names.
    named: Vec<u64>,
    /// Attributes that some record has.
    seen: BTreeSet<usize>,
}

impl KnownColumns {
    fn new(config: &Config, schema: &Schema, absent: &[usize]) -> Result<Self, Refused> {
        // No digest made here leaves this file.
        let key = DigestKey([0; 32]);
        let there = |attribute: &usize| !absent.contains(attribute);
        let mut quasi = BTreeMap::new();
        for attribute in (0..schema.attributes.len()).filter(there) {
            let described = &schema.attributes[attribute];
            if described.role.is_quasi() {
                let book = Codebook::new(Arc::clone(described), &key, max_dictionary_values(config, schema))?;
                quasi.insert(attribute, (book, Vec::new()));
            }
        }
        let subject = schema.subject.filter(there);
        let subjects = subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), &key));
        Ok(Self { quasi, subjects, named: Vec::new(), seen: BTreeSet::new() })
    }

    fn add(&mut self, input: &InputBatch, schema: &Schema) -> Result<(), Refused> {
        let remedy = "correct the record, or take it out";
        let unread = |row: usize, what: String| {
            let record = input.raw.coordinates()[row].offset + 1;
            refused(format!("record {record}: {what}"), remedy)
        };
        let resolved = Resolved::of(&input.raw, &schema.attributes);
        for (&attribute, (book, codes)) in &mut self.quasi {
            let column = resolved.as_ref().and_then(|resolved| resolved.column(attribute));
            let (cells, column) = column.unwrap_or((&input.raw, attribute));
            for row in 0..input.raw.rows() {
                let token = cells.token(row, column);
                if token != Token::Absent {
                    self.seen.insert(attribute);
                }
                match book.encode(token) {
                    Ok(code) => codes.push(code),
                    Err(error) => return unread(row, error.to_string()),
                }
            }
        }
        let (Some(subjects), Some(attribute)) = (&mut self.subjects, schema.subject) else { return Ok(()) };
        for row in 0..input.raw.rows() {
            let token = input.raw.token(row, attribute);
            if token != Token::Absent {
                self.seen.insert(attribute);
            }
            match subjects.digest(token) {
                Ok(subject) => self.named.push(subject),
                Err(error) => return unread(row, error.to_string()),
            }
        }
        Ok(())
    }
}

impl People {
    fn read(config: &Config, schema: &Schema, path: &Path, k: usize) -> Result<Self, Refused> {
        let format = format_of(path, config);
        let (limits, _) = codec_limits(config);
        let mut source = FileSource::open(
            path,
            file_format(format, config.source.separator),
            &fields(schema, format == Format::Csv),
            limits,
            // A list of people may have columns that the stream knows nothing of.
            Unknown::default(),
        )?;
        let mut columns = KnownColumns::new(config, schema, &source.absent_attributes())?;
        let mut records = 0;
        loop {
            let mut input = InputBatch::new(schema.attributes.len(), 0);
            let mut rejected = Vec::new();
            let outcome = source.read(&mut input.raw, AT_A_TIME, u64::MAX, &mut rejected)?;
            if let Some((at, rejection)) = rejected.first() {
                let message = format!("record {} cannot be read ({rejection})", at.offset + 1);
                return refused(message, "correct the record, or take it out");
            }
            columns.add(&input, schema)?;
            records += input.raw.rows();
            if outcome.end {
                break;
            }
        }
        Self::of_columns(config, schema, path, k, records, columns)
    }

    fn of_columns(
        config: &Config,
        schema: &Schema,
        path: &Path,
        k: usize,
        records: usize,
        columns: KnownColumns,
    ) -> Result<Self, Refused> {
        if records == 0 || u32::try_from(records).is_err() {
            let message = format!("it has {records} records");
            return refused(message, "name a file of at least one and fewer than 2^32 people");
        }
        let KnownColumns { quasi, named, seen, .. } = columns;
        let (mut known, mut codes) = (Vec::new(), Vec::new());
        for (attribute, (book, column)) in quasi.into_iter().filter(|(attribute, _)| seen.contains(attribute)) {
            if book.overflowed() > 0 {
                let (name, limit) = (&schema.attributes[attribute].name, max_dictionary_values(config, schema));
                let message = format!("attribute {name:?} has more than {limit} values");
                return refused(message, "round the values in the schema");
            }
            known.push((attribute, book));
            codes.push(column);
        }
        if known.is_empty() {
            let message = "it has none of the schema's quasi attributes";
            return refused(message.to_owned(), "name its columns as the schema does; for CSV see source.separator");
        }
        let people = if schema.subject.is_some_and(|subject| seen.contains(&subject)) {
            numbered(&named)
        } else {
            (0..).take(records).map(Some).collect()
        };
        let count = people.iter().flatten().collect::<BTreeSet<_>>().len();
        if count < k {
            let message = format!("it has {count} people, and every class needs {k} of them");
            return refused(message, "name a file with more people, or lower k of the model");
        }
        let uncovered = known.iter().map(|(_, book)| book.uncovered()).sum();
        Ok(Self { path: path.to_owned(), k, records, count, uncovered, known, codes, people })
    }

    /// The quasi attributes that the file has, by their position in the schema.
    pub fn attributes(&self) -> impl Iterator<Item = usize> {
        self.known.iter().map(|(attribute, _)| *attribute)
    }

    /// What the file says, in short: the same for the same records, however they are spelled.
    #[must_use]
    pub fn fingerprint(&self, schema: &Schema) -> [u8; 32] {
        let mut hash = Sha256::new();
        let mut tell = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        for ((attribute, book), codes) in self.known.iter().zip(&self.codes) {
            tell(&schema.attributes[*attribute].name);
            codes.iter().for_each(|&code| tell(book.canonical(code)));
        }
        for person in &self.people {
            hash.update(person.map_or([0xff; 4], u32::to_le_bytes));
        }
        hash.finalize().into()
    }

    /// The people as treatment and verification know them: cells digested under `key` as the stream's are. With
    /// `absent_as_null` an absent cell is a missing one.
    fn index(
        &self,
        schema: &Schema,
        key: &DigestKey,
        absent_as_null: bool,
    ) -> Result<(Population, Listed), CodebookError> {
        let mut keyed: Vec<(usize, Codebook, Vec<Code>)> = Vec::with_capacity(self.known.len());
        for ((attribute, book), codes) in self.known.iter().zip(&self.codes) {
            let mut of_stream = Codebook::new(Arc::clone(book.attribute()), key, book.values().max(1))?;
            let map: Vec<Code> = (0..FIRST_VALUE)
                .map(|code| if code == ABSENT && absent_as_null { NULL } else { code })
                .chain((FIRST_VALUE..).take(book.values()).map(|code| of_stream.encode_canonical(book.canonical(code))))
                .collect();
            let codes = codes.iter().map(|&code| map[code as usize]).collect();
            keyed.push((*attribute, of_stream, codes));
        }
        let known: Vec<(usize, &Codebook, &[Code])> =
            keyed.iter().map(|(attribute, book, codes)| (*attribute, book, codes.as_slice())).collect();
        let population = Population::new(self.k, schema.attributes.len(), &known, &self.people);
        Ok((population, Listed::new(self.k, &known, self.people.clone())))
    }
}

impl Populations {
    /// Indexes `read` for a stream whose classes are digested under `key`.
    ///
    /// # Errors
    /// When a codebook cannot be made.
    pub fn new(read: &[People], schema: &Schema, key: &DigestKey, absent_as_null: bool) -> Result<Self, CodebookError> {
        let mut all = Self::default();
        for people in read {
            let (population, listed) = people.index(schema, key, absent_as_null)?;
            all.treated.push(population);
            all.listed.push(Arc::new(listed));
        }
        Ok(all)
    }
}

/// Subjects as numbers from 0, in the order of their first record; nobody is none.
fn numbered(subjects: &[u64]) -> Vec<Option<u32>> {
    let mut numbers: BTreeMap<u64, u32> = BTreeMap::new();
    let number = |&subject: &u64| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        (subject != NO_SUBJECT).then(|| *numbers.entry(subject).or_insert(next))
    };
    subjects.iter().map(number).collect()
}

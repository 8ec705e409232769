//! The source, batch by batch, and what the schema makes of it.

use super::error::{AnonymizeError, named, problem};
use crate::config::{Config, Secret};
use crate::start::checked::explode_problems;
use crate::start::doubts::shape_title;
use crate::start::findings::{Finding, Met};
use crate::start::profiles::NotRead;
use crate::start::sampling::{Take, WholeFileError, read_whole};
use crate::start::schema::load_schema;
use crate::start::{nested, profiles};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::{Role, Schema};
use throng_core::values::subject::Subjects;
use throng_core::values::table::Batch;

/// What the schema makes of the records that were read.
pub struct Input {
    pub schema: Arc<Schema>,
    pub books: Vec<Codebook>,
    /// Lines that a quote left open has swallowed.
    pub swallowed: u64,
    /// Positions in the schema, ascending.
    pub quasi: Vec<usize>,
    pub sensitive: Vec<usize>,
    /// The attributes that leave, in order: the marks of the records to be released do not.
    pub leaving: Vec<usize>,
    /// Digests of this run are made under it.
    pub key: DigestKey,
    /// Decides with the content which people cover: of the configured secret, else of one drawn for this run.
    pub covers: DigestKey,
}

/// What is settled before anything is read.
pub struct Begun {
    pub schema: Arc<Schema>,
    pub books: Vec<Codebook>,
    /// Digests of this run are made under it.
    pub key: DigestKey,
}

/// The records to be released, where an attribute marks them.
pub struct Marks {
    /// Its position in the schema.
    pub attribute: usize,
    /// By code of it: whether the record is.
    pub released: Vec<bool>,
}

/// Bytes of different values.
pub fn values(books: &[Codebook]) -> u64 {
    books.iter().map(|book| book.approximate_bytes() as u64).sum()
}

/// Everything that can be said before the source is opened.
pub fn begin(config: &Config, file: &str) -> Result<Begun, AnonymizeError> {
    let schema = load_schema(config).map_err(AnonymizeError::Configuration)?;
    let mut problems = explode_problems(config, &schema, file);
    problems.extend(nested::problems(config, &schema, file));
    if !problems.is_empty() {
        return Err(AnonymizeError::Configuration(problems));
    }
    let key = DigestKey::of_this_run().map_err(AnonymizeError::Randomness)?;
    let books = schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &key, Codebook::most_values(a)));
    let books: Vec<Codebook> = books.collect::<Result<_, _>>()?;
    Ok(Begun { schema, books, key })
}

/// What the schema makes of `records` that were read, without them: refuses values that cannot leave. Of each attribute it is told how many
/// cells that profiles brought the hierarchy misses.
pub fn described(
    config: &Config,
    file: &str,
    begun: Begun,
    swallowed: u64,
    (records, of_profiles): (u64, &dyn Fn(usize) -> u64),
) -> Result<(Input, Option<Marks>), AnonymizeError> {
    let Begun { schema, books, key } = begun;
    for (position, (attribute, book)) in schema.attributes.iter().zip(&books).enumerate() {
        let key = format!("attribute {:?}", attribute.name);
        let schema = named(&config.schema.file);
        if let Some(shape) = book.shaped() {
            let message = format!("has values with the form of {}: they would leave as \"*\"", shape_title(shape));
            let remedy = "give it the role identifier, or insensitive to let them leave as they are";
            return Err(problem(schema, key, message, remedy));
        }
        let is_meant = attribute.suppresses_uncovered && attribute.role.is_quasi();
        let uncovered = book.uncovered() + of_profiles(position);
        if uncovered > 0 && !is_meant {
            let message = format!("the hierarchy misses the values of {uncovered} cell(s)");
            let remedy = if attribute.role.is_quasi() {
                "add them to the hierarchy, list their spellings as missing, or write uncovered = \"suppress\" there"
            } else {
                "add them to the hierarchy, or list their spellings as missing"
            };
            return Err(problem(schema, key, message, remedy));
        }
        if book.overflowed() > 0 {
            let message = format!("more than {} distinct values", Codebook::most_values(attribute));
            return Err(problem(schema, key, message, "round the values in the schema"));
        }
    }
    let of = |wanted: &dyn Fn(Role) -> bool| -> Vec<usize> {
        let roles = schema.attributes.iter().enumerate();
        roles.filter(|(_, attribute)| wanted(attribute.role)).map(|(a, _)| a).collect()
    };
    let marked = marks(config, file, &schema)?;
    let marks = marked.map(|attribute| {
        let is_mark = |code: usize| {
            let text = books[attribute].canonical(code as u32);
            matches!(text, "true" | "1" | "\"true\"" | "\"1\"" | "\"yes\"")
        };
        Marks { attribute, released: (0..books[attribute].codes()).map(is_mark).collect() }
    });
    let (quasi, sensitive) = (of(&Role::is_quasi), of(&|role| role == Role::Sensitive));
    if records == 0 {
        let message = "the input has no records".to_owned();
        return Err(problem(named(&config.source.path), "(whole file)", message, "give a file with records"));
    }
    let leaving = schema.releasable().filter(|&a| Some(a) != marked).collect();
    // Never of the content alone: whoever has the file but for one cell could try its values.
    let secret = match &config.secret {
        Some(secret) => secret.clone(),
        None => Secret::draw().map_err(|error| {
            let message = format!("no secret can be drawn for this run ({})", error.kind());
            problem(file, "state.secret_file", message, "name a file with a secret")
        })?,
    };
    let covers = DigestKey::of_content(std::iter::once(secret.expose()));
    Ok((Input { schema, books, swallowed, quasi, sensitive, leaving, key, covers }, marks))
}

/// No record is to be released.
pub fn nothing_marked(file: &str) -> AnonymizeError {
    let message = "no record is marked to be released".to_owned();
    problem(file, "anonymize.released", message, "mark records with true, 1 or yes")
}

/// The attribute that marks the records to be released.
fn marks(config: &Config, file: &str, schema: &Schema) -> Result<Option<usize>, AnonymizeError> {
    let Some(name) = &config.anonymize.released else { return Ok(None) };
    let key = "anonymize.released";
    let Some(attribute) = schema.position(name) else {
        let message = format!("the schema has no attribute {name:?}");
        return Err(problem(file, key, message, "correct the name"));
    };
    let role = schema.attributes[attribute].role;
    if role != Role::Insensitive {
        // As a quasi attribute it would divide every class into those released and the others.
        let message = format!("{name:?} has the role {}, and would be treated as a value of people", role.name());
        return Err(problem(file, key, message, "give it the role insensitive in the schema; it does not leave"));
    }
    Ok(Some(attribute))
}

/// Hears of encoded records, and the codebooks by then; where it breaks off, no more is read.
pub type Each<'a> = dyn FnMut(&Batch, &[Codebook]) -> ControlFlow<()> + 'a;

/// Reads and encodes the source, `more` files behind it; `each` hears of the records. Gives the codebooks, and how many lines a quote left open
/// has swallowed.
pub fn encoded(
    config: &Config,
    file: &str,
    (schema, mut books, key): (&Schema, Vec<Codebook>, &DigestKey),
    more: &[PathBuf],
    note: &dyn Fn(&Finding),
    each: &mut Each<'_>,
) -> Result<(Vec<Codebook>, u64), AnonymizeError> {
    let mut subjects = schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), key));
    let as_null = config.sink.cannot_omit();
    let mut profiles = profiles::read_whole(config, schema, file, subjects.as_ref()).map_err(|error| match error {
        NotRead::Problems(problems) => AnonymizeError::Configuration(problems),
        NotRead::Profiles(error) => error.into(),
    })?;
    let path = &config.source.path;
    let mut met = Met::new(schema.attributes.len(), config.privacy.crowd());
    let mut records = 0;
    let take: Take<'_> = &mut |batch, books, long| {
        met.add(batch, &[], long);
        records += batch.rows() as u64;
        each(batch, books)
    };
    let files = (path.as_path(), more, &mut profiles[..]);
    let whole = read_whole(config, files, schema, &mut books, subjects.as_mut(), as_null, take);
    let findings = met.findings(schema);
    findings.iter().for_each(note);
    for join in profiles.iter().filter(|join| join.unjoined > 0) {
        note(&Finding::Unjoined { join: join.join.clone(), records: join.unjoined, all: records });
    }
    whole.map_err(|error| match error {
        WholeFileError::Source(error) => error.into(),
        WholeFileError::NoColumn(attributes) => AnonymizeError::NoColumn { path: path.clone(), attributes },
        WholeFileError::Rejected { records, first, why } => {
            AnonymizeError::Rejected { path: named(&crate::io::table::named(path, more)), records, first, why }
        }
    })?;
    Ok((books, findings.iter().map(Finding::swallowed_lines).sum()))
}

/// Tells of the cells that leave as `*` since a hierarchy misses their values.
pub fn note_uncovered(
    schema: &Schema,
    books: &[Codebook],
    of_profiles: &dyn Fn(usize) -> u64,
    note: &dyn Fn(&Finding),
) {
    for (position, (attribute, book)) in schema.attributes.iter().zip(books).enumerate() {
        let cells = book.uncovered() + of_profiles(position);
        if cells > 0 && attribute.suppresses_uncovered && attribute.role.is_quasi() {
            note(&Finding::Uncovered { attribute: attribute.name.clone(), cells });
        }
    }
}

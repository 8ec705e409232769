//! The whole input as columns of codes.

use super::error::{AnonymizeError, named, problem};
use crate::config::Config;
use crate::config::Secret;
use crate::records::codebook::{Codebook, UNCOVERED};
use crate::records::digest::DigestKey;
use crate::records::schema::{Role, Schema};
use crate::records::subject::{NO_SUBJECT, Subjects};
use crate::records::table::Batch;
use crate::start::doubts::shape_title;
use crate::start::findings::{Finding, Met};
use crate::start::profiles::NotRead;
use crate::start::schema::load_schema;
use crate::start::whole_file::{WholeFileError, read_whole};
use crate::start::{exploded, nested, profiles};
use std::collections::HashMap;
use std::sync::Arc;

/// Records read, and what the schema makes of them.
pub struct Input {
    pub schema: Arc<Schema>,
    pub books: Vec<Codebook>,
    pub batch: Batch,
    /// Lines that a quote left open has swallowed.
    pub swallowed: u64,
    /// Positions in the schema, ascending.
    pub quasi: Vec<usize>,
    pub sensitive: Vec<usize>,
    /// Dense subject numbers; none where every record counts for itself.
    pub subjects: Option<Vec<u32>>,
    pub released: Option<Vec<bool>>,
    /// The attributes that leave, in order: the marks of the records to be released do not.
    pub leaving: Vec<usize>,
    /// Digests of this run are made under it.
    pub key: DigestKey,
    /// Decides with the content who covers: of the configured secret, where there is one.
    pub covers: DigestKey,
}

/// Reads the source; `note` hears what it lacks, also where it cannot be read whole.
pub fn read(config: &Config, file: &str, note: &dyn Fn(&Finding)) -> Result<Input, AnonymizeError> {
    let schema = load_schema(config).map_err(AnonymizeError::Configuration)?;
    let mut problems = exploded::problems(config, &schema, file);
    problems.extend(nested::problems(config, &schema, file));
    if !problems.is_empty() {
        return Err(AnonymizeError::Configuration(problems));
    }
    let key = DigestKey::of_this_run().map_err(AnonymizeError::Randomness)?;
    let books =
        schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &key, config.state.max_dictionary_values));
    let books: Vec<Codebook> = books.collect::<Result<_, _>>()?;
    let (books, batch, swallowed) = encoded(config, file, &schema, books, &key, note)?;
    for ((attribute, book), column) in schema.attributes.iter().zip(&books).zip(&batch.columns) {
        let key = format!("attribute {:?}", attribute.name);
        let schema = named(&config.schema.file);
        if let Some(shape) = book.shaped() {
            let message = format!("has values with the form of {}: they would leave as \"*\"", shape_title(shape));
            let remedy = "give it the role identifier, or insensitive to let them leave as they are";
            return Err(problem(schema, key, message, remedy));
        }
        let is_meant = attribute.suppresses_uncovered && attribute.role.is_quasi();
        // Cells of profiles are counted by record, as the others are.
        let of_profiles =
            attribute.from.join().map_or(&[][..], |_| &column[..]).iter().filter(|code| **code == UNCOVERED);
        let uncovered = book.uncovered() + of_profiles.count() as u64;
        if uncovered > 0 && is_meant {
            note(&Finding::Uncovered { attribute: attribute.name.clone(), cells: uncovered });
        } else if uncovered > 0 {
            let message = format!("the hierarchy misses the values of {uncovered} cell(s)");
            let remedy = if attribute.role.is_quasi() {
                "add them to the hierarchy, list their spellings as missing, or write uncovered = \"suppress\" there"
            } else {
                "add them to the hierarchy, or list their spellings as missing"
            };
            return Err(problem(schema, key, message, remedy));
        }
        if book.overflowed() > 0 {
            let limit = config.state.max_dictionary_values;
            let message = format!("more than {limit} distinct values");
            return Err(problem(schema, key, message, "raise state.max_dictionary_values, or round the values"));
        }
    }
    let of = |wanted: &dyn Fn(Role) -> bool| -> Vec<usize> {
        let roles = schema.attributes.iter().enumerate();
        roles.filter(|(_, attribute)| wanted(attribute.role)).map(|(a, _)| a).collect()
    };
    let subjects = schema.subject.map(|_| dense(&batch.subjects));
    let marked = marks(config, file, &schema)?;
    let released = marked.map(|attribute| {
        let mark = |&code: &u32| {
            let text = books[attribute].canonical(code);
            matches!(text, "true" | "1" | "\"true\"" | "\"1\"" | "\"yes\"")
        };
        batch.columns[attribute].iter().map(mark).collect::<Vec<bool>>()
    });
    let (quasi, sensitive) = (of(&Role::is_quasi), of(&|role| role == Role::Sensitive));
    if batch.rows() == 0 {
        let message = "the input has no records".to_owned();
        return Err(problem(named(&config.source.path), "(whole file)", message, "give a file with records"));
    }
    if released.as_ref().is_some_and(|marks| !marks.contains(&true)) {
        let message = "no record is marked to be released".to_owned();
        return Err(problem(file, "anonymize.released", message, "mark records with true, 1 or yes"));
    }
    let leaving = schema.releasable().filter(|&a| Some(a) != marked).collect();
    // Whoever has the file but for one cell could try its values, if the content alone decided.
    let of_secret = |secret: &Secret| DigestKey::of_content(std::iter::once(secret.expose()));
    // Without a secret it does: what is drawn anew in each run would let two releases of one file be intersected.
    let covers = config.secret.as_ref().map_or_else(|| DigestKey::of_content(std::iter::empty()), of_secret);
    Ok(Input { schema, books, batch, swallowed, quasi, sensitive, subjects, released, leaving, key, covers })
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

fn encoded(
    config: &Config,
    file: &str,
    schema: &Schema,
    mut books: Vec<Codebook>,
    key: &DigestKey,
    note: &dyn Fn(&Finding),
) -> Result<(Vec<Codebook>, Batch, u64), AnonymizeError> {
    let mut subjects = schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), key));
    let as_null = config.sink.cannot_omit();
    let mut profiles = profiles::read_whole(config, schema, file, subjects.as_ref()).map_err(|error| match error {
        NotRead::Problems(problems) => AnonymizeError::Configuration(problems),
        NotRead::Profiles(error) => error.into(),
    })?;
    let mut all = Batch::new(schema.attributes.len());
    let path = &config.source.path;
    let mut met = Met::new(schema.attributes.len(), config.privacy.crowd());
    let take = &mut |batch: &Batch, long| {
        met.add(batch, &[], long);
        all.append(batch);
    };
    let whole = read_whole(config, (path, &mut profiles), schema, &mut books, subjects.as_mut(), as_null, take);
    let findings = met.findings(schema);
    findings.iter().for_each(note);
    for join in profiles.iter().filter(|join| join.unjoined > 0) {
        note(&Finding::Unjoined { join: join.join.clone(), records: join.unjoined, all: all.rows() as u64 });
    }
    whole.map_err(|error| match error {
        WholeFileError::Source(error) => error.into(),
        WholeFileError::NoColumn(attributes) => AnonymizeError::NoColumn { path: path.clone(), attributes },
        WholeFileError::Rejected { records, first, why } => {
            AnonymizeError::Rejected { path: named(path), records, first, why }
        }
    })?;
    Ok((books, all, findings.iter().map(Finding::swallowed_lines).sum()))
}

/// Digests as dense numbers; nobody is [`NOBODY`](crate::anonymity::lattice::table::NOBODY).
fn dense(subjects: &[u64]) -> Vec<u32> {
    let mut number: HashMap<u64, u32> = HashMap::new();
    let of = |&subject: &u64| {
        if subject == NO_SUBJECT {
            return crate::anonymity::lattice::table::NOBODY;
        }
        let next = number.len() as u32;
        *number.entry(subject).or_insert(next)
    };
    subjects.iter().map(of).collect()
}

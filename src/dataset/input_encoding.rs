//! Reads and encodes the source.

use super::error::{AnonymizeError, file_label, operator_error};
use crate::config::{Config, Secret};
use crate::start::checked_config::explode_problems;
use crate::start::profile_sources::ProfilesUnavailable;
use crate::start::run_findings::{RunFinding, RunStatistics};
use crate::start::sampling::{RecordCallback, WholeFileError, read_whole_file};
use crate::start::schema_loading::load_schema;
use crate::start::schema_warnings::shape_title;
use crate::start::{nested_output, profile_sources};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::{Role, Schema};
use throng_core::values::subject_digest::SubjectDigester;

/// Schema, codebooks and roles of the records.
pub struct DatasetInput {
    pub schema: Arc<Schema>,
    pub books: Vec<Codebook>,
    /// Records swallowed by an unclosed quote.
    pub swallowed: u64,
    /// Ascending schema positions.
    pub quasi: Vec<usize>,
    pub sensitive: Vec<usize>,
    /// Released attributes in order, without the mark.
    pub released_attributes: Vec<usize>,
    /// Digest key of this run.
    pub key: DigestKey,
    /// Key that, with the content, decides the covering subjects; from the configured secret, or a random one.
    pub covering_key: DigestKey,
}

/// Schema, codebooks and key before the read.
pub struct PreparedSchema {
    pub schema: Arc<Schema>,
    pub books: Vec<Codebook>,
    /// Digest key of this run.
    pub key: DigestKey,
}

/// Marks of records to be released.
pub struct ReleaseMarks {
    /// Schema position.
    pub attribute: usize,
    /// True per code to be released.
    pub released: Vec<bool>,
}

/// Returns the bytes of distinct values.
pub fn codebook_bytes(books: &[Codebook]) -> u64 {
    books.iter().map(|book| book.approximate_bytes() as u64).sum()
}

/// Loads and checks everything before the source.
pub fn prepare_schema(config: &Config, file: &str) -> Result<PreparedSchema, AnonymizeError> {
    let schema = load_schema(config).map_err(AnonymizeError::Configuration)?;
    let mut problems = explode_problems(config, &schema, file);
    problems.extend(nested_output::problems(config, &schema, file));
    if !problems.is_empty() {
        return Err(AnonymizeError::Configuration(problems));
    }
    let key = DigestKey::random_key().map_err(AnonymizeError::Randomness)?;
    let books = schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &key, Codebook::value_limit(a)));
    let books: Vec<Codebook> = books.collect::<Result<_, _>>()?;
    Ok(PreparedSchema { schema, books, key })
}

/// Describes the `records` read, and refuses values that cannot be released. `of_profiles`: uncovered cells of profiles
/// per attribute.
pub fn describe_input(
    config: &Config,
    file: &str,
    begun: PreparedSchema,
    swallowed: u64,
    (records, of_profiles): (u64, &dyn Fn(usize) -> u64),
) -> Result<(DatasetInput, Option<ReleaseMarks>), AnonymizeError> {
    let PreparedSchema { schema, books, key } = begun;
    for (position, (attribute, book)) in schema.attributes.iter().zip(&books).enumerate() {
        let key = format!("attribute {:?}", attribute.name);
        let schema = file_label(&config.schema.file);
        if let Some(shape) = book.first_shape() {
            let message = format!("has values in the form of {}: they would be released as \"*\"", shape_title(shape));
            let remedy = "give it the role identifier, or insensitive to release them unchanged";
            return Err(operator_error(schema, key, message, remedy));
        }
        let is_meant = attribute.suppresses_uncovered && attribute.role.is_quasi();
        let uncovered = book.uncovered() + of_profiles(position);
        if uncovered > 0 && !is_meant {
            let message = format!("the hierarchy does not cover the values of {uncovered} cell(s)");
            let remedy = if attribute.role.is_quasi() {
                "add them to the hierarchy, list their spellings as missing, or write uncovered = \"suppress\" there"
            } else {
                "add them to the hierarchy, or list their spellings as missing"
            };
            return Err(operator_error(schema, key, message, remedy));
        }
        if book.overflowed() > 0 {
            let message = format!("more than {} distinct values", Codebook::value_limit(attribute));
            return Err(operator_error(schema, key, message, "round the values in the schema"));
        }
    }
    let of = |wanted: &dyn Fn(Role) -> bool| -> Vec<usize> {
        let roles = schema.attributes.iter().enumerate();
        roles.filter(|(_, attribute)| wanted(attribute.role)).map(|(a, _)| a).collect()
    };
    let marked = mark_attribute(config, file, &schema)?;
    let marks = marked.map(|attribute| {
        let is_mark = |code: usize| {
            let text = books[attribute].canonical(code as u32);
            matches!(text, "true" | "1" | "\"true\"" | "\"1\"" | "\"yes\"")
        };
        ReleaseMarks { attribute, released: (0..books[attribute].codes()).map(is_mark).collect() }
    });
    let (quasi, sensitive) = (of(&Role::is_quasi), of(&|role| role == Role::Sensitive));
    if records == 0 {
        let message = "the input has no records".to_owned();
        return Err(operator_error(
            file_label(&config.source.path),
            "(whole file)",
            message,
            "give a file with records",
        ));
    }
    let leaving = schema.releasable().filter(|&a| Some(a) != marked).collect();
    // From the content alone, an attacker that lacks one cell could try its values.
    let secret = match &config.secret {
        Some(secret) => secret.clone(),
        None => Secret::generate().map_err(|error| {
            let message = format!("no secret can be generated for this run ({})", error.kind());
            operator_error(file, "state.secret_file", message, "name a file with a secret")
        })?,
    };
    let covers = DigestKey::from_content(std::iter::once(secret.expose()));
    Ok((
        DatasetInput {
            schema,
            books,
            swallowed,
            quasi,
            sensitive,
            released_attributes: leaving,
            key,
            covering_key: covers,
        },
        marks,
    ))
}

/// Returns the error for no record to be released.
pub fn no_marked_record_error(file: &str) -> AnonymizeError {
    let message = "no record is marked to be released".to_owned();
    operator_error(file, "anonymize.released", message, "mark records with true, 1 or yes")
}

/// Position of the attribute that marks records to be released.
fn mark_attribute(config: &Config, file: &str, schema: &Schema) -> Result<Option<usize>, AnonymizeError> {
    let Some(name) = &config.anonymize.released else { return Ok(None) };
    let key = "anonymize.released";
    let Some(attribute) = schema.position(name) else {
        let message = format!("the schema has no attribute {name:?}");
        return Err(operator_error(file, key, message, "correct the name"));
    };
    let role = schema.attributes[attribute].role;
    if role != Role::Insensitive {
        // It would divide every class into released and other records.
        let message = format!("{name:?} has the role {}, so it would be treated as personal data", role.name());
        return Err(operator_error(
            file,
            key,
            message,
            "give it the role insensitive in the schema; it is not released",
        ));
    }
    Ok(Some(attribute))
}

/// Receives encoded records and current codebooks; `Break` ends the read.
pub type BatchVisitor<'a> = dyn FnMut(&CodeBatch, &[Codebook]) -> ControlFlow<()> + 'a;

/// Encodes the source, then `more`, and calls `each` per batch. Returns the codebooks and the swallowed records.
pub fn encode_source(
    config: &Config,
    file: &str,
    (schema, mut books, key): (&Schema, Vec<Codebook>, &DigestKey),
    more: &[PathBuf],
    note: &dyn Fn(&RunFinding),
    each: &mut BatchVisitor<'_>,
) -> Result<(Vec<Codebook>, u64), AnonymizeError> {
    let mut subjects = schema.subject.map(|a| SubjectDigester::new(Arc::clone(&schema.attributes[a]), key));
    let as_null = config.sink.writes_absent_cells();
    let mut profiles =
        profile_sources::read_profile_files(config, schema, file, subjects.as_ref()).map_err(|error| match error {
            ProfilesUnavailable::Problems(problems) => AnonymizeError::Configuration(problems),
            ProfilesUnavailable::Profiles(error) => error.into(),
        })?;
    let path = &config.source.path;
    let mut met = RunStatistics::new(schema.attributes.len(), config.privacy.required_subjects());
    let mut records = 0;
    let take: RecordCallback<'_> = &mut |batch, books, long| {
        met.add(batch, &[], long);
        records += batch.rows() as u64;
        each(batch, books)
    };
    let files = (path.as_path(), more, &mut profiles[..]);
    let whole = read_whole_file(config, files, schema, &mut books, subjects.as_mut(), as_null, take);
    let findings = met.findings(schema);
    findings.iter().for_each(note);
    for join in profiles.iter().filter(|join| join.unjoined > 0) {
        note(&RunFinding::WithoutProfile { join: join.join.clone(), records: join.unjoined, all: records });
    }
    whole.map_err(|error| match error {
        WholeFileError::Source(error) => error.into(),
        WholeFileError::NoColumn(attributes) => AnonymizeError::NoColumn { path: path.clone(), attributes },
        WholeFileError::Rejected { records, first, why } => {
            AnonymizeError::Rejected { path: file_label(&crate::io::table::named(path, more)), records, first, why }
        }
    })?;
    Ok((books, findings.iter().map(RunFinding::swallowed_lines).sum()))
}

/// Reports the cells released as `*` because the hierarchy lacks their value.
pub fn report_uncovered_cells(
    schema: &Schema,
    books: &[Codebook],
    of_profiles: &dyn Fn(usize) -> u64,
    note: &dyn Fn(&RunFinding),
) {
    for (position, (attribute, book)) in schema.attributes.iter().zip(books).enumerate() {
        let cells = book.uncovered() + of_profiles(position);
        if cells > 0 && attribute.suppresses_uncovered && attribute.role.is_quasi() {
            note(&RunFinding::Uncovered { attribute: attribute.name.clone(), cells });
        }
    }
}

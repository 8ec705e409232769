//! A configuration with its schema, groups and privacy models, read and checked once.

use super::chosen::{Grown, Settled, settle};
use super::composition::{Treated, compartmented, treatments};
use super::digest::{PolicyDigest, policy_digest};
use super::protections::protections;
use super::schema::load_schema;
use super::series::series_terms;
use super::shapes::group_shapes;
use super::{field_numbers, memory, messages, nested, output_names, profiles};
use crate::anonymity::planner::{GroupShape, guarded};
use crate::anonymity::privacy::protection::Protection;
use crate::anonymity::series::Terms;
use crate::config::{Config, Format, Problem, SinkKind, SourceKind, Used};
use crate::telemetry::Telemetry;
use std::path::Path;
use std::sync::Arc;
use throng_core::values::formula::needs_guard;
use throng_core::values::schema::Schema;
use throng_formats::TypedGroup;

/// A stream's configuration with its schema, groups and privacy models. `throng check` makes the same one as
/// `throng run`: what the one finds nothing wrong with, the other starts with.
#[derive(Clone)]
pub struct Checked {
    /// As loaded; all below was read from what it names.
    pub config: Arc<Config>,
    /// The configuration's name in messages.
    pub file: String,
    /// With its hierarchies read and checked against the types.
    pub schema: Arc<Schema>,
    /// The groups, in the order of the configuration; one of all attributes where it names none.
    pub shapes: Vec<GroupShape>,
    /// Why these groups, where the planner chose them.
    pub grown: Option<Grown>,
    /// What the rules of `[treatment]` have come to; nothing where there are none.
    pub treated: Vec<Treated>,
    /// The attributes that privacy models beside k protect, in the order of the schema.
    pub protections: Vec<Protection>,
    /// Terms of the series; none where the configuration has no series.
    pub series: Option<Arc<Terms>>,
    /// What leaves under a schema; empty until it is registered, and where nothing does.
    pub registered: Arc<[TypedGroup]>,
    /// Digest of what is promised.
    pub policy: PolicyDigest,
}

impl Checked {
    /// Reads and checks what `config`, the file `file` in messages, names.
    ///
    /// # Errors
    /// Every problem of the schema; where it is sound, every problem of groups and privacy models. Populations are files of any
    /// size: who needs them reads them, once (`start::population`).
    pub fn new(config: Config, file: &str) -> Result<Self, Vec<Problem>> {
        let schema = load_schema(&config)?;
        let mut parts = messages::problems(&config, &schema, file);
        parts.extend(output_names::problems(&config, &schema, file));
        parts.extend(profiles::problems(&config, &schema, file));
        parts.extend(erasure_problems(&config, &schema, file));
        parts.extend(explode_problems(&config, &schema, file));
        parts.extend(header_problems(&config, &schema, file));
        parts.extend(nested::problems(&config, &schema, file));
        parts.extend(memory::problems(&config, &schema, file));
        if parts.is_empty() {
            // Of names that are alike the numbers are, too.
            parts = field_numbers::problems(&config, &schema, file);
        }
        if !parts.is_empty() {
            return Err(parts);
        }
        let policy = policy_digest(&config, &schema);
        let (config, Settled { treated, grown }) = settle(config, &schema, file)?;
        let schema = Arc::new(schema.with_treatments(&treatments(&treated)));
        let mut problems = Vec::new();
        let shapes = group_shapes(&config, &schema, file).unwrap_or_else(|mut found| {
            if grown.is_some() {
                // The configuration has no such group to correct.
                let key = if compartmented(&treated).is_empty() { "plan.groups" } else { "treatment" };
                for problem in found.iter_mut().filter(|problem| problem.key.starts_with("group")) {
                    key.clone_into(&mut problem.key);
                }
            }
            noted(found, &mut problems)
        });
        let series = series_terms(&config, &schema, file).unwrap_or_else(|found| noted(found, &mut problems));
        let protections = protections(&config, &schema, file).unwrap_or_else(|found| noted(found, &mut problems));
        if problems.is_empty() {
            problems = output_names::collisions(&config, &schema, &shapes, file);
            problems.extend(config.output_problem(file, &policy_files(&config, file)));
        }
        if problems.is_empty() {
            let config = Arc::new(config);
            let (registered, series, file) = (Arc::from([]), series.map(Arc::new), file.to_owned());
            Ok(Self { config, file, schema, shapes, grown, treated, protections, series, registered, policy })
        } else {
            Err(problems)
        }
    }

    /// Metrics, events and pages for these groups.
    pub fn telemetry(&self) -> Telemetry {
        let names: Vec<String> = self.shapes.iter().map(|shape| shape.name.clone()).collect();
        let searched: Vec<&str> =
            guarded(&self.shapes).into_iter().map(|at| self.schema.attributes[at].name.as_str()).collect();
        Telemetry::new(self.config.privacy.k, &names).naming(&searched)
    }
}

/// Returns the files that a release is made by, the source left out: no output may replace them.
pub fn policy_files(config: &Config, file: &str) -> Vec<Used> {
    let hierarchies = Schema::hierarchy_files(&config.schema.file);
    let mut files = vec![Used::file("the configuration", Path::new(file))];
    files.extend(hierarchies.iter().map(|path| Used::file("a hierarchy of the schema", path)));
    files.extend(config.files_read());
    files
}

/// Notes problems and goes on without what they are about.
fn noted<T: Default>(mut found: Vec<Problem>, problems: &mut Vec<Problem>) -> T {
    problems.append(&mut found);
    T::default()
}

/// What is wrong with the topic of erasures, as the record schema has it.
fn erasure_problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    if !config.erasure.is_on() || schema.subject.is_some() {
        return Vec::new();
    }
    let message = "the record schema names no subject, so no record is known to be anybody's, and nobody can be erased";
    let remedy = "give one attribute role = \"subject\", or remove the key";
    vec![Problem::new(file, "erasure.topic", message.to_owned(), remedy)]
}

/// Names that a spreadsheet would run as formulas in the header of a CSV file.
fn header_problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    let is_csv = config.sink.kind == SinkKind::File && config.sink.format() == Format::Csv && config.release.fragments;
    let names = schema.attributes.iter().map(|attribute| &attribute.name).filter(|name| is_csv && needs_guard(name));
    let remedy =
        "give the attribute another `name` in the schema, with its present one as `column`, or write NDJSON or Parquet";
    let message = |name: &String| format!("a spreadsheet would run {name:?} in the header of the output as a formula");
    names.map(|name| Problem::new(file, "sink.format", message(name), remedy)).collect()
}

/// What is wrong with `config` where `schema` takes messages apart.
pub fn explode_problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    let Some(array) = &schema.explode else { return Vec::new() };
    let mut found = Vec::new();
    let format = config.source.format();
    if config.source.kind == SourceKind::File && format != Format::Json {
        let name = if format == Format::Csv { "CSV" } else { "Parquet" };
        let message = format!("the schema explodes {array:?}, and rows of {name} are not taken apart");
        found.push(Problem::new(
            file,
            "source.format",
            message,
            "read NDJSON or a topic, or remove `explode` from the schema",
        ));
    }
    if format == Format::Protobuf && array.is_empty() {
        let message = "the schema explodes the message itself, and a message of Protobuf is no array";
        let remedy = "give the pointer of a repeated field (`explode` of the schema), or read JSON or Avro";
        found.push(Problem::new(file, "source.format", message, remedy));
    }
    found
}

//! Loads and checks a configuration with its schema, groups and privacy models.

use super::configured_groups::group_shapes;
use super::group_choice::{ChosenGroups, ResolvedChoices, resolve_choices};
use super::policy_hash::{PolicyDigest, policy_digest};
use super::protections::protections;
use super::schema_loading::load_schema;
use super::series_settings::series_terms;
use super::treatment_selection::{SelectedTreatment, compartmented, treatments};
use super::{field_numbers, memory_budget, message_decoders, nested_output, output_names, profile_sources};
use crate::config::{Config, ConfigProblem, RecordFormat, SinkKind, SourceKind, UsedFile};
use crate::planner::grouped_attributes;
use crate::telemetry::Telemetry;
use std::path::Path;
use std::sync::Arc;
use throng_core::plan::GroupShape;
use throng_core::privacy::protection::SensitiveProtection;
use throng_core::series::AllSeriesTerms;
use throng_core::values::formula::needs_guard;
use throng_core::values::schema::Schema;
use throng_formats::TypedGroup;

/// Checked configuration of a stream; `throng check` and `throng run` build the same.
#[derive(Clone)]
pub struct CheckedConfig {
    /// Loaded configuration.
    pub config: Arc<Config>,
    /// File name in messages.
    pub file: String,
    /// Record schema with hierarchies.
    pub schema: Arc<Schema>,
    /// Groups in configuration order, or one of all attributes.
    pub shapes: Vec<GroupShape>,
    /// Reasons for the planner's groups.
    pub planned_groups: Option<ChosenGroups>,
    /// Treatments by the rules of `[treatment]`.
    pub selected_treatments: Vec<SelectedTreatment>,
    /// Attributes under privacy models other than k-anonymity.
    pub protections: Vec<SensitiveProtection>,
    /// Terms of the series, if any.
    pub series: Option<Arc<AllSeriesTerms>>,
    /// Output layouts under a schema; empty until registration.
    pub registered: Arc<[TypedGroup]>,
    /// Digest of the policy.
    pub policy: PolicyDigest,
}

impl CheckedConfig {
    /// Loads and checks the files of `config`; `file` is its name in messages.
    ///
    /// # Errors
    /// Returns every problem of the schema, else of groups and privacy models. Population files are not read here.
    pub fn new(config: Config, file: &str) -> Result<Self, Vec<ConfigProblem>> {
        let schema = load_schema(&config)?;
        let mut parts = message_decoders::problems(&config, &schema, file);
        parts.extend(output_names::problems(&config, &schema, file));
        parts.extend(profile_sources::problems(&config, &schema, file));
        parts.extend(erasure_problems(&config, &schema, file));
        parts.extend(explode_problems(&config, &schema, file));
        parts.extend(header_problems(&config, &schema, file));
        parts.extend(nested_output::problems(&config, &schema, file));
        parts.extend(memory_budget::problems(&config, &schema, file));
        if parts.is_empty() {
            // Equal names give equal numbers, so names are checked first.
            parts = field_numbers::problems(&config, &schema, file);
        }
        if !parts.is_empty() {
            return Err(parts);
        }
        let policy = policy_digest(&config, &schema);
        let (config, ResolvedChoices { selected_treatments: treated, planned_groups: grown }) =
            resolve_choices(config, &schema, file)?;
        let schema = Arc::new(schema.with_treatments(&treatments(&treated)));
        let mut problems = Vec::new();
        let shapes = group_shapes(&config, &schema, file).unwrap_or_else(|mut found| {
            if grown.is_some() {
                // The configuration has no such group.
                let key = if compartmented(&treated).is_empty() { "plan.groups" } else { "treatment" };
                for problem in found.iter_mut().filter(|problem| problem.key.starts_with("group")) {
                    key.clone_into(&mut problem.key);
                }
            }
            record_problems(found, &mut problems)
        });
        let series = series_terms(&config, &schema, file).unwrap_or_else(|found| record_problems(found, &mut problems));
        let protections =
            protections(&config, &schema, file).unwrap_or_else(|found| record_problems(found, &mut problems));
        if problems.is_empty() {
            problems = output_names::collisions(&config, &schema, &shapes, file);
            problems.extend(config.output_problem(file, &policy_files(&config, file)));
        }
        if problems.is_empty() {
            let config = Arc::new(config);
            let (registered, series, file) = (Arc::from([]), series.map(Arc::new), file.to_owned());
            Ok(Self {
                config,
                file,
                schema,
                shapes,
                planned_groups: grown,
                selected_treatments: treated,
                protections,
                series,
                registered,
                policy,
            })
        } else {
            Err(problems)
        }
    }

    /// Creates the telemetry for these groups.
    pub fn telemetry(&self) -> Telemetry {
        let names: Vec<String> = self.shapes.iter().map(|shape| shape.name.clone()).collect();
        let searched: Vec<&str> =
            grouped_attributes(&self.shapes).into_iter().map(|at| self.schema.attributes[at].name.as_str()).collect();
        Telemetry::new(self.config.privacy.k, &names).with_attribute_series(&searched)
    }
}

/// Returns the files that define a release, except the source; no output may replace them.
pub fn policy_files(config: &Config, file: &str) -> Vec<UsedFile> {
    let hierarchies = Schema::hierarchy_files(&config.schema.file);
    let mut files = vec![UsedFile::file("the configuration", Path::new(file))];
    files.extend(hierarchies.iter().map(|path| UsedFile::file("a hierarchy of the schema", path)));
    files.extend(config.files_read());
    files
}

/// Continues with the default value.
fn record_problems<T: Default>(mut found: Vec<ConfigProblem>, problems: &mut Vec<ConfigProblem>) -> T {
    problems.append(&mut found);
    T::default()
}

fn erasure_problems(config: &Config, schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    if !config.erasure.is_enabled() || schema.subject.is_some() {
        return Vec::new();
    }
    let message = "the record schema has no subject: the records of a person are unknown and cannot be erased";
    let remedy = "give one attribute role = \"subject\", or remove the key";
    vec![ConfigProblem::new(file, "erasure.topic", message.to_owned(), remedy)]
}

/// Names that a spreadsheet would run as formulas.
fn header_problems(config: &Config, schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    let is_csv =
        config.sink.kind == SinkKind::File && config.sink.format() == RecordFormat::Csv && config.release.fragments;
    let names = schema.attributes.iter().map(|attribute| &attribute.name).filter(|name| is_csv && needs_guard(name));
    let remedy =
        "give the attribute another `name` in the schema, with its present one as `column`, or write NDJSON or Parquet";
    let message = |name: &String| format!("a spreadsheet would run {name:?} in the header of the output as a formula");
    names.map(|name| ConfigProblem::new(file, "sink.format", message(name), remedy)).collect()
}

/// Returns problems of `config` with a schema that explodes messages.
pub fn explode_problems(config: &Config, schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    let Some(array) = &schema.explode else { return Vec::new() };
    let mut found = Vec::new();
    let format = config.source.format();
    if config.source.kind == SourceKind::File && format != RecordFormat::Json {
        let name = match format {
            RecordFormat::Csv => "rows of CSV",
            RecordFormat::AppleHealth => "records of Apple Health",
            _ => "rows of Parquet",
        };
        let message = format!("the schema explodes {array:?}, but {name} cannot be exploded");
        found.push(ConfigProblem::new(
            file,
            "source.format",
            message,
            "read NDJSON or a topic, or remove `explode` from the schema",
        ));
    }
    if format == RecordFormat::Protobuf && array.is_empty() {
        let message = "the schema explodes the message itself, but a Protobuf message is not an array";
        let remedy = "give the pointer of a repeated field (`explode` of the schema), or read JSON or Avro";
        found.push(ConfigProblem::new(file, "source.format", message, remedy));
    }
    found
}

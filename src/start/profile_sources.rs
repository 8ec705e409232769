//! Opens the profiles of `[[join]]`.

use super::message_parts::{MessagePartConfig, PartField, PartFormat, schema_lookup};
use super::record_formats::{codec_limits, file_format};
use crate::config::{Config, ConfigProblem, JoinConfig, RecordFormat};
use crate::io::file::{FileReadSettings, StopFlag};
use crate::io::profiles::{
    ProfileDecoder, ProfileFeed, ProfileFile, ProfileFileContent, ProfileReadError, ProfileTable, ProfileTopic,
    SUBJECT_COLUMN, join,
};
use crate::telemetry::Telemetry;
use std::sync::Arc;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::Codebook;
use throng_core::values::schema::{Attribute, AttributeOrigin, Schema, segments};
use throng_core::values::subject_digest::SubjectDigester;
use throng_formats::{FieldPath, UnknownCellPolicy};
use throng_kafka::connection::KafkaCluster;

struct ConfiguredJoin<'a> {
    index: usize,
    join: &'a JoinConfig,
    attributes: Vec<usize>,
    schema: &'a Schema,
}

/// Joins by name, which defines their numbers in the state.
pub fn joins_by_name(config: &Config) -> Vec<&JoinConfig> {
    let mut joins: Vec<&JoinConfig> = config.join.iter().collect();
    joins.sort_by(|a, b| a.name.cmp(&b.name));
    joins
}

fn configured_join<'a>(config: &'a Config, schema: &'a Schema, join: &'a JoinConfig) -> ConfiguredJoin<'a> {
    let index = config.join.iter().position(|other| other.name == join.name).unwrap_or_default();
    ConfiguredJoin { index, join, attributes: schema.attributes_of_join(&join.name), schema }
}

/// Returns problems of the joins and their attributes.
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<ConfigProblem> {
    let mut found = Vec::new();
    for attribute in &schema.attributes {
        let unknown = attribute.from.join().filter(|name| config.join.iter().all(|join| join.name != *name));
        if let Some(name) = unknown {
            let message =
                format!("attribute {:?} of the schema is from the join {name:?}, which is missing", attribute.name);
            found.push(ConfigProblem::new(file, "join", message, format!("add a [[join]] with name = {name:?}")));
        }
    }
    for join in &config.join {
        let asked = configured_join(config, schema, join);
        if asked.attributes.is_empty() {
            let message = "no releasable attribute of the schema comes from it".to_owned();
            let remedy = format!("set from = \"join:{}\" on its attributes, or remove the join", join.name);
            found.push(ConfigProblem::new(file, asked.key("name"), message, remedy));
        }
        if join.topic.is_some() {
            found.extend(
                [asked.message_key(), asked.message_value()].iter().flat_map(|part| part.problems(config, file)),
            );
        }
    }
    found
}

impl ConfiguredJoin<'_> {
    fn key(&self, name: &str) -> String {
        format!("join[{}].{name}", self.index)
    }

    fn subject(&self) -> Option<&Attribute> {
        self.schema.subject.map(|subject| self.schema.attributes[subject].as_ref())
    }

    fn subject_field(&self) -> FieldPath {
        let subject = self.subject();
        // Headers, timestamps, topics and array elements have no position in a key or row; a profile names its one
        // subject as in the schema.
        let place = subject.filter(|subject| matches!(subject.from, AttributeOrigin::Value | AttributeOrigin::Key));
        let of_element = place.filter(|subject| subject.elements.is_some());
        match (self.join.key.as_deref(), &self.join.topic) {
            (Some(key), _) if key.is_empty() || key.starts_with('/') => FieldPath::from_segments(segments(key)),
            (Some(column), _) => FieldPath::top_level(column),
            (None, Some(_)) if self.join.key_format.is_one_value() => FieldPath::from_segments(Vec::new()),
            (None, _) if of_element.is_some() => {
                FieldPath::top_level(of_element.map(|subject| subject.name.as_str()).unwrap_or_default())
            }
            (None, _) if self.is_flat() => FieldPath::top_level(&subject.map(Attribute::column).unwrap_or_default()),
            (None, Some(_)) => FieldPath::from_segments(place.map(Attribute::segments).unwrap_or_default()),
            (None, None) => match place.map(Attribute::segments).filter(|segments| !segments.is_empty()) {
                Some(pointer) => FieldPath::from_segments(pointer),
                None => FieldPath::top_level(&subject.map(|subject| subject.name.clone()).unwrap_or_default()),
            },
        }
    }

    fn is_flat(&self) -> bool {
        self.join.path.is_some() && self.join.format() == RecordFormat::Csv
    }

    fn attributes(&self) -> impl Iterator<Item = (usize, &Arc<Attribute>)> {
        self.attributes
            .iter()
            .map(|a| &self.schema.attributes[*a])
            .enumerate()
            .map(|(i, a)| (SUBJECT_COLUMN + 1 + i, a))
    }

    fn message_key(&self) -> MessagePartConfig<'_> {
        let join = self.join;
        let name = "the person".to_owned();
        MessagePartConfig {
            format: PartFormat::of_keys(join.key_format),
            format_key: self.key("key_format"),
            writer_schema: None,
            message: None,
            is_value: false,
            wanted: vec![PartField {
                at: SUBJECT_COLUMN,
                name,
                field: self.subject_field(),
                kind: None,
                optional: false,
            }],
            unknown: UnknownCellPolicy::Drop,
        }
    }

    fn message_value(&self) -> MessagePartConfig<'_> {
        let join = self.join;
        let wanted = |(at, a): (usize, &Arc<Attribute>)| PartField {
            at,
            name: format!("attribute {:?}", a.name),
            field: FieldPath::from_segments(a.segments()),
            kind: Some(a.kind()),
            optional: a.optional,
        };
        MessagePartConfig {
            format: PartFormat::of_values(join.format()),
            format_key: self.key("format"),
            writer_schema: None,
            message: None,
            is_value: true,
            wanted: self.attributes().map(wanted).collect(),
            unknown: UnknownCellPolicy::Drop,
        }
    }

    fn row_decoder(&self, subjects: &SubjectDigester) -> ProfileDecoder {
        ProfileDecoder::new(subjects.clone(), self.attributes().map(|(_, a)| Arc::clone(a)).collect())
    }

    fn file(&self, config: &Config, people: ProfileDecoder, telemetry: Telemetry) -> ProfileFile {
        let join = self.join;
        let (fields, columns) = self.columns();
        let reading = FileReadSettings {
            format: file_format(join.format(), config.source.separator),
            fields,
            limits: codec_limits(config).0,
            unknown: UnknownCellPolicy::Drop,
            stop: StopFlag::default(),
        };
        let (name, path) = (join.name.clone(), join.path.clone().unwrap_or_default());
        ProfileFile { join: name, path, reading, columns, people, max_people: join.max_people, telemetry }
    }

    fn columns(&self) -> (Vec<FieldPath>, Vec<String>) {
        let flat = self.is_flat();
        let field = |a: &Attribute| {
            if flat { FieldPath::top_level(&a.column()) } else { FieldPath::from_segments(a.segments()) }
        };
        let (mut fields, mut names) = (vec![self.subject_field()], vec!["the person".to_owned()]);
        for (_, attribute) in self.attributes() {
            fields.push(field(attribute));
            names.push(format!("attribute {:?}", attribute.name));
        }
        (fields, names)
    }
}

/// Reason for unreadable profiles.
#[derive(Debug, thiserror::Error)]
pub enum ProfilesUnavailable {
    /// Problems of the configuration or its files.
    #[error("{} problem(s) in the joins", .0.len())]
    Problems(Vec<ConfigProblem>),
    /// Failure of the profile reader.
    #[error(transparent)]
    Profiles(#[from] ProfileReadError),
}

/// All profiles of one join.
pub struct JoinProfiles {
    /// Name of the join.
    pub join: String,
    /// Schema positions of the provided attributes.
    pub attributes: Vec<usize>,
    /// Records without a profile.
    pub unjoined: u64,
    table: ProfileTable,
}

impl JoinProfiles {
    /// Sets the joined cells in `batch`.
    pub fn join(&mut self, batch: &mut CodeBatch, books: &mut [Codebook]) {
        self.unjoined += join(&self.table, &self.attributes, batch, books, false).unjoined;
    }
}

/// Reads the profile files of all joins in order, for one complete data set. `subjects` digests subjects as in the
/// records.
///
/// # Errors
/// Fails for problems of joins or files, unreadable rows, and more than `max_people` profiles.
pub fn read_profile_files(
    config: &Config,
    schema: &Schema,
    file: &str,
    subjects: Option<&SubjectDigester>,
) -> Result<Vec<JoinProfiles>, ProfilesUnavailable> {
    let mut problems = problems(config, schema, file);
    for (at, join) in config.join.iter().enumerate().filter(|(_, join)| join.topic.is_some()) {
        let message = format!("the profiles of {:?} are in a topic, but a data set is read from files only", join.name);
        problems.push(ConfigProblem::new(file, format!("join[{at}].topic"), message, "name a file in path"));
    }
    if !problems.is_empty() {
        return Err(ProfilesUnavailable::Problems(problems));
    }
    let Some(subjects) = subjects else { return Ok(Vec::new()) };
    let mut read = Vec::new();
    for join in joins_by_name(config) {
        let asked = configured_join(config, schema, join);
        let source = asked.file(config, asked.row_decoder(subjects), Telemetry::new(config.privacy.k, &[]));
        let (name, path) = (join.name.clone(), source.path.clone());
        let ProfileFileContent { table, refused, first, full } = source.read_content()?;
        if let Some((first, why)) = first {
            return Err(ProfileReadError::Rows { join: name, path, rows: refused, first, why }.into());
        }
        if full {
            let message = format!("{} has profiles of more than {} people", path.display(), join.max_people);
            return Err(ProfilesUnavailable::Problems(vec![ConfigProblem::new(
                file,
                asked.key("max_people"),
                message,
                "raise the limit",
            )]));
        }
        read.push(JoinProfiles { join: name, attributes: asked.attributes, unjoined: 0, table });
    }
    Ok(read)
}

/// Starts the readers of all joins in order. `subjects` digests subjects as in the records; `cluster` holds the topics.
pub fn start_profile_readers(
    config: &Config,
    schema: &Schema,
    file: &str,
    (subjects, cluster, telemetry): (&SubjectDigester, &KafkaCluster, &Telemetry),
) -> Result<Vec<ProfileFeed>, ProfilesUnavailable> {
    let problems = problems(config, schema, file);
    if !problems.is_empty() {
        return Err(ProfilesUnavailable::Problems(problems));
    }
    let one = |problem| ProfilesUnavailable::Problems(vec![problem]);
    let lookup = schema_lookup(config, file, telemetry).map_err(one)?;
    let mut feeds = Vec::new();
    for join in joins_by_name(config) {
        let asked = configured_join(config, schema, join);
        let people = asked.row_decoder(subjects);
        let (name, telemetry) = (join.name.clone(), telemetry.clone());
        let feed = if let Some(topic) = join.topic.clone() {
            let decoder =
                |part: MessagePartConfig<'_>| part.decoder(config, lookup.as_ref(), file, &telemetry).map_err(one);
            let (key, value) = (decoder(asked.message_key())?, decoder(asked.message_value())?);
            let (cluster, max_people) = (cluster.clone(), join.max_people);
            ProfileTopic { join: name, cluster, topic, key, value, people, max_people, telemetry }.read()?
        } else {
            asked.file(config, people, telemetry).read()?
        };
        feeds.push(feed);
    }
    Ok(feeds)
}

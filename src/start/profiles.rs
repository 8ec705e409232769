//! Where the profiles of people are read, as `[[join]]` and the schema say together.

use super::parts::{PartAsked, PartFormat, Wanted, lookup};
use super::reading::{codec_limits, file_format};
use crate::config::{Config, Format, Join, Problem};
use crate::io::file::{Reading, StopFlag};
use crate::io::kafka::connection::Cluster;
use crate::io::profiles::{
    Feed, FileOfProfiles, PERSON, People, ProfilesError, Table, TopicOfProfiles, WholeFile, join,
};
use crate::telemetry::Telemetry;
use std::sync::Arc;
use throng_core::values::codebook::Codebook;
use throng_core::values::schema::{Attribute, Origin, Schema, segments};
use throng_core::values::subject::Subjects;
use throng_core::values::table::Batch;
use throng_formats::{Field, Unknown};

/// A join with its place in the configuration.
struct Asked<'a> {
    index: usize,
    join: &'a Join,
    attributes: Vec<usize>,
    schema: &'a Schema,
}

/// The joins in the order of their names, which is that of their numbers in the state.
pub fn in_order(config: &Config) -> Vec<&Join> {
    let mut joins: Vec<&Join> = config.join.iter().collect();
    joins.sort_by(|a, b| a.name.cmp(&b.name));
    joins
}

fn asked<'a>(config: &'a Config, schema: &'a Schema, join: &'a Join) -> Asked<'a> {
    let index = config.join.iter().position(|other| other.name == join.name).unwrap_or_default();
    Asked { index, join, attributes: schema.joined_by(&join.name), schema }
}

/// What is wrong with the joins and with the attributes that they bring.
pub fn problems(config: &Config, schema: &Schema, file: &str) -> Vec<Problem> {
    let mut found = Vec::new();
    for attribute in &schema.attributes {
        let unknown = attribute.from.join().filter(|name| config.join.iter().all(|join| join.name != *name));
        if let Some(name) = unknown {
            let message =
                format!("attribute {:?} of the schema is from the join {name:?}, and there is none", attribute.name);
            found.push(Problem::new(file, "join", message, format!("add a [[join]] with name = {name:?}")));
        }
    }
    for join in &config.join {
        let asked = asked(config, schema, join);
        if asked.attributes.is_empty() {
            let message = "no attribute of the schema that may leave comes from it".to_owned();
            let remedy = format!("set from = \"join:{}\" on those that it brings, or remove the join", join.name);
            found.push(Problem::new(file, asked.key("name"), message, remedy));
        }
        if join.topic.is_some() {
            found.extend(
                [asked.message_key(), asked.message_value()].iter().flat_map(|part| part.problems(config, file)),
            );
        }
    }
    found
}

impl Asked<'_> {
    /// A key of the configuration.
    fn key(&self, name: &str) -> String {
        format!("join[{}].{name}", self.index)
    }

    fn subject(&self) -> Option<&Attribute> {
        self.schema.subject.map(|subject| self.schema.attributes[subject].as_ref())
    }

    /// Where the person is named.
    fn person(&self) -> Field {
        let subject = self.subject();
        // A header, a timestamp or a topic is no place in a key or a row.
        // Nor is an element: a profile is of one person, and names it as the schema does.
        let place = subject.filter(|subject| matches!(subject.from, Origin::Value | Origin::Key));
        let of_element = place.filter(|subject| subject.elements.is_some());
        match (self.join.key.as_deref(), &self.join.topic) {
            (Some(key), _) if key.is_empty() || key.starts_with('/') => Field::at(segments(key)),
            (Some(column), _) => Field::flat(column),
            (None, Some(_)) if self.join.key_format.is_one_value() => Field::at(Vec::new()),
            (None, _) if of_element.is_some() => {
                Field::flat(of_element.map(|subject| subject.name.as_str()).unwrap_or_default())
            }
            (None, _) if self.is_flat() => Field::flat(&subject.map(Attribute::column).unwrap_or_default()),
            (None, Some(_)) => Field::at(place.map(Attribute::segments).unwrap_or_default()),
            (None, None) => match place.map(Attribute::segments).filter(|segments| !segments.is_empty()) {
                Some(pointer) => Field::at(pointer),
                None => Field::flat(&subject.map(|subject| subject.name.clone()).unwrap_or_default()),
            },
        }
    }

    fn is_flat(&self) -> bool {
        self.join.path.is_some() && self.join.format() == Format::Csv
    }

    fn attributes(&self) -> impl Iterator<Item = (usize, &Arc<Attribute>)> {
        self.attributes.iter().map(|a| &self.schema.attributes[*a]).enumerate().map(|(i, a)| (PERSON + 1 + i, a))
    }

    fn message_key(&self) -> PartAsked<'_> {
        let join = self.join;
        let name = "the person".to_owned();
        PartAsked {
            format: PartFormat::of_keys(join.key_format),
            format_key: self.key("key_format"),
            writer_schema: None,
            message: None,
            is_value: false,
            wanted: vec![Wanted { at: PERSON, name, field: self.person(), kind: None, optional: false }],
            unknown: Unknown::Drop,
        }
    }

    fn message_value(&self) -> PartAsked<'_> {
        let join = self.join;
        let wanted = |(at, a): (usize, &Arc<Attribute>)| Wanted {
            at,
            name: format!("attribute {:?}", a.name),
            field: Field::at(a.segments()),
            kind: Some(a.kind()),
            optional: a.optional,
        };
        PartAsked {
            format: PartFormat::of_values(join.format()),
            format_key: self.key("format"),
            writer_schema: None,
            message: None,
            is_value: true,
            wanted: self.attributes().map(wanted).collect(),
            unknown: Unknown::Drop,
        }
    }

    fn people(&self, subjects: &Subjects) -> People {
        People::new(subjects.clone(), self.attributes().map(|(_, a)| Arc::clone(a)).collect())
    }

    /// The file of `path`.
    fn file(&self, config: &Config, people: People, telemetry: Telemetry) -> FileOfProfiles {
        let join = self.join;
        let (fields, columns) = self.columns();
        let reading = Reading {
            format: file_format(join.format(), config.source.separator),
            fields,
            limits: codec_limits(config).0,
            unknown: Unknown::Drop,
            stop: StopFlag::default(),
        };
        let (name, path) = (join.name.clone(), join.path.clone().unwrap_or_default());
        FileOfProfiles { join: name, path, reading, columns, people, max_people: join.max_people, telemetry }
    }

    /// The columns of a file, and their names in messages.
    fn columns(&self) -> (Vec<Field>, Vec<String>) {
        let flat = self.is_flat();
        let field = |a: &Attribute| if flat { Field::flat(&a.column()) } else { Field::at(a.segments()) };
        let (mut fields, mut names) = (vec![self.person()], vec!["the person".to_owned()]);
        for (_, attribute) in self.attributes() {
            fields.push(field(attribute));
            names.push(format!("attribute {:?}", attribute.name));
        }
        (fields, names)
    }
}

/// Why the profiles are not read.
#[derive(Debug, thiserror::Error)]
pub enum NotRead {
    /// The configuration, or a file that it names.
    #[error("{} problem(s) in the joins", .0.len())]
    Problems(Vec<Problem>),
    /// The profiles themselves.
    #[error(transparent)]
    Profiles(#[from] ProfilesError),
}

/// The profiles of one join, all of them.
pub struct Profiles {
    /// The join.
    pub join: String,
    /// The attributes that they bring, by their places in the schema.
    pub attributes: Vec<usize>,
    /// Records that had no profile so far.
    pub unjoined: u64,
    table: Table,
}

impl Profiles {
    /// Sets the cells that they bring to `batch`.
    pub fn join(&mut self, batch: &mut Batch, books: &mut [Codebook]) {
        self.unjoined += join(&self.table, &self.attributes, batch, books, false).unjoined;
    }
}

/// Reads the profiles of all joins, in their order, for one data set at once: from files, in which each row must be read and each person
/// find room. `subjects` digests people as the records' are.
///
/// # Errors
/// What is wrong with the joins, or with their files.
pub fn read_whole(
    config: &Config,
    schema: &Schema,
    file: &str,
    subjects: Option<&Subjects>,
) -> Result<Vec<Profiles>, NotRead> {
    let mut problems = problems(config, schema, file);
    for (at, join) in config.join.iter().enumerate().filter(|(_, join)| join.topic.is_some()) {
        let message =
            format!("the profiles of {:?} are in a topic, and one data set at once is read from files", join.name);
        problems.push(Problem::new(file, format!("join[{at}].topic"), message, "name a file in path"));
    }
    if !problems.is_empty() {
        return Err(NotRead::Problems(problems));
    }
    let Some(subjects) = subjects else { return Ok(Vec::new()) };
    let mut read = Vec::new();
    for join in in_order(config) {
        let asked = asked(config, schema, join);
        let source = asked.file(config, asked.people(subjects), Telemetry::new(config.privacy.k, &[]));
        let (name, path) = (join.name.clone(), source.path.clone());
        let WholeFile { table, refused, first, full } = source.whole()?;
        if let Some((first, why)) = first {
            return Err(ProfilesError::Rows { join: name, path, rows: refused, first, why }.into());
        }
        if full {
            let message = format!("{} has profiles of more than {} people", path.display(), join.max_people);
            return Err(NotRead::Problems(vec![Problem::new(file, asked.key("max_people"), message, "raise it")]));
        }
        read.push(Profiles { join: name, attributes: asked.attributes, unjoined: 0, table });
    }
    Ok(read)
}

/// Begins to read the profiles of all joins, in their order. `subjects` digests people as the records' are; `cluster` has the topics.
pub fn read(
    config: &Config,
    schema: &Schema,
    file: &str,
    (subjects, cluster, telemetry): (&Subjects, &Cluster, &Telemetry),
) -> Result<Vec<Feed>, NotRead> {
    let problems = problems(config, schema, file);
    if !problems.is_empty() {
        return Err(NotRead::Problems(problems));
    }
    let one = |problem| NotRead::Problems(vec![problem]);
    let lookup = lookup(config, file, telemetry).map_err(one)?;
    let mut feeds = Vec::new();
    for join in in_order(config) {
        let asked = asked(config, schema, join);
        let people = asked.people(subjects);
        let (name, telemetry) = (join.name.clone(), telemetry.clone());
        let feed = if let Some(topic) = join.topic.clone() {
            let decoder = |part: PartAsked<'_>| part.decoder(config, lookup.as_ref(), file, &telemetry).map_err(one);
            let (key, value) = (decoder(asked.message_key())?, decoder(asked.message_value())?);
            let (cluster, max_people) = (cluster.clone(), join.max_people);
            TopicOfProfiles { join: name, cluster, topic, key, value, people, max_people, telemetry }.read()?
        } else {
            asked.file(config, people, telemetry).read()?
        };
        feeds.push(feed);
    }
    Ok(feeds)
}

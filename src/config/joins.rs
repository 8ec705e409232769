//! What `[[join]]` goes with.

use super::complaint::{Complaints, is_name};
use super::source::is_of_several;
use super::{Config, Join, SourceKind};
use std::collections::BTreeSet;
use std::path::Path;

/// Joins at most: the table of each is kept under a number of two bytes, and nobody has so many places of profiles.
const MOST: usize = 16;

/// Complaints about the joins.
pub(super) fn joins(config: &Config, found: &mut Complaints) {
    let joins = &config.join;
    found.unless(joins.len() <= MOST, "join", "these are too many", &format!("keep at most {MOST}"));
    let untrue = config.treatment.may_be_untruthful();
    let message = "cells of profiles are as they are when they leave, and treatments that alter values would be undone";
    let remedy = "choose treatments that generalize or suppress, or remove the joins";
    found.unless(joins.is_empty() || !untrue, "join", message, remedy);
    let mut names = BTreeSet::new();
    for (index, join) in joins.iter().enumerate() {
        let key = |name: &str| format!("join[{index}].{name}");
        found.unless(
            is_name(&join.name),
            &key("name"),
            "this is no name of a join",
            "use a-z, 0-9, '_' and '-', at most 64",
        );
        found.unless(names.insert(&join.name), &key("name"), "two joins have this name", "name each once");
        let one = join.topic.is_some() != join.path.is_some();
        found.unless(one, &key("topic"), "profiles are in a topic or in a file", "set one of topic and path");
        found.unless(join.max_people > 0, &key("max_people"), "nobody would have a profile", "give at least 1");
        match (&join.topic, &join.path) {
            (Some(_), None) => of_topic(config, join, &key, found),
            (None, Some(path)) => of_file(join, path, &key, found),
            _ => {}
        }
    }
}

fn of_topic(config: &Config, join: &Join, key: &dyn Fn(&str) -> String, found: &mut Complaints) {
    let kafka = config.source.kind == SourceKind::Kafka;
    let message = "profiles in a topic go with records in topics, and these come from a file";
    found.unless(kafka, &key("topic"), message, "write the profiles to a file and name it in path");
    let remedy = "set \"json\" or \"avro\", or remove the key";
    let message = "messages of a topic are not read in this format";
    found.unless(join.format().is_of_records(), &key("format"), message, remedy);
}

fn of_file(join: &Join, path: &Path, key: &dyn Fn(&str) -> String, found: &mut Complaints) {
    found.unless(!path.as_os_str().is_empty(), &key("path"), "no file is named", "name one");
    let dash = path == Path::new("-");
    found.unless(!dash, &key("path"), "standard input is read by the source alone", "name a file");
    let message = "profiles are read from one file, and this names a directory or a pattern";
    found.unless(!is_of_several(path), &key("path"), message, "name one file");
    let message = "a file is not read in this format";
    found.unless(join.format().is_of_files(), &key("format"), message, "set \"json\", \"csv\" or \"parquet\"");
    let whole = join.key.as_deref() == Some("");
    found.unless(!whole, &key("key"), "a row is no person: one of its columns names it", "name the column");
}

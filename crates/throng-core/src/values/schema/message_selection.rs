//! Schema keys for the topics of an attribute and for the records that are read.

use super::attribute::{Attribute, AttributeOrigin, AttributePlace, MessageSelection, Role, TopicPlace};
use super::attribute_keys::{INVALID_POINTER, element_depth, is_pointer};
use crate::values::table_reader::TableReader;
use std::collections::BTreeMap;

pub(super) fn read_selection(
    keys: &mut TableReader<'_>,
    role: Role,
    from: &AttributeOrigin,
    explode: Option<&str>,
) -> MessageSelection {
    let topics: Option<Vec<String>> = keys.optional("topics");
    let pointers: Option<BTreeMap<String, String>> = keys.optional("pointers");
    let only: Option<Vec<String>> = keys.optional("only");
    let given = [("topics", topics.is_some()), ("pointers", pointers.is_some()), ("only", only.is_some())];
    if from.join().is_some() {
        keys.report_present(&given, "a profile has no topic, and selects no records: remove the key");
    } else if !from.has_fields() {
        let message = format!("from = \"{}\" is taken as a whole: remove the key", from.name());
        keys.report_present(&given[1..2], &message);
    }
    if role == Role::Subject && topics.is_some() {
        keys.problem("topics", "records without a subject are not counted: read the subject from every topic");
    }
    for (key, list) in [("topics", &topics), ("only", &only)] {
        if list.as_ref().is_some_and(Vec::is_empty) {
            keys.problem(key, "the list is empty: add an entry, or remove the key");
        }
    }
    let topics = topics.unwrap_or_default();
    let mut places = Vec::new();
    for (topic, pointer) in pointers.unwrap_or_default() {
        if !is_pointer(&pointer) || pointer.is_empty() {
            keys.problem("pointers", INVALID_POINTER);
        } else if !topics.is_empty() && !topics.contains(&topic) {
            keys.problem("pointers", format!("topic {topic:?} is not in `topics`: add it there, or remove the entry"));
        }
        let place = AttributePlace::Pointer(pointer);
        let elements = element_depth(keys, "pointers", Some(&place), from, explode);
        places.push(TopicPlace { topic, place, elements });
    }
    MessageSelection { topics, places, only: only.unwrap_or_default() }
}

/// Returns true if both attributes read the same place of one topic, or of topics without an own place.
pub(super) fn share_place(one: &Attribute, other: &Attribute) -> bool {
    if one.from != other.from {
        return false;
    }
    let named = [one, other].into_iter().flat_map(|a| {
        let places = a.selection.places.iter().map(|place| &place.topic);
        a.selection.topics.iter().chain(places)
    });
    let in_all = one.selection.topics.is_empty() && other.selection.topics.is_empty();
    let in_one = |topic: &String| match (one.in_topic(topic), other.in_topic(topic)) {
        (Some(one), Some(other)) => one.segments() == other.segments(),
        _ => false,
    };
    (in_all && one.segments() == other.segments()) || named.into_iter().any(in_one)
}

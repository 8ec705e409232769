//! Forms of a release that a record schema allows: statistics over time besides single records.

use super::series::is_signal;
use crate::config::{Cohort, Config, Grouping, Plan, Release, Rows, Series};
use std::fmt;
use throng_core::values::schema::{Attribute, Changes, Role, Schema, Type};

/// Part that statistics over time need and the records lack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingPart {
    /// No attribute counts people.
    Subject,
    /// No attribute is an event time. Those named are dates or times that do not change within a person, by the record schema.
    Times(Vec<String>),
    /// No attribute is a signal. Those named are numbers that do not change from record to record, by the record schema.
    Numbers(Vec<String>),
}

/// Returns the part that statistics over time need and the records lack; none where they have all.
#[must_use]
pub fn missing_for_series(schema: &Schema) -> Option<MissingPart> {
    let has = |wanted: &dyn Fn(&Attribute) -> bool| schema.attributes.iter().any(|attribute| wanted(attribute));
    let names = |kinds: [Type; 2]| {
        let of_kind = schema.attributes.iter().filter(|a| kinds.contains(&a.kind()) && a.role.is_releasable());
        of_kind.map(|attribute| attribute.name.clone()).collect()
    };
    if schema.subject.is_none() {
        Some(MissingPart::Subject)
    } else if !has(&is_event_time) {
        Some(MissingPart::Times(names([Type::Date, Type::Timestamp])))
    } else if !has(&is_signal) {
        Some(MissingPart::Numbers(names([Type::Integer, Type::Float])))
    } else {
        None
    }
}

impl MissingPart {
    /// Attributes of the right type that the record schema excludes.
    #[must_use]
    pub fn excluded(&self) -> &[String] {
        match self {
            Self::Subject => &[],
            Self::Times(names) | Self::Numbers(names) => names,
        }
    }
}

impl fmt::Display for MissingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = || quoted(self.excluded());
        match self {
            Self::Subject => f.write_str("no column counts people (--subject COLUMN names one)"),
            Self::Times(names) if names.is_empty() => f.write_str("no column holds times of records"),
            Self::Times(_) => write!(
                f,
                "no column holds times of records: by the record schema {} does not change within a person (set changes = \"always\" where it does)",
                listed()
            ),
            Self::Numbers(names) if names.is_empty() => {
                f.write_str("no column holds numbers that change within a person")
            }
            Self::Numbers(_) => write!(
                f,
                "no column holds numbers that change within a person, by the record schema: {} (set changes = \"always\" where they do)",
                listed()
            ),
        }
    }
}

/// Names in a sentence; of many the first ones.
#[must_use]
pub fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// Names of the attributes that can be the event time.
pub fn event_times(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.attributes.iter().filter(|attribute| is_event_time(attribute)).map(|attribute| attribute.name.as_str())
}

/// Whether an attribute can be the event time: a date or time that differs between the records of a person.
fn is_event_time(attribute: &Attribute) -> bool {
    matches!(attribute.kind(), Type::Date | Type::Timestamp) && attribute.changes != Some(Changes::Never)
}

/// Returns the name of the event time where a configuration has to give it, since several attributes hold dates or times.
#[must_use]
pub fn event_time(schema: &Schema) -> Option<&str> {
    let moments = schema.attributes.iter().filter(|a| matches!(a.kind(), Type::Date | Type::Timestamp));
    if moments.count() < 2 {
        return None;
    }
    let candidates = schema.attributes.iter().filter(|attribute| is_event_time(attribute));
    candidates.min_by_key(|attribute| attribute.role != Role::Time).map(|attribute| attribute.name.as_str())
}

/// Returns the configuration with one daily series and nothing else; none where the records do not allow it.
#[must_use]
pub fn as_daily_series(config: &Config, schema: &Schema) -> Option<Config> {
    if missing_for_series(schema).is_some() {
        return None;
    }
    let mut config = config.clone();
    config.release = Release { fragments: false, ..config.release };
    config.series = vec![Series { name: "daily".to_owned(), ..Series::default() }];
    config.cohort = Cohort { time: event_time(schema).map(str::to_owned), ..config.cohort };
    config.sink.rows = Rows::Fragments;
    // No record leaves: groups of attributes are not chosen.
    config.plan = Plan { groups: Grouping::Given, shared: Vec::new(), prime: None, ..config.plan };
    (config.group, config.keep) = (Vec::new(), Vec::new());
    Some(config)
}

/// Returns the configuration with fragments and nothing else.
#[must_use]
pub fn as_fragments(config: &Config) -> Config {
    let mut config =
        Config { series: Vec::new(), release: Release { fragments: true, ..config.release }, ..config.clone() };
    if config.group.is_empty() {
        config.plan.groups = Grouping::Price;
    }
    config
}

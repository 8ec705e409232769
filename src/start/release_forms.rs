//! Release forms that a record schema allows.

use super::series_settings::is_signal;
use crate::config::{CohortConfig, Config, GroupSelection, PlanConfig, ReleaseConfig, RowContent, SeriesConfig};
use std::fmt;
use throng_core::values::schema::{Attribute, AttributeType, ChangeFrequency, Role, Schema};

/// Missing prerequisite of series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingPart {
    /// No attribute is the subject.
    Subject,
    /// No event time; the listed dates or times do not change within a subject.
    Times(Vec<String>),
    /// No signal; the listed numbers do not change between records.
    Numbers(Vec<String>),
}

/// Returns the first missing prerequisite of series.
#[must_use]
pub fn missing_for_series(schema: &Schema) -> Option<MissingPart> {
    let has = |wanted: &dyn Fn(&Attribute) -> bool| schema.attributes.iter().any(|attribute| wanted(attribute));
    let names = |kinds: [AttributeType; 2]| {
        let of_kind = schema.attributes.iter().filter(|a| kinds.contains(&a.kind()) && a.role.is_releasable());
        of_kind.map(|attribute| attribute.name.clone()).collect()
    };
    if schema.subject.is_none() {
        Some(MissingPart::Subject)
    } else if !has(&is_event_time) {
        Some(MissingPart::Times(names([AttributeType::Date, AttributeType::Timestamp])))
    } else if !has(&is_signal) {
        Some(MissingPart::Numbers(names([AttributeType::Integer, AttributeType::Float])))
    } else {
        None
    }
}

impl MissingPart {
    /// Returns attributes of the right type that the schema excludes.
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
            Self::Subject => f.write_str("no column identifies people (name one with --subject COLUMN)"),
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

/// Quotes names for a sentence; of many only the first.
#[must_use]
pub fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    let more = names.len().saturating_sub(SHOWN);
    if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
}

/// Returns the possible event times.
pub fn event_times(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.attributes.iter().filter(|attribute| is_event_time(attribute)).map(|attribute| attribute.name.as_str())
}

/// True for a date or time that may differ between records of a subject.
fn is_event_time(attribute: &Attribute) -> bool {
    matches!(attribute.kind(), AttributeType::Date | AttributeType::Timestamp)
        && attribute.changes != Some(ChangeFrequency::Never)
}

/// Returns the event time that a configuration must name among several.
#[must_use]
pub fn event_time(schema: &Schema) -> Option<&str> {
    let moments =
        schema.attributes.iter().filter(|a| matches!(a.kind(), AttributeType::Date | AttributeType::Timestamp));
    if moments.count() < 2 {
        return None;
    }
    let candidates = schema.attributes.iter().filter(|attribute| is_event_time(attribute));
    candidates.min_by_key(|attribute| attribute.role != Role::Time).map(|attribute| attribute.name.as_str())
}

/// Returns the configuration with one daily series and no fragments, if the schema allows it.
#[must_use]
pub fn as_daily_series(config: &Config, schema: &Schema) -> Option<Config> {
    if missing_for_series(schema).is_some() {
        return None;
    }
    let mut config = config.clone();
    config.release = ReleaseConfig { fragments: false, ..config.release };
    config.series = vec![SeriesConfig { name: "daily".to_owned(), ..SeriesConfig::default() }];
    config.cohort = CohortConfig { time: event_time(schema).map(str::to_owned), ..config.cohort };
    config.sink.rows = RowContent::Fragments;
    // Without fragments, no groups are chosen.
    config.plan = PlanConfig { groups: GroupSelection::Given, shared: Vec::new(), prime: None, ..config.plan };
    (config.group, config.keep) = (Vec::new(), Vec::new());
    Some(config)
}

/// Returns the configuration with fragments and without series.
#[must_use]
pub fn as_fragments(config: &Config) -> Config {
    let mut config =
        Config { series: Vec::new(), release: ReleaseConfig { fragments: true, ..config.release }, ..config.clone() };
    if config.group.is_empty() {
        config.plan.groups = GroupSelection::Price;
    }
    config
}

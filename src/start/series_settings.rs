//! Converts configured series to terms of a record schema.

use super::series_subtraction;
use crate::config::{Config, ConfigProblem, RecordFormat, SeriesConfig, SeriesCycle, SinkKind};
use throng_core::series::{
    AllSeriesTerms, CohortTerms, MAX_MOMENT_SIGNALS, MomentTerms, NoiseTerms, SeriesSignal, SeriesTerms, SlotCycle,
};
use throng_core::values::hierarchy::{Hierarchy, Ruler};
use throng_core::values::schema::{Attribute, AttributeType, ChangeFrequency, Role, Schema};

/// A cohort with too few active members retires after 14 days.
const COHORT_IDLE_MS: i64 = 14 * 86_400_000;
/// Of all subjects together: 1 GiB.
const MAX_HISTORIES: usize = 1 << 25;
/// Sums of squares stay finite.
const UNRANGED_BOUND: f64 = 1e100;
/// Required buckets with a value for each member of an atom.
const MIN_VALUES: u32 = 4;

/// Returns the terms of all series, if any.
///
/// # Errors
/// Fails for unknown attributes, wrong types, and a missing subject or event time.
pub fn series_terms(
    config: &Config,
    schema: &Schema,
    file: &str,
) -> Result<Option<AllSeriesTerms>, Vec<ConfigProblem>> {
    if config.series.is_empty() {
        return Ok(None);
    }
    let mut problems = Vec::new();
    let mut problem =
        |key: &str, message: String, remedy: &str| problems.push(ConfigProblem::new(file, key, message, remedy));
    if config.sink.kind == SinkKind::Kafka && config.sink.format() != RecordFormat::Json {
        let message = "rows of series are written as JSON, but fragments in another format".to_owned();
        problem("sink.format", message, "set sink.format = \"json\", or remove the series");
    }
    if schema.subject.is_none() {
        let message = "series count people, but the record schema has no subject".to_owned();
        problem("series", message, "give one attribute role = \"subject\" in the record schema, or remove the series");
    }
    let time = event_time(config, schema).unwrap_or_else(|message| {
        problem("cohort.time", message, "name an attribute of type date or timestamp in cohort.time");
        0
    });
    let strata: Vec<(usize, usize)> = config
        .cohort
        .strata
        .iter()
        .filter_map(|text| {
            stratum(text, schema).map_err(|(message, remedy)| problem("cohort.strata", message, &remedy)).ok()
        })
        .collect();
    let mut series = Vec::new();
    for (index, configured) in config.series.iter().enumerate() {
        match signals(configured, schema) {
            Ok(signals) if configured.moments.is_some() && !(2..=MAX_MOMENT_SIGNALS).contains(&signals.len()) => {
                let message =
                    format!("moments require 2 to {MAX_MOMENT_SIGNALS} signals, but these are {}", signals.len());
                problem(&format!("series[{index}].signals"), message, "name the signals of the model");
            }
            Ok(signals) => {
                for signal in
                    signals.iter().filter(|_| configured.epsilon_per_week.is_some()).filter(|of| !has_range(of))
                {
                    let message = format!("noise needs a range, but the hierarchy of {:?} has none", signal.name);
                    let remedy =
                        "give the attribute a hierarchy with min and max in the record schema, or name other signals";
                    problem(&format!("series[{index}].signals"), message, remedy);
                }
                series.push(terms_of(configured, signals));
            }
            Err((message, remedy)) => problem(&format!("series[{index}].signals"), message, remedy),
        }
    }
    if problems.is_empty() {
        problems = series_subtraction::problems(&series, file);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let crowd = config.privacy.required_subjects();
    let is_batch = config.is_job();
    let days = config.cohort.warm_up.as_secs().div_ceil(86_400);
    let cohorts = CohortTerms {
        crowd,
        colluders: config.privacy.colluders,
        size: config.cohort.size.unwrap_or(3 * crowd),
        warm_up_days: if is_batch { 0 } else { u32::try_from(days).unwrap_or(u32::MAX) },
        idle_ms: COHORT_IDLE_MS,
        strata_names: strata.iter().map(|(attribute, _)| schema.attributes[*attribute].name.clone()).collect(),
        strata,
        time,
        max_histories: MAX_HISTORIES,
        is_batch,
    };
    Ok(Some(AllSeriesTerms { cohorts, series }))
}

fn event_time(config: &Config, schema: &Schema) -> Result<usize, String> {
    let is_moment = |attribute: &Attribute| matches!(attribute.kind(), AttributeType::Date | AttributeType::Timestamp);
    if let Some(name) = &config.cohort.time {
        return match schema.position(name) {
            Some(at) if is_moment(&schema.attributes[at]) => Ok(at),
            Some(_) => Err(format!("attribute {name:?} is not a date or timestamp")),
            None => Err(format!("the schema has no attribute {name:?}")),
        };
    }
    let candidates = |role: Option<Role>| -> Vec<usize> {
        let moments = schema.attributes.iter().enumerate().filter(|(_, a)| is_moment(a));
        moments.filter(|(_, a)| role.is_none_or(|role| a.role == role)).map(|(at, _)| at).collect()
    };
    let by_role = candidates(Some(Role::Time));
    let found = if by_role.is_empty() { candidates(None) } else { by_role };
    match found.as_slice() {
        [one] => Ok(*one),
        [] => Err("series need an event time, but the schema has no date or timestamp".to_owned()),
        several => {
            let names: Vec<&str> = several.iter().map(|at| schema.attributes[*at].name.as_str()).collect();
            Err(format!("several attributes could be the event time: {}", names.join(", ")))
        }
    }
}

/// Parses `NAME` or `NAME:LEVEL`.
fn stratum(text: &str, schema: &Schema) -> Result<(usize, usize), (String, String)> {
    let (name, level) = match text.rsplit_once(':') {
        Some((name, level)) if level.bytes().all(|byte| byte.is_ascii_digit()) && schema.position(text).is_none() => {
            (name, level.parse().unwrap_or(usize::MAX))
        }
        _ => (text, 0),
    };
    let Some(at) = schema.position(name) else {
        return Err((format!("the schema has no attribute {name:?}"), "correct the name".to_owned()));
    };
    let attribute = &schema.attributes[at];
    if !attribute.role.is_releasable() {
        let message = format!("{name:?} has the role {}, which is never released", attribute.role.name());
        return Err((message, "name another attribute".to_owned()));
    }
    let top = attribute.hierarchy.levels() - 1;
    if level >= top {
        let message = format!("the hierarchy of {name:?} has no level {level} below \"*\"");
        return Err((message, format!("give a level from 0 to {}", top - 1)));
    }
    Ok((at, level))
}

/// Returns true for a releasable number that changes within a subject.
#[must_use]
pub fn is_signal(attribute: &Attribute) -> bool {
    matches!(attribute.kind(), AttributeType::Integer | AttributeType::Float)
        && attribute.role.is_releasable()
        && attribute.changes.is_none_or(|changes| changes == ChangeFrequency::Always)
}

fn signals(series: &SeriesConfig, schema: &Schema) -> Result<Vec<SeriesSignal>, (String, &'static str)> {
    let chosen: Vec<usize> = if series.signals.is_empty() {
        schema.attributes.iter().enumerate().filter(|(_, a)| is_signal(a)).map(|(at, _)| at).collect()
    } else {
        let mut chosen = Vec::new();
        for name in &series.signals {
            let Some(at) = schema.position(name) else {
                return Err((format!("the schema has no attribute {name:?}"), "correct the name"));
            };
            let attribute = &schema.attributes[at];
            if !matches!(attribute.kind(), AttributeType::Integer | AttributeType::Float)
                || !attribute.role.is_releasable()
            {
                let message = format!("attribute {name:?} is not a releasable number");
                return Err((message, "name attributes of type integer or float"));
            }
            chosen.push(at);
        }
        chosen
    };
    if chosen.is_empty() {
        return Err(("the schema has no number that changes within a person".to_owned(), "name signals"));
    }
    let signal = |at: usize| {
        let attribute = &schema.attributes[at];
        let intervals = match &attribute.hierarchy {
            Hierarchy::Ruler(ruler) => Some(ruler.clone()),
            _ => None,
        };
        let range = intervals.as_ref().map_or((-UNRANGED_BOUND, UNRANGED_BOUND), Ruler::domain_bounds);
        SeriesSignal { attribute: at, name: attribute.name.clone(), unit: attribute.unit.clone(), range, intervals }
    };
    Ok(chosen.into_iter().map(signal).collect())
}

fn has_range(signal: &SeriesSignal) -> bool {
    let (low, high) = signal.range;
    low < high && high < UNRANGED_BOUND && low > -UNRANGED_BOUND
}

fn terms_of(series: &SeriesConfig, signals: Vec<SeriesSignal>) -> SeriesTerms {
    let milliseconds = |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let cycle = series.cycle.map(|cycle| match cycle {
        SeriesCycle::HourOfDay => SlotCycle::HourOfDay,
        SeriesCycle::DayOfWeek => SlotCycle::DayOfWeek,
    });
    SeriesTerms {
        name: series.name.clone(),
        every_ms: milliseconds(series.every),
        every: duration_text(series.every),
        // A cycle slot occurs once per window; four weeks would be too long.
        min_values: if cycle.is_some() { 1 } else { MIN_VALUES },
        cycle,
        signals,
        lateness_ms: milliseconds(series.lateness()),
        pooled: series.pooled,
        moments: series.moments.map(|epoch| MomentTerms { every_ms: milliseconds(epoch), every: duration_text(epoch) }),
        noise: series.epsilon_per_week.map(|epsilon| NoiseTerms { epsilon }),
    }
}

/// `1d`, `4h`, `15m`.
fn duration_text(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(7 * 86_400, "w"), (86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let (size, unit) =
        units.into_iter().find(|(size, _)| seconds > 0 && seconds.is_multiple_of(*size)).unwrap_or((1, "s"));
    format!("{}{unit}", seconds / size)
}

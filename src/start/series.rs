//! The series of a configuration in terms of a record schema.

use super::subtraction;
use crate::anonymity::series::{
    CohortTerms, Cycle, MAX_MOMENT_SIGNALS, MomentTerms, NoiseTerms, SeriesTerms, Signal, Terms,
};
use crate::config::{Config, Format, Problem, Series, SeriesCycle, SinkKind};
use throng_core::values::hierarchy::{Hierarchy, Ruler};
use throng_core::values::schema::{Attribute, Changes, Role, Schema, Type};

/// Milliseconds after which a cohort is retired in which too few members are seen: 14 days.
const IDLE_MS: i64 = 14 * 86_400_000;
/// Histories of all people together: 1 GiB.
const MAX_HISTORIES: usize = 1 << 25;
/// Bound of values without a range: squares of values and sums of them stay finite.
const LARGEST: f64 = 1e100;
/// Buckets with a value that each member of an atom needs before the atom contributes.
const MIN_VALUES: u32 = 4;

/// Returns the terms of all series; none where the configuration has no series.
///
/// # Errors
/// Attributes that do not exist or are no numbers, no subject, no event time.
pub fn series_terms(config: &Config, schema: &Schema, file: &str) -> Result<Option<Terms>, Vec<Problem>> {
    if config.series.is_empty() {
        return Ok(None);
    }
    let mut problems = Vec::new();
    let mut problem =
        |key: &str, message: String, remedy: &str| problems.push(Problem::new(file, key, message, remedy));
    if config.sink.kind == SinkKind::Kafka && config.sink.format() != Format::Json {
        let message = "rows of series leave as JSON, and fragments are to leave in another format".to_owned();
        problem("sink.format", message, "set sink.format = \"json\", or remove the series");
    }
    if schema.subject.is_none() {
        let message = "series count people, and the record schema names no subject".to_owned();
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
                    format!("moments are of 2 to {MAX_MOMENT_SIGNALS} signals, and these are {}", signals.len());
                problem(&format!("series[{index}].signals"), message, "name the signals of the model");
            }
            Ok(signals) => {
                for signal in
                    signals.iter().filter(|_| configured.epsilon_per_week.is_some()).filter(|of| !has_range(of))
                {
                    let message = format!("noise needs a range, and the hierarchy of {:?} has none", signal.name);
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
        problems = subtraction::problems(&series, file);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let crowd = config.privacy.crowd();
    let is_batch = config.is_job();
    let days = config.cohort.warm_up.as_secs().div_ceil(86_400);
    let cohorts = CohortTerms {
        crowd,
        colluders: config.privacy.colluders,
        size: config.cohort.size.unwrap_or(3 * crowd),
        warm_up_days: if is_batch { 0 } else { u32::try_from(days).unwrap_or(u32::MAX) },
        idle_ms: IDLE_MS,
        strata_names: strata.iter().map(|(attribute, _)| schema.attributes[*attribute].name.clone()).collect(),
        strata,
        time,
        max_histories: MAX_HISTORIES,
        is_batch,
    };
    Ok(Some(Terms { cohorts, series }))
}

/// The attribute of the event time.
fn event_time(config: &Config, schema: &Schema) -> Result<usize, String> {
    let is_moment = |attribute: &Attribute| matches!(attribute.kind(), Type::Date | Type::Timestamp);
    if let Some(name) = &config.cohort.time {
        return match schema.position(name) {
            Some(at) if is_moment(&schema.attributes[at]) => Ok(at),
            Some(_) => Err(format!("attribute {name:?} is no date and no timestamp")),
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
        [] => Err("series need an event time, and the schema has no date and no timestamp".to_owned()),
        several => {
            let names: Vec<&str> = several.iter().map(|at| schema.attributes[*at].name.as_str()).collect();
            Err(format!("several attributes could be the event time: {}", names.join(", ")))
        }
    }
}

/// `NAME` or `NAME:LEVEL`.
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
        let message = format!("{name:?} has the role {}, which never leaves", attribute.role.name());
        return Err((message, "name another attribute".to_owned()));
    }
    let top = attribute.hierarchy.levels() - 1;
    if level >= top {
        let message = format!("the hierarchy of {name:?} has no level {level} below \"*\"");
        return Err((message, format!("give a level from 0 to {}", top - 1)));
    }
    Ok((at, level))
}

/// Whether an attribute is a number that may leave and changes within a person.
#[must_use]
pub fn is_signal(attribute: &Attribute) -> bool {
    matches!(attribute.kind(), Type::Integer | Type::Float)
        && attribute.role.is_releasable()
        && attribute.changes.is_none_or(|changes| changes == Changes::Always)
}

fn signals(series: &Series, schema: &Schema) -> Result<Vec<Signal>, (String, &'static str)> {
    let chosen: Vec<usize> = if series.signals.is_empty() {
        schema.attributes.iter().enumerate().filter(|(_, a)| is_signal(a)).map(|(at, _)| at).collect()
    } else {
        let mut chosen = Vec::new();
        for name in &series.signals {
            let Some(at) = schema.position(name) else {
                return Err((format!("the schema has no attribute {name:?}"), "correct the name"));
            };
            let attribute = &schema.attributes[at];
            if !matches!(attribute.kind(), Type::Integer | Type::Float) || !attribute.role.is_releasable() {
                let message = format!("attribute {name:?} is no number that may leave");
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
        let range = intervals.as_ref().map_or((-LARGEST, LARGEST), Ruler::range);
        Signal { attribute: at, name: attribute.name.clone(), unit: attribute.unit.clone(), range, intervals }
    };
    Ok(chosen.into_iter().map(signal).collect())
}

/// Whether the values of a signal are clipped to a range of the record schema.
fn has_range(signal: &Signal) -> bool {
    let (low, high) = signal.range;
    low < high && high < LARGEST && low > -LARGEST
}

fn terms_of(series: &Series, signals: Vec<Signal>) -> SeriesTerms {
    let milliseconds = |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    let cycle = series.cycle.map(|cycle| match cycle {
        SeriesCycle::HourOfDay => Cycle::HourOfDay,
        SeriesCycle::DayOfWeek => Cycle::DayOfWeek,
    });
    SeriesTerms {
        name: series.name.clone(),
        every_ms: milliseconds(series.every),
        every: spelled(series.every),
        // A slot of a cycle comes once a window: four windows would be a month of weeks.
        min_values: if cycle.is_some() { 1 } else { MIN_VALUES },
        cycle,
        signals,
        lateness_ms: milliseconds(series.lateness()),
        pooled: series.pooled,
        moments: series.moments.map(|epoch| MomentTerms { every_ms: milliseconds(epoch), every: spelled(epoch) }),
        noise: series.epsilon_per_week.map(|epsilon| NoiseTerms { epsilon }),
    }
}

/// A duration in its largest whole unit: `1d`, `4h`, `15m`.
fn spelled(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(7 * 86_400, "w"), (86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let (size, unit) =
        units.into_iter().find(|(size, _)| seconds > 0 && seconds.is_multiple_of(*size)).unwrap_or((1, "s"));
    format!("{}{unit}", seconds / size)
}

//! Sentences of `throng check --explain` on series.

use super::endpoint_phrases::{sink_phrase, source_phrase};
use crate::config::{Config, SinkKind};
use crate::start::checked_config::CheckedConfig;
use throng_core::series::{AllSeriesTerms, DELTA, SeriesTerms, SlotCycle};
use throng_core::values::schema::{Attribute, Role};

/// Title and sentences.
pub(super) type ExplanationSection = (&'static str, Vec<String>);

pub(super) fn explain_series_only(checked: &CheckedConfig, terms: &AllSeriesTerms) -> Vec<ExplanationSection> {
    let attributes = &checked.schema.attributes;
    let of_all = attributes.iter().enumerate().map(|(at, attribute)| {
        published_statistics(terms, at, attribute).unwrap_or_else(|| match attribute.role {
            Role::Identifier => format!("{} is never released: the schema declares it an identifier.", attribute.name),
            Role::Subject => {
                format!(
                    "{} is never released: it distinguishes people, and is kept as a keyed digest only.",
                    attribute.name
                )
            }
            _ => format!("{} is not released: no series uses it.", attribute.name),
        })
    });
    vec![
        ("Source and destination", describe_series_flow(checked, terms)),
        ("Treatment of each attribute", of_all.collect()),
        ("Guarantees at every moment", guarantees(checked, terms)),
        ("Attackers", adversaries(&checked.config)),
        ("Not guaranteed", limits(checked, terms)),
    ]
}

/// Series next to fragments.
pub(super) fn series_sections(checked: &CheckedConfig, terms: &AllSeriesTerms) -> Vec<ExplanationSection> {
    let attributes = checked.schema.attributes.iter().enumerate();
    let published = attributes.filter_map(|(at, attribute)| published_statistics(terms, at, attribute));
    vec![
        ("Released in series", terms.series.iter().map(describe_series_rows).chain(published).collect()),
        ("Guarantees of series", guarantees(checked, terms)),
        ("Not guaranteed for series", limits(checked, terms)),
    ]
}

fn describe_series_flow(checked: &CheckedConfig, terms: &AllSeriesTerms) -> Vec<String> {
    let CheckedConfig { config, schema, .. } = checked;
    let what = match config.sink.kind {
        SinkKind::None => "They are only measured: nothing is released".to_owned(),
        _ => format!("Statistics of cohorts, groups of people, {}", sink_phrase(config)),
    };
    let mut said = vec![format!(
        "Records of the schema {:?} are read from {}. {what}. No record of a single person is released (release.fragments = false).",
        schema.name,
        source_phrase(config)
    )];
    if let Some(subject) = schema.subject {
        said.push(format!(
            "Records with the same {:?} belong to one person: every number below counts people, however many records each of them sends.",
            schema.attributes[subject].name
        ));
    }
    said.push(format!(
        "A cohort has about {} people, who stay together. Its members are drawn, and no row names them.",
        terms.cohorts.size
    ));
    said.extend(terms.series.iter().map(describe_series_rows));
    said
}

fn describe_series_rows(series: &SeriesTerms) -> String {
    let (name, every) = (&series.name, &series.every);
    if series.noise.is_some() {
        return format!(
            "Series {name:?} has one row per {every} and signal: number of people and mean over all people, with noise."
        );
    }
    let whose = match (series.pooled, &series.moments) {
        (true, _) => "all cohorts together",
        (false, None) => "each cohort, and one for all cohorts together",
        (false, Some(_)) => "each cohort",
    };
    if let Some(moments) = &series.moments {
        return format!(
            "Series {name:?} publishes the means and covariances of its signals for {whose} once per {}, computed over buckets of {every}. It has no rows of buckets.",
            moments.every
        );
    }
    let slots = match series.cycle {
        None => "",
        Some(SlotCycle::HourOfDay) => ", hour of the day",
        Some(SlotCycle::DayOfWeek) => ", day of the week",
    };
    format!(
        "Series {name:?} has one row per {every}{slots} and signal for {whose}: number of people, mean, deviation, and quartiles where there are enough people."
    )
}

/// `None` if no series uses the attribute.
fn published_statistics(terms: &AllSeriesTerms, at: usize, attribute: &Attribute) -> Option<String> {
    let name = &attribute.name;
    let mut said = Vec::new();
    let with_it = terms.series.iter().filter(|series| series.signals.iter().any(|signal| signal.attribute == at));
    let names: Vec<String> = with_it.clone().map(|series| format!("{:?}", series.name)).collect();
    if let Some(signal) = with_it.flat_map(|series| &series.signals).find(|signal| signal.attribute == at) {
        let range = match &signal.intervals {
            Some(_) => {
                format!(" A value outside {} to {} counts as the nearer end of that range.", signal.range.0, signal.range.1)
            }
            None => {
                " It has no range (min and max of a hierarchy): rows can be withheld because of one person with extreme values."
                    .to_owned()
            }
        };
        said.push(format!(
            "{name} is released as a statistic of people (series {}), never as a single value.{range}",
            names.join(", ")
        ));
    }
    if terms.cohorts.time == at {
        said.push(format!("{name} decides the bucket of a record: only the start of a bucket is released."));
    }
    if let Some((_, level)) = terms.cohorts.strata.iter().find(|(stratum, _)| *stratum == at) {
        said.push(format!(
            "{name} is released as the label of a stratum, at level {level} of its hierarchy: all people of a cohort have the same label."
        ));
    }
    (!said.is_empty()).then(|| said.join(" "))
}

fn guarantees(checked: &CheckedConfig, terms: &AllSeriesTerms) -> Vec<String> {
    let crowd = terms.cohorts.crowd;
    let (mut said, mut sets) = (Vec::new(), false);
    for series in &terms.series {
        match &series.noise {
            Some(noise) => said.push(format!(
                "Series {:?} is differentially private for one person and one week (ε = {}, δ = {DELTA}): its rows are almost as likely without the records of any one person, for any knowledge of a reader about all others.",
                series.name, noise.epsilon
            )),
            None => sets = true,
        }
    }
    if sets {
        said.push(format!(
            "No combination of published sums isolates fewer than {crowd} people: values that do not change within a person cannot be computed for fewer. A separate check recounts every set before its release; if it disagrees, nothing is released and the run stops."
        ));
        said.push(format!(
            "A row is released only where at least {crowd} members of its set sent a value in its bucket. No bucket is published twice or revised."
        ));
        said.push(
            "A reader who knows the members of a cohort but none of their values attributes a history to the right member with a probability of at most one divided by their number."
                .to_owned(),
        );
        said.push(format!(
            "Where one or two people dominate a sum, no mean is released: the shares of intervals are released if every interval with people has at least {crowd} of them, and otherwise nothing."
        ));
    }
    if terms.series.iter().any(|series| series.moments.is_some()) {
        said.push("In moments, each person has the same weight. An epoch includes only people who have at least 4 buckets with a value of every signal: no published number depends on one bucket of a person who has fewer.".to_owned());
    }
    if !checked.config.release.fragments {
        said.push(
            "Every record is accounted for: suppressed as a record (no single record is released), held, dead-lettered, or dropped as empty."
                .to_owned(),
        );
    }
    said
}

fn adversaries(config: &Config) -> Vec<String> {
    let colluders = match config.privacy.colluders {
        0 => "Not covered: members of a cohort who combine their knowledge of themselves, and an attacker who sends records of invented people (privacy.colluders = 0).".to_owned(),
        some => format!(
            "Also covered: up to {some} members of a set who combine their knowledge or are invented by an attacker (privacy.colluders)."
        ),
    };
    vec![
        "Covered: anyone who reads every row and sees the time of its release, and knows this program, its configuration and the members of every cohort, but not the secret, the state directory or the lineage file.".to_owned(),
        colluders,
    ]
}

fn limits(checked: &CheckedConfig, terms: &AllSeriesTerms) -> Vec<String> {
    let mut said = vec![
        "The presence of a person is not hidden: a reader who has the values of a person in many buckets can find their cohort.".to_owned(),
        "The difference of neighbouring rows contains the change of one member. This is measured (throng attack) and not bounded.".to_owned(),
        "A fact that is true of a whole cohort is known of each member. A quartile is the mean of a few members, selected by their order.".to_owned(),
    ];
    let signals = terms.series.iter().flat_map(|series| &series.signals).map(|signal| signal.attribute);
    if signals.collect::<std::collections::BTreeSet<_>>().len() > 1 {
        said.push("Signals that nearly determine each other, such as steps and distance, are one signal for an attacker and two for throng, and a signal that is a sum of others is not recognized: publish one of them.".to_owned());
    }
    if terms.series.iter().any(|series| series.moments.is_some()) {
        said.push("The change of one person's mean between two epochs of moments can be estimated if all others of the cohort are steady.".to_owned());
    }
    if terms.series.iter().any(|series| series.cycle.is_some()) && terms.series.len() > 1 {
        said.push("The level of a person who is for many weeks the only one with values in one hour of the day can be estimated if a curve is published together with days.".to_owned());
    }
    said.push("Other data sets about the same people are not considered. Another job over the same people is another release unless both share one state (state.path): nothing is promised about their difference.".to_owned());
    let all_noise = terms.series.iter().all(|series| series.noise.is_some());
    if terms.series.iter().any(|series| series.noise.is_some()) {
        said.push("The privacy budget of noise is for one week: several weeks of a person add up.".to_owned());
    }
    if !all_noise {
        said.push("Without noise (epsilon_per_week) this is not differential privacy. Whether the release is anonymous in the legal sense is a judgement that depends on these limits and on the recipients.".to_owned());
    }
    if !checked.config.release.fragments && !checked.protections.is_empty() {
        said.push("[[privacy.model]] applies to fragments: it changes nothing in series.".to_owned());
    }
    said
}

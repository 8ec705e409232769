//! Knowledge of a consumer about subjects.

use super::form_comparison::{MeasuredForm, ReleaseFormKind};
use crate::cli::text_format;
use serde::Serialize;
use std::collections::BTreeSet;
use throng_core::plan::GroupShape;
use throng_core::series::{AllSeriesTerms, SeriesTerms};
use throng_core::values::schema::Schema;
use throng_eval::series::SignalRows;

const MAX_JOINED_NAMES: usize = 6;
const MAX_DESCRIBED_GROUPS: usize = 4;

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ConsumerKnowledge {
    /// Endings of "a consumer can learn …".
    pub can_learn: Vec<String>,
    /// Endings of "a consumer cannot learn …".
    pub cannot_learn: Vec<String>,
    /// Signals without rows, one sentence per series.
    pub no_rows: Vec<String>,
}

impl ConsumerKnowledge {
    /// Describes fragment groups and series.
    pub fn from_forms(
        schema: &Schema,
        fragments: Option<&[GroupShape]>,
        series: Option<&AllSeriesTerms>,
        forms: &[MeasuredForm],
    ) -> Self {
        let mut all = Self::default();
        if let Some(terms) = series {
            let form = forms.iter().find(|form| form.is_configured && form.form == ReleaseFormKind::Series);
            all.add_series(terms, form.map_or(&[][..], |form| &form.signals));
            all.add_series_limits(schema, terms, fragments.is_some());
            if let Some(ratio) = form.and_then(|form| form.usefulness.error_ratio) {
                all.can_learn.push(format!(
                    "population means with an error of {ratio:.2} of their sampling error (median over days and signals)"
                ));
            }
        }
        if let Some(shapes) = fragments {
            all.add_fragments(schema, shapes);
        }
        all
    }

    /// Without `rows`, nothing was released.
    fn add_series(&mut self, terms: &AllSeriesTerms, rows: &[SignalRows]) {
        let has_rows = |series: &str, signal: &str| {
            rows.iter().any(|of| of.rows > 0 && of.series == series && of.signal == signal)
        };
        for series in &terms.series {
            let names = series.signals.iter().map(|signal| signal.name.as_str());
            let (shown, missing): (Vec<&str>, Vec<&str>) = names.partition(|name| has_rows(&series.name, name));
            if !shown.is_empty() {
                self.can_learn.push(series_sentence(terms, series, &join_limited_names(shown.into_iter())));
            }
            if !missing.is_empty() {
                self.no_rows.push(missing_rows_sentence(terms, series, &missing, rows));
            }
        }
    }

    fn add_series_limits(&mut self, schema: &Schema, terms: &AllSeriesTerms, has_fragments: bool) {
        for series in &terms.series {
            if let Some(moments) = &series.moments {
                let signals = join_limited_names(series.signals.iter().map(|signal| signal.name.as_str()));
                self.cannot_learn.push(format!(
                    "how {signals} change from {} to {} (a series with moments publishes epochs of {} only)",
                    series.every, series.every, moments.every
                ));
            }
        }
        let several = terms.series.iter().map(|series| series.signals.len()).sum::<usize>() > 1;
        let nested = if several {
            " from one or two signals (do not name three signals of which one is the sum of the others)"
        } else {
            ""
        };
        self.cannot_learn
            .push(format!("the value of a single person{nested}, the members of a cohort, and single records"));
        if has_fragments {
            return;
        }
        let signals = terms.series.iter().flat_map(|series| series.signals.iter().map(|signal| signal.attribute));
        let strata = terms.cohorts.strata.iter().map(|(attribute, _)| *attribute);
        let shown: BTreeSet<usize> = signals.chain(strata).chain([terms.cohorts.time]).collect();
        let hidden = schema
            .attributes
            .iter()
            .enumerate()
            .filter(|(at, attribute)| attribute.role.is_releasable() && !shown.contains(at));
        let hidden: Vec<&str> = hidden.map(|(_, attribute)| attribute.name.as_str()).collect();
        if !hidden.is_empty() {
            self.cannot_learn.push(format!(
                "anything about {} (cohort.strata divides cohorts by such attributes)",
                join_limited_names(hidden.into_iter())
            ));
        }
    }

    fn add_fragments(&mut self, schema: &Schema, shapes: &[GroupShape]) {
        let name = |a: usize| schema.attributes[a].name.as_str();
        for shape in shapes.iter().take(MAX_DESCRIBED_GROUPS) {
            let attributes = shape.without_ladder().attributes();
            let together = if attributes.len() > 1 { ", and which of their values occur together" } else { "" };
            self.can_learn.push(format!(
                "the values of {} in the released records{together}",
                join_limited_names(attributes.into_iter().map(name))
            ));
        }
        if shapes.len() > MAX_DESCRIBED_GROUPS {
            let more = (shapes.len() - MAX_DESCRIBED_GROUPS) as u64;
            self.can_learn.push(format!("the same for {}", text_format::counted(more, "more group")));
        }
        if shapes.len() > 1 {
            self.cannot_learn.push("which values of different groups belong to one record".to_owned());
        }
        if schema.subject.is_some() {
            self.cannot_learn.push("the history of a person: lines of one person are not linked".to_owned());
        }
    }

    /// Formats wrapped lines.
    pub fn learning_text(&self) -> String {
        let part = |title: &str, sentences: &[String]| {
            let lines: String = sentences.iter().map(|sentence| text_format::wrap_text("  - ", sentence)).collect();
            if lines.is_empty() { lines } else { format!("{title}\n{lines}") }
        };
        let missing: String = self.no_rows.iter().map(|sentence| text_format::wrap_text("", sentence)).collect();
        part("a consumer can learn:", &self.can_learn)
            + &missing
            + &part("a consumer cannot learn:", &self.cannot_learn)
    }
}

/// Ending of "a consumer can learn …" for these signals.
fn series_sentence(terms: &AllSeriesTerms, series: &SeriesTerms, signals: &str) -> String {
    if let Some(noise) = series.noise {
        return format!(
            "for every bucket of {}: number of people and mean of {signals} over all people, with noise (ε = {} per person and week)",
            series.every, noise.epsilon
        );
    }
    let strata = match terms.cohorts.strata_names.as_slice() {
        [] => String::new(),
        names => format!(", separately by {}", join_limited_names(names.iter().map(String::as_str))),
    };
    if let Some(moments) = &series.moments {
        let whose = if series.pooled { "all cohorts" } else { "each cohort" };
        return format!(
            "for every epoch of {}: means and covariances of {signals} in {whose}{strata}, for linear models in which each person has weight one",
            moments.every
        );
    }
    let whose = if series.pooled {
        "all cohorts together".to_owned()
    } else {
        format!("each cohort of about {} people and in all cohorts together", terms.cohorts.size)
    };
    format!("for every bucket of {}: mean, deviation and quartiles of {signals} in {whose}{strata}", series.every)
}

/// Names signals without rows, the people with their values, and the number that rows need.
fn missing_rows_sentence(
    terms: &AllSeriesTerms,
    series: &SeriesTerms,
    missing: &[&str],
    rows: &[SignalRows],
) -> String {
    let described = missing.iter().take(MAX_JOINED_NAMES).map(|name| {
        let of = rows.iter().find(|of| of.series == series.name && of.signal == *name);
        let people = of.map_or_else(String::new, |of| format!(" (values of {})", text_format::people(of.people)));
        text_format::sanitize_text(name) + &people
    });
    let mut names = described.collect::<Vec<_>>().join(", ");
    if missing.len() > MAX_JOINED_NAMES {
        names += &format!(" and {} more", missing.len() - MAX_JOINED_NAMES);
    }
    let of = if terms.series.len() > 1 { format!(" of series {}", series.name) } else { String::new() };
    let (crowd, least) = (terms.cohorts.crowd, series.min_values);
    let need = if series.noise.is_some() {
        format!("{crowd} people with a value in its bucket")
    } else if series.moments.is_some() {
        format!("{crowd} people of a cohort who have values of all signals in at least {least} buckets each")
    } else {
        format!("{crowd} people of a cohort who have at least {least} values each")
    };
    format!("no rows{of} in this trial: {names}; a row needs {need}")
}

/// Shortens a long list.
fn join_limited_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(text_format::sanitize_text).collect();
    let shown = names.iter().take(MAX_JOINED_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_JOINED_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::series::{CohortTerms, DAY_MS, SeriesSignal};

    fn terms(signals: &[&str]) -> AllSeriesTerms {
        let signal = |name: &&str| SeriesSignal {
            attribute: 0,
            name: (*name).to_owned(),
            unit: None,
            range: (0.0, 1.0),
            intervals: None,
        };
        let series = SeriesTerms {
            name: "daily".to_owned(),
            every_ms: DAY_MS,
            every: "1d".to_owned(),
            cycle: None,
            signals: signals.iter().map(signal).collect(),
            lateness_ms: 0,
            pooled: false,
            min_values: 4,
            moments: None,
            noise: None,
        };
        let cohorts = CohortTerms {
            crowd: 5,
            colluders: 0,
            size: 15,
            warm_up_days: 0,
            idle_ms: DAY_MS,
            strata: Vec::new(),
            strata_names: Vec::new(),
            time: 1,
            max_histories: 1,
            is_batch: true,
        };
        AllSeriesTerms { cohorts, series: vec![series] }
    }

    fn rows(signal: &str, rows: u64, people: u64) -> SignalRows {
        SignalRows { series: "daily".to_owned(), signal: signal.to_owned(), rows, people }
    }

    #[test]
    fn signals_without_rows_cannot_be_learned() {
        let mut known = ConsumerKnowledge::default();
        let counts = [rows("steps", 40, 71), rows("spo2", 0, 28), rows("scl", 0, 1)];
        known.add_series(&terms(&["steps", "spo2", "scl"]), &counts);
        assert_eq!(known.can_learn.len(), 1);
        assert!(known.can_learn[0].contains("quartiles of steps in each cohort"), "{:?}", known.can_learn);
        let missing = "no rows in this trial: spo2 (values of 28 people), scl (values of 1 person); a row needs 5 people of a cohort who have at least 4 values each";
        assert_eq!(known.no_rows, [missing]);
        assert!(known.learning_text().contains("\nno rows in this trial: spo2"), "{}", known.learning_text());
    }

    #[test]
    fn release_without_rows_teaches_nothing() {
        let mut known = ConsumerKnowledge::default();
        known.add_series(&terms(&["steps"]), &[]);
        assert!(known.can_learn.is_empty() && known.no_rows.len() == 1, "{known:?}");
    }
}

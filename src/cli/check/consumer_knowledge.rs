//! Knowledge of a consumer about subjects.

use super::form_comparison::{MeasuredForm, ReleaseFormKind};
use crate::cli::text_format;
use serde::Serialize;
use std::collections::BTreeSet;
use throng_core::plan::GroupShape;
use throng_core::series::{AllSeriesTerms, SeriesTerms};
use throng_core::values::schema::Schema;

const MAX_JOINED_NAMES: usize = 6;
const MAX_DESCRIBED_GROUPS: usize = 4;

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ConsumerKnowledge {
    /// Endings of "a consumer can learn …".
    pub can_learn: Vec<String>,
    /// Endings of "a consumer cannot learn …".
    pub cannot_learn: Vec<String>,
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
            all.add_series(schema, terms, fragments.is_some());
            let form = forms.iter().find(|form| form.is_configured && form.form == ReleaseFormKind::Series);
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

    fn add_series(&mut self, schema: &Schema, terms: &AllSeriesTerms, has_fragments: bool) {
        let strata = match terms.cohorts.strata_names.as_slice() {
            [] => String::new(),
            names => format!(", separately by {}", join_limited_names(names.iter().map(String::as_str))),
        };
        let size = terms.cohorts.size;
        let learn = |series: &SeriesTerms| {
            let signals = join_limited_names(series.signals.iter().map(|signal| signal.name.as_str()));
            if let Some(noise) = series.noise {
                return format!(
                    "for every bucket of {}: number of people and mean of {signals} over all people, with noise (ε = {} per person and week)",
                    series.every, noise.epsilon
                );
            }
            let whose = if series.pooled {
                "all cohorts together".to_owned()
            } else {
                format!("each cohort of about {size} people and in all cohorts together")
            };
            match &series.moments {
                None => format!(
                    "for every bucket of {}: mean, deviation and quartiles of {signals} in {whose}{strata}",
                    series.every
                ),
                Some(moments) => {
                    let whose = if series.pooled { "all cohorts" } else { "each cohort" };
                    format!(
                        "for every epoch of {}: means and covariances of {signals} in {whose}{strata}, for linear models in which each person has weight one",
                        moments.every
                    )
                }
            }
        };
        self.can_learn.extend(terms.series.iter().map(learn));
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
            self.can_learn.push(format!("the same for {} more groups", shapes.len() - MAX_DESCRIBED_GROUPS));
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
        part("a consumer can learn:", &self.can_learn) + &part("a consumer cannot learn:", &self.cannot_learn)
    }
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

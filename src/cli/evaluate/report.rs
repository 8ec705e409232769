//! Results of an evaluation.

use crate::cli::text_format::{counted, number, percent};
use serde::Serialize;
use throng_eval::learning::LearningScores;
use throng_eval::quality::{GroupQuality, ReleaseQuality};
use throng_eval::queries::QueryErrors;
use throng_eval::risk::GroupRisk;
use throng_eval::series::{MomentModel, ReleaseUtility, SeriesQuality, SignalQuality, StratumContrast};

/// Main figures per form.
#[derive(Serialize)]
pub struct UsefulnessByForm {
    /// Series; none if absent or not measurable.
    pub series: Option<ReleaseUtility>,
    /// Fragments; none if absent or without a lineage.
    pub fragments: Option<ReleaseUtility>,
}

/// Result of an evaluation.
#[derive(Serialize)]
pub struct EvaluationReport {
    /// Represented share, and error of a daily mean.
    pub usefulness: UsefulnessByForm,
    /// Measures per signal, if `usefulness` has series.
    pub series: Option<SeriesQuality>,
    /// Linear models from moments.
    pub models: Vec<MomentModel>,
    /// Measures of the fragments, if released.
    #[serde(flatten)]
    pub fragments: Option<FragmentEvaluation>,
}

/// Measures of fragments.
#[derive(Serialize)]
pub struct FragmentEvaluation {
    /// k of the configuration.
    pub k: usize,
    /// Unreadable records.
    pub rejected: u64,
    /// Utility of the lines.
    pub quality: ReleaseQuality,
    /// Risk per group.
    pub risk: Vec<GroupRisk>,
    /// Errors of counts per width.
    pub queries: Vec<QueryErrors>,
    /// Learning results per target.
    pub learning: Vec<LearningScores>,
}

/// Formats with three decimals.
pub fn three_decimals(value: f64) -> String {
    // The sum of no numbers is -0.
    format!("{:.3}", value + 0.0)
}

impl UsefulnessByForm {
    /// Column heads of [`rows`](Self::rows).
    pub const HEADS: [&str; 4] =
        ["release", "people represented", "records represented", "error of a daily mean ÷ its sampling error"];

    /// Note on unreadable records, or "".
    pub fn unreadable_note(&self) -> String {
        match [self.series, self.fragments].into_iter().flatten().map(|of| of.unreadable).max() {
            None | Some(0) => String::new(),
            Some(unreadable) => format!(
                "{} could not be read and counts as not represented: see the dead letters of the run\n",
                counted(unreadable, "record")
            ),
        }
    }

    /// Rows, one per form.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let row = |(form, of): (&str, Option<ReleaseUtility>)| {
            let of = of?;
            let share = |part: u64, all: u64| percent(part as f64 / all.max(1) as f64);
            Some(vec![
                form.to_owned(),
                format!("{} of {}", number(of.people_represented), number(of.people)),
                format!(
                    "{} ({} of {})",
                    share(of.records_represented, of.records),
                    number(of.records_represented),
                    number(of.records)
                ),
                of.error_ratio.map_or_else(|| "not computable".to_owned(), |ratio| format!("{ratio:.2}")),
            ])
        };
        [("series", self.series), ("fragments", self.fragments)].into_iter().filter_map(row).collect()
    }
}

/// `-` for moments, which have no rows of buckets.
fn ratio_or_placeholder(signal: &SignalQuality, value: Option<f64>) -> String {
    let unknown = if signal.epochs.is_some() { "-" } else { "?" };
    value.map_or_else(|| unknown.to_owned(), |value| format!("{value:.2}"))
}

/// Note on signals of moments, which lack figures.
pub fn moments_note(of: &SeriesQuality) -> Option<&'static str> {
    of.signals.iter().any(|signal| signal.epochs.is_some()).then_some(
        "A series with moments publishes epochs and no rows of buckets: no error or correlation over buckets. Its linear models are \
         compared with those of the records by --target SIGNAL",
    )
}

/// Column heads of [`signal_rows`].
pub const SIGNAL_HEADS: [&str; 6] =
    ["series", "signal", "cells represented", "buckets", "error ÷ sampling error", "correlation"];

/// Rows of signals; `spelled` formats names.
pub fn signal_rows(of: &SeriesQuality, spelled: impl Fn(&str) -> String) -> Vec<Vec<String>> {
    let row = |signal: &SignalQuality| {
        vec![
            spelled(&signal.series),
            spelled(&signal.signal),
            percent(signal.cells_represented as f64 / signal.cells.max(1) as f64),
            match signal.epochs {
                Some(epochs) => counted(epochs, "epoch"),
                None => number(signal.population.len() as u64),
            },
            ratio_or_placeholder(signal, signal.error_ratio),
            ratio_or_placeholder(signal, signal.correlation),
        ]
    };
    of.signals.iter().map(row).collect()
}

/// Column heads of [`contrast_rows`].
pub const CONTRAST_HEADS: [&str; 7] = [
    "series",
    "signal",
    "strata",
    "buckets",
    "published difference",
    "true difference",
    "its sampling error in a bucket",
];

/// Rows of contrasts; `spelled` formats names.
pub fn contrast_rows(of: &SeriesQuality, spelled: impl Fn(&str) -> String) -> Vec<Vec<String>> {
    let row = |contrast: &StratumContrast| {
        let [one, other] = contrast.strata.each_ref().map(|labels| labels.join(" "));
        let figures = [contrast.published, contrast.actual, contrast.sampling_error].map(|value| format!("{value:.3}"));
        let names = [spelled(&contrast.series), spelled(&contrast.signal), spelled(&format!("{one} − {other}"))];
        names.into_iter().chain([number(contrast.buckets)]).chain(figures).collect()
    };
    of.contrasts.iter().map(row).collect()
}

impl FragmentEvaluation {
    /// Utility: name, value of the lines, value of all records.
    pub fn worth_rows(&self) -> [[String; 3]; 5] {
        let quality = &self.quality;
        let (information, of_all) = (quality.pairwise_information, quality.pairwise_information_of_all);
        [
            ("mean loss (0 best)", three_decimals(quality.loss), three_decimals(quality.loss_of_all)),
            ("pairwise information (1 best)", three_decimals(information), three_decimals(of_all)),
            ("exact cells", percent(quality.exact), String::new()),
            ("altered cells (distortion)", percent(quality.distortion), String::new()),
            ("data score, of the original's", String::new(), three_decimals(quality.data_score)),
        ]
        .map(|(name, lines, all)| [name.to_owned(), lines, all])
    }

    /// Column heads of [`attribute_rows`](Self::attribute_rows).
    pub const ATTRIBUTE_HEADS: [&str; 7] =
        ["attribute", "group", "loss", "of all", "exact", "bits hidden", "falsified"];

    /// Rows of attributes; `spelled` formats names.
    pub fn attribute_rows(&self, spelled: impl Fn(&str) -> String) -> impl Iterator<Item = Vec<String>> {
        self.quality.attributes.iter().map(move |a| {
            let falsified = if a.falsified == 0 { String::new() } else { number(a.falsified) };
            let (names, bits) = ([&a.attribute, &a.group].map(|name| spelled(name)), format!("{:.2}", a.bits_hidden));
            let figures = [three_decimals(a.loss), three_decimals(a.loss_of_all), percent(a.exact), bits, falsified];
            names.into_iter().chain(figures).collect()
        })
    }

    /// Rows of risk per group; `spelled` formats names.
    pub fn risk_rows(&self, spelled: impl Fn(&str) -> String) -> Vec<Vec<String>> {
        let row = |(risk, group): (&GroupRisk, &GroupQuality)| {
            vec![
                spelled(&risk.group),
                number(group.lines),
                number(group.classes),
                number(risk.smallest_class),
                risk.smallest_class_in_batch.map_or_else(|| "?".to_owned(), number),
                percent(risk.prosecutor_highest),
                percent(risk.prosecutor_average),
                percent(risk.below_k),
                percent(risk.unique_before),
            ]
        };
        self.risk.iter().zip(&self.quality.groups).map(row).collect()
    }
}

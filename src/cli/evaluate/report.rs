//! What an evaluation found.

use crate::cli::text::{counted, number, percent};
use crate::evaluation::learning::Learning;
use crate::evaluation::quality::{GroupQuality, Quality};
use crate::evaluation::queries::QueryErrors;
use crate::evaluation::risk::GroupRisk;
use crate::evaluation::series::{Contrast, MomentModel, SeriesQuality, SignalQuality, Usefulness};
use serde::Serialize;

/// The figures with which every form of release begins.
#[derive(Serialize)]
pub struct UsefulnessByForm {
    /// Of the series; none without any, or where it cannot be measured.
    pub series: Option<Usefulness>,
    /// Of the fragments; none where no fragment leaves, or without a lineage.
    pub fragments: Option<Usefulness>,
}

/// Everything that is measured.
#[derive(Serialize)]
pub struct Report {
    /// People and records represented, error of a daily mean.
    pub usefulness: UsefulnessByForm,
    /// The series, signal by signal; none as above.
    pub series: Option<SeriesQuality>,
    /// Linear models of targets from moments, as asked.
    pub models: Vec<MomentModel>,
    /// The fragments; none where only series leave.
    #[serde(flatten)]
    pub fragments: Option<Evaluation>,
}

/// What is measured of fragments.
#[derive(Serialize)]
pub struct Evaluation {
    /// k of the configuration.
    pub k: usize,
    /// Records that could not be read.
    pub rejected: u64,
    /// What it is worth.
    pub quality: Quality,
    /// How far lines stand out, by group.
    pub risk: Vec<GroupRisk>,
    /// Errors of counts, by width.
    pub queries: Vec<QueryErrors>,
    /// A target each, as asked.
    pub learning: Vec<Learning>,
}

/// Three digits behind the point.
pub fn three(value: f64) -> String {
    // The sum of no numbers is -0.
    format!("{:.3}", value + 0.0)
}

impl UsefulnessByForm {
    /// Heads of [`rows`](Self::rows).
    pub const HEADS: [&str; 4] =
        ["release", "people represented", "records represented", "error of a daily mean ÷ its sampling error"];

    /// A line on records that could not be read; nothing where all could.
    pub fn unreadable_note(&self) -> String {
        match [self.series, self.fragments].into_iter().flatten().map(|of| of.unreadable).max() {
            None | Some(0) => String::new(),
            Some(unreadable) => format!(
                "{} could not be read and counts as not represented: see the dead letters of the run\n",
                counted(unreadable, "record")
            ),
        }
    }

    /// A row of a table for each form.
    pub fn rows(&self) -> Vec<Vec<String>> {
        let row = |(form, of): (&str, Option<Usefulness>)| {
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

/// A figure over the buckets of a signal; `-` of a series with moments, which has no rows of buckets.
fn ratio(signal: &SignalQuality, value: Option<f64>) -> String {
    let unknown = if signal.epochs.is_some() { "-" } else { "?" };
    value.map_or_else(|| unknown.to_owned(), |value| format!("{value:.2}"))
}

/// What the table of signals does not say of series with moments, and how to measure them; nothing without any.
pub fn moments_note(of: &SeriesQuality) -> Option<&'static str> {
    of.signals.iter().any(|signal| signal.epochs.is_some()).then_some(
        "A series with moments publishes epochs and no rows of buckets: no error or correlation over buckets. Its linear models are \
         compared with those of the records by --target SIGNAL",
    )
}

/// Heads of [`signal_rows`].
pub const SIGNAL_HEADS: [&str; 6] =
    ["series", "signal", "cells represented", "buckets", "error ÷ sampling error", "correlation"];

/// The signals of the series as rows of a table; `spelled` writes names.
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
            ratio(signal, signal.error_ratio),
            ratio(signal, signal.correlation),
        ]
    };
    of.signals.iter().map(row).collect()
}

/// Heads of [`contrast_rows`].
pub const CONTRAST_HEADS: [&str; 7] = [
    "series",
    "signal",
    "strata",
    "buckets",
    "published difference",
    "true difference",
    "its sampling error in a bucket",
];

/// The contrasts of the series as rows of a table; `spelled` writes names.
pub fn contrast_rows(of: &SeriesQuality, spelled: impl Fn(&str) -> String) -> Vec<Vec<String>> {
    let row = |contrast: &Contrast| {
        let [one, other] = contrast.strata.each_ref().map(|labels| labels.join(" "));
        let figures = [contrast.published, contrast.actual, contrast.sampling_error].map(|value| format!("{value:.3}"));
        let names = [spelled(&contrast.series), spelled(&contrast.signal), spelled(&format!("{one} − {other}"))];
        names.into_iter().chain([number(contrast.buckets)]).chain(figures).collect()
    };
    of.contrasts.iter().map(row).collect()
}

impl Evaluation {
    /// Measures of worth: name, of the lines, of all records.
    pub fn worth_rows(&self) -> [[String; 3]; 5] {
        let quality = &self.quality;
        let (information, of_all) = (quality.pairwise_information, quality.pairwise_information_of_all);
        [
            ("mean loss (0 best)", three(quality.loss), three(quality.loss_of_all)),
            ("pairwise information (1 best)", three(information), three(of_all)),
            ("exact cells", percent(quality.exact), String::new()),
            ("altered cells (distortion)", percent(quality.distortion), String::new()),
            ("data score, of the original's", String::new(), three(quality.data_score)),
        ]
        .map(|(name, lines, all)| [name.to_owned(), lines, all])
    }

    /// Heads of [`attribute_rows`](Self::attribute_rows).
    pub const ATTRIBUTE_HEADS: [&str; 7] =
        ["attribute", "group", "loss", "of all", "exact", "bits hidden", "falsified"];

    /// What became of every attribute, as rows of a table; `spelled` writes names.
    pub fn attribute_rows(&self, spelled: impl Fn(&str) -> String) -> impl Iterator<Item = Vec<String>> {
        self.quality.attributes.iter().map(move |a| {
            let falsified = if a.falsified == 0 { String::new() } else { number(a.falsified) };
            let (names, bits) = ([&a.attribute, &a.group].map(|name| spelled(name)), format!("{:.2}", a.bits_hidden));
            let figures = [three(a.loss), three(a.loss_of_all), percent(a.exact), bits, falsified];
            names.into_iter().chain(figures).collect()
        })
    }

    /// The risk of every group as a row of a table; `spelled` writes its name.
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

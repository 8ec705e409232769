//! What an evaluation found.

use crate::cli::text::{number, percent};
use crate::evaluation::learning::Learning;
use crate::evaluation::quality::{GroupQuality, Quality};
use crate::evaluation::queries::QueryErrors;
use crate::evaluation::risk::GroupRisk;
use serde::Serialize;

/// Everything that is measured.
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

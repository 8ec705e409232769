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

impl Evaluation {
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

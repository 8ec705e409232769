//! Models of records and of lines, tested on the same records.

use super::features::Features;
use super::model::{Model, SparseRows};
use super::scores::Scores;
use super::target::Classes;
use crate::evaluation::facts::AttributeFacts;
use crate::evaluation::original::Original;
use crate::evaluation::released::ReleasedGroup;

/// Records that a model is trained on, and tested on, at most.
pub(super) const MOST_ROWS: usize = 50_000;

/// A model with the features that it was learned from.
pub(super) struct Fitted {
    pub features: Features,
    pub model: Option<Model>,
    rows: SparseRows,
}

/// The records before: those that are tested on, those that are learned from, and their classes.
pub(super) struct Records<'a> {
    pub original: &'a Original,
    pub facts: &'a [AttributeFacts],
    pub classes: &'a Classes,
    pub tested: Vec<usize>,
    pub trained: Vec<usize>,
}

impl Records<'_> {
    /// The classes of the records that are tested on.
    pub fn truth(&self) -> Vec<u32> {
        self.tested.iter().filter_map(|row| self.classes.of_row(self.original, *row)).collect()
    }

    /// A model of the records that are learned from, by `attributes`.
    pub fn fit(&self, attributes: &[usize]) -> Fitted {
        let features = Features::new(self.original, self.facts, attributes);
        let mut rows = SparseRows::new(features.width());
        for &row in &self.trained {
            if let Some(class) = self.classes.of_row(self.original, row) {
                rows.push(features.of_row(self.original, row), class);
            }
        }
        Fitted { model: Model::fit(&rows), features, rows }
    }

    /// A model of `lines`, by `attributes`.
    pub fn fit_lines<'a>(
        &self,
        attributes: &[usize],
        lines: impl Iterator<Item = (&'a ReleasedGroup, usize)>,
    ) -> Fitted {
        let mut features = Features::new(self.original, self.facts, attributes);
        let mut rows = SparseRows::new(features.width());
        for (group, line) in lines {
            if rows.len() == MOST_ROWS {
                break;
            }
            if let Some(class) = self.classes.of_line(self.facts, group, line) {
                rows.push(features.of_line(self.facts, group, line), class);
            }
        }
        Fitted { model: Model::fit(&rows), features, rows }
    }

    /// How well a model tells the records that are tested on.
    pub fn scores(&self, fitted: &Fitted) -> Option<Scores> {
        let model = fitted.model.as_ref()?;
        let of = |row: &usize| model.scores(&fitted.features.of_row(self.original, *row), self.classes.number());
        let scores: Vec<Vec<f64>> = self.tested.iter().map(of).collect();
        Scores::of(&self.truth(), &scores, fitted.rows.len() as u64, fitted.rows.share_of(1))
    }
}

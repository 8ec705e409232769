//! Models of records and lines with common test records.

use super::features::FeatureEncoder;
use super::learning_target::TargetClasses;
use super::logistic_model::{LogisticModel, SparseRows};
use super::prediction_scores::PredictionScores;
use crate::facts::AttributeFacts;
use crate::original::OriginalData;
use crate::released_lines::ReleasedGroup;

pub(super) const MAX_MODEL_ROWS: usize = 50_000;

pub(super) struct FittedModel {
    pub features: FeatureEncoder,
    pub model: Option<LogisticModel>,
    rows: SparseRows,
}

pub(super) struct LearningRecords<'a> {
    pub original: &'a OriginalData,
    pub facts: &'a [AttributeFacts],
    pub classes: &'a TargetClasses,
    pub tested: Vec<usize>,
    pub trained: Vec<usize>,
}

impl LearningRecords<'_> {
    pub fn true_classes(&self) -> Vec<u32> {
        self.tested.iter().filter_map(|row| self.classes.class_of_record(self.original, *row)).collect()
    }

    pub fn fit_records(&self, attributes: &[usize]) -> FittedModel {
        let features = FeatureEncoder::new(self.original, self.facts, attributes);
        let mut rows = SparseRows::new(features.width());
        for &row in &self.trained {
            if let Some(class) = self.classes.class_of_record(self.original, row) {
                rows.push(features.encode_record(self.original, row), class);
            }
        }
        FittedModel { model: LogisticModel::fit(&rows), features, rows }
    }

    pub fn fit_lines<'a>(
        &self,
        attributes: &[usize],
        lines: impl Iterator<Item = (&'a ReleasedGroup, usize)>,
    ) -> FittedModel {
        let mut features = FeatureEncoder::new(self.original, self.facts, attributes);
        let mut rows = SparseRows::new(features.width());
        for (group, line) in lines {
            if rows.len() == MAX_MODEL_ROWS {
                break;
            }
            if let Some(class) = self.classes.class_of_line(self.facts, group, line) {
                rows.push(features.encode_line(self.facts, group, line), class);
            }
        }
        FittedModel { model: LogisticModel::fit(&rows), features, rows }
    }

    pub fn test_scores(&self, fitted: &FittedModel) -> Option<PredictionScores> {
        let model = fitted.model.as_ref()?;
        let of = |row: &usize| model.scores(&fitted.features.encode_record(self.original, *row), self.classes.number());
        let scores: Vec<Vec<f64>> = self.tested.iter().map(of).collect();
        PredictionScores::measure_scores(
            &self.true_classes(),
            &scores,
            fitted.rows.len() as u64,
            fitted.rows.share_of(1),
        )
    }
}

//! Applies the privacy models of a stream to its classes.
//!
//! A class shows all cells of a protected attribute or none: omitted rows would reveal the most frequent value.

use super::cell_hiding::ClassModels;
use crate::privacy::JudgeScratch;
use crate::privacy::protection::ProtectionJudge;
use crate::values::code_batch::CodeBatch;
use crate::values::codebook::Codebook;
use crate::values::digest::value_number;

/// Sensitive attribute with privacy models.
#[derive(Clone, Debug)]
pub struct ProtectedAttribute {
    /// Position in the schema.
    pub attribute: usize,
    /// Judge; `None` without a reference distribution: no value is shown.
    pub judge: Option<ProtectionJudge>,
}

pub(super) struct StreamModels<'a> {
    batch: &'a CodeBatch,
    books: &'a [Codebook],
    judges: Vec<&'a ProtectionJudge>,
    room: JudgeScratch,
}

impl<'a> StreamModels<'a> {
    pub fn new(
        batch: &'a CodeBatch,
        books: &'a [Codebook],
        protected: impl Iterator<Item = &'a ProtectedAttribute>,
    ) -> Self {
        Self {
            batch,
            books,
            judges: protected.filter_map(|p| p.judge.as_ref()).collect(),
            room: JudgeScratch::default(),
        }
    }
}

impl ClassModels for StreamModels<'_> {
    fn rejected_classes(&mut self, attribute: usize, showing: &[(u128, u32)]) -> Vec<u128> {
        let Some(judge) = self.judges.iter().find(|judge| judge.attribute == attribute) else {
            return showing.iter().map(|(class, _)| *class).collect();
        };
        let (codes, digests) = (&self.batch.columns[attribute], self.books[attribute].digests(0));
        let (mut refused, mut pairs) = (Vec::new(), Vec::new());
        for of_class in showing.chunk_by(|a, b| a.0 == b.0) {
            pairs.clear();
            pairs.extend(of_class.iter().map(|&(_, row)| {
                (value_number(digests[codes[row as usize] as usize]), self.batch.subjects[row as usize])
            }));
            if !judge.accepts(&mut pairs, &mut self.room) {
                refused.push(of_class[0].0);
            }
        }
        refused
    }
}

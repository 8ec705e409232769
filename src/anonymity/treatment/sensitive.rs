//! The models of a stream, asked of the sensitive cells that leave beside a class.
//!
//! A class shows what a batch has of a protected attribute as a whole, or shows nothing of it. Leaving out single
//! rows until a model holds would tell what they are: the most frequent value.

use super::hide::Models;
use crate::anonymity::privacy::Room;
use crate::anonymity::privacy::protection::ClassJudge;
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::value_number;
use throng_core::values::table::Batch;

/// A sensitive attribute that models protect.
#[derive(Clone, Debug)]
pub struct Protected {
    /// Its position in the schema.
    pub attribute: usize,
    /// None as long as there is no distribution to compare with: nothing is shown.
    pub judge: Option<ClassJudge>,
}

/// The models of a stream: each protected attribute with its judge.
pub(super) struct StreamModels<'a> {
    batch: &'a Batch,
    books: &'a [Codebook],
    judges: Vec<&'a ClassJudge>,
    room: Room,
}

impl<'a> StreamModels<'a> {
    pub fn new(batch: &'a Batch, books: &'a [Codebook], protected: impl Iterator<Item = &'a Protected>) -> Self {
        Self { batch, books, judges: protected.filter_map(|p| p.judge.as_ref()).collect(), room: Room::default() }
    }
}

impl Models for StreamModels<'_> {
    fn refused(&mut self, attribute: usize, showing: &[(u128, u32)]) -> Vec<u128> {
        let Some(judge) = self.judges.iter().find(|judge| judge.attribute == attribute) else {
            // Nobody can say that it holds.
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

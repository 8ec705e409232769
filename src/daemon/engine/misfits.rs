//! What the records of a batch say about the schema: cells that do not fit it, and attributes that it does not protect.

use super::fields::Engine;
use crate::records::raw::Coordinate;
use crate::release::sink::Rejected;
use crate::start::doubts;
use crate::telemetry::{Doubt, RejectionReason, WrongType};
use std::collections::BTreeMap;

impl Engine {
    /// Tells of which attributes cells had the wrong type, and where the first of each is.
    pub(super) fn tell_of_misfits(&self, rejected: &[Rejected]) {
        let mut misfits: BTreeMap<usize, (u64, Coordinate)> = BTreeMap::new();
        for letter in rejected.iter().filter(|letter| letter.reason == RejectionReason::WrongType) {
            let Some(attribute) = letter.attribute else { continue };
            let (records, first) = misfits.entry(attribute).or_insert((0, letter.coordinate));
            *records += 1;
            *first = letter.coordinate.min(*first);
        }
        for (attribute, (records, first)) in misfits {
            let attribute = &self.schema.attributes[attribute];
            let first = self.origin.describe(first);
            let expected = attribute.kind().name();
            WrongType { attribute: &attribute.name, expected, records, first }.emit(&self.telemetry);
        }
    }

    /// Tells what the values show that the schema leaves unprotected: after the first batch, and whenever the stream has
    /// grown fourfold. Values that are hidden are told at once.
    pub(super) fn doubt(&mut self) {
        let due = self.durable.progress.rows >= self.learning.doubt_at;
        if due {
            self.learning.doubt_at = self.durable.progress.rows.saturating_mul(4).max(1);
        }
        for (attribute, book) in self.coding.books.iter().enumerate() {
            if due || book.shaped().is_some() {
                doubts::of_values(book, self.learning.sample.column(attribute))
                    .into_iter()
                    .for_each(|doubt| Doubt(doubt).emit(&self.telemetry));
            }
        }
    }
}

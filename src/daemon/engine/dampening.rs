//! Dampening of a batch before its treatment: which inferences are risky, and how far down they are to come.

use super::fields::Engine;
use crate::anonymity::treatment::dampen::{RiskyInference, Value, dampen};
use crate::records::table::Batch;
use crate::risk::adjacency::ValueNode;

/// Inferences that one batch is relieved of, at most: the strongest.
const MOST_RISKY: usize = 256;

impl Engine {
    /// Exchanges values among the fresh records of `batch`, which stand behind `waiting` held ones, until each risky inference
    /// of the window has come down to the mean, P(v). Held records were dampened when they were fresh. Gives the number
    /// of cells that have changed.
    pub(super) fn dampen(&self, batch: &mut Batch, waiting: usize) -> u64 {
        let Some(settings) = self.settings.dampening else { return 0 };
        let risky = self.risky(settings.above);
        let mut columns: Vec<Vec<u32>> = batch.columns.iter().map(|column| column[waiting..].to_vec()).collect();
        // Secret, since a digest is keyed, and the same for a batch that is repeated.
        let half = |which: u8| {
            (self.digest)(&format!("dampening {} {which}", self.durable.progress.sequence + 1)).to_le_bytes()
        };
        let mut seed = [0; 32];
        seed[..16].copy_from_slice(&half(0));
        seed[16..].copy_from_slice(&half(1));
        let exchanges = dampen(&mut columns, &batch.subjects[waiting..], &risky, settings.most_altered, seed);
        for (column, fresh) in batch.columns.iter_mut().zip(columns) {
            column.truncate(waiting);
            column.extend(fresh);
        }
        2 * exchanges.len() as u64
    }

    /// The inferences of the window at or above a probability, from crowds: what fewer than k people share is not released as it is.
    fn risky(&self, above: f64) -> Vec<RiskyInference> {
        let model = self.learning.model.counted();
        let support = self.settings.policy.k as u64 * model.unit();
        let value = |node: ValueNode| Value { attribute: node.attribute, code: node.code };
        // Codes tell nothing here: after a restart they are others, and a batch that is repeated is dampened alike.
        let name = |node: ValueNode| {
            let book = &self.coding.books[node.attribute];
            (node.attribute, book.digest(book.cell(node.code, 0)))
        };
        let strongest = model.strongest(MOST_RISKY, support, name);
        let risky = strongest.into_iter().filter(|inference| inference.probability() >= above);
        risky
            .map(|inference| RiskyInference {
                given: value(inference.from),
                inferred: value(inference.to),
                target: model.n(inference.to) as f64 / model.units().max(1) as f64,
            })
            .collect()
    }
}

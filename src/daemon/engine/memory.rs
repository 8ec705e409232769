//! What the engine remembers besides the ledger, and how it forgets: the model and the dictionaries.

use super::core::Engine;
use crate::telemetry::{Limit, LimitReached};
use throng_core::values::codebook::{Code, mark_used, remap};
use throng_core::values::table::Batch;
use throng_risk::multigrid::CoarseError;

impl Engine {
    /// Adds the rows of a batch that has left to the model; its pairs are counted beside the next batch. It has left whatever the
    /// model says: a model that fails is counted again from the window, and one that fails twice counts nothing until the
    /// next start.
    pub(super) fn learn(&mut self, fresh: &Batch) {
        self.settle_model();
        if let Err(error) = self.learning.model.learn(fresh, &self.coding.books) {
            self.mend_model(&error);
        }
        self.tell_recheck(fresh);
    }

    /// Waits until the pairs of all batches that have left are counted.
    pub(super) fn settle_model(&mut self) {
        if let Err(error) = self.learning.model.settle() {
            self.mend_model(&error);
        }
        let size = self.learning.model.size();
        if size.left_out_pairs > self.learning.model_size.left_out_pairs {
            LimitReached { limit: Limit::ModelEdges }.emit(&self.telemetry);
        }
        self.learning.model_size = size;
    }

    fn renumber_model(&mut self, attribute: usize, map: &[Code]) {
        if let Err(error) = self.learning.model.remap(attribute, map) {
            self.mend_model(&error);
        }
    }

    fn mend_model(&mut self, error: &CoarseError) {
        tracing::error!(%error, "the model contradicts its window and is counted again");
        if let Err(error) = self.learning.model.rebuild() {
            tracing::error!(%error, "the model cannot be counted; it stays empty until the next start");
            self.learning.model.stop();
        }
    }

    /// Forgets dictionary values that no row needs, once a dictionary is full.
    /// The limit is large enough for every row that is remembered (the configuration sees to that), so a batch always finds
    /// room for its values and nothing that leaves depends on what a dictionary happens to remember.
    /// `coming` values will be new, and as many as `joining` rows of what joins bring.
    pub(super) fn compact_dictionaries(&mut self, coming: usize, joining: usize) {
        for attribute in 0..self.coding.books.len() {
            let joined = self.schema.attributes[attribute].from.join().is_some();
            let coming = if joined { joining } else { coming };
            if self.coding.books[attribute].values() + coming <= self.settings.max_dictionary_values {
                continue;
            }
            self.compact(attribute);
        }
    }

    /// Forgets the values of an attribute that no row needs.
    fn compact(&mut self, attribute: usize) {
        let codes = self.coding.books[attribute].codes();
        let mut used = vec![false; codes];
        self.learning.model.mark_used(attribute, &mut used);
        mark_used(self.held.batch.columns[attribute].iter().copied(), &mut used);
        mark_used(self.learning.sample.column(attribute).iter().copied(), &mut used);
        let map = self.coding.books[attribute].retain(&used);
        self.coding.numbering += 1;
        self.renumber_model(attribute, &map);
        remap(&mut self.held.batch.columns[attribute], &map);
        remap(self.learning.sample.column_mut(attribute), &map);
        self.learning.model.watch(&self.learning.baseline, &self.coding.books);
        self.renumbered();
    }

    /// Memory of the dictionaries, in bytes.
    pub(super) fn dictionary_bytes(&self) -> u64 {
        self.coding.books.iter().map(|book| book.approximate_bytes() as u64).sum()
    }

    /// Forgets what no row needs once the dictionaries have outgrown their part of `process.memory_limit`. To be called between
    /// two batches. Nothing that leaves depends on when that is; what was encoded ahead is encoded again.
    /// Where rows need more than that part, it is tried again when an eighth of the part has come on top.
    pub(super) fn keep_within(&mut self) {
        let Some(most) = self.settings.dictionary_bytes else { return };
        let tried = self.coding.compacted_bytes;
        let enough = if tried > most { tried + most / 8 } else { most };
        if self.dictionary_bytes() <= enough {
            return;
        }
        (0..self.coding.books.len()).for_each(|attribute| self.compact(attribute));
        self.coding.compacted_bytes = self.dictionary_bytes();
        if self.coding.compacted_bytes > most {
            LimitReached { limit: Limit::Memory }.emit(&self.telemetry);
        }
    }
}

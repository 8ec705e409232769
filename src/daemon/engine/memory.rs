//! Updates and compaction of the model and the dictionaries.

use super::core::Engine;
use crate::telemetry::{Limit, LimitReached};
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{Code, mark_used, remap};
use throng_risk::multigrid::CoarseError;

impl Engine {
    /// Adds a released batch to the model; pairs are counted concurrently with the next batch.
    ///
    /// After one error the model is counted again; after two it stays empty until the next start.
    pub(super) fn learn(&mut self, fresh: &CodeBatch) {
        self.wait_for_model();
        if let Err(error) = self.learning.model.learn(fresh, &self.coding.books) {
            self.recover_model(&error);
        }
        self.send_to_recheck(fresh);
    }

    /// Waits until all pairs are counted.
    pub(super) fn wait_for_model(&mut self) {
        if let Err(error) = self.learning.model.wait_for_pairs() {
            self.recover_model(&error);
        }
        let size = self.learning.model.size();
        if size.left_out_pairs > self.learning.model_size.left_out_pairs {
            LimitReached { limit: Limit::ModelEdges }.emit(&self.telemetry);
        }
        self.learning.model_size = size;
    }

    fn renumber_model(&mut self, attribute: usize, map: &[Code]) {
        if let Err(error) = self.learning.model.remap(attribute, map) {
            self.recover_model(&error);
        }
    }

    fn recover_model(&mut self, error: &CoarseError) {
        tracing::error!(%error, "the counts of the planner's model do not match its window: recounting the window");
        if let Err(error) = self.learning.model.rebuild() {
            tracing::error!(%error, "the window cannot be counted: the planner's model stays empty until the next start");
            self.learning.model.stop();
        }
    }

    /// Removes unused values of full dictionaries.
    ///
    /// The configured limit has room for all stored rows. A batch therefore always finds room, and no output depends
    /// on a dictionary. `coming` bounds the new values, `joining` the joined rows.
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

    /// Removes unused values of an attribute.
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
        self.note_renumbering();
    }

    pub(super) fn dictionary_bytes(&self) -> u64 {
        self.coding.books.iter().map(|book| book.approximate_bytes() as u64).sum()
    }

    /// Removes unused values once dictionaries exceed their part of `process.memory_limit`. Call it between two
    /// batches.
    ///
    /// Output does not depend on the time of the call. If used values alone exceed that part, it is retried after
    /// growth by an eighth.
    pub(super) fn limit_dictionary_memory(&mut self) {
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

//! Removal of unused dictionary values.

use super::stream_knowledge::StreamKnowledge;
use crate::daemon::engine::build::settings::EngineSettings;
use crate::daemon::engine::core::{PlanningState, ValueEncoding};
use crate::daemon::engine::gather::held_records::HeldRows;
use crate::telemetry::{Limit, LimitReached, Telemetry};
use throng_core::values::codebook::{mark_used, remap};
use throng_core::values::schema::Schema;

pub(crate) struct DictionaryCompaction<'a> {
    pub schema: &'a Schema,
    pub settings: &'a EngineSettings,
    pub coding: &'a mut ValueEncoding,
    pub learning: &'a mut StreamKnowledge,
    pub held: &'a mut HeldRows,
    pub planning: &'a mut PlanningState,
    pub telemetry: &'a Telemetry,
}

impl DictionaryCompaction<'_> {
    /// Removes unused values of full dictionaries. `coming` bounds the new values, `joining` the joined rows.
    pub fn make_room(&mut self, coming: usize, joining: usize) {
        for attribute in 0..self.coding.books.len() {
            let joined = self.schema.attributes[attribute].from.join().is_some();
            let coming = if joined { joining } else { coming };
            if self.coding.books[attribute].values() + coming <= self.settings.max_dictionary_values {
                continue;
            }
            self.compact(attribute);
        }
    }

    fn compact(&mut self, attribute: usize) {
        let codes = self.coding.books[attribute].codes();
        let mut used = vec![false; codes];
        self.learning.model.mark_used(attribute, &mut used);
        mark_used(self.held.batch.columns[attribute].iter().copied(), &mut used);
        mark_used(self.learning.sample.column(attribute).iter().copied(), &mut used);
        let map = self.coding.books[attribute].retain(&used);
        self.coding.numbering += 1;
        self.learning.renumber(attribute, &map);
        remap(&mut self.held.batch.columns[attribute], &map);
        remap(self.learning.sample.column_mut(attribute), &map);
        self.learning.model.watch(&self.learning.baseline, &self.coding.books);
        if let Some(recheck) = &mut self.planning.recheck {
            recheck.numbering += 1;
        }
    }

    /// Removes unused values once dictionaries exceed their part of `process.memory_limit`. Call it between two
    /// batches.
    pub fn limit_memory(&mut self) {
        let Some(most) = self.settings.dictionary_bytes else { return };
        let tried = self.coding.compacted_bytes;
        let enough = if tried > most { tried + most / 8 } else { most };
        if self.coding.dictionary_bytes() <= enough {
            return;
        }
        (0..self.coding.books.len()).for_each(|attribute| self.compact(attribute));
        self.coding.compacted_bytes = self.coding.dictionary_bytes();
        if self.coding.compacted_bytes > most {
            LimitReached { limit: Limit::Memory }.emit(self.telemetry);
        }
    }
}

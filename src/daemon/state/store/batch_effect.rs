//! Effect of a released batch.

use super::{BASELINE, EVIDENCE, FINDINGS_KEY, PROGRESS, StateStore};
use crate::daemon::state::numbered_keys::numbered_key;
use throng_core::ledger::SHARDS;
use throng_core::ledger::subject_ledger::SubjectLedger;

impl StateStore {
    pub(super) fn write_batch_effect(&mut self, batch: &mut sled::Batch, ledger: &SubjectLedger) {
        let Some(intent) = self.bookkeeping.applied.take() else { return };
        self.write_profiles(batch);
        let sequence = intent.after.sequence;
        let mut progress = intent.after;
        if self.uses_changelog {
            progress.totals.count_held_as_moved();
        }
        batch.insert(PROGRESS, self.seal_for_write(PROGRESS, &progress));
        // `None` without a released record, or with a changelog.
        if let Some(delta) = &intent.ledger {
            let key = numbered_key("delta", sequence);
            self.bookkeeping.credit += 2 * delta.approximate_bytes();
            batch.insert(key.clone(), self.seal_for_write(&key, delta));
            self.write_shards(batch, ledger, sequence);
        }
        if let Some(last) = intent.sampled.last() {
            let key = numbered_key("sample", sequence);
            self.bookkeeping.sample_parts.push((sequence, last.ordinal));
            batch.insert(key.clone(), self.seal_for_write(&key, &intent.sampled));
        }
        for key in self.bookkeeping.pruned_keys.drain(..) {
            batch.remove(key);
        }
        for (ordinal, _) in intent.settled.iter().filter(|_| !self.uses_changelog) {
            batch.remove(numbered_key("held", *ordinal));
        }
        for row in &intent.held {
            let key = numbered_key("held", row.ordinal);
            batch.insert(key.clone(), self.seal_for_write(&key, row));
        }
        if let Some(plan) = &intent.plan {
            let key = numbered_key("plan", plan.version);
            batch.insert(key.clone(), self.seal_for_write(&key, plan));
            if !intent.references.is_empty() {
                let key = numbered_key("reference", plan.version);
                batch.insert(key.clone(), self.seal_for_write(&key, &intent.references));
            }
            if plan.version > 1 {
                batch.remove(numbered_key("plan", plan.version - 1));
                batch.remove(numbered_key("reference", plan.version - 1));
            }
        }
        if let Some(baseline) = &intent.baseline {
            batch.insert(BASELINE, self.seal_for_write(BASELINE, baseline));
        }
        if let Some(met) = &intent.met {
            batch.insert(FINDINGS_KEY, self.seal_for_write(FINDINGS_KEY, met));
        }
        if let Some(changes) = &intent.series {
            self.write_series(batch, changes);
        }
        if let Some(evidence) = &intent.evidence {
            batch.insert(EVIDENCE, self.seal_for_write(EVIDENCE, evidence));
        }
    }

    /// Rewrites shards up to the credit of the written deltas. Every byte is written about three times, and a start
    /// reads about as many deltas as shards.
    fn write_shards(&mut self, batch: &mut sled::Batch, ledger: &SubjectLedger, sequence: u64) {
        for _ in 0..SHARDS {
            let cost = ledger.shard_bytes(self.bookkeeping.next_shard).max(256);
            if self.bookkeeping.credit < cost {
                break;
            }
            self.bookkeeping.credit -= cost;
            let key = numbered_key("shard", self.bookkeeping.next_shard as u64);
            let shard =
                ledger.supporters.as_ref().map(|known| known.shard(self.bookkeeping.next_shard)).unwrap_or_default();
            batch.insert(key.clone(), self.seal_for_write(&key, &(sequence, shard)));
            let key = numbered_key("said", self.bookkeeping.next_shard as u64);
            match ledger.release_log.as_ref().map(|said| said.shard(self.bookkeeping.next_shard)) {
                Some(lines) => {
                    batch.insert(key.clone(), self.seal_for_write(&key, &lines));
                }
                None => batch.remove(key),
            }
            self.bookkeeping.shard_sequence[self.bookkeeping.next_shard] = sequence;
            self.bookkeeping.next_shard = (self.bookkeeping.next_shard + 1) % SHARDS;
        }
        let complete = self.bookkeeping.shard_sequence.iter().copied().min().unwrap_or(0);
        while self.bookkeeping.first_delta <= complete {
            batch.remove(numbered_key("delta", self.bookkeeping.first_delta));
            self.bookkeeping.first_delta += 1;
        }
    }

    /// Removes sample parts before row `first`, with the effect of the released batch.
    pub fn prune_sample_before(&mut self, first: u64) {
        let gone = self.bookkeeping.sample_parts.partition_point(|(_, last)| *last < first);
        self.bookkeeping
            .pruned_keys
            .extend(self.bookkeeping.sample_parts.drain(..gone).map(|(sequence, _)| numbered_key("sample", sequence)));
    }

    /// Removes window parts before row `first`.
    pub fn prune_rows_before(&mut self, first: u64) {
        while let Some((sequence, _)) = self.bookkeeping.row_parts.pop_front_if(|(_, last)| *last < first) {
            self.bookkeeping.pruned_row_parts.push(sequence);
        }
    }
}

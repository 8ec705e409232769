//! The effect of a batch that has left, as it is written with the next intent or by itself.

use super::{BASELINE, EVIDENCE, MET, PROGRESS, Store};
use crate::daemon::state::numbered::numbered;
use throng_core::ledger::SHARDS;
use throng_core::ledger::per_subject::Ledger;

impl Store {
    pub(super) fn write_applied(&mut self, batch: &mut sled::Batch, ledger: &Ledger) {
        let Some(intent) = self.known.applied.take() else { return };
        self.write_profiles(batch);
        let sequence = intent.after.sequence;
        let mut progress = intent.after;
        if self.in_log {
            progress.totals.let_go();
        }
        batch.insert(PROGRESS, self.seal(PROGRESS, &progress));
        // None where nothing is released: what the memory counts then has never left. None where the changelog has it.
        if let Some(delta) = &intent.ledger {
            let key = numbered("delta", sequence);
            self.known.credit += 2 * delta.approximate_bytes();
            batch.insert(key.clone(), self.seal(&key, delta));
            self.write_shards(batch, ledger, sequence);
        }
        if let Some(last) = intent.sampled.last() {
            let key = numbered("sample", sequence);
            self.known.sample_parts.push((sequence, last.ordinal));
            batch.insert(key.clone(), self.seal(&key, &intent.sampled));
        }
        for key in self.known.forgotten.drain(..) {
            batch.remove(key);
        }
        for (ordinal, _) in intent.settled.iter().filter(|_| !self.in_log) {
            batch.remove(numbered("held", *ordinal));
        }
        for row in &intent.held {
            let key = numbered("held", row.ordinal);
            batch.insert(key.clone(), self.seal(&key, row));
        }
        if let Some(plan) = &intent.plan {
            let key = numbered("plan", plan.version);
            batch.insert(key.clone(), self.seal(&key, plan));
            if !intent.references.is_empty() {
                let key = numbered("reference", plan.version);
                batch.insert(key.clone(), self.seal(&key, &intent.references));
            }
            if plan.version > 1 {
                batch.remove(numbered("plan", plan.version - 1));
                batch.remove(numbered("reference", plan.version - 1));
            }
        }
        if let Some(baseline) = &intent.baseline {
            batch.insert(BASELINE, self.seal(BASELINE, baseline));
        }
        if let Some(met) = &intent.met {
            batch.insert(MET, self.seal(MET, met));
        }
        if let Some(changes) = &intent.series {
            self.write_series(batch, changes);
        }
        if let Some(evidence) = &intent.evidence {
            batch.insert(EVIDENCE, self.seal(EVIDENCE, evidence));
        }
    }

    /// Rewrites as many ledger shards as the deltas written so far have paid for, so that the deltas before them can go:
    /// every byte is written about three times in all, and a start reads about as many deltas as there is ledger.
    fn write_shards(&mut self, batch: &mut sled::Batch, ledger: &Ledger, sequence: u64) {
        for _ in 0..SHARDS {
            let cost = ledger.shard_bytes(self.known.next_shard).max(256);
            if self.known.credit < cost {
                break;
            }
            self.known.credit -= cost;
            let key = numbered("shard", self.known.next_shard as u64);
            let shard = ledger.supporters.as_ref().map(|known| known.shard(self.known.next_shard)).unwrap_or_default();
            batch.insert(key.clone(), self.seal(&key, &(sequence, shard)));
            let key = numbered("said", self.known.next_shard as u64);
            match ledger.said.as_ref().map(|said| said.shard(self.known.next_shard)) {
                Some(lines) => {
                    batch.insert(key.clone(), self.seal(&key, &lines));
                }
                None => batch.remove(key),
            }
            self.known.shard_sequence[self.known.next_shard] = sequence;
            self.known.next_shard = (self.known.next_shard + 1) % SHARDS;
        }
        let complete = self.known.shard_sequence.iter().copied().min().unwrap_or(0);
        while self.known.first_delta <= complete {
            batch.remove(numbered("delta", self.known.first_delta));
            self.known.first_delta += 1;
        }
    }

    /// Forgets the parts of the sample that end before row number `first`, with the effect of the batch that has left:
    /// a start that discards that batch must find them.
    pub fn forget_sample_before(&mut self, first: u64) {
        let gone = self.known.sample_parts.partition_point(|(_, last)| *last < first);
        self.known
            .forgotten
            .extend(self.known.sample_parts.drain(..gone).map(|(sequence, _)| numbered("sample", sequence)));
    }

    /// Forgets the parts of the window that end before row number `first`, as
    /// [`forget_sample_before`](Self::forget_sample_before) does.
    pub fn forget_rows_before(&mut self, first: u64) {
        while let Some((sequence, _)) = self.known.row_parts.pop_front_if(|(_, last)| *last < first) {
            self.known.forgotten_rows.push(sequence);
        }
    }
}

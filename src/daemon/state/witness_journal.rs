//! The witnesses of strict recoding on disk: raw tuples once each, one delta a batch, and shards that are rewritten one
//! after another so that the deltas before them can go.

use super::numbered::numbered;
use super::seal::Sealer;
use super::writes::Writes;
use crate::ledger::SHARDS;
use crate::ledger::witnesses::{Seen, WitnessDelta, Witnesses};
use serde::Serialize;

/// Bytes that an entry takes at most, about.
const ENTRY_BYTES: usize = size_of::<Seen>();

/// How far the shards on disk have come.
pub(super) struct WitnessJournal {
    /// Sequence up to which each shard is complete.
    pub shard_sequence: Vec<u64>,
    next_shard: usize,
    /// Bytes of shards that may be rewritten now: grows with the deltas.
    credit: usize,
    pub first_delta: u64,
    /// Raw tuples to remove with the next write.
    pub gone: Vec<u128>,
}

impl Default for WitnessJournal {
    fn default() -> Self {
        Self { shard_sequence: vec![0; SHARDS], next_shard: 0, credit: 0, first_delta: 1, gone: Vec::new() }
    }
}

fn raw_key(raw: u128) -> Vec<u8> {
    let mut key = b"raw/".to_vec();
    key.extend_from_slice(&raw.to_be_bytes());
    key
}

/// Adds a value to a write; gives its bytes.
fn insert<T: Serialize>(batch: &mut Writes, sealer: &Sealer, key: Vec<u8>, value: &T) -> usize {
    let plain = postcard::to_stdvec(value).expect("plain values always serialize");
    let sealed = sealer.seal(&key, &plain);
    let bytes = key.len() + sealed.len();
    batch.insert(key, sealed);
    bytes
}

impl WitnessJournal {
    /// Adds what batch number `sequence` has learned to the write that applies it. `witnesses` are those after the batch;
    /// none while they are still being read. Gives the bytes added.
    pub(super) fn write(
        &mut self,
        batch: &mut Writes,
        sealer: &Sealer,
        delta: &WitnessDelta,
        witnesses: Option<&Witnesses>,
        sequence: u64,
    ) -> usize {
        let mut bytes = 0;
        for raw in &delta.raws {
            bytes += insert(batch, sealer, raw_key(raw.key), raw);
        }
        // After the insertions: a tuple may have come and gone in one batch.
        for raw in self.gone.drain(..) {
            batch.remove(raw_key(raw));
        }
        if !delta.seen.is_empty() {
            self.credit += 2 * delta.seen.len() * ENTRY_BYTES;
            bytes += insert(batch, sealer, numbered("witness", sequence), &delta.seen);
        }
        let Some(witnesses) = witnesses else { return bytes };
        for _ in 0..SHARDS {
            let cost = (witnesses.shard_entries(self.next_shard) * ENTRY_BYTES).max(256);
            if self.credit < cost {
                break;
            }
            self.credit -= cost;
            let key = numbered("witness-shard", self.next_shard as u64);
            bytes += insert(batch, sealer, key, &(sequence, witnesses.shard(self.next_shard)));
            self.shard_sequence[self.next_shard] = sequence;
            self.next_shard = (self.next_shard + 1) % SHARDS;
        }
        let complete = self.shard_sequence.iter().copied().min().unwrap_or(0);
        while self.first_delta <= complete {
            batch.remove(numbered("witness", self.first_delta));
            self.first_delta += 1;
        }
        bytes
    }
}

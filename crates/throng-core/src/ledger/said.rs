//! What has been said of whom: the lines that groups which do not change have released, one per subject and window.
//!
//! An entry is (group and subject, end of the window in which the line left), merged by maximum: a join, as the ledger's
//! are, so that a delta may be applied twice and in any order (docs/architecture.md rule 6). The windows of a subject
//! in a group begin at a moment of their own, drawn from the secret, so that not everybody's turn at once.
//!
//! Memory: at most `max_entries · 48` bytes, at any uptime. Room is reserved before a line begins to wait
//! ([`Said::has_room`]); what has left is always remembered.

use super::SHARDS;
use crate::values::digest::{BuildClassKeyHash, DigestKey, Keyed};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// Spreads subjects over the keys of a group: an odd number of 128 bits (the golden ratio).
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// The key of a subject in a group, which a keyed digest names.
#[must_use]
pub fn said_key(group: u128, subject: u64) -> u128 {
    group.wrapping_add(u128::from(subject).wrapping_mul(SPREAD))
}

/// What one batch adds, sorted: keys, each with the end of its window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SaidDelta(pub Vec<(u128, i64)>);

/// One window of a subject in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaidWindow {
    /// Its number, rising by one from window to window.
    pub number: i64,
    /// The moment at which the next one begins.
    pub end_ms: i64,
}

/// The lines that have left inside their windows, as far as this instance knows.
pub struct Said {
    window_ms: i64,
    max_entries: usize,
    entries: usize,
    /// None until the secret is known: all windows begin at once then.
    phases: Option<Keyed>,
    shards: Vec<HashMap<u128, i64, BuildClassKeyHash>>,
}

fn shard_of(key: u128) -> usize {
    usize::try_from(key >> 122).expect("six bits")
}

impl Said {
    /// Nothing has been said. `window_ms` is how long a line stands for the others of its subject and group, above 0.
    #[must_use]
    pub fn new(window_ms: i64, max_entries: usize) -> Self {
        let shards = (0..SHARDS).map(|_| HashMap::default()).collect();
        Self { window_ms: window_ms.max(1), max_entries, entries: 0, phases: None, shards }
    }

    /// From here on the windows of each subject begin at a moment of their own.
    #[must_use]
    pub fn keyed(self, secret: &DigestKey) -> Self {
        Self { phases: Some(Keyed::new(secret, "throng window")), ..self }
    }

    /// The window of `key` that `now_ms` lies in.
    #[must_use]
    pub fn window(&self, key: u128, now_ms: i64) -> SaidWindow {
        let digest = self.phases.as_ref().map_or(0, |phases| phases.digest(&key.to_be_bytes()));
        let phase = (digest % u128::from(self.window_ms.unsigned_abs())) as i64;
        let number = (now_ms - phase).div_euclid(self.window_ms);
        SaidWindow { number, end_ms: phase + (number + 1) * self.window_ms }
    }

    /// Whether a line of `key` has left in the window that `now_ms` lies in.
    #[must_use]
    pub fn is_said(&self, key: u128, now_ms: i64) -> bool {
        self.shards[shard_of(key)].get(&key).is_some_and(|until| now_ms < *until)
    }

    /// Whether one more line could be remembered when `waiting` others have left first.
    #[must_use]
    pub fn has_room(&self, waiting: usize) -> bool {
        self.entries + waiting < self.max_entries
    }

    /// What is to be remembered once the lines of `keys` have left at `now_ms`.
    #[must_use]
    pub fn delta(&self, keys: &[u128], now_ms: i64) -> SaidDelta {
        let mut entries: Vec<(u128, i64)> = keys.iter().map(|&key| (key, self.window(key, now_ms).end_ms)).collect();
        entries.sort_unstable();
        SaidDelta(entries)
    }

    /// Remembers the lines of a batch that has left.
    pub fn apply(&mut self, delta: &SaidDelta) {
        for &(key, until_ms) in &delta.0 {
            self.record(key, until_ms);
        }
    }

    fn record(&mut self, key: u128, until_ms: i64) {
        let shard = &mut self.shards[shard_of(key)];
        let before = shard.len();
        let known = shard.entry(key).or_insert(until_ms);
        *known = until_ms.max(*known);
        self.entries += shard.len() - before;
    }

    /// Forgets the lines of one shard whose window is over.
    pub fn expire(&mut self, shard: usize, now_ms: i64) {
        let part = &mut self.shards[shard];
        let before = part.len();
        part.retain(|_, until_ms| now_ms < *until_ms);
        self.entries -= before - part.len();
    }

    /// One shard for the state, sorted: of equal shards the bytes are equal.
    #[must_use]
    pub fn shard(&self, shard: usize) -> Vec<(u128, i64)> {
        let mut entries: Vec<(u128, i64)> = self.shards[shard].iter().map(|(key, until)| (*key, *until)).collect();
        entries.sort_unstable();
        entries
    }

    /// Merges a shard that was written before.
    pub fn merge(&mut self, shard: &[(u128, i64)]) {
        shard.iter().for_each(|(key, until_ms)| self.record(*key, *until_ms));
    }

    /// Number of lines kept.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.capacity() * 33).sum()
    }

    /// Bytes that a shard takes on disk.
    #[must_use]
    pub fn shard_bytes(&self, shard: usize) -> usize {
        self.shards[shard].len() * 24
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn remembers_as_a_map_does_in_any_order_and_over_a_restart(
            batches in prop::collection::vec((prop::collection::vec(0u64..12, 0..8), 0i64..4_000), 0..12),
            asked in 0i64..8_000,
        ) {
            let secret = DigestKey([5; 32]);
            let mut said = Said::new(1_000, 100).keyed(&secret);
            let mut twin: BTreeMap<u128, i64> = BTreeMap::new();
            let mut deltas = Vec::new();
            let mut now = 0;
            for (subjects, step) in batches {
                now += step;
                let keys: Vec<u128> = subjects.iter().map(|s| said_key(7, *s)).collect();
                let delta = said.delta(&keys, now);
                for key in keys {
                    let window = said.window(key, now);
                    prop_assert!(window.end_ms > now && window.end_ms - now <= 1_000);
                    prop_assert_eq!(said.window(key, window.end_ms).number, window.number + 1);
                    prop_assert_eq!(said.window(key, window.end_ms - 1), window);
                    twin.insert(key, window.end_ms);
                }
                said.apply(&delta);
                deltas.push(delta);
            }
            prop_assert_eq!(said.entries(), twin.len());
            // Again, and backwards.
            let mut other = Said::new(1_000, 100).keyed(&secret);
            for delta in deltas.iter().rev().chain(&deltas) {
                other.apply(delta);
            }
            let mut third = Said::new(1_000, 100).keyed(&secret);
            for shard in 0..SHARDS {
                prop_assert_eq!(said.shard(shard), other.shard(shard));
                third.merge(&said.shard(shard));
            }
            for subject in 0..12 {
                let key = said_key(7, subject);
                let expected = twin.get(&key).is_some_and(|until| asked < *until);
                prop_assert_eq!(said.is_said(key, asked), expected);
                prop_assert_eq!(third.is_said(key, asked), expected);
            }
            (0..SHARDS).for_each(|shard| third.expire(shard, asked));
            prop_assert_eq!(third.entries(), twin.values().filter(|until| asked < **until).count());
        }
    }

    #[test]
    fn windows_of_different_subjects_and_groups_turn_apart() {
        let said = Said::new(86_400_000, 100).keyed(&DigestKey([5; 32]));
        let mut ends: Vec<i64> =
            (0..1_000).flat_map(|s| [1, 2].map(|group| said.window(said_key(group, s), 0).end_ms)).collect();
        ends.sort_unstable();
        ends.dedup();
        assert!(ends.len() > 1_990, "{} moments", ends.len());
        // Spread over the day: every hour has its share of 2,000, give or take seven standard deviations.
        for hour in 0..24 {
            let turn = ends.iter().filter(|end| (**end - 1) / 3_600_000 == hour).count();
            assert!((20..=150).contains(&turn), "{turn} in hour {hour}");
        }
        assert!(!said.has_room(100) && said.has_room(99));
    }
}

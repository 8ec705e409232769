//! Release log: the lines of static groups, one per subject, group and window.
//!
//! Entries merge by maximum, so a delta may be applied twice (docs/internals/architecture.md rule 6). Memory: at most
//! `max_entries · 48` bytes.

use super::SHARDS;
use crate::values::digest::{BuildClassKeyHash, DigestKey, KeyedDigest};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// Odd golden ratio multiplier, which spreads subjects.
const SPREAD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;

/// Key of a subject in a group; `group` is a keyed digest.
#[must_use]
pub fn release_log_key(group: u128, subject: u64) -> u128 {
    group.wrapping_add(u128::from(subject).wrapping_mul(SPREAD))
}

/// Sorted keys of one batch, each with the end of its window in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseLogDelta(pub Vec<(u128, i64)>);

/// One window of a subject in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseWindow {
    /// Consecutive window number.
    pub number: i64,
    /// Exclusive end, in milliseconds since 1970.
    pub end_ms: i64,
}

/// Released lines within their current window.
pub struct ReleaseLog {
    window_ms: i64,
    max_entries: usize,
    entries: usize,
    /// None without a secret; all windows then start together.
    phases: Option<KeyedDigest>,
    shards: Vec<HashMap<u128, i64, BuildClassKeyHash>>,
}

fn shard_of(key: u128) -> usize {
    usize::try_from(key >> 122).expect("six bits")
}

impl ReleaseLog {
    /// Creates an empty log of windows of `window_ms` milliseconds.
    #[must_use]
    pub fn new(window_ms: i64, max_entries: usize) -> Self {
        let shards = (0..SHARDS).map(|_| HashMap::default()).collect();
        Self { window_ms: window_ms.max(1), max_entries, entries: 0, phases: None, shards }
    }

    /// Derives window phases from `secret`.
    #[must_use]
    pub fn with_window_key(self, secret: &DigestKey) -> Self {
        Self { phases: Some(KeyedDigest::new(secret, "throng window")), ..self }
    }

    /// Window of `key` that contains `now_ms`.
    #[must_use]
    pub fn window(&self, key: u128, now_ms: i64) -> ReleaseWindow {
        let digest = self.phases.as_ref().map_or(0, |phases| phases.digest(&key.to_be_bytes()));
        let phase = (digest % u128::from(self.window_ms.unsigned_abs())) as i64;
        let number = (now_ms - phase).div_euclid(self.window_ms);
        ReleaseWindow { number, end_ms: phase + (number + 1) * self.window_ms }
    }

    /// Checks for a line of `key` in the current window.
    #[must_use]
    pub fn has_current_entry(&self, key: u128, now_ms: i64) -> bool {
        self.shards[shard_of(key)].get(&key).is_some_and(|until| now_ms < *until)
    }

    /// Checks that one line fits after `waiting` queued lines.
    #[must_use]
    pub fn has_room(&self, waiting: usize) -> bool {
        self.entries + waiting < self.max_entries
    }

    /// Entries for the release of `keys` at `now_ms`.
    #[must_use]
    pub fn delta(&self, keys: &[u128], now_ms: i64) -> ReleaseLogDelta {
        let mut entries: Vec<(u128, i64)> = keys.iter().map(|&key| (key, self.window(key, now_ms).end_ms)).collect();
        entries.sort_unstable();
        ReleaseLogDelta(entries)
    }

    /// Records the lines of a released batch.
    pub fn apply(&mut self, delta: &ReleaseLogDelta) {
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

    /// Evicts expired entries of one shard.
    pub fn expire(&mut self, shard: usize, now_ms: i64) {
        let part = &mut self.shards[shard];
        let before = part.len();
        part.retain(|_, until_ms| now_ms < *until_ms);
        self.entries -= before - part.len();
    }

    /// Returns one sorted shard.
    #[must_use]
    pub fn shard(&self, shard: usize) -> Vec<(u128, i64)> {
        let mut entries: Vec<(u128, i64)> = self.shards[shard].iter().map(|(key, until)| (*key, *until)).collect();
        entries.sort_unstable();
        entries
    }

    /// Merges a stored shard.
    pub fn merge(&mut self, shard: &[(u128, i64)]) {
        shard.iter().for_each(|(key, until_ms)| self.record(*key, *until_ms));
    }

    /// Number of entries.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Memory, in bytes.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.capacity() * 33).sum()
    }

    /// Stored size of a shard, in bytes.
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
        fn release_log_in_any_order_and_after_restart_equals_a_map(
            batches in prop::collection::vec((prop::collection::vec(0u64..12, 0..8), 0i64..4_000), 0..12),
            asked in 0i64..8_000,
        ) {
            let secret = DigestKey([5; 32]);
            let mut said = ReleaseLog::new(1_000, 100).with_window_key(&secret);
            let mut twin: BTreeMap<u128, i64> = BTreeMap::new();
            let mut deltas = Vec::new();
            let mut now = 0;
            for (subjects, step) in batches {
                now += step;
                let keys: Vec<u128> = subjects.iter().map(|s| release_log_key(7, *s)).collect();
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
            let mut other = ReleaseLog::new(1_000, 100).with_window_key(&secret);
            for delta in deltas.iter().rev().chain(&deltas) {
                other.apply(delta);
            }
            let mut third = ReleaseLog::new(1_000, 100).with_window_key(&secret);
            for shard in 0..SHARDS {
                prop_assert_eq!(said.shard(shard), other.shard(shard));
                third.merge(&said.shard(shard));
            }
            for subject in 0..12 {
                let key = release_log_key(7, subject);
                let expected = twin.get(&key).is_some_and(|until| asked < *until);
                prop_assert_eq!(said.has_current_entry(key, asked), expected);
                prop_assert_eq!(third.has_current_entry(key, asked), expected);
            }
            (0..SHARDS).for_each(|shard| third.expire(shard, asked));
            prop_assert_eq!(third.entries(), twin.values().filter(|until| asked < **until).count());
        }
    }

    #[test]
    fn windows_of_subjects_and_groups_start_at_different_times() {
        let said = ReleaseLog::new(86_400_000, 100).with_window_key(&DigestKey([5; 32]));
        let mut ends: Vec<i64> =
            (0..1_000).flat_map(|s| [1, 2].map(|group| said.window(release_log_key(group, s), 0).end_ms)).collect();
        ends.sort_unstable();
        ends.dedup();
        assert!(ends.len() > 1_990, "{} moments", ends.len());
        // Expected 83 per hour, within seven standard deviations.
        for hour in 0..24 {
            let turn = ends.iter().filter(|end| (**end - 1) / 3_600_000 == hour).count();
            assert!((20..=150).contains(&turn), "{turn} in hour {hour}");
        }
        assert!(!said.has_room(100) && said.has_room(99));
    }
}

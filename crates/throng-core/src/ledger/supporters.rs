//! Tenure and class budgets (docs/internals/methods.md §12.5).
//!
//! Deltas carry batch numbers, so applying one twice changes nothing. Expired entries never count. Memory: at most
//! `max_entries · 80` bytes. Full memory reduces releases, never the anonymity set.

use super::SHARDS;
use crate::values::digest::BuildClassKeyHash;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Limits for supporting a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SupportLimits {
    /// Lifetime of an entry, in milliseconds.
    pub window_ms: i64,
    /// Earlier batches that a subject needs to support others.
    pub min_tenure: u32,
    /// Maximum classes per subject, group and window; 0 is unlimited.
    pub max_classes: usize,
    /// Maximum subjects and subject-class pairs in memory.
    pub max_entries: usize,
}

/// Changes of one batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupportDelta {
    /// Batch number.
    pub sequence: u64,
    /// Batch time in milliseconds since 1970.
    pub time_ms: i64,
    /// Subjects of the batch, sorted.
    pub people: Vec<u64>,
    /// Counted subjects as (group, subject, class), sorted.
    pub pairs: Vec<(u128, u64, u128)>,
}

/// Tenure record of one subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenureRecord {
    /// Batches without a gap of a window, capped at `min_tenure`.
    batches: u32,
    sequence: u64,
    time_ms: i64,
}

/// One sorted shard of the stored state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupportShard {
    /// Tenure records by subject.
    pub people: Vec<(u64, TenureRecord)>,
    /// Classes by [key](supporter_key), with the time of the last support.
    pub classes: Vec<(u128, u128, i64)>,
}

#[derive(Default)]
struct SupporterMaps {
    people: HashMap<u64, TenureRecord, BuildClassKeyHash>,
    /// By group and subject, sorted, with the time of the last support.
    classes: HashMap<u128, Vec<(u128, i64)>, BuildClassKeyHash>,
}

/// Tenure and class budgets of this instance.
pub struct SupporterTable {
    limits: SupportLimits,
    entries: usize,
    shards: Vec<SupporterMaps>,
}

/// Combines a group and a subject, both uniform digests, into one key.
#[must_use]
pub fn supporter_key(group: u128, subject: u64) -> u128 {
    group.wrapping_add(u128::from(subject) << 64 | u128::from(subject))
}

fn shard_of(key: u128) -> usize {
    usize::try_from(key >> 122).expect("six bits")
}

impl SupporterTable {
    /// Creates an empty table.
    #[must_use]
    pub fn new(limits: SupportLimits) -> Self {
        Self { limits, entries: 0, shards: (0..SHARDS).map(|_| SupporterMaps::default()).collect() }
    }

    /// Configured limits.
    #[must_use]
    pub fn limits(&self) -> SupportLimits {
        self.limits
    }

    fn is_unexpired(&self, time_ms: i64, now_ms: i64) -> bool {
        now_ms - time_ms <= self.limits.window_ms
    }

    /// Checks the minimum tenure of a subject.
    #[must_use]
    pub fn has_tenure(&self, subject: u64, now_ms: i64) -> bool {
        let person = self.shards[shard_of(supporter_key(0, subject))].people.get(&subject);
        let seen = person.filter(|person| self.is_unexpired(person.time_ms, now_ms)).map_or(0, |person| person.batches);
        seen >= self.limits.min_tenure
    }

    /// Writes the unexpired classes of `group` and `subject` to `out`, sorted.
    pub fn supported_classes(&self, group: u128, subject: u64, now_ms: i64, out: &mut Vec<u128>) {
        out.clear();
        let key = supporter_key(group, subject);
        let known = self.shards[shard_of(key)].classes.get(&key);
        out.extend(
            known.into_iter().flatten().filter(|(_, time)| self.is_unexpired(*time, now_ms)).map(|(class, _)| *class),
        );
    }

    /// Checks that one more class for each of `rows` rows fits.
    #[must_use]
    pub fn has_room(&self, rows: usize) -> bool {
        self.entries + rows <= self.limits.max_entries
    }

    /// Records a batch. Returns true if every entry fits.
    pub fn apply(&mut self, delta: &SupportDelta) -> bool {
        let mut all = true;
        let people = if self.limits.min_tenure > 0 { delta.people.as_slice() } else { &[] };
        for &subject in people {
            all &= self.record_subject(subject, delta.sequence, delta.time_ms);
        }
        for &(group, subject, class) in &delta.pairs {
            all &= self.record_class(supporter_key(group, subject), class, delta.time_ms);
        }
        all
    }

    /// Tenure after batch `sequence`; none in full memory or without `min_tenure`.
    #[must_use]
    pub fn tenure_after(&self, subject: u64, sequence: u64, time_ms: i64) -> Option<TenureRecord> {
        let limits = self.limits;
        match self.shards[shard_of(supporter_key(0, subject))].people.get(&subject) {
            _ if limits.min_tenure == 0 => None,
            Some(person) if person.sequence >= sequence => Some(*person),
            Some(person) => {
                let before = if time_ms - person.time_ms <= limits.window_ms { person.batches } else { 0 };
                Some(TenureRecord { batches: (before + 1).min(limits.min_tenure), sequence, time_ms })
            }
            None if self.entries >= limits.max_entries => None,
            None => Some(TenureRecord { batches: 1, sequence, time_ms }),
        }
    }

    /// Sorted unexpired classes of `key` after support of `new`.
    #[must_use]
    pub fn classes_after(&self, key: u128, new: &[u128], time_ms: i64) -> Vec<(u128, i64)> {
        let known = self.shards[shard_of(key)].classes.get(&key);
        let fresh = known.into_iter().flatten().filter(|(_, time)| self.is_unexpired(*time, time_ms)).copied();
        let mut classes: BTreeMap<u128, i64> = fresh.collect();
        classes.extend(new.iter().map(|class| (*class, time_ms)));
        classes.into_iter().collect()
    }

    fn record_subject(&mut self, subject: u64, sequence: u64, time_ms: i64) -> bool {
        let Some(person) = self.tenure_after(subject, sequence, time_ms) else { return false };
        let people = &mut self.shards[shard_of(supporter_key(0, subject))].people;
        self.entries += usize::from(people.insert(subject, person).is_none());
        true
    }

    /// Merges unexpired entries of another instance, without its batch numbers.
    pub fn import_entries(&mut self, people: &[(u64, TenureRecord)], classes: &[(u128, u128, i64)], now_ms: i64) {
        // The most recent entries get room first.
        let mut people: Vec<_> =
            people.iter().filter(|(_, person)| self.is_unexpired(person.time_ms, now_ms)).collect();
        people.sort_unstable_by_key(|(subject, person)| (std::cmp::Reverse(person.time_ms), *subject));
        let mut classes: Vec<_> =
            classes.iter().filter(|(_, _, time)| self.is_unexpired(*time, now_ms)).copied().collect();
        classes.sort_unstable_by_key(|(key, class, time)| (std::cmp::Reverse(*time), *key, *class));
        for (subject, person) in people {
            let known = self.shards[shard_of(supporter_key(0, *subject))].people.get(subject).copied();
            let newer = known.is_none_or(|known| known.time_ms < person.time_ms);
            let sequence = known.map_or(0, |known| known.sequence);
            if newer {
                self.merge(&SupportShard {
                    people: vec![(*subject, TenureRecord { sequence, ..*person })],
                    classes: Vec::new(),
                });
            }
        }
        self.merge(&SupportShard { people: Vec::new(), classes });
    }

    fn record_class(&mut self, key: u128, class: u128, time_ms: i64) -> bool {
        let room = self.entries < self.limits.max_entries;
        let classes = &mut self.shards[shard_of(key)].classes;
        let known = classes.get(&key).map(|known| known.binary_search_by_key(&class, |(class, _)| *class));
        if !room && !matches!(known, Some(Ok(_))) {
            return false;
        }
        let list = classes.entry(key).or_default();
        match list.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => list[at].1 = list[at].1.max(time_ms),
            Err(at) => {
                list.insert(at, (class, time_ms));
                self.entries += 1;
            }
        }
        true
    }

    /// Evicts expired entries of one shard.
    pub fn expire(&mut self, shard: usize, now_ms: i64) {
        let (window, shard) = (self.limits.window_ms, &mut self.shards[shard]);
        let before = shard.people.len() + shard.classes.values().map(Vec::len).sum::<usize>();
        shard.people.retain(|_, person| now_ms - person.time_ms <= window);
        shard.classes.retain(|_, classes| {
            classes.retain(|(_, time)| now_ms - time <= window);
            !classes.is_empty()
        });
        self.entries -= before - shard.people.len() - shard.classes.values().map(Vec::len).sum::<usize>();
    }

    /// Returns one shard to store.
    #[must_use]
    pub fn shard(&self, shard: usize) -> SupportShard {
        let shard = &self.shards[shard];
        let mut people: Vec<(u64, TenureRecord)> =
            shard.people.iter().map(|(subject, person)| (*subject, *person)).collect();
        people.sort_unstable_by_key(|(subject, _)| *subject);
        let of_key = |(key, classes): (&u128, &Vec<(u128, i64)>)| {
            let key = *key;
            classes.clone().into_iter().map(move |(class, time_ms)| (key, class, time_ms))
        };
        let mut classes: Vec<(u128, u128, i64)> = shard.classes.iter().flat_map(of_key).collect();
        classes.sort_unstable();
        SupportShard { people, classes }
    }

    /// Merges a stored shard.
    pub fn merge(&mut self, shard: &SupportShard) {
        for (subject, person) in &shard.people {
            if self.limits.min_tenure > 0 && self.entries < self.limits.max_entries {
                let people = &mut self.shards[shard_of(supporter_key(0, *subject))].people;
                self.entries += usize::from(people.insert(*subject, *person).is_none());
            }
        }
        for (key, class, time_ms) in &shard.classes {
            if self.limits.max_classes > 0 {
                self.record_class(*key, *class, *time_ms);
            }
        }
    }

    /// Number of subjects and pairs.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Memory, in bytes.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        let of = |shard: &SupporterMaps| shard.people.capacity() * 33 + shard.classes.capacity() * 41;
        self.shards.iter().map(of).sum::<usize>() + self.entries * 32
    }

    /// Approximate stored size of a shard, in bytes.
    #[must_use]
    pub fn shard_bytes(&self, shard: usize) -> usize {
        let shard = &self.shards[shard];
        shard.people.len() * 28 + shard.classes.values().map(Vec::len).sum::<usize>() * 40
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: i64 = 100;

    fn supporters(most: usize) -> SupporterTable {
        SupporterTable::new(SupportLimits { window_ms: WINDOW, min_tenure: 3, max_classes: 2, max_entries: most })
    }

    fn deltas() -> impl Strategy<Value = Vec<SupportDelta>> {
        let one = (
            0i64..60,
            prop::collection::btree_set(0u64..6, 0..4),
            prop::collection::btree_set((0u128..2, 0u64..6, 0u128..5), 0..6),
        );
        prop::collection::vec(one, 0..12).prop_map(|all| {
            let mut time_ms = 0;
            (1..)
                .zip(all)
                .map(|(sequence, (step, people, pairs))| {
                    time_ms += step;
                    SupportDelta {
                        sequence,
                        time_ms,
                        people: people.into_iter().collect(),
                        pairs: pairs.into_iter().collect(),
                    }
                })
                .collect()
        })
    }

    fn shards(of: &SupporterTable) -> Vec<SupportShard> {
        (0..SHARDS).map(|shard| of.shard(shard)).collect()
    }

    #[test]
    fn import_into_full_table_keeps_latest_and_drops_expired() {
        let person = |time_ms| TenureRecord { batches: 2, sequence: 9, time_ms };
        let mut ours = supporters(2);
        ours.import_entries(
            &[(1, person(50)), (2, person(190)), (3, person(120)), (4, person(180))],
            &[(7, 8, 10)],
            200,
        );
        assert_eq!(ours.entries(), 2, "two find room");
        let known = |subject| (0..SHARDS).any(|s| ours.shard(s).people.iter().any(|(known, _)| *known == subject));
        assert_eq!([1, 2, 3, 4].map(known), [false, true, false, true]);
        // Batch numbers of another instance do not count.
        assert!(ours.apply(&SupportDelta { sequence: 1, time_ms: 200, people: vec![2], pairs: Vec::new() }));
        assert!(ours.has_tenure(2, 200));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn tenure_and_classes_count_only_inside_the_window(deltas in deltas(), now in 0i64..700) {
            let mut known = supporters(10_000);
            deltas.iter().for_each(|delta| assert!(known.apply(delta)));
            let last = deltas.last().map_or(0, |delta| delta.time_ms);
            let now = now.max(last);
            for subject in 0..6 {
                let mut batches = 0;
                let mut before = None;
                for delta in deltas.iter().filter(|delta| delta.people.contains(&subject)) {
                    let paused = before.is_none_or(|before| delta.time_ms - before > WINDOW);
                    batches = if paused { 1 } else { batches + 1 };
                    before = Some(delta.time_ms);
                }
                let settled = batches >= 3 && before.is_some_and(|before| now - before <= WINDOW);
                prop_assert_eq!(known.has_tenure(subject, now), settled);
                for group in 0..2 {
                    let mut latest: BTreeMap<u128, i64> = BTreeMap::new();
                    for delta in &deltas {
                        for pair in delta.pairs.iter().filter(|pair| (pair.0, pair.1) == (group, subject)) {
                            latest.insert(pair.2, delta.time_ms);
                        }
                    }
                    let truth: Vec<u128> =
                        latest.into_iter().filter(|(_, time)| now - time <= WINDOW).map(|(class, _)| class).collect();
                    let mut out = Vec::new();
                    known.supported_classes(group, subject, now, &mut out);
                    prop_assert_eq!(out, truth);
                }
            }
        }

        #[test]
        fn supporters_after_repetition_restart_and_expiry_are_unchanged(deltas in deltas(), cut in 0usize..12, from in 0usize..12) {
            let cut = cut.min(deltas.len());
            let mut straight = supporters(10_000);
            deltas.iter().for_each(|delta| assert!(straight.apply(delta)));
            let mut first = supporters(10_000);
            deltas[..cut].iter().for_each(|delta| assert!(first.apply(delta)));
            let mut second = supporters(10_000);
            shards(&first).iter().for_each(|shard| second.merge(shard));
            deltas[from.min(cut)..].iter().for_each(|delta| assert!(second.apply(delta)));
            prop_assert_eq!(shards(&straight), shards(&second));
            prop_assert_eq!(straight.entries(), second.entries());
            let now = deltas.last().map_or(0, |delta| delta.time_ms);
            (0..SHARDS).for_each(|shard| second.expire(shard, now));
            for subject in 0..6 {
                prop_assert_eq!(straight.has_tenure(subject, now), second.has_tenure(subject, now));
            }
        }

        #[test]
        fn full_supporter_table_reports_and_undercounts(deltas in deltas(), most in 0usize..10) {
            let (mut full, mut whole) = (supporters(most), supporters(10_000));
            for delta in &deltas {
                let room = full.has_room(delta.people.len() + delta.pairs.len());
                let complete = full.apply(delta);
                prop_assert!(complete || !room);
                whole.apply(delta);
                prop_assert!(full.entries() <= most);
                for subject in 0..6 {
                    prop_assert!(!full.has_tenure(subject, delta.time_ms) || whole.has_tenure(subject, delta.time_ms));
                }
            }
        }
    }
}

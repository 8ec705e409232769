//! Supporters: since when people have been seen, and which classes each of them supports.
//!
//! Kept where `privacy.min_tenure` or `privacy.max_classes_per_subject` is set; both bound what invented people can do. A
//! person that has not been seen inside the release window is as one never seen. Learned from the delta of a batch that has
//! left and by its number: a delta that is applied once more changes nothing, and what has expired counts as nothing
//! whether it has been forgotten already or not, so that a restart changes no byte.
//!
//! Memory: at most `max_entries · 80` bytes, at any uptime. Who finds no room is not seen, and nobody supports a class that
//! could not be recorded: a memory that is full costs releases, never crowds.

use super::SHARDS;
use crate::values::digest::BuildClassKeyHash;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is asked of supporters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SupportLimits {
    /// How long somebody is remembered, milliseconds.
    pub window_ms: i64,
    /// Batches that somebody has been in before one that he supports others in.
    pub min_tenure: u32,
    /// Classes of a group that somebody supports inside the window; 0: any number.
    pub max_classes: usize,
    /// People and pairs remembered, at most.
    pub max_entries: usize,
}

/// What one batch adds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupportDelta {
    /// Number of the batch.
    pub sequence: u64,
    /// Batch clock, milliseconds.
    pub time_ms: i64,
    /// Who was in the batch; sorted.
    pub people: Vec<u64>,
    /// Whom each class counted: group, subject and class; sorted.
    pub pairs: Vec<(u128, u64, u128)>,
}

/// What is remembered of one person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Person {
    /// Batches that he has been in without a pause of a window; no more are counted than matter.
    batches: u32,
    sequence: u64,
    time_ms: i64,
}

/// One shard as the state has it, sorted: of equal shards the bytes are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupportShard {
    /// People by subject.
    pub people: Vec<(u64, Person)>,
    /// Classes by the [key](supporter_key) of a group and a subject, each with the time at which it was supported last.
    pub classes: Vec<(u128, u128, i64)>,
}

#[derive(Default)]
struct Shard {
    people: HashMap<u64, Person, BuildClassKeyHash>,
    /// By group and subject: classes with the time at which each was supported last, in the order of their keys.
    classes: HashMap<u128, Vec<(u128, i64)>, BuildClassKeyHash>,
}

/// Who supports what, as far as this instance knows.
pub struct Supporters {
    limits: SupportLimits,
    entries: usize,
    shards: Vec<Shard>,
}

/// A group and a subject as one key: the group's digest is uniform, and so is the subject's.
#[must_use]
pub fn supporter_key(group: u128, subject: u64) -> u128 {
    group.wrapping_add(u128::from(subject) << 64 | u128::from(subject))
}

fn shard_of(key: u128) -> usize {
    usize::try_from(key >> 122).expect("six bits")
}

impl Supporters {
    /// Nobody is known yet.
    #[must_use]
    pub fn new(limits: SupportLimits) -> Self {
        Self { limits, entries: 0, shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }

    /// What is asked of supporters.
    #[must_use]
    pub fn limits(&self) -> SupportLimits {
        self.limits
    }

    fn is_fresh(&self, time_ms: i64, now_ms: i64) -> bool {
        now_ms - time_ms <= self.limits.window_ms
    }

    /// Whether somebody has been in enough batches to support others.
    #[must_use]
    pub fn is_settled(&self, subject: u64, now_ms: i64) -> bool {
        let person = self.shards[shard_of(supporter_key(0, subject))].people.get(&subject);
        let seen = person.filter(|person| self.is_fresh(person.time_ms, now_ms)).map_or(0, |person| person.batches);
        seen >= self.limits.min_tenure
    }

    /// Writes the classes of `group` that a subject supports now to `out`, in the order of their keys.
    pub fn supported(&self, group: u128, subject: u64, now_ms: i64, out: &mut Vec<u128>) {
        out.clear();
        let key = supporter_key(group, subject);
        let known = self.shards[shard_of(key)].classes.get(&key);
        out.extend(
            known.into_iter().flatten().filter(|(_, time)| self.is_fresh(*time, now_ms)).map(|(class, _)| *class),
        );
    }

    /// Whether a class more for each of `rows` rows would find room.
    #[must_use]
    pub fn has_room(&self, rows: usize) -> bool {
        self.entries + rows <= self.limits.max_entries
    }

    /// Learns what a batch has shown. True if everything found room.
    pub fn apply(&mut self, delta: &SupportDelta) -> bool {
        let mut all = true;
        let people = if self.limits.min_tenure > 0 { delta.people.as_slice() } else { &[] };
        for &subject in people {
            all &= self.see(subject, delta.sequence, delta.time_ms);
        }
        for &(group, subject, class) in &delta.pairs {
            all &= self.support(supporter_key(group, subject), class, delta.time_ms);
        }
        all
    }

    /// What is remembered of somebody once batch `sequence` has left; none where there is no room, or where nothing is asked of people.
    #[must_use]
    pub fn seen(&self, subject: u64, sequence: u64, time_ms: i64) -> Option<Person> {
        let limits = self.limits;
        match self.shards[shard_of(supporter_key(0, subject))].people.get(&subject) {
            _ if limits.min_tenure == 0 => None,
            Some(person) if person.sequence >= sequence => Some(*person),
            Some(person) => {
                let before = if time_ms - person.time_ms <= limits.window_ms { person.batches } else { 0 };
                Some(Person { batches: (before + 1).min(limits.min_tenure), sequence, time_ms })
            }
            None if self.entries >= limits.max_entries => None,
            None => Some(Person { batches: 1, sequence, time_ms }),
        }
    }

    /// Classes of `key` once those of `new` have been supported at `time_ms`, without those that have left the window; ascending.
    #[must_use]
    pub fn classes_after(&self, key: u128, new: &[u128], time_ms: i64) -> Vec<(u128, i64)> {
        let known = self.shards[shard_of(key)].classes.get(&key);
        let fresh = known.into_iter().flatten().filter(|(_, time)| self.is_fresh(*time, time_ms)).copied();
        let mut classes: BTreeMap<u128, i64> = fresh.collect();
        classes.extend(new.iter().map(|class| (*class, time_ms)));
        classes.into_iter().collect()
    }

    fn see(&mut self, subject: u64, sequence: u64, time_ms: i64) -> bool {
        let Some(person) = self.seen(subject, sequence, time_ms) else { return false };
        let people = &mut self.shards[shard_of(supporter_key(0, subject))].people;
        self.entries += usize::from(people.insert(subject, person).is_none());
        true
    }

    /// Remembers people and classes that another instance has remembered, and that are inside the window at `now_ms`. Its numbers of
    /// batches are not those of this one.
    pub fn take_over(&mut self, people: &[(u64, Person)], classes: &[(u128, u128, i64)], now_ms: i64) {
        // The latest find room first, whatever order they come in.
        let mut people: Vec<_> = people.iter().filter(|(_, person)| self.is_fresh(person.time_ms, now_ms)).collect();
        people.sort_unstable_by_key(|(subject, person)| (std::cmp::Reverse(person.time_ms), *subject));
        let mut classes: Vec<_> = classes.iter().filter(|(_, _, time)| self.is_fresh(*time, now_ms)).copied().collect();
        classes.sort_unstable_by_key(|(key, class, time)| (std::cmp::Reverse(*time), *key, *class));
        for (subject, person) in people {
            let known = self.shards[shard_of(supporter_key(0, *subject))].people.get(subject).copied();
            let newer = known.is_none_or(|known| known.time_ms < person.time_ms);
            let sequence = known.map_or(0, |known| known.sequence);
            if newer {
                self.merge(&SupportShard {
                    people: vec![(*subject, Person { sequence, ..*person })],
                    classes: Vec::new(),
                });
            }
        }
        self.merge(&SupportShard { people: Vec::new(), classes });
    }

    fn support(&mut self, key: u128, class: u128, time_ms: i64) -> bool {
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

    /// Forgets what has left the window in one shard.
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

    /// One shard for the state.
    #[must_use]
    pub fn shard(&self, shard: usize) -> SupportShard {
        let shard = &self.shards[shard];
        let mut people: Vec<(u64, Person)> = shard.people.iter().map(|(subject, person)| (*subject, *person)).collect();
        people.sort_unstable_by_key(|(subject, _)| *subject);
        let of_key = |(key, classes): (&u128, &Vec<(u128, i64)>)| {
            let key = *key;
            classes.clone().into_iter().map(move |(class, time_ms)| (key, class, time_ms))
        };
        let mut classes: Vec<(u128, u128, i64)> = shard.classes.iter().flat_map(of_key).collect();
        classes.sort_unstable();
        SupportShard { people, classes }
    }

    /// Merges a shard that was written before.
    pub fn merge(&mut self, shard: &SupportShard) {
        for (subject, person) in &shard.people {
            if self.limits.min_tenure > 0 && self.entries < self.limits.max_entries {
                let people = &mut self.shards[shard_of(supporter_key(0, *subject))].people;
                self.entries += usize::from(people.insert(*subject, *person).is_none());
            }
        }
        for (key, class, time_ms) in &shard.classes {
            if self.limits.max_classes > 0 {
                self.support(*key, *class, *time_ms);
            }
        }
    }

    /// Number of people and pairs kept.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        let of = |shard: &Shard| shard.people.capacity() * 33 + shard.classes.capacity() * 41;
        self.shards.iter().map(of).sum::<usize>() + self.entries * 32
    }

    /// Bytes that a shard takes on disk, about.
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

    fn supporters(most: usize) -> Supporters {
        Supporters::new(SupportLimits { window_ms: WINDOW, min_tenure: 3, max_classes: 2, max_entries: most })
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

    fn shards(of: &Supporters) -> Vec<SupportShard> {
        (0..SHARDS).map(|shard| of.shard(shard)).collect()
    }

    #[test]
    fn the_latest_of_others_find_room_and_the_expired_none() {
        let person = |time_ms| Person { batches: 2, sequence: 9, time_ms };
        let mut ours = supporters(2);
        ours.take_over(&[(1, person(50)), (2, person(190)), (3, person(120)), (4, person(180))], &[(7, 8, 10)], 200);
        assert_eq!(ours.entries(), 2, "two find room");
        let known = |subject| (0..SHARDS).any(|s| ours.shard(s).people.iter().any(|(known, _)| *known == subject));
        assert_eq!([1, 2, 3, 4].map(known), [false, true, false, true]);
        // The number of the batch is of another instance: the next one here counts.
        assert!(ours.apply(&SupportDelta { sequence: 1, time_ms: 200, people: vec![2], pairs: Vec::new() }));
        assert!(ours.is_settled(2, 200));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn tenure_and_classes_are_those_of_the_window(deltas in deltas(), now in 0i64..700) {
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
                prop_assert_eq!(known.is_settled(subject, now), settled);
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
                    known.supported(group, subject, now, &mut out);
                    prop_assert_eq!(out, truth);
                }
            }
        }

        #[test]
        fn repetition_restarts_and_expiry_change_nothing(deltas in deltas(), cut in 0usize..12, from in 0usize..12) {
            let cut = cut.min(deltas.len());
            let mut straight = supporters(10_000);
            deltas.iter().for_each(|delta| assert!(straight.apply(delta)));
            // Written after some batches, read again, and a few of these applied once more.
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
                prop_assert_eq!(straight.is_settled(subject, now), second.is_settled(subject, now));
            }
        }

        #[test]
        fn a_full_memory_says_so_and_understates(deltas in deltas(), most in 0usize..10) {
            let (mut full, mut whole) = (supporters(most), supporters(10_000));
            for delta in &deltas {
                let room = full.has_room(delta.people.len() + delta.pairs.len());
                let complete = full.apply(delta);
                prop_assert!(complete || !room);
                whole.apply(delta);
                prop_assert!(full.entries() <= most);
                for subject in 0..6 {
                    prop_assert!(!full.is_settled(subject, delta.time_ms) || whole.is_settled(subject, delta.time_ms));
                }
            }
        }
    }
}

//! Supporters: since when people have been seen, and which classes each of them supports.
//!
//! Kept where `privacy.min_tenure` or `privacy.max_classes_per_subject` is set; both bound what invented people can do. A
//! person that has not been seen inside the release window is as one never seen. Learned from the delta of a batch that has
//! left and by its number: a delta that is applied once more changes nothing, and what has expired counts as nothing
//! whether it has been forgotten already or not, so that a restart changes no byte.
//!
//! Memory: at most `max_entries · 80` bytes, at any uptime. Who finds no room is not seen, and nobody supports a class that
//! could not be recorded: a memory that is full costs releases, never crowds.

use super::bytes::{Reader, SHARDS};
use crate::records::digest::BuildClassKeyHash;
use hashbrown::HashMap;

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

impl SupportDelta {
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.time_ms.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.people.len()).expect("bounded by the batch").to_le_bytes());
        self.people.iter().for_each(|person| out.extend_from_slice(&person.to_le_bytes()));
        out.extend_from_slice(&u32::try_from(self.pairs.len()).expect("bounded by the batch").to_le_bytes());
        for (group, subject, class) in &self.pairs {
            out.extend_from_slice(&group.to_le_bytes());
            out.extend_from_slice(&subject.to_le_bytes());
            out.extend_from_slice(&class.to_le_bytes());
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (sequence, time_ms) = (reader.u64()?, i64::from_le_bytes(reader.take()?));
        let mut delta = Self { sequence, time_ms, ..Self::default() };
        for _ in 0..reader.u32()? {
            delta.people.push(reader.u64()?);
        }
        for _ in 0..reader.u32()? {
            delta.pairs.push((reader.u128()?, reader.u64()?, reader.u128()?));
        }
        Some(delta)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Person {
    /// Batches that he has been in without a pause of a window; no more are counted than matter.
    batches: u32,
    sequence: u64,
    time_ms: i64,
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

    fn see(&mut self, subject: u64, sequence: u64, time_ms: i64) -> bool {
        let (limits, room) = (self.limits, self.entries < self.limits.max_entries);
        let people = &mut self.shards[shard_of(supporter_key(0, subject))].people;
        match people.get_mut(&subject) {
            Some(person) if person.sequence >= sequence => {}
            Some(person) => {
                let before = if time_ms - person.time_ms <= limits.window_ms { person.batches } else { 0 };
                *person = Person { batches: (before + 1).min(limits.min_tenure), sequence, time_ms };
            }
            None if !room => return false,
            None => {
                people.insert(subject, Person { batches: 1, sequence, time_ms });
                self.entries += 1;
            }
        }
        true
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
        let window = self.limits.window_ms;
        self.retain(shard, |_, time_ms| now_ms - time_ms <= window, |_, time_ms| now_ms - time_ms <= window);
    }

    /// Keeps the people, and the classes by the [key](supporter_key) of their group and subject, for which a predicate holds; both are given
    /// the time of the last batch.
    fn retain(&mut self, shard: usize, person: impl Fn(u64, i64) -> bool, class: impl Fn(u128, i64) -> bool) {
        let shard = &mut self.shards[shard];
        let entries = |shard: &Shard| shard.people.len() + shard.classes.values().map(Vec::len).sum::<usize>();
        let before = entries(shard);
        shard.people.retain(|subject, known| person(*subject, known.time_ms));
        shard.classes.retain(|key, classes| {
            classes.retain(|(_, time_ms)| class(*key, *time_ms));
            !classes.is_empty()
        });
        self.entries -= before - entries(shard);
    }

    /// Returns a shard of the state without the people and the keys for which a predicate holds, and the number of entries removed; none where
    /// the bytes are not one. The configured limits do not apply.
    #[must_use]
    pub fn shard_without(
        shard: usize,
        bytes: &[u8],
        is_subject: impl Fn(u64) -> bool,
        is_key: impl Fn(u128) -> bool,
    ) -> Option<(Vec<u8>, u64)> {
        let max = usize::MAX;
        let mut all = Self::new(SupportLimits { window_ms: 0, min_tenure: 1, max_classes: max, max_entries: max });
        if !bytes.is_empty() {
            all.merge_shard(&mut Reader(bytes))?;
        }
        let before = all.entries;
        all.retain(shard, |subject, _| !is_subject(subject), |key, _| !is_key(key));
        Some((all.shard_to_bytes(shard), (before - all.entries) as u64))
    }

    /// One shard as bytes; the order is fixed, so equal shards are equal bytes.
    #[must_use]
    pub fn shard_to_bytes(&self, shard: usize) -> Vec<u8> {
        let (shard, mut out) = (&self.shards[shard], Vec::new());
        let mut people: Vec<(&u64, &Person)> = shard.people.iter().collect();
        people.sort_unstable_by_key(|(subject, _)| **subject);
        out.extend_from_slice(&u32::try_from(people.len()).expect("entries are bounded").to_le_bytes());
        for (subject, person) in people {
            out.extend_from_slice(&subject.to_le_bytes());
            out.extend_from_slice(&person.batches.to_le_bytes());
            out.extend_from_slice(&person.sequence.to_le_bytes());
            out.extend_from_slice(&person.time_ms.to_le_bytes());
        }
        let mut keys: Vec<u128> = shard.classes.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            for (class, time_ms) in &shard.classes[&key] {
                out.extend_from_slice(&key.to_le_bytes());
                out.extend_from_slice(&class.to_le_bytes());
                out.extend_from_slice(&time_ms.to_le_bytes());
            }
        }
        out
    }

    /// Merges what is left of `reader`, a shard that was written before. `None` when it is not one.
    pub(super) fn merge_shard(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        for _ in 0..reader.u32()? {
            let subject = reader.u64()?;
            let person =
                Person { batches: reader.u32()?, sequence: reader.u64()?, time_ms: i64::from_le_bytes(reader.take()?) };
            if self.limits.min_tenure > 0 && self.entries < self.limits.max_entries {
                let people = &mut self.shards[shard_of(supporter_key(0, subject))].people;
                self.entries += usize::from(people.insert(subject, person).is_none());
            }
        }
        while !reader.is_empty() {
            let (key, class) = (reader.u128()?, reader.u128()?);
            let time_ms = i64::from_le_bytes(reader.take()?);
            if self.limits.max_classes > 0 {
                self.support(key, class, time_ms);
            }
        }
        Some(())
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
    use std::collections::BTreeMap;

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

    fn bytes(of: &Supporters) -> Vec<Vec<u8>> {
        (0..SHARDS).map(|shard| of.shard_to_bytes(shard)).collect()
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
            for shard in bytes(&first) {
                prop_assert!(second.merge_shard(&mut Reader(&shard)).is_some());
            }
            deltas[from.min(cut)..].iter().for_each(|delta| assert!(second.apply(delta)));
            prop_assert_eq!(bytes(&straight), bytes(&second));
            prop_assert_eq!(straight.entries(), second.entries());
            let now = deltas.last().map_or(0, |delta| delta.time_ms);
            (0..SHARDS).for_each(|shard| second.expire(shard, now));
            for subject in 0..6 {
                prop_assert_eq!(straight.is_settled(subject, now), second.is_settled(subject, now));
            }
            for delta in &deltas {
                let mut out = Vec::new();
                delta.append_to(&mut out);
                prop_assert_eq!(SupportDelta::read(&mut Reader(&out)), Some(delta.clone()));
                prop_assert_eq!(SupportDelta::read(&mut Reader(&out[..out.len() - 1])), None);
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

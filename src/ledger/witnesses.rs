//! Witnesses: from which raw tuples the releases in the ledger came. Kept for strict recoding only.
//!
//! A class keeps its latest releases, at most k subjects of one raw tuple and at most `PER_CLASS · k` in all. Both cuts
//! keep the greatest of a total order, so that merging is a join as the ledger's is: a delta may be applied twice, in
//! any order. The order is that of the batches and not of their clocks: who is kept, and with it what leaves, does not hang on
//! how fast a stream runs. What is cut, or finds no room, only understates strict support.
//!
//! Memory: at most `max_entries · (32 + 4·attributes + 160)` bytes, at any uptime, the raw tuples counted: an entry that
//! is the only one of its raw tuple pays for all of it.

use super::bytes::SHARDS;
use super::occurrences::{Occurrence, Space};
use crate::records::codebook::{Code, Codebook, FORGOTTEN};
use crate::records::digest::BuildClassKeyHash;
use crate::records::subject::NO_SUBJECT;
use crate::records::table::Batch;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// An earlier release: who, when, in which batch, and which raw tuple (a number of [`Witnesses::raw_tuple`]). The time says
/// how long it counts; what is latest, the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Who was released.
    pub subject: u64,
    /// When, in whole seconds of the age of the state.
    pub time: u32,
    /// Number of the batch.
    pub sequence: u64,
    /// Number of the raw tuple.
    pub raw: u32,
}

/// Entries that a class keeps, in multiples of k.
const PER_CLASS: usize = 8;

/// A release as it is written to the state: the raw tuple by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Seen {
    /// Key of the class.
    pub class: u128,
    /// Who was released in it.
    pub subject: u64,
    /// When, in whole seconds of the age of the state.
    pub time: u32,
    /// Number of the batch.
    pub sequence: u64,
    /// Key of the raw tuple.
    pub raw: u128,
}

/// A raw tuple as it is written to the state: canonical texts, since codes do not outlive the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawTuple {
    /// The key by which releases name it.
    pub key: u128,
    /// Names the attributes.
    pub base: u128,
    /// A canonical text for each attribute.
    pub texts: Vec<String>,
}

/// What one batch adds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessDelta {
    /// The releases of the batch.
    pub seen: Vec<Seen>,
    /// Raw tuples that were not known before.
    pub raws: Vec<RawTuple>,
}

struct Raw {
    key: u128,
    space: usize,
    codes: Vec<Code>,
    uses: u32,
}

/// Releases with their raw tuples, as far as this instance knows.
pub struct Witnesses {
    k: usize,
    max_entries: usize,
    entries: usize,
    spaces: Vec<Space>,
    shards: Vec<HashMap<u128, Vec<Witness>, BuildClassKeyHash>>,
    raws: Vec<Raw>,
    numbers: HashMap<u128, u32, BuildClassKeyHash>,
    free: Vec<u32>,
    /// Raw tuples that may have lost their last use.
    idle: Vec<u32>,
    /// Keys of raw tuples that are no longer known, until somebody asks.
    gone: Vec<u128>,
}

impl Witnesses {
    /// Nothing has left yet: room for `max_entries` releases in classes of `k` subjects, over `spaces`.
    #[must_use]
    pub fn new(k: usize, max_entries: usize, spaces: Vec<Space>) -> Self {
        Self {
            k,
            max_entries,
            entries: 0,
            spaces,
            shards: (0..SHARDS).map(|_| HashMap::default()).collect(),
            raws: Vec::new(),
            numbers: HashMap::default(),
            free: Vec::new(),
            idle: Vec::new(),
            gone: Vec::new(),
        }
    }

    fn shard_of(class: u128) -> usize {
        usize::try_from(class >> 122).expect("six bits")
    }

    /// The releases in a class, latest first.
    #[must_use]
    pub fn of_class(&self, class: u128) -> &[Witness] {
        self.shards[Self::shard_of(class)].get(&class).map_or(&[], Vec::as_slice)
    }

    /// The codes of a raw tuple, an attribute of its space each.
    #[must_use]
    pub fn raw_tuple(&self, raw: u32) -> &[Code] {
        &self.raws[raw as usize].codes
    }

    /// The attributes of each kind of class.
    #[must_use]
    pub fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    /// What the releases of a batch add: no more than its classes can keep.
    #[must_use]
    pub fn delta(
        &self,
        occurrences: &[Occurrence],
        sequence: u64,
        time: u32,
        batch: &Batch,
        books: &[Codebook],
    ) -> WitnessDelta {
        let mut delta = WitnessDelta::default();
        let mut new: HashMap<u128, Occurrence, BuildClassKeyHash> = HashMap::default();
        // All are equally late, so the greatest subjects stay; occurrences are sorted by class, then subject.
        let (mut class, mut of_class) = (None, 0);
        let mut of_raw: HashMap<u128, usize, BuildClassKeyHash> = HashMap::default();
        for occurrence in occurrences.iter().rev() {
            if class != Some(occurrence.class) {
                (class, of_class) = (Some(occurrence.class), 0);
                of_raw.clear();
            }
            let same = of_raw.entry(occurrence.raw).or_insert(0);
            if of_class == PER_CLASS * self.k || *same == self.k {
                continue;
            }
            *same += 1;
            of_class += 1;
            if !self.numbers.contains_key(&occurrence.raw) {
                new.entry(occurrence.raw).or_insert(*occurrence);
            }
            let Occurrence { class, subject, raw, .. } = *occurrence;
            delta.seen.push(Seen { class, subject, time, sequence, raw });
        }
        let mut keys: Vec<u128> = new.keys().copied().collect();
        keys.sort_unstable();
        let written = |key: u128| {
            let Occurrence { space, row, .. } = new[&key];
            let space = &self.spaces[space];
            let text = |&a: &usize| books[a].canonical(batch.columns[a][row as usize]).to_owned();
            RawTuple { key, base: space.base, texts: space.attributes.iter().map(text).collect() }
        };
        delta.raws = keys.into_iter().map(written).collect();
        delta
    }

    /// Adds what a batch, or the state, has seen. True if everything found room.
    pub fn apply(&mut self, delta: &WitnessDelta, books: &mut [Codebook]) -> bool {
        for raw in &delta.raws {
            self.learn(raw, books);
        }
        let mut all = true;
        for seen in &delta.seen {
            all &= self.record(seen);
        }
        self.sweep();
        all
    }

    /// Learns a raw tuple. One that the codebooks would no longer encode to the same values is not learned: its exit
    /// could not be computed.
    fn learn(&mut self, raw: &RawTuple, books: &mut [Codebook]) {
        let Some(space) = self.spaces.iter().position(|s| s.base == raw.base) else { return };
        let attributes = &self.spaces[space].attributes;
        if self.numbers.contains_key(&raw.key) || raw.texts.len() != attributes.len() {
            return;
        }
        let codes: Vec<Code> =
            attributes.iter().zip(&raw.texts).map(|(&a, text)| books[a].encode_canonical(text)).collect();
        let digests = attributes.iter().zip(&codes).map(|(&a, &code)| books[a].digests(0)[code as usize]);
        if digests.fold(raw.base, u128::wrapping_add) != raw.key {
            return;
        }
        let learned = Raw { key: raw.key, space, codes, uses: 0 };
        let number = if let Some(number) = self.free.pop() {
            self.raws[number as usize] = learned;
            number
        } else {
            self.raws.push(learned);
            u32::try_from(self.raws.len() - 1).expect("entries are bounded")
        };
        self.numbers.insert(raw.key, number);
        self.idle.push(number);
    }

    /// False for want of room.
    fn record(&mut self, seen: &Seen) -> bool {
        let Some(&raw) = self.numbers.get(&seen.raw) else { return true };
        if seen.subject == NO_SUBJECT {
            return true;
        }
        let (k, room) = (self.k, self.entries < self.max_entries);
        let shard = &mut self.shards[Self::shard_of(seen.class)];
        if !room && !shard.contains_key(&seen.class) {
            return false;
        }
        let class = shard.entry(seen.class).or_default();
        let before = class.len();
        if let Some(at) = class.iter().position(|w| w.subject == seen.subject && w.raw == raw) {
            if class[at].sequence >= seen.sequence {
                return true;
            }
            class.remove(at);
            self.raws[raw as usize].uses -= 1;
        } else if !room {
            return false;
        }
        let raws = &mut self.raws;
        let order = |w: &Witness| (w.sequence, w.subject, raws[w.raw as usize].key);
        let at = class.partition_point(|w| order(w) > (seen.sequence, seen.subject, seen.raw));
        class.insert(at, Witness { subject: seen.subject, time: seen.time, sequence: seen.sequence, raw });
        let of_raw: Vec<usize> = class.iter().enumerate().filter(|(_, w)| w.raw == raw).map(|(i, _)| i).collect();
        let cut = if of_raw.len() > k {
            of_raw.last().map(|&last| class.remove(last))
        } else if class.len() > PER_CLASS * k {
            class.pop()
        } else {
            None
        };
        raws[raw as usize].uses += 1;
        if let Some(cut) = cut {
            raws[cut.raw as usize].uses -= 1;
            self.idle.push(cut.raw);
        }
        self.entries = self.entries + class.len() - before;
        true
    }

    /// Forgets the raw tuples that nothing uses any more.
    fn sweep(&mut self) {
        for number in std::mem::take(&mut self.idle) {
            let raw = &mut self.raws[number as usize];
            if raw.uses == 0 && self.numbers.remove(&raw.key).is_some() {
                self.gone.push(raw.key);
                raw.codes = Vec::new();
                self.free.push(number);
            }
        }
    }

    /// Forgets what is no longer fresh in one shard.
    pub fn expire(&mut self, shard: usize, is_fresh: impl Fn(&Witness) -> bool) {
        let Self { shards, raws, idle, entries, .. } = self;
        shards[shard].retain(|_, class| {
            class.retain(|witness| {
                let keep = is_fresh(witness);
                if !keep {
                    raws[witness.raw as usize].uses -= 1;
                    idle.push(witness.raw);
                    *entries -= 1;
                }
                keep
            });
            !class.is_empty()
        });
        self.sweep();
    }

    /// The keys of raw tuples that were forgotten since the last call and are not known again.
    pub fn take_gone(&mut self) -> Vec<u128> {
        let numbers = &self.numbers;
        let mut gone: Vec<u128> = self.gone.drain(..).filter(|key| !numbers.contains_key(key)).collect();
        gone.sort_unstable();
        gone.dedup();
        gone
    }

    /// One shard as it is written to the state, in a fixed order.
    #[must_use]
    pub fn shard(&self, shard: usize) -> Vec<Seen> {
        let mut classes: Vec<u128> = self.shards[shard].keys().copied().collect();
        classes.sort_unstable();
        let of_class = |class: u128| {
            let seen = move |w: &Witness| {
                let Witness { subject, time, sequence, raw } = *w;
                Seen { class, subject, time, sequence, raw: self.raws[raw as usize].key }
            };
            self.of_class(class).iter().map(seen)
        };
        classes.into_iter().flat_map(of_class).collect()
    }

    /// Number of releases kept in one shard.
    #[must_use]
    pub fn shard_entries(&self, shard: usize) -> usize {
        self.shards[shard].values().map(Vec::len).sum()
    }

    /// Number of releases kept.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Marks the codes of an attribute that raw tuples need.
    pub fn mark_used(&self, attribute: usize, used: &mut [bool]) {
        for raw in self.raws.iter().filter(|r| !r.codes.is_empty()) {
            if let Some(at) = self.spaces[raw.space].attributes.iter().position(|a| *a == attribute) {
                used[raw.codes[at] as usize] = true;
            }
        }
    }

    /// Replaces the codes of an attribute after its codebook was compacted; `map` is old → new.
    pub fn remap(&mut self, attribute: usize, map: &[Code]) {
        for raw in self.raws.iter_mut().filter(|r| !r.codes.is_empty()) {
            if let Some(at) = self.spaces[raw.space].attributes.iter().position(|a| *a == attribute) {
                raw.codes[at] = map[raw.codes[at] as usize];
                debug_assert_ne!(raw.codes[at], FORGOTTEN, "codes in use are kept");
            }
        }
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        let classes: usize = self.shards.iter().map(|s| s.capacity() * 41).sum();
        let raw: usize = self.spaces.iter().map(|s| s.attributes.len() * 4).max().unwrap_or(0) + 88;
        classes + self.entries * size_of::<Witness>() + self.raws.len() * raw
    }
}

#[cfg(test)]
mod tests;

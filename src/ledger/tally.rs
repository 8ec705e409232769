//! The tally: which sensitive values have been shown in which class, by whom, and when last.
//!
//! Kept for the attributes that `[[privacy.model]]` protects, beside the classes of the ledger and with their keys. An entry
//! is (value, subject, latest time and batch), merged by union and maximum: a join, as the ledger's are, so that a delta may be
//! applied twice and in any order (docs/architecture.md rule 6). How much is kept depends on what is asked:
//!
//! - *Distinct diversity* is monotone, so knowing too little is safe. A class keeps, of its entries in the order (batch,
//!   value, subject), the greatest ℓ of each value and the greatest 4·ℓ² in all. Both cuts keep the greatest of a total
//!   order, which leaves the merge a join. It is that of the batches and not of their clocks, so that what is known does not
//!   hang on how fast a stream runs.
//! - *Everything else* is not: an entry that is missing could have been the one that breaks the model. All entries of the
//!   window are kept, and what would find no room is not shown ([`Tally::is_open`]). An attribute whose past is not
//!   known completely, because its models were asked for later than something left, is closed until that has left the
//!   window.
//!
//! Memory: at most `max_entries · (32 + 57)` bytes, at any uptime: an entry that is the only one of its class pays for the
//! class.

use super::bytes::{Reader, SHARDS};
use crate::records::digest::BuildClassKeyHash;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;

/// How much of a class is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// Every entry of the window.
    Everything,
    /// What shows that ℓ values belong to ℓ subjects.
    Few {
        /// ℓ.
        l: usize,
    },
}

impl Keeps {
    fn of_value(self) -> usize {
        match self {
            Self::Everything => usize::MAX,
            Self::Few { l } => l,
        }
    }

    fn of_class(self) -> usize {
        match self {
            Self::Everything => usize::MAX,
            Self::Few { l } => 4 * l * l,
        }
    }
}

/// One value that was shown in a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Showing {
    /// Position of the attribute in the schema.
    pub attribute: u32,
    /// Key of the class.
    pub class: u128,
    /// Digest of the value.
    pub value: u64,
    /// Who has shown it.
    pub subject: u64,
}

/// What one batch adds, all at the batch's time: sorted, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TallyDelta {
    /// Batch clock, milliseconds.
    pub time_ms: i64,
    /// Number of the batch.
    pub sequence: u64,
    /// What was shown.
    pub showings: Vec<Showing>,
}

impl TallyDelta {
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        if self.showings.is_empty() {
            return;
        }
        out.extend_from_slice(&self.time_ms.to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        for showing in &self.showings {
            out.extend_from_slice(&showing.attribute.to_le_bytes());
            out.extend_from_slice(&showing.class.to_le_bytes());
            out.extend_from_slice(&showing.value.to_le_bytes());
            out.extend_from_slice(&showing.subject.to_le_bytes());
        }
    }

    /// What [`append_to`](Self::append_to) has written, to the end of `reader`.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        if reader.is_empty() {
            return Some(Self::default());
        }
        let (time_ms, sequence) = (i64::from_le_bytes(reader.take()?), reader.u64()?);
        let mut showings = Vec::new();
        while !reader.is_empty() {
            let (attribute, class) = (reader.u32()?, reader.u128()?);
            showings.push(Showing { attribute, class, value: reader.u64()?, subject: reader.u64()? });
        }
        // Out of order they would be merged into a shard that no start could read back.
        let sorted = showings.is_sorted_by(|a, b| a < b);
        (sorted && !showings.is_empty()).then_some(Self { time_ms, sequence, showings })
    }
}

/// An entry of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    value: u64,
    subject: u64,
    time_ms: i64,
    sequence: u64,
}

impl Entry {
    fn pair(&self) -> (u64, u64) {
        (self.value, self.subject)
    }

    fn order(&self) -> (u64, u64, u64) {
        (self.sequence, self.value, self.subject)
    }
}

/// Classes by key; entries in the order of their pairs.
type Classes = HashMap<u128, Vec<Entry>, BuildClassKeyHash>;

struct OfAttribute {
    attribute: u32,
    keeps: Keeps,
    /// Values shown up to here may be missing.
    unknown_until_ms: Option<i64>,
    shards: Vec<Classes>,
}

/// What the state says of an attribute beside its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Position in the schema.
    pub attribute: u32,
    /// Whether everything was kept.
    pub everything: bool,
    /// Values shown up to here (batch clock, milliseconds) may be missing.
    pub unknown_until_ms: Option<i64>,
}

/// The sensitive values that have been shown, as far as this instance knows.
pub struct Tally {
    window_ms: i64,
    max_entries: usize,
    entries: usize,
    unrecorded: u64,
    attributes: Vec<OfAttribute>,
}

fn shard_of(class: u128) -> usize {
    usize::try_from(class >> 122).expect("six bits")
}

impl Tally {
    /// An empty tally of `attributes` (positions in the schema) for values that count for `window_ms`; 0: a batch stands
    /// alone, and nothing is kept.
    #[must_use]
    pub fn new(window_ms: i64, max_entries: usize, attributes: &[(usize, Keeps)]) -> Self {
        let of = |&(attribute, keeps): &(usize, Keeps)| OfAttribute {
            attribute: u32::try_from(attribute).expect("a schema is short"),
            keeps,
            unknown_until_ms: None,
            shards: (0..SHARDS).map(|_| Classes::default()).collect(),
        };
        Self { window_ms, max_entries, entries: 0, unrecorded: 0, attributes: attributes.iter().map(of).collect() }
    }

    fn of(&self, attribute: usize) -> Option<&OfAttribute> {
        self.attributes.iter().find(|of| of.attribute as usize == attribute)
    }

    /// How much is kept of an attribute; none where it is not protected.
    #[must_use]
    pub fn keeps(&self, attribute: usize) -> Option<Keeps> {
        self.of(attribute).map(|of| of.keeps)
    }

    /// Appends the pairs (value, subject) shown in a class not longer than the window before `now_ms`.
    pub fn pairs(&self, attribute: usize, class: u128, now_ms: i64, out: &mut Vec<(u64, u64)>) {
        let entries = self.of(attribute).and_then(|of| of.shards[shard_of(class)].get(&class));
        let counts = |entry: &&Entry| self.window_ms > 0 && now_ms - entry.time_ms <= self.window_ms;
        out.extend(entries.into_iter().flatten().filter(counts).map(Entry::pair));
    }

    /// Whether values of `attribute` may be shown now: nothing of its window is unknown, and one more entry for each of
    /// `rows` rows and of every attribute that is kept whole would find room.
    #[must_use]
    pub fn is_open(&self, attribute: usize, rows: usize, now_ms: i64) -> bool {
        let Some(of) = self.of(attribute) else { return false };
        if of.keeps != Keeps::Everything || self.window_ms == 0 {
            return true;
        }
        let known = of.unknown_until_ms.is_none_or(|until| now_ms - until > self.window_ms);
        known && !self.is_full(rows)
    }

    /// Whether one more entry for each of `rows` rows and of every attribute that is kept whole would find no room; where
    /// none is, whether any entry would.
    #[must_use]
    pub fn is_full(&self, rows: usize) -> bool {
        let whole = self.attributes.iter().filter(|of| of.keeps == Keeps::Everything).count();
        self.entries + (rows * whole).max(1) > self.max_entries
    }

    /// Of the `showings` of batch number `sequence` (sorted, each once), what the tally must learn: what would be cut at once
    /// is left out.
    #[must_use]
    pub fn delta(&self, showings: &[Showing], sequence: u64, time_ms: i64) -> TallyDelta {
        if self.window_ms == 0 {
            return TallyDelta::default();
        }
        let mut kept = Vec::with_capacity(showings.len());
        for of_class in showings.chunk_by(|a, b| (a.attribute, a.class) == (b.attribute, b.class)) {
            let Showing { attribute, class, .. } = of_class[0];
            let Some(of) = self.of(attribute as usize) else { continue };
            if of.keeps == Keeps::Everything {
                kept.extend_from_slice(of_class);
                continue;
            }
            let entry = |s: &Showing| Entry { value: s.value, subject: s.subject, time_ms, sequence };
            let mut entries: Vec<Entry> = of_class.iter().map(entry).collect();
            cut(&mut entries, of.keeps);
            kept.extend(entries.iter().map(|e| Showing { attribute, class, value: e.value, subject: e.subject }));
        }
        TallyDelta { time_ms, sequence, showings: kept }
    }

    /// Learns what a batch has shown. True if everything found room.
    pub fn apply(&mut self, delta: &TallyDelta) -> bool {
        let of = |s: &Showing| (s.attribute, s.class);
        delta.showings.chunk_by(|a, b| of(a) == of(b)).fold(true, |all, of_class| {
            let (attribute, class) = of(&of_class[0]);
            let TallyDelta { time_ms, sequence, .. } = *delta;
            let entry = |s: &Showing| Entry { value: s.value, subject: s.subject, time_ms, sequence };
            let new: Vec<Entry> = of_class.iter().map(entry).collect();
            self.merge(attribute, class, &new) && all
        })
    }

    /// Merges `new`, in the order of their pairs, into a class. False for want of room.
    fn merge(&mut self, attribute: u32, class: u128, new: &[Entry]) -> bool {
        let Some(of) = self.attributes.iter_mut().find(|of| of.attribute == attribute) else { return true };
        let entries = of.shards[shard_of(class)].entry(class).or_default();
        let before = entries.len();
        let mut merged = Vec::with_capacity(before + new.len());
        let (mut old, mut added) = (entries.iter().copied().peekable(), new.iter().copied().peekable());
        while let (Some(a), Some(b)) = (old.peek(), added.peek()) {
            let pair = a.pair().cmp(&b.pair());
            let (time_ms, sequence) = (a.time_ms.max(b.time_ms), a.sequence.max(b.sequence));
            let next = if pair.is_le() { old.next() } else { added.next() };
            if pair.is_eq() {
                added.next();
                merged.extend(next.map(|entry| Entry { time_ms, sequence, ..entry }));
            } else {
                merged.extend(next);
            }
        }
        merged.extend(old.chain(added));
        cut(&mut merged, of.keeps);
        let fits = merged.len() <= before || self.entries - before + merged.len() <= self.max_entries;
        if !fits {
            self.unrecorded += new.len() as u64;
            if of.keeps == Keeps::Everything {
                of.unknown_until_ms = of.unknown_until_ms.max(new.iter().map(|entry| entry.time_ms).max());
            }
            // What is known already has still been seen once more.
            let seen = |entry: &Entry| merged.binary_search_by_key(&entry.pair(), Entry::pair).map(|at| merged[at]);
            merged = entries.iter().map(|entry| seen(entry).unwrap_or(*entry)).collect();
        }
        self.entries = self.entries - before + merged.len();
        *entries = merged;
        entries.shrink_to_fit();
        if entries.is_empty() {
            of.shards[shard_of(class)].remove(&class);
        }
        fits
    }

    /// Forgets what has left the window in one shard.
    pub fn expire(&mut self, shard: usize, now_ms: i64) {
        for of in &mut self.attributes {
            of.shards[shard].retain(|_, class| {
                let before = class.len();
                class.retain(|entry| now_ms - entry.time_ms <= self.window_ms);
                self.entries -= before - class.len();
                !class.is_empty()
            });
        }
    }

    /// One shard as bytes; the order is fixed, so equal shards are equal bytes.
    #[must_use]
    pub fn shard_to_bytes(&self, shard: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.shard_bytes(shard));
        for of in &self.attributes {
            let mut classes: Vec<u128> = of.shards[shard].keys().copied().collect();
            classes.sort_unstable();
            for class in classes {
                let entries = &of.shards[shard][&class];
                out.extend_from_slice(&of.attribute.to_le_bytes());
                out.extend_from_slice(&class.to_le_bytes());
                out.extend_from_slice(&u32::try_from(entries.len()).expect("entries are bounded").to_le_bytes());
                for entry in entries {
                    out.extend_from_slice(&entry.value.to_le_bytes());
                    out.extend_from_slice(&entry.subject.to_le_bytes());
                    out.extend_from_slice(&entry.time_ms.to_le_bytes());
                    out.extend_from_slice(&entry.sequence.to_le_bytes());
                }
            }
        }
        out
    }

    /// Merges a shard that was written before. `None` when the bytes are not a shard.
    pub fn merge_shard(&mut self, bytes: &[u8]) -> Option<()> {
        let mut reader = Reader(bytes);
        while !reader.is_empty() {
            let (attribute, class) = (reader.u32()?, reader.u128()?);
            let mut entries = Vec::new();
            for _ in 0..reader.u32()? {
                let (value, subject) = (reader.u64()?, reader.u64()?);
                let (time_ms, sequence) = (i64::from_le_bytes(reader.take()?), reader.u64()?);
                entries.push(Entry { value, subject, time_ms, sequence });
            }
            if !entries.is_sorted_by(|a, b| a.pair() < b.pair()) {
                return None;
            }
            self.merge(attribute, class, &entries);
        }
        Some(())
    }

    /// What the state must say of the attributes, beside the entries.
    #[must_use]
    pub fn standings(&self) -> Vec<Standing> {
        let standing = |of: &OfAttribute| Standing {
            attribute: of.attribute,
            everything: of.keeps == Keeps::Everything,
            unknown_until_ms: of.unknown_until_ms,
        };
        self.attributes.iter().map(standing).collect()
    }

    /// Continues after a restart: `standings` are those of the last batch that left, `last_ms` is its clock; none when
    /// nothing has left. An attribute that was not kept as it is now is unknown up to there.
    pub fn resume(&mut self, standings: &[Standing], last_ms: Option<i64>) {
        for of in &mut self.attributes {
            let same = |s: &&Standing| s.attribute == of.attribute && (s.everything || of.keeps != Keeps::Everything);
            of.unknown_until_ms = standings.iter().find(same).map_or(last_ms, |s| s.unknown_until_ms);
        }
    }

    /// Attributes of which nothing is shown at `now_ms` because their past is not known.
    #[must_use]
    pub fn unknown(&self, now_ms: i64) -> usize {
        let unknown = |of: &&OfAttribute| {
            of.keeps == Keeps::Everything && of.unknown_until_ms.is_some_and(|until| now_ms - until <= self.window_ms)
        };
        self.attributes.iter().filter(unknown).count()
    }

    /// Number of entries kept.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Entries that found no room.
    #[must_use]
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        let classes =
            self.attributes.iter().flat_map(|of| &of.shards).map(|shard| shard.capacity() * 57).sum::<usize>();
        classes + self.entries * size_of::<Entry>()
    }

    /// Bytes that a shard takes on disk, about.
    #[must_use]
    pub fn shard_bytes(&self, shard: usize) -> usize {
        let of_class = |class: &Vec<Entry>| 24 + class.len() * size_of::<Entry>();
        self.attributes.iter().map(|of| of.shards[shard].values().map(of_class).sum::<usize>()).sum()
    }
}

/// Cuts the entries of a class, in the order of their pairs, to what is kept.
fn cut(entries: &mut Vec<Entry>, keeps: Keeps) {
    if entries.len() <= keeps.of_value() {
        return;
    }
    let mut greatest: Vec<Entry> = Vec::with_capacity(entries.len());
    for of_value in entries.chunk_by_mut(|a, b| a.value == b.value) {
        of_value.sort_unstable_by_key(|entry| Reverse(entry.order()));
        greatest.extend_from_slice(&of_value[..of_value.len().min(keeps.of_value())]);
    }
    greatest.sort_unstable_by_key(|entry| Reverse(entry.order()));
    greatest.truncate(keeps.of_class());
    greatest.sort_unstable_by_key(Entry::pair);
    *entries = greatest;
}

#[cfg(test)]
mod tests;

//! The ledger: which subjects have been released in which class, and when last.
//!
//! An entry is a bounded set of (subject digest, latest release time), merged by union and maximum and cut to the k
//! latest: a join, hence idempotent, commutative and associative, so that a delta may be applied twice and two ledgers
//! may be merged in any order (docs/architecture.md rule 6). Keeping the k latest is exact: support reaches k inside
//! the window if and only if the k-th latest distinct subject is inside it. So which of the subjects of one second are
//! kept, and what [`LedgerAt::well_supported`] leaves out, changes no count as long as nothing leaves the window: what
//! is released does not hang on how fast a stream runs inside it.
//!
//! Memory: at most `max_classes · (48 + 16·k)` bytes, at any uptime. A class that finds no room is not recorded, which
//! only ever understates support.

use super::said::{Said, SaidDelta};
use super::supporters::{SupportDelta, Supporters};
use super::tally::{Tally, TallyDelta};
use super::witnesses::{WitnessDelta, Witnesses};
use crate::anonymity::treatment::budget::Budget;
use crate::anonymity::treatment::crowd::{NO_SUBJECT, Released};
use crate::anonymity::treatment::exits::{Witness, Witnessed};
use crate::anonymity::treatment::shown::Shown;
use crate::anonymity::treatment::sightings::sightings;
use crate::records::codebook::{CellId, Code, Codebook};
use crate::records::digest::{BuildClassKeyHash, DigestKey};
use crate::records::table::Batch;
use hashbrown::HashMap;

/// The ledger is written to disk in this many parts, one after another.
pub const SHARDS: usize = 64;

/// What one batch adds: classes with the subjects released in them, all at the batch's time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerDelta {
    /// Age of the state in whole seconds, rounded down.
    pub time: u32,
    /// Class keys, each with the number of its subjects in `subjects`.
    pub classes: Vec<(u128, u32)>,
    pub subjects: Vec<u64>,
    /// Who was in the batch and whom its classes counted; empty where nothing is asked of supporters.
    pub support: SupportDelta,
    /// Lines of groups that say things once a window; empty where none does.
    pub said: SaidDelta,
    /// Sensitive values shown; empty where no model protects any.
    pub tally: TallyDelta,
}

impl LedgerDelta {
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.classes.len() * 20 + self.subjects.len() * 8);
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.classes.len()).expect("bounded by the batch").to_le_bytes());
        for (class, subjects) in &self.classes {
            out.extend_from_slice(&class.to_le_bytes());
            out.extend_from_slice(&subjects.to_le_bytes());
        }
        for subject in &self.subjects {
            out.extend_from_slice(&subject.to_le_bytes());
        }
        self.support.append_to(&mut out);
        self.said.append_to(&mut out);
        self.tally.append_to(&mut out);
        out
    }

    /// `None` when `bytes` are not what [`to_bytes`](Self::to_bytes) writes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let time = reader.u32()?;
        let count = reader.u32()?;
        let mut classes = Vec::new();
        let mut total = 0usize;
        for _ in 0..count {
            let class = reader.u128()?;
            let subjects = reader.u32()?;
            total = total.checked_add(subjects as usize)?;
            classes.push((class, subjects));
        }
        let mut subjects = Vec::new();
        for _ in 0..total {
            subjects.push(reader.u64()?);
        }
        let support = SupportDelta::read(&mut reader)?;
        let said = SaidDelta::read(&mut reader)?;
        let tally = TallyDelta::read(&mut reader)?;
        Some(Self { time, classes, subjects, support, said, tally })
    }
}

pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl Reader<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(super) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
    pub(super) fn u128(&mut self) -> Option<u128> {
        self.take().map(u128::from_le_bytes)
    }
}

/// Part of the ledger: classes by key, their subjects in rows of k.
#[derive(Default)]
struct Shard {
    places: HashMap<u128, u32, BuildClassKeyHash>,
    counts: Vec<u32>,
    /// (release time, subject), k a class.
    entries: Vec<(u32, u64)>,
    free: Vec<u32>,
}

impl Shard {
    fn entry(&self, class: u128, k: usize) -> &[(u32, u64)] {
        match self.places.get(&class) {
            Some(&place) => {
                let start = place as usize * k;
                &self.entries[start..start + self.counts[place as usize] as usize]
            }
            None => &[],
        }
    }

    fn record(&mut self, class: u128, time: u32, subject: u64, k: usize, room: bool) -> bool {
        let place = match self.places.get(&class) {
            Some(&place) => place as usize,
            None if !room => return false,
            None => {
                let place = self.free.pop().unwrap_or_else(|| {
                    self.counts.push(0);
                    self.entries.resize(self.entries.len() + k, (0, 0));
                    u32::try_from(self.counts.len() - 1).expect("classes are bounded")
                });
                self.places.insert(class, place);
                self.counts[place as usize] = 0;
                place as usize
            }
        };
        let count = self.counts[place] as usize;
        let entry = &mut self.entries[place * k..(place + 1) * k];
        if let Some(known) = entry[..count].iter_mut().find(|(_, s)| *s == subject) {
            known.0 = known.0.max(time);
        } else if count < k {
            entry[count] = (time, subject);
            self.counts[place] += 1;
        } else if let Some(oldest) = entry.iter_mut().min().filter(|oldest| **oldest < (time, subject)) {
            *oldest = (time, subject);
        }
        true
    }

    /// Forgets the classes without a fresh subject.
    fn expire(&mut self, k: usize, fresh: impl Fn(u32) -> bool) {
        let (counts, entries, free) = (&self.counts, &self.entries, &mut self.free);
        self.places.retain(|_, place| {
            let start = *place as usize * k;
            let keep = entries[start..start + counts[*place as usize] as usize].iter().any(|(t, _)| fresh(*t));
            if !keep {
                free.push(*place);
            }
            keep
        });
    }
}

/// Support that has been released, as far as this instance knows.
pub struct Ledger {
    k: usize,
    window_seconds: u32,
    max_classes: usize,
    classes: usize,
    unrecorded: u64,
    shards: Vec<Shard>,
    witnesses: Option<Witnesses>,
    tally: Option<Tally>,
    supporters: Option<Supporters>,
    said: Option<Said>,
}

impl Ledger {
    /// An empty ledger for classes of `k` subjects that stay visible for `window_seconds` (0: a batch stands alone).
    #[must_use]
    pub fn new(k: usize, window_seconds: u32, max_classes: usize) -> Self {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Self {
            k,
            window_seconds,
            max_classes,
            classes: 0,
            unrecorded: 0,
            shards,
            witnesses: None,
            tally: None,
            supporters: None,
            said: None,
        }
    }

    /// From here on the ledger also knows the raw tuples of what it counts: recoding by it is strict.
    pub fn keep_witnesses(&mut self, witnesses: Witnesses) {
        self.witnesses = Some(witnesses);
    }

    #[must_use]
    pub fn witnesses(&self) -> Option<&Witnesses> {
        self.witnesses.as_ref()
    }

    pub fn witnesses_mut(&mut self) -> Option<&mut Witnesses> {
        self.witnesses.as_mut()
    }

    /// From here on the ledger also knows who supports what.
    pub fn keep_supporters(&mut self, supporters: Supporters) {
        self.supporters = Some(supporters);
    }

    #[must_use]
    pub fn supporters(&self) -> Option<&Supporters> {
        self.supporters.as_ref()
    }

    /// From here on the ledger also knows the sensitive values that were shown in its classes.
    pub fn keep_tally(&mut self, tally: Tally) {
        self.tally = Some(tally);
    }

    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        self.tally.as_ref()
    }

    pub fn tally_mut(&mut self) -> Option<&mut Tally> {
        self.tally.as_mut()
    }

    /// From here on the ledger also knows what groups have said that say things once a window.
    pub fn keep_said(&mut self, said: Said) {
        self.said = Some(said);
    }

    #[must_use]
    pub fn said(&self) -> Option<&Said> {
        self.said.as_ref()
    }

    pub fn said_mut(&mut self) -> Option<&mut Said> {
        self.said.as_mut()
    }

    /// From here on the windows of what has been said are those of `secret`.
    pub fn key_said(&mut self, secret: &DigestKey) {
        self.said = self.said.take().map(|said| said.keyed(secret));
    }

    fn shard_of(class: u128) -> usize {
        usize::try_from(class >> 122).expect("six bits")
    }

    /// The ledger as it is seen at `now_ms`: a release counts while it is younger than the window. Ages are rounded up.
    #[must_use]
    pub fn at(&self, now_ms: i64) -> LedgerAt<'_> {
        LedgerAt { ledger: self, now: u32::try_from(now_ms.div_euclid(1000) + 1).unwrap_or(u32::MAX), now_ms }
    }

    /// Records a batch's releases. True if every class found room; of the rest, tally and supporters know.
    pub fn apply(&mut self, delta: &LedgerDelta) -> bool {
        if let Some(tally) = &mut self.tally {
            tally.apply(&delta.tally);
        }
        if let Some(said) = &mut self.said {
            said.apply(&delta.said);
        }
        if self.window_seconds == 0 {
            return true;
        }
        if let Some(supporters) = &mut self.supporters {
            supporters.apply(&delta.support);
        }
        let mut all = true;
        let mut at = 0;
        for &(class, count) in &delta.classes {
            for &subject in &delta.subjects[at..at + count as usize] {
                all &= self.record(class, delta.time, subject);
            }
            at += count as usize;
        }
        all
    }

    fn record(&mut self, class: u128, time: u32, subject: u64) -> bool {
        if subject == NO_SUBJECT {
            return true;
        }
        let room = self.classes < self.max_classes;
        let shard = &mut self.shards[Self::shard_of(class)];
        let before = shard.places.len();
        let recorded = shard.record(class, time, subject, self.k, room);
        self.classes += shard.places.len() - before;
        self.unrecorded += u64::from(!recorded);
        recorded
    }

    /// Forgets what has left the window in one shard.
    pub fn expire(&mut self, shard: usize, now_ms: i64) {
        let now = self.at(now_ms).now;
        let window = self.window_seconds;
        let part = &mut self.shards[shard];
        let before = part.places.len();
        part.expire(self.k, |time| is_fresh(time, now, window));
        self.classes -= before - part.places.len();
        if let Some(witnesses) = &mut self.witnesses {
            witnesses.expire(shard, |w| is_fresh(w.time, now, window));
        }
        if let Some(tally) = &mut self.tally {
            tally.expire(shard, now_ms);
        }
        if let Some(supporters) = &mut self.supporters {
            supporters.expire(shard, now_ms);
        }
        if let Some(said) = &mut self.said {
            said.expire(shard, now_ms);
        }
    }

    /// One shard as bytes; the order of its classes is fixed, so equal shards are equal bytes.
    #[must_use]
    pub fn shard_to_bytes(&self, shard: usize) -> Vec<u8> {
        let part = &self.shards[shard];
        let mut classes: Vec<u128> = part.places.keys().copied().collect();
        classes.sort_unstable();
        let mut out = Vec::with_capacity(4 + classes.len() * (20 + 12 * self.k));
        out.extend_from_slice(&u32::try_from(classes.len()).expect("classes are bounded").to_le_bytes());
        for class in classes {
            let mut entry = part.entry(class, self.k).to_vec();
            entry.sort_unstable();
            out.extend_from_slice(&class.to_le_bytes());
            out.extend_from_slice(&u32::try_from(entry.len()).expect("at most k").to_le_bytes());
            for (time, subject) in entry {
                out.extend_from_slice(&time.to_le_bytes());
                out.extend_from_slice(&subject.to_le_bytes());
            }
        }
        out.extend(self.supporters.iter().flat_map(|supporters| supporters.shard_to_bytes(shard)));
        out
    }

    /// Merges a shard that was written before. `None` when the bytes are not a shard.
    pub fn merge_shard(&mut self, bytes: &[u8]) -> Option<()> {
        let mut reader = Reader(bytes);
        for _ in 0..reader.u32()? {
            let class = reader.u128()?;
            for _ in 0..reader.u32()? {
                let time = reader.u32()?;
                let subject = reader.u64()?;
                self.record(class, time, subject);
            }
        }
        match &mut self.supporters {
            Some(supporters) if !reader.is_empty() => supporters.merge_shard(&mut reader),
            // What was kept of supporters before is of no use where nothing is asked of them.
            _ => Some(()),
        }
    }

    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Releases that were not recorded for want of room.
    #[must_use]
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        let shard = |s: &Shard| s.places.capacity() * 33 + s.counts.capacity() * 4 + s.entries.capacity() * 16;
        let witnesses = self.witnesses.as_ref().map_or(0, Witnesses::approximate_bytes);
        let tally = self.tally.as_ref().map_or(0, Tally::approximate_bytes);
        let supporters = self.supporters.as_ref().map_or(0, Supporters::approximate_bytes);
        let said = self.said.as_ref().map_or(0, Said::approximate_bytes);
        self.shards.iter().map(shard).sum::<usize>() + witnesses + tally + supporters + said
    }

    #[must_use]
    pub fn shard_bytes(&self, shard: usize) -> usize {
        let beside = self.tally.as_ref().map_or(0, |t| t.shard_bytes(shard))
            + self.supporters.as_ref().map_or(0, |s| s.shard_bytes(shard))
            + self.said.as_ref().map_or(0, |said| said.shard_bytes(shard));
        self.shards[shard].places.len() * (20 + 12 * self.k) + beside
    }
}

fn is_fresh(time: u32, now: u32, window: u32) -> bool {
    // `now` is rounded up, `time` down: the age is never understated. A time in the future (a retry with the clock of its
    // first attempt) counts as just now.
    // At the end of the seconds that can be counted (136 years after the state was made) nothing is fresh.
    now != u32::MAX && now.saturating_sub(time) <= window
}

/// The ledger at one moment.
#[derive(Clone, Copy)]
pub struct LedgerAt<'a> {
    ledger: &'a Ledger,
    /// Whole seconds, rounded up.
    now: u32,
    now_ms: i64,
}

impl LedgerAt<'_> {
    /// Whether a class has k subjects that all stay fresh for most of the window still: recording it once more would
    /// change nothing that matters soon, and is left out. Understates ages by no more than an eighth of the window.
    #[must_use]
    pub fn well_supported(&self, class: u128) -> bool {
        let entry = self.ledger.shards[Ledger::shard_of(class)].entry(class, self.ledger.k);
        entry.len() == self.ledger.k
            && entry.iter().all(|(t, _)| is_fresh(*t, self.now, self.ledger.window_seconds / 8))
    }
}

impl LedgerAt<'_> {
    /// What the witnesses must learn when batch number `sequence` has been committed; nothing where none are kept. `cells` are
    /// those that leave, by attribute and row.
    #[must_use]
    pub fn witness_delta(
        &self,
        sequence: u64,
        time: u32,
        batch: &Batch,
        cells: &[Vec<CellId>],
        books: &[Codebook],
    ) -> WitnessDelta {
        match &self.ledger.witnesses {
            Some(witnesses) if self.ledger.window_seconds > 0 => {
                let found = sightings(witnesses.spaces(), batch, cells, books);
                witnesses.delta(&found, sequence, time, batch, books)
            }
            _ => WitnessDelta::default(),
        }
    }
}

impl LedgerAt<'_> {
    /// What has been said, where that is kept.
    #[must_use]
    pub fn said(&self) -> Option<&Said> {
        self.ledger.said()
    }

    /// The tally, where one is kept.
    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        self.ledger.tally()
    }

    pub(super) fn shown_pairs(&self, attribute: usize, class: u128, out: &mut Vec<(u64, u64)>) {
        if let Some(tally) = &self.ledger.tally {
            tally.pairs(attribute, class, self.now_ms, out);
        }
    }

    pub(super) fn knows_all_shown(&self, attribute: usize, rows: usize) -> bool {
        self.ledger.tally.as_ref().is_some_and(|tally| tally.is_open(attribute, rows, self.now_ms))
    }
}

impl LedgerAt<'_> {
    /// Who supports what, where that is kept, and the moment at which it is asked.
    pub(super) fn supporters(&self) -> Option<(&Supporters, i64)> {
        self.ledger.supporters.as_ref().map(|supporters| (supporters, self.now_ms))
    }
}

impl Budget for LedgerAt<'_> {
    fn most(&self) -> usize {
        self.supporters().map_or(usize::MAX, |(supporters, _)| supporters.limits().max_classes)
    }

    fn supported(&self, group: u128, subject: u64, out: &mut Vec<u128>) {
        if let Some((supporters, now_ms)) = self.supporters() {
            supporters.supported(group, subject, now_ms, out);
        }
    }

    fn has_room(&self, rows: usize) -> bool {
        self.supporters().is_none_or(|(supporters, _)| supporters.has_room(rows))
    }
}

impl Shown for LedgerAt<'_> {
    fn pairs(&self, attribute: usize, class: u128, out: &mut Vec<(u64, u64)>) {
        self.shown_pairs(attribute, class, out);
    }

    fn is_open(&self, attribute: usize, rows: usize) -> bool {
        self.knows_all_shown(attribute, rows)
    }
}

impl Witnessed for LedgerAt<'_> {
    fn of_class(&self, class: u128) -> &[Witness] {
        self.ledger.witnesses.as_ref().map_or(&[], |w| w.of_class(class))
    }

    fn is_fresh(&self, witness: &Witness) -> bool {
        self.ledger.window_seconds > 0 && is_fresh(witness.time, self.now, self.ledger.window_seconds)
    }

    fn raw_tuple(&self, raw: u32) -> &[Code] {
        self.ledger.witnesses.as_ref().map_or(&[], |w| w.raw_tuple(raw))
    }
}

impl Released for LedgerAt<'_> {
    fn witnessed(&self) -> Option<&dyn Witnessed> {
        self.ledger.witnesses.as_ref().map(|_| self as &dyn Witnessed)
    }

    fn asks_tenure(&self) -> bool {
        self.supporters().is_some_and(|(supporters, _)| supporters.limits().min_tenure > 0)
    }

    fn is_settled(&self, subject: u64) -> bool {
        self.supporters().is_none_or(|(supporters, now_ms)| supporters.is_settled(subject, now_ms))
    }

    fn budget(&self) -> Option<&dyn Budget> {
        self.supporters().filter(|(supporters, _)| supporters.limits().max_classes > 0).map(|_| self as &dyn Budget)
    }

    fn shown(&self) -> Option<&dyn Shown> {
        self.ledger.tally.as_ref().map(|_| self as &dyn Shown)
    }

    fn fresh_subjects(&self, class: u128, out: &mut [u64]) -> usize {
        if self.ledger.window_seconds == 0 {
            return 0;
        }
        let entry = self.ledger.shards[Ledger::shard_of(class)].entry(class, self.ledger.k);
        let fresh = entry.iter().filter(|(t, _)| is_fresh(*t, self.now, self.ledger.window_seconds));
        fresh.zip(out).map(|((_, s), o)| *o = *s).count()
    }
}

#[cfg(test)]
mod tests;

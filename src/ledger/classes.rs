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

use super::bytes::{Reader, SHARDS};
use super::delta::LedgerDelta;
use super::said::Said;
use super::supporters::Supporters;
use super::tally::Tally;
use super::witnesses::Witnesses;
use crate::records::digest::{BuildClassKeyHash, DigestKey};
use crate::records::subject::NO_SUBJECT;
use hashbrown::HashMap;

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
    pub(super) k: usize,
    pub(super) window_seconds: u32,
    max_classes: usize,
    classes: usize,
    unrecorded: u64,
    shards: Vec<Shard>,
    pub(super) witnesses: Option<Witnesses>,
    pub(super) tally: Option<Tally>,
    pub(super) supporters: Option<Supporters>,
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

    /// The raw tuples of what has left, where they are kept.
    #[must_use]
    pub fn witnesses(&self) -> Option<&Witnesses> {
        self.witnesses.as_ref()
    }

    /// The same, to be changed.
    pub fn witnesses_mut(&mut self) -> Option<&mut Witnesses> {
        self.witnesses.as_mut()
    }

    /// From here on the ledger also knows who supports what.
    pub fn keep_supporters(&mut self, supporters: Supporters) {
        self.supporters = Some(supporters);
    }

    /// Who supports what, where that is kept.
    #[must_use]
    pub fn supporters(&self) -> Option<&Supporters> {
        self.supporters.as_ref()
    }

    /// From here on the ledger also knows the sensitive values that were shown in its classes.
    pub fn keep_tally(&mut self, tally: Tally) {
        self.tally = Some(tally);
    }

    /// The sensitive values that were shown, where they are kept.
    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        self.tally.as_ref()
    }

    /// The same, to be changed.
    pub fn tally_mut(&mut self) -> Option<&mut Tally> {
        self.tally.as_mut()
    }

    /// From here on the ledger also knows what groups have said that say things once a window.
    pub fn keep_said(&mut self, said: Said) {
        self.said = Some(said);
    }

    /// What has been said in groups that do not change, where that is kept.
    #[must_use]
    pub fn said(&self) -> Option<&Said> {
        self.said.as_ref()
    }

    /// The same, to be changed.
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

    /// The releases of a class: time and subject.
    pub(super) fn entry(&self, class: u128) -> &[(u32, u64)] {
        self.shards[Self::shard_of(class)].entry(class, self.k)
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
        self.learn(delta)
    }

    /// Records the classes of a delta and nothing else of it: what another instance has released. True if every class found room.
    pub fn learn(&mut self, delta: &LedgerDelta) -> bool {
        let (mut all, mut at) = (true, 0);
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

    /// Classes that have one of `subjects` at `now_ms`, and those of them that have k people with them and fewer without.
    #[must_use]
    pub fn losing(&self, subjects: impl Fn(u64) -> bool, now_ms: i64) -> (u64, u64) {
        let now = self.at(now_ms).now;
        let (mut with, mut below) = (0, 0);
        for shard in &self.shards {
            for &place in shard.places.values() {
                let start = place as usize * self.k;
                let entry = &shard.entries[start..start + shard.counts[place as usize] as usize];
                let fresh = || entry.iter().filter(|(time, _)| is_fresh(*time, now, self.window_seconds));
                let lost = fresh().filter(|(_, subject)| subjects(*subject)).count();
                with += u64::from(lost > 0);
                below += u64::from(lost > 0 && fresh().count() >= self.k);
            }
        }
        (with, below)
    }

    /// Number of classes kept.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Releases that were not recorded for want of room.
    #[must_use]
    pub fn unrecorded(&self) -> u64 {
        self.unrecorded
    }

    /// Memory held, in bytes, with everything that is kept beside the classes.
    #[must_use]
    pub fn approximate_bytes(&self) -> usize {
        let shard = |s: &Shard| s.places.capacity() * 33 + s.counts.capacity() * 4 + s.entries.capacity() * 16;
        let witnesses = self.witnesses.as_ref().map_or(0, Witnesses::approximate_bytes);
        let tally = self.tally.as_ref().map_or(0, Tally::approximate_bytes);
        let supporters = self.supporters.as_ref().map_or(0, Supporters::approximate_bytes);
        let said = self.said.as_ref().map_or(0, Said::approximate_bytes);
        self.shards.iter().map(shard).sum::<usize>() + witnesses + tally + supporters + said
    }

    /// Bytes that a shard takes in the state, about.
    #[must_use]
    pub fn shard_bytes(&self, shard: usize) -> usize {
        let kept_with_it = self.tally.as_ref().map_or(0, |t| t.shard_bytes(shard))
            + self.supporters.as_ref().map_or(0, |s| s.shard_bytes(shard))
            + self.said.as_ref().map_or(0, |said| said.shard_bytes(shard));
        self.shards[shard].places.len() * (20 + 12 * self.k) + kept_with_it
    }
}

pub(super) fn is_fresh(time: u32, now: u32, window: u32) -> bool {
    // `now` is rounded up, `time` down: the age is never understated. A time in the future (a retry with the clock of its
    // first attempt) counts as just now.
    // At the end of the seconds that can be counted (136 years after the state was made) nothing is fresh.
    now != u32::MAX && now.saturating_sub(time) <= window
}

#[cfg(test)]
mod tests;

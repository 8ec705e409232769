//! What other instances have released, on disk: a sealed delta for each of their records that counts here, until all shards of the
//! ledger have been rewritten with it, and how far the topic has been read.
//!
//! It is written together with the effect of a batch and the next intent, or while no batch is to be repeated. So the ledger that a
//! batch sees is a function of what is on the disk beside its intent, and a batch that is repeated after a crash sees the very same.

use super::numbered::{number_of, numbered};
use super::seal::Sealer;
use super::writes::Writes;
use crate::daemon::engine::clock::{Anchor, Reading};
use crate::io::shared_ledger::Places;
use crate::ledger::SHARDS;
use crate::ledger::delta::LedgerDelta;
use crate::ledger::shared::{Highest, Present};
use serde::{Deserialize, Serialize};

/// How far others have been heard, beside all values.
pub(super) const HEARD: &[u8] = b"heard";
/// What the keys of their deltas begin with.
pub(super) const PREFIX: &str = "foreign";

/// How far others have been heard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeardUpTo {
    /// The topic.
    pub topic: String,
    /// The next offset of each partition of the topic.
    pub places: Places,
    /// By which the age of the state is told that the times of what was heard are of.
    pub anchor: Anchor,
    /// The wall clock when somebody was erased last, milliseconds since 1970; 0: never. What others had released by then is not taken
    /// in any more.
    pub erased_ms: i64,
    /// By shard, the number of the last delta that is in it.
    pub in_shard: Vec<u64>,
    /// How far the wall clock has been above the age of the state.
    pub highest: Highest,
}

impl HeardUpTo {
    /// The time of an erasure at `now_ms` of this clock, as the others may have stamped it: their clocks, and ours, may have been further on
    /// before they were set back. `batch` is of the last batch of our own.
    #[must_use]
    pub fn erased_at(&self, now_ms: i64, batch: Anchor) -> i64 {
        let known = [batch, self.anchor].into_iter().filter(|anchor| anchor.reading != Reading::default());
        let last = known.max_by_key(|anchor| anchor.age_ms);
        let (wall_ms, set_back) = last.map_or((0, 0), |Anchor { age_ms, reading }| {
            (reading.wall_ms, self.highest.set_back(Present { wall_ms: reading.wall_ms, age_ms }))
        });
        now_ms.max(wall_ms).saturating_add(set_back)
    }
}

/// Deltas of other instances that have still to be written, or to be rewritten into shards.
pub(super) struct SharedJournal {
    pub heard: HeardUpTo,
    unwritten: Vec<Vec<u8>>,
    /// Numbers of the deltas on the disk: the first, and the one behind the last.
    first: u64,
    next: u64,
    /// Something has been heard since the last write.
    changed: bool,
    /// The disk knows that others are listened to.
    known: bool,
    /// As the disk knows it.
    kept: Highest,
}

impl Default for SharedJournal {
    fn default() -> Self {
        let heard = HeardUpTo { in_shard: vec![0; SHARDS], ..HeardUpTo::default() };
        Self { heard, unwritten: Vec::new(), first: 1, next: 1, changed: false, known: false, kept: Highest::default() }
    }
}

impl SharedJournal {
    /// Goes on where the disk ends: with what was heard, and the keys of the deltas that are there.
    pub fn resume(&mut self, heard: Option<HeardUpTo>, keys: &[Vec<u8>]) {
        self.known = heard.is_some();
        self.heard = heard.unwrap_or_default();
        self.heard.in_shard.resize(SHARDS, 0);
        self.kept = self.heard.highest;
        let behind = self.heard.in_shard.iter().copied().max().unwrap_or(0) + 1;
        let number = |key: Option<&Vec<u8>>| key.and_then(|key| number_of(key));
        self.next = number(keys.last()).map_or(behind, |last| behind.max(last + 1));
        self.first = number(keys.first()).unwrap_or(self.next);
    }

    /// Listens to `topic` from here on. Of another topic than before nothing has been read.
    pub fn listen_to(&mut self, topic: &str) {
        if self.heard.topic != topic {
            topic.clone_into(&mut self.heard.topic);
            self.heard.places.clear();
        }
    }

    /// Notes what both clocks say, or have said; see [`Highest`].
    pub fn see(&mut self, moment: Present, period_ms: i64) {
        self.heard.highest.see(moment, period_ms);
    }

    /// Keeps what the clocks have said with the next write, where it is more than the disk knows.
    pub fn keep_clocks(&mut self) {
        self.changed |= self.heard.highest.exceeds(&self.kept);
    }

    /// Notes what has been heard, and up to where.
    pub fn note(&mut self, deltas: &[LedgerDelta], places: Places, anchor: Anchor) {
        self.changed |= !deltas.is_empty() || !std::mem::replace(&mut self.known, true);
        self.unwritten.extend(deltas.iter().map(LedgerDelta::to_bytes));
        (self.heard.places, self.heard.anchor) = (places, anchor);
    }

    /// Whether deltas are in memory alone.
    pub fn is_behind(&self) -> bool {
        self.changed
    }

    /// Bytes of the deltas that have still to be written.
    pub fn bytes(&self) -> usize {
        self.unwritten.iter().map(Vec::len).sum()
    }

    /// The number of the last delta, those that have still to be written among them: a shard that is written now has it.
    pub fn last(&self) -> u64 {
        self.next - 1 + self.unwritten.len() as u64
    }

    /// Notes that a shard was written with everything up to now.
    pub fn is_in_shard(&mut self, shard: usize) {
        self.heard.in_shard[shard] = self.last();
    }

    /// Adds what has been noted to a write, and removes what all shards have. Gives the bytes added.
    pub fn write(&mut self, batch: &mut Writes, sealer: &Sealer) -> usize {
        if !std::mem::take(&mut self.changed) {
            return 0;
        }
        let mut bytes = 0;
        let mut put = |key: Vec<u8>, plain: Vec<u8>| {
            let sealed = sealer.seal(&key, &plain);
            bytes += key.len() + sealed.len();
            batch.insert(key, sealed);
        };
        for delta in self.unwritten.drain(..) {
            put(numbered(PREFIX, self.next), postcard::to_stdvec(&delta).expect("plain values always serialize"));
            self.next += 1;
        }
        self.kept = self.heard.highest;
        put(HEARD.to_vec(), postcard::to_stdvec(&self.heard).expect("plain values always serialize"));
        let complete = self.heard.in_shard.iter().copied().min().unwrap_or(0);
        while self.first <= complete && self.first < self.next {
            batch.remove(numbered(PREFIX, self.first));
            self.first += 1;
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::state::seal::Keys;

    fn delta(time: u32) -> LedgerDelta {
        LedgerDelta { time, classes: vec![(u128::from(time), 1)], subjects: vec![7], ..LedgerDelta::default() }
    }

    fn keys(tree: &sled::Tree) -> Vec<Vec<u8>> {
        tree.scan_prefix("foreign/").keys().map(|key| key.expect("a key").to_vec()).collect()
    }

    /// Its offsets would be taken for those of the other one.
    #[test]
    fn another_topic_is_read_from_its_beginning() {
        let mut journal = SharedJournal::default();
        journal.listen_to("a");
        journal.note(&[delta(1)], Places::from([(0, 5)]), Anchor::default());
        journal.heard.erased_ms = 7;
        journal.listen_to("a");
        assert_eq!(journal.heard.places, Places::from([(0, 5)]));
        journal.listen_to("b");
        assert_eq!((journal.heard.places.len(), journal.heard.erased_ms, journal.last()), (0, 7, 1));
    }

    /// Or a restart would take what others had released before for younger than it is.
    #[test]
    fn a_clock_that_rises_is_kept_and_one_that_stays_costs_no_write() {
        let mut journal = SharedJournal::default();
        let at = |wall_ms, age_ms| Present { wall_ms, age_ms };
        let sealer = Keys::derive(b"secret").sealer();
        for (wall, age, rises, why) in [
            (5_000, 1_000, true, "the first"),
            (6_050, 2_000, false, "a small rise is allowed for"),
            (9_000, 3_000, true, "set ahead"),
            (8_000, 4_000, false, "set back"),
            (1_004_000, 1_000_000, true, "another period begins"),
            (1_005_000, 1_001_000, false, "and goes on"),
        ] {
            journal.see(at(wall, age), 1_000_000);
            assert!(!journal.is_behind(), "not while a batch is to be repeated, perhaps");
            journal.keep_clocks();
            assert_eq!(journal.is_behind(), rises, "{why}");
            assert_eq!(journal.write(&mut Writes::default(), &sealer) > 0, rises, "{why}");
        }
        let mut again = SharedJournal::default();
        again.resume(Some(journal.heard.clone()), &[]);
        assert_eq!(again.heard.highest, journal.heard.highest);
    }

    /// What is stamped later is taken in again: an instance that has no batch of its own must not go by no clock at all.
    #[test]
    fn an_erasure_is_told_by_the_furthest_that_clocks_have_been() {
        let at = |wall_ms, age_ms| Anchor { age_ms, reading: Reading { wall_ms, running_ms: 1, boot: 1 } };
        let mut heard = HeardUpTo::default();
        assert_eq!(heard.erased_at(70_000, Anchor::default()), 70_000, "nothing is known");
        heard.highest.see(Present { wall_ms: 60_000, age_ms: 1_000 }, 1_000_000);
        assert_eq!(heard.erased_at(70_000, Anchor::default()), 70_000);
        heard.anchor = at(60_000, 1_000);
        assert_eq!(heard.erased_at(70_000, Anchor::default()), 70_100);
        assert_eq!(heard.erased_at(70_000, at(51_000, 2_000)), 80_100, "set back by ten seconds before the last batch");
        assert_eq!(heard.erased_at(50_000, Anchor::default()), 60_100, "set back while it did not run");
    }

    #[test]
    fn a_delta_goes_when_every_shard_has_it_and_a_start_goes_on_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let tree = sled::open(directory.path()).expect("a database");
        let sealer = Keys::derive(b"secret").sealer();
        let mut journal = SharedJournal::default();
        let write = |journal: &mut SharedJournal| {
            let mut batch = Writes::default();
            let bytes = journal.write(&mut batch, &sealer);
            tree.apply_batch(batch.into_batch()).expect("a write");
            bytes
        };
        assert!(!journal.is_behind() && write(&mut journal) == 0, "nothing was heard");
        journal.note(&[], Places::from([(0, 5)]), Anchor::default());
        assert!(journal.is_behind() && write(&mut journal) > 0, "that others are listened to is known to an erasure");
        journal.note(&[], Places::from([(0, 6)]), Anchor::default());
        assert!(!journal.is_behind(), "a place alone waits for the next write");
        journal.note(&[delta(1), delta(2)], Places::from([(0, 7)]), Anchor::default());
        assert!(journal.is_behind() && journal.bytes() > 0);
        (0..SHARDS - 1).for_each(|shard| journal.is_in_shard(shard));
        assert!(write(&mut journal) > 0 && !journal.is_behind());
        assert_eq!(keys(&tree).len(), 2, "one shard has not got them");
        journal.note(&[delta(3)], Places::from([(0, 8)]), Anchor::default());
        // A delta that comes with the same write is in the shard, too.
        journal.is_in_shard(SHARDS - 1);
        write(&mut journal);
        assert_eq!(keys(&tree), [numbered(PREFIX, 3)]);

        let mut again = SharedJournal::default();
        again.resume(Some(journal.heard.clone()), &keys(&tree));
        assert_eq!((again.first, again.next), (3, 4));
        (0..SHARDS).for_each(|shard| again.is_in_shard(shard));
        again.note(&[delta(4)], Places::new(), Anchor::default());
        write(&mut again);
        assert_eq!(keys(&tree), [numbered(PREFIX, 4)], "and no number comes twice");
        let mut empty = SharedJournal::default();
        empty.resume(Some(HeardUpTo { in_shard: vec![9; SHARDS], ..HeardUpTo::default() }), &[]);
        assert_eq!((empty.first, empty.next), (10, 10));
    }
}

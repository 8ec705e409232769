//! Which values a topic does not have yet, where the state follows its instance: a mark for each, in a tree of its own.
//!
//! The mark is written before the value, in the same log: whatever is found after a crash, a value that the topic may lack is marked. One
//! mark too many costs a record that says what the topic has. A mark says besides of how many records the topic may know the value, where
//! those are several, and the digest of what the topic has there. So it says what it must: a mark is taken away when the transaction is
//! known to be committed, and a start that finds its process killed just before does the same, before anything else is written.

use super::keeper::Database;
use super::numbered::numbered;
use super::writes::Writes;
use crate::release::kept_sum::digest_of;
use crate::release::sink::{KeptIn, parts_of};

/// The two trees of values, as marks and records name them.
pub(super) const TREE: u8 = 1;
pub(super) const WINDOW: u8 = 2;

const NAME: &str = "marks";
/// Says that the marks are whole: every value without one is in the topic, and where that is.
const WHOLE: &[u8] = &[];
/// The attempt at a batch whose values have lost their marks. No tree has this number.
const SENT: &[u8] = &[0];

/// A value that is marked, or known to be of several records.
pub(super) struct Marked {
    pub tree: u8,
    pub key: Vec<u8>,
    /// The topic may lack it.
    pub lacking: bool,
    /// Records of it that the topic may have.
    pub parts: u32,
    /// The digest of what the topic has there, where it may lack what is here; none where it has nothing.
    pub had: Option<u128>,
}

/// What is known of a value that is not marked.
const UNMARKED: (bool, u32, Option<u128>) = (false, 1, None);

fn spelled(lacking: bool, parts: u32, had: Option<u128>) -> Vec<u8> {
    let had = had.map(u128::to_le_bytes);
    [&[u8::from(lacking)][..], &parts.to_le_bytes(), had.as_ref().map_or(&[], |had| had)].concat()
}

fn read(mark: &[u8]) -> (bool, u32, Option<u128>) {
    let parts = mark.get(1..).and_then(|rest| rest.first_chunk()).map_or(u32::MAX, |n| u32::from_le_bytes(*n));
    let had = mark.get(5..).and_then(|rest| rest.first_chunk()).map(|n| u128::from_le_bytes(*n));
    (mark.first() != Some(&0), parts, had)
}

impl Database {
    /// The marks; made where there are none.
    fn marks(&self) -> sled::Result<sled::Tree> {
        self.db.open_tree(NAME)
    }

    fn mark(&self, marks: &sled::Tree, tree: u8, key: &[u8], bytes: Option<usize>) -> sled::Result<()> {
        let place = [&[tree], key].concat();
        let (lacking, parts, had) = marks.get(&place)?.map_or(UNMARKED, |mark| read(&mark));
        let had = if lacking {
            had
        } else {
            // The topic has what is here until it is written over now.
            self.of(tree).get(key)?.map(|value| digest_of(tree, key, &value))
        };
        marks.insert(place, spelled(true, parts.max(bytes.map_or(0, parts_of)), had)).map(drop)
    }

    /// Writes to the tree of small values.
    pub(super) fn apply(&self, writes: Writes) -> sled::Result<()> {
        if self.follows.get() {
            let marks = self.marks()?;
            writes.lengths().try_for_each(|(key, bytes)| self.mark(&marks, TREE, key, bytes))?;
        }
        self.tree.apply_batch(writes.into_batch())
    }

    /// Sets the rows of a batch in the window.
    pub(super) fn put_rows(&self, key: Vec<u8>, sealed: Vec<u8>) -> sled::Result<()> {
        if self.follows.get() {
            self.mark(&self.marks()?, WINDOW, &key, Some(sealed.len()))?;
        }
        self.window.insert(key, sealed).map(drop)
    }

    /// Removes the rows of batch `sequence` from the window.
    pub(super) fn remove_rows(&self, sequence: u64) -> sled::Result<()> {
        let key = numbered("rows", sequence);
        if self.follows.get() {
            self.mark(&self.marks()?, WINDOW, &key, None)?;
        }
        self.window.remove(key).map(drop)
    }

    /// The tree of a number.
    pub(super) fn of(&self, tree: u8) -> &sled::Tree {
        if tree == WINDOW { &self.window } else { &self.tree }
    }

    /// Where every value without a mark is; none where nothing is known of that.
    pub(super) fn marked_whole(&self) -> sled::Result<Option<KeptIn>> {
        Ok(self.marks()?.get(WHOLE)?.and_then(|place| postcard::from_bytes(&place).ok()))
    }

    /// Notes how far the place is written where every value without a mark is.
    pub(super) fn note_place(&self, place: &KeptIn) -> sled::Result<()> {
        let place = postcard::to_stdvec(place).expect("plain values always serialize");
        self.marks()?.insert(WHOLE, place).map(drop)
    }

    /// From here on nothing is known of what the topic has.
    pub(super) fn unmark(&self) -> sled::Result<()> {
        let marks = self.marks()?;
        marks.remove(WHOLE)?;
        marks.clear()
    }

    /// The topic has everything, in `place`, and those of `several` in so many records.
    pub(super) fn mark_whole(&self, several: Vec<(u8, Vec<u8>, u32)>, place: &KeptIn) -> sled::Result<()> {
        let marks = self.marks()?;
        marks.clear()?;
        for (tree, key, parts) in several {
            marks.insert([&[tree], key.as_slice()].concat(), spelled(false, parts, None))?;
        }
        // Last, in the one log.
        self.note_place(place)
    }

    /// All marks, in the order of the keys.
    pub(super) fn marked(&self) -> sled::Result<Vec<Marked>> {
        let mut found = Vec::new();
        for mark in &self.marks()? {
            let (place, mark) = mark?;
            let Some((&tree, key)) = place.split_first().filter(|_| place != SENT) else { continue };
            let (lacking, parts, had) = read(&mark);
            found.push(Marked { tree, key: key.to_vec(), lacking, parts, had });
        }
        Ok(found)
    }

    /// The topic has this value now, in so many records; 0 where it is gone.
    pub(super) fn is_sent(&self, tree: u8, key: &[u8], parts: u32) -> sled::Result<()> {
        let (marks, place) = (self.marks()?, [&[tree], key].concat());
        match parts {
            0 | 1 => marks.remove(place),
            parts => marks.insert(place, spelled(false, parts, None)),
        }
        .map(drop)
    }

    /// Every value that was marked for the batch of `attempt` has lost its mark. To be written behind that, in the one log.
    pub(super) fn note_sent(&self, attempt: u64) -> sled::Result<()> {
        self.marks()?.insert(SENT, &attempt.to_le_bytes()).map(drop)
    }

    /// Takes the marks away that the batch of `attempt` went with, where its process ended before it had done so. Marks from after
    /// that stay.
    pub(super) fn settle_sent(&self, attempt: u64) -> sled::Result<()> {
        if self.marks()?.get(SENT)?.is_some_and(|sent| *sent == attempt.to_le_bytes()) {
            return Ok(());
        }
        for Marked { tree, key, .. } in self.marked()?.into_iter().filter(|mark| mark.lacking) {
            let parts = self.of(tree).get(&key)?.map_or(0, |value| parts_of(value.len()));
            self.is_sent(tree, &key, parts)?;
        }
        self.note_sent(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::state::keeper::Keeper;

    fn had(d: &Database, key: &str) -> Option<Option<u128>> {
        let marked = d.marked().expect("marks").into_iter().find(|mark| mark.key == key.as_bytes() && mark.lacking);
        marked.map(|mark| mark.had)
    }

    fn set(d: &Database, key: &str, value: &str) {
        let mut writes = Writes::default();
        writes.insert(key, value.as_bytes());
        d.apply(writes).expect("a write");
    }

    /// However often a value changes before it is sent, its mark says what the topic has of it.
    #[test]
    fn a_mark_says_what_the_topic_has() {
        let dir = tempfile::tempdir().expect("a directory");
        let keeper = Keeper::open(dir.path(), "db").expect("a database");
        let of = |value: &str| Some(digest_of(TREE, b"key", value.as_bytes()));
        let looked = keeper.write(0, move |d| {
            d.follows.set(true);
            set(d, "key", "1");
            let new = had(d, "key");
            d.is_sent(TREE, b"key", 1)?;
            d.note_sent(70)?;
            let sent = had(d, "key");
            set(d, "key", "2");
            set(d, "key", "3");
            let twice = had(d, "key");
            // Its batch was seen to be committed before: what is marked now is not of it.
            d.settle_sent(70)?;
            let after = had(d, "key");
            // That of this one was not.
            d.settle_sent(71)?;
            let settled = had(d, "key");
            set(d, "key", "4");
            Ok([new, sent, twice, after, settled, had(d, "key")])
        });
        assert_eq!(
            looked.expect("looks"),
            [Some(None), None, Some(of("1")), Some(of("1")), None, Some(of("3"))],
            "new, sent, written over twice, and after a start"
        );
    }
}

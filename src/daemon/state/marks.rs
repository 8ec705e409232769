//! Which values a topic does not have yet, where the state follows its instance: a mark for each, in a tree of its own.
//!
//! The mark is written before the value, in the same log: whatever is found after a crash, a value that the topic may lack is marked. One
//! mark too many costs a record that says what the topic has. A mark says besides of how many records the topic may know the value, where
//! those are several.

use super::keeper::Database;
use super::numbered::numbered;
use super::writes::Writes;
use crate::release::sink::{KeptIn, parts_of};

/// The two trees of values, as marks and records name them.
pub(super) const TREE: u8 = 1;
pub(super) const WINDOW: u8 = 2;

const NAME: &str = "marks";
/// Says that the marks are whole: every value without one is in the topic, and where that is.
const WHOLE: &[u8] = &[];

/// A value that is marked, or known to be of several records.
pub(super) struct Marked {
    pub tree: u8,
    pub key: Vec<u8>,
    /// The topic may lack it.
    pub lacking: bool,
    /// Records of it that the topic may have.
    pub parts: u32,
}

fn spelled(lacking: bool, parts: u32) -> Vec<u8> {
    [&[u8::from(lacking)][..], &parts.to_le_bytes()].concat()
}

fn read(mark: &[u8]) -> (bool, u32) {
    let parts = mark.get(1..).and_then(|rest| rest.first_chunk()).map_or(u32::MAX, |n| u32::from_le_bytes(*n));
    (mark.first() != Some(&0), parts)
}

impl Database {
    /// The marks; made where there are none.
    fn marks(&self) -> sled::Result<sled::Tree> {
        self.db.open_tree(NAME)
    }

    fn mark(&self, marks: &sled::Tree, tree: u8, key: &[u8], bytes: Option<usize>) -> sled::Result<()> {
        let place = [&[tree], key].concat();
        let known = marks.get(&place)?.map_or(1, |mark| read(&mark).1);
        marks.insert(place, spelled(true, known.max(bytes.map_or(0, parts_of)))).map(drop)
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
            marks.insert([&[tree], key.as_slice()].concat(), spelled(false, parts))?;
        }
        // Last, in the one log.
        self.note_place(place)
    }

    /// All marks, in the order of the keys.
    pub(super) fn marked(&self) -> sled::Result<Vec<Marked>> {
        let mut found = Vec::new();
        for mark in &self.marks()? {
            let (place, mark) = mark?;
            let Some((&tree, key)) = place.split_first() else { continue };
            let (lacking, parts) = read(&mark);
            found.push(Marked { tree, key: key.to_vec(), lacking, parts });
        }
        Ok(found)
    }

    /// The topic has this value now, in so many records; 0 where it is gone.
    pub(super) fn is_sent(&self, tree: u8, key: &[u8], parts: u32) -> sled::Result<()> {
        let (marks, place) = (self.marks()?, [&[tree], key].concat());
        match parts {
            0 | 1 => marks.remove(place),
            parts => marks.insert(place, spelled(false, parts)),
        }
        .map(drop)
    }
}

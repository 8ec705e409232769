//! The profiles that joins keep, on disk: one sealed value a person, under the number of the join and the person's keyed digest.
//!
//! They change only together with the effect of a batch, or while no batch is about to leave. So the table that a batch sees is a
//! function of what left before it, and a batch that is repeated after a crash sees the very same. Its version says so.

use super::records::ProfileChange;
use super::seal::Sealer;

/// The version of the profiles, beside all values.
pub(super) const VERSION: &[u8] = b"profiles";
/// What the keys of profiles begin with.
pub(super) const PREFIX: &str = "profile";

/// Changes that have still to be written, and the version with them.
#[derive(Default)]
pub(super) struct ProfileJournal {
    pub version: u64,
    unwritten: Vec<ProfileChange>,
    /// Values that the write in hand sets or removes.
    values: usize,
}

fn key_of(join: u16, person: u64) -> Vec<u8> {
    let mut key = PREFIX.as_bytes().to_vec();
    key.push(b'/');
    key.extend_from_slice(&join.to_be_bytes());
    key.extend_from_slice(&person.to_be_bytes());
    key
}

/// The join and the person of a key; none where it is none.
#[must_use]
pub fn place_of(key: &[u8]) -> Option<(u16, u64)> {
    let (join, person) = key.strip_prefix(PREFIX.as_bytes())?.strip_prefix(b"/")?.split_at_checked(2)?;
    Some((u16::from_be_bytes(join.try_into().ok()?), u64::from_be_bytes(person.try_into().ok()?)))
}

impl ProfileJournal {
    /// Notes changes for the next write.
    pub fn note(&mut self, changes: Vec<ProfileChange>) {
        if !changes.is_empty() {
            self.version += 1;
            self.unwritten.extend(changes);
        }
    }

    /// Adds what has been noted to a write. Gives the bytes added.
    pub fn write(&mut self, batch: &mut sled::Batch, sealer: &Sealer) -> usize {
        if self.unwritten.is_empty() {
            return 0;
        }
        let mut bytes = 0;
        let mut put = |key: Vec<u8>, plain: &[u8]| {
            let sealed = sealer.seal(&key, plain);
            bytes += key.len() + sealed.len();
            batch.insert(key, sealed);
        };
        put(VERSION.to_vec(), &postcard::to_stdvec(&self.version).expect("plain values always serialize"));
        let mut gone = Vec::new();
        // In their order: of two changes of one person the later holds.
        let changes = self.latest();
        self.values += changes.len();
        for ProfileChange { join, person, cells } in changes {
            match cells {
                Some(cells) => {
                    let plain = postcard::to_stdvec(&*cells).expect("plain values always serialize");
                    put(key_of(join, person), &plain);
                }
                None => gone.push(key_of(join, person)),
            }
        }
        gone.into_iter().for_each(|key| batch.remove(key));
        bytes
    }

    /// How many values the write in hand sets or removes; none of the next.
    pub fn take_values(&mut self) -> usize {
        std::mem::take(&mut self.values)
    }

    /// The last change of each person.
    fn latest(&mut self) -> Vec<ProfileChange> {
        let mut changes = std::mem::take(&mut self.unwritten);
        changes.reverse();
        let mut known = hashbrown::HashSet::new();
        changes.retain(|change| known.insert((change.join, change.person)));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::state::seal::Keys;

    #[test]
    fn the_last_of_several_changes_is_written() {
        let mut journal = ProfileJournal::default();
        let change = |person, cells: Option<&str>| ProfileChange { join: 2, person, cells: cells.map(Into::into) };
        journal.note(Vec::new());
        assert_eq!(journal.version, 0, "nothing has changed");
        journal.note(vec![change(1, Some("a")), change(2, Some("b")), change(1, None), change(2, Some("c"))]);
        journal.note(vec![change(3, None), change(3, Some("d"))]);
        let directory = tempfile::tempdir().expect("a directory");
        let tree = sled::open(directory.path()).expect("a database");
        let sealer = Keys::derive(b"secret").sealer();
        tree.insert(key_of(2, 1), "old").expect("a value");
        let mut batch = sled::Batch::default();
        assert!(journal.write(&mut batch, &sealer) > 0);
        tree.apply_batch(batch).expect("a write");
        let found: Vec<(u64, String)> = tree
            .scan_prefix("profile/")
            .map(|entry| {
                let (key, sealed) = entry.expect("an entry");
                let (join, person) = place_of(&key).expect("a profile");
                assert_eq!(join, 2);
                let plain = sealer.open(&key, &sealed).expect("sealed for its place");
                (person, postcard::from_bytes(&plain).expect("a text"))
            })
            .collect();
        assert_eq!(found, [(2, "c".to_owned()), (3, "d".to_owned())]);
        assert_eq!(journal.version, 2);
        assert_eq!((journal.take_values(), journal.take_values()), (3, 0), "of three people");
        assert_eq!(journal.write(&mut sled::Batch::default(), &sealer), 0, "written once");
    }
}

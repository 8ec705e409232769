//! Profiles of joins on disk, by join and subject digest. They change only with a batch or while none is intended, so
//! that a repeated batch reads the same table.

use super::records::ProfileChange;
use super::state_keys::Sealer;

pub(super) const PROFILES_VERSION: &[u8] = b"profiles";
pub(super) const PROFILE_PREFIX: &str = "profile";

#[derive(Default)]
pub(super) struct ProfileJournal {
    pub version: u64,
    unwritten: Vec<ProfileChange>,
    values: usize,
}

fn profile_key(join: u16, person: u64) -> Vec<u8> {
    let mut key = PROFILE_PREFIX.as_bytes().to_vec();
    key.push(b'/');
    key.extend_from_slice(&join.to_be_bytes());
    key.extend_from_slice(&person.to_be_bytes());
    key
}

/// Returns the join and the subject of a profile's key.
#[must_use]
pub fn parse_profile_key(key: &[u8]) -> Option<(u16, u64)> {
    let (join, person) = key.strip_prefix(PROFILE_PREFIX.as_bytes())?.strip_prefix(b"/")?.split_at_checked(2)?;
    Some((u16::from_be_bytes(join.try_into().ok()?), u64::from_be_bytes(person.try_into().ok()?)))
}

impl ProfileJournal {
    /// Queues changes for the next write.
    pub fn queue_changes(&mut self, changes: Vec<ProfileChange>) {
        if !changes.is_empty() {
            self.version += 1;
            self.unwritten.extend(changes);
        }
    }

    /// Adds the queued changes to a write; returns the bytes added.
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
        put(PROFILES_VERSION.to_vec(), &postcard::to_stdvec(&self.version).expect("plain values always serialize"));
        let mut gone = Vec::new();
        let changes = self.take_latest_changes();
        self.values += changes.len();
        for ProfileChange { join, person, cells } in changes {
            match cells {
                Some(cells) => {
                    let plain = postcard::to_stdvec(&*cells).expect("plain values always serialize");
                    put(profile_key(join, person), &plain);
                }
                None => gone.push(profile_key(join, person)),
            }
        }
        gone.into_iter().for_each(|key| batch.remove(key));
        bytes
    }

    /// Returns and resets the number of values in the current write.
    pub fn take_value_count(&mut self) -> usize {
        std::mem::take(&mut self.values)
    }

    fn take_latest_changes(&mut self) -> Vec<ProfileChange> {
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
    use crate::daemon::state::state_keys::StateKeys;

    #[test]
    fn profile_journal_writes_the_last_change_per_subject() {
        let mut journal = ProfileJournal::default();
        let change = |person, cells: Option<&str>| ProfileChange { join: 2, person, cells: cells.map(Into::into) };
        journal.queue_changes(Vec::new());
        assert_eq!(journal.version, 0, "nothing has changed");
        journal.queue_changes(vec![change(1, Some("a")), change(2, Some("b")), change(1, None), change(2, Some("c"))]);
        journal.queue_changes(vec![change(3, None), change(3, Some("d"))]);
        let directory = tempfile::tempdir().expect("a directory");
        let tree = sled::open(directory.path()).expect("a database");
        let sealer = StateKeys::derive(b"secret").sealer();
        tree.insert(profile_key(2, 1), "old").expect("a value");
        let mut batch = sled::Batch::default();
        assert!(journal.write(&mut batch, &sealer) > 0);
        tree.apply_batch(batch).expect("a write");
        let found: Vec<(u64, String)> = tree
            .scan_prefix("profile/")
            .map(|entry| {
                let (key, sealed) = entry.expect("an entry");
                let (join, person) = parse_profile_key(&key).expect("a profile");
                assert_eq!(join, 2);
                let plain = sealer.open(&key, &sealed).expect("sealed for its place");
                (person, postcard::from_bytes(&plain).expect("a text"))
            })
            .collect();
        assert_eq!(found, [(2, "c".to_owned()), (3, "d".to_owned())]);
        assert_eq!(journal.version, 2);
        assert_eq!((journal.take_value_count(), journal.take_value_count()), (3, 0), "of three people");
        assert_eq!(journal.write(&mut sled::Batch::default(), &sealer), 0, "written once");
    }
}

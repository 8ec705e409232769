//! Every value of a state, opened and read as what its key says it is: what is damaged is counted by kind, and nothing is
//! believed of what a start would pass over.

use super::binding::{GROUPS, JOB, POLICY, SINK, STREAM, UNTRUTHFUL};
use super::names_read::{NAMES_READ, NamesRead};
use super::{BASELINE, CHECK, EVIDENCE, INTENT, INTENT_MET, MET, PROGRESS, Store};
use crate::anonymity::plan::Plan;
use crate::anonymity::plan::evidence::Evidence;
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::reference::ReferenceCounts;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::profile_journal::{INTENT_VERSION, PREFIX, VERSION, place_of};
use crate::daemon::state::records::{Intent, KeptRow, Progress};
use crate::daemon::state::rows::RowBlock;
use crate::io::profiles::Cells;
use crate::ledger::delta::LedgerDelta;
use crate::start::findings::Met;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// How many values of one kind there are, and how many of them are damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Examined {
    /// All of them.
    pub values: u64,
    /// Bytes of keys and sealed values.
    pub bytes: u64,
    /// They do not open: changed on the disk, moved to another key, or sealed with another secret.
    pub sealed_otherwise: u64,
    /// They open and are not what their key says.
    pub unreadable: u64,
}

/// Reads an opened value as what it is.
type Reads = fn(&[u8]) -> bool;

fn is<T: DeserializeOwned>(plain: &[u8]) -> bool {
    postcard::from_bytes::<T>(plain).is_ok()
}

fn is_delta(plain: &[u8]) -> bool {
    postcard::from_bytes::<Vec<u8>>(plain).is_ok_and(|bytes| LedgerDelta::from_bytes(&bytes).is_some())
}

/// The kind of a key, its name, and how its values are read; none where no version of this format writes such a key.
fn kind_of(key: &[u8]) -> Option<(&'static str, Reads)> {
    let alone: [(&[u8], &'static str, Reads); 15] = [
        (PROGRESS, "progress", is::<Progress>),
        (INTENT, "intent", is::<Intent>),
        (BASELINE, "baseline", is::<Baseline>),
        (EVIDENCE, "evidence", is::<Evidence>),
        (MET, "met", is::<Met>),
        (INTENT_MET, "intent-met", is::<(u64, Met)>),
        (INTENT_VERSION, "intent-profiles", is::<(u64, u64)>),
        (VERSION, "profiles", is::<u64>),
        (STREAM, "stream", is::<String>),
        (SINK, "sink", is::<String>),
        (GROUPS, "groups", is::<String>),
        (POLICY, "policy", is::<[u8; 32]>),
        (JOB, "job", is::<[u8; 32]>),
        (NAMES_READ, "names-read", is::<NamesRead>),
        (UNTRUTHFUL, "untruthful", is::<bool>),
    ];
    if let Some((_, name, reads)) = alone.into_iter().find(|(whole, ..)| *whole == key) {
        return Some((name, reads));
    }
    let numbered: [(&'static str, Reads); 7] = [
        ("delta", is_delta),
        ("shard", is::<(u64, Vec<u8>)>),
        ("said", is::<Vec<u8>>),
        ("sample", is::<Vec<KeptRow>>),
        ("held", is::<KeptRow>),
        ("plan", is::<Plan>),
        ("reference", is::<Vec<ReferenceCounts>>),
    ];
    let numbers =
        |rest: &[u8], bytes: usize| rest.split_first().is_some_and(|(slash, n)| *slash == b'/' && n.len() == bytes);
    let after = |prefix: &str, bytes| key.strip_prefix(prefix.as_bytes()).is_some_and(|rest| numbers(rest, bytes));
    if let Some(found) = numbered.into_iter().find(|(prefix, _)| after(prefix, 8)) {
        return Some(found);
    }
    (after(PREFIX, 10) && place_of(key).is_some()).then_some((PREFIX, is::<Cells>))
}

/// Whether a version of this format writes such a key, beside the check value.
pub(super) fn is_known(key: &[u8]) -> bool {
    kind_of(key).is_some()
}

/// What keys of no known kind are counted under.
pub const UNKNOWN: &str = "unknown";

impl Store {
    /// Opens and reads every value; `passed` is told the bytes of each. A value of the window is read alone: they are large.
    ///
    /// # Errors
    /// When the database fails.
    pub fn examine(&self, mut passed: impl FnMut(u64)) -> Result<BTreeMap<&'static str, Examined>, StateError> {
        let mut found: BTreeMap<&'static str, Examined> = BTreeMap::new();
        let mut add = |kind: Option<(&'static str, Reads)>, key: &[u8], sealed: &[u8]| {
            let bytes = (key.len() + sealed.len()) as u64;
            passed(bytes);
            let (name, reads) = kind.unwrap_or((UNKNOWN, |_| false));
            let counted = found.entry(name).or_default();
            counted.values += 1;
            counted.bytes += bytes;
            match self.sealer.open(key, sealed) {
                None => counted.sealed_otherwise += 1,
                Some(plain) if !reads(&plain) => counted.unreadable += 1,
                Some(_) => {}
            }
        };
        let mut after = Vec::new();
        while let Some((key, sealed)) = self.next_value(after)? {
            if key != CHECK {
                add(kind_of(&key), &key, &sealed);
            }
            after = key.to_vec();
        }
        for key in self.row_keys()? {
            if let Some(sealed) = self.rows_of(&key)? {
                add(Some(("rows", is::<RowBlock>)), &key, &sealed);
            }
        }
        Ok(found)
    }

    /// The value behind `after`, in the order of the keys.
    fn next_value(&self, after: Vec<u8>) -> Result<Option<(sled::IVec, sled::IVec)>, StateError> {
        self.keeper.read(move |d| if after.is_empty() { d.tree.first() } else { d.tree.get_gt(after) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::state::seal::Keys;
    use crate::ledger::per_subject::Ledger;

    const SECRET: &[u8] = b"a secret of a test";

    fn damage(path: &std::path::Path, change: impl FnOnce(&sled::Tree)) {
        let db = sled::open(path.join("db")).expect("the database");
        let tree = db.open_tree("throng").expect("the tree");
        change(&tree);
        db.flush().expect("a flush");
    }

    #[test]
    fn whatever_is_damaged_is_counted_under_its_kind() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state");
        let missing = Store::existing(&path, Some(SECRET)).err().expect("no state");
        assert!(matches!(missing, StateError::Missing(_)), "{missing}");
        assert!(!path.exists(), "nothing was made");
        let mut ledger = Ledger::default();
        let (mut store, ..) = Store::open(&path, Some(SECRET), &mut ledger).expect("a state");
        store.bind("a stream").and_then(|()| store.begin(&Progress::default())).expect("writes");
        let sound = store.examine(|_| ()).expect("a look");
        assert!(
            sound.values().all(|kind| kind.values == 1 && kind.sealed_otherwise + kind.unreadable == 0),
            "{sound:?}"
        );
        assert_eq!(sound.keys().copied().collect::<Vec<_>>(), ["progress", "stream"]);
        drop(store);
        let sealer = Keys::derive(SECRET).sealer();
        damage(&path, |tree| {
            let stream = tree.get(STREAM).expect("a look").expect("a value");
            tree.insert("held/00000001", stream).expect("a write");
            tree.insert(PROGRESS, sealer.seal(PROGRESS, b"")).expect("a write");
            tree.insert("strange", sealer.seal(b"strange", b"x")).expect("a write");
        });
        let (store, _) = Store::existing(&path, Some(SECRET)).expect("it is there");
        let mut bytes = 0;
        let found = store.examine(|passed| bytes += passed).expect("a look");
        assert_eq!((found["held"].sealed_otherwise, found["held"].unreadable), (1, 0), "moved to another key");
        assert_eq!((found["progress"].sealed_otherwise, found["progress"].unreadable), (0, 1), "cut short");
        assert_eq!(found[UNKNOWN].unreadable, 1);
        assert_eq!(bytes, found.values().map(|kind| kind.bytes).sum::<u64>());
    }
}

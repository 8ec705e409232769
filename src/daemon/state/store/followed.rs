//! A state that follows its instance: the directory is a cache of a topic, and knows what the topic lacks.

use super::{CHECK, INTENT, PROGRESS, Store};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::generation::{Followed, first};
use crate::daemon::state::keeper::{Database, FOLLOWED};
use crate::daemon::state::marks::{Marked, TREE, WINDOW};
use crate::daemon::state::records::{Intent, Progress};
use crate::release::kept_sum::StateChange;
use crate::release::sink::{KeptIn, parts_of};
use std::ops::Bound;
use std::path::Path;

/// Bytes of values that a transaction of a copy takes, about.
const PORTION: usize = 8 << 20;
/// Values that go with a batch at most, and their bytes: more of them are copied with all others, in transactions of their own.
const MOST: usize = 100_000;
const MOST_BYTES: usize = 64 << 20;

/// Where a directory stands, without loading what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Identity of its state.
    pub id: String,
    /// Which copy it is a cache of; none where it is the state itself.
    pub followed: Option<Followed>,
    /// The last batch that it knows to have left.
    pub sequence: u64,
    /// A batch that was about to leave, and the attempt at it.
    pub intent: Option<(u64, u64)>,
}

impl Store {
    /// Where the directory stands.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn standing(&self) -> Result<Standing, StateError> {
        let intent: Option<Intent> = self.read(INTENT)?;
        Ok(Standing {
            id: self.id.clone(),
            followed: self.followed()?,
            sequence: self.read::<Progress>(PROGRESS)?.unwrap_or_default().sequence,
            intent: intent.map(|intent| (intent.after.sequence, intent.attempt)),
        })
    }

    /// Makes the state at `path`, which no topic has and in which nothing is pending, that of `instance`.
    ///
    /// # Errors
    /// As [`existing`](Self::existing).
    pub fn adopt(path: &Path, secret: Option<&[u8]>, instance: &str) -> Result<(), StateError> {
        let (store, keys) = Self::existing(path, secret)?;
        let mut batch = sled::Batch::default();
        batch.insert(CHECK, [&keys.check[..], instance.as_bytes()].concat());
        batch.insert(FOLLOWED, first(&keys));
        store.keeper.write(PORTION, move |d| {
            d.tree.apply_batch(batch)?;
            d.tree.flush().map(drop)
        })
    }

    /// Which copy in a topic this is a cache of; none where it is the state itself.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn followed(&self) -> Result<Option<Followed>, StateError> {
        self.read(FOLLOWED)
    }

    /// Refuses a cache, for what must be done to the topic as well.
    pub(super) fn stands_alone(&self, remedy: &'static str) -> Result<(), StateError> {
        match self.followed()? {
            None => Ok(()),
            Some(_) => Err(StateError::Follows { path: self.path.clone(), remedy }),
        }
    }

    /// Expects the cache of `instance`, or, where there is none, a state of its own.
    ///
    /// # Errors
    /// [`StateError::Follows`], [`StateError::OtherInstance`].
    pub fn expect_instance(&self, instance: Option<&str>) -> Result<(), StateError> {
        let Some(instance) = instance else {
            return self.stands_alone("set state.kind = \"topic\" and its state.instance, or name another directory");
        };
        let what = match self.followed()? {
            None => "no topic has its state".to_owned(),
            Some(_) if self.id != instance => format!("it is that of {:?}", self.id),
            Some(_) => return Ok(()),
        };
        Err(StateError::OtherInstance { path: self.path.clone(), instance: instance.to_owned(), what })
    }

    /// Where a topic has every value that is not marked; none where nothing is known of that.
    ///
    /// # Errors
    /// When the database fails.
    pub fn kept_in(&self) -> Result<Option<KeptIn>, StateError> {
        self.keeper.read(Database::marked_whole)
    }

    /// Notes how far the place is written that [`kept_in`](Self::kept_in) says.
    ///
    /// # Errors
    /// When the database fails.
    pub fn note_place(&mut self, place: KeptIn) -> Result<(), StateError> {
        self.keeper.write(place.topic.len(), move |d| d.note_place(&place))
    }

    /// What the topic lacks; none where that is more than goes with a batch. Empty where no topic has the state.
    ///
    /// # Errors
    /// When the database fails.
    pub fn lacking(&self) -> Result<Option<Vec<StateChange>>, StateError> {
        if !self.follows {
            return Ok(Some(Vec::new()));
        }
        self.keeper.read(|d| {
            let (mut found, mut bytes) = (Vec::new(), 0);
            for Marked { tree, key, parts, had, .. } in d.marked()?.into_iter().filter(|mark| mark.lacking) {
                let value = d.of(tree).get(&key)?.map(|value| value.to_vec());
                bytes += key.len() + value.as_ref().map_or(0, Vec::len);
                if found.len() >= MOST || bytes > MOST_BYTES {
                    return Ok(None);
                }
                found.push(StateChange { tree, key, value, parts, had });
            }
            Ok(Some(found))
        })
    }

    /// Notes that the topic has these values now, with the batch of `attempt`.
    ///
    /// # Errors
    /// When the database fails.
    pub fn has_kept(&mut self, changes: &[StateChange], attempt: u64) -> Result<(), StateError> {
        if !self.follows {
            return Ok(());
        }
        let parts = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, |value| parts_of(value.len()));
        let kept: Vec<_> = changes.iter().map(|c| (c.tree, c.key.clone(), parts(&c.value))).collect();
        let bytes = kept.iter().map(|(_, key, _)| key.len()).sum();
        self.keeper.write(bytes, move |d| {
            kept.iter().try_for_each(|(tree, key, parts)| d.is_sent(*tree, key, *parts))?;
            d.note_sent(attempt)
        })
    }

    /// Notes that the batch of `attempt`, whose intent is the one on the disk, has left: what the topic lacked when it was intended went
    /// with it.
    ///
    /// # Errors
    /// When the database fails.
    pub fn has_left(&self, attempt: u64) -> Result<(), StateError> {
        self.keeper.write(0, move |d| d.settle_sent(attempt))
    }

    /// Begins a copy of all values that takes the place of the generation `before`. Gives its number.
    ///
    /// # Errors
    /// When the database fails.
    pub fn begin_copy(&mut self, before: u64) -> Result<u64, StateError> {
        let next = Followed::after(before);
        let sealed = self.sealer.seal(FOLLOWED, &postcard::to_stdvec(&next).expect("plain values always serialize"));
        self.keeper.write(sealed.len(), move |d| {
            // A database that was written anew has been opened without it.
            d.follows.set(true);
            d.unmark()?;
            d.tree.insert(FOLLOWED, sealed)?;
            d.tree.flush().map(drop)
        })?;
        Ok(next.generation)
    }

    /// The values behind `after`, as many as go into a transaction; empty at the end.
    ///
    /// # Errors
    /// When the database fails.
    pub fn values_after(&self, after: Option<&StateChange>) -> Result<Vec<StateChange>, StateError> {
        let after = after.map(|last| (last.tree, last.key.clone()));
        self.keeper.read(move |d| {
            let (mut found, mut bytes) = (Vec::new(), 0);
            for tree in [TREE, WINDOW] {
                let from = match &after {
                    Some((before, _)) if *before > tree => continue,
                    Some((before, key)) if *before == tree => Bound::Excluded(key.as_slice()),
                    _ => Bound::Unbounded,
                };
                for value in d.of(tree).range::<&[u8], _>((from, Bound::Unbounded)) {
                    let (key, value) = value?;
                    bytes += key.len() + value.len();
                    found.push(StateChange {
                        tree,
                        key: key.to_vec(),
                        value: Some(value.to_vec()),
                        parts: 0,
                        had: None,
                    });
                    if bytes >= PORTION {
                        return Ok(found);
                    }
                }
            }
            Ok(found)
        })
    }

    /// Notes that the topic has all values, in `place`; `several` are those of more than one record, with how many.
    ///
    /// # Errors
    /// When the database fails.
    pub fn end_copy(&mut self, several: Vec<(u8, Vec<u8>, u32)>, place: KeptIn) -> Result<(), StateError> {
        self.keeper.write(0, move |d| d.mark_whole(several, &place).and_then(|()| d.tree.flush()).map(drop))
    }
}

/// Whether a value is the check value of a state, with which it is known whose it is.
pub(in crate::daemon::state) fn is_check(tree: u8, key: &[u8]) -> bool {
    tree == TREE && key == CHECK
}

//! A state directory made of what a topic has.

use super::databases;
use super::directory::{self, StateError};
use super::keeper::Keeper;
use super::seal::Keys;
use super::store::is_check;
use crate::faults::crash_point;
use crate::release::kept_sum::StateChange;
use crate::release::sink::{KeptIn, parts_of};
use std::path::Path;

/// Bytes that are written at a time.
const PORTION: usize = 8 << 20;

/// Makes the directory `path` a cache of `values`, in place of what it held, if it held anything; `place` says where they are, unless
/// something else of this instance is there, too, and `attempt` is the one at their last batch. A process that ends in between leaves the directory as it was, or one that the next start makes anew.
///
/// # Errors
/// When the values are of another secret, or the directory is somebody else's or fails.
pub fn restore(
    path: &Path,
    secret: &[u8],
    values: Vec<StateChange>,
    place: Option<KeptIn>,
    attempt: u64,
) -> Result<(), StateError> {
    let keys = Keys::derive(secret);
    let damaged = |what: &str| StateError::Damaged { path: path.to_owned(), what: what.to_owned() };
    let check = values.iter().find(|value| is_check(value.tree, &value.key)).and_then(|value| value.value.as_deref());
    match check {
        Some(check) if check.starts_with(&keys.check) => {}
        Some(_) => return Err(StateError::WrongSecret(path.to_owned())),
        None => return Err(damaged("the topic has no check value of it")),
    }
    let is_state =
        path.join("format").try_exists().map_err(|source| StateError::Io { path: path.to_owned(), source })?;
    if !is_state && !directory::is_vacant(path)? {
        // One that a killed start has begun to make; anything else is somebody else's.
        directory::prepare(path)?;
    }
    directory::make(path)?;
    let lock = databases::lock(path)?;
    let name = if is_state {
        let in_force = databases::database(path)?;
        databases::clear_databases(path, &in_force)?;
        databases::next_database(&in_force)
    } else {
        directory::begin_import(path)?;
        databases::clear_databases(path, directory::FIRST)?;
        directory::check_secret(path, &keys.check, true)?;
        directory::FIRST.to_owned()
    };
    let keeper = Keeper::open(path, &name)?;
    crash_point("restore-begun");
    fill(&keeper, values, place, attempt)?;
    drop(keeper);
    crash_point("restore-filled");
    // Else a cut of the power leaves a directory that says it is whole, and a database that is not.
    databases::onto_disk(path, &name)?;
    if is_state {
        databases::name_database(path, &name)?;
        databases::clear_databases(path, &name)?;
    } else {
        directory::end_import(path)?;
    }
    crash_point("restored");
    drop(lock);
    Ok(())
}

fn fill(keeper: &Keeper, values: Vec<StateChange>, place: Option<KeptIn>, attempt: u64) -> Result<(), StateError> {
    let (mut portion, mut bytes, mut several) = (Vec::new(), 0, Vec::new());
    let write = |portion: Vec<StateChange>, bytes: usize| {
        keeper.write(bytes, move |d| {
            portion.into_iter().try_for_each(|StateChange { tree, key, value, .. }| match value {
                Some(value) => d.of(tree).insert(key, value).map(drop),
                None => Ok(()),
            })
        })
    };
    for change in values {
        let length = change.value.as_ref().map_or(0, Vec::len);
        let parts = parts_of(length);
        if parts > 1 {
            several.push((change.tree, change.key.clone(), parts));
        }
        bytes += change.key.len() + length;
        portion.push(change);
        if bytes >= PORTION {
            write(std::mem::take(&mut portion), std::mem::take(&mut bytes))?;
        }
    }
    write(portion, bytes)?;
    keeper.write(0, move |d| {
        if let Some(place) = place {
            d.mark_whole(several, &place)?;
            d.note_sent(attempt)?;
        }
        d.tree.flush().map(drop)
    })
}

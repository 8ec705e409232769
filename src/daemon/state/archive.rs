//! A whole state in one file: as sealed as in its directory, under a check of every byte, and without the secret.
//!
//! A line names the form; the check value of the secret follows, then every value as its tree, the lengths of key and value, and
//! both; an end mark; and the HMAC-SHA-256 of all of it. So a file that was cut short, changed, mixed with another, or is of
//! another secret is told before anything is made of it.

use super::databases;
use super::directory::{self, FORMAT, StateError};
use super::keeper::Keeper;
use super::seal::Keys;
use crate::faults::crash_point;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Values that are read or written at a time, in bytes.
const PORTION: usize = 8 << 20;
/// No key is longer.
const LONGEST_KEY: usize = 64;
const CHECK_BYTES: usize = 32;

const END: u8 = 0;
const TREE: u8 = 1;
const WINDOW: u8 = 2;

/// Why a state does not go into an archive, or come out of one.
#[allow(missing_docs, reason = "the messages document the cases")]
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("{path}: {source} (name a file on a disk with room)")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{path}: {source} (name an archive that this process may read)")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{0} is no archive of a throng state (name a file that `throng state export` has written)")]
    Foreign(PathBuf),
    #[error("{path} is of {found}, this throng reads format {FORMAT} (use the version that wrote it)")]
    Version { path: PathBuf, found: String },
    #[error("the secret does not belong to the archive {0} (give the secret of the state that it was made of)")]
    WrongSecret(PathBuf),
    #[error("{path} is damaged: {what} (take another copy; nothing was made of this one)")]
    Damaged { path: PathBuf, what: &'static str },
    #[error(
        "{0} has a state in it already (name a `state.path` that is empty, or not there; a state is never written over)"
    )]
    Occupied(PathBuf),
}

impl ArchiveError {
    /// Whether it lies with what was named rather than with the machine.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::State(error) => error.is_refusal(),
            Self::Write { .. } => false,
            _ => true,
        }
    }
}

/// What an archive holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Archived {
    /// Values of the state.
    pub values: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

fn heading() -> String {
    format!("throng-state-archive 1, state format {FORMAT}\n")
}

/// Writes under the check.
struct Checked<W> {
    to: W,
    mac: Hmac<Sha256>,
    done: Archived,
}

impl<W: Write> Checked<W> {
    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.mac.update(bytes);
        self.done.bytes += bytes.len() as u64;
        self.to.write_all(bytes)
    }

    fn value(&mut self, tree: u8, key: &[u8], value: &[u8]) -> std::io::Result<()> {
        self.put(&[tree])?;
        self.put(&(key.len() as u32).to_le_bytes())?;
        self.put(&(value.len() as u32).to_le_bytes())?;
        self.put(key)?;
        self.put(value)?;
        self.done.values += 1;
        Ok(())
    }
}

fn mac_of(keys: &Keys) -> Hmac<Sha256> {
    Hmac::new_from_slice(&keys.archive).expect("HMAC takes keys of any length")
}

/// Writes the state at `path` to `to`, which is named `file` in errors. `passed` is told the bytes of each portion. The state is not
/// changed, and nobody else may have it open.
///
/// # Errors
/// See [`ArchiveError`]; `to` is then of no use.
pub fn export(
    path: &Path,
    secret: Option<&[u8]>,
    to: impl Write,
    file: &Path,
    mut passed: impl FnMut(u64),
) -> Result<Archived, ArchiveError> {
    let failed = |source| ArchiveError::Write { path: file.to_owned(), source };
    directory::must_exist(path)?;
    directory::check_format(path)?;
    let _lock = databases::lock(path)?;
    let keys = directory::keys(path, secret, false)?;
    directory::check_secret(path, &keys.check, false)?;
    let keeper = Keeper::open(path, &databases::database(path)?)?;
    let mut out = Checked { to, mac: mac_of(&keys), done: Archived::default() };
    out.put(heading().as_bytes()).and_then(|()| out.put(&keys.check)).map_err(failed)?;
    for tree in [TREE, WINDOW] {
        let mut after: Option<sled::IVec> = None;
        loop {
            let portion = keeper.read(move |d| {
                let from = if tree == TREE { &d.tree } else { &d.window };
                let (mut found, mut bytes) = (Vec::new(), 0);
                let values = match &after {
                    Some(after) => {
                        from.range::<&[u8], _>((std::ops::Bound::Excluded(&after[..]), std::ops::Bound::Unbounded))
                    }
                    None => from.iter(),
                };
                for value in values {
                    let (key, value) = value?;
                    bytes += key.len() + value.len();
                    found.push((key, value));
                    if bytes >= PORTION {
                        break;
                    }
                }
                Ok(found)
            })?;
            let Some((last, _)) = portion.last() else { break };
            after = Some(last.clone());
            let before = out.done.bytes;
            portion.iter().try_for_each(|(key, value)| out.value(tree, key, value)).map_err(failed)?;
            passed(out.done.bytes - before);
        }
    }
    out.put(&[END]).map_err(failed)?;
    let Checked { mut to, mac, mut done } = out;
    let tag = mac.finalize().into_bytes();
    done.bytes += tag.len() as u64;
    to.write_all(&tag).and_then(|()| to.flush()).map_err(failed)?;
    Ok(done)
}

/// Reads an archive value by value.
struct Archive<'a> {
    file: &'a Path,
    from: BufReader<File>,
    /// Bytes that are left: no length is believed beyond it.
    left: u64,
    mac: Hmac<Sha256>,
}

impl<'a> Archive<'a> {
    /// Opens `file` and reads what comes before its values.
    fn open(file: &'a Path, keys: &Keys) -> Result<Self, ArchiveError> {
        let unreadable = |source| ArchiveError::Read { path: file.to_owned(), source };
        let foreign = || ArchiveError::Foreign(file.to_owned());
        let opened = File::open(file).map_err(unreadable)?;
        let about = opened.metadata().map_err(unreadable)?;
        if !about.is_file() {
            return Err(foreign());
        }
        let mut from = BufReader::with_capacity(1 << 20, opened);
        let mut line = Vec::new();
        from.by_ref().take(80).read_until(b'\n', &mut line).map_err(unreadable)?;
        if line != heading().as_bytes() {
            let text = String::from_utf8(line).ok().filter(|text| text.starts_with("throng-state-archive "));
            let found = text.map(|text| text.trim().chars().filter(|c| !c.is_control()).collect());
            return Err(found.map_or_else(foreign, |found| ArchiveError::Version { path: file.to_owned(), found }));
        }
        let mut archive = Self { file, from, left: about.len() - line.len() as u64, mac: mac_of(keys) };
        archive.mac.update(&line);
        let mut check = [0; CHECK_BYTES];
        archive.take(&mut check)?;
        if check == keys.check { Ok(archive) } else { Err(ArchiveError::WrongSecret(file.to_owned())) }
    }

    fn damaged(&self, what: &'static str) -> ArchiveError {
        ArchiveError::Damaged { path: self.file.to_owned(), what }
    }

    /// Fills `into` with the next bytes.
    fn read(&mut self, into: &mut [u8]) -> Result<(), ArchiveError> {
        let left = self.left.checked_sub(into.len() as u64).ok_or_else(|| self.damaged("it is cut short"))?;
        self.left = left;
        self.from.read_exact(into).map_err(|source| match source.kind() {
            ErrorKind::UnexpectedEof => self.damaged("it is cut short"),
            _ => ArchiveError::Read { path: self.file.to_owned(), source },
        })
    }

    fn take(&mut self, into: &mut [u8]) -> Result<(), ArchiveError> {
        self.read(into)?;
        self.mac.update(into);
        Ok(())
    }

    fn length(&mut self) -> Result<u64, ArchiveError> {
        let mut bytes = [0; 4];
        self.take(&mut bytes)?;
        Ok(u64::from(u32::from_le_bytes(bytes)))
    }

    /// The next value, its tree and its key; none at the end, where the check of all before has been made.
    fn next(&mut self) -> Result<Option<(u8, Vec<u8>, Vec<u8>)>, ArchiveError> {
        let mut tree = [END];
        self.take(&mut tree)?;
        if tree == [END] {
            let mut tag = [0; 32];
            self.read(&mut tag)?;
            let sound = self.mac.clone().verify_slice(&tag).is_ok();
            return match (sound, self.left) {
                (true, 0) => Ok(None),
                (true, _) => Err(self.damaged("something follows its end")),
                (false, _) => Err(self.damaged("its check is wrong: it was changed, or is made of two")),
            };
        }
        let (key, value) = (self.length()?, self.length()?);
        let known = [TREE, WINDOW].contains(&tree[0]) && key <= LONGEST_KEY as u64;
        if !known || key + value > self.left {
            return Err(self.damaged("it is cut short, or was changed"));
        }
        let (mut key, mut value) = (vec![0; key as usize], vec![0; value as usize]);
        self.take(&mut key)?;
        self.take(&mut value)?;
        Ok(Some((tree[0], key, value)))
    }
}

/// Makes the state directory `path` of the archive `file`. All of the archive is checked before anything is written; a process that
/// ends in between leaves a directory that is no state, and that another import clears. `own` says that the directory keeps the
/// secret itself.
///
/// # Errors
/// See [`ArchiveError`].
pub fn import(
    file: &Path,
    path: &Path,
    secret: &[u8],
    own: bool,
    mut passed: impl FnMut(u64),
) -> Result<Archived, ArchiveError> {
    let keys = Keys::derive(secret);
    let mut archive = Archive::open(file, &keys)?;
    while archive.next()?.is_some() {}
    let occupied = || ArchiveError::Occupied(path.to_owned());
    if !directory::is_vacant(path)? {
        return Err(occupied());
    }
    directory::make(path)?;
    let _lock = databases::lock(path)?;
    // Another import may have come to its end meanwhile.
    if !directory::is_vacant(path)? {
        return Err(occupied());
    }
    directory::begin_import(path)?;
    databases::clear_databases(path, directory::FIRST)?;
    if own {
        directory::keep_secret(path, secret)?;
    }
    directory::check_secret(path, &keys.check, true)?;
    let keeper = Keeper::open(path, directory::FIRST)?;
    let mut archive = Archive::open(file, &keys)?;
    let mut done = Archived::default();
    let (mut portion, mut bytes) = (Vec::new(), 0);
    loop {
        let next = archive.next()?;
        let is_last = next.is_none();
        if let Some((tree, key, value)) = next {
            bytes += key.len() + value.len();
            portion.push((tree, key, value));
        }
        if bytes >= PORTION || is_last {
            done.values += portion.len() as u64;
            done.bytes += bytes as u64;
            let values = std::mem::take(&mut portion);
            keeper.write(bytes, move |d| {
                for (tree, key, value) in values {
                    let to = if tree == TREE { &d.tree } else { &d.window };
                    to.insert(key, value)?;
                }
                d.tree.flush().map(drop)
            })?;
            crash_point("state-importing");
            passed(bytes as u64);
            bytes = 0;
        }
        if is_last {
            break;
        }
    }
    drop(keeper);
    databases::onto_disk(path, directory::FIRST)?;
    directory::end_import(path)?;
    Ok(done)
}

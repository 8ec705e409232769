//! An object that is read by ranges, as a file is, or from its beginning to its end.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{GetOptions, ObjectMeta};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};
use sha2::{Digest, Sha256};
use tokio::task::JoinHandle;

use super::client::Store;
use super::error::{Fault, StoreError};
use super::fault::fault_of;
use super::listing::key_of;
use super::plan::Plan;
use super::seen::Seen;
use super::stores::{Stores, stores};
use super::url::StoreUrl;

/// Bytes at the end that are fetched first: of most Parquet files the whole footer.
const TAIL: u64 = 64 << 10;
/// Bytes that are fetched where nobody has planned to read.
const UNPLANNED: u64 = 64 << 10;

/// An object. Copies of it share what is held of it: at most [`AT_MOST`](super::plan::AT_MOST) bytes, the last of its answers, and its
/// footer until it is read ahead.
#[derive(Clone, Debug)]
pub struct Object(Arc<Shared>);

struct Shared {
    url: StoreUrl,
    stores: &'static Stores,
    ask: Ask,
    held: Mutex<Held>,
}

/// What every request says.
#[derive(Clone)]
struct Ask {
    store: Arc<dyn Store>,
    key: Key,
    seen: Seen,
}

#[derive(Default)]
struct Held {
    plan: Plan,
    pieces: BTreeMap<usize, Piece>,
    /// The end of the object, or the last answer to what was not planned, with its place.
    aside: Vec<(u64, Bytes)>,
    fault: Option<StoreError>,
}

enum Piece {
    Coming(Coming),
    Here(Bytes),
}

/// A request that nobody waits for any more is given up.
struct Coming(JoinHandle<Result<Bytes, Fault>>);

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("url", &self.url.text).finish_non_exhaustive()
    }
}

impl Object {
    /// Opens the object as it was first seen by this process. Nothing is fetched yet, but what tells its length where nobody has looked.
    ///
    /// # Errors
    /// When it is not there, or its store cannot be asked.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let url = StoreUrl::parse(path)?;
        let stores = stores(&url)?;
        let seen = stores.first_seen(&url)?;
        let ask = Ask { store: stores.client(&url)?, key: key_of(&url)?, seen };
        Ok(Self(Arc::new(Shared { url, stores, ask, held: Mutex::default() })))
    }

    /// Bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.0.ask.seen.length
    }

    /// A digest of what the store says of the content.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let Seen { length, mark, written, .. } = &self.0.ask.seen;
        let digest = Sha256::digest(format!("{length} {written} {}", mark.as_deref().unwrap_or_default()));
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Has the columns of each row group fetched ahead from now on, in this order.
    pub fn read_ahead(&self, groups: &[Vec<Range<u64>>]) {
        let mut held = self.held();
        held.plan = Plan::of_groups(groups, self.length());
        held.pieces.clear();
        held.aside.clear();
    }

    /// What went wrong since this was last asked: what reads Parquet does not hand it on.
    #[must_use]
    pub fn take_fault(&self) -> Option<StoreError> {
        self.held().fault.take()
    }

    /// The object as a text, from its beginning on.
    #[must_use]
    pub fn text(self) -> Text {
        self.held().plan = Plan::of_text(self.length());
        Text { object: self, at: 0 }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes from `at` on, one at least; where they are not planned, `least` of them are asked for at least. None at the end.
    fn piece_at(&self, at: u64, least: u64) -> Result<Bytes, StoreError> {
        if at >= self.length() {
            return Ok(Bytes::new());
        }
        let mut held = self.held();
        let got = match held.plan.at(at) {
            Some(index) => {
                self.planned(&mut held, index).map(|piece| rest(held.plan.piece(index).bytes.start, &piece, at))
            }
            None => self.unplanned(&mut held, at, least),
        };
        got.map_err(|fault| {
            let error = fault.of(&self.0.url.text);
            held.fault = Some(error.clone());
            error
        })
    }

    fn planned(&self, held: &mut Held, read: usize) -> Result<Bytes, Fault> {
        let Held { plan, pieces, .. } = held;
        pieces.retain(|index, _| plan.is_kept(*index, read));
        for index in plan.wanted(read) {
            pieces.entry(index).or_insert_with(|| self.begin(plan.piece(index).bytes.clone()));
        }
        let bytes = match pieces.remove(&read) {
            Some(Piece::Here(bytes)) => bytes,
            Some(Piece::Coming(mut coming)) => self.0.stores.wait(&mut coming.0).unwrap_or(Err(Fault::Bug))?,
            None => return Err(Fault::Bug),
        };
        pieces.insert(read, Piece::Here(bytes.clone()));
        Ok(bytes)
    }

    fn begin(&self, bytes: Range<u64>) -> Piece {
        let (ask, turns) = (self.0.ask.clone(), Arc::clone(&self.0.stores.turns));
        Piece::Coming(Coming(self.0.stores.begin(async move {
            let _turn = turns.acquire_owned().await.map_err(|_| Fault::Bug)?;
            ask.fetch(bytes).await
        })))
    }

    fn unplanned(&self, held: &mut Held, at: u64, least: u64) -> Result<Bytes, Fault> {
        let known = |(start, bytes): &&(u64, Bytes)| (*start..*start + bytes.len() as u64).contains(&at);
        if let Some((start, bytes)) = held.aside.iter().find(known) {
            return Ok(rest(*start, bytes, at));
        }
        let tail = self.length().saturating_sub(TAIL);
        let start = if at >= tail { tail } else { at };
        let end =
            self.length().min(at.saturating_add(least.max(UNPLANNED))).max(if at >= tail { self.length() } else { 0 });
        let bytes = self.0.stores.wait(self.0.ask.fetch(start..end))?;
        // The end stays, and one more: a footer that is longer.
        held.aside.retain(|(start, _)| *start >= tail);
        held.aside.push((start, bytes.clone()));
        Ok(rest(start, &bytes, at))
    }

    fn range(&self, start: u64, length: u64) -> Result<Bytes, StoreError> {
        let mut first = self.piece_at(start, length)?;
        if first.len() as u64 >= length {
            first.truncate(length as usize);
            return Ok(first);
        }
        let mut all = Vec::with_capacity(length as usize);
        while (all.len() as u64) < length {
            let left = length - all.len() as u64;
            let mut next = self.piece_at(start + all.len() as u64, left)?;
            if next.is_empty() {
                break;
            }
            next.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            all.extend_from_slice(&next);
        }
        Ok(all.into())
    }
}

/// What is behind `at` in bytes that begin at `start`.
fn rest(start: u64, bytes: &Bytes, at: u64) -> Bytes {
    bytes.slice((at - start) as usize..)
}

impl Ask {
    /// These bytes of the object, all of them, as long as it is the one that was seen.
    async fn fetch(&self, bytes: Range<u64>) -> Result<Bytes, Fault> {
        let length = bytes.end - bytes.start;
        let options = GetOptions {
            range: Some(bytes.into()),
            if_match: self.seen.mark.as_deref().map(quoted),
            ..GetOptions::default()
        };
        let got = self.store.get_opts(&self.key, options).await.map_err(|error| match fault_of(&error) {
            // It was there.
            Fault::Missing => Fault::Changed,
            fault => fault,
        })?;
        if !self.is_same(&got.meta) {
            return Err(Fault::Changed);
        }
        let bytes = got.bytes().await.map_err(|error| match fault_of(&error) {
            Fault::Unreachable | Fault::Answer => Fault::CutShort,
            fault => fault,
        })?;
        if bytes.len() as u64 == length { Ok(bytes) } else { Err(Fault::CutShort) }
    }

    /// Whether an answer is of the object that was seen; a store need not keep to conditions.
    fn is_same(&self, meta: &ObjectMeta) -> bool {
        let bare = |mark: &str| mark.trim_matches('"').to_owned();
        let is_marked = match (&self.seen.mark, &meta.e_tag) {
            (Some(seen), Some(now)) => bare(seen) == bare(now),
            _ => self.seen.written == meta.last_modified.timestamp(),
        };
        is_marked && self.seen.length == meta.size
    }
}

/// A mark as conditions want it; the listings of Azure leave its quotes out.
fn quoted(mark: &str) -> String {
    if mark.contains('"') { mark.to_owned() } else { format!("\"{mark}\"") }
}

impl Length for Object {
    fn len(&self) -> u64 {
        self.length()
    }
}

fn handed_on(error: StoreError) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl ChunkReader for Object {
    type T = Text;

    fn get_read(&self, start: u64) -> ParquetResult<Text> {
        Ok(Text { object: self.clone(), at: start })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let is_within = start.checked_add(length as u64).is_some_and(|end| end <= self.length());
        if !is_within {
            return Err(ParquetError::EOF("bytes behind the end".to_owned()));
        }
        self.range(start, length as u64).map_err(handed_on)
    }
}

/// The bytes of an object from a place on.
#[derive(Debug)]
pub struct Text {
    object: Object,
    at: u64,
}

impl Read for Text {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.object.piece_at(self.at, into.len() as u64).map_err(io::Error::other)?;
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

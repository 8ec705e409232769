//! The byte form of a model, about three bytes an edge.
//!
//! Version, weights, attributes, units, `n(u)` and then each pair's edges, all in ascending order and written as gaps, so that
//! one model has one byte form; at the end the first half of their SHA-256 digest. The limit on edges is not in it: that is
//! the configuration's, and the model is cut to it when it is read.

use super::block::Block;
use super::varint::{put, take};
use super::{Adjacency, AdjacencyError, Limits, MAX_CODES, Pair, both};
use crate::records::codebook::Code;
use sha2::{Digest, Sha256};

const MAGIC: &[u8] = b"throng adjacency";
const VERSION: u8 = 1;
const DIGEST: usize = 16;

/// Bytes that are no model of this version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    #[error("the bytes are no adjacency model")]
    Foreign,
    #[error("the adjacency model has version {found} and this program reads {VERSION}: rebuild it from the window")]
    Version { found: u8 },
    #[error("the adjacency model is damaged: rebuild it from the window")]
    Damaged,
    #[error(transparent)]
    Model(#[from] AdjacencyError),
}

fn digest(bytes: &[u8]) -> [u8; DIGEST] {
    let whole = Sha256::digest(bytes);
    std::array::from_fn(|at| whole[at])
}

impl Adjacency {
    /// Equal models give equal bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 4 * self.edge_count() as usize);
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        put(&mut out, u64::from(self.limits.half_lives));
        put(&mut out, self.attributes.len() as u64);
        gaps(&mut out, self.attributes.iter().map(|attribute| *attribute as u32));
        put(&mut out, u64::from(self.units));
        for nodes in &self.nodes {
            let held: Vec<(Code, u32)> = (0..).zip(nodes.iter().copied()).filter(|(_, n)| *n > 0).collect();
            put_counts(&mut out, &held);
        }
        for pair in &self.pairs {
            let Some(block) = pair.kept() else {
                put(&mut out, 0);
                continue;
            };
            let edges = block.sorted();
            let rows: Vec<_> = edges.chunk_by(|one, other| one.0 == other.0).collect();
            put(&mut out, rows.len() as u64 + 1);
            gaps(&mut out, rows.iter().map(|row| row[0].0));
            for row in rows {
                put_counts(&mut out, &row.iter().map(|(_, y, n)| (*y, *n)).collect::<Vec<_>>());
            }
        }
        let digest = digest(&out);
        out.extend_from_slice(&digest);
        out
    }

    /// The model that [`to_bytes`](Self::to_bytes) wrote, cut to `max_edges`.
    ///
    /// # Errors
    /// When the bytes are no model of this version, or any of them has changed.
    pub fn from_bytes(bytes: &[u8], max_edges: u64) -> Result<Self, SnapshotError> {
        let versioned = bytes.strip_prefix(MAGIC).ok_or(SnapshotError::Foreign)?;
        let found = *versioned.first().ok_or(SnapshotError::Foreign)?;
        if found != VERSION {
            return Err(SnapshotError::Version { found });
        }
        let (content, seal) = bytes.split_last_chunk::<DIGEST>().ok_or(SnapshotError::Damaged)?;
        if content.len() <= MAGIC.len() || digest(content) != *seal {
            return Err(SnapshotError::Damaged);
        }
        let mut rest = &content[MAGIC.len() + 1..];
        let mut model = read(&mut rest, max_edges)?;
        if !rest.is_empty() {
            return Err(SnapshotError::Damaged);
        }
        model.keep_limit();
        Ok(model)
    }
}

fn read(rest: &mut &[u8], max_edges: u64) -> Result<Adjacency, SnapshotError> {
    const DAMAGED: SnapshotError = SnapshotError::Damaged;
    let half_lives = number(rest).ok_or(DAMAGED)?;
    let width = count(rest).ok_or(DAMAGED)?;
    let attributes: Vec<usize> =
        take_gaps(rest, width).ok_or(DAMAGED)?.into_iter().map(|attribute| attribute as usize).collect();
    let mut model = Adjacency::new(&attributes, Limits { max_edges, half_lives })?;
    model.units = number(rest).ok_or(DAMAGED)?;
    for nodes in &mut model.nodes {
        let held = take_counts(rest).ok_or(DAMAGED)?;
        if held.iter().map(|(_, n)| u64::from(*n)).sum::<u64>() > u64::from(model.units) {
            return Err(DAMAGED);
        }
        nodes.resize(held.last().map_or(0, |(code, _)| *code as usize + 1), 0);
        held.into_iter().for_each(|(code, n)| nodes[code as usize] = n);
    }
    let codes: Vec<usize> = model.nodes.iter().map(Vec::len).collect();
    for ((a, b), pair) in both(codes.len()).zip(&mut model.pairs) {
        let Some(rows) = count(rest).ok_or(DAMAGED)?.checked_sub(1) else {
            *pair = Pair::LeftOut;
            continue;
        };
        let mut edges = Vec::new();
        for x in take_gaps(rest, rows).ok_or(DAMAGED)? {
            edges.extend(take_counts(rest).ok_or(DAMAGED)?.into_iter().map(|(y, n)| (x, y, n)));
        }
        let known = |(x, y, n): &(Code, Code, u32)| {
            let most = |at: usize, code: Code| model.nodes[at].get(code as usize).copied().unwrap_or(0);
            *n <= most(a, *x) && *n <= most(b, *y)
        };
        if !edges.iter().all(known) {
            return Err(DAMAGED);
        }
        *pair = Pair::Kept(Block::of(edges.into_iter(), codes[a], codes[b]));
    }
    Ok(model)
}

/// Ascending numbers: the first as it is, then how far each is beyond the one after its predecessor.
fn gaps(out: &mut Vec<u8>, numbers: impl Iterator<Item = u32>) {
    let mut next = 0;
    for number in numbers {
        put(out, u64::from(number - next));
        next = number + 1;
    }
}

fn put_counts(out: &mut Vec<u8>, counts: &[(Code, u32)]) {
    put(out, counts.len() as u64);
    gaps(out, counts.iter().map(|(code, _)| *code));
    counts.iter().for_each(|(_, n)| put(out, u64::from(*n)));
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    take(rest).and_then(|number| u32::try_from(number).ok())
}

/// How many things follow. Each takes a byte at least, so what is promised beyond that is not reserved.
fn count(rest: &mut &[u8]) -> Option<usize> {
    let count = usize::try_from(take(rest)?).ok()?;
    (count <= rest.len() + 1).then_some(count)
}

fn take_gaps(rest: &mut &[u8], count: usize) -> Option<Vec<u32>> {
    let mut next = 0_u32;
    (0..count)
        .map(|_| {
            let number = next.checked_add(number(rest)?).filter(|number| *number < MAX_CODES)?;
            next = number + 1;
            Some(number)
        })
        .collect()
}

/// Codes with their counts, none of them 0.
fn take_counts(rest: &mut &[u8]) -> Option<Vec<(Code, u32)>> {
    let count = count(rest)?;
    let codes = take_gaps(rest, count)?;
    codes.into_iter().map(|code| number(rest).filter(|n| *n > 0).map(|n| (code, n))).collect()
}

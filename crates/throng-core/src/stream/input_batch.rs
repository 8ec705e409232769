//! Input batch: decoded, not yet typed.

use super::release_sink::{InputPositions, RejectedRecord};
use crate::values::raw_batch::{RawBatch, RecordPosition};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Topic index and partition number; (0, 0) for a file.
pub type InputPartition = (u16, i32);

/// Offset range `[from, to)` per partition.
pub type OffsetRanges = BTreeMap<InputPartition, (i64, i64)>;

/// State of a source during treatment.
pub trait SourceStatus: Send + Sync {
    /// Returns the number of unread records, if known.
    fn lag(&self) -> Option<u64>;
    /// Receives the offsets after a commit.
    fn note_committed(&self, _: &InputPositions) {}
    /// Returns a record position as text.
    fn describe(&self, coordinate: RecordPosition) -> String;
}

/// [`SourceStatus`] of a file.
pub struct FileSourceStatus;

impl SourceStatus for FileSourceStatus {
    fn lag(&self) -> Option<u64> {
        None
    }

    fn describe(&self, coordinate: RecordPosition) -> String {
        match coordinate.element {
            0 => format!("record {}", coordinate.offset + 1),
            element => format!("line {}, element {element}", coordinate.offset + 1),
        }
    }
}

/// Limits that close a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Records.
    pub max_records: u64,
    /// Payload bytes.
    pub max_bytes: u64,
    /// Age with enough subjects.
    pub max_wait: Duration,
    /// Age of any batch.
    pub max_age: Duration,
    /// Distinct subjects for `max_wait`.
    pub min_subjects: usize,
}

/// Reason for closing a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Limit of records or bytes.
    Full,
    /// `max_wait` with enough subjects.
    Time,
    /// `max_age`, end of source or shutdown.
    FinalFlush,
    /// Replay of an unreleased batch.
    Replay,
}

/// Rows of so many lines that a quote may be unclosed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongRows {
    /// First such record, from 0.
    pub first: i64,
    /// Lines of these rows.
    pub lines: u64,
    /// Number of rows.
    pub rows: u64,
}

impl LongRows {
    /// Merges earlier and later rows.
    pub fn and(before: Option<Self>, more: Option<Self>) -> Option<Self> {
        match (before, more) {
            (Some(a), Some(b)) => Some(Self { first: a.first, lines: a.lines + b.lines, rows: a.rows + b.rows }),
            (one, other) => one.or(other),
        }
    }
}

/// Records and effects of their consumption.
#[derive(Debug)]
pub struct InputBatch {
    /// Decoded records.
    pub raw: RawBatch,
    /// Undecodable records.
    pub rejected: Vec<RejectedRecord>,
    /// Null payloads per partition, dropped with their keys.
    pub tombstones: BTreeMap<InputPartition, u64>,
    /// Records per partition that the schema does not select (`only`).
    pub unselected: BTreeMap<InputPartition, u64>,
    /// Offset range `[from, to)` per partition.
    pub ranges: OffsetRanges,
    /// Sealed contributions to series with their partition, in topic order.
    pub contributions: Vec<(InputPartition, Vec<u8>)>,
    /// Rows per partition dropped by the subject limit.
    pub thinned: BTreeMap<InputPartition, u64>,
    /// Payload bytes read.
    pub bytes: u64,
    /// Payload bytes of the batch's records.
    pub kept_bytes: u64,
    /// Reason for closing.
    pub closed: CloseReason,
    /// Rewind count; batches of older epochs are void.
    pub epoch: u64,
    /// Read time of the first record.
    pub opened: std::time::Instant,
    /// Seconds of waiting.
    pub read_seconds: f64,
    /// Seconds of decoding.
    pub decode_seconds: f64,
    /// Append time of the oldest record, ms since 1970, if known.
    pub oldest_ms: Option<i64>,
    /// Rows of suspiciously many lines.
    pub long_rows: Option<LongRows>,
}

impl InputBatch {
    /// Creates an empty batch of `width` attributes.
    pub fn new(width: usize, epoch: u64) -> Self {
        Self {
            raw: RawBatch::new(width),
            rejected: Vec::new(),
            tombstones: BTreeMap::new(),
            unselected: BTreeMap::new(),
            ranges: BTreeMap::new(),
            contributions: Vec::new(),
            thinned: BTreeMap::new(),
            bytes: 0,
            kept_bytes: 0,
            closed: CloseReason::Full,
            epoch,
            opened: std::time::Instant::now(),
            read_seconds: 0.0,
            decode_seconds: 0.0,
            oldest_ms: None,
            long_rows: None,
        }
    }

    /// Counts decoded records.
    pub fn rows(&self) -> usize {
        self.raw.rows()
    }

    /// Counts records read: decoded, rejected, thinned, and dropped.
    pub fn records(&self) -> u64 {
        self.raw.rows() as u64 + self.rejected.len() as u64 + self.dropped() + self.thinned_rows()
    }

    /// Returns true without input, including contributions.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds null payloads of a partition.
    pub fn count_tombstones(&mut self, place: InputPartition, records: u64) {
        add(&mut self.tombstones, place, records);
    }

    /// Adds records of a partition that the schema does not select.
    pub fn count_unselected(&mut self, place: InputPartition, records: u64) {
        add(&mut self.unselected, place, records);
    }

    /// Counts null payloads.
    pub fn tombstones(&self) -> u64 {
        self.tombstones.values().sum()
    }

    /// Counts null payloads and unselected records.
    pub fn dropped(&self) -> u64 {
        self.tombstones() + self.unselected.values().sum::<u64>()
    }

    /// Counts rows dropped by the subject limit.
    pub fn thinned_rows(&self) -> u64 {
        self.thinned.values().sum()
    }

    /// Counts bytes of contributions.
    pub fn contribution_bytes(&self) -> u64 {
        self.contributions.iter().map(|(_, sealed)| sealed.len() as u64).sum()
    }

    /// Returns the bytes for the batch limit. Cells may take more than their payload.
    pub fn weight(&self) -> u64 {
        self.kept_bytes.max(self.raw.arena_bytes() as u64) + self.raw.repeated_bytes()
    }

    /// Adds a record to the offset ranges.
    pub fn consume(&mut self, coordinate: RecordPosition) {
        let next = coordinate.offset + 1;
        self.ranges
            .entry((coordinate.topic, coordinate.partition))
            .and_modify(|range| range.1 = next)
            .or_insert((coordinate.offset, next));
    }

    /// Removes a partition's records, as if never consumed.
    pub fn forget_partition(&mut self, (topic, partition): InputPartition) {
        let stays = |c: RecordPosition| (c.topic, c.partition) != (topic, partition);
        self.raw.retain_rows(stays);
        self.rejected.retain(|r| stays(r.coordinate));
        self.contributions.retain(|(place, _)| *place != (topic, partition));
        self.tombstones.remove(&(topic, partition));
        self.unselected.remove(&(topic, partition));
        self.thinned.remove(&(topic, partition));
        self.ranges.remove(&(topic, partition));
    }
}

fn add(counts: &mut BTreeMap<InputPartition, u64>, place: InputPartition, records: u64) {
    if records > 0 {
        *counts.entry(place).or_default() += records;
    }
}

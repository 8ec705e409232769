//! Batch from a source: decoded, not yet typed.

use super::release_sink::RejectedRecord;
use crate::values::raw_batch::{RawBatch, RecordPosition};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Partition: the index of its topic in the source, and its number. A file is partition (0, 0).
pub type InputPartition = (u16, i32);

/// Offset range `[from, to)` per partition.
pub type OffsetRanges = BTreeMap<InputPartition, (i64, i64)>;

/// State of a source while its batches are treated.
pub trait SourceStatus: Send + Sync {
    /// Returns the number of records that are not yet read, if known.
    fn lag(&self) -> Option<u64>;
    /// Returns the position of a record as text.
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
    /// Number of records that closes a batch.
    pub max_records: u64,
    /// Payload bytes that close a batch.
    pub max_bytes: u64,
    /// Age that closes a batch with enough subjects.
    pub max_wait: Duration,
    /// Age that closes any batch.
    pub max_age: Duration,
    /// Number of distinct subjects below which `max_wait` does not close a batch.
    pub min_subjects: usize,
}

/// Reason for which a batch was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The batch reached its limit of records or bytes.
    Full,
    /// The batch waited for `max_wait` and had enough subjects.
    Time,
    /// The batch waited for `max_age`, the source has ended, or the daemon stops. Withheld records are decided with
    /// it.
    FinalFlush,
    /// The batch repeats a batch that was not released, record by record.
    Replay,
}

/// Rows that span enough lines to suggest an unclosed quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongRows {
    /// Number of the first such record, from 0.
    pub first: i64,
    /// Total number of lines in these rows.
    pub lines: u64,
    /// Number of these rows.
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

/// Records of a batch, and all effects of their consumption.
#[derive(Debug)]
pub struct InputBatch {
    /// Decoded records.
    pub raw: RawBatch,
    /// Records that could not be decoded.
    pub rejected: Vec<RejectedRecord>,
    /// Number of null payloads per partition. They are dropped with their keys.
    pub tombstones: BTreeMap<InputPartition, u64>,
    /// Offset range `[from, to)` per topic index and partition.
    pub ranges: OffsetRanges,
    /// Sealed contributions to series, in the order of their topic, each with its partition. They do not count as
    /// records.
    pub contributions: Vec<(InputPartition, Vec<u8>)>,
    /// Rows per partition that were dropped because their subject exceeded its share of the batch.
    pub thinned: BTreeMap<InputPartition, u64>,
    /// Payload bytes read.
    pub bytes: u64,
    /// Payload bytes of the records in the batch.
    pub kept_bytes: u64,
    /// Reason for which the batch was closed.
    pub closed: CloseReason,
    /// Increases when the source is rewound: batches of older epochs are void.
    pub epoch: u64,
    /// Time at which the first record was read.
    pub opened: std::time::Instant,
    /// Seconds spent waiting for records; for a file, part of the decoding.
    pub read_seconds: f64,
    /// Seconds spent decoding.
    pub decode_seconds: f64,
    /// Append time of the oldest record at the source, in milliseconds since 1970, if known.
    pub oldest_ms: Option<i64>,
    /// Rows of a file that span suspiciously many lines.
    pub long_rows: Option<LongRows>,
}

impl InputBatch {
    /// Creates an empty batch of records with `width` attributes.
    pub fn new(width: usize, epoch: u64) -> Self {
        Self {
            raw: RawBatch::new(width),
            rejected: Vec::new(),
            tombstones: BTreeMap::new(),
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

    /// Returns the number of decoded records.
    pub fn rows(&self) -> usize {
        self.raw.rows()
    }

    /// Returns the number of records read: decoded, rejected and thinned ones, and tombstones.
    pub fn records(&self) -> u64 {
        self.raw.rows() as u64 + self.rejected.len() as u64 + self.tombstones() + self.thinned_rows()
    }

    /// Returns true if nothing has been read, not even contributions.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of null payloads of all partitions.
    pub fn tombstones(&self) -> u64 {
        self.tombstones.values().sum()
    }

    /// Returns the number of rows that were dropped because their subject exceeded its share of the batch.
    pub fn thinned_rows(&self) -> u64 {
        self.thinned.values().sum()
    }

    /// Returns the bytes of the contributions to series.
    pub fn contribution_bytes(&self) -> u64 {
        self.contributions.iter().map(|(_, sealed)| sealed.len() as u64).sum()
    }

    /// Returns the bytes that count toward the limit of a batch. The cells of a record may take more bytes than its
    /// payload: headers, serialized structures, and values repeated for many elements.
    pub fn weight(&self) -> u64 {
        self.kept_bytes.max(self.raw.arena_bytes() as u64) + self.raw.repeated_bytes()
    }

    /// Adds the record at `coordinate` to the offset ranges of the batch.
    pub fn consume(&mut self, coordinate: RecordPosition) {
        let next = coordinate.offset + 1;
        self.ranges
            .entry((coordinate.topic, coordinate.partition))
            .and_modify(|range| range.1 = next)
            .or_insert((coordinate.offset, next));
    }

    /// Removes the records of one partition, as if they were never consumed.
    pub fn forget_partition(&mut self, (topic, partition): InputPartition) {
        let stays = |c: RecordPosition| (c.topic, c.partition) != (topic, partition);
        self.raw.retain_rows(stays);
        self.rejected.retain(|r| stays(r.coordinate));
        self.contributions.retain(|(place, _)| *place != (topic, partition));
        self.tombstones.remove(&(topic, partition));
        self.thinned.remove(&(topic, partition));
        self.ranges.remove(&(topic, partition));
    }
}

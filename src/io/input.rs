//! A batch as a source hands it over: decoded, not yet typed.

use crate::config::Config;
use crate::io::file::LongRows;
use crate::release::sink::Rejected;
use std::collections::BTreeMap;
use std::time::Duration;
use throng_core::values::raw::{Coordinate, RawBatch};

/// A partition: the number of its topic among those of the source, and its own. A file is partition (0, 0).
pub type Place = (u16, i32);

/// `[from, to)` by partition.
pub type Ranges = BTreeMap<Place, (i64, i64)>;

/// What a source can be asked while its batches are treated.
pub trait Origin: Send + Sync {
    /// Records behind its end, where that is known.
    fn lag(&self) -> Option<u64>;
    /// Where a record is, in words.
    fn describe(&self, coordinate: Coordinate) -> String;
}

/// A file, as an [`Origin`].
pub struct FileOrigin;

impl Origin for FileOrigin {
    fn lag(&self) -> Option<u64> {
        None
    }

    fn describe(&self, coordinate: Coordinate) -> String {
        match coordinate.element {
            0 => format!("record {}", coordinate.offset + 1),
            element => format!("line {}, element {element}", coordinate.offset + 1),
        }
    }
}

/// When a batch is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Records from which on a batch is closed.
    pub max_records: u64,
    /// Bytes of payload from which on a batch is closed.
    pub max_bytes: u64,
    /// Age from which on a batch of enough subjects is closed.
    pub max_wait: Duration,
    /// Age at which any batch is closed.
    pub max_age: Duration,
    /// Distinct subjects below which `max_wait` does not close a batch.
    pub min_subjects: usize,
}

impl Limits {
    /// As configured.
    pub fn of(config: &Config) -> Self {
        Self {
            max_records: config.batch.max_records as u64,
            max_bytes: config.batch.max_bytes,
            max_wait: config.batch.max_wait,
            max_age: config.batch.max_age,
            min_subjects: config.privacy.crowd(),
        }
    }
}

/// Why a batch was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// It reached its limit of records or bytes.
    Full,
    /// It waited for `max_wait` and had enough subjects.
    Time,
    /// It waited for `max_age`, or the source is at its end, or the daemon stops: what is held is settled with it.
    Settle,
    /// It repeats a batch that did not leave, record by record.
    Replay,
}

/// Records of a batch with everything that their consumption implies.
#[derive(Debug)]
pub struct InputBatch {
    /// The records that could be decoded.
    pub raw: RawBatch,
    /// Those that could not.
    pub rejected: Vec<Rejected>,
    /// By partition, null payloads: counted and dropped with their keys.
    pub tombstones: BTreeMap<Place, u64>,
    /// `[from, to)` by topic index and partition.
    pub ranges: Ranges,
    /// Sealed contributions to series, in the order of their topic, each with its partition. They count as no records.
    pub contributions: Vec<(Place, Vec<u8>)>,
    /// By partition, rows dropped because their subject had filled its share of the batch.
    pub thinned: BTreeMap<Place, u64>,
    /// Bytes of the payloads read.
    pub bytes: u64,
    /// Those of them whose records are in the batch.
    pub kept_bytes: u64,
    /// Why the batch was closed.
    pub closed: Closed,
    /// Rises when the source was rewound: older batches are void.
    pub epoch: u64,
    /// When the first record was read.
    pub opened: std::time::Instant,
    /// Seconds spent waiting for records; of a file, part of the decoding.
    pub read_seconds: f64,
    /// Seconds spent decoding.
    pub decode_seconds: f64,
    /// When the oldest record was appended at the source, milliseconds since 1970, where the source says so.
    pub oldest_ms: Option<i64>,
    /// Rows of a file that span suspiciously many lines.
    pub long_rows: Option<LongRows>,
}

impl InputBatch {
    /// An empty batch of records with `width` attributes.
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
            closed: Closed::Full,
            epoch,
            opened: std::time::Instant::now(),
            read_seconds: 0.0,
            decode_seconds: 0.0,
            oldest_ms: None,
            long_rows: None,
        }
    }

    /// Records that could be decoded.
    pub fn rows(&self) -> usize {
        self.raw.rows()
    }

    /// Records read: decoded, rejected and thinned ones, and tombstones.
    pub fn records(&self) -> u64 {
        self.raw.rows() as u64 + self.rejected.len() as u64 + self.tombstones() + self.thinned_rows()
    }

    /// Whether nothing has been read, not even contributions.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Null payloads of all partitions.
    pub fn tombstones(&self) -> u64 {
        self.tombstones.values().sum()
    }

    /// Rows dropped because their subject had filled its share of the batch.
    pub fn thinned_rows(&self) -> u64 {
        self.thinned.values().sum()
    }

    /// Bytes of the contributions to series.
    pub fn contribution_bytes(&self) -> u64 {
        self.contributions.iter().map(|(_, sealed)| sealed.len() as u64).sum()
    }

    /// Bytes that count toward the limit of a batch. What a record comes to in cells may be more than its bytes: headers, structures
    /// written out, what encloses many elements.
    pub fn weight(&self) -> u64 {
        self.kept_bytes.max(self.raw.arena_bytes() as u64) + self.raw.repeated_bytes()
    }

    /// Notes that the record at `coordinate` belongs to the batch.
    pub fn consume(&mut self, coordinate: Coordinate) {
        let next = coordinate.offset + 1;
        self.ranges
            .entry((coordinate.topic, coordinate.partition))
            .and_modify(|range| range.1 = next)
            .or_insert((coordinate.offset, next));
    }

    /// Takes out the records of one partition: they were never consumed.
    pub fn forget_partition(&mut self, (topic, partition): Place) {
        let stays = |c: Coordinate| (c.topic, c.partition) != (topic, partition);
        self.raw.retain_rows(stays);
        self.rejected.retain(|r| stays(r.coordinate));
        self.contributions.retain(|(place, _)| *place != (topic, partition));
        self.tombstones.remove(&(topic, partition));
        self.thinned.remove(&(topic, partition));
        self.ranges.remove(&(topic, partition));
    }
}

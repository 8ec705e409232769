//! What plans are made from: the planner's settings, and a systematic sample of the recent stream.
//!
//! Every `stride`-th record by its running number; the stride doubles while the sample would outgrow its limit, until
//! the sample spans the whole window, then the oldest rows leave. It is a function of the stream alone, so a daemon that
//! was killed and started again continues with the very same sample.

use crate::config::Config;
use throng_core::values::codebook::Code;
use throng_core::values::table::Batch;

/// Sizes of ladders.
#[derive(Clone, Copy, Debug)]
pub struct LadderLimits {
    /// Lattices up to this many nodes are used whole.
    pub complete: usize,
    /// Nodes chosen from larger ones.
    pub chosen: usize,
}

impl Default for LadderLimits {
    fn default() -> Self {
        Self { complete: 5_000, chosen: 400 }
    }
}

/// Settings of the planner.
#[derive(Clone, Copy, Debug)]
pub struct PlannerSettings {
    /// Distinct subjects that a class needs.
    pub k: usize,
    /// How many nodes a lattice and a ladder may have.
    pub ladder: LadderLimits,
    /// Distinct values over rows from which a flat attribute is an identifier (docs/methods.md §2).
    pub identifier_cardinality: f64,
    /// Records of the stream's window.
    pub window_records: usize,
    /// Rows of a batch, in which a class needs its crowd.
    pub batch_records: usize,
}

impl PlannerSettings {
    /// The settings of a configuration.
    pub fn of(config: &Config) -> Self {
        Self {
            k: config.privacy.crowd(),
            ladder: LadderLimits::default(),
            identifier_cardinality: config.tuning.identifier_cardinality,
            window_records: config.plan.window_records,
            batch_records: config.batch.max_records,
        }
    }

    /// The same for a stream of which `rows` have come in `batches`: a batch is as large as they were on average.
    #[must_use]
    pub fn for_batches(self, rows: u64, batches: u64) -> Self {
        let records = rows.checked_div(batches).and_then(|records| usize::try_from(records).ok());
        let most = self.batch_records;
        Self { batch_records: records.unwrap_or(most).clamp(1, most), ..self }
    }
}

/// The sample: codes by attribute, subjects, and the running numbers of the rows.
#[derive(Clone, Debug)]
pub struct Sample {
    limit: usize,
    max_stride: u64,
    stride: u64,
    columns: Vec<Vec<Code>>,
    subjects: Vec<u64>,
    ordinals: Vec<u64>,
}

impl Sample {
    /// An empty sample of at most `limit` rows that spans at most `window` records.
    pub fn new(width: usize, limit: usize, window: usize) -> Self {
        let limit = limit.max(1);
        Self {
            limit,
            max_stride: (window / limit).max(1) as u64,
            stride: 1,
            columns: vec![Vec::new(); width],
            subjects: Vec::new(),
            ordinals: Vec::new(),
        }
    }

    /// An empty sample as this one was when the stream had `rows` records: with the stride of that moment, which follows from
    /// their number alone.
    #[must_use]
    pub fn at(&self, rows: u64) -> Self {
        let mut then = Self::new(self.columns.len(), self.limit, self.limit);
        then.max_stride = self.max_stride;
        while rows.div_ceil(then.stride) > self.limit as u64 && then.stride * 2 <= self.max_stride {
            then.stride *= 2;
        }
        then
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ordinals.len()
    }

    /// The codes of one attribute, by row.
    pub fn column(&self, attribute: usize) -> &[Code] {
        &self.columns[attribute]
    }

    /// The same, to rename them after the codebook was compacted.
    pub fn column_mut(&mut self, attribute: usize) -> &mut [Code] {
        &mut self.columns[attribute]
    }

    /// The codes by attribute and row.
    pub fn columns(&self) -> &[Vec<Code>] {
        &self.columns
    }

    /// The subjects by row.
    pub fn subjects(&self) -> &[u64] {
        &self.subjects
    }

    /// The running number of a row among the records of the stream.
    pub fn ordinal(&self, row: usize) -> u64 {
        self.ordinals[row]
    }

    /// Every how manyth record is taken.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// Continues with a stride that was reached before (0: from the beginning).
    pub fn set_stride(&mut self, stride: u64) {
        self.stride = stride.max(1);
    }

    /// Adds the rows of `batch`, whose first record is number `first` of the stream.
    pub fn add(&mut self, batch: &Batch, first: u64) {
        for row in 0..batch.rows() {
            self.add_row(first + row as u64, batch.subjects[row], batch.columns.iter().map(|c| c[row]));
            // A batch may be much larger than the sample.
            if self.rows() > 2 * self.limit {
                self.trim();
            }
        }
        self.trim();
    }

    /// Puts back one row that had been written to the state; rows come in the order of their numbers.
    pub fn restore_row(&mut self, ordinal: u64, subject: u64, codes: impl Iterator<Item = Code>) {
        self.add_row(ordinal, subject, codes);
        self.trim();
    }

    fn add_row(&mut self, ordinal: u64, subject: u64, codes: impl Iterator<Item = Code>) {
        if !ordinal.is_multiple_of(self.stride) {
            return;
        }
        for (column, code) in self.columns.iter_mut().zip(codes) {
            column.push(code);
        }
        self.subjects.push(subject);
        self.ordinals.push(ordinal);
    }

    fn trim(&mut self) {
        while self.rows() > self.limit {
            if self.stride * 2 <= self.max_stride {
                self.stride *= 2;
                let keep: Vec<bool> = self.ordinals.iter().map(|o| o % self.stride == 0).collect();
                self.retain(&keep);
            } else {
                let excess = self.rows() - self.limit;
                for column in &mut self.columns {
                    column.drain(..excess);
                }
                self.subjects.drain(..excess);
                self.ordinals.drain(..excess);
            }
        }
    }

    fn retain(&mut self, keep: &[bool]) {
        fn kept<T>(values: &mut Vec<T>, keep: &[bool]) {
            let mut keep = keep.iter();
            values.retain(|_| *keep.next().expect("one flag a row"));
        }
        for column in &mut self.columns {
            kept(column, keep);
        }
        kept(&mut self.subjects, keep);
        kept(&mut self.ordinals, keep);
    }
}

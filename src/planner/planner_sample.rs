//! Planner settings, and a systematic sample of the recent stream.
//!
//! The sample takes every `stride`-th record. The stride doubles when the sample exceeds its limit, until it spans
//! the window; then the oldest rows are removed. It depends on the stream alone, so a restarted daemon continues with
//! the same one.

use crate::config::Config;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::Code;

/// Sizes of ladders.
#[derive(Clone, Copy, Debug)]
pub struct LadderLimits {
    /// Nodes of the largest lattice used completely.
    pub max_complete_nodes: usize,
    /// Nodes selected from larger lattices.
    pub max_selected_nodes: usize,
}

impl Default for LadderLimits {
    fn default() -> Self {
        Self { max_complete_nodes: 5_000, max_selected_nodes: 400 }
    }
}

/// Settings of the planner.
#[derive(Clone, Copy, Debug)]
pub struct PlannerSettings {
    /// Distinct subjects that a class needs.
    pub k: usize,
    /// Size limits of lattices and ladders.
    pub ladder: LadderLimits,
    /// Ratio of distinct values to rows from which a flat attribute is an identifier (docs/internals/methods.md §2).
    pub identifier_cardinality: f64,
    /// Records of the window.
    pub window_records: usize,
    /// Rows of a batch, in which a class needs enough subjects.
    pub batch_records: usize,
}

impl PlannerSettings {
    /// Reads the settings from a configuration.
    pub fn settings_from_config(config: &Config) -> Self {
        Self {
            k: config.privacy.required_subjects(),
            ladder: LadderLimits::default(),
            identifier_cardinality: config.tuning.identifier_cardinality,
            window_records: config.plan.window_records,
            batch_records: config.batch.max_records,
        }
    }

    /// Sets the batch size to the average of `batches` with `rows` in total.
    #[must_use]
    pub fn with_average_batch(self, rows: u64, batches: u64) -> Self {
        let records = rows.checked_div(batches).and_then(|records| usize::try_from(records).ok());
        let most = self.batch_records;
        Self { batch_records: records.unwrap_or(most).clamp(1, most), ..self }
    }
}

/// Sample of codes, subjects, and serial numbers.
#[derive(Clone, Debug)]
pub struct PlannerSample {
    limit: usize,
    max_stride: u64,
    stride: u64,
    columns: Vec<Vec<Code>>,
    subjects: Vec<u64>,
    ordinals: Vec<u64>,
}

impl PlannerSample {
    /// Creates a sample of at most `limit` rows over at most `window` records.
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

    /// Empty sample with the stride after `rows` records, which depends on that number alone.
    #[must_use]
    pub fn empty_at(&self, rows: u64) -> Self {
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

    /// Codes of one attribute, by row.
    pub fn column(&self, attribute: usize) -> &[Code] {
        &self.columns[attribute]
    }

    /// Codes of one attribute, for renumbering after compaction.
    pub fn column_mut(&mut self, attribute: usize) -> &mut [Code] {
        &mut self.columns[attribute]
    }

    /// Codes by attribute and row.
    pub fn columns(&self) -> &[Vec<Code>] {
        &self.columns
    }

    /// Subjects by row.
    pub fn subjects(&self) -> &[u64] {
        &self.subjects
    }

    /// Serial number of a row in the stream.
    pub fn ordinal(&self, row: usize) -> u64 {
        self.ordinals[row]
    }

    /// Distance between sampled records.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// Continues with a stride from an earlier run (0: from the beginning).
    pub fn set_stride(&mut self, stride: u64) {
        self.stride = stride.max(1);
    }

    /// Adds the rows of `batch`, numbered from `first`.
    pub fn add(&mut self, batch: &CodeBatch, first: u64) {
        for row in 0..batch.rows() {
            self.add_row(first + row as u64, batch.subjects[row], batch.columns.iter().map(|c| c[row]));
            // A batch may be much larger than the sample.
            if self.rows() > 2 * self.limit {
                self.trim();
            }
        }
        self.trim();
    }

    /// Restores one row; rows must be in serial order.
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

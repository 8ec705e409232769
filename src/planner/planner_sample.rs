//! Planner settings, and a systematic sample of the recent stream. The stride doubles until the sample spans the
//! window, and depends on the stream alone.

use crate::config::Config;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::Code;

/// Ladder sizes.
#[derive(Clone, Copy, Debug)]
pub struct LadderLimits {
    /// Largest lattice used completely, in nodes.
    pub max_complete_nodes: usize,
    /// Nodes selected from larger lattices.
    pub max_selected_nodes: usize,
}

impl Default for LadderLimits {
    fn default() -> Self {
        Self { max_complete_nodes: 5_000, max_selected_nodes: 400 }
    }
}

/// Planner settings.
#[derive(Clone, Copy, Debug)]
pub struct PlannerSettings {
    /// Distinct subjects of a class.
    pub k: usize,
    /// Ladder sizes.
    pub ladder: LadderLimits,
    /// Minimum distinct values over rows of a flat identifier (docs/internals/methods.md §2).
    pub identifier_cardinality: f64,
    /// Window records.
    pub window_records: usize,
    /// Batch rows.
    pub batch_records: usize,
}

impl PlannerSettings {
    /// Reads the configured settings.
    pub fn settings_from_config(config: &Config) -> Self {
        Self {
            k: config.privacy.required_subjects(),
            ladder: LadderLimits::default(),
            identifier_cardinality: config.tuning.identifier_cardinality,
            window_records: config.plan.window_records,
            batch_records: config.batch.max_records,
        }
    }

    /// Sets the average batch size.
    #[must_use]
    pub fn with_average_batch(self, rows: u64, batches: u64) -> Self {
        let records = rows.checked_div(batches).and_then(|records| usize::try_from(records).ok());
        let most = self.batch_records;
        Self { batch_records: records.unwrap_or(most).clamp(1, most), ..self }
    }
}

/// Sample of codes, subjects and serial numbers.
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
    /// Creates a sample of at most `limit` rows over `window` records.
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

    /// Returns an empty sample after `rows` records.
    #[must_use]
    pub fn empty_at(&self, rows: u64) -> Self {
        let mut then = Self::new(self.columns.len(), self.limit, self.limit);
        then.max_stride = self.max_stride;
        while rows.div_ceil(then.stride) > self.limit as u64 && then.stride * 2 <= self.max_stride {
            then.stride *= 2;
        }
        then
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.ordinals.len()
    }

    /// Returns an attribute's codes by row.
    pub fn column(&self, attribute: usize) -> &[Code] {
        &self.columns[attribute]
    }

    /// Returns an attribute's codes for renumbering.
    pub fn column_mut(&mut self, attribute: usize) -> &mut [Code] {
        &mut self.columns[attribute]
    }

    /// Returns codes by attribute and row.
    pub fn columns(&self) -> &[Vec<Code>] {
        &self.columns
    }

    /// Returns subjects by row.
    pub fn subjects(&self) -> &[u64] {
        &self.subjects
    }

    /// Returns a row's serial number.
    pub fn ordinal(&self, row: usize) -> u64 {
        self.ordinals[row]
    }

    /// Returns the distance between sampled records.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// Restores a stride (0: initial).
    pub fn set_stride(&mut self, stride: u64) {
        self.stride = stride.max(1);
    }

    /// Adds a `batch`, numbered from `first`.
    pub fn add(&mut self, batch: &CodeBatch, first: u64) {
        for row in 0..batch.rows() {
            self.add_row(first + row as u64, batch.subjects[row], batch.columns.iter().map(|c| c[row]));
            // A batch may far exceed the sample.
            if self.rows() > 2 * self.limit {
                self.trim();
            }
        }
        self.trim();
    }

    /// Restores a row, in serial order.
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

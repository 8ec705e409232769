//! Window of records, and the adjacency of their values (docs/internals/model.md).
//!
//! Pairs are counted concurrently with the next batch; readers call [`wait_for_pairs`](StreamModel::wait_for_pairs)
//! first.

use crate::daemon::state::records::StreamProgress;
use crate::daemon::state::rows::RowBlock;
use crate::planner::drift::{DriftBaseline, DriftDetector};
use crossbeam_channel::{Receiver, bounded};
use marginals::ValueMarginals;
use rayon::ThreadPool;
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::{ABSENT, Code, Codebook, mark_used, remap};
use throng_core::values::record_window::RecordWindow;
use throng_risk::adjacency::{Adjacency, AdjacencyError, AdjacencyLimits};
use throng_risk::multigrid::{CoarseAdjacency, CoarseError, MergePolicy};
use weight::{EvictedRecords, WindowWeight};

mod marginals;
mod weight;

/// Model settings.
#[derive(Clone, Copy, Debug)]
pub struct ModelSettings {
    /// Maximum records.
    pub window_records: usize,
    /// Maximum edges.
    pub max_edges: u64,
    /// Maximum dictionary bytes of distinct values; `None`: unlimited.
    pub value_bytes: Option<u64>,
}

/// Model size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelSize {
    /// Values in the window, over all attributes.
    pub nodes: u64,
    /// Counted pairs of values.
    pub edges: u64,
    /// Memory of the adjacency.
    pub bytes: usize,
    /// Attribute pairs without room for their edges.
    pub left_out_pairs: usize,
    /// Attributes derived from another one.
    pub derived: usize,
}

/// Window and adjacency of a stream.
pub struct StreamModel {
    /// Stored attributes, ascending.
    kept: Vec<usize>,
    /// Counted attributes: the same, or none after errors.
    attributes: Vec<usize>,
    window: RecordWindow,
    marginals: ValueMarginals,
    weight: Option<WindowWeight>,
    adjacency: AdjacencyCounts,
    /// `None` if the system has no threads.
    pool: Option<rayon::ThreadPool>,
    is_before_stream: bool,
    /// Records known at the start of the process.
    resumed: u64,
    rows: u64,
    watch: DriftDetector,
}

impl StreamModel {
    /// Creates a model continued from `past`, with an empty window.
    ///
    /// # Errors
    /// When the attributes or limits are invalid.
    pub fn new(
        width: usize,
        attributes: Vec<usize>,
        settings: ModelSettings,
        past: &StreamProgress,
    ) -> Result<Self, AdjacencyError> {
        let limits = AdjacencyLimits { max_edges: settings.max_edges };
        Ok(Self {
            window: RecordWindow::new(width, settings.window_records),
            weight: settings.value_bytes.map(|most| WindowWeight::new(attributes.len(), most)),
            marginals: ValueMarginals::new(attributes.len()),
            adjacency: AdjacencyCounts::CountsReady(CoarseAdjacency::resume(
                &attributes,
                limits,
                &past.derived,
                &past.left_out,
            )?),
            pool: pool(),
            kept: attributes.clone(),
            attributes,
            is_before_stream: past.rows == 0,
            resumed: past.rows,
            rows: past.rows,
            watch: DriftDetector::default(),
        })
    }

    /// Returns the stored attributes, ascending.
    pub fn stored_attributes(&self) -> &[usize] {
        &self.kept
    }

    /// Returns the counted attributes, ascending.
    pub fn attributes(&self) -> &[usize] {
        &self.attributes
    }

    /// Returns the last records, at most `plan.window_records`.
    pub fn window(&self) -> &RecordWindow {
        &self.window
    }

    /// Returns the adjacency.
    ///
    /// # Panics
    /// Without [`wait_for_pairs`](Self::wait_for_pairs) since the last batch.
    pub fn adjacency(&self) -> &CoarseAdjacency {
        match &self.adjacency {
            AdjacencyCounts::CountsReady(adjacency) => adjacency,
            AdjacencyCounts::InBackground(_) => unreachable!("the count of pairs is not complete"),
        }
    }

    fn adjacency_mut(&mut self) -> &mut CoarseAdjacency {
        match &mut self.adjacency {
            AdjacencyCounts::CountsReady(adjacency) => adjacency,
            AdjacencyCounts::InBackground(_) => unreachable!("the count of pairs is not complete"),
        }
    }

    /// Waits until pairs are counted.
    ///
    /// # Errors
    /// When the adjacency is full or contradicts the window; [`rebuild`](Self::rebuild) it.
    pub fn wait_for_pairs(&mut self) -> Result<(), CoarseError> {
        self.adjacency.wait_for_counts()
    }

    /// Returns edges between counted attributes.
    pub fn counted(&self) -> &Adjacency {
        self.adjacency().counted()
    }

    /// Returns uncounted attributes, each with its determining one.
    pub fn derived(&self) -> Vec<(usize, usize)> {
        self.adjacency().derived().collect()
    }

    /// Returns the model size.
    ///
    /// # Panics
    /// As [`adjacency`](Self::adjacency).
    pub fn size(&self) -> ModelSize {
        ModelSize {
            nodes: self.adjacency().node_count(),
            edges: self.counted().edge_count(),
            bytes: self.adjacency().bytes(),
            left_out_pairs: self.adjacency().unknown_pair_count(),
            derived: self.adjacency().derived().count(),
        }
    }

    /// Counts stored rows that are still in the window; `None` for other attributes.
    pub fn restore(&mut self, block: &RowBlock, books: &mut [Codebook]) -> Option<()> {
        let mut batch = block.unpack(&self.attributes, books)?;
        let first = (block.last + 1).checked_sub(batch.rows() as u64)?;
        // Older rows could contradict derived attributes.
        let oldest = self.resumed.saturating_sub(self.window.capacity() as u64);
        let gone = oldest.saturating_sub(first).min(batch.rows() as u64);
        if gone > 0 {
            batch.retain_rows(&(first..=block.last).map(|row| row >= first + gone).collect::<Vec<_>>());
        }
        self.rows = first + gone;
        self.learn(&batch, books).ok()
    }

    /// Searches the first batch for identical attributes.
    pub fn observe_first_batch(&mut self, batch: &CodeBatch) {
        if !self.is_before_stream || self.window.rows() > 0 || batch.rows() == 0 {
            return;
        }
        let skip = batch.rows().saturating_sub(self.window.capacity());
        let newest: Vec<&[Code]> = batch.columns.iter().map(|column| &column[skip..]).collect();
        // A retry may have other records.
        let began = CoarseAdjacency::new(&self.attributes, self.counted().limits())
            .map_err(CoarseError::from)
            .and_then(|mut empty| empty.coarsen(&newest, MergePolicy::Identical).map(|_| empty));
        match began {
            Ok(coarse) => self.adjacency = AdjacencyCounts::CountsReady(coarse),
            Err(error) => {
                tracing::warn!(%error, "search for identical attributes failed: the planner's model counts every attribute");
            }
        }
    }

    /// Searches a full window for identical attributes, unless pairs are omitted.
    pub fn coarsen(&mut self) {
        let full = self.window.rows() == self.window.capacity();
        if !full || self.attributes.is_empty() || self.adjacency().unknown_pair_count() > 0 {
            return;
        }
        let window = self.window.columns(0, self.window.rows());
        if let Err(error) = self.adjacency_mut().coarsen(&window, MergePolicy::Identical) {
            tracing::warn!(%error, "search for identical attributes failed: the planner's model is unchanged");
        }
    }

    /// Counts a batch and subtracts dropped records; pairs in the background.
    ///
    /// # Errors
    /// As [`wait_for_pairs`](Self::wait_for_pairs), for the previous batch; this one is then not counted.
    pub fn learn(&mut self, batch: &CodeBatch, books: &[Codebook]) -> Result<(), CoarseError> {
        if batch.rows() == 0 {
            return Ok(());
        }
        self.wait_for_pairs()?;
        self.is_before_stream = false;
        let EvictedRecords { of_window, of_batch: skip } = self.make_room(batch, books);
        let leaving = self.window.columns(0, of_window);
        let entering: Vec<Vec<Code>> = batch.columns.iter().map(|column| column[skip..].to_vec()).collect();
        self.marginals.subtract(self.attributes.iter().map(|&a| &leaving[a][..]));
        self.marginals.add(self.attributes.iter().map(|&a| &entering[a][..]));
        self.append_to_window(batch, of_window, skip);
        self.rows += batch.rows() as u64;
        self.adjacency.start_counting(WindowChange { leaving, entering }, self.pool.as_ref())
    }

    fn make_room(&mut self, batch: &CodeBatch, books: &[Codebook]) -> EvictedRecords {
        let capacity = self.window.capacity();
        match &mut self.weight {
            Some(weight) => weight.make_room_for(&self.window, batch, &self.kept, books, capacity),
            None => {
                let of_batch = batch.rows().saturating_sub(capacity);
                let of_window = (self.window.rows() + batch.rows() - of_batch).saturating_sub(capacity);
                EvictedRecords { of_window, of_batch }
            }
        }
    }

    /// Adds `batch` without its first `skip` records, after dropping the oldest `leaving`.
    fn append_to_window(&mut self, batch: &CodeBatch, leaving: usize, skip: usize) {
        if self.weight.is_none() {
            self.window.push(batch);
            return;
        }
        let mut newest = batch.clone();
        if skip > 0 {
            newest.retain_rows(&(0..batch.rows()).map(|row| row >= skip).collect::<Vec<_>>());
        }
        // Unweighed values must not stay in use.
        for (attribute, column) in newest.columns.iter_mut().enumerate() {
            if self.kept.binary_search(&attribute).is_err() {
                column.fill(ABSENT);
            }
        }
        if leaving > (self.window.rows() + newest.rows()).saturating_sub(self.window.capacity()) {
            self.window.evict_oldest(leaving);
        }
        self.window.push(&newest);
    }

    /// Counts the window again.
    ///
    /// # Errors
    /// When its adjacency is too large.
    pub fn rebuild(&mut self) -> Result<(), CoarseError> {
        if let Err(error) = self.wait_for_pairs() {
            tracing::debug!(%error, "discarding the pending counts of the planner's model");
        }
        let (limits, left_out) = (self.counted().limits(), self.counted().left_out_pairs());
        let mut adjacency = CoarseAdjacency::resume(&self.attributes, limits, &[], &left_out)?;
        adjacency.add(&self.window.columns(0, self.window.rows()))?;
        self.marginals = ValueMarginals::of(adjacency.counted());
        self.adjacency = AdjacencyCounts::CountsReady(adjacency);
        Ok(())
    }

    /// Stops counting permanently.
    pub fn stop(&mut self) {
        if let Err(error) = self.wait_for_pairs() {
            tracing::debug!(%error, "discarding the pending counts of the planner's model");
        }
        self.attributes.clear();
        self.marginals = ValueMarginals::default();
        let none = CoarseAdjacency::new(&[], self.counted().limits()).expect("no attribute is out of order");
        self.adjacency = AdjacencyCounts::CountsReady(none);
    }

    /// Marks codes still in use.
    pub fn mark_used(&self, attribute: usize, used: &mut [bool]) {
        mark_used(self.window.codes(attribute), used);
        let Ok(place) = self.attributes.binary_search(&attribute) else { return };
        for (code, used) in used.iter_mut().enumerate() {
            *used |= self.marginals.n(place, code as Code) > 0;
        }
    }

    /// Replaces codes after a compaction; `map` is old → new.
    ///
    /// # Errors
    /// When a counted code is missing from `map`.
    pub fn remap(&mut self, attribute: usize, map: &[Code]) -> Result<(), CoarseError> {
        remap(self.window.codes_mut(attribute), map);
        if let (Some(weight), Ok(place)) = (&mut self.weight, self.kept.binary_search(&attribute)) {
            weight.remap(place, map);
        }
        let Ok(place) = self.attributes.binary_search(&attribute) else { return Ok(()) };
        self.marginals.remap(place, map);
        self.wait_for_pairs()?;
        self.adjacency_mut().remap(attribute, map)
    }

    /// Returns the baseline of a new plan.
    pub fn baseline(&self, books: &[Codebook], threshold: f64) -> DriftBaseline {
        self.baseline_of(&self.attributes, books, threshold)
    }

    /// Returns whether an attribute unstable under `baseline` is now stable.
    pub fn any_stabilized_since(&self, baseline: &DriftBaseline, books: &[Codebook], threshold: f64) -> bool {
        self.baseline_of(baseline.unsteady_attributes(), books, threshold).watched_attributes().next().is_some()
    }

    fn baseline_of(&self, attributes: &[usize], books: &[Codebook], threshold: f64) -> DriftBaseline {
        let half = self.window.rows() / 2;
        let mut baseline = DriftBaseline::default();
        for &attribute in attributes {
            let count = |rows: &mut dyn Iterator<Item = Code>| {
                let mut counts = vec![0_u64; books[attribute].codes()];
                rows.for_each(|code| counts[code as usize] += 1);
                counts
            };
            let older = count(&mut self.window.codes(attribute).take(half));
            let newer = count(&mut self.window.codes(attribute).skip(half));
            baseline.add_if_steady(attribute, &older, &newer, &books[attribute], threshold);
        }
        baseline
    }

    /// Measures drift from `baseline`. Call it again after a compaction.
    pub fn watch(&mut self, baseline: &DriftBaseline, books: &[Codebook]) {
        self.watch = baseline.resolve(books);
    }

    /// Returns the attribute with the greatest divergence, in bits.
    pub fn drift(&self) -> Option<(usize, f64)> {
        let place = |attribute: usize| self.attributes.binary_search(&attribute).unwrap_or(usize::MAX);
        let n = |attribute, code| self.marginals.n(place(attribute), code);
        self.watch.farthest(n, |_| self.marginals.records())
    }
}

fn pool() -> Option<rayon::ThreadPool> {
    let threads = std::thread::available_parallelism().map_or(1, |all| all.get() / 2).max(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|_| "model".to_owned()).build();
    pool.map_err(
        |error| tracing::warn!(%error, "cannot start the threads of the planner's model: counting between batches"),
    )
    .ok()
}

struct WindowChange {
    pub leaving: Vec<Vec<Code>>,
    pub entering: Vec<Vec<Code>>,
}

impl WindowChange {
    fn apply(&self, adjacency: &mut CoarseAdjacency) -> Result<(), CoarseError> {
        adjacency.subtract(&self.leaving).and(adjacency.add(&self.entering).map(drop))
    }
}

enum AdjacencyCounts {
    CountsReady(CoarseAdjacency),
    InBackground(Receiver<(CoarseAdjacency, Result<(), CoarseError>)>),
}

impl AdjacencyCounts {
    /// Starts counting `change` after the previous one, on this thread without a pool.
    ///
    /// # Errors
    /// Those of the previous change; `change` is then not counted.
    pub fn start_counting(&mut self, change: WindowChange, pool: Option<&ThreadPool>) -> Result<(), CoarseError> {
        self.wait_for_counts()?;
        let (give, take) = bounded(1);
        let Self::CountsReady(mut adjacency) = std::mem::replace(self, Self::InBackground(take)) else {
            unreachable!("the counts are ready")
        };
        let count = move || {
            let counted = change.apply(&mut adjacency);
            if give.send((adjacency, counted)).is_err() {
                tracing::debug!("discarding counts: the planner's model was dropped");
            }
        };
        match pool {
            Some(pool) => pool.spawn(count),
            None => count(),
        }
        Ok(())
    }

    /// Waits for a pending change.
    ///
    /// # Errors
    /// When counting failed; the counts are then invalid.
    pub fn wait_for_counts(&mut self) -> Result<(), CoarseError> {
        let Self::InBackground(answer) = self else { return Ok(()) };
        let (adjacency, counted) = answer.recv().expect("counting does not panic");
        *self = Self::CountsReady(adjacency);
        counted
    }
}

#[cfg(test)]
mod tests;

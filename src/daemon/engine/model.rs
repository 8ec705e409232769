//! What the daemon knows of the stream: the window of its last records, and the adjacency of their values.
//!
//! Both are functions of the stream alone. The rows of the window are in the state, so a start counts them again and has
//! the very same model: counting is about as fast as reading counts back (docs/model.md), and what has to be subtracted
//! when it leaves the window has to be kept anyway.
//!
//! Of attributes that are identical but for their names for values one is counted and the
//! others are known from it (docs/model-multigrid.md). Which these are follows from the stream: from its first batch, from
//! the records that say otherwise, and from the full window when a plan is made. So it is part of the progress, as the
//! pairs left out are.
//!
//! The window and the counts of single values change with each batch at once. The pairs, which are most of the work, are
//! counted beside the batch that follows; who reads them [settles](Model::settle) them first.

use crate::anonymity::planner::drift::{Baseline, Watch};
use crate::daemon::state::records::Progress;
use crate::daemon::state::rows::RowBlock;
use crossbeam_channel::{Receiver, bounded};
use marginals::Marginals;
use rayon::ThreadPool;
use throng_core::values::codebook::{ABSENT, Code, Codebook, mark_used, remap};
use throng_core::values::table::Batch;
use throng_core::values::window::Window;
use throng_risk::adjacency::{Adjacency, AdjacencyError, Limits};
use throng_risk::multigrid::{CoarseAdjacency, CoarseError, Merging};
use weight::{Leaving, Weight};

mod marginals;
mod weight;

/// Settings of the model.
#[derive(Clone, Copy, Debug)]
pub struct ModelSettings {
    /// Records of the window.
    pub window_records: usize,
    /// Edges of the adjacency, at most.
    pub max_edges: u64,
    /// Bytes that the different values of the window may weigh in the dictionaries; `None`: only its records are limited.
    pub value_bytes: Option<u64>,
}

/// How large the model is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelSize {
    /// Values that some record of the window holds, over all attributes.
    pub nodes: u64,
    /// Pairs of values that are counted.
    pub edges: u64,
    /// Memory that the adjacency holds.
    pub bytes: usize,
    /// Pairs of attributes of which nothing is known, since their edges found no room.
    pub left_out_pairs: usize,
    /// Attributes that are not counted, since another one determines them.
    pub derived: usize,
}

/// The model.
pub struct Model {
    /// Attributes whose rows the state keeps, ascending: all that leave treated.
    kept: Vec<usize>,
    /// Those that are counted: the same, or none any more.
    attributes: Vec<usize>,
    window: Window,
    marginals: Marginals,
    weight: Option<Weight>,
    adjacency: Counting,
    /// Threads that count pairs; `None` where the system has none to give.
    pool: Option<rayon::ThreadPool>,
    /// The stream has not begun.
    begins: bool,
    /// Records of the stream that the state knew of when this process started.
    resumed: u64,
    /// Records counted so far, over the whole stream.
    rows: u64,
    watch: Watch,
}

impl Model {
    /// A model of the attributes of `width` columns that goes on from `past`, before the rows of its window are counted.
    ///
    /// # Errors
    /// When the attributes or the limits are none of an adjacency.
    pub fn new(
        width: usize,
        attributes: Vec<usize>,
        settings: ModelSettings,
        past: &Progress,
    ) -> Result<Self, AdjacencyError> {
        let limits = Limits { max_edges: settings.max_edges };
        Ok(Self {
            window: Window::new(width, settings.window_records),
            weight: settings.value_bytes.map(|most| Weight::new(attributes.len(), most)),
            marginals: Marginals::new(attributes.len()),
            adjacency: Counting::Settled(CoarseAdjacency::resume(&attributes, limits, &past.derived, &past.left_out)?),
            pool: pool(),
            kept: attributes.clone(),
            attributes,
            begins: past.rows == 0,
            resumed: past.rows,
            rows: past.rows,
            watch: Watch::default(),
        })
    }

    /// The attributes whose rows the state keeps, ascending, whether or not they are still counted.
    pub fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// The attributes that are counted, ascending.
    pub fn attributes(&self) -> &[usize] {
        &self.attributes
    }

    /// The last records of the stream, `plan.window_records` at most, those of the last batch included.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The adjacency, counted between some attributes and known between all.
    ///
    /// # Panics
    /// When it was not [settled](Self::settle) since a batch was learnt.
    pub fn adjacency(&self) -> &CoarseAdjacency {
        match &self.adjacency {
            Counting::Settled(adjacency) => adjacency,
            Counting::Under(_) => unreachable!("pairs are read when they are settled"),
        }
    }

    fn adjacency_mut(&mut self) -> &mut CoarseAdjacency {
        match &mut self.adjacency {
            Counting::Settled(adjacency) => adjacency,
            Counting::Under(_) => unreachable!("pairs are changed when they are settled"),
        }
    }

    /// Waits until all pairs are counted.
    ///
    /// # Errors
    /// When the adjacency is full or contradicts the window; the model is to be [rebuilt](Self::rebuild) then.
    pub fn settle(&mut self) -> Result<(), CoarseError> {
        self.adjacency.settle()
    }

    /// The edges between the attributes that are counted.
    pub fn counted(&self) -> &Adjacency {
        self.adjacency().counted()
    }

    /// Attributes that are not counted, each with the one that determines it.
    pub fn derived(&self) -> Vec<(usize, usize)> {
        self.adjacency().derived().collect()
    }

    /// How large the model is.
    ///
    /// # Panics
    /// As [`adjacency`](Self::adjacency).
    pub fn size(&self) -> ModelSize {
        ModelSize {
            nodes: self.adjacency().node_count(),
            edges: self.counted().edge_count(),
            bytes: self.adjacency().bytes(),
            left_out_pairs: self.adjacency().left_out(),
            derived: self.adjacency().derived().count(),
        }
    }

    /// Counts the rows of a block of the state that are still in the window. `None` where they are not rows of these attributes.
    pub fn restore(&mut self, block: &RowBlock, books: &mut [Codebook]) -> Option<()> {
        let mut batch = block.unpack(&self.attributes, books)?;
        let first = (block.last + 1).checked_sub(batch.rows() as u64)?;
        // What has left the window already may contradict what was found out about the rest.
        let oldest = self.resumed.saturating_sub(self.window.capacity() as u64);
        let gone = oldest.saturating_sub(first).min(batch.rows() as u64);
        if gone > 0 {
            batch.retain_rows(&(first..=block.last).map(|row| row >= first + gone).collect::<Vec<_>>());
        }
        self.rows = first + gone;
        self.learn(&batch, books).ok()
    }

    /// Looks at the first batch of a stream, before it is counted, for attributes that are identical: with twice the
    /// attributes there are four times the pairs, and what is never counted is never left out. Before any other batch nothing happens.
    pub fn begin(&mut self, batch: &Batch) {
        if !self.begins || self.window.rows() > 0 || batch.rows() == 0 {
            return;
        }
        let skip = batch.rows().saturating_sub(self.window.capacity());
        let newest: Vec<&[Code]> = batch.columns.iter().map(|column| &column[skip..]).collect();
        // A batch that was aborted may come again with other records.
        let began = CoarseAdjacency::new(&self.attributes, self.counted().limits())
            .map_err(CoarseError::from)
            .and_then(|mut empty| empty.coarsen(&newest, Merging::Identical).map(|_| empty));
        match began {
            Ok(coarse) => self.adjacency = Counting::Settled(coarse),
            Err(error) => tracing::warn!(%error, "the model begins with every attribute counted"),
        }
    }

    /// Looks at the window, once it is full, for attributes that are identical, and counts one of them. Where pairs are
    /// left out nothing is done: a pair that is known is not given up for one that is not.
    pub fn coarsen(&mut self) {
        let full = self.window.rows() == self.window.capacity();
        if !full || self.attributes.is_empty() || self.adjacency().left_out() > 0 {
            return;
        }
        let window = self.window.columns(0, self.window.rows());
        if let Err(error) = self.adjacency_mut().coarsen(&window, Merging::Identical) {
            tracing::warn!(%error, "the model goes on with what it counts");
        }
    }

    /// Counts a batch, whose codes are of `books`; what leaves the window for it is taken back. The pairs are counted beside what
    /// follows.
    ///
    /// # Errors
    /// As [`settle`](Self::settle), of the batch before; of this one nothing is counted then.
    pub fn learn(&mut self, batch: &Batch, books: &[Codebook]) -> Result<(), CoarseError> {
        if batch.rows() == 0 {
            return Ok(());
        }
        self.settle()?;
        self.begins = false;
        let Leaving { of_window, of_batch: skip } = self.make_room(batch, books);
        let leaving = self.window.columns(0, of_window);
        let entering: Vec<Vec<Code>> = batch.columns.iter().map(|column| column[skip..].to_vec()).collect();
        self.marginals.subtract(self.attributes.iter().map(|&a| &leaving[a][..]));
        self.marginals.add(self.attributes.iter().map(|&a| &entering[a][..]));
        self.enter(batch, of_window, skip);
        self.rows += batch.rows() as u64;
        self.adjacency.begin(Change { leaving, entering }, self.pool.as_ref())
    }

    /// Which records leave for those of `batch`.
    fn make_room(&mut self, batch: &Batch, books: &[Codebook]) -> Leaving {
        let capacity = self.window.capacity();
        match &mut self.weight {
            Some(weight) => weight.admit(&self.window, batch, &self.kept, books, capacity),
            None => {
                let of_batch = batch.rows().saturating_sub(capacity);
                let of_window = (self.window.rows() + batch.rows() - of_batch).saturating_sub(capacity);
                Leaving { of_window, of_batch }
            }
        }
    }

    /// Puts the records of `batch` into the window, but for the first `skip`, after the oldest `leaving` have gone.
    fn enter(&mut self, batch: &Batch, leaving: usize, skip: usize) {
        if self.weight.is_none() {
            self.window.push(batch);
            return;
        }
        let mut newest = batch.clone();
        if skip > 0 {
            newest.retain_rows(&(0..batch.rows()).map(|row| row >= skip).collect::<Vec<_>>());
        }
        // What is not weighed keeps no value alive: nobody asks the window for it.
        for (attribute, column) in newest.columns.iter_mut().enumerate() {
            if self.kept.binary_search(&attribute).is_err() {
                column.fill(ABSENT);
            }
        }
        // A full window makes room by itself.
        if leaving > (self.window.rows() + newest.rows()).saturating_sub(self.window.capacity()) {
            self.window.forget(leaving);
        }
        self.window.push(&newest);
    }

    /// Counts the window again.
    ///
    /// # Errors
    /// When the adjacency of the window is too large.
    pub fn rebuild(&mut self) -> Result<(), CoarseError> {
        if let Err(error) = self.settle() {
            tracing::debug!(%error, "these counts are given up");
        }
        let (limits, left_out) = (self.counted().limits(), self.counted().left_out_pairs());
        let mut adjacency = CoarseAdjacency::resume(&self.attributes, limits, &[], &left_out)?;
        adjacency.add(&self.window.columns(0, self.window.rows()))?;
        self.marginals = Marginals::of(adjacency.counted());
        self.adjacency = Counting::Settled(adjacency);
        Ok(())
    }

    /// Counts nothing any more.
    pub fn stop(&mut self) {
        if let Err(error) = self.settle() {
            tracing::debug!(%error, "these counts are given up");
        }
        self.attributes.clear();
        self.marginals = Marginals::default();
        let none = CoarseAdjacency::new(&[], self.counted().limits()).expect("no attribute is out of order");
        self.adjacency = Counting::Settled(none);
    }

    /// Marks the codes that a row of the window, or what is left of an older one, holds.
    pub fn mark_used(&self, attribute: usize, used: &mut [bool]) {
        mark_used(self.window.codes(attribute), used);
        let Ok(place) = self.attributes.binary_search(&attribute) else { return };
        for (code, used) in used.iter_mut().enumerate() {
            *used |= self.marginals.n(place, code as Code) > 0;
        }
    }

    /// Replaces the codes of an attribute after its codebook was compacted; `map` is old → new.
    ///
    /// # Errors
    /// When a code that is still counted is not in `map`.
    pub fn remap(&mut self, attribute: usize, map: &[Code]) -> Result<(), CoarseError> {
        remap(self.window.codes_mut(attribute), map);
        if let (Some(weight), Ok(place)) = (&mut self.weight, self.kept.binary_search(&attribute)) {
            weight.remap(place, map);
        }
        let Ok(place) = self.attributes.binary_search(&attribute) else { return Ok(()) };
        self.marginals.remap(place, map);
        self.settle()?;
        self.adjacency_mut().remap(attribute, map)
    }

    /// What the window looks like now, for the plan that is made now.
    pub fn baseline(&self, books: &[Codebook], threshold: f64) -> Baseline {
        self.baseline_of(&self.attributes, books, threshold)
    }

    /// Whether an attribute that was changing when the plan of `baseline` was made has come to rest since.
    pub fn has_settled(&self, baseline: &Baseline, books: &[Codebook], threshold: f64) -> bool {
        self.baseline_of(baseline.unsteady(), books, threshold).watched().next().is_some()
    }

    fn baseline_of(&self, attributes: &[usize], books: &[Codebook], threshold: f64) -> Baseline {
        let half = self.window.rows() / 2;
        let mut baseline = Baseline::default();
        for &attribute in attributes {
            let count = |rows: &mut dyn Iterator<Item = Code>| {
                let mut counts = vec![0_u64; books[attribute].codes()];
                rows.for_each(|code| counts[code as usize] += 1);
                counts
            };
            let older = count(&mut self.window.codes(attribute).take(half));
            let newer = count(&mut self.window.codes(attribute).skip(half));
            baseline.watch(attribute, &older, &newer, &books[attribute], threshold);
        }
        baseline
    }

    /// Watches the distance of the stream from `baseline`. To be called again after a codebook was compacted.
    pub fn watch(&mut self, baseline: &Baseline, books: &[Codebook]) {
        self.watch = baseline.resolve(books);
    }

    /// The attribute whose values are distributed most differently from the baseline, and the divergence in bits.
    pub fn drift(&self) -> Option<(usize, f64)> {
        let place = |attribute: usize| self.attributes.binary_search(&attribute).unwrap_or(usize::MAX);
        let n = |attribute, code| self.marginals.n(place(attribute), code);
        self.watch.farthest(n, |_| self.marginals.records())
    }
}

/// As many threads for the pairs as leave half of the machine to the release, at least one.
fn pool() -> Option<rayon::ThreadPool> {
    let threads = std::thread::available_parallelism().map_or(1, |all| all.get() / 2).max(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|_| "model".to_owned()).build();
    pool.map_err(|error| tracing::warn!(%error, "the model has no threads and is counted between the batches")).ok()
}

/// What a batch changes of the counts, in this order.
struct Change {
    /// Records that leave the window.
    pub leaving: Vec<Vec<Code>>,
    /// Records that enter it.
    pub entering: Vec<Vec<Code>>,
}

impl Change {
    fn apply(&self, adjacency: &mut CoarseAdjacency) -> Result<(), CoarseError> {
        adjacency.subtract(&self.leaving).and(adjacency.add(&self.entering).map(drop))
    }
}

/// An adjacency whose counts may be on their way.
enum Counting {
    Settled(CoarseAdjacency),
    Under(Receiver<(CoarseAdjacency, Result<(), CoarseError>)>),
}

impl Counting {
    /// Begins to count `change`, on this thread where there is no pool. What was under way is settled before.
    ///
    /// # Errors
    /// Those of what was under way; `change` is not counted then.
    pub fn begin(&mut self, change: Change, pool: Option<&ThreadPool>) -> Result<(), CoarseError> {
        self.settle()?;
        let (give, take) = bounded(1);
        let Self::Settled(mut adjacency) = std::mem::replace(self, Self::Under(take)) else {
            unreachable!("just settled")
        };
        let count = move || {
            let counted = change.apply(&mut adjacency);
            if give.send((adjacency, counted)).is_err() {
                tracing::debug!("the model was given up while it was counted");
            }
        };
        match pool {
            Some(pool) => pool.spawn(count),
            None => count(),
        }
        Ok(())
    }

    /// Waits for what is under way.
    ///
    /// # Errors
    /// When the counts cannot be changed that way; they are of no use then.
    pub fn settle(&mut self) -> Result<(), CoarseError> {
        let Self::Under(answer) = self else { return Ok(()) };
        let (adjacency, counted) = answer.recv().expect("counting does not panic");
        *self = Self::Settled(adjacency);
        counted
    }
}

#[cfg(test)]
mod tests;

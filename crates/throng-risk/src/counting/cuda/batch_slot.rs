//! Execution of one batch on the device.

use super::counting_route::{CandidateQuery, CountingRoute};
use super::device::{Device, DeviceError, DeviceMemory, DownloadTicket, LaunchShape};
use super::kernel_tables::{OUTCOME_BYTES, blank_outcomes, bytes_of};
use super::plan::LaunchBatch;
use super::row_source::RowSource;
use std::sync::Arc;

const BLOCKS_PER_MULTIPROCESSOR: u64 = 8;

const MIN_JUDGEMENT_STRETCHES: u64 = 8;

const MAX_BLOCKS_ALONG_Y: u64 = 65_535;

/// Two slots alternate.
pub(super) struct BatchSlot {
    tables: DeviceMemory,
    scratch: DeviceMemory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BatchOutput {
    Outcomes,
    /// Bitmap of rows in classes below k, for one candidate.
    Rows,
}

struct BatchAddresses {
    candidates: u64,
    terms: u64,
    stages: u64,
    groups: u64,
    slots: u64,
    outcomes: u64,
    counts: u64,
    tables: u64,
    seen: u64,
    exposed: u64,
    marks: u64,
    sliced: u64,
    meetings: u64,
    cells: u64,
    numbers: u64,
    slices: u64,
}

impl BatchSlot {
    pub(super) fn new(device: &Arc<dyn Device>) -> Result<Self, DeviceError> {
        Ok(Self { tables: DeviceMemory::new(device, 0)?, scratch: DeviceMemory::new(device, 0)? })
    }

    pub(super) fn counts(&self) -> u64 {
        self.scratch.address
    }

    pub(super) fn start(
        &mut self,
        device: &Arc<dyn Device>,
        source: &mut RowSource<'_>,
        batch: &LaunchBatch,
        ask: &CandidateQuery,
        want: BatchOutput,
    ) -> Result<DownloadTicket, DeviceError> {
        let places = self.prepare(device, batch, ask, want, 0)?;
        let launches = BatchLaunches { device, batch, ask, want, places: &places };
        source.visit_tiles(&mut |_, window, extent| launches.count(window, extent))?;
        launches.summarize()?;
        if ask.subjects.is_some() && !ask.judge_only || want == BatchOutput::Rows {
            source.visit_tiles(&mut |first_row, window, extent| launches.expose(window, extent, first_row))?;
        }
        match want {
            BatchOutput::Rows => device.request(places.marks, 4 * mark_words(ask.rows) as usize),
            BatchOutput::Outcomes => device.request(places.outcomes, batch.candidates.len() * OUTCOME_BYTES),
        }
    }

    /// Keeps the counts at [`Self::counts`].
    pub(super) fn count(
        &mut self,
        device: &Arc<dyn Device>,
        source: &mut RowSource<'_>,
        batch: &LaunchBatch,
        ask: &CandidateQuery,
    ) -> Result<(), DeviceError> {
        let want = BatchOutput::Outcomes;
        let places = self.prepare(device, batch, ask, want, source.places())?;
        let launches = BatchLaunches { device, batch, ask, want, places: &places };
        source.visit_tiles(&mut |_, window, extent| launches.count(window, extent))
    }

    fn prepare(
        &mut self,
        device: &Arc<dyn Device>,
        batch: &LaunchBatch,
        ask: &CandidateQuery,
        want: BatchOutput,
        most_places: u64,
    ) -> Result<BatchAddresses, DeviceError> {
        let mut tables = Vec::new();
        let mut begin = |bytes: Vec<u8>| {
            let at = tables.len() as u64;
            tables.extend(bytes);
            tables.resize(tables.len().next_multiple_of(16), 0);
            at
        };
        let candidates = begin(bytes_of(&batch.candidates));
        let terms = begin(bytes_of(&batch.terms));
        let stages = begin(bytes_of(&batch.stages));
        let groups = begin(bytes_of(&batch.groups));
        let slots = begin(bytes_of(&batch.slots));
        let outcomes = begin(blank_outcomes(batch.candidates.len()));
        let sliced = begin(bytes_of(&batch.slicing.columns));
        let meetings = begin(bytes_of(&batch.slicing.tiles));
        let cells = begin(bytes_of(&batch.slicing.cells));
        let numbers = begin(bytes_of(&batch.slicing.numbers));
        let aligned = |bytes: u64| bytes.next_multiple_of(16);
        let sizes = [
            aligned(4 * batch.counts),
            aligned(8 * batch.table_slots),
            aligned(4 * batch.seen_words),
            aligned(4 * batch.exposed * batch.candidates.len() as u64),
            if want == BatchOutput::Rows { aligned(4 * mark_words(ask.rows)) } else { 0 },
            aligned(4 * batch.slicing.slices * most_places.div_ceil(32)),
        ];
        grow_memory(device, &mut self.tables, tables.len() as u64)?;
        grow_memory(device, &mut self.scratch, sizes.iter().sum())?;
        let base = self.tables.address;
        device.upload(base, &tables)?;
        let mut at = self.scratch.address;
        // Slices are written before they are read.
        let blanks =
            [Some(if batch.route.counts_crowds() { 0xff } else { 0 }), Some(0xff), Some(0), Some(0), Some(0), None];
        let mut regions = [0; 6];
        for ((region, size), blank) in regions.iter_mut().zip(sizes).zip(blanks) {
            *region = at;
            if let Some(blank) = blank.filter(|_| size > 0) {
                device.fill(at, size, blank)?;
            }
            at += size;
        }
        let [counts, tables, seen, exposed, marks, slices] = regions;
        Ok(BatchAddresses {
            candidates: base + candidates,
            terms: base + terms,
            stages: base + stages,
            groups: base + groups,
            slots: base + slots,
            outcomes: base + outcomes,
            counts,
            tables,
            seen,
            exposed,
            marks,
            sliced: base + sliced,
            meetings: base + meetings,
            cells: base + cells,
            numbers: base + numbers,
            slices,
        })
    }
}

fn mark_words(rows: u64) -> u64 {
    rows.div_ceil(32).max(1)
}

fn grow_memory(device: &Arc<dyn Device>, memory: &mut DeviceMemory, bytes: u64) -> Result<(), DeviceError> {
    if memory.bytes < bytes {
        // Both regions may not fit together.
        *memory = DeviceMemory::new(device, 0)?;
        *memory = DeviceMemory::new(device, bytes)?;
    }
    Ok(())
}

struct BatchLaunches<'a> {
    device: &'a Arc<dyn Device>,
    batch: &'a LaunchBatch,
    ask: &'a CandidateQuery,
    want: BatchOutput,
    places: &'a BatchAddresses,
}

impl BatchLaunches<'_> {
    /// Returns length and number of stretches.
    fn split(&self, extent: u64, columns: usize, step: u64) -> (u64, u64) {
        let limits = self.device.limits();
        let wanted = (BLOCKS_PER_MULTIPROCESSOR * u64::from(limits.multiprocessors)).div_ceil(columns.max(1) as u64);
        let wanted = if self.ask.judge_only { wanted.max(MIN_JUDGEMENT_STRETCHES) } else { wanted };
        // At least four steps amortize the start of a stretch.
        let most = extent.div_ceil(4 * step).clamp(1, MAX_BLOCKS_ALONG_Y);
        let stretch = extent.div_ceil(wanted.clamp(1, most)).next_multiple_of(step).max(step);
        (stretch, extent.div_ceil(stretch).max(1))
    }

    fn shape(&self, columns: usize, rows: u64, shared_bytes: u32) -> LaunchShape {
        LaunchShape { columns: columns as u32, rows: rows as u32, threads: self.device.limits().threads, shared_bytes }
    }

    fn count(&self, window: [u64; 5], extent: u64) -> Result<(), DeviceError> {
        let (batch, ask, at) = (self.batch, self.ask, self.places);
        let step = 4 * u64::from(self.device.limits().threads);
        let blocks = if batch.route.is_small() { batch.groups.len() } else { batch.candidates.len() };
        let (stretch, rows) = self.split(extent, blocks, step);
        let shape = self.shape(blocks, rows, batch.shared_bytes);
        let (k, judging) = (u64::from(ask.k), u64::from(ask.judge_only));
        let mut arguments = window.to_vec();
        let kernel = match batch.route {
            CountingRoute::Small | CountingRoute::SmallCrowds => {
                arguments.extend([at.groups, at.candidates, at.terms, at.slots]);
                arguments.extend([extent, stretch, ask.tile, k, judging, at.counts, at.outcomes]);
                if batch.route.counts_crowds() { "small_people" } else { "small_records" }
            }
            CountingRoute::DenseCrowds => {
                arguments.extend([at.candidates, at.terms, extent, stretch, k, at.counts, at.outcomes]);
                "dense_crowds"
            }
            CountingRoute::Dense | CountingRoute::Sparse => {
                arguments.extend([at.candidates, at.terms, at.stages, extent, stretch, ask.subjects.unwrap_or(0)]);
                arguments.extend([k, judging, at.counts, at.tables, at.seen, at.outcomes]);
                match (batch.route, ask.subjects) {
                    (CountingRoute::Dense, None) => "dense_records",
                    (CountingRoute::Dense, Some(_)) => "dense_people",
                    (_, None) => "sparse_records",
                    (_, Some(_)) => "sparse_people",
                }
            }
            CountingRoute::Sliced => return self.count_slices(window, extent),
        };
        self.device.launch(kernel, shape, &arguments)
    }

    fn count_slices(&self, window: [u64; 5], extent: u64) -> Result<(), DeviceError> {
        let (slicing, at) = (&self.batch.slicing, self.places);
        let threads = u64::from(self.device.limits().threads);
        let words = extent.div_ceil(32);
        let blocks = words.div_ceil(threads).clamp(1, 1024);
        let [start, rows, capacity, columns, _] = window;
        let arguments = [start, rows, capacity, columns, at.sliced, words, at.slices];
        self.device.launch("slice", self.shape(slicing.columns.len(), blocks, 0), &arguments)?;
        let (stretch, blocks) = self.split(words.max(1), slicing.tiles.len(), threads);
        let arguments = [at.meetings, at.cells, at.numbers, at.slices, words, stretch, threads, at.counts];
        self.device.launch("count_slices", self.shape(slicing.tiles.len(), blocks, slicing.shared_bytes), &arguments)
    }

    fn summarize(&self) -> Result<(), DeviceError> {
        let (batch, at) = (self.batch, self.places);
        let cells = batch.candidates.iter().map(|candidate| candidate.cells).max().unwrap_or(0);
        let (stretch, rows) =
            self.split(cells.max(1), batch.candidates.len(), 4 * u64::from(self.device.limits().threads));
        let people = u64::from(self.ask.subjects.is_some());
        let arguments = [at.candidates, stretch, u64::from(self.ask.k), people, at.counts, at.outcomes];
        let kernel = if batch.route.counts_crowds() { "summarize_crowds" } else { "summarize" };
        self.device.launch(kernel, self.shape(batch.candidates.len(), rows, 64), &arguments)
    }

    fn expose(&self, window: [u64; 5], extent: u64, first_row: u64) -> Result<(), DeviceError> {
        let (batch, at) = (self.batch, self.places);
        let blocks = batch.candidates.len();
        let (stretch, rows) = self.split(extent, blocks, 4 * u64::from(self.device.limits().threads));
        let mut arguments = window.to_vec();
        arguments.extend([at.candidates, at.terms, at.stages, extent, stretch, batch.exposed, u64::from(self.ask.k)]);
        let marks = if self.want == BatchOutput::Rows { at.marks } else { 0 };
        arguments.extend([at.counts, at.tables, at.exposed, marks, first_row, at.outcomes]);
        let kernel = if batch.route == CountingRoute::Sparse { "expose_sparse" } else { "expose_dense" };
        self.device.launch(kernel, self.shape(blocks, rows, 64), &arguments)
    }
}

//! One batch of candidates on the device: its tables, its launches, its answer.

use super::device::{Device, DeviceError, Memory, Shape, Ticket};
use super::plan::Batch;
use super::route::{Ask, Route};
use super::source::Source;
use super::tables::{OUTCOME, blank_outcomes, bytes_of};
use std::sync::Arc;

/// Blocks for each multiprocessor that keep it busy.
const BLOCKS: u64 = 8;

/// Stretches of rows of a judgement at least, so that the later ones may be left out.
const LOOKS: u64 = 8;

/// Blocks along y.
const MOST_ROWS: u64 = 65_535;

/// Device memory of one batch in flight. Two of them take turns.
pub(super) struct Slot {
    tables: Memory,
    scratch: Memory,
}

/// What is wanted of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Outcomes,
    /// The rows of classes below k, as a bitmap of the table's rows. For one candidate.
    Rows,
}

/// Addresses of one batch.
struct Places {
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

impl Slot {
    pub(super) fn new(device: &Arc<dyn Device>) -> Result<Self, DeviceError> {
        Ok(Self { tables: Memory::new(device, 0)?, scratch: Memory::new(device, 0)? })
    }

    /// Where the counts of the last batch begin.
    pub(super) fn counts(&self) -> u64 {
        self.scratch.address
    }

    /// Asks the device for the answer to a batch.
    pub(super) fn start(
        &mut self,
        device: &Arc<dyn Device>,
        source: &mut Source<'_>,
        batch: &Batch,
        ask: &Ask,
        want: Want,
    ) -> Result<Ticket, DeviceError> {
        let places = self.prepare(device, batch, ask, want, 0)?;
        let launches = Launches { device, batch, ask, want, places: &places };
        source.each_tile(&mut |_, window, extent| launches.count(window, extent))?;
        launches.summarize()?;
        if ask.people.is_some() && !ask.judging || want == Want::Rows {
            source.each_tile(&mut |first_row, window, extent| launches.expose(window, extent, first_row))?;
        }
        match want {
            Want::Rows => device.request(places.marks, 4 * mark_words(ask.rows) as usize),
            Want::Outcomes => device.request(places.outcomes, batch.candidates.len() * OUTCOME),
        }
    }

    /// Has a batch counted, and leaves the counts on the device, at [`Self::counts`].
    pub(super) fn count(
        &mut self,
        device: &Arc<dyn Device>,
        source: &mut Source<'_>,
        batch: &Batch,
        ask: &Ask,
    ) -> Result<(), DeviceError> {
        let want = Want::Outcomes;
        let places = self.prepare(device, batch, ask, want, source.places())?;
        let launches = Launches { device, batch, ask, want, places: &places };
        source.each_tile(&mut |_, window, extent| launches.count(window, extent))
    }

    /// Uploads the tables and blanks the scratch. `most_places` of a window are sliced at once.
    fn prepare(
        &mut self,
        device: &Arc<dyn Device>,
        batch: &Batch,
        ask: &Ask,
        want: Want,
        most_places: u64,
    ) -> Result<Places, DeviceError> {
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
        let meetings = begin(bytes_of(&batch.slicing.meetings));
        let cells = begin(bytes_of(&batch.slicing.cells));
        let numbers = begin(bytes_of(&batch.slicing.numbers));
        let aligned = |bytes: u64| bytes.next_multiple_of(16);
        let sizes = [
            aligned(4 * batch.counts),
            aligned(8 * batch.table_slots),
            aligned(4 * batch.seen_words),
            aligned(4 * batch.exposed * batch.candidates.len() as u64),
            if want == Want::Rows { aligned(4 * mark_words(ask.rows)) } else { 0 },
            aligned(4 * batch.slicing.slices * most_places.div_ceil(32)),
        ];
        grow(device, &mut self.tables, tables.len() as u64)?;
        grow(device, &mut self.scratch, sizes.iter().sum())?;
        let base = self.tables.address;
        device.upload(base, &tables)?;
        let mut at = self.scratch.address;
        // Every word of the slices is written before it is read.
        let blanks = [Some(if batch.route.crowds() { 0xff } else { 0 }), Some(0xff), Some(0), Some(0), Some(0), None];
        let mut regions = [0; 6];
        for ((region, size), blank) in regions.iter_mut().zip(sizes).zip(blanks) {
            *region = at;
            if let Some(blank) = blank.filter(|_| size > 0) {
                device.fill(at, size, blank)?;
            }
            at += size;
        }
        let [counts, tables, seen, exposed, marks, slices] = regions;
        Ok(Places {
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

/// Words of a bitmap of all rows.
fn mark_words(rows: u64) -> u64 {
    rows.div_ceil(32).max(1)
}

fn grow(device: &Arc<dyn Device>, memory: &mut Memory, bytes: u64) -> Result<(), DeviceError> {
    if memory.bytes < bytes {
        // First give back, then take: both at once may not fit.
        *memory = Memory::new(device, 0)?;
        *memory = Memory::new(device, bytes)?;
    }
    Ok(())
}

struct Launches<'a> {
    device: &'a Arc<dyn Device>,
    batch: &'a Batch,
    ask: &'a Ask,
    want: Want,
    places: &'a Places,
}

impl Launches<'_> {
    /// Splits `extent` places between blocks: (stretch, stretches).
    fn split(&self, extent: u64, columns: usize, step: u64) -> (u64, u64) {
        let limits = self.device.limits();
        let wanted = (BLOCKS * u64::from(limits.multiprocessors)).div_ceil(columns.max(1) as u64);
        let wanted = if self.ask.judging { wanted.max(LOOKS) } else { wanted };
        // A stretch is worth its start: at least four steps of a block.
        let most = extent.div_ceil(4 * step).clamp(1, MOST_ROWS);
        let stretch = extent.div_ceil(wanted.clamp(1, most)).next_multiple_of(step).max(step);
        (stretch, extent.div_ceil(stretch).max(1))
    }

    fn shape(&self, columns: usize, rows: u64, shared_bytes: u32) -> Shape {
        Shape { columns: columns as u32, rows: rows as u32, threads: self.device.limits().threads, shared_bytes }
    }

    /// Adds the rows of one window to the counts.
    fn count(&self, window: [u64; 5], extent: u64) -> Result<(), DeviceError> {
        let (batch, ask, at) = (self.batch, self.ask, self.places);
        let step = 4 * u64::from(self.device.limits().threads);
        let blocks = if batch.route.small() { batch.groups.len() } else { batch.candidates.len() };
        let (stretch, rows) = self.split(extent, blocks, step);
        let shape = self.shape(blocks, rows, batch.shared_bytes);
        let (k, judging) = (u64::from(ask.k), u64::from(ask.judging));
        let mut arguments = window.to_vec();
        let kernel = match batch.route {
            Route::Small | Route::SmallCrowds => {
                arguments.extend([at.groups, at.candidates, at.terms, at.slots]);
                arguments.extend([extent, stretch, ask.tile, k, judging, at.counts, at.outcomes]);
                if batch.route.crowds() { "small_people" } else { "small_records" }
            }
            Route::DenseCrowds => {
                arguments.extend([at.candidates, at.terms, extent, stretch, k, at.counts, at.outcomes]);
                "dense_crowds"
            }
            Route::Dense | Route::Sparse => {
                arguments.extend([at.candidates, at.terms, at.stages, extent, stretch, ask.people.unwrap_or(0)]);
                arguments.extend([k, judging, at.counts, at.tables, at.seen, at.outcomes]);
                match (batch.route, ask.people) {
                    (Route::Dense, None) => "dense_records",
                    (Route::Dense, Some(_)) => "dense_people",
                    (_, None) => "sparse_records",
                    (_, Some(_)) => "sparse_people",
                }
            }
            Route::Sliced => return self.count_slices(window, extent),
        };
        self.device.launch(kernel, shape, &arguments)
    }

    /// Cuts the rows of one window into slices, and adds what each two of them share.
    fn count_slices(&self, window: [u64; 5], extent: u64) -> Result<(), DeviceError> {
        let (slicing, at) = (&self.batch.slicing, self.places);
        let threads = u64::from(self.device.limits().threads);
        let words = extent.div_ceil(32);
        let blocks = words.div_ceil(threads).clamp(1, 1024);
        let [start, rows, capacity, columns, _] = window;
        let arguments = [start, rows, capacity, columns, at.sliced, words, at.slices];
        self.device.launch("slice", self.shape(slicing.columns.len(), blocks, 0), &arguments)?;
        let (stretch, blocks) = self.split(words.max(1), slicing.meetings.len(), threads);
        let arguments = [at.meetings, at.cells, at.numbers, at.slices, words, stretch, threads, at.counts];
        self.device.launch("count_slices", self.shape(slicing.meetings.len(), blocks, slicing.shared_bytes), &arguments)
    }

    fn summarize(&self) -> Result<(), DeviceError> {
        let (batch, at) = (self.batch, self.places);
        let cells = batch.candidates.iter().map(|candidate| candidate.cells).max().unwrap_or(0);
        let (stretch, rows) =
            self.split(cells.max(1), batch.candidates.len(), 4 * u64::from(self.device.limits().threads));
        let people = u64::from(self.ask.people.is_some());
        let arguments = [at.candidates, stretch, u64::from(self.ask.k), people, at.counts, at.outcomes];
        let kernel = if batch.route.crowds() { "summarize_crowds" } else { "summarize" };
        self.device.launch(kernel, self.shape(batch.candidates.len(), rows, 64), &arguments)
    }

    /// Goes through the rows of one window once more for those in classes below k.
    fn expose(&self, window: [u64; 5], extent: u64, first_row: u64) -> Result<(), DeviceError> {
        let (batch, at) = (self.batch, self.places);
        let blocks = batch.candidates.len();
        let (stretch, rows) = self.split(extent, blocks, 4 * u64::from(self.device.limits().threads));
        let mut arguments = window.to_vec();
        arguments.extend([at.candidates, at.terms, at.stages, extent, stretch, batch.exposed, u64::from(self.ask.k)]);
        let marks = if self.want == Want::Rows { at.marks } else { 0 };
        arguments.extend([at.counts, at.tables, at.exposed, marks, first_row, at.outcomes]);
        let kernel = if batch.route == Route::Sparse { "expose_sparse" } else { "expose_dense" };
        self.device.launch(kernel, self.shape(blocks, rows, 64), &arguments)
    }
}

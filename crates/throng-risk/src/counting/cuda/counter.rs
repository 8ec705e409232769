//! Group counting on a device, and on the CPU where the device fails.

use super::batch::{Slot, Want};
use super::device::{Device, DeviceError};
use super::plan::{Batch, batches};
use super::route::{Ask, Planned};
use super::source::Source;
use super::tables::{Outcome, Verdict, outcomes, words};
use super::usage::{Metered, Used};
use super::window::ResidentWindow;
use crate::counting::{AttributeSet, ComputeError, CountedTable, CpuCounter, GroupCount, GroupCounter};
use std::sync::{Arc, Mutex, OnceLock};

/// Candidates of one launch at most: their tables are built while the launch before runs.
const MOST: usize = 4096;

/// Scratch of one batch at most, where no budget is given.
const MOST_SCRATCH: u64 = 2 << 30;

/// Device memory that a counter may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes for the rows; a longer table passes through them in tiles.
    pub rows_bytes: u64,
    /// Bytes for the counts of one batch of candidates. Two batches are in flight.
    pub scratch_bytes: u64,
}

impl Budget {
    /// Four fifths of what is free: a half of it for the rows, a quarter, at most 2 GiB, for each batch.
    pub fn of(device: &Arc<dyn Device>) -> Self {
        let bytes = device.limits().free_bytes / 5 * 4;
        Self { rows_bytes: bytes / 2, scratch_bytes: (bytes / 4).min(MOST_SCRATCH) }
    }
}

/// Counts over [`CountedTable`] on a device. Where the device fails, the CPU answers the same batch, and that is counted.
///
/// Memory on the device: at most the [`Budget`]. A row takes `Σ width` bytes (1, 2 or 4 a column by its cardinality, 4 for
/// the subject).
pub struct CudaCounter<'a> {
    pub(super) table: &'a CountedTable,
    threads: usize,
    pub(super) device: Arc<dyn Device>,
    cpu: OnceLock<CpuCounter<'a>>,
    pub(super) state: Mutex<State<'a>>,
    pub(super) usage: Arc<Metered>,
    /// Are pairs of tiny domains counted by slices?
    pub(super) slicing: bool,
}

pub(super) struct State<'a> {
    /// `None` once the device is lost.
    pub(super) source: Option<Source<'a>>,
    pub(super) slots: [Slot; 2],
    /// Scratch of one batch, in bytes.
    pub(super) scratch: u64,
}

impl<'a> CudaCounter<'a> {
    /// A counter that puts the table on the device, within a budget (default: [`Budget::of`] it). `threads` are those of
    /// the CPU where it must step in.
    pub fn new(
        device: &Arc<dyn Device>,
        table: &'a CountedTable,
        threads: usize,
        budget: Option<Budget>,
    ) -> Result<Self, DeviceError> {
        let usage = Arc::new(Metered::new(device));
        let device: Arc<dyn Device> = usage.clone();
        let budget = budget.unwrap_or(Budget::of(&device));
        let source = Source::of(&device, table, budget.rows_bytes)?;
        Self::over(usage, table, source, threads, budget.scratch_bytes)
    }

    /// A counter over a window that is on the device already; `table` holds the same rows, for the CPU.
    pub fn resident(
        device: &Arc<dyn Device>,
        window: &'a ResidentWindow,
        table: &'a CountedTable,
        threads: usize,
        budget: Option<Budget>,
    ) -> Result<Self, DeviceError> {
        let scratch = budget.unwrap_or(Budget::of(device)).scratch_bytes;
        Self::over(Arc::new(Metered::new(device)), table, Source::Window(window), threads, scratch)
    }

    pub(super) fn over(
        usage: Arc<Metered>,
        table: &'a CountedTable,
        source: Source<'a>,
        threads: usize,
        scratch: u64,
    ) -> Result<Self, DeviceError> {
        let device: Arc<dyn Device> = usage.clone();
        let slots = [Slot::new(&device)?, Slot::new(&device)?];
        let state = Mutex::new(State { source: Some(source), slots, scratch });
        Ok(Self { table, threads, device, cpu: OnceLock::new(), state, usage, slicing: true })
    }

    /// Counts every pair of columns with counters, none by slices: what slices are measured against.
    #[must_use]
    pub fn without_slices(self) -> Self {
        Self { slicing: false, ..self }
    }

    /// Has the device failed in a way that leaves it no more use?
    pub(super) fn has_lost_its_device(&self) -> bool {
        self.state.lock().expect("no counter panics with the lock").source.is_none()
    }

    /// What the device was used for so far.
    pub fn used(&self) -> Used {
        self.usage.used()
    }

    fn cpu(&self) -> &CpuCounter<'a> {
        self.cpu.get_or_init(|| CpuCounter::new(self.table, self.threads))
    }

    fn check(&self, set: &AttributeSet) -> Result<(), ComputeError> {
        let width = self.table.width();
        match set.last() {
            Some(attribute) if attribute >= width => Err(ComputeError::UnknownAttribute { attribute, width }),
            _ => Ok(()),
        }
    }

    pub(super) fn asks(&self, source: &Source<'_>, k: u32, judging: bool) -> Ask {
        let limits = self.device.limits();
        let (rows, people, tile) = (source.rows(), source.people(), 4 * u64::from(limits.threads));
        Ask { k, judging, rows, people, shared_bytes: limits.shared_bytes, tile, threads: limits.threads }
    }

    /// Asks the device about sets, batch after batch: while one runs, the next is prepared, and the one before is read.
    /// Gives each answer to `take`; what is not answered is left to the caller.
    fn on_device(
        &self,
        sets: &[AttributeSet],
        k: u32,
        judging: bool,
        stop: &(dyn Fn() -> bool + Sync),
        take: &mut dyn FnMut(usize, Outcome),
    ) {
        let mut state = self.state.lock().expect("no counter panics with the lock");
        if let Err(error) = self.ask(&mut state, sets, k, judging, stop, take) {
            self.failed(&mut state, &error);
        }
    }

    fn ask(
        &self,
        state: &mut State<'a>,
        sets: &[AttributeSet],
        k: u32,
        judging: bool,
        stop: &(dyn Fn() -> bool + Sync),
        take: &mut dyn FnMut(usize, Outcome),
    ) -> Result<(), DeviceError> {
        let State { source, slots, scratch } = state;
        let Some(source) = source else { return Ok(()) };
        let radices = source.radices();
        let ask = self.asks(source, k, judging);
        let mut planned: Vec<Planned> =
            sets.iter().enumerate().filter_map(|(at, set)| Planned::new(at, set, &radices, &ask)).collect();
        planned.retain(|p| !p.splits_nothing() && p.bytes() <= *scratch);
        planned.sort_by(|a, b| a.order().cmp(&b.order()));
        let mut waiting = None;
        let mut finish = |(batch, ticket): (Batch, _)| -> Result<(), DeviceError> {
            let bytes = self.device.collect(ticket)?;
            let found = outcomes(&bytes);
            if found.iter().any(|outcome| outcome.overflow && outcome.verdict == Verdict::Undecided) {
                return Err(DeviceError::Overflow);
            }
            batch.places.iter().zip(found).for_each(|(at, outcome)| take(*at, outcome));
            Ok(())
        };
        for (number, batch) in batches(&planned, *scratch, MOST, &radices, &ask).enumerate() {
            if stop() {
                break;
            }
            let slot = &mut slots[number % 2];
            let ticket = slot.start(&self.device, source, &batch, &ask, Want::Outcomes)?;
            if let Some(before) = waiting.replace((batch, ticket)) {
                finish(before)?;
            }
        }
        waiting.map_or(Ok(()), finish)
    }

    /// The device is not asked again where it is lost. The CPU answers in its place.
    pub(super) fn failed(&self, state: &mut State<'_>, error: &DeviceError) {
        self.usage.failed();
        tracing::warn!(%error, "counting on the GPU failed: the CPU answers this batch");
        if !error.leaves_the_device_usable() {
            state.source = None;
        }
    }

    /// The rows below k, from the device.
    fn rows_on_device(&self, set: &AttributeSet, k: u32) -> Option<Vec<u32>> {
        let mut state = self.state.lock().expect("no counter panics with the lock");
        let found = self.ask_rows(&mut state, set, k);
        found.unwrap_or_else(|error| {
            self.failed(&mut state, &error);
            None
        })
    }

    fn ask_rows(&self, state: &mut State<'a>, set: &AttributeSet, k: u32) -> Result<Option<Vec<u32>>, DeviceError> {
        let State { source, slots, scratch } = state;
        let Some(source) = source else { return Ok(None) };
        let radices = source.radices();
        let ask = self.asks(source, k, false);
        let fits = |p: &Planned| !p.splits_nothing() && p.bytes() + ask.rows / 8 + 16 <= *scratch;
        let Some(planned) = Planned::new(0, set, &radices, &ask).filter(fits) else { return Ok(None) };
        let planned = [planned];
        let batch = batches(&planned, *scratch, 1, &radices, &ask).next();
        let Some(batch) = batch else { return Ok(None) };
        let ticket = slots[0].start(&self.device, source, &batch, &ask, Want::Rows)?;
        let bytes = self.device.collect(ticket)?;
        let mut rows = Vec::new();
        for (at, mut word) in words(&bytes).enumerate() {
            while word != 0 {
                rows.push(at as u32 * 32 + word.trailing_zeros());
                word &= word - 1;
            }
        }
        Ok(Some(rows))
    }
}

impl GroupCounter for CudaCounter<'_> {
    fn at_once(&self) -> usize {
        2 * MOST
    }

    fn count(&self, sets: &[AttributeSet], k: u32) -> Result<Vec<GroupCount>, ComputeError> {
        sets.iter().try_for_each(|set| self.check(set))?;
        let mut counts: Vec<Option<GroupCount>> = vec![None; sets.len()];
        let people = self.table.subjects().is_some();
        self.on_device(sets, k, false, &|| false, &mut |at, outcome| {
            counts[at] = Some(GroupCount {
                smallest: outcome.smallest,
                classes: outcome.classes,
                classes_below: outcome.classes_below,
                records_below: outcome.records_below,
                subjects_below: if people { outcome.subjects_below } else { outcome.records_below },
            });
        });
        let left: Vec<usize> = (0..sets.len()).filter(|at| counts[*at].is_none()).collect();
        let asked: Vec<AttributeSet> = left.iter().map(|at| sets[*at].clone()).collect();
        self.usage.left_to_the_cpu(left.len() as u64);
        left.into_iter().zip(self.cpu().count(&asked, k)?).for_each(|(at, count)| counts[at] = Some(count));
        Ok(counts.into_iter().flatten().collect())
    }

    fn judge(
        &self,
        sets: &[AttributeSet],
        k: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Option<bool>>, ComputeError> {
        sets.iter().try_for_each(|set| self.check(set))?;
        if k < 2 {
            return Ok(vec![Some(false); sets.len()]);
        }
        let mut verdicts = vec![None; sets.len()];
        self.on_device(sets, k, true, stop, &mut |at, outcome| {
            verdicts[at] = Some(match outcome.verdict {
                Verdict::Safe => false,
                Verdict::Qid => true,
                Verdict::Undecided => outcome.classes_below > 0,
            });
        });
        let left: Vec<usize> = (0..sets.len()).filter(|at| verdicts[*at].is_none()).collect();
        if left.is_empty() || stop() {
            return Ok(verdicts);
        }
        let asked: Vec<AttributeSet> = left.iter().map(|at| sets[*at].clone()).collect();
        self.usage.left_to_the_cpu(left.len() as u64);
        left.into_iter().zip(self.cpu().judge(&asked, k, stop)?).for_each(|(at, verdict)| verdicts[at] = verdict);
        Ok(verdicts)
    }

    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError> {
        self.check(set)?;
        match self.rows_on_device(set, k) {
            Some(rows) => Ok(rows),
            None => {
                self.usage.left_to_the_cpu(1);
                self.cpu().records_below(set, k)
            }
        }
    }
}

//! Group counting on a device, with CPU fallback.

use super::batch_slot::{BatchOutput, BatchSlot};
use super::counting_route::{CandidateQuery, PlannedCandidate};
use super::device::{Device, DeviceError};
use super::kernel_tables::{CandidateOutcome, EarlyVerdict, decode_outcomes, u32_words};
use super::plan::{LaunchBatch, launch_batches};
use super::resident_window::ResidentWindow;
use super::row_source::RowSource;
use super::usage::{DeviceUsage, MeteredDevice};
use crate::counting::{AttributeSet, ClassSummary, ComputeError, CountedTable, CpuCounter, GroupCounter};
use std::sync::{Arc, Mutex, OnceLock};

const MAX_LAUNCH_CANDIDATES: usize = 4096;

const MAX_SCRATCH_BYTES: u64 = 2 << 30;

/// Device memory for a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceBudget {
    /// Bytes for the rows; larger tables are uploaded in tiles.
    pub rows_bytes: u64,
    /// Bytes for the counts of each of two batches.
    pub scratch_bytes: u64,
}

impl DeviceBudget {
    /// Takes four fifths of free memory: half for rows, a quarter (at most 2 GiB) per batch.
    pub fn of(device: &Arc<dyn Device>) -> Self {
        let bytes = device.limits().free_bytes / 5 * 4;
        Self { rows_bytes: bytes / 2, scratch_bytes: (bytes / 4).min(MAX_SCRATCH_BYTES) }
    }
}

/// Counts over a [`CountedTable`] on a device; after a failure, the CPU counts.
///
/// Device memory: at most the [`DeviceBudget`]; a row takes 1, 2 or 4 bytes per column and 4 for the subject.
pub struct CudaCounter<'a> {
    pub(super) table: &'a CountedTable,
    threads: usize,
    pub(super) device: Arc<dyn Device>,
    cpu: OnceLock<CpuCounter<'a>>,
    pub(super) state: Mutex<DeviceCounterState<'a>>,
    pub(super) usage: Arc<MeteredDevice>,
    pub(super) slicing: bool,
}

pub(super) struct DeviceCounterState<'a> {
    /// `None` after the device is lost.
    pub(super) source: Option<RowSource<'a>>,
    pub(super) slots: [BatchSlot; 2],
    pub(super) scratch: u64,
}

impl<'a> CudaCounter<'a> {
    /// Creates a counter with a memory budget (default: [`DeviceBudget::of`]) and `threads` for the CPU.
    pub fn new(
        device: &Arc<dyn Device>,
        table: &'a CountedTable,
        threads: usize,
        budget: Option<DeviceBudget>,
    ) -> Result<Self, DeviceError> {
        let usage = Arc::new(MeteredDevice::new(device));
        let device: Arc<dyn Device> = usage.clone();
        let budget = budget.unwrap_or(DeviceBudget::of(&device));
        let source = RowSource::for_table(&device, table, budget.rows_bytes)?;
        Self::with_source(usage, table, source, threads, budget.scratch_bytes)
    }

    /// Creates a counter over a device window; `table` has the same rows for the CPU.
    pub fn over_window(
        device: &Arc<dyn Device>,
        window: &'a ResidentWindow,
        table: &'a CountedTable,
        threads: usize,
        budget: Option<DeviceBudget>,
    ) -> Result<Self, DeviceError> {
        let scratch = budget.unwrap_or(DeviceBudget::of(device)).scratch_bytes;
        Self::with_source(Arc::new(MeteredDevice::new(device)), table, RowSource::Window(window), threads, scratch)
    }

    pub(super) fn with_source(
        usage: Arc<MeteredDevice>,
        table: &'a CountedTable,
        source: RowSource<'a>,
        threads: usize,
        scratch: u64,
    ) -> Result<Self, DeviceError> {
        let device: Arc<dyn Device> = usage.clone();
        let slots = [BatchSlot::new(&device)?, BatchSlot::new(&device)?];
        let state = Mutex::new(DeviceCounterState { source: Some(source), slots, scratch });
        Ok(Self { table, threads, device, cpu: OnceLock::new(), state, usage, slicing: true })
    }

    /// Counts pairs without slices, for comparison.
    #[must_use]
    pub fn without_slices(self) -> Self {
        Self { slicing: false, ..self }
    }

    pub(super) fn is_device_lost(&self) -> bool {
        self.state.lock().expect("no counter panics with the lock").source.is_none()
    }

    /// Device usage so far.
    pub fn usage(&self) -> DeviceUsage {
        self.usage.usage()
    }

    fn cpu(&self) -> &CpuCounter<'a> {
        self.cpu.get_or_init(|| CpuCounter::new(self.table, self.threads))
    }

    fn check_columns(&self, set: &AttributeSet) -> Result<(), ComputeError> {
        let width = self.table.width();
        match set.last() {
            Some(attribute) if attribute >= width => Err(ComputeError::UnknownAttribute { attribute, width }),
            _ => Ok(()),
        }
    }

    pub(super) fn candidate_query(&self, source: &RowSource<'_>, k: u32, judging: bool) -> CandidateQuery {
        let limits = self.device.limits();
        let (rows, people, tile) = (source.rows(), source.subject_bound(), 4 * u64::from(limits.threads));
        CandidateQuery {
            k,
            judge_only: judging,
            rows,
            subjects: people,
            shared_bytes: limits.shared_bytes,
            tile,
            threads: limits.threads,
        }
    }

    /// Overlaps batches. The caller handles sets without an outcome.
    fn count_on_device(
        &self,
        sets: &[AttributeSet],
        k: u32,
        judging: bool,
        stop: &(dyn Fn() -> bool + Sync),
        take: &mut dyn FnMut(usize, CandidateOutcome),
    ) {
        let mut state = self.state.lock().expect("no counter panics with the lock");
        if let Err(error) = self.run_batches(&mut state, sets, k, judging, stop, take) {
            self.handle_failure(&mut state, &error);
        }
    }

    fn run_batches(
        &self,
        state: &mut DeviceCounterState<'a>,
        sets: &[AttributeSet],
        k: u32,
        judging: bool,
        stop: &(dyn Fn() -> bool + Sync),
        take: &mut dyn FnMut(usize, CandidateOutcome),
    ) -> Result<(), DeviceError> {
        let DeviceCounterState { source, slots, scratch } = state;
        let Some(source) = source else { return Ok(()) };
        let radices = source.radices();
        let ask = self.candidate_query(source, k, judging);
        let mut planned: Vec<PlannedCandidate> =
            sets.iter().enumerate().filter_map(|(at, set)| PlannedCandidate::new(at, set, &radices, &ask)).collect();
        planned.retain(|p| !p.is_single_class() && p.bytes() <= *scratch);
        planned.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        let mut waiting = None;
        let mut finish = |(batch, ticket): (LaunchBatch, _)| -> Result<(), DeviceError> {
            let bytes = self.device.collect(ticket)?;
            let found = decode_outcomes(&bytes);
            if found.iter().any(|outcome| outcome.overflow && outcome.verdict == EarlyVerdict::Undecided) {
                return Err(DeviceError::Overflow);
            }
            batch.set_indexes.iter().zip(found).for_each(|(at, outcome)| take(*at, outcome));
            Ok(())
        };
        for (number, batch) in launch_batches(&planned, *scratch, MAX_LAUNCH_CANDIDATES, &radices, &ask).enumerate() {
            if stop() {
                break;
            }
            let slot = &mut slots[number % 2];
            let ticket = slot.start(&self.device, source, &batch, &ask, BatchOutput::Outcomes)?;
            if let Some(before) = waiting.replace((batch, ticket)) {
                finish(before)?;
            }
        }
        waiting.map_or(Ok(()), finish)
    }

    pub(super) fn handle_failure(&self, state: &mut DeviceCounterState<'_>, error: &DeviceError) {
        self.usage.count_failure();
        tracing::warn!(%error, "counting on the GPU failed: counting this batch on the CPU");
        if !error.is_recoverable() {
            state.source = None;
        }
    }

    fn rows_on_device(&self, set: &AttributeSet, k: u32) -> Option<Vec<u32>> {
        let mut state = self.state.lock().expect("no counter panics with the lock");
        let found = self.query_rows(&mut state, set, k);
        found.unwrap_or_else(|error| {
            self.handle_failure(&mut state, &error);
            None
        })
    }

    fn query_rows(
        &self,
        state: &mut DeviceCounterState<'a>,
        set: &AttributeSet,
        k: u32,
    ) -> Result<Option<Vec<u32>>, DeviceError> {
        let DeviceCounterState { source, slots, scratch } = state;
        let Some(source) = source else { return Ok(None) };
        let radices = source.radices();
        let ask = self.candidate_query(source, k, false);
        let fits = |p: &PlannedCandidate| !p.is_single_class() && p.bytes() + ask.rows / 8 + 16 <= *scratch;
        let Some(planned) = PlannedCandidate::new(0, set, &radices, &ask).filter(fits) else { return Ok(None) };
        let planned = [planned];
        let batch = launch_batches(&planned, *scratch, 1, &radices, &ask).next();
        let Some(batch) = batch else { return Ok(None) };
        let ticket = slots[0].start(&self.device, source, &batch, &ask, BatchOutput::Rows)?;
        let bytes = self.device.collect(ticket)?;
        let mut rows = Vec::new();
        for (at, mut word) in u32_words(&bytes).enumerate() {
            while word != 0 {
                rows.push(at as u32 * 32 + word.trailing_zeros());
                word &= word - 1;
            }
        }
        Ok(Some(rows))
    }
}

impl GroupCounter for CudaCounter<'_> {
    fn preferred_batch_size(&self) -> usize {
        2 * MAX_LAUNCH_CANDIDATES
    }

    fn count(&self, sets: &[AttributeSet], k: u32) -> Result<Vec<ClassSummary>, ComputeError> {
        sets.iter().try_for_each(|set| self.check_columns(set))?;
        let mut counts: Vec<Option<ClassSummary>> = vec![None; sets.len()];
        let people = self.table.subjects().is_some();
        self.count_on_device(sets, k, false, &|| false, &mut |at, outcome| {
            counts[at] = Some(ClassSummary {
                smallest: outcome.smallest,
                classes: outcome.classes,
                classes_below: outcome.classes_below,
                records_below: outcome.records_below,
                subjects_below: if people { outcome.subjects_below } else { outcome.records_below },
            });
        });
        let left: Vec<usize> = (0..sets.len()).filter(|at| counts[*at].is_none()).collect();
        let asked: Vec<AttributeSet> = left.iter().map(|at| sets[*at].clone()).collect();
        self.usage.record_cpu_fallback(left.len() as u64);
        left.into_iter().zip(self.cpu().count(&asked, k)?).for_each(|(at, count)| counts[at] = Some(count));
        Ok(counts.into_iter().flatten().collect())
    }

    fn judge(
        &self,
        sets: &[AttributeSet],
        k: u32,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Option<bool>>, ComputeError> {
        sets.iter().try_for_each(|set| self.check_columns(set))?;
        if k < 2 {
            return Ok(vec![Some(false); sets.len()]);
        }
        let mut verdicts = vec![None; sets.len()];
        self.count_on_device(sets, k, true, stop, &mut |at, outcome| {
            verdicts[at] = Some(match outcome.verdict {
                EarlyVerdict::Safe => false,
                EarlyVerdict::Qid => true,
                EarlyVerdict::Undecided => outcome.classes_below > 0,
            });
        });
        let left: Vec<usize> = (0..sets.len()).filter(|at| verdicts[*at].is_none()).collect();
        if left.is_empty() || stop() {
            return Ok(verdicts);
        }
        let asked: Vec<AttributeSet> = left.iter().map(|at| sets[*at].clone()).collect();
        self.usage.record_cpu_fallback(left.len() as u64);
        left.into_iter().zip(self.cpu().judge(&asked, k, stop)?).for_each(|(at, verdict)| verdicts[at] = verdict);
        Ok(verdicts)
    }

    fn records_below(&self, set: &AttributeSet, k: u32) -> Result<Vec<u32>, ComputeError> {
        self.check_columns(set)?;
        match self.rows_on_device(set, k) {
            Some(rows) => Ok(rows),
            None => {
                self.usage.record_cpu_fallback(1);
                self.cpu().records_below(set, k)
            }
        }
    }
}

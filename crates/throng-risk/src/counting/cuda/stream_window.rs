//! Stream window that stays on the device between counts.

use super::cuda_counter::{CudaCounter, DeviceBudget};
use super::device::{Device, DeviceError};
use super::resident_window::{ResidentWindow, width};
use super::row_source::RowSource;
use super::usage::{DeviceUsage, MeteredDevice};
use crate::counting::backend::{BackendChoice, SelectedBackend, is_trial_worthwhile, run_trial};
use crate::counting::{CountedTable, CpuCounter};
use hashbrown::HashMap;
use std::sync::Arc;

/// Beyond it, the numbering restarts.
const MAX_SUBJECTS_PER_ROW: u64 = 2;

/// New rows of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowArrival {
    /// Numbering of the codes; changes when codes are renumbered.
    pub numbering: u64,
    /// Stream rows before these.
    pub from: u64,
    /// Stream rows up to the last of these.
    pub to: u64,
    /// Codes of the counted rows, by column.
    pub columns: Vec<Vec<u32>>,
    /// Subject of each counted row, if any.
    pub subjects: Option<Vec<u64>>,
}

/// All window rows, in the codes of the stream.
#[derive(Clone, Debug)]
pub struct WindowSnapshot<'s> {
    /// Numbering of the codes.
    pub numbering: u64,
    /// Stream rows up to the last of these.
    pub to: u64,
    /// Maximum number of rows.
    pub capacity: usize,
    /// Codes by column, one per row.
    pub columns: Vec<&'s [u32]>,
    /// Subject of each row, if any.
    pub subjects: Option<&'s [u64]>,
}

impl WindowSnapshot<'_> {
    fn rows(&self) -> usize {
        self.columns.first().map_or_else(|| self.subjects.map_or(0, <[u64]>::len), |codes| codes.len())
    }
}

type DeviceOpener = dyn Fn() -> Result<Arc<dyn Device>, DeviceError> + Send;

/// Counts a stream window repeatedly, on the device if requested; the CPU replaces a failed device.
///
/// Device memory: capacity × (Σ width + 4 with subjects), the same again per count, code maps, and two batches of
/// scratch ([`DeviceBudget`]). Host memory: one number per subject.
pub struct StreamWindow {
    wanted: BackendChoice,
    open: Box<DeviceOpener>,
    device: Option<Arc<MeteredDevice>>,
    lost: bool,
    device_rows: Option<DeviceRows>,
    unopened: u64,
    fills: u64,
}

struct DeviceRows {
    window: ResidentWindow,
    capacity: usize,
    numbering: u64,
    /// Stream rows up to the last stored one, without a gap.
    to: u64,
    subject_numbers: Option<HashMap<u64, u32>>,
}

impl StreamWindow {
    /// Creates an empty window; the device opens on first use.
    pub fn new(
        wanted: BackendChoice,
        open: impl Fn() -> Result<Arc<dyn Device>, DeviceError> + Send + 'static,
    ) -> Self {
        Self { wanted, open: Box::new(open), device: None, lost: false, device_rows: None, unopened: 0, fills: 0 }
    }

    /// Returns true if this table size may use the device.
    pub fn may_use_device(&self, rows: usize, width: usize) -> bool {
        let worth = match self.wanted {
            BackendChoice::Cpu => false,
            BackendChoice::Auto => is_trial_worthwhile(rows, width),
            BackendChoice::Device => true,
        };
        worth && !self.lost && rows > 0 && width > 0
    }

    /// Returns true if a device window needs new rows.
    pub fn needs_arrivals(&self) -> bool {
        self.device_rows.is_some()
    }

    /// Device usage so far.
    pub fn usage(&self) -> DeviceUsage {
        let used = self.device.as_ref().map_or_else(DeviceUsage::default, |device| device.usage());
        DeviceUsage { failures: used.failures + self.unopened, ..used }
    }

    /// Number of full window uploads.
    pub fn fills(&self) -> u64 {
        self.fills
    }

    /// Returns true if the device failed permanently, or a requested one is missing.
    pub fn is_lost(&self) -> bool {
        self.lost && self.usage().failures > 0
    }

    /// Appends new rows, or restarts with them after a gap.
    pub fn append_arrival(&mut self, new: &WindowArrival) {
        let Some(held) = &mut self.device_rows else { return };
        if new.columns.len() != held.window.width() || new.subjects.is_some() != held.subject_numbers.is_some() {
            self.device_rows = None;
        } else if let Err(error) = held.apply_arrival(new) {
            self.handle_failure(&error);
        }
    }

    /// Returns the counter for `table`: the rows of the snapshot in other codes, columns at `places`.
    ///
    /// Pass it to [`Self::return_counter`].
    pub fn counter<'t>(
        &mut self,
        snapshot: &WindowSnapshot<'_>,
        places: &[usize],
        table: &'t CountedTable,
        k: u32,
        threads: usize,
    ) -> SelectedBackend<'t> {
        if !self.may_use_device(table.rows(), table.width()) {
            self.device_rows = None;
            return SelectedBackend::Cpu(CpuCounter::new(table, threads), None);
        }
        let counter = match self.open_device_counter(snapshot, places, table, threads) {
            Ok(counter) => counter,
            Err(error) => {
                self.handle_failure(&error);
                return SelectedBackend::Cpu(CpuCounter::new(table, threads), None);
            }
        };
        if self.wanted == BackendChoice::Device {
            return SelectedBackend::Device(Box::new(counter), None);
        }
        let cpu = CpuCounter::new(table, threads);
        let failures = self.usage().failures;
        let tried = run_trial(&counter, &cpu, table.width(), k);
        match tried {
            Ok(trial) if trial.prefers_device() && self.usage().failures == failures => {
                SelectedBackend::Device(Box::new(counter), Some(trial))
            }
            tried => {
                self.lost |= counter.is_device_lost();
                self.device_rows = None;
                SelectedBackend::Cpu(cpu, tried.ok())
            }
        }
    }

    /// Returns the counter for all column pairs, if the window is on the device. `table` has the same rows in other
    /// codes, without subjects.
    ///
    /// Pass it to [`Self::return_counter`].
    pub fn pair_counter<'t>(
        &mut self,
        snapshot: &WindowSnapshot<'_>,
        table: &'t CountedTable,
        threads: usize,
    ) -> Option<SelectedBackend<'t>> {
        if self.device_rows.is_none() || !self.may_use_device(table.rows(), table.width()) {
            return None;
        }
        let places: Vec<usize> = (0..table.width()).collect();
        match self.open_device_counter(snapshot, &places, table, threads) {
            Ok(counter) => Some(SelectedBackend::Device(Box::new(counter), None)),
            Err(error) => {
                self.handle_failure(&error);
                None
            }
        }
    }

    /// Takes a counter back and records a lost device.
    pub fn return_counter(&mut self, counter: SelectedBackend<'_>) {
        if let SelectedBackend::Device(counter, _) = counter
            && counter.is_device_lost()
        {
            self.lost = true;
            self.device_rows = None;
        }
    }

    fn open_device_counter<'t>(
        &mut self,
        snapshot: &WindowSnapshot<'_>,
        places: &[usize],
        table: &'t CountedTable,
        threads: usize,
    ) -> Result<CudaCounter<'t>, DeviceError> {
        let used = match &self.device {
            Some(used) => Arc::clone(used),
            None => Arc::clone(self.device.insert(Arc::new(MeteredDevice::new(&(self.open)()?)))),
        };
        let device: Arc<dyn Device> = used.clone();
        let budget = DeviceBudget::of(&device);
        let source = if fits_in_bytes(snapshot, places, table, budget.rows_bytes) {
            if !self.device_rows.as_ref().is_some_and(|held| held.contains_snapshot(snapshot)) {
                self.device_rows = None;
                self.device_rows = Some(DeviceRows::fill(&device, snapshot)?);
                self.fills += 1;
            }
            let held = self.device_rows.as_ref().expect("it was filled");
            RowSource::Whole(held.recoded(snapshot, places, table)?)
        } else {
            self.device_rows = None;
            RowSource::for_table(&device, table, budget.rows_bytes)?
        };
        CudaCounter::with_source(used, table, source, threads, budget.scratch_bytes)
    }

    fn handle_failure(&mut self, error: &DeviceError) {
        self.device_rows = None;
        if let DeviceError::Absent { .. } = error
            && self.wanted == BackendChoice::Auto
        {
            tracing::debug!(%error, "counting groups on the CPU");
        } else {
            tracing::warn!(%error, "GPU window discarded after an error: counting on the CPU");
            match &self.device {
                Some(device) => device.count_failure(),
                None => self.unopened += 1,
            }
        }
        self.lost |= !error.is_recoverable();
    }
}

fn fits_in_bytes(snapshot: &WindowSnapshot<'_>, places: &[usize], table: &CountedTable, bytes: u64) -> bool {
    let (subject_bytes, people) =
        if snapshot.subjects.is_some() { (4, MAX_SUBJECTS_PER_ROW * snapshot.capacity as u64) } else { (0, 0) };
    let stream = snapshot.columns.iter().map(|codes| width(code_bound(codes))).sum::<u64>() + subject_bytes;
    let own = (0..table.width()).map(|column| width(table.cardinality(column) as u64)).sum::<u64>() + subject_bytes;
    let codes = places.iter().map(|place| code_bound(snapshot.columns[*place])).sum::<u64>() + people;
    let rows = |row_bytes: u64, rows: usize| row_bytes.saturating_mul(rows as u64);
    [rows(stream, snapshot.capacity), rows(own, table.rows()), 4 * codes].into_iter().fold(0, u64::saturating_add)
        <= bytes
}

fn code_bound(codes: &[u32]) -> u64 {
    codes.iter().max().map_or(1, |code| u64::from(*code) + 1)
}

fn assign_subject_numbers(people: &mut HashMap<u64, u32>, subjects: &[u64]) -> Vec<u32> {
    let number = |subject: &u64| {
        let next = people.len() as u32;
        *people.entry(*subject).or_insert(next)
    };
    subjects.iter().map(number).collect()
}

impl DeviceRows {
    fn fill(device: &Arc<dyn Device>, from: &WindowSnapshot<'_>) -> Result<Self, DeviceError> {
        let bounds: Vec<u64> = from.columns.iter().map(|codes| code_bound(codes)).collect();
        let window = ResidentWindow::new(device, from.capacity, &bounds, from.subjects.is_some())?;
        let people = from.subjects.map(|_| HashMap::new());
        let mut held =
            Self { window, capacity: from.capacity, numbering: from.numbering, to: from.to, subject_numbers: people };
        held.push(&from.columns, from.subjects)?;
        Ok(held)
    }

    fn push(&mut self, columns: &[&[u32]], subjects: Option<&[u64]>) -> Result<(), DeviceError> {
        let numbers = self
            .subject_numbers
            .as_mut()
            .zip(subjects)
            .map(|(people, subjects)| assign_subject_numbers(people, subjects));
        self.window.push(columns, numbers.as_deref())
    }

    fn apply_arrival(&mut self, new: &WindowArrival) -> Result<(), DeviceError> {
        let crowded = self
            .subject_numbers
            .as_ref()
            .is_some_and(|people| people.len() as u64 > MAX_SUBJECTS_PER_ROW * self.capacity as u64);
        if new.numbering != self.numbering || new.from != self.to || crowded {
            self.window.clear();
            self.subject_numbers.iter_mut().for_each(HashMap::clear);
        }
        (self.numbering, self.to) = (new.numbering, new.to);
        let columns: Vec<&[u32]> = new.columns.iter().map(Vec::as_slice).collect();
        self.push(&columns, new.subjects.as_deref())
    }

    /// Snapshot and stored rows must end at one row, without gaps.
    fn contains_snapshot(&self, snapshot: &WindowSnapshot<'_>) -> bool {
        (self.numbering, self.to, self.capacity) == (snapshot.numbering, snapshot.to, snapshot.capacity)
            && self.window.rows() >= snapshot.rows() as u64
            && self.window.width() == snapshot.columns.len()
            && self.subject_numbers.is_some() == snapshot.subjects.is_some()
    }

    fn recoded(
        &self,
        snapshot: &WindowSnapshot<'_>,
        places: &[usize],
        table: &CountedTable,
    ) -> Result<ResidentWindow, DeviceError> {
        let column = |(column, &place): (usize, &usize)| {
            let own = snapshot.columns[place].iter().copied().map(Some);
            Ok((place, build_code_map(self.window.bound(place), own, table.column(column))?))
        };
        let columns = places.iter().enumerate().map(column).collect::<Result<Vec<_>, DeviceError>>()?;
        let people = self.subject_numbers.as_ref().zip(snapshot.subjects).zip(table.subject_numbers());
        let subjects = people.map(|((people, subjects), numbers)| {
            let own = subjects.iter().map(|subject| people.get(subject).copied());
            build_code_map(self.window.subject_bound().unwrap_or(0), own, numbers)
        });
        self.window.recoded(table.rows() as u64, &columns, subjects.transpose()?.as_deref())
    }
}

/// `codes[own]` is the table code in the same row.
fn build_code_map(bound: u64, own: impl Iterator<Item = Option<u32>>, tables: &[u32]) -> Result<Vec<u32>, DeviceError> {
    let mut codes = vec![0; bound as usize];
    for (own, table) in own.zip(tables) {
        let code = own.and_then(|own| codes.get_mut(own as usize)).ok_or_else(|| DeviceError::Failed {
            call: "recode",
            reason: "the window on the device differs from the window of the stream".to_owned(),
        })?;
        *code = *table;
    }
    Ok(codes)
}

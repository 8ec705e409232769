//! The window of a stream on the device, from one count to the next: what arrives is uploaded, what was there stays.
//!
//! The rows lie in the codes of the stream, which last as long as its dictionaries. A count asks about a table of the same
//! rows in codes of its own; it is made on the device, from which code stands for which.

use super::counter::{Budget, CudaCounter};
use super::device::{Device, DeviceError};
use super::source::Source;
use super::usage::{Metered, Used};
use super::window::{ResidentWindow, width};
use crate::counting::backend::{Chosen, Wanted, is_worth_a_trial, trial};
use crate::counting::{CountedTable, CpuCounter};
use hashbrown::HashMap;
use std::sync::Arc;

/// Subjects that have a number, for each row of the window: beyond, the numbers begin anew.
const MOST_PEOPLE: u64 = 2;

/// New rows of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Which numbering the codes are of: another one after every renumbering of some.
    pub numbering: u64,
    /// Rows of the stream before these, and up to the last of these.
    pub from: u64,
    /// Rows of the stream up to the last of these.
    pub to: u64,
    /// Codes, a column each, of those rows that count for somebody.
    pub columns: Vec<Vec<u32>>,
    /// Whom they count for, where the stream has subjects.
    pub subjects: Option<Vec<u64>>,
}

/// All rows of the window at one moment, in the codes in which they have arrived.
#[derive(Clone, Debug)]
pub struct Snapshot<'s> {
    /// Which numbering the codes are of.
    pub numbering: u64,
    /// Rows of the stream up to the last of these.
    pub to: u64,
    /// Rows that the window holds at most.
    pub capacity: usize,
    /// A code a row, by column.
    pub columns: Vec<&'s [u32]>,
    /// Whom each row counts for, where the stream has subjects.
    pub subjects: Option<&'s [u64]>,
}

impl Snapshot<'_> {
    fn rows(&self) -> usize {
        self.columns.first().map_or_else(|| self.subjects.map_or(0, <[u64]>::len), |codes| codes.len())
    }
}

/// Opens the device.
type Open = dyn Fn() -> Result<Arc<dyn Device>, DeviceError> + Send;

/// Counts the window of a stream again and again, on the device that holds it where that is wanted, else on the CPU.
///
/// Whatever fails on the device, the CPU answers in the same count; that is logged and counted. Without a device that is
/// wanted it holds nothing and does nothing.
///
/// Memory on the device: capacity × (Σ width + 4 where there are subjects), widths by the largest code of the stream;
/// while it counts, as much again by the codes of the table, four bytes a code that stands for another, and the scratch of
/// two batches ([`Budget`]). On the host: a number for each subject, of at most twice as many as the window has rows.
pub struct KeptWindow {
    wanted: Wanted,
    open: Box<Open>,
    /// Where it was opened: it counts what it is asked for.
    device: Option<Arc<Metered>>,
    /// It is not asked again.
    lost: bool,
    held: Option<Held>,
    /// Times that it could not be opened although it was asked for.
    unopened: u64,
    fills: u64,
}

/// Rows on the device.
struct Held {
    window: ResidentWindow,
    capacity: usize,
    numbering: u64,
    /// Rows of the stream up to the last one that is held; there is no gap before it.
    to: u64,
    people: Option<HashMap<u64, u32>>,
}

impl KeptWindow {
    /// Nothing yet; the device is opened when it is first needed.
    pub fn new(wanted: Wanted, open: impl Fn() -> Result<Arc<dyn Device>, DeviceError> + Send + 'static) -> Self {
        Self { wanted, open: Box::new(open), device: None, lost: false, held: None, unopened: 0, fills: 0 }
    }

    /// May a table of this size be counted on the device? The CPU's is not even looked for.
    pub fn may_ask(&self, rows: usize, width: usize) -> bool {
        let worth = match self.wanted {
            Wanted::Cpu => false,
            Wanted::Auto => is_worth_a_trial(rows, width),
            Wanted::Device => true,
        };
        worth && !self.lost && rows > 0 && width > 0
    }

    /// Is there a window on the device that wants to be told of what arrives?
    pub fn follows(&self) -> bool {
        self.held.is_some()
    }

    /// What the device was used for so far.
    pub fn used(&self) -> Used {
        let used = self.device.as_ref().map_or_else(Used::default, |device| device.used());
        Used { failures: used.failures + self.unopened, ..used }
    }

    /// Times that a whole window was uploaded.
    pub fn fills(&self) -> u64 {
        self.fills
    }

    /// Has the device failed for good? One that was never there has not failed, unless it was asked for by name.
    pub fn is_lost(&self) -> bool {
        self.lost && self.used().failures > 0
    }

    /// Takes new rows. What does not go on where the rows on the device end replaces them.
    pub fn arrive(&mut self, new: &Arrival) {
        let Some(held) = &mut self.held else { return };
        if new.columns.len() != held.window.width() || new.subjects.is_some() != held.people.is_some() {
            self.held = None;
        } else if let Err(error) = held.take(new) {
            self.failed(&error);
        }
    }

    /// The counter for `table`, which holds the rows of the snapshot in codes of its own; its columns are those of the
    /// snapshot at `places`.
    ///
    /// The counter is to be given back with [`Self::counted`].
    pub fn counter<'t>(
        &mut self,
        snapshot: &Snapshot<'_>,
        places: &[usize],
        table: &'t CountedTable,
        k: u32,
        threads: usize,
    ) -> Chosen<'t> {
        if !self.may_ask(table.rows(), table.width()) {
            self.held = None;
            return Chosen::Cpu(CpuCounter::new(table, threads), None);
        }
        let counter = match self.on_device(snapshot, places, table, threads) {
            Ok(counter) => counter,
            Err(error) => {
                self.failed(&error);
                return Chosen::Cpu(CpuCounter::new(table, threads), None);
            }
        };
        if self.wanted == Wanted::Device {
            return Chosen::Device(Box::new(counter), None);
        }
        let cpu = CpuCounter::new(table, threads);
        let failures = self.used().failures;
        let tried = trial(&counter, &cpu, table.width(), k);
        match tried {
            Ok(trial) if trial.prefers_the_device() && self.used().failures == failures => {
                Chosen::Device(Box::new(counter), Some(trial))
            }
            tried => {
                self.lost |= counter.has_lost_its_device();
                self.held = None;
                Chosen::Cpu(cpu, tried.ok())
            }
        }
    }

    /// The counter for pairs of the columns of the snapshot, where its window is on the device; `table` holds the same rows
    /// in codes of its own, all columns, and nobody's subjects. To be given back with [`Self::counted`].
    pub fn pairs<'t>(
        &mut self,
        snapshot: &Snapshot<'_>,
        table: &'t CountedTable,
        threads: usize,
    ) -> Option<Chosen<'t>> {
        if self.held.is_none() || !self.may_ask(table.rows(), table.width()) {
            return None;
        }
        let places: Vec<usize> = (0..table.width()).collect();
        match self.on_device(snapshot, &places, table, threads) {
            Ok(counter) => Some(Chosen::Device(Box::new(counter), None)),
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    /// Takes a counter back.
    pub fn counted(&mut self, counter: Chosen<'_>) {
        if let Chosen::Device(counter, _) = counter
            && counter.has_lost_its_device()
        {
            self.lost = true;
            self.held = None;
        }
    }

    fn on_device<'t>(
        &mut self,
        snapshot: &Snapshot<'_>,
        places: &[usize],
        table: &'t CountedTable,
        threads: usize,
    ) -> Result<CudaCounter<'t>, DeviceError> {
        let usage = match &self.device {
            Some(usage) => Arc::clone(usage),
            None => Arc::clone(self.device.insert(Arc::new(Metered::new(&(self.open)()?)))),
        };
        let device: Arc<dyn Device> = usage.clone();
        let budget = Budget::of(&device);
        let source = if fits(snapshot, places, table, budget.rows_bytes) {
            if !self.held.as_ref().is_some_and(|held| held.holds(snapshot)) {
                // First give back, then take.
                self.held = None;
                self.held = Some(Held::fill(&device, snapshot)?);
                self.fills += 1;
            }
            let held = self.held.as_ref().expect("it was filled");
            Source::Whole(held.recoded(snapshot, places, table)?)
        } else {
            self.held = None;
            Source::of(&device, table, budget.rows_bytes)?
        };
        CudaCounter::over(usage, table, source, threads, budget.scratch_bytes)
    }

    /// What is on the device is given up; after anything but a lack of memory, the device too.
    fn failed(&mut self, error: &DeviceError) {
        self.held = None;
        if let DeviceError::Absent { .. } = error
            && self.wanted == Wanted::Auto
        {
            tracing::debug!(%error, "groups are counted on the CPU");
        } else {
            tracing::warn!(%error, "the window on the GPU is given up: the CPU counts");
            match &self.device {
                Some(device) => device.failed(),
                None => self.unopened += 1,
            }
        }
        self.lost |= !error.leaves_the_device_usable();
    }
}

/// Do the window, the table beside it and which code stands for which fit into `bytes`?
fn fits(snapshot: &Snapshot<'_>, places: &[usize], table: &CountedTable, bytes: u64) -> bool {
    let (subject_bytes, people) =
        if snapshot.subjects.is_some() { (4, MOST_PEOPLE * snapshot.capacity as u64) } else { (0, 0) };
    let stream = snapshot.columns.iter().map(|codes| width(bound(codes))).sum::<u64>() + subject_bytes;
    let own = (0..table.width()).map(|column| width(table.cardinality(column) as u64)).sum::<u64>() + subject_bytes;
    let codes = places.iter().map(|place| bound(snapshot.columns[*place])).sum::<u64>() + people;
    let rows = |row_bytes: u64, rows: usize| row_bytes.saturating_mul(rows as u64);
    [rows(stream, snapshot.capacity), rows(own, table.rows()), 4 * codes].into_iter().fold(0, u64::saturating_add)
        <= bytes
}

fn bound(codes: &[u32]) -> u64 {
    codes.iter().max().map_or(1, |code| u64::from(*code) + 1)
}

/// The numbers of subjects, new ones for those that have none yet.
fn numbered(people: &mut HashMap<u64, u32>, subjects: &[u64]) -> Vec<u32> {
    let number = |subject: &u64| {
        let next = people.len() as u32;
        *people.entry(*subject).or_insert(next)
    };
    subjects.iter().map(number).collect()
}

impl Held {
    fn fill(device: &Arc<dyn Device>, from: &Snapshot<'_>) -> Result<Self, DeviceError> {
        let bounds: Vec<u64> = from.columns.iter().map(|codes| bound(codes)).collect();
        let window = ResidentWindow::new(device, from.capacity, &bounds, from.subjects.is_some())?;
        let people = from.subjects.map(|_| HashMap::new());
        let mut held = Self { window, capacity: from.capacity, numbering: from.numbering, to: from.to, people };
        held.push(&from.columns, from.subjects)?;
        Ok(held)
    }

    fn push(&mut self, columns: &[&[u32]], subjects: Option<&[u64]>) -> Result<(), DeviceError> {
        let numbers = self.people.as_mut().zip(subjects).map(|(people, subjects)| numbered(people, subjects));
        self.window.push(columns, numbers.as_deref())
    }

    fn take(&mut self, new: &Arrival) -> Result<(), DeviceError> {
        let crowded =
            self.people.as_ref().is_some_and(|people| people.len() as u64 > MOST_PEOPLE * self.capacity as u64);
        if new.numbering != self.numbering || new.from != self.to || crowded {
            self.window.clear();
            self.people.iter_mut().for_each(HashMap::clear);
        }
        (self.numbering, self.to) = (new.numbering, new.to);
        let columns: Vec<&[u32]> = new.columns.iter().map(Vec::as_slice).collect();
        self.push(&columns, new.subjects.as_deref())
    }

    /// Are the rows of the snapshot the newest ones here? Both end at the same row, and neither has a gap.
    fn holds(&self, snapshot: &Snapshot<'_>) -> bool {
        (self.numbering, self.to, self.capacity) == (snapshot.numbering, snapshot.to, snapshot.capacity)
            && self.window.rows() >= snapshot.rows() as u64
            && self.window.width() == snapshot.columns.len()
            && self.people.is_some() == snapshot.subjects.is_some()
    }

    /// The rows of the snapshot in the codes of the table.
    fn recoded(
        &self,
        snapshot: &Snapshot<'_>,
        places: &[usize],
        table: &CountedTable,
    ) -> Result<ResidentWindow, DeviceError> {
        let column = |(column, &place): (usize, &usize)| {
            let own = snapshot.columns[place].iter().copied().map(Some);
            Ok((place, standing(self.window.bound(place), own, table.column(column))?))
        };
        let columns = places.iter().enumerate().map(column).collect::<Result<Vec<_>, DeviceError>>()?;
        let people = self.people.as_ref().zip(snapshot.subjects).zip(table.subject_numbers());
        let subjects = people.map(|((people, subjects), numbers)| {
            let own = subjects.iter().map(|subject| people.get(subject).copied());
            standing(self.window.people().unwrap_or(0), own, numbers)
        });
        self.window.recoded(table.rows() as u64, &columns, subjects.transpose()?.as_deref())
    }
}

/// Which code stands for which: `codes[own]` is the one of the table in the same row.
fn standing(bound: u64, own: impl Iterator<Item = Option<u32>>, tables: &[u32]) -> Result<Vec<u32>, DeviceError> {
    let mut codes = vec![0; bound as usize];
    for (own, table) in own.zip(tables) {
        let code = own.and_then(|own| codes.get_mut(own as usize)).ok_or_else(|| DeviceError::Failed {
            call: "recode",
            reason: "the window on the device is not that of the stream".to_owned(),
        })?;
        *code = *table;
    }
    Ok(codes)
}

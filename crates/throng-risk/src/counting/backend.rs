//! Which backend counts: the one that was asked for, or the one that was faster on the table at hand.

use super::attribute_set::AttributeSet;
use super::columns::CountedTable;
use super::counter::{ComputeError, GroupCounter};
use super::cpu::CpuCounter;
use super::cuda::{CudaCounter, Device, DeviceError, Driver, Used};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sets of the trial at most.
const SETS: usize = 64;

/// Tables of fewer cells are counted on the CPU without a trial: it is done before a device has begun.
const WORTH_A_TRIAL: usize = 1 << 22;

/// What a trial of both backends took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Trial {
    /// Sets that each judged.
    pub sets: usize,
    /// Time of the CPU, in microseconds.
    pub cpu_microseconds: u64,
    /// Time of the device, in microseconds.
    pub cuda_microseconds: u64,
}

impl Trial {
    /// Was the device faster?
    pub fn prefers_the_device(&self) -> bool {
        self.cuda_microseconds < self.cpu_microseconds
    }
}

/// Is a table large enough that a device may win?
pub fn is_worth_a_trial(rows: usize, width: usize) -> bool {
    rows.saturating_mul(width) >= WORTH_A_TRIAL
}

/// Pairs and triples of columns, evenly from all of them.
fn sample(width: usize) -> Vec<AttributeSet> {
    let pairs = (0..width).flat_map(|a| (a + 1..width).map(move |b| [a, b]));
    let mut sets: Vec<AttributeSet> = pairs.map(AttributeSet::from_iter).collect();
    if width > 2 {
        sets.extend((0..width).map(|a| AttributeSet::from_iter([a, (a + 1) % width, (a + 2) % width])));
    }
    let step = sets.len().div_ceil(SETS).max(1);
    sets.into_iter().step_by(step).collect()
}

/// Judges some sets with both backends and takes the time of each; the device's second time counts, after its memory was
/// taken.
pub(super) fn trial(
    device: &CudaCounter<'_>,
    cpu: &CpuCounter<'_>,
    width: usize,
    k: u32,
) -> Result<Trial, ComputeError> {
    let sets = sample(width);
    let time = |counter: &dyn GroupCounter| -> Result<Duration, ComputeError> {
        counter.judge(&sets, k, &|| false)?;
        let started = Instant::now();
        counter.judge(&sets, k, &|| false)?;
        Ok(started.elapsed())
    };
    let (cuda, cpu) = (time(device)?, time(cpu)?);
    Ok(Trial { sets: sets.len(), cpu_microseconds: cpu.as_micros() as u64, cuda_microseconds: cuda.as_micros() as u64 })
}

/// The backend that was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// The faster one on this table.
    #[default]
    Auto,
    /// This machine's cores.
    Cpu,
    /// The device, or an error where there is none.
    Device,
}

/// The counter to use, and how it was chosen.
#[allow(clippy::large_enum_variant, reason = "there is one for a table")]
pub enum Chosen<'a> {
    /// This machine's cores.
    Cpu(CpuCounter<'a>, Option<Trial>),
    /// A device.
    Device(Box<CudaCounter<'a>>, Option<Trial>),
}

impl<'a> Chosen<'a> {
    /// The counter for a table, where `open` opens the device.
    ///
    /// # Errors
    /// With [`Wanted::Device`], when the device cannot be used.
    pub fn for_table(
        wanted: Wanted,
        table: &'a CountedTable,
        k: u32,
        threads: usize,
        open: impl FnOnce() -> Result<Arc<dyn Device>, DeviceError>,
    ) -> Result<Self, DeviceError> {
        let opened = match wanted {
            Wanted::Cpu => return Ok(Self::Cpu(CpuCounter::new(table, threads), None)),
            Wanted::Auto if !is_worth_a_trial(table.rows(), table.width()) => {
                return Ok(Self::Cpu(CpuCounter::new(table, threads), None));
            }
            Wanted::Auto | Wanted::Device => open().and_then(|device| CudaCounter::new(&device, table, threads, None)),
        };
        match (wanted, opened) {
            (Wanted::Device, opened) => Ok(Self::Device(Box::new(opened?), None)),
            (_, Err(error)) => {
                tracing::debug!(%error, "groups are counted on the CPU");
                Ok(Self::Cpu(CpuCounter::new(table, threads), None))
            }
            (_, Ok(device)) => {
                let cpu = CpuCounter::new(table, threads);
                match trial(&device, &cpu, table.width(), k) {
                    Ok(trial) if trial.prefers_the_device() && device.used().failures == 0 => {
                        Ok(Self::Device(Box::new(device), Some(trial)))
                    }
                    tried => Ok(Self::Cpu(cpu, tried.ok())),
                }
            }
        }
    }

    /// The backend as it is asked.
    pub fn counter(&self) -> &dyn GroupCounter {
        match self {
            Self::Cpu(counter, _) => counter,
            Self::Device(counter, _) => counter.as_ref(),
        }
    }

    /// The counter of the device, where it was chosen.
    pub fn on_device(&self) -> Option<&CudaCounter<'a>> {
        match self {
            Self::Cpu(..) => None,
            Self::Device(counter, _) => Some(counter),
        }
    }

    /// What the device was used for, where it was chosen.
    pub fn used(&self) -> Option<Used> {
        self.on_device().map(CudaCounter::used)
    }

    /// `cpu` or `cuda`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cpu(..) => "cpu",
            Self::Device(..) => "cuda",
        }
    }
}

/// The device of this machine, opened once for the whole process.
///
/// # Errors
/// Where there is none that can be used: the same each time.
pub fn shared_device() -> Result<Arc<dyn Device>, DeviceError> {
    Driver::shared()
}

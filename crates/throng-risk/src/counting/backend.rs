//! Selection of the counting backend.

use super::attribute_set::AttributeSet;
use super::counted_table::CountedTable;
use super::cpu::CpuCounter;
use super::cuda::{CudaCounter, CudaDriver, Device, DeviceError, DeviceUsage};
use super::group_counter::{ComputeError, GroupCounter};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MAX_TRIAL_SETS: usize = 64;

const MIN_TRIAL_CELLS: usize = 1 << 22;

/// Timings of both backends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BackendTrial {
    /// Sets judged by each backend.
    pub sets: usize,
    /// CPU time in microseconds.
    pub cpu_microseconds: u64,
    /// Device time in microseconds.
    pub cuda_microseconds: u64,
}

impl BackendTrial {
    /// Returns true if the device was faster.
    pub fn prefers_device(&self) -> bool {
        self.cuda_microseconds < self.cpu_microseconds
    }
}

/// Returns true if a device may be faster for this table size.
pub fn is_trial_worthwhile(rows: usize, width: usize) -> bool {
    rows.saturating_mul(width) >= MIN_TRIAL_CELLS
}

fn sample_attribute_sets(width: usize) -> Vec<AttributeSet> {
    let pairs = (0..width).flat_map(|a| (a + 1..width).map(move |b| [a, b]));
    let mut sets: Vec<AttributeSet> = pairs.map(AttributeSet::from_iter).collect();
    if width > 2 {
        sets.extend((0..width).map(|a| AttributeSet::from_iter([a, (a + 1) % width, (a + 2) % width])));
    }
    let step = sets.len().div_ceil(MAX_TRIAL_SETS).max(1);
    sets.into_iter().step_by(step).collect()
}

/// Only the second run of each counts.
pub(super) fn run_trial(
    device: &CudaCounter<'_>,
    cpu: &CpuCounter<'_>,
    width: usize,
    k: u32,
) -> Result<BackendTrial, ComputeError> {
    let sets = sample_attribute_sets(width);
    let time = |counter: &dyn GroupCounter| -> Result<Duration, ComputeError> {
        counter.judge(&sets, k, &|| false)?;
        let started = Instant::now();
        counter.judge(&sets, k, &|| false)?;
        Ok(started.elapsed())
    };
    let (cuda, cpu) = (time(device)?, time(cpu)?);
    Ok(BackendTrial {
        sets: sets.len(),
        cpu_microseconds: cpu.as_micros() as u64,
        cuda_microseconds: cuda.as_micros() as u64,
    })
}

/// Requested backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// Faster backend.
    #[default]
    Auto,
    /// CPU.
    Cpu,
    /// Device, or an error.
    Device,
}

/// Selected counter and its trial.
#[allow(clippy::large_enum_variant, reason = "there is one for a table")]
pub enum SelectedBackend<'a> {
    /// CPU counter.
    Cpu(CpuCounter<'a>, Option<BackendTrial>),
    /// Device counter.
    Device(Box<CudaCounter<'a>>, Option<BackendTrial>),
}

impl<'a> SelectedBackend<'a> {
    /// Selects the counter for a table; `open` opens the device.
    ///
    /// # Errors
    /// With [`BackendChoice::Device`], if the device cannot be used.
    pub fn for_table(
        wanted: BackendChoice,
        table: &'a CountedTable,
        k: u32,
        threads: usize,
        open: impl FnOnce() -> Result<Arc<dyn Device>, DeviceError>,
    ) -> Result<Self, DeviceError> {
        let opened = match wanted {
            BackendChoice::Cpu => return Ok(Self::Cpu(CpuCounter::new(table, threads), None)),
            BackendChoice::Auto if !is_trial_worthwhile(table.rows(), table.width()) => {
                return Ok(Self::Cpu(CpuCounter::new(table, threads), None));
            }
            BackendChoice::Auto | BackendChoice::Device => {
                open().and_then(|device| CudaCounter::new(&device, table, threads, None))
            }
        };
        match (wanted, opened) {
            (BackendChoice::Device, opened) => Ok(Self::Device(Box::new(opened?), None)),
            (_, Err(error)) => {
                tracing::debug!(%error, "counting groups on the CPU");
                Ok(Self::Cpu(CpuCounter::new(table, threads), None))
            }
            (_, Ok(device)) => {
                let cpu = CpuCounter::new(table, threads);
                match run_trial(&device, &cpu, table.width(), k) {
                    Ok(trial) if trial.prefers_device() && device.usage().failures == 0 => {
                        Ok(Self::Device(Box::new(device), Some(trial)))
                    }
                    tried => Ok(Self::Cpu(cpu, tried.ok())),
                }
            }
        }
    }

    /// Returns the counter.
    pub fn counter(&self) -> &dyn GroupCounter {
        match self {
            Self::Cpu(counter, _) => counter,
            Self::Device(counter, _) => counter.as_ref(),
        }
    }

    /// Returns the selected device counter.
    pub fn device_counter(&self) -> Option<&CudaCounter<'a>> {
        match self {
            Self::Cpu(..) => None,
            Self::Device(counter, _) => Some(counter),
        }
    }

    /// Device usage.
    pub fn device_usage(&self) -> Option<DeviceUsage> {
        self.device_counter().map(CudaCounter::usage)
    }

    /// Returns `cpu` or `cuda`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cpu(..) => "cpu",
            Self::Device(..) => "cuda",
        }
    }
}

/// Returns the shared device, opened once.
///
/// # Errors
/// If no device can be used.
pub fn shared_device() -> Result<Arc<dyn Device>, DeviceError> {
    CudaDriver::shared()
}

//! The GPU of this machine.

use crate::cli::outcome::Failure;
use std::sync::Arc;
use throng_risk::counting::{Device, DeviceError, shared_device};

/// Parses a number above 0, at most 10.
pub(super) fn scale_argument(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if share > 0.0 && share <= 10.0 { Ok(share) } else { Err("a number above 0 and up to 10".to_owned()) }
}

pub(super) fn open_device() -> Result<Arc<dyn Device>, Failure> {
    shared_device().map_err(device_failure)
}

/// An absent device is missing hardware, a failing one a runtime error.
pub(super) fn device_failure(error: DeviceError) -> Failure {
    match error {
        DeviceError::Absent { .. } => Failure::Hardware(error.into()),
        _ => Failure::Running(error.into()),
    }
}

pub(super) fn print_step(step: &str) {
    eprintln!("{step} …");
}

pub(super) fn describe_device(device: &Arc<dyn Device>) -> String {
    let limits = device.limits();
    let gibibytes = limits.memory_bytes as f64 / f64::from(1 << 30);
    let (major, minor) = limits.capability;
    format!(
        "{} (sm_{major}{minor}, {} multiprocessors, {gibibytes:.0} GiB of memory)",
        limits.name, limits.multiprocessors
    )
}

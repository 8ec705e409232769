//! Opening and describing the GPU of this machine.

use crate::cli::outcome::Failure;
use std::sync::Arc;
use throng_risk::counting::{Device, DeviceError, shared_device};

/// Parses a number above 0 and up to 10 from the command line.
pub(super) fn scale_argument(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if share > 0.0 && share <= 10.0 { Ok(share) } else { Err("a number above 0 and up to 10".to_owned()) }
}

/// Opens the device of this machine.
pub(super) fn open_device() -> Result<Arc<dyn Device>, Failure> {
    shared_device().map_err(device_failure)
}

/// Maps an absent device to missing hardware, and a failing device to a runtime error.
pub(super) fn device_failure(error: DeviceError) -> Failure {
    match error {
        DeviceError::Absent { .. } => Failure::Hardware(error.into()),
        _ => Failure::Running(error.into()),
    }
}

/// Prints the current step.
pub(super) fn print_step(step: &str) {
    eprintln!("{step} …");
}

/// Describes a device in one line.
pub(super) fn describe_device(device: &Arc<dyn Device>) -> String {
    let limits = device.limits();
    let gibibytes = limits.memory_bytes as f64 / f64::from(1 << 30);
    let (major, minor) = limits.capability;
    format!(
        "{} (sm_{major}{minor}, {} multiprocessors, {gibibytes:.0} GiB of memory)",
        limits.name, limits.multiprocessors
    )
}

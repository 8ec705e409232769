//! The device of this machine, and what both commands say of it.

use crate::cli::outcome::Failure;
use std::sync::Arc;
use throng_risk::counting::{Device, DeviceError, shared_device};

/// A positive number up to 10, as an argument.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if share > 0.0 && share <= 10.0 { Ok(share) } else { Err("a number above 0 and up to 10".to_owned()) }
}

/// The device of this machine.
pub(super) fn open() -> Result<Arc<dyn Device>, Failure> {
    shared_device().map_err(hardware)
}

/// Without a device it is hardware that is missing; one that is there and fails, failed.
pub(super) fn hardware(error: DeviceError) -> Failure {
    match error {
        DeviceError::Absent { .. } => Failure::Hardware(error.into()),
        _ => Failure::Running(error.into()),
    }
}

/// Says what is being done.
pub(super) fn tell(step: &str) {
    eprintln!("{step} …");
}

/// A device in one line.
pub(super) fn described(device: &Arc<dyn Device>) -> String {
    let limits = device.limits();
    let gibibytes = limits.memory_bytes as f64 / f64::from(1 << 30);
    let (major, minor) = limits.capability;
    format!(
        "{} (sm_{major}{minor}, {} multiprocessors, {gibibytes:.0} GiB of memory)",
        limits.name, limits.multiprocessors
    )
}

//! What a device was used for, in numbers.

use super::device::{Device, DeviceError, Limits, Shape, Ticket};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// How far a device was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Used {
    /// Bytes held on the device.
    pub device_bytes: u64,
    /// The most of them at once.
    pub most_device_bytes: u64,
    /// Kernels that were started.
    pub launches: u64,
    /// Bytes copied to the device.
    pub uploaded_bytes: u64,
    /// Bytes copied back.
    pub downloaded_bytes: u64,
    /// Times that the device failed.
    pub failures: u64,
    /// Candidates that the CPU answered: after a failure, because they did not fit, or because they split nothing.
    pub left_to_the_cpu: u64,
}

/// A device that counts what it is asked.
pub(super) struct Metered {
    device: Arc<dyn Device>,
    meter: Mutex<Meter>,
}

#[derive(Default)]
struct Meter {
    used: Used,
    /// Bytes at each address that was allocated.
    sizes: BTreeMap<u64, u64>,
}

impl Metered {
    pub(super) fn new(device: &Arc<dyn Device>) -> Self {
        Self { device: Arc::clone(device), meter: Mutex::default() }
    }

    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().expect("no count panics with the lock")
    }

    pub(super) fn failed(&self) {
        self.meter().used.failures += 1;
    }

    pub(super) fn left_to_the_cpu(&self, candidates: u64) {
        self.meter().used.left_to_the_cpu += candidates;
    }

    pub(super) fn used(&self) -> Used {
        self.meter().used
    }
}

impl Device for Metered {
    fn limits(&self) -> &Limits {
        self.device.limits()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DeviceError> {
        let address = self.device.allocate(bytes)?;
        let Meter { used, sizes } = &mut *self.meter();
        sizes.insert(address, bytes);
        used.device_bytes += bytes;
        used.most_device_bytes = used.most_device_bytes.max(used.device_bytes);
        Ok(address)
    }

    fn free(&self, address: u64) {
        {
            let Meter { used, sizes } = &mut *self.meter();
            used.device_bytes -= sizes.remove(&address).unwrap_or(0);
        }
        self.device.free(address);
    }

    fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.meter().used.uploaded_bytes += bytes.len() as u64;
        self.device.upload(to, bytes)
    }

    fn fill(&self, at: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.device.fill(at, bytes, value)
    }

    fn launch(&self, kernel: &'static str, shape: Shape, arguments: &[u64]) -> Result<(), DeviceError> {
        self.meter().used.launches += 1;
        self.device.launch(kernel, shape, arguments)
    }

    fn request(&self, from: u64, bytes: usize) -> Result<Ticket, DeviceError> {
        self.meter().used.downloaded_bytes += bytes as u64;
        self.device.request(from, bytes)
    }

    fn collect(&self, ticket: Ticket) -> Result<Vec<u8>, DeviceError> {
        self.device.collect(ticket)
    }
}

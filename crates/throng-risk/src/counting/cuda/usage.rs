//! Device usage counters.

use super::device::{Device, DeviceError, DeviceLimits, DownloadTicket, LaunchShape};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// Usage of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct DeviceUsage {
    /// Allocated device bytes.
    pub device_bytes: u64,
    /// Peak of allocated bytes.
    pub most_device_bytes: u64,
    /// Started kernels.
    pub launches: u64,
    /// Uploaded bytes.
    pub uploaded_bytes: u64,
    /// Downloaded bytes.
    pub downloaded_bytes: u64,
    /// Device failures.
    pub failures: u64,
    /// Candidates counted by the CPU.
    pub left_to_the_cpu: u64,
}

pub(super) struct MeteredDevice {
    device: Arc<dyn Device>,
    meter: Mutex<UsageMeter>,
}

#[derive(Default)]
struct UsageMeter {
    used: DeviceUsage,
    sizes: BTreeMap<u64, u64>,
}

impl MeteredDevice {
    pub(super) fn new(device: &Arc<dyn Device>) -> Self {
        Self { device: Arc::clone(device), meter: Mutex::default() }
    }

    fn meter(&self) -> MutexGuard<'_, UsageMeter> {
        self.meter.lock().expect("no count panics with the lock")
    }

    pub(super) fn count_failure(&self) {
        self.meter().used.failures += 1;
    }

    pub(super) fn record_cpu_fallback(&self, candidates: u64) {
        self.meter().used.left_to_the_cpu += candidates;
    }

    pub(super) fn usage(&self) -> DeviceUsage {
        self.meter().used
    }
}

impl Device for MeteredDevice {
    fn limits(&self) -> &DeviceLimits {
        self.device.limits()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DeviceError> {
        let address = self.device.allocate(bytes)?;
        let UsageMeter { used, sizes } = &mut *self.meter();
        sizes.insert(address, bytes);
        used.device_bytes += bytes;
        used.most_device_bytes = used.most_device_bytes.max(used.device_bytes);
        Ok(address)
    }

    fn free(&self, address: u64) {
        {
            let UsageMeter { used, sizes } = &mut *self.meter();
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

    fn launch(&self, kernel: &'static str, shape: LaunchShape, arguments: &[u64]) -> Result<(), DeviceError> {
        self.meter().used.launches += 1;
        self.device.launch(kernel, shape, arguments)
    }

    fn request(&self, from: u64, bytes: usize) -> Result<DownloadTicket, DeviceError> {
        self.meter().used.downloaded_bytes += bytes as u64;
        self.device.request(from, bytes)
    }

    fn collect(&self, ticket: DownloadTicket) -> Result<Vec<u8>, DeviceError> {
        self.device.collect(ticket)
    }
}

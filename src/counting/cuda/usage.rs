//! What a device was used for, in numbers.

use super::device::{Device, DeviceError, Limits, Shape, Ticket};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

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
    sizes: Mutex<BTreeMap<u64, u64>>,
    bytes: AtomicU64,
    most_bytes: AtomicU64,
    launches: AtomicU64,
    uploaded: AtomicU64,
    downloaded: AtomicU64,
    failures: AtomicU64,
    left_to_the_cpu: AtomicU64,
}

impl Metered {
    pub(super) fn new(device: &Arc<dyn Device>) -> Self {
        Self {
            device: Arc::clone(device),
            sizes: Mutex::default(),
            bytes: AtomicU64::new(0),
            most_bytes: AtomicU64::new(0),
            launches: AtomicU64::new(0),
            uploaded: AtomicU64::new(0),
            downloaded: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            left_to_the_cpu: AtomicU64::new(0),
        }
    }

    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn left_to_the_cpu(&self, candidates: u64) {
        self.left_to_the_cpu.fetch_add(candidates, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> Used {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Used {
            device_bytes: read(&self.bytes),
            most_device_bytes: read(&self.most_bytes),
            launches: read(&self.launches),
            uploaded_bytes: read(&self.uploaded),
            downloaded_bytes: read(&self.downloaded),
            failures: read(&self.failures),
            left_to_the_cpu: read(&self.left_to_the_cpu),
        }
    }
}

impl Device for Metered {
    fn limits(&self) -> &Limits {
        self.device.limits()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DeviceError> {
        let address = self.device.allocate(bytes)?;
        self.sizes.lock().expect("no allocation panics with the lock").insert(address, bytes);
        let now = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most_bytes.fetch_max(now, Ordering::Relaxed);
        Ok(address)
    }

    fn free(&self, address: u64) {
        let bytes = self.sizes.lock().expect("no allocation panics with the lock").remove(&address);
        self.bytes.fetch_sub(bytes.unwrap_or(0), Ordering::Relaxed);
        self.device.free(address);
    }

    fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.uploaded.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.device.upload(to, bytes)
    }

    fn fill(&self, at: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.device.fill(at, bytes, value)
    }

    fn launch(&self, kernel: &'static str, shape: Shape, arguments: &[u64]) -> Result<(), DeviceError> {
        self.launches.fetch_add(1, Ordering::Relaxed);
        self.device.launch(kernel, shape, arguments)
    }

    fn request(&self, from: u64, bytes: usize) -> Result<Ticket, DeviceError> {
        self.downloaded.fetch_add(bytes as u64, Ordering::Relaxed);
        self.device.request(from, bytes)
    }

    fn collect(&self, ticket: Ticket) -> Result<Vec<u8>, DeviceError> {
        self.device.collect(ticket)
    }
}

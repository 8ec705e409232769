//! Device interface, implemented by [`driver`](super::driver) and by an emulation for tests.

use std::sync::Arc;

/// Properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Manufacturer's name.
    pub name: String,
    /// Compute capability, such as (9, 0).
    pub capability: (u32, u32),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Threads per block, a multiple of 32.
    pub threads: u32,
    /// Shared memory per block without opt-in, in bytes.
    pub shared_bytes: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Initially free memory.
    pub free_bytes: u64,
    /// Clock frequency.
    pub clock_hertz: u64,
}

/// Device failure; the CPU then computes the result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum DeviceError {
    /// No device or driver.
    #[error("no usable CUDA device: {reason}")]
    Absent { reason: String },
    /// Compilation of the kernels failed.
    #[error("kernel compilation failed for {architecture}: {log}")]
    Compile { architecture: String, log: String },
    #[error("not enough device memory for {bytes} more bytes: raise the memory budget, or count on the CPU")]
    OutOfMemory { bytes: u64 },
    /// Failed call; most failures are permanent.
    #[error("{call} failed on the device: {reason}")]
    Failed { call: &'static str, reason: String },
    /// Full hash table of a kernel.
    #[error("a table on the device is full")]
    Overflow,
}

impl DeviceError {
    /// Returns true if the device can still run batches.
    pub fn is_recoverable(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. } | Self::Overflow)
    }
}

/// Shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks along x: candidates or groups.
    pub columns: u32,
    /// Blocks along y: stretches of rows or cells, at most 65,535.
    pub rows: u32,
    /// Threads per block.
    pub threads: u32,
    /// Dynamic shared memory per block, in bytes.
    pub shared_bytes: u32,
}

/// Requested download.
#[derive(Debug)]
pub struct DownloadTicket(pub(super) u64);

/// Device with one queue: calls run in order, and only [`Device::collect`] waits.
pub trait Device: Send + Sync {
    /// Device properties.
    fn limits(&self) -> &DeviceLimits;

    /// Allocates undefined memory at a multiple of 16.
    fn allocate(&self, bytes: u64) -> Result<u64, DeviceError>;

    /// Frees memory after all previous calls.
    fn free(&self, address: u64);

    /// Copies bytes to the device; the caller may overwrite them on return.
    fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Sets each of `bytes` bytes to `value`.
    fn fill(&self, at: u64, bytes: u64, value: u8) -> Result<(), DeviceError>;

    /// Starts a kernel with arguments of eight bytes.
    fn launch(&self, kernel: &'static str, shape: LaunchShape, arguments: &[u64]) -> Result<(), DeviceError>;

    /// Starts a download after all previous calls.
    fn request(&self, from: u64, bytes: usize) -> Result<DownloadTicket, DeviceError>;

    /// Waits for a download.
    fn collect(&self, ticket: DownloadTicket) -> Result<Vec<u8>, DeviceError>;
}

pub(super) struct DeviceMemory {
    device: Arc<dyn Device>,
    pub(super) address: u64,
    pub(super) bytes: u64,
}

impl DeviceMemory {
    pub(super) fn new(device: &Arc<dyn Device>, bytes: u64) -> Result<Self, DeviceError> {
        let bytes = bytes.max(16);
        Ok(Self { device: Arc::clone(device), address: device.allocate(bytes)?, bytes })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.device.free(self.address);
    }
}

/// Device that poisons new memory, to detect reads before writes.
pub struct PoisonedDevice(pub Arc<dyn Device>);

impl Device for PoisonedDevice {
    fn limits(&self) -> &DeviceLimits {
        self.0.limits()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DeviceError> {
        let address = self.0.allocate(bytes)?;
        self.0.fill(address, bytes, 0xa5)?;
        Ok(address)
    }

    fn free(&self, address: u64) {
        self.0.free(address);
    }

    fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.0.upload(to, bytes)
    }

    fn fill(&self, at: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.0.fill(at, bytes, value)
    }

    fn launch(&self, kernel: &'static str, shape: LaunchShape, arguments: &[u64]) -> Result<(), DeviceError> {
        self.0.launch(kernel, shape, arguments)
    }

    fn request(&self, from: u64, bytes: usize) -> Result<DownloadTicket, DeviceError> {
        self.0.request(from, bytes)
    }

    fn collect(&self, ticket: DownloadTicket) -> Result<Vec<u8>, DeviceError> {
        self.0.collect(ticket)
    }
}

//! What the counting asks of a device: memory, copies, launches, all in the order in which they are asked.
//!
//! Two implementations: [`driver`](super::driver) on a CUDA device, and in tests an emulation of one. Everything above
//! this trait is the same for both.

use std::sync::Arc;

/// What a device has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// As its maker calls it.
    pub name: String,
    /// Compute capability, such as (9, 0).
    pub capability: (u32, u32),
    /// How many there are: blocks run side by side on them.
    pub multiprocessors: u32,
    /// Threads of a block that the launches take, a multiple of 32.
    pub threads: u32,
    /// Shared memory that a block may take without asking for more, in bytes.
    pub shared_bytes: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// Bytes of it that nobody had taken at the start.
    pub free_bytes: u64,
    /// Cycles a second.
    pub clock_hertz: u64,
}

/// What failed on a device. The answer is then the CPU's to give.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each case says it")]
pub enum DeviceError {
    /// There is none, or no driver for it.
    #[error("no CUDA device can be used: {reason}")]
    Absent { reason: String },
    /// The kernels do not compile for it.
    #[error("the kernels do not compile for {architecture}: {log}")]
    Compile { architecture: String, log: String },
    #[error("the device has no room for {bytes} bytes more: raise the memory budget, or count on the CPU")]
    OutOfMemory { bytes: u64 },
    /// A call failed; after most of these the device is lost to the process.
    #[error("{call} failed on the device: {reason}")]
    Failed { call: &'static str, reason: String },
    /// A table of the kernels was too small for what they met.
    #[error("a table on the device had no room left")]
    Overflow,
}

impl DeviceError {
    /// Is the device good for another batch?
    pub fn leaves_the_device_usable(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. } | Self::Overflow)
    }
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks along x: candidates, or groups of them.
    pub columns: u32,
    /// Blocks along y: stretches of rows or cells. At most 65,535.
    pub rows: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
}

/// A download that was asked for.
#[derive(Debug)]
pub struct Ticket(pub(super) u64);

/// A device with one queue: what is asked runs in order, and only [`Device::collect`] waits for it.
pub trait Device: Send + Sync {
    /// What the device has.
    fn limits(&self) -> &Limits;

    /// The address of new memory, at a multiple of 16. What stands in it is anybody's guess.
    fn allocate(&self, bytes: u64) -> Result<u64, DeviceError>;

    /// Gives memory back once everything asked before has run.
    fn free(&self, address: u64);

    /// Copies bytes to the device; they may be overwritten on return.
    fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Sets bytes on the device.
    fn fill(&self, at: u64, bytes: u64, value: u8) -> Result<(), DeviceError>;

    /// Starts a kernel. Every argument is an address or an integer, in eight bytes.
    fn launch(&self, kernel: &'static str, shape: Shape, arguments: &[u64]) -> Result<(), DeviceError>;

    /// Asks for bytes as they will be once everything asked before has run.
    fn request(&self, from: u64, bytes: usize) -> Result<Ticket, DeviceError>;

    /// Waits for them.
    fn collect(&self, ticket: Ticket) -> Result<Vec<u8>, DeviceError>;
}

/// Memory of a device, given back when dropped.
pub(super) struct Memory {
    device: Arc<dyn Device>,
    pub(super) address: u64,
    pub(super) bytes: u64,
}

impl Memory {
    pub(super) fn new(device: &Arc<dyn Device>, bytes: u64) -> Result<Self, DeviceError> {
        let bytes = bytes.max(16);
        Ok(Self { device: Arc::clone(device), address: device.allocate(bytes)?, bytes })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.device.free(self.address);
    }
}

/// A device whose new memory holds a pattern, so that whatever reads before it writes is found out.
pub struct Poisoned(pub Arc<dyn Device>);

impl Device for Poisoned {
    fn limits(&self) -> &Limits {
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

    fn launch(&self, kernel: &'static str, shape: Shape, arguments: &[u64]) -> Result<(), DeviceError> {
        self.0.launch(kernel, shape, arguments)
    }

    fn request(&self, from: u64, bytes: usize) -> Result<Ticket, DeviceError> {
        self.0.request(from, bytes)
    }

    fn collect(&self, ticket: Ticket) -> Result<Vec<u8>, DeviceError> {
        self.0.collect(ticket)
    }
}

//! Emulated device: kernels compiled as C++ and run in a process.

use super::device::{Device, DeviceError, DeviceLimits, DownloadTicket, LaunchShape};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Emulated device with few threads and little memory.
pub struct EmulatedDevice {
    limits: DeviceLimits,
    pipe: Mutex<EmulatorProcess>,
    allocated: AtomicU64,
    fails_after: AtomicU64,
}

struct EmulatorProcess {
    child: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
    ready: std::collections::BTreeMap<u64, Vec<u8>>,
    sizes: std::collections::BTreeMap<u64, u64>,
}

struct EmulatorProgram {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl EmulatorProgram {
    fn compile(with: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let kernels = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/counting/kernels");
        let path = folder.path().join("emulator");
        let status = Command::new("c++")
            .args(["-std=c++20", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-U_FORTIFY_SOURCE", "-o"])
            .arg(&path)
            .args(with)
            .arg(kernels.join("emulator.cpp"))
            .status();
        assert!(status.expect("a C++ compiler (build-essential)").success(), "the kernels compile as C++");
        Self { _folder: folder, path }
    }

    fn shared() -> &'static Self {
        static PROGRAM: OnceLock<EmulatorProgram> = OnceLock::new();
        PROGRAM.get_or_init(|| Self::compile(&[]))
    }
}

impl EmulatedDevice {
    /// Compiles the kernels and starts their process.
    pub fn start(memory_bytes: u64, seed: u64) -> Arc<Self> {
        Self::start_program(EmulatorProgram::shared(), memory_bytes, 48 << 10, seed)
    }

    /// Starts a device with little shared memory.
    pub fn with_little_shared_memory(memory_bytes: u64, seed: u64) -> Arc<Self> {
        Self::start_program(EmulatorProgram::shared(), memory_bytes, 4800, seed)
    }

    /// Starts a device without barriers.
    pub fn without_barriers(memory_bytes: u64, seed: u64) -> Arc<Self> {
        Self::start_program(&EmulatorProgram::compile(&["-DEMULATION_WITHOUT_BARRIERS"]), memory_bytes, 48 << 10, seed)
    }

    fn start_program(program: &EmulatorProgram, memory_bytes: u64, shared_bytes: u32, seed: u64) -> Arc<Self> {
        let mut child = Command::new(&program.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the emulator starts");
        let to = BufWriter::new(child.stdin.take().expect("a pipe"));
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        let limits = DeviceLimits {
            name: "emulation".to_owned(),
            capability: (0, 0),
            multiprocessors: 2,
            threads: 32,
            shared_bytes,
            memory_bytes,
            free_bytes: memory_bytes,
            clock_hertz: 1,
        };
        let pipe = EmulatorProcess {
            child,
            to,
            from,
            ready: std::collections::BTreeMap::new(),
            sizes: std::collections::BTreeMap::new(),
        };
        let device = Self {
            limits,
            pipe: Mutex::new(pipe),
            allocated: AtomicU64::new(0),
            fails_after: AtomicU64::new(u64::MAX),
        };
        device.reseed(seed);
        Arc::new(device)
    }

    /// Changes the order of blocks and threads.
    pub fn reseed(&self, seed: u64) {
        self.pipe.lock().expect("no panic").write_words(&[7, seed], &[]);
    }

    /// Fails every call after `calls` more.
    pub fn fail_after(&self, calls: u64) {
        self.fails_after.store(calls, Ordering::Relaxed);
    }

    /// Number of allocated bytes.
    pub fn allocated_bytes(&self) -> u64 {
        self.allocated.load(Ordering::Relaxed)
    }

    fn check_call(&self, call: &'static str) -> Result<(), DeviceError> {
        let left = self.fails_after.load(Ordering::Relaxed);
        if left == 0 {
            return Err(DeviceError::Failed { call, reason: "unplugged".to_owned() });
        }
        if left != u64::MAX {
            self.fails_after.store(left - 1, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl EmulatorProcess {
    fn write_words(&mut self, words: &[u64], bytes: &[u8]) {
        for word in words {
            self.to.write_all(&word.to_le_bytes()).expect("the emulator lives");
        }
        self.to.write_all(bytes).expect("the emulator lives");
    }

    fn read_bytes(&mut self, bytes: usize) -> Vec<u8> {
        self.to.flush().expect("the emulator lives");
        let mut answer = vec![0; bytes];
        self.from.read_exact(&mut answer).expect("the emulator lives: see its message above");
        answer
    }
}

impl Device for EmulatedDevice {
    fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DeviceError> {
        self.check_call("allocate")?;
        if self.allocated_bytes() + bytes > self.limits.memory_bytes {
            return Err(DeviceError::OutOfMemory { bytes });
        }
        let mut pipe = self.pipe.lock().expect("no panic");
        pipe.write_words(&[1, bytes], &[]);
        let address = u64::from_le_bytes(pipe.read_bytes(8).try_into().expect("eight bytes"));
        pipe.sizes.insert(address, bytes);
        self.allocated.fetch_add(bytes, Ordering::Relaxed);
        Ok(address)
    }

    fn free(&self, address: u64) {
        let mut pipe = self.pipe.lock().expect("no panic");
        pipe.write_words(&[2, address], &[]);
        let bytes = pipe.sizes.remove(&address).expect("what was allocated");
        self.allocated.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check_call("upload")?;
        self.pipe.lock().expect("no panic").write_words(&[3, to, bytes.len() as u64], bytes);
        Ok(())
    }

    fn fill(&self, at: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.check_call("fill")?;
        self.pipe.lock().expect("no panic").write_words(&[4, at, bytes, u64::from(value)], &[]);
        Ok(())
    }

    fn launch(&self, kernel: &'static str, shape: LaunchShape, arguments: &[u64]) -> Result<(), DeviceError> {
        self.check_call("launch")?;
        assert!(shape.columns > 0 && (1..=65_535).contains(&shape.rows), "a launchable shape: {shape:?}");
        assert!(shape.shared_bytes <= self.limits.shared_bytes, "too much shared memory: {shape:?}");
        let mut pipe = self.pipe.lock().expect("no panic");
        pipe.write_words(&[6, kernel.len() as u64], kernel.as_bytes());
        let shape = [shape.columns, shape.rows, shape.threads, shape.shared_bytes].map(u64::from);
        pipe.write_words(&shape, &[]);
        pipe.write_words(&[arguments.len() as u64], &[]);
        pipe.write_words(arguments, &[]);
        Ok(())
    }

    fn request(&self, from: u64, bytes: usize) -> Result<DownloadTicket, DeviceError> {
        self.check_call("request")?;
        let mut pipe = self.pipe.lock().expect("no panic");
        pipe.write_words(&[5, from, bytes as u64], &[]);
        let answer = pipe.read_bytes(bytes);
        let number = pipe.ready.keys().next_back().map_or(0, |last| last + 1);
        pipe.ready.insert(number, answer);
        Ok(DownloadTicket(number))
    }

    fn collect(&self, ticket: DownloadTicket) -> Result<Vec<u8>, DeviceError> {
        self.check_call("collect")?;
        let mut pipe = self.pipe.lock().expect("no panic");
        Ok(pipe.ready.remove(&ticket.0).expect("what was requested"))
    }
}

impl Drop for EmulatorProcess {
    fn drop(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("the emulator ends");
    }
}

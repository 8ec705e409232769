//! The emulated device: the kernels' own sources, compiled by a C++ compiler, in a process of their own.

use super::device::{Device, DeviceError, Limits, Shape, Ticket};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// A device of few threads and a bounded memory, so that small tables meet every limit.
pub struct Emulator {
    limits: Limits,
    pipe: Mutex<Pipe>,
    taken: AtomicU64,
    /// Calls until one fails; counts down.
    fails_after: AtomicU64,
}

struct Pipe {
    child: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
    /// What was requested and is there to be collected.
    ready: std::collections::BTreeMap<u64, Vec<u8>>,
    sizes: std::collections::BTreeMap<u64, u64>,
}

/// The compiled emulator, with warnings as errors.
struct Program {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Program {
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

    /// Compiled once a process.
    fn shared() -> &'static Self {
        static PROGRAM: OnceLock<Program> = OnceLock::new();
        PROGRAM.get_or_init(|| Self::compile(&[]))
    }
}

impl Emulator {
    /// Compiles the kernels with `c++` and starts them as a process.
    pub fn start(memory_bytes: u64, seed: u64) -> Arc<Self> {
        Self::run(Program::shared(), memory_bytes, 48 << 10, seed)
    }

    /// A device of little shared memory, where all but tiny domains are counted outside of it.
    pub fn of_little_shared_memory(memory_bytes: u64, seed: u64) -> Arc<Self> {
        Self::run(Program::shared(), memory_bytes, 4800, seed)
    }

    /// A device whose barriers let everybody through.
    pub fn without_barriers(memory_bytes: u64, seed: u64) -> Arc<Self> {
        Self::run(&Program::compile(&["-DEMULATION_WITHOUT_BARRIERS"]), memory_bytes, 48 << 10, seed)
    }

    fn run(program: &Program, memory_bytes: u64, shared_bytes: u32, seed: u64) -> Arc<Self> {
        let mut child = Command::new(&program.path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the emulator starts");
        let to = BufWriter::new(child.stdin.take().expect("a pipe"));
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        let limits = Limits {
            name: "emulation".to_owned(),
            capability: (0, 0),
            multiprocessors: 2,
            threads: 32,
            shared_bytes,
            memory_bytes,
            free_bytes: memory_bytes,
            clock_hertz: 1,
        };
        let pipe = Pipe {
            child,
            to,
            from,
            ready: std::collections::BTreeMap::new(),
            sizes: std::collections::BTreeMap::new(),
        };
        let device =
            Self { limits, pipe: Mutex::new(pipe), taken: AtomicU64::new(0), fails_after: AtomicU64::new(u64::MAX) };
        device.reseed(seed);
        Arc::new(device)
    }

    /// Another order of blocks and threads from here on.
    pub fn reseed(&self, seed: u64) {
        self.pipe.lock().expect("no panic").send(&[7, seed], &[]);
    }

    /// Lets the call after `calls` more of them fail, and every one after it.
    pub fn fail_after(&self, calls: u64) {
        self.fails_after.store(calls, Ordering::Relaxed);
    }

    /// Bytes allocated now.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn step(&self, call: &'static str) -> Result<(), DeviceError> {
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

impl Pipe {
    fn send(&mut self, words: &[u64], bytes: &[u8]) {
        for word in words {
            self.to.write_all(&word.to_le_bytes()).expect("the emulator lives");
        }
        self.to.write_all(bytes).expect("the emulator lives");
    }

    fn receive(&mut self, bytes: usize) -> Vec<u8> {
        self.to.flush().expect("the emulator lives");
        let mut answer = vec![0; bytes];
        self.from.read_exact(&mut answer).expect("the emulator lives: see its message above");
        answer
    }
}

impl Device for Emulator {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn allocate(&self, bytes: u64) -> Result<u64, DeviceError> {
        self.step("allocate")?;
        if self.taken() + bytes > self.limits.memory_bytes {
            return Err(DeviceError::OutOfMemory { bytes });
        }
        let mut pipe = self.pipe.lock().expect("no panic");
        pipe.send(&[1, bytes], &[]);
        let address = u64::from_le_bytes(pipe.receive(8).try_into().expect("eight bytes"));
        pipe.sizes.insert(address, bytes);
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        Ok(address)
    }

    fn free(&self, address: u64) {
        let mut pipe = self.pipe.lock().expect("no panic");
        pipe.send(&[2, address], &[]);
        let bytes = pipe.sizes.remove(&address).expect("what was allocated");
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.step("upload")?;
        self.pipe.lock().expect("no panic").send(&[3, to, bytes.len() as u64], bytes);
        Ok(())
    }

    fn fill(&self, at: u64, bytes: u64, value: u8) -> Result<(), DeviceError> {
        self.step("fill")?;
        self.pipe.lock().expect("no panic").send(&[4, at, bytes, u64::from(value)], &[]);
        Ok(())
    }

    fn launch(&self, kernel: &'static str, shape: Shape, arguments: &[u64]) -> Result<(), DeviceError> {
        self.step("launch")?;
        assert!(shape.columns > 0 && (1..=65_535).contains(&shape.rows), "a launchable shape: {shape:?}");
        assert!(shape.shared_bytes <= self.limits.shared_bytes, "too much shared memory: {shape:?}");
        let mut pipe = self.pipe.lock().expect("no panic");
        pipe.send(&[6, kernel.len() as u64], kernel.as_bytes());
        let shape = [shape.columns, shape.rows, shape.threads, shape.shared_bytes].map(u64::from);
        pipe.send(&shape, &[]);
        pipe.send(&[arguments.len() as u64], &[]);
        pipe.send(arguments, &[]);
        Ok(())
    }

    fn request(&self, from: u64, bytes: usize) -> Result<Ticket, DeviceError> {
        self.step("request")?;
        let mut pipe = self.pipe.lock().expect("no panic");
        pipe.send(&[5, from, bytes as u64], &[]);
        let answer = pipe.receive(bytes);
        let number = pipe.ready.keys().next_back().map_or(0, |last| last + 1);
        pipe.ready.insert(number, answer);
        Ok(Ticket(number))
    }

    fn collect(&self, ticket: Ticket) -> Result<Vec<u8>, DeviceError> {
        self.step("collect")?;
        let mut pipe = self.pipe.lock().expect("no panic");
        Ok(pipe.ready.remove(&ticket.0).expect("what was requested"))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // One that has ended already is waited for all the same.
        self.child.kill().and_then(|()| self.child.wait()).expect("the emulator ends");
    }
}

//! Window in device memory.

use super::device::{Device, DeviceError, DeviceMemory, LaunchShape};
use super::kernel_tables::{ColumnEntry, RecodingEntry, bytes_of};
use std::sync::Arc;

const BLOCK_BYTES: u64 = 32 << 20;

/// Bytes of a [`RecodingEntry`].
const RECODING_BYTES: u64 = 40;

/// Kernels read up to four codes in one access of 16 bytes.
const PADDING: u64 = 16;

/// Ring of rows on the device; new rows replace the oldest.
///
/// Memory: per column `width · capacity` bytes (width 1, 2 or 4) and 16, 4 per row for subjects, and an upload of at
/// most 32 MiB.
pub struct ResidentWindow {
    device: Arc<dyn Device>,
    columns: Vec<WindowColumn>,
    subjects: Option<WindowColumn>,
    descriptors: DeviceMemory,
    capacity: u64,
    start: u64,
    rows: u64,
    block: DeviceMemory,
}

struct WindowColumn {
    memory: DeviceMemory,
    width: u64,
    bound: u64,
}

pub(super) fn width(bound: u64) -> u64 {
    match bound {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

impl ResidentWindow {
    /// Creates an empty window; `bounds` are expected exclusive code bounds.
    pub fn new(
        device: &Arc<dyn Device>,
        capacity: usize,
        bounds: &[u64],
        with_subjects: bool,
    ) -> Result<Self, DeviceError> {
        let capacity = capacity.max(1) as u64;
        let hold = |width: u64| -> Result<WindowColumn, DeviceError> {
            let memory = DeviceMemory::new(device, padded_capacity(capacity) * width)?;
            Ok(WindowColumn { memory, width, bound: 1 })
        };
        let columns = bounds.iter().map(|bound| hold(width(*bound))).collect::<Result<Vec<WindowColumn>, _>>()?;
        let subjects = with_subjects.then(|| hold(4)).transpose()?;
        let window = Self {
            device: Arc::clone(device),
            descriptors: DeviceMemory::new(device, columns.len() as u64 * 16)?,
            columns,
            subjects,
            capacity,
            start: 0,
            rows: 0,
            block: DeviceMemory::new(device, 0)?,
        };
        window.upload_descriptors()?;
        Ok(window)
    }

    /// Number of stored rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Maximum number of rows.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Largest code of a column so far, plus one.
    pub fn bound(&self, column: usize) -> u64 {
        self.columns[column].bound
    }

    /// Number of columns without the subject.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Largest subject plus one, if there are subjects.
    pub fn subject_bound(&self) -> Option<u64> {
        self.subjects.as_ref().map(|subjects| subjects.bound)
    }

    /// Removes all rows.
    pub fn clear(&mut self) {
        (self.start, self.rows) = (0, 0);
    }

    /// Appends rows, one slice per column, and removes the oldest.
    ///
    /// # Panics
    /// If the columns do not match the window, or differ in length.
    pub fn push(&mut self, columns: &[&[u32]], subjects: Option<&[u32]>) -> Result<(), DeviceError> {
        assert_eq!(columns.len(), self.columns.len(), "a slice a column");
        assert_eq!(subjects.is_some(), self.subjects.is_some(), "subjects in every batch or in none");
        let new = columns.first().copied().or(subjects).map_or(0, <[u32]>::len);
        assert!(columns.iter().chain(&subjects).all(|codes| codes.len() == new), "columns of one length");
        for (held, codes) in self.columns.iter_mut().zip(columns).chain(self.subjects.as_mut().zip(subjects.as_ref())) {
            held.bound = held.bound.max(codes.iter().max().map_or(0, |code| u64::from(*code) + 1));
        }
        self.widen()?;
        let mut from = new.saturating_sub(self.capacity as usize);
        let row_bytes: u64 = self.columns.iter().chain(&self.subjects).map(|held| held.width).sum();
        let at_once = (BLOCK_BYTES / row_bytes.max(1)).max(1) as usize;
        while from < new {
            let to = new.min(from + at_once);
            let of = |codes: &&[u32]| -> Vec<u32> { codes[from..to].to_vec() };
            self.append(&columns.iter().chain(&subjects).map(of).collect::<Vec<_>>(), (to - from) as u64)?;
            from = to;
        }
        Ok(())
    }

    /// Copies the newest `rows` rows to a new window with `codes[c]` for code c, likewise subjects.
    ///
    /// # Panics
    /// If rows are missing, or a stored code has no new code.
    pub(super) fn recoded(
        &self,
        rows: u64,
        columns: &[(usize, Vec<u32>)],
        subjects: Option<&[u32]>,
    ) -> Result<Self, DeviceError> {
        assert!(rows <= self.rows, "rows that are held");
        let bound = |codes: &[u32]| codes.iter().max().map_or(1, |code| u64::from(*code) + 1);
        let bounds: Vec<u64> = columns.iter().map(|(_, codes)| bound(codes)).collect();
        let mut window = Self::new(&self.device, rows as usize, &bounds, subjects.is_some())?;
        let held = columns.iter().map(|(column, codes)| (&self.columns[*column], codes.as_slice()));
        let from: Vec<(&WindowColumn, &[u32])> = held.chain(self.subjects.as_ref().zip(subjects)).collect();
        assert!(from.iter().all(|(held, codes)| held.bound <= codes.len() as u64), "every code stands for one");
        let padded: Vec<u64> = from.iter().map(|(_, codes)| 4 * (codes.len() as u64).next_multiple_of(4)).collect();
        let table = DeviceMemory::new(&self.device, padded.iter().sum::<u64>() + from.len() as u64 * RECODING_BYTES)?;
        let mut recodings = Vec::with_capacity(from.len());
        let mut at = table.address;
        for (((held, codes), bytes), new) in
            from.iter().zip(&padded).zip(window.columns.iter_mut().chain(&mut window.subjects))
        {
            for (number, codes) in codes.chunks(BLOCK_BYTES as usize / 4).enumerate() {
                self.device.upload(at + number as u64 * BLOCK_BYTES, &bytes_of(codes))?;
            }
            new.bound = bound(codes);
            let (from, to) = (held.memory.address, new.memory.address);
            recodings.push(RecodingEntry { from, from_width: held.width, codes: at, to, to_width: new.width });
            at += bytes;
        }
        window.rows = rows;
        if rows > 0 && !recodings.is_empty() {
            self.device.upload(at, &bytes_of(&recodings))?;
            let oldest = (self.start + self.rows - rows) % self.capacity;
            self.device.launch("recode", self.shape(recodings.len(), rows), &[at, oldest, rows, self.capacity])?;
        }
        Ok(window)
    }

    fn shape(&self, columns: usize, rows: u64) -> LaunchShape {
        let threads = self.device.limits().threads;
        let rows = rows.div_ceil(u64::from(threads)).clamp(1, 1024) as u32;
        LaunchShape { columns: columns.max(1) as u32, rows, threads, shared_bytes: 0 }
    }

    fn append(&mut self, codes: &[Vec<u32>], rows: u64) -> Result<(), DeviceError> {
        let mut block = Vec::new();
        let mut arrivals: Vec<u64> = Vec::new();
        for (held, codes) in self.columns.iter().chain(&self.subjects).zip(codes) {
            arrivals.extend([block.len() as u64, held.memory.address, held.width]);
            match held.width {
                1 => block.extend(codes.iter().map(|code| *code as u8)),
                2 => codes.iter().for_each(|code| block.extend((*code as u16).to_le_bytes())),
                _ => codes.iter().for_each(|code| block.extend(code.to_le_bytes())),
            }
            block.resize(block.len().next_multiple_of(16), 0);
        }
        let table = block.len() as u64;
        block.extend(bytes_of(&arrivals));
        if self.block.bytes < block.len() as u64 {
            self.block = DeviceMemory::new(&self.device, (block.len() as u64).next_power_of_two())?;
        }
        self.device.upload(self.block.address, &block)?;
        let tail = (self.start + self.rows) % self.capacity;
        let shape = self.shape(codes.len(), rows);
        if !codes.is_empty() {
            let address = self.block.address;
            self.device.launch("append", shape, &[address, address + table, rows, tail, self.capacity])?;
        }
        let over = (self.rows + rows).saturating_sub(self.capacity);
        self.start = (self.start + over) % self.capacity;
        self.rows += rows - over;
        Ok(())
    }

    fn widen(&mut self) -> Result<(), DeviceError> {
        let mut changed = false;
        for held in &mut self.columns {
            let wide = width(held.bound);
            if wide <= held.width {
                continue;
            }
            let memory = DeviceMemory::new(&self.device, padded_capacity(self.capacity) * wide)?;
            let threads = self.device.limits().threads;
            let columns = self.capacity.div_ceil(u64::from(threads)).min(1 << 16) as u32;
            let shape = LaunchShape { columns, rows: 1, threads, shared_bytes: 0 };
            let arguments = [held.memory.address, held.width, memory.address, wide, self.capacity];
            self.device.launch("widen", shape, &arguments)?;
            (held.memory, held.width, changed) = (memory, wide, true);
        }
        if changed { self.upload_descriptors() } else { Ok(()) }
    }

    fn upload_descriptors(&self) -> Result<(), DeviceError> {
        let column = |held: &WindowColumn| ColumnEntry { address: held.memory.address, width: held.width };
        self.device.upload(self.descriptors.address, &bytes_of(&self.columns.iter().map(column).collect::<Vec<_>>()))
    }

    /// For kernels that read rows: ring, columns, subjects.
    pub(super) fn arguments(&self) -> [u64; 5] {
        let subjects = self.subjects.as_ref().map_or(0, |subjects| subjects.memory.address);
        [self.start, self.rows, self.capacity, self.descriptors.address, subjects]
    }

    /// Places up to the last possible row.
    pub(super) fn extent(&self) -> u64 {
        (self.start + self.rows).min(self.capacity)
    }
}

fn padded_capacity(capacity: u64) -> u64 {
    capacity.next_multiple_of(PADDING)
}

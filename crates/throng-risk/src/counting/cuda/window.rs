//! The window in device memory: a ring of columns, each in the narrowest width that holds its codes.

use super::device::{Device, DeviceError, Memory, Shape};
use super::tables::{Column, Recoding, bytes_of};
use std::sync::Arc;

/// Bytes of one upload, at most: what is new comes in blocks of this size.
const BLOCK_BYTES: u64 = 32 << 20;

/// Bytes of a [`Recoding`].
const RECODING_BYTES: u64 = 40;

/// Places that a column is padded to: kernels read up to four codes at once, at 16 bytes.
const PADDING: u64 = 16;

/// A window of rows on the device. What is new is appended, the oldest rows make room.
///
/// Memory: for each column `width · capacity` bytes with a width of 1, 2 or 4 by its largest code, 4 bytes a row for the
/// subjects, 16 bytes a column, and one block of new rows on its way (at most 32 MiB).
pub struct ResidentWindow {
    device: Arc<dyn Device>,
    columns: Vec<Held>,
    subjects: Option<Held>,
    /// The columns as the kernels see them.
    descriptors: Memory,
    capacity: u64,
    start: u64,
    rows: u64,
    block: Memory,
}

struct Held {
    memory: Memory,
    width: u64,
    /// One more than the largest code so far.
    bound: u64,
}

/// Bytes a code, for codes below `bound`.
pub(super) fn width(bound: u64) -> u64 {
    match bound {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

impl ResidentWindow {
    /// An empty window for `capacity` rows of columns whose codes stay, as far as known, below `bounds`.
    pub fn new(
        device: &Arc<dyn Device>,
        capacity: usize,
        bounds: &[u64],
        with_subjects: bool,
    ) -> Result<Self, DeviceError> {
        let capacity = capacity.max(1) as u64;
        let hold = |width: u64| -> Result<Held, DeviceError> {
            let memory = Memory::new(device, padded(capacity) * width)?;
            Ok(Held { memory, width, bound: 1 })
        };
        let columns = bounds.iter().map(|bound| hold(width(*bound))).collect::<Result<Vec<Held>, _>>()?;
        let subjects = with_subjects.then(|| hold(4)).transpose()?;
        let window = Self {
            device: Arc::clone(device),
            descriptors: Memory::new(device, columns.len() as u64 * 16)?,
            columns,
            subjects,
            capacity,
            start: 0,
            rows: 0,
            block: Memory::new(device, 0)?,
        };
        window.describe()?;
        Ok(window)
    }

    /// Rows that the window holds.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows that fit.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// One more than the largest code of a column so far.
    pub fn bound(&self, column: usize) -> u64 {
        self.columns[column].bound
    }

    /// Columns, the subject not among them.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// One more than the largest subject, where the window has subjects.
    pub fn people(&self) -> Option<u64> {
        self.subjects.as_ref().map(|subjects| subjects.bound)
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        (self.start, self.rows) = (0, 0);
    }

    /// Adds rows, a slice of codes a column; the oldest make room.
    ///
    /// # Panics
    /// When the columns are not the window's, or have different numbers of rows.
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

    /// The newest `rows` rows as a window of their own, in other codes: of each column that is named, `codes[c]` for the
    /// code c, and so for the subjects. Only the codes are uploaded.
    ///
    /// # Panics
    /// When there are fewer rows, or a code that is held stands for none.
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
        let from: Vec<(&Held, &[u32])> = held.chain(self.subjects.as_ref().zip(subjects)).collect();
        assert!(from.iter().all(|(held, codes)| held.bound <= codes.len() as u64), "every code stands for one");
        let padded: Vec<u64> = from.iter().map(|(_, codes)| 4 * (codes.len() as u64).next_multiple_of(4)).collect();
        let table = Memory::new(&self.device, padded.iter().sum::<u64>() + from.len() as u64 * RECODING_BYTES)?;
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
            recodings.push(Recoding { from, from_width: held.width, codes: at, to, to_width: new.width });
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

    /// A block along x for each column.
    fn shape(&self, columns: usize, rows: u64) -> Shape {
        let threads = self.device.limits().threads;
        let rows = rows.div_ceil(u64::from(threads)).clamp(1, 1024) as u32;
        Shape { columns: columns.max(1) as u32, rows, threads, shared_bytes: 0 }
    }

    /// One upload and one launch.
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
            self.block = Memory::new(&self.device, (block.len() as u64).next_power_of_two())?;
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

    /// Gives columns whose codes have outgrown their width a wider one.
    fn widen(&mut self) -> Result<(), DeviceError> {
        let mut changed = false;
        for held in &mut self.columns {
            let wide = width(held.bound);
            if wide <= held.width {
                continue;
            }
            let memory = Memory::new(&self.device, padded(self.capacity) * wide)?;
            let threads = self.device.limits().threads;
            let columns = self.capacity.div_ceil(u64::from(threads)).min(1 << 16) as u32;
            let shape = Shape { columns, rows: 1, threads, shared_bytes: 0 };
            let arguments = [held.memory.address, held.width, memory.address, wide, self.capacity];
            self.device.launch("widen", shape, &arguments)?;
            (held.memory, held.width, changed) = (memory, wide, true);
        }
        if changed { self.describe() } else { Ok(()) }
    }

    fn describe(&self) -> Result<(), DeviceError> {
        let column = |held: &Held| Column { address: held.memory.address, width: held.width };
        self.device.upload(self.descriptors.address, &bytes_of(&self.columns.iter().map(column).collect::<Vec<_>>()))
    }

    /// The first arguments of every kernel that reads rows: the ring, the columns, the subjects.
    pub(super) fn arguments(&self) -> [u64; 5] {
        let subjects = self.subjects.as_ref().map_or(0, |subjects| subjects.memory.address);
        [self.start, self.rows, self.capacity, self.descriptors.address, subjects]
    }

    /// Places to look at: up to the last one that may hold a row.
    pub(super) fn extent(&self) -> u64 {
        (self.start + self.rows).min(self.capacity)
    }
}

fn padded(capacity: u64) -> u64 {
    capacity.next_multiple_of(PADDING)
}

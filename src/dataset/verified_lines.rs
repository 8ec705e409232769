//! Verified lines, in memory or in an unnamed file, and their sorted merge.

use super::code_store::temporary_file_error;
use super::error::AnonymizeError;
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use throng_core::release::parts::ReleasePermit;
use throng_core::release::verified_batch::ReleasableBatch;

/// Bytes per read from a part.
const MAX_READ_BYTES: usize = 1 << 20;
const MIN_READ_BYTES: usize = 1 << 12;

enum LineStorage {
    Memory(Vec<u8>),
    File(BufWriter<File>),
}

impl LineStorage {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(all) => all.write_all(bytes),
            Self::File(file) => file.write_all(bytes),
        }
    }

    fn read(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        match self {
            Self::Memory(all) => {
                let begin = usize::try_from(at).unwrap_or(usize::MAX);
                let of = all.get(begin..begin.saturating_add(into.len())).ok_or(io::ErrorKind::UnexpectedEof)?;
                into.copy_from_slice(of);
                Ok(())
            }
            Self::File(file) => file.get_ref().read_exact_at(into, at),
        }
    }
}

/// Sorted lines of parts; equal lines are stored once with their count.
pub struct VerifiedLines {
    place: LineStorage,
    directory: Option<PathBuf>,
    end: u64,
    /// Begin, end and digest per part; the digest proves that the lines are the verified ones.
    parts: Vec<(u64, u64, [u8; 32])>,
    /// Lines, duplicates included.
    pub count: u64,
}

impl VerifiedLines {
    /// Creates storage in a file of this process in `directory`, or in memory.
    pub fn new(directory: Option<&Path>) -> Result<Self, AnonymizeError> {
        let open = |directory: &Path| -> io::Result<LineStorage> {
            let file = tempfile::tempfile_in(directory)?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            Ok(LineStorage::File(BufWriter::with_capacity(MAX_READ_BYTES, file)))
        };
        let place = directory.map_or_else(|| Ok(LineStorage::Memory(Vec::new())), open);
        let place = place.map_err(|error| temporary_file_error(directory, error))?;
        Ok(Self { place, directory: directory.map(Path::to_owned), end: 0, parts: Vec::new(), count: 0 })
    }

    /// Stores a part.
    pub fn add_part(&mut self, verified: &ReleasableBatch) -> Result<(), AnonymizeError> {
        let (begin, mut hash) = (self.end, Sha256::new());
        let mut lines = verified.lines(0).map(|line| line.bytes).peekable();
        while let Some(line) = lines.next() {
            let mut times = 1u32;
            while lines.next_if_eq(&line).is_some() {
                times += 1;
            }
            self.count += u64::from(times);
            let length = u32::try_from(line.len()).unwrap_or(u32::MAX);
            for bytes in [&length.to_le_bytes()[..], &times.to_le_bytes(), line] {
                hash.update(bytes);
                self.place.write(bytes).map_err(|error| temporary_file_error(self.directory.as_deref(), error))?;
            }
            self.end += 8 + line.len() as u64;
        }
        self.parts.push((begin, self.end, hash.finalize().into()));
        Ok(())
    }

    /// Passes all lines to `visit`, sorted, each with line break and count. The permit proves that the whole release is
    /// verified. Holds at most `memory` bytes, or 4 KiB per part.
    ///
    /// Stored bytes that changed cause an error, possibly after some lines.
    pub fn visit_sorted(
        self,
        whole: &ReleasePermit,
        memory: u64,
        mut visit: impl FnMut(&[u8], u32) -> Result<(), AnonymizeError>,
    ) -> Result<(), AnonymizeError> {
        let Self { mut place, directory, parts, count, .. } = self;
        let fault = |error| temporary_file_error(directory.as_deref(), error);
        if whole.risk().lines != count {
            return Err(fault(changed_lines_error()));
        }
        if let LineStorage::File(file) = &mut place {
            file.flush().map_err(fault)?;
        }
        let held = usize::try_from(memory / parts.len().max(1) as u64)
            .unwrap_or(MAX_READ_BYTES)
            .clamp(MIN_READ_BYTES, MAX_READ_BYTES);
        let mut readers: Vec<PartLineReader> =
            parts.into_iter().map(|(at, end, digest)| PartLineReader::new((at, end), digest, held)).collect();
        let mut heads = BinaryHeap::new();
        for (part, reader) in readers.iter_mut().enumerate() {
            if let Some((line, times)) = reader.next_stored_line(&place).map_err(fault)? {
                heads.push(Reverse((line, part, times)));
            }
        }
        while let Some(Reverse((mut line, part, times))) = heads.pop() {
            line.push(b'\n');
            visit(&line, times)?;
            if let Some((line, times)) = readers[part].next_stored_line(&place).map_err(fault)? {
                heads.push(Reverse((line, part, times)));
            }
        }
        Ok(())
    }
}

fn changed_lines_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the lines read back differ from the verified lines")
}

struct PartLineReader {
    hash: Sha256,
    digest: [u8; 32],
    at: u64,
    end: u64,
    read_size: usize,
    buffer: Vec<u8>,
    consumed_bytes: usize,
}

impl PartLineReader {
    fn new((at, end): (u64, u64), digest: [u8; 32], held: usize) -> Self {
        Self { hash: Sha256::new(), digest, at, end, read_size: held, buffer: Vec::new(), consumed_bytes: 0 }
    }

    fn fill_read_buffer(&mut self, place: &LineStorage, bytes: usize) -> io::Result<()> {
        let there = self.buffer.len() - self.consumed_bytes;
        if there >= bytes {
            return Ok(());
        }
        self.buffer.drain(..self.consumed_bytes);
        self.consumed_bytes = 0;
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let more = (bytes - there).max(self.read_size).min(left);
        self.buffer.resize(there + more, 0);
        place.read(&mut self.buffer[there..], self.at)?;
        self.at += more as u64;
        if there + more < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn next_stored_line(&mut self, place: &LineStorage) -> io::Result<Option<(Vec<u8>, u32)>> {
        if self.at == self.end && self.consumed_bytes == self.buffer.len() {
            let is_whole = <[u8; 32]>::from(self.hash.finalize_reset()) == self.digest;
            return if is_whole { Ok(None) } else { Err(changed_lines_error()) };
        }
        self.fill_read_buffer(place, 8)?;
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| self.buffer[at + byte]));
        let (length, times) = (number(self.consumed_bytes) as usize, number(self.consumed_bytes + 4));
        self.hash.update(&self.buffer[self.consumed_bytes..self.consumed_bytes + 8]);
        self.consumed_bytes += 8;
        self.fill_read_buffer(place, length)?;
        let line = self.buffer[self.consumed_bytes..self.consumed_bytes + length].to_vec();
        self.hash.update(&line);
        self.consumed_bytes += length;
        Ok(Some((line, times)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stored: &[u8], digest: [u8; 32]) -> io::Result<Vec<(Vec<u8>, u32)>> {
        let place = LineStorage::Memory(stored.to_vec());
        let mut reader = PartLineReader::new((0, stored.len() as u64), digest, MIN_READ_BYTES);
        let mut lines = Vec::new();
        while let Some(line) = reader.next_stored_line(&place)? {
            lines.push(line);
        }
        Ok(lines)
    }

    #[test]
    fn changed_byte_in_stored_lines_is_an_error() {
        let mut stored = Vec::new();
        for (line, times) in [(&b"a"[..], 2u32), (b"bb", 1)] {
            stored.extend((line.len() as u32).to_le_bytes());
            stored.extend(times.to_le_bytes());
            stored.extend(line);
        }
        let digest: [u8; 32] = Sha256::digest(&stored).into();
        assert_eq!(read(&stored, digest).expect("as it was"), [(b"a".to_vec(), 2), (b"bb".to_vec(), 1)]);
        for at in 0..stored.len() {
            let mut other = stored.clone();
            other[at] ^= 1;
            assert!(read(&other, digest).is_err(), "byte {at}");
        }
    }
}

//! Lines that have been verified, in memory or in a file without a name, and all of them in their order.

use super::codes::unwritten;
use super::error::AnonymizeError;
use crate::release::parts::Whole;
use crate::release::verified::Verified;
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bytes that are read of a part at once, at the most and at the least.
const MOST: usize = 1 << 20;
const LEAST: usize = 1 << 12;

/// Where lines lie.
enum Place {
    Memory(Vec<u8>),
    File(BufWriter<File>),
}

impl Place {
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

/// The lines of parts, those of each in their order. Distinct lines are there once, with their number.
pub struct Lines {
    place: Place,
    directory: Option<PathBuf>,
    end: u64,
    /// Where the lines of each part begin and end, and their digest: what is read back must be what was verified.
    parts: Vec<(u64, u64, [u8; 32])>,
    /// Lines, and bytes that they take with their line breaks.
    pub count: u64,
}

impl Lines {
    /// None yet: in a file in `directory` that nobody but this process can open, or in memory.
    pub fn new(directory: Option<&Path>) -> Result<Self, AnonymizeError> {
        let open = |directory: &Path| -> io::Result<Place> {
            let file = tempfile::tempfile_in(directory)?;
            file.set_permissions(Permissions::from_mode(0o600))?;
            Ok(Place::File(BufWriter::with_capacity(MOST, file)))
        };
        let place = directory.map_or_else(|| Ok(Place::Memory(Vec::new())), open);
        let place = place.map_err(|error| unwritten(directory, error))?;
        Ok(Self { place, directory: directory.map(Path::to_owned), end: 0, parts: Vec::new(), count: 0 })
    }

    /// Takes the lines of one part.
    pub fn take(&mut self, verified: &Verified) -> Result<(), AnonymizeError> {
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
                self.place.write(bytes).map_err(|error| unwritten(self.directory.as_deref(), error))?;
            }
            self.end += 8 + line.len() as u64;
        }
        self.parts.push((begin, self.end, hash.finalize().into()));
        Ok(())
    }

    /// Hands all lines over, sorted by their bytes, each with its line break: only where the whole release has been verified. At most `memory`
    /// bytes are held, or 4 KiB a part. An error may come when lines have been handed over: where the directory gives other bytes back than it
    /// was given, or lacks lines.
    pub fn each(
        self,
        whole: &Whole,
        memory: u64,
        mut visit: impl FnMut(&[u8], u32) -> Result<(), AnonymizeError>,
    ) -> Result<(), AnonymizeError> {
        let Self { mut place, directory, parts, count, .. } = self;
        let fault = |error| unwritten(directory.as_deref(), error);
        if whole.risk().lines != count {
            return Err(fault(changed()));
        }
        if let Place::File(file) = &mut place {
            file.flush().map_err(fault)?;
        }
        let held = usize::try_from(memory / parts.len().max(1) as u64).unwrap_or(MOST).clamp(LEAST, MOST);
        let mut readers: Vec<Reader> =
            parts.into_iter().map(|(at, end, digest)| Reader::new((at, end), digest, held)).collect();
        let mut heads = BinaryHeap::new();
        for (part, reader) in readers.iter_mut().enumerate() {
            if let Some((line, times)) = reader.next(&place).map_err(fault)? {
                heads.push(Reverse((line, part, times)));
            }
        }
        while let Some(Reverse((mut line, part, times))) = heads.pop() {
            line.push(b'\n');
            visit(&line, times)?;
            if let Some((line, times)) = readers[part].next(&place).map_err(fault)? {
                heads.push(Reverse((line, part, times)));
            }
        }
        Ok(())
    }
}

/// The directory has given back what was not written there.
fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the lines that are read back are not those that were verified")
}

/// The lines of one part, as they are read back.
struct Reader {
    hash: Sha256,
    digest: [u8; 32],
    at: u64,
    end: u64,
    held: usize,
    buffer: Vec<u8>,
    /// Bytes of the buffer that have been given.
    given: usize,
}

impl Reader {
    fn new((at, end): (u64, u64), digest: [u8; 32], held: usize) -> Self {
        Self { hash: Sha256::new(), digest, at, end, held, buffer: Vec::new(), given: 0 }
    }

    /// Makes so many bytes be there.
    fn fill(&mut self, place: &Place, bytes: usize) -> io::Result<()> {
        let there = self.buffer.len() - self.given;
        if there >= bytes {
            return Ok(());
        }
        self.buffer.drain(..self.given);
        self.given = 0;
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let more = (bytes - there).max(self.held).min(left);
        self.buffer.resize(there + more, 0);
        place.read(&mut self.buffer[there..], self.at)?;
        self.at += more as u64;
        if there + more < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn next(&mut self, place: &Place) -> io::Result<Option<(Vec<u8>, u32)>> {
        if self.at == self.end && self.given == self.buffer.len() {
            let is_whole = <[u8; 32]>::from(self.hash.finalize_reset()) == self.digest;
            return if is_whole { Ok(None) } else { Err(changed()) };
        }
        self.fill(place, 8)?;
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| self.buffer[at + byte]));
        let (length, times) = (number(self.given) as usize, number(self.given + 4));
        self.hash.update(&self.buffer[self.given..self.given + 8]);
        self.given += 8;
        self.fill(place, length)?;
        let line = self.buffer[self.given..self.given + length].to_vec();
        self.hash.update(&line);
        self.given += length;
        Ok(Some((line, times)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One part of the lines `a` twice and `bb` once, of which the file has `stored`.
    fn read(stored: &[u8], digest: [u8; 32]) -> io::Result<Vec<(Vec<u8>, u32)>> {
        let place = Place::Memory(stored.to_vec());
        let mut reader = Reader::new((0, stored.len() as u64), digest, LEAST);
        let mut lines = Vec::new();
        while let Some(line) = reader.next(&place)? {
            lines.push(line);
        }
        Ok(lines)
    }

    #[test]
    fn what_is_read_back_is_what_was_verified_or_an_error() {
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

//! By what a file is known again: what stands before the length up to which it is committed or read, or which file it is.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use sha2::{Digest, Sha256};

/// Bytes before the committed length that are looked at.
const TAIL: u64 = 4096;

/// The fingerprint of a file or directory of which `length` is committed: a digest of the last bytes of that, which a copy or a
/// restored file shares and another one does not; while nothing is committed, the number of the file in its file system.
///
/// # Errors
/// When the file is shorter or cannot be read.
pub(super) fn fingerprint(file: &File, length: u64) -> io::Result<u64> {
    if length == 0 {
        return Ok(file.metadata()?.ino());
    }
    let from = length.saturating_sub(TAIL);
    let mut bytes = vec![0; (length - from) as usize];
    file.read_exact_at(&mut bytes, from)?;
    let digest = Sha256::digest(&bytes);
    Ok(digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Length and digest by which a file that has been read, `length` bytes of it, is known again.
///
/// # Errors
/// When the file is shorter or cannot be read.
pub(super) fn imprint(file: &File, length: u64) -> io::Result<(u64, u64)> {
    // An empty file is known by being empty.
    Ok((length, if length == 0 { 0 } else { fingerprint(file, length)? }))
}

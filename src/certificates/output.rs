//! The digest of what a batch writes to one output.

use super::hex::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What stands around each line where its bytes go into the digest, so that no two outputs have the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// A line break behind each line: the digest is that of the bytes in a file.
    Newline,
    /// The line's length before it, as 4 bytes, the highest first: messages may hold line breaks.
    Length,
}

/// The digest of an output, as its lines come.
#[derive(Clone)]
pub struct OutputDigest {
    framing: Framing,
    hash: Sha256,
    lines: u64,
    bytes: u64,
}

impl OutputDigest {
    /// Of no line yet.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self { framing, hash: Sha256::new(), lines: 0, bytes: 0 }
    }

    /// Adds a line, without its line break.
    pub fn add(&mut self, line: &[u8]) {
        match self.framing {
            Framing::Newline => {
                self.hash.update(line);
                self.hash.update(b"\n");
            }
            Framing::Length => {
                self.hash.update(u32::try_from(line.len()).unwrap_or(u32::MAX).to_be_bytes());
                self.hash.update(line);
            }
        }
        self.lines += 1;
        self.bytes += line.len() as u64;
    }

    /// Lines added, and their bytes without what frames them.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        (self.lines, self.bytes)
    }

    /// SHA-256 of all of it, in lower-case hex.
    #[must_use]
    pub fn hex(self) -> String {
        hex(&self.hash.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framed_lines_are_told_apart_and_a_files_digest_is_that_of_its_bytes() {
        let digest = |framing, lines: &[&str]| {
            let mut digest = OutputDigest::new(framing);
            lines.iter().for_each(|line| digest.add(line.as_bytes()));
            digest.hex()
        };
        assert_eq!(digest(Framing::Newline, &["a", "b"]), hex(&Sha256::digest(b"a\nb\n")));
        assert_eq!(digest(Framing::Length, &["a\nb"]), hex(&Sha256::digest(b"\0\0\0\x03a\nb")));
        assert_ne!(digest(Framing::Length, &["a\nb"]), digest(Framing::Length, &["a", "b"]));
    }
}

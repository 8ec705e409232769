//! The text of a gzip file: its members, one after the other, and what is padding behind the last.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

/// Members of gzip as one text. Zero bytes behind the last one are padding (tapes and block devices have it), as `gzip -d` takes them.
pub(super) struct Members<R> {
    at: At<R>,
}

enum At<R> {
    Member(Box<GzDecoder<R>>),
    /// Behind a member, and behind zero bytes if it is `padded`.
    Between {
        input: R,
        padded: bool,
    },
    /// A read has failed on the way from one to the other.
    Nowhere,
}

impl<R: BufRead> Members<R> {
    pub fn new(input: R) -> Self {
        Self { at: At::Member(Box::new(GzDecoder::new(input))) }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match &mut self.at {
                At::Member(member) => {
                    let count = member.read(into)?;
                    if count > 0 || into.is_empty() {
                        return Ok(count);
                    }
                }
                At::Between { input, padded } => {
                    let bytes = input.fill_buf()?;
                    if bytes.is_empty() {
                        return Ok(0);
                    }
                    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                    let is_over = zeros < bytes.len();
                    input.consume(zeros);
                    *padded |= zeros > 0;
                    if !is_over {
                        continue;
                    }
                    if *padded {
                        return Err(io::ErrorKind::InvalidData.into());
                    }
                }
                At::Nowhere => return Err(io::Error::other("an earlier read has failed")),
            }
            self.at = match std::mem::replace(&mut self.at, At::Nowhere) {
                At::Member(member) => At::Between { input: member.into_inner(), padded: false },
                At::Between { input, .. } => At::Member(Box::new(GzDecoder::new(input))),
                At::Nowhere => At::Nowhere,
            };
        }
    }
}

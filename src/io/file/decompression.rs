//! Gzip and Zstandard inputs.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::GzDecoder;

use super::pipe_reader::is_stop;

const BUFFER_BYTES: usize = 64 << 10;
const SIGNATURE_BYTES: usize = 4;
/// 128 MiB, as in `zstd -d`.
const MAX_WINDOW_LOG: u32 = 27;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputCompression {
    Gzip,
    Zstandard,
}

impl InputCompression {
    pub fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // Parallel compressors write a skippable frame first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstandard),
            _ => None,
        }
    }
}

fn may_be_compressed(start: &[u8]) -> bool {
    match start {
        [] | [0x1f | 0x28 | 0x50..=0x5f] | [0x28, 0xb5] | [0x28, 0xb5, 0x2f] => true,
        [0x50..=0x5f, rest @ ..] => rest.len() < 3 && [0x2a, 0x4d].starts_with(rest),
        _ => false,
    }
}

type ByteInput = Box<dyn Read + Send>;
type RewoundInput = Chain<Cursor<Vec<u8>>, ByteInput>;

/// Plain text of an input with concatenated members or frames, in at most one window of 128 MiB. A read may be repeated
/// after `WouldBlock` only.
pub(super) enum DecompressedInput {
    Undetected(Vec<u8>, ByteInput),
    Plain(RewoundInput),
    Gzip(GzipMembers<BufReader<RewoundInput>>),
    Zstandard(zstd::stream::read::Decoder<'static, BufReader<RewoundInput>>),
    ReadFailed,
}

impl DecompressedInput {
    pub fn new(input: ByteInput) -> Self {
        Self::Undetected(Vec::new(), input)
    }

    fn detect_compression(&mut self) -> io::Result<()> {
        let Self::Undetected(start, input) = self else { return Ok(()) };
        let mut bytes = vec![0; BUFFER_BYTES];
        while start.len() < SIGNATURE_BYTES && may_be_compressed(start) {
            match input.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => start.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let Self::Undetected(start, input) = std::mem::replace(self, Self::ReadFailed) else { return Ok(()) };
        let compression = InputCompression::of(&start);
        let raw = Cursor::new(start).chain(input);
        let buffered = |raw| BufReader::with_capacity(BUFFER_BYTES, raw);
        *self = match compression {
            None => Self::Plain(raw),
            Some(InputCompression::Gzip) => Self::Gzip(GzipMembers::new(buffered(raw))),
            Some(InputCompression::Zstandard) => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered(raw))?;
                decoder.window_log_max(MAX_WINDOW_LOG)?;
                Self::Zstandard(decoder)
            }
        };
        Ok(())
    }
}

impl Read for DecompressedInput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.detect_compression().and_then(|()| match self {
            Self::Undetected(..) | Self::ReadFailed => Err(io::Error::other("an earlier read failed")),
            Self::Plain(raw) => raw.read(into),
            Self::Gzip(members) => members.read(into),
            Self::Zstandard(decoder) => decoder.read(into),
        });
        read.map_err(|error| {
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                return error;
            }
            match std::mem::replace(self, Self::ReadFailed) {
                _ if is_stop(&error) => error,
                Self::Gzip(_) => decompression_error(&error, "gzip", "gzip -t"),
                Self::Zstandard(_) => decompression_error(&error, "Zstandard", "zstd -t"),
                _ => error,
            }
        })
    }
}

fn decompression_error(error: &io::Error, name: &str, tester: &str) -> io::Error {
    if let Some(code) = error.raw_os_error() {
        return io::Error::from_raw_os_error(code);
    }
    let kind = error.kind();
    // Zstandard distinguishes this error only by its text.
    let what = if error.to_string().contains("requires too much memory") {
        "window exceeds 128 MiB (compress it again without --long, or decompress it first)".to_owned()
    } else if kind == io::ErrorKind::UnexpectedEof {
        format!("stream is truncated (fetch the file again; {tester} checks it)")
    } else {
        format!("stream is damaged (fetch the file again; {tester} checks it)")
    };
    io::Error::new(kind, format!("{name} {what}"))
}

/// Zero bytes after the last member are padding, as in `gzip -d`.
pub(super) struct GzipMembers<R> {
    /// Always present between two reads.
    member: Option<GzDecoder<R>>,
    padded: bool,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(input: R) -> Self {
        Self { member: Some(GzDecoder::new(input)), padded: false }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            let behind = member.get_mut().fill_buf()?;
            if behind.is_empty() {
                return Ok(0);
            }
            let zeros = behind.iter().take_while(|byte| **byte == 0).count();
            let more = zeros < behind.len();
            member.get_mut().consume(zeros);
            self.padded |= zeros > 0;
            if more && self.padded {
                break;
            }
            if more {
                self.member = self.member.take().map(|member| GzDecoder::new(member.into_inner()));
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
#[path = "inflate_tests.rs"]
mod tests;

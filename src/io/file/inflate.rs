//! Compressed inputs: told by how they begin, and read as the text that is in them.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use flate2::bufread::GzDecoder;

use super::pipe::is_stop;

/// Compressed bytes held at a time.
const BUFFER_BYTES: usize = 64 << 10;
/// Enough to tell how an input begins.
const BEGINNING: usize = 4;
/// The largest window of a Zstandard frame, as a power of two: 128 MiB, which is what `zstd -d` takes without being asked to.
/// A frame that wants more is refused, so that memory stays bounded.
const LARGEST_WINDOW: u32 = 27;

/// How an input is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstandard,
}

impl Compression {
    /// What begins like this; none for what is not compressed.
    pub fn of(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // A frame, or one that is to be skipped, as parallel compressors write first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstandard),
            _ => None,
        }
    }
}

/// Whether more bytes might still make a compressed file of these.
fn may_be_compressed(start: &[u8]) -> bool {
    match start {
        [] | [0x1f | 0x28 | 0x50..=0x5f] | [0x28, 0xb5] | [0x28, 0xb5, 0x2f] => true,
        [0x50..=0x5f, rest @ ..] => rest.len() < 3 && [0x2a, 0x4d].starts_with(rest),
        _ => false,
    }
}

type Input = Box<dyn Read + Send>;
type Raw = Chain<Cursor<Vec<u8>>, Input>;

/// An input as the text that is in it: gzip and Zstandard are told by their first bytes and decompressed as they are read, members and
/// frames one after the other as one text. Everything else is given as it is.
///
/// Memory: a window of the compression, at most 128 MiB, however much is in it. A read that fails with `WouldBlock` can be repeated;
/// behind any other error nothing is given, and no end.
pub(super) enum Inflated {
    /// No more has been read than these bytes, which leave in doubt what it is.
    Begins(Vec<u8>, Input),
    Plain(Raw),
    Gzip(Members<BufReader<Raw>>),
    Zstandard(zstd::stream::read::Decoder<'static, BufReader<Raw>>),
    Broken,
}

impl Inflated {
    /// The input from its beginning. Nothing is read yet.
    pub fn new(input: Input) -> Self {
        Self::Begins(Vec::new(), input)
    }

    /// Looks at the first bytes. A pipe is not waited for longer than they leave in doubt what it is.
    fn begin(&mut self) -> io::Result<()> {
        let Self::Begins(start, input) = self else { return Ok(()) };
        let mut bytes = vec![0; BUFFER_BYTES];
        while start.len() < BEGINNING && may_be_compressed(start) {
            match input.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => start.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let Self::Begins(start, input) = std::mem::replace(self, Self::Broken) else { return Ok(()) };
        let compression = Compression::of(&start);
        let raw = Cursor::new(start).chain(input);
        let buffered = |raw| BufReader::with_capacity(BUFFER_BYTES, raw);
        *self = match compression {
            None => Self::Plain(raw),
            Some(Compression::Gzip) => Self::Gzip(Members::new(buffered(raw))),
            Some(Compression::Zstandard) => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered(raw))?;
                decoder.window_log_max(LARGEST_WINDOW)?;
                Self::Zstandard(decoder)
            }
        };
        Ok(())
    }
}

impl Read for Inflated {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.begin().and_then(|()| match self {
            Self::Begins(..) | Self::Broken => Err(io::Error::other("an earlier read has failed")),
            Self::Plain(raw) => raw.read(into),
            Self::Gzip(members) => members.read(into),
            Self::Zstandard(decoder) => decoder.read(into),
        });
        read.map_err(|error| {
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
                return error;
            }
            match std::mem::replace(self, Self::Broken) {
                _ if is_stop(&error) => error,
                Self::Gzip(_) => told(&error, "gzip", "gzip -t"),
                Self::Zstandard(_) => told(&error, "Zstandard", "zstd -t"),
                _ => error,
            }
        })
    }
}

/// An error of the system as it is; one of the decompression in words that say what to do.
fn told(error: &io::Error, name: &str, tester: &str) -> io::Error {
    if let Some(code) = error.raw_os_error() {
        return io::Error::from_raw_os_error(code);
    }
    let kind = error.kind();
    // Zstandard tells this apart by its text alone.
    let what = if error.to_string().contains("requires too much memory") {
        "window is larger than 128 MiB (compress it again without --long, or decompress it first)".to_owned()
    } else if kind == io::ErrorKind::UnexpectedEof {
        format!("stream ends too early, the file is cut short (get it again; {tester} tests it)")
    } else {
        format!("stream is damaged (get it again; {tester} tests it)")
    };
    io::Error::new(kind, format!("its {name} {what}"))
}

/// Members of gzip as one text. Zero bytes behind the last one are padding (tapes and block devices have it), as `gzip -d` takes them.
pub(super) struct Members<R> {
    /// Always some between two reads.
    member: Option<GzDecoder<R>>,
    /// There were zero bytes behind the member.
    padded: bool,
}

impl<R: BufRead> Members<R> {
    fn new(input: R) -> Self {
        Self { member: Some(GzDecoder::new(input)), padded: false }
    }
}

impl<R: BufRead> Read for Members<R> {
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

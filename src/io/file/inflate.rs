//! Compressed inputs: told by how they begin, and read as the text that is in them.

use std::io::{self, BufReader, Chain, Cursor, Read};
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::gzip::Members;
use super::waiting::{StopFlag, comes, wait};

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

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstandard => "Zstandard",
        }
    }
}

type Raw = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

enum Inner {
    /// No more has been read than these bytes, which leave in doubt what it is.
    Begins {
        input: Box<dyn Read + Send>,
        start: Vec<u8>,
    },
    Plain(Raw),
    Gzip(Box<Members<BufReader<Raw>>>),
    Zstandard(Box<zstd::stream::read::Decoder<'static, BufReader<Raw>>>),
    /// Reading has failed: nothing behind a fault is given, and no end.
    Broken,
}

/// A pipe that is asked before it is read, and says when it would have to be waited for.
struct Asked {
    input: Box<dyn Read + Send>,
    pipe: OwnedFd,
}

impl Read for Asked {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if comes(&self.pipe, Duration::ZERO)? { self.input.read(into) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }
}

/// An input as the text that is in it: gzip and Zstandard are told by their first bytes and decompressed as they are read, members and
/// frames one after the other as one text. Everything else is given as it is.
///
/// Memory: a window of the compression, at most 128 MiB, however much is in it.
pub(super) struct Inflated {
    inner: Inner,
    compression: Option<Compression>,
    /// What to ask whether there is more; none for a regular file.
    pipe: Option<OwnedFd>,
    /// Whether a read waits for more of a pipe.
    waits: bool,
    /// When it does not wait any more.
    stop: StopFlag,
}

impl Inflated {
    /// The input from its beginning. Nothing is read yet.
    ///
    /// # Errors
    /// When the pipe cannot be asked.
    pub fn new(input: Box<dyn Read + Send>, pipe: Option<OwnedFd>, stop: StopFlag) -> io::Result<Self> {
        let asked = pipe.as_ref().map(OwnedFd::try_clone).transpose()?;
        let input: Box<dyn Read + Send> = match asked {
            Some(pipe) => Box::new(Asked { input, pipe }),
            None => input,
        };
        let inner = Inner::Begins { input, start: Vec::new() };
        Ok(Self { inner, compression: None, pipe, waits: true, stop })
    }

    /// Text that is known not to be compressed.
    pub fn plain(input: Box<dyn Read + Send>) -> Self {
        let inner = Inner::Plain(Cursor::new(Vec::new()).chain(input));
        Self { inner, compression: None, pipe: None, waits: true, stop: StopFlag::default() }
    }

    /// How it is compressed, once something has been read.
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// Whether a read waits for more of a pipe, or is an error that says that it would have to.
    pub fn set_waiting(&mut self, waits: bool) {
        self.waits = waits;
    }

    /// Looks at the first bytes, if nobody has yet.
    fn begin(&mut self) -> io::Result<()> {
        let Inner::Begins { input, start } = &mut self.inner else { return Ok(()) };
        let mut bytes = vec![0; BUFFER_BYTES];
        // A pipe is not waited for longer than its first bytes leave in doubt.
        while start.len() < BEGINNING && may_be_compressed(start) {
            // All that is there: who looks at the beginning of plain text wants more than this does.
            match input.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => start.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let Inner::Begins { input, start } = std::mem::replace(&mut self.inner, Inner::Broken) else { return Ok(()) };
        self.compression = Compression::of(&start);
        let raw = Cursor::new(start).chain(input);
        let buffered = |raw| BufReader::with_capacity(BUFFER_BYTES, raw);
        self.inner = match self.compression {
            None => Inner::Plain(raw),
            Some(Compression::Gzip) => Inner::Gzip(Box::new(Members::new(buffered(raw)))),
            Some(Compression::Zstandard) => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered(raw))?;
                decoder.window_log_max(LARGEST_WINDOW)?;
                Inner::Zstandard(Box::new(decoder))
            }
        };
        Ok(())
    }

    fn read_some(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.begin()?;
        match &mut self.inner {
            Inner::Begins { .. } | Inner::Broken => Err(io::Error::other("an earlier read has failed")),
            Inner::Plain(raw) => raw.read(into),
            Inner::Gzip(members) => members.read(into),
            Inner::Zstandard(decoder) => decoder.read(into),
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

impl Read for Inflated {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let error = match self.read_some(into) {
                Ok(count) => return Ok(count),
                Err(error) => error,
            };
            match (error.kind(), &self.pipe, self.compression) {
                (io::ErrorKind::WouldBlock, Some(pipe), _) if self.waits => wait(pipe, &self.stop)?,
                (io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted, ..) => return Err(error),
                (.., by) => {
                    self.inner = Inner::Broken;
                    return Err(match by {
                        Some(by) => told(&error, by),
                        None => error,
                    });
                }
            }
        }
    }
}

/// An error of the system as it is; one of the decompression in words that say what to do.
fn told(error: &io::Error, by: Compression) -> io::Error {
    if let Some(code) = error.raw_os_error() {
        return io::Error::from_raw_os_error(code);
    }
    let (name, kind) = (by.name(), error.kind());
    // Zstandard tells this apart by its text alone.
    if error.to_string().contains("requires too much memory") {
        return io::Error::new(
            kind,
            format!(
                "its {name} window is larger than 128 MiB (compress it again without --long, or decompress it first)"
            ),
        );
    }
    let what = match kind {
        io::ErrorKind::UnexpectedEof => "ends too early, the file is cut short",
        _ => "is damaged",
    };
    io::Error::new(kind, format!("its {name} stream {what} (get it again; {} tests it)", tester(by)))
}

fn tester(by: Compression) -> &'static str {
    match by {
        Compression::Gzip => "gzip -t",
        Compression::Zstandard => "zstd -t",
    }
}

#[cfg(test)]
#[path = "inflate_tests.rs"]
mod tests;

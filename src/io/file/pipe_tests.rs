use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::StopFlag;
use crate::io::file::stream::plain_length;
use crate::io::file::testing::{CSV, file, pipe, reading};
use crate::io::file::{FileSource, Format, Reading, SourceError, separator_of};
use throng_core::values::raw::RawBatch;

/// As long as a machine that is busy may take to look up.
const SOON: Duration = Duration::from_secs(10);

fn open(path: &Path, format: Format, flag: &Arc<AtomicBool>) -> Result<FileSource, SourceError> {
    FileSource::reading(path, Reading { stop: StopFlag::new(Arc::clone(flag)), ..reading(format) })
}

/// A pipe into which somebody has written `text` and then says nothing for as long as the file given back is open.
fn open_pipe(text: &[u8]) -> (tempfile::TempDir, PathBuf, fs::File) {
    let (directory, path) = pipe();
    // Opened for both, it waits for nobody.
    let mut open = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    open.write_all(text).unwrap();
    (directory, path, open)
}

/// Sets a flag after a moment, and gives how long after it `work` has ended.
fn after_the_stop<T>(flag: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> (T, Duration) {
    let other = Arc::clone(flag);
    let setter = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        other.store(true, Ordering::Release);
        Instant::now()
    });
    let done = work();
    let ended = Instant::now();
    (done, ended.saturating_duration_since(setter.join().unwrap()))
}

#[test]
fn a_header_that_does_not_come_is_not_waited_for_any_more() {
    for begin in [b"a,b".as_slice(), b"", b"\x1f", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", b"\x28\xb5\x2f\xfd"] {
        let (_directory, path, _writer) = open_pipe(begin);
        let flag = Arc::default();
        let (opened, late) = after_the_stop(&flag, || open(&path, CSV, &flag));
        let error = opened.map(drop).unwrap_err();
        assert!(error.is_stop() && late < SOON, "{begin:?}: {error} after {late:?}");
    }
}

#[test]
fn a_record_that_stays_open_is_not_waited_for_any_more() {
    for (format, text) in [(CSV, b"a,b\n1,2\n3,".as_slice()), (Format::Ndjson, b"{\"a\":1}\n{\"a\"")] {
        let (_directory, path, _writer) = open_pipe(text);
        let flag = Arc::default();
        let mut source = open(&path, format, &flag).unwrap();
        let mut rows = RawBatch::new(2);
        let (outcome, late) = after_the_stop(&flag, || source.read(&mut rows, 9, u64::MAX, &mut Vec::new()).unwrap());
        assert!(outcome.stopped && !outcome.end && late < SOON, "{outcome:?} after {late:?}");
        assert_eq!((outcome.records, rows.rows()), (1, 1), "what had come whole is there");
        assert_eq!(source.position().bytes, 8, "behind the last whole record");
    }
}

/// 64 GiB of one letter in a few megabytes: nobody waits until it is passed over.
#[test]
fn a_bomb_does_not_keep_anybody() {
    let block = zstd::stream::encode_all(&vec![b'x'; 64 << 20][..], 1).unwrap();
    for (format, start) in [(CSV, "a,b\n1,2\n\"".as_bytes()), (Format::Ndjson, b"{\"a\":1}\n")] {
        let mut content = zstd::stream::encode_all(start, 1).unwrap();
        (0..1024).for_each(|_| content.extend(&block));
        let (_directory, path) = file(&content);
        let flag = Arc::default();
        let mut source = open(&path, format, &flag).unwrap();
        let mut rows = RawBatch::new(2);
        let (outcome, late) = after_the_stop(&flag, || source.read(&mut rows, 9, u64::MAX, &mut Vec::new()).unwrap());
        assert!(outcome.stopped && late < SOON, "{outcome:?} after {late:?}");
        assert_eq!(outcome.records, 1);
        let at = source.position();
        assert_eq!((at.records, at.bytes), (1, 8), "not inside the record");
    }
}

/// Who only looks at a pipe does not open it: that would wait for a writer, and break the pipe of one that is there.
#[test]
fn a_pipe_is_not_opened_to_look_at_it() {
    let (directory, path) = pipe();
    let (said, heard) = mpsc::channel();
    let asked = path.clone();
    std::thread::spawn(move || said.send((plain_length(&asked), separator_of(&asked).unwrap())));
    assert_eq!(heard.recv_timeout(Duration::from_secs(20)), Ok((None, b',')), "nobody has opened the other end");
    fs::write(directory.path().join("text"), "a;b\n").unwrap();
    assert_eq!(plain_length(&directory.path().join("text")), Some(4));
    fs::write(directory.path().join("gz"), b"\x1f\x8b\x08\0").unwrap();
    assert_eq!(plain_length(&directory.path().join("gz")), None);
    assert_eq!(plain_length(&directory.path().join("none")), None);
}

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::StopFlag;
use crate::io::file::file_test_helpers::{CSV, file, pipe, reading};
use crate::io::file::text_stream::plain_length;
use crate::io::file::{FileFormat, FileReadSettings, FileSource, SourceError, separator_of};
use throng_core::values::raw_batch::RawBatch;

const REACTION_LIMIT: Duration = Duration::from_secs(10);

fn open(path: &Path, format: FileFormat, flag: &Arc<AtomicBool>) -> Result<FileSource, SourceError> {
    FileSource::reading(path, FileReadSettings { stop: StopFlag::new(Arc::clone(flag)), ..reading(format) })
}

fn open_pipe(text: &[u8]) -> (tempfile::TempDir, PathBuf, fs::File) {
    let (directory, path) = pipe();
    let mut open = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    open.write_all(text).unwrap();
    (directory, path, open)
}

fn run_with_stop<T>(flag: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> (T, Duration) {
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
fn stop_interrupts_wait_for_header() {
    for begin in [b"a,b".as_slice(), b"", b"\x1f", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", b"\x28\xb5\x2f\xfd"] {
        let (_directory, path, _writer) = open_pipe(begin);
        let flag = Arc::default();
        let (opened, late) = run_with_stop(&flag, || open(&path, CSV, &flag));
        let error = opened.map(drop).unwrap_err();
        assert!(error.is_stop() && late < REACTION_LIMIT, "{begin:?}: {error} after {late:?}");
    }
}

#[test]
fn stop_interrupts_wait_for_rest_of_record() {
    for (format, text) in [(CSV, b"a,b\n1,2\n3,".as_slice()), (FileFormat::Ndjson, b"{\"a\":1}\n{\"a\"")] {
        let (_directory, path, _writer) = open_pipe(text);
        let flag = Arc::default();
        let mut source = open(&path, format, &flag).unwrap();
        let mut rows = RawBatch::new(2);
        let (outcome, late) = run_with_stop(&flag, || source.read(&mut rows, 9, u64::MAX, &mut Vec::new()).unwrap());
        assert!(outcome.stopped && !outcome.end && late < REACTION_LIMIT, "{outcome:?} after {late:?}");
        assert_eq!((outcome.records, rows.rows()), (1, 1), "what had come whole is there");
        assert_eq!(source.position().bytes, 8, "behind the last whole record");
    }
}

#[test]
fn stop_interrupts_skipping_of_decompression_bomb() {
    let block = zstd::stream::encode_all(&vec![b'x'; 64 << 20][..], 1).unwrap();
    for (format, start) in [(CSV, "a,b\n1,2\n\"".as_bytes()), (FileFormat::Ndjson, b"{\"a\":1}\n")] {
        let mut content = zstd::stream::encode_all(start, 1).unwrap();
        (0..1024).for_each(|_| content.extend(&block));
        let (_directory, path) = file(&content);
        let flag = Arc::default();
        let mut source = open(&path, format, &flag).unwrap();
        let mut rows = RawBatch::new(2);
        let (outcome, late) = run_with_stop(&flag, || source.read(&mut rows, 9, u64::MAX, &mut Vec::new()).unwrap());
        assert!(outcome.stopped && late < REACTION_LIMIT, "{outcome:?} after {late:?}");
        assert_eq!(outcome.records, 1);
        let at = source.position();
        assert_eq!((at.records, at.bytes), (1, 8), "not inside the record");
    }
}

/// Opening would wait for a writer, or break its pipe.
#[test]
fn inspection_does_not_open_pipe() {
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

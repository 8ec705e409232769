use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::io::file::file_test_helpers::{CSV, file, open, pipe};
use crate::io::file::text_stream::TextStream;
use crate::io::file::{FileFormat, SourceError, SourcePosition, StopFlag};
use throng_core::values::raw_batch::{RawBatch, RawToken};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstandard(text: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn compressed(by: InputCompression, text: &[u8]) -> Vec<u8> {
    match by {
        InputCompression::Gzip => gzip(text),
        InputCompression::Zstandard => zstandard(text),
    }
}

const COMPRESSIONS: [InputCompression; 2] = [InputCompression::Gzip, InputCompression::Zstandard];

fn all(path: &Path, format: FileFormat, size: usize) -> Result<Vec<(String, SourcePosition)>, SourceError> {
    let mut calls = Vec::new();
    let mut source = open(path, format)?;
    loop {
        let (mut batch, mut rejected) = (RawBatch::new(2), Vec::new());
        let outcome = source.read(&mut batch, size, u64::MAX, &mut rejected)?;
        let rows: Vec<String> =
            (0..batch.rows()).map(|row| format!("{:?} {:?}", batch.token(row, 0), batch.token(row, 1))).collect();
        calls.push((format!("{rows:?} {rejected:?} {}", outcome.tombstones), source.position()));
        if outcome.end {
            return Ok(calls);
        }
    }
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u8>().prop_map(|n| format!("{{\"a\":{n}}}")),
        "[a-z]{0,6}".prop_map(|b| format!("{{\"b\":\"{b}\"}}")),
        Just("null".to_owned()),
        Just(String::new()),
        Just("x".repeat(200)),
        Just("1,\"two\nlines\"".to_owned()),
    ]
}

proptest! {
    #[test]
    fn compressed_input_reads_like_plain_text(
        lines in prop::collection::vec(line(), 0..30),
        ending in prop::sample::select(vec!["", "\n", "\r\n"]),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        size in 1_usize..9,
        csv in any::<bool>(),
    ) {
        let text = format!("{}{}{ending}", if csv { "a,b\n" } else { "" }, lines.join("\n"));
        let format = if csv { CSV } else { FileFormat::Ndjson };
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let (_plain, plain) = file(text.as_bytes());
        let expected = all(&plain, format, size).unwrap();
        for by in COMPRESSIONS {
            let mut from = 0;
            let mut content = Vec::new();
            for &cut in cuts.iter().chain([&text.len()]) {
                content.extend(compressed(by, &text.as_bytes()[from..cut]));
                from = cut;
            }
            let (_other, other) = file(&content);
            prop_assert_eq!(&all(&other, format, size).unwrap(), &expected, "{:?}", by);
        }
    }
}

fn text() -> Vec<u8> {
    (0..400).flat_map(|n| format!("{{\"a\":{},\"b\":\"{}\"}}\n", n * n, n % 7).into_bytes()).collect()
}

#[test]
fn truncated_compressed_file_is_an_error() {
    for by in COMPRESSIONS {
        let content = compressed(by, &text());
        for cut in 4..content.len() {
            let (_directory, path) = file(&content[..cut]);
            let Err(error) = all(&path, FileFormat::Ndjson, 1000) else { panic!("{by:?} cut after {cut} bytes") };
            let said = error.to_string();
            assert!(said.contains("truncated") || said.contains("damaged"), "{by:?} at {cut}: {said}");
            assert!(said.contains(path.to_str().unwrap()), "{said}");
        }
        let (_directory, path) = file(&[content.clone(), b"rubbish".to_vec()].concat());
        assert!(all(&path, FileFormat::Ndjson, 1000).is_err(), "{by:?} with something behind it");
        let (_directory, path) = file(&content);
        all(&path, FileFormat::Ndjson, 1000).unwrap();
    }
}

#[test]
fn corrupted_byte_never_changes_records_silently() {
    for by in COMPRESSIONS {
        let content = compressed(by, &text());
        let (_directory, path) = file(&content);
        let expected = all(&path, FileFormat::Ndjson, 1000).unwrap();
        let mut refused = 0;
        for at in (4..content.len()).step_by(3) {
            let mut changed = content.clone();
            changed[at] ^= 0x10;
            fs::write(&path, changed).unwrap();
            match all(&path, FileFormat::Ndjson, 1000) {
                Ok(found) => assert_eq!(found, expected, "{by:?}: byte {at}"),
                Err(_) => refused += 1,
            }
        }
        assert!(refused > content.len() / 4, "{by:?}: {refused} of {} refused", content.len() / 3);
    }
}

#[test]
fn zero_bytes_after_gzip_are_padding() {
    let content = gzip(&text());
    let (_directory, path) = file(&content);
    let expected = all(&path, FileFormat::Ndjson, 1000).unwrap();
    for zeros in [1, 8, 512, 3 * BUFFER_BYTES] {
        let padded = [content.clone(), vec![0; zeros]].concat();
        fs::write(&path, &padded).unwrap();
        assert_eq!(all(&path, FileFormat::Ndjson, 1000).unwrap(), expected, "{zeros}");
        let members = [gzip(&text()[..100]), gzip(b""), gzip(&text()[100..]), vec![0; zeros]].concat();
        fs::write(&path, members).unwrap();
        assert_eq!(all(&path, FileFormat::Ndjson, 1000).unwrap(), expected, "{zeros}");
        for behind in [b"x".to_vec(), content.clone()] {
            fs::write(&path, [padded.clone(), behind].concat()).unwrap();
            let said = all(&path, FileFormat::Ndjson, 1000).unwrap_err().to_string();
            assert!(said.contains("damaged"), "{zeros}: {said}");
        }
    }
    fs::write(&path, vec![0; 512]).unwrap();
    assert!(
        !format!("{:?}", all(&path, FileFormat::Ndjson, 1000).unwrap()).contains("Number"),
        "zero bytes alone are no file"
    );
}

#[test]
fn decompression_bomb_is_one_oversized_record() {
    for by in COMPRESSIONS {
        let many = vec![b'x'; 4 << 20];
        let mut content = Vec::new();
        (0..64).for_each(|_| content.extend(compressed(by, &many)));
        content.extend(compressed(by, b"\n{\"a\":1}\n"));
        assert!(content.len() < 1 << 20, "{} bytes", content.len());
        let (_directory, path) = file(&content);
        let before = resident();
        let found = all(&path, FileFormat::Ndjson, 10).unwrap();
        assert!(resident() < before + (64 << 20), "{} bytes more", resident() - before);
        assert_eq!(found[0].1, SourcePosition { records: 2, bytes: (256 << 20) + 9 });
        assert!(found[0].0.contains("Oversized"), "{}", found[0].0);
    }
}

/// Peak, in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn zstandard_window_over_limit_is_refused() {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(28).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.write_all(b"{\"a\":1}\n").unwrap();
    let (_directory, path) = file(&encoder.finish().unwrap());
    let Err(error) = all(&path, FileFormat::Ndjson, 10) else { panic!("a window of 256 MiB") };
    assert!(error.to_string().contains("128 MiB"), "{error}");
}

#[test]
fn compression_is_detected_by_first_bytes() {
    for (start, by) in [
        (b"\x1f\x8b\x08\0".as_slice(), Some(InputCompression::Gzip)),
        (b"\x28\xb5\x2f\xfd", Some(InputCompression::Zstandard)),
        (b"\x50\x2a\x4d\x18", Some(InputCompression::Zstandard)),
        (b"PK\x03\x04", None),
        (b"(a),b\n", None),
        (b"P*M,a\n", None),
        (b"\x1f", None),
        (b"", None),
    ] {
        assert_eq!(InputCompression::of(start), by, "{start:?}");
        let mut inflated = DecompressedInput::new(Box::new(Cursor::new(start.to_vec())));
        let mut found = Vec::new();
        let read = inflated.read_to_end(&mut found);
        match by {
            None => assert_eq!((read.unwrap(), found.as_slice()), (start.len(), start)),
            Some(_) => assert!(read.is_err(), "{start:?} is no whole file"),
        }
    }
}

#[test]
fn pipe_returns_available_records() {
    for by in [None, Some(InputCompression::Gzip), Some(InputCompression::Zstandard)] {
        let packed = move |text: &[u8]| by.map_or(text.to_vec(), |by| compressed(by, text));
        let (_directory, path) = pipe();
        let (go_on, begun) = crossbeam_channel::bounded(0);
        let writer = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut pipe = fs::OpenOptions::new().write(true).open(path).unwrap();
                pipe.write_all(&packed(b"{\"a\":1}\n{\"a\":2}\n")).unwrap();
                let () = begun.recv().unwrap();
                pipe.write_all(&packed(b"{\"a\":3}\n")).unwrap();
            }
        });
        let mut source = open(&path, FileFormat::Ndjson).unwrap();
        let mut batch = RawBatch::new(2);
        let mut read = || source.read(&mut batch, 10, u64::MAX, &mut Vec::new()).unwrap();
        let mut records = 0;
        while records < 2 {
            records += read().records;
        }
        let none = read();
        assert!(records == 2 && none.records == 0 && !none.end, "{by:?}: {none:?}");
        go_on.send(()).unwrap();
        while !read().end {}
        writer.join().unwrap();
        assert_eq!(source.position(), SourcePosition { records: 3, bytes: 24 });
        let found: Vec<_> = (0..batch.rows()).map(|row| batch.token(row, 0)).collect();
        assert_eq!(found, ["1", "2", "3"].map(RawToken::Number), "{by:?}");
    }
    assert!(TextStream::open(Path::new("/dev/null"), &StopFlag::default()).is_ok());
}

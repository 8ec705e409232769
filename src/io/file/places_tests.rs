use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::io::file::FileSink;
use crate::io::file::delivery::FileDelivery;

const CSV: Format = Format::Csv { separator: b',' };

fn groups() -> Vec<GroupColumns> {
    ["x", "y"].map(|name| GroupColumns { name: name.into(), columns: vec!["v".into(), "w".into()] }).into()
}

fn check(path: &Path, format: Format, lengths: &Lengths) -> Result<(), SinkError> {
    Places { path, groups: &groups(), format, rotates: false, dead_letters: None, certificates: None, lineage: None }
        .check(lengths)
}

fn occupied(result: Result<(), SinkError>) -> Option<PathBuf> {
    match result {
        Ok(()) => None,
        Err(SinkError::Occupied { path }) => Some(path),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn somebody_elses_file_is_seen_before_it_is_emptied() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let found = |format, known: &[&str]| {
        occupied(check(&path, format, &known.iter().map(|name| ((*name).to_owned(), 0)).collect()))
    };
    assert_eq!(found(CSV, &[]), None);
    fs::write(directory.path().join("out.y"), b"").unwrap();
    assert_eq!(found(CSV, &[]), None);
    fs::write(directory.path().join("out.y"), b"mine").unwrap();
    let y = Some(directory.path().join("out.y"));
    assert_eq!(found(CSV, &[]), y);
    assert_eq!(found(CSV, &["x"]), y, "one that the state does not know, beside one that it does");
    assert_eq!(found(CSV, &["y"]), None);
    assert_eq!(found(Format::Parquet, &[]), None);
    fs::create_dir_all(path.join("x")).unwrap();
    assert_eq!(found(Format::Parquet, &[]), None);
    fs::write(path.join("x/file"), b"mine").unwrap();
    assert_eq!(found(Format::Parquet, &[]), Some(path.join("x")));
    let beside = |dead_letters, certificates, lineage| {
        let places = Places {
            path: Path::new("-"),
            groups: &groups()[..1],
            format: Format::Ndjson,
            rotates: false,
            dead_letters,
            certificates,
            lineage,
        };
        occupied(places.check(&Lengths::new()))
    };
    let (filled, missing) = (path.join("x/file"), path.join("none"));
    assert_eq!(beside(Some(&missing), Some(&missing), Some(&missing)), None);
    assert_eq!(beside(Some(&filled), None, None), Some(filled.clone()));
    assert_eq!(beside(None, Some(&filled), None), Some(filled.clone()));
    assert_eq!(beside(None, None, Some(&filled)), Some(filled.clone()));
}

#[test]
fn a_lineage_begins_with_the_first_line_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let lineage = directory.path().join("lineage");
    let check = |lengths: &[(&str, u64)]| {
        let lengths = lengths.iter().map(|(name, length)| ((*name).to_owned(), *length)).collect();
        let path = &directory.path().join("out");
        let places = Places {
            path,
            groups: &groups(),
            format: CSV,
            rotates: false,
            dead_letters: None,
            certificates: None,
            lineage: Some(lineage.as_path()),
        };
        places.check(&lengths)
    };
    let whole: [&[(&str, u64)]; 4] = [
        &[],
        &[("x", 4), ("y", 4), ("/lines/x", 0), ("/lines/y", 0)],
        &[("x", 4), ("/lines/x", 0)],
        &[("x", 9), ("y", 5), ("/lines/x", 3), ("/lines/y", 1), ("/lineage", 80), ("/lineage-lines", 4)],
    ];
    for lengths in whole {
        check(lengths).unwrap();
    }
    let partial: [&[(&str, u64)]; 4] = [
        &[("x", 9), ("y", 5), ("/lines/x", 3), ("/lines/y", 0)],
        &[("x", 9), ("y", 5), ("/lines/x", 3), ("/lines/y", 1), ("/lineage", 80), ("/lineage-lines", 3)],
        // Written by a run that did not count.
        &[("x", 9)],
        &[("x", 9), ("y", 5), ("/lines/x", 0)],
    ];
    for lengths in partial {
        assert!(matches!(check(lengths), Err(SinkError::PartialLineage { .. })), "{lengths:?}");
    }
}

#[test]
fn two_at_once_are_refused_and_the_first_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for format in [Format::Ndjson, Format::Parquet] {
        let path = directory.path().join(format!("{format:?}"));
        let mut first = FileSink::open(&path, &groups(), format, &[]).unwrap();
        first.append(1, b"{\"v\":1}\n").unwrap();
        let lengths = first.sync().unwrap();
        let second = FileSink::open(&path, &groups(), format, &[]);
        assert!(matches!(second, Err(SinkError::Locked { .. })), "{format:?}");
        assert_eq!(first.sync().unwrap(), lengths);
        drop(first);
        assert_eq!(FileSink::open(&path, &groups(), format, &lengths).unwrap().sync().unwrap(), lengths);
    }
}

/// Every file below a directory, with its content.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Another file with the same bytes, in the place of this one.
fn restore(path: &Path) {
    let copy = path.with_extension("copy");
    fs::copy(path, &copy).unwrap();
    fs::rename(copy, path).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// What was written is known again with anything behind it and as a copy, and not with another byte in its end.
    #[test]
    fn a_file_is_known_again_by_its_end(
        batches in prop::collection::vec(prop::collection::vec(0..99_999_u32, 0..600), 0..5),
        format in prop::sample::select(vec![Format::Ndjson, CSV, Format::Parquet]),
        behind in 0..50_u32,
        at in 0..4096_usize,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let names = vec!["x".to_owned(), "y".to_owned()];
        let line = |v: &u32| if format == CSV { format!("{v},\n") } else { format!("{{\"v\":{v}}}\n") };
        let mut sink = FileSink::open(&path, &groups(), format, &[]).unwrap();
        for batch in &batches {
            sink.append(0, batch.iter().map(line).collect::<String>().as_bytes()).unwrap();
            sink.sync().unwrap();
        }
        let mut delivery = FileDelivery::new(sink, None, None, names, Vec::new(), String::new(), Lengths::new());
        let lengths = delivery.begin().unwrap();
        drop(delivery);
        check(&path, format, &lengths).unwrap();

        let mut sink = FileSink::open(&path, &groups(), format, &crate::io::file::delivery::group_lengths(&lengths)).unwrap();
        for v in 0..behind {
            sink.append(0, line(&v).as_bytes()).unwrap();
        }
        sink.sync().unwrap();
        drop(sink);
        check(&path, format, &lengths).unwrap();

        // While nothing is committed, it is the file itself that is known.
        let x = committed(&lengths, "x").unwrap();
        if format != Format::Parquet {
            let x_path = directory.path().join("out.x");
            restore(&x_path);
            let same = check(&path, format, &lengths);
            prop_assert_eq!(same.is_ok(), x > 0 || behind == 0, "{:?}", same);
        }
        if x > 0 {
            let ours = match format {
                Format::Parquet => path.join(format!("x/segment-{:08}.parquet", x - 1)),
                _ => directory.path().join("out.x"),
            };
            prop_assert!(files(directory.path()).contains(&ours));
            let mut bytes = fs::read(&ours).unwrap();
            let end = if format == Format::Parquet { bytes.len() } else { usize::try_from(x).unwrap() };
            let changed = end - 1 - at % end.min(4096);
            bytes[changed] ^= 1;
            fs::write(&ours, bytes).unwrap();
            let refused = matches!(check(&path, format, &lengths), Err(SinkError::Foreign { .. }));
            prop_assert!(refused);
        }
    }
}

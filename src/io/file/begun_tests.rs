use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;

use proptest::prelude::*;

use super::{imprint_of, place};
use crate::codec::{Field, Limits, Unknown};
use crate::io::file::stream::Stream;
use crate::io::file::{ColumnChoice, FileBegun, FileSource, Format, Reading, SourceError, SourcePosition, StopFlag};
use crate::records::raw::RawBatch;
use std::path::{Path, PathBuf};

const CSV: Format = Format::Csv { separator: b',' };

fn reading(format: Format) -> Reading {
    Reading {
        format,
        fields: vec![Field::flat("a"), Field::flat("b")],
        limits: Limits { max_record_bytes: 64, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 },
        unknown: Unknown::Drop,
        stop: StopFlag::default(),
    }
}

/// What a daemon knows between two starts.
#[derive(Clone, Debug, Default)]
struct State {
    at: SourcePosition,
    begun: Vec<FileBegun>,
}

fn resume(path: &Path, format: Format, state: &State) -> Result<FileSource, SourceError> {
    FileSource::resume(path, reading(format), state.at, &state.begun, &[])
}

/// Reads one batch of at most `size` records, from a start; true at the end.
fn batch(
    path: &Path,
    format: Format,
    state: &mut State,
    size: usize,
    seen: &mut Vec<String>,
) -> Result<bool, SourceError> {
    let mut source = resume(path, format, state)?;
    let (mut batch, mut rejected) = (RawBatch::new(2), Vec::new());
    let outcome = source.read(&mut batch, size, u64::MAX, &mut rejected)?;
    let mut records: Vec<(i64, String)> = rejected.iter().map(|(at, why)| (at.offset, why.to_string())).collect();
    records.extend(
        batch.coordinates().iter().enumerate().map(|(row, at)| (at.offset, format!("{:?}", batch.token(row, 0)))),
    );
    records.sort();
    seen.extend(records.into_iter().map(|(at, text)| format!("{at} {text}")));
    // A batch without a record is no batch: nothing of it is kept.
    if outcome.records > 0 {
        state.at = source.position();
        state.begun.extend(source.take_begun());
    }
    Ok(outcome.end)
}

fn all(path: &Path, format: Format, sizes: &[usize]) -> Result<(Vec<String>, State), SourceError> {
    let (mut state, mut seen) = (State::default(), Vec::new());
    for call in 0.. {
        if batch(path, format, &mut state, sizes[call % sizes.len()], &mut seen)? {
            break;
        }
    }
    Ok((seen, state))
}

fn write(folder: &Path, files: &BTreeMap<String, Vec<String>>, header: &str) {
    for (name, lines) in files {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(folder.join(name), format!("{header}{text}")).unwrap();
    }
}

proptest! {
    /// Several files read as one with all their lines, wherever reading stops and begins again.
    #[test]
    fn files_are_read_as_one_in_the_order_of_their_names(
        files in prop::collection::btree_map("[a-c]{1,3}", prop::collection::vec(any::<u8>(), 0..6), 1..6),
        sizes in prop::collection::vec(1_usize..7, 1..4),
        csv in any::<bool>(),
        by_pattern in any::<bool>(),
    ) {
        let (format, extension, header) = if csv { (CSV, "csv", "a,b\n") } else { (Format::Ndjson, "ndjson", "") };
        let line = |n: &u8| if csv { format!("{n},x") } else { format!("{{\"a\":{n}}}") };
        let files: BTreeMap<String, Vec<String>> =
            files.iter().map(|(name, of)| (format!("{name}.{extension}"), of.iter().map(line).collect())).collect();
        let (folder, one) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(folder.path(), &files, header);
        fs::write(folder.path().join("notes.txt"), "no record").unwrap();
        fs::write(folder.path().join(format!(".hidden.{extension}")), "no record").unwrap();
        fs::create_dir(folder.path().join(format!("b.{extension}.d"))).unwrap();
        let together = BTreeMap::from([(format!("all.{extension}"), files.values().flatten().cloned().collect())]);
        write(one.path(), &together, header);
        let path = if by_pattern { folder.path().join(format!("[a-c]*.{extension}")) } else { folder.path().to_owned() };
        let (expected, _) = all(&one.path().join(format!("all.{extension}")), format, &[1000]).unwrap();
        let (found, state) = all(&path, format, &sizes).unwrap();
        prop_assert_eq!(&found, &expected);
        prop_assert_eq!(state.at.records, expected.len() as u64);
        // Nothing more comes, again and again; then a file with a later name does.
        let (mut state, mut more) = (state, Vec::new());
        prop_assert!(batch(&path, format, &mut state, 9, &mut more).unwrap() && more.is_empty());
        fs::write(folder.path().join(format!("cccc.{extension}")), format!("{header}{}\n", line(&7))).unwrap();
        while !batch(&path, format, &mut state, 9, &mut more).unwrap() {}
        prop_assert_eq!(more.len(), 1);
    }
}

/// Three files of three records each, read up to record `records`.
fn begun(records: usize) -> (tempfile::TempDir, State) {
    let folder = tempfile::tempdir().unwrap();
    let lines = |name: &str| (0..3).map(|n| format!("{{\"a\":\"{name}{n}\"}}")).collect();
    let files = ["b", "d", "f"].map(|name| (format!("{name}.ndjson"), lines(name)));
    write(folder.path(), &BTreeMap::from(files), "");
    let (mut state, mut seen) = (State::default(), Vec::new());
    batch(folder.path(), Format::Ndjson, &mut state, records, &mut seen).unwrap();
    assert_eq!(seen.len(), records);
    (folder, state)
}

#[test]
fn what_changes_before_the_place_is_refused_and_behind_it_is_read() {
    let line = "{\"a\":\"new\"}\n";
    let error = |folder: &Path, state: &State| match resume(folder, Format::Ndjson, state) {
        Ok(_) => panic!("it is read"),
        Err(error) => error.to_string(),
    };
    for records in [4, 5] {
        let (folder, state) = begun(records);
        for name in ["a.ndjson", "c.ndjson"] {
            fs::write(folder.path().join(name), line).unwrap();
            let said = error(folder.path(), &state);
            assert!(said.contains(name) && said.contains("has appeared before"), "{said}");
            fs::remove_file(folder.path().join(name)).unwrap();
        }
        // Longer, shorter, as long.
        for text in [
            format!("{line}{line}{line}{line}{line}"),
            line.to_owned(),
            format!("{{\"a\":\"b0\"}}\n{line}{{\"a\":\"b\"}}\n"),
        ] {
            let before = fs::read(folder.path().join("b.ndjson")).unwrap();
            fs::write(folder.path().join("b.ndjson"), text).unwrap();
            let said = error(folder.path(), &state);
            assert!(said.contains("b.ndjson has changed"), "{said}");
            fs::write(folder.path().join("b.ndjson"), before).unwrap();
        }
        let current = fs::read(folder.path().join("d.ndjson")).unwrap();
        fs::write(folder.path().join("d.ndjson"), &current[..5]).unwrap();
        assert!(error(folder.path(), &state).contains("shrank"));
        fs::remove_file(folder.path().join("d.ndjson")).unwrap();
        assert!(error(folder.path(), &state).contains("d.ndjson, which has been read in part, is gone"));
        fs::write(folder.path().join("d.ndjson"), current).unwrap();
        // What has been read to its end may go, and what comes behind the place is read.
        fs::remove_file(folder.path().join("b.ndjson")).unwrap();
        fs::write(folder.path().join("e.ndjson"), line).unwrap();
        let (mut state, mut seen) = (state, Vec::new());
        while !batch(folder.path(), Format::Ndjson, &mut state, 2, &mut seen).unwrap() {}
        assert_eq!(seen.len(), 10 - records, "{seen:?}");
        assert!(seen[6 - records].contains("new"), "{seen:?}");
    }
}

#[test]
fn one_file_does_not_become_several() {
    let (folder, state) = begun(4);
    let file = folder.path().join("b.ndjson");
    assert!(matches!(resume(&file, Format::Ndjson, &state), Err(SourceError::OtherKind { .. })));
    let alone = State { at: SourcePosition { records: 1, bytes: 11 }, begun: Vec::new() };
    assert!(matches!(resume(folder.path(), Format::Ndjson, &alone), Err(SourceError::OtherKind { .. })));
}

#[test]
fn files_with_other_columns_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("1.csv", "a,b\n1,2\n");
    write("2.csv", "b,a\n3,4\n");
    let (seen, _) = all(folder.path(), CSV, &[9]).unwrap();
    assert_eq!(seen, ["0 Untyped(\"1\")", "1 Untyped(\"4\")"], "columns are found by name");
    let limits = Limits { max_record_bytes: 64, max_depth: 8, max_elements: 100, max_repeated_bytes: 1 << 20 };
    let undescribed = || {
        let columns = ColumnChoice { wanted: None, at_most: 9 };
        let mut source = FileSource::open_undescribed(folder.path(), CSV, limits, columns)?;
        source.read(&mut RawBatch::new(2), 9, u64::MAX, &mut Vec::new()).map(|outcome| outcome.records)
    };
    assert_eq!(undescribed().unwrap(), 2);
    for header in ["a,c", "a", "a,b,c"] {
        write("3.csv", &format!("{header}\n1\n"));
        for error in [all(folder.path(), CSV, &[9]).unwrap_err(), undescribed().unwrap_err()] {
            let said = error.to_string();
            assert!(matches!(error, SourceError::OtherColumns { .. }) && said.contains("3.csv has other"), "{said}");
        }
    }
    assert!(matches!(all(folder.path(), Format::Parquet, &[9]), Err(SourceError::NoFileIn { .. })));
    assert!(matches!(all(&folder.path().join("*.tsv"), CSV, &[9]), Err(SourceError::NoMatch { .. })));
    assert!(matches!(all(&folder.path().join("[.tsv"), CSV, &[9]), Err(SourceError::Pattern { .. })));
    write("[.tsv", "a,b\n1,2\n");
    assert_eq!(all(&folder.path().join("[.tsv"), CSV, &[9]).unwrap().0.len(), 1, "a file may be called so");
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A file of three records in each way of writing it down.
const ENDINGS: [(Format, &str, &[u8]); 6] = [
    (Format::Ndjson, "ndjson", b"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n"),
    (Format::Ndjson, "ndjson", b"{\"a\":1}\n{\"a\":2}\n{\"a\":3}"),
    (Format::Ndjson, "ndjson", b"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n \r\n"),
    (CSV, "csv", b"a,b\n1,x\n2,x\n3,x\n"),
    (CSV, "csv", b"a,b\n1,x\n2,x\n3,x"),
    (CSV, "csv", b"a,b\n1,x\n2,x\n3,x\n\r\n\n"),
];

/// Every such file, and again compressed. A blank last line of compressed NDJSON is known as the last one only by reading on.
fn written_down() -> impl Iterator<Item = (Format, String, Vec<u8>)> {
    let plain = ENDINGS.into_iter().map(|(format, extension, text)| (format, extension.to_owned(), text.to_vec()));
    let packed = plain.clone().filter(|(_, _, text)| !text.ends_with(b"}\n \r\n"));
    plain.chain(packed.map(|(format, extension, text)| (format, format!("{extension}.gz"), gzip(&text))))
}

#[test]
fn a_file_has_ended_with_its_last_record() {
    for (format, extension, content) in written_down() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(format!("{name}.{extension}"));
        fs::write(at("1"), &content).unwrap();
        let (mut state, mut seen) = (State::default(), Vec::new());
        assert!(!batch(folder.path(), format, &mut state, 3, &mut seen).unwrap(), "full before the end");
        assert!(batch(folder.path(), format, &mut state, 3, &mut seen).unwrap(), "{extension}");
        fs::remove_file(at("1")).unwrap();
        fs::write(at("2"), &content).unwrap();
        while !batch(folder.path(), format, &mut state, 2, &mut seen).unwrap() {}
        assert_eq!(seen.len(), 6, "{extension}: {seen:?}");
    }
}

/// What is appended once the end was seen is in no run by accident: it is not read, and the next start says so.
#[test]
fn what_is_written_behind_an_end_that_was_seen_is_named() {
    for (format, extension, content) in written_down() {
        for size in [3, 4] {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(format!("{name}.{extension}"));
            fs::write(at("1"), &content).unwrap();
            fs::write(at("2"), &content).unwrap();
            let mut source = resume(folder.path(), format, &State::default()).unwrap();
            let mut rows = RawBatch::new(2);
            source.read(&mut rows, size, u64::MAX, &mut Vec::new()).unwrap();
            let mut begun = source.take_begun();
            let before = source.position();
            let mut more = content.clone();
            more.extend(if extension.ends_with("gz") { gzip(b"9\n") } else { b"9\n".to_vec() });
            fs::write(at("1"), &more).unwrap();
            while !source.read(&mut rows, 9, u64::MAX, &mut Vec::new()).unwrap().end {}
            begun.extend(source.take_begun());
            assert_eq!(rows.rows(), 6, "{extension} {size}: the line behind the end was not there");
            for at in [before, source.position()] {
                let again = resume(folder.path(), format, &State { at, begun: begun.clone() });
                assert!(matches!(again, Err(SourceError::ReadBefore { .. })), "{extension} {size}");
            }
        }
    }
}

#[test]
fn what_stands_at_the_path_by_now_is_not_what_was_read() {
    for compressed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.ndjson");
        let pack = |text: &[u8]| if compressed { gzip(text) } else { text.to_vec() };
        fs::write(&path, pack(b"{\"a\":1}\n")).unwrap();
        let mut stream = Stream::open(&path, &StopFlag::default()).unwrap();
        let mut line = Vec::new();
        while stream.take_line(99, &mut line).unwrap() > 0 {}
        let known = imprint_of(&path).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(&pack(b"{\"a\":2}\n")).unwrap();
        assert_eq!(stream.imprint().unwrap(), Some(known), "the line is not in it");
        assert_eq!(stream.take_line(99, &mut line).unwrap(), 0, "nor is it read");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "other").unwrap();
        assert_eq!(stream.imprint().unwrap(), Some(known), "{compressed}");
    }
}

proptest! {
    /// What is kept of the files begun says as much as all that is known of them, as a plain search through it finds.
    #[test]
    fn what_is_kept_is_what_matters(
        names in prop::collection::btree_set("[a-d]{1,2}", 1..9),
        gone in prop::collection::vec(any::<bool>(), 9),
        ended in prop::collection::vec(any::<bool>(), 9),
        records in prop::collection::vec(0..3_u64, 9),
        read in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<String> =
            names.iter().map(|name| folder.path().join(name).to_str().unwrap().to_owned()).collect();
        let last = read.index(names.len());
        let (mut begun, mut first) = (Vec::new(), 0);
        for (at, name) in names.iter().enumerate().take(last + 1) {
            fs::write(name, "x").unwrap();
            let new = FileBegun { name: name.clone(), first, ended: None };
            begun.push(new.clone());
            if at < last || ended[at] {
                begun.push(new.end(imprint_of(Path::new(name)).unwrap()));
            }
            first += records[at];
        }
        let start = SourcePosition { records: first + 1, bytes: 1 };
        let is_current = |at: usize| at == last && !ended[at];
        let there = names.iter().enumerate().filter(|(at, _)| !gone[*at] || is_current(*at));
        let files: Vec<PathBuf> = there.map(|(_, name)| name.into()).collect();
        let placed = place(folder.path(), files.clone(), &begun, start).unwrap();
        let again = place(folder.path(), files.clone(), &placed.known, start).unwrap();
        prop_assert_eq!(&again, &placed);
        let listed = |name: &str| files.iter().any(|file| file.to_str() == Some(name));
        let mut expected: Vec<&FileBegun> = Vec::new();
        for file in &begun {
            expected.retain(|earlier| earlier.name != file.name);
            expected.push(file);
        }
        expected.retain(|file| listed(&file.name) || file.name == names[last]);
        prop_assert_eq!(placed.known.iter().collect::<Vec<_>>(), expected);
    }
}

/// A folder that is swept fills again: what is looked up must not grow with the square of the files that ever were.
#[test]
fn many_files_are_looked_up_in_a_moment() {
    let begun: Vec<FileBegun> =
        (0..100_000).map(|n| FileBegun { name: format!("d/{n:06}.csv"), first: n, ended: None }).collect();
    let files = begun.iter().map(|file| file.name.clone().into()).collect();
    let clock = std::time::Instant::now();
    let placed = place(Path::new("d"), files, &begun, SourcePosition { records: 100_000, bytes: 9 }).unwrap();
    assert_eq!((placed.known.len(), placed.files.len()), (100_000, 1));
    assert!(clock.elapsed().as_secs() < 20, "{:?}", clock.elapsed());
    let swept =
        place(Path::new("d"), vec!["d/099999.csv".into()], &begun, SourcePosition { records: 100_000, bytes: 9 });
    assert_eq!(swept.unwrap().known, begun[99_999..]);
}

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::io::file::{FileSink, Format, GroupColumns, Places};

const HEADER: &str = "v\n";

fn groups() -> Vec<GroupColumns> {
    ["x", "y"].map(|name| GroupColumns { name: name.into(), columns: vec!["v".into()] }).into()
}

fn contents(directory: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
}

/// The files of batches, counted out by hand.
fn expected(batches: &[(Vec<u32>, u64)], rotation: Rotation, group: &str) -> BTreeMap<String, String> {
    let mut files = vec![HEADER.to_owned()];
    let (mut since, mut clock) = (0, 0);
    for (values, later) in batches {
        clock += later;
        let current = files.last().unwrap();
        if current == HEADER {
            since = clock;
        } else {
            let long = rotation.bytes > 0 && current.len() as u64 >= rotation.bytes;
            if long || rotation.age_ms > 0 && clock - since >= rotation.age_ms {
                files.push(HEADER.to_owned());
                since = clock;
            }
        }
        *files.last_mut().unwrap() += &values.iter().map(|v| format!("{v}\n")).collect::<String>();
    }
    files.into_iter().enumerate().map(|(number, text)| (format!("out.{group}.{number:08}.csv"), text)).collect()
}

proptest! {
    /// Killed before, between and after its syncs, or undone: the files are those of an undisturbed run, and those are the ones that
    /// the rule says.
    #[test]
    fn files_are_rotated_by_the_rule_whatever_happens(
        batches in prop::collection::vec((prop::collection::vec(0..99_u32, 0..4), 0..50_u64, 0..5_u8), 1..12),
        bytes in prop::sample::select(vec![0, 1, 8, 20]),
        age_ms in prop::sample::select(vec![0, 1, 60]),
    ) {
        prop_assume!(bytes + age_ms > 0);
        let rotation = Rotation { bytes, age_ms };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.csv");
        let format = Format::Csv { separator: b',' };
        // A process that another test is just starting has the lock of a file that was open here, until it is itself.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let open = |lengths: &[(String, u64)]| loop {
            Places { path: &path, groups: &groups(), format, rotates: true, dead_letters: None, certificates: None, lineage: None }
                .check(&lengths.to_vec()).unwrap();
            match FileSink::rotated(&path, &groups(), format, Some(rotation), lengths) {
                Err(SinkError::Locked { .. }) if std::time::Instant::now() < deadline => {
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                opened => break opened.unwrap(),
            }
        };
        let mut sink = open(&[]);
        let mut committed = sink.sync().unwrap();
        let mut clock = 0;
        for (values, later, fate) in &batches {
            clock += later;
            let lines: String = values.iter().map(|v| format!("{v}\n")).collect();
            let write = |sink: &mut FileSink| {
                sink.turn(i64::try_from(clock).unwrap()).unwrap();
                sink.append(0, lines.as_bytes()).unwrap();
                sink.append(1, lines.as_bytes()).unwrap();
            };
            if *fate > 0 {
                write(&mut sink);
                if *fate > 1 {
                    sink.sync().unwrap();
                }
                if *fate > 2 {
                    sink.truncate_to(&committed).unwrap();
                } else {
                    drop(sink);
                    sink = open(&committed);
                }
            }
            write(&mut sink);
            committed = sink.sync().unwrap();
        }
        let rule: Vec<(Vec<u32>, u64)> = batches.into_iter().map(|(values, later, _)| (values, later)).collect();
        let mut wanted = expected(&rule, rotation, "x");
        wanted.extend(expected(&rule, rotation, "y"));
        prop_assert_eq!(contents(directory.path()), wanted);
    }
}

#[test]
fn what_is_not_of_the_series_stays_and_what_is_in_its_way_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let rotation = Some(Rotation { bytes: 1, age_ms: 0 });
    let open = |at: Standing| Series::open(&directory.path().join("out.ndjson"), Vec::new(), rotation, at);
    let mut series = open(Standing::default()).unwrap();
    series.append(b"{}\n").unwrap();
    let committed = series.sync().unwrap();
    for name in ["out.1.ndjson", "out.00000001.csv", "out.000000001.ndjson", "out.x.00000001.ndjson", "out.ndjson"] {
        fs::write(at(name), "theirs").unwrap();
    }
    fs::write(at("out.00000001.ndjson"), "not committed").unwrap();
    for name in ["out.00000002.ndjson", "out.00000099.ndjson", "out.77777777.ndjson"] {
        fs::write(at(name), "theirs").unwrap();
    }
    drop(series);
    let mut series = open(committed).unwrap();
    assert_eq!(
        contents(directory.path()).into_keys().collect::<Vec<_>>(),
        [
            "out.00000000.ndjson",
            "out.000000001.ndjson",
            "out.00000001.csv",
            "out.00000002.ndjson",
            "out.00000099.ndjson",
            "out.1.ndjson",
            "out.77777777.ndjson",
            "out.ndjson",
            "out.x.00000001.ndjson"
        ]
    );
    fs::write(at("out.00000001.ndjson"), "in the way").unwrap();
    assert!(matches!(series.turn(9), Err(SinkError::Occupied { .. })));
    assert_eq!(fs::read_to_string(at("out.00000001.ndjson")).unwrap(), "in the way");
}

#[test]
fn a_state_goes_on_as_it_began() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.ndjson");
    let groups = &groups()[..1];
    let check = |rotates: bool, lengths: &[(String, u64)]| {
        let places = Places {
            path: &path,
            groups,
            format: Format::Ndjson,
            rotates,
            dead_letters: None,
            certificates: None,
            lineage: None,
        };
        places.check(&lengths.to_vec())
    };
    for rotation in [None, Some(Rotation { bytes: 9, age_ms: 0 })] {
        check(rotation.is_some(), &[]).unwrap();
        let mut sink = FileSink::rotated(&path, groups, Format::Ndjson, rotation, &[]).unwrap();
        sink.append(0, b"{}\n").unwrap();
        let lengths = sink.sync().unwrap();
        check(rotation.is_some(), &lengths).unwrap();
        assert!(matches!(check(rotation.is_none(), &lengths), Err(SinkError::Rotated { .. })));
        assert!(
            matches!(check(rotation.is_some(), &[]), Err(SinkError::Occupied { .. })),
            "a new state finds its files"
        );
    }
}

#[test]
fn a_file_behind_the_series_is_somebody_elses() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.ndjson");
    let groups = &groups()[..1];
    let places = Places {
        path: &path,
        groups,
        format: Format::Ndjson,
        rotates: true,
        dead_letters: None,
        certificates: None,
        lineage: None,
    };
    let lengths = vec![("x".to_owned(), 3), ("/file/x".to_owned(), 4)];
    for (name, repeated, at_rest) in [
        ("out.00000003.ndjson", true, true),
        ("out.00000004.ndjson", true, true),
        ("out.00000005.ndjson", true, false),
        ("out.00000006.ndjson", false, false),
        ("out.77777777.ndjson", false, false),
        ("out.7.ndjson", true, true),
    ] {
        let file = directory.path().join(name);
        fs::write(&file, "theirs").unwrap();
        for (repeats, passes) in [(true, repeated), (false, at_rest)] {
            match places.check_behind(&lengths, repeats) {
                Ok(()) => assert!(passes, "{name} {repeats}"),
                Err(error) => assert!(!passes && error.to_string().contains(name), "{name} {repeats}: {error}"),
            }
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "theirs");
        fs::remove_file(file).unwrap();
    }
}

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const CSV: Format = Format::Csv { separator: b';' };

fn groups(names: &[&str]) -> Vec<GroupColumns> {
    let columns = vec!["age".to_owned(), "a;b".to_owned(), "say \"hi\"".to_owned()];
    names.iter().map(|&name| GroupColumns { name: name.into(), columns: columns.clone() }).collect()
}

fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    files
}

#[test]
fn one_group_has_the_path_and_several_have_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.ndjson");
    let mut one = FileSink::open(&path, &groups(&["main"]), Format::Ndjson, &[]).unwrap();
    one.append(0, b"{}\n").unwrap();
    assert_eq!(one.sync().unwrap(), [("main".to_owned(), 3)]);
    let mut two = FileSink::open(&path, &groups(&["who", "how"]), CSV, &[]).unwrap();
    two.append(1, b"1;2;3\n").unwrap();
    let lengths = two.sync().unwrap();
    let header = "age;\"a;b\";\"say \"\"hi\"\"\"\n";
    assert_eq!(lengths, [("who".to_owned(), header.len() as u64), ("how".to_owned(), header.len() as u64 + 6)]);
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!(read("out.ndjson"), "{}\n");
    assert_eq!(read("out.who.ndjson"), header);
    assert_eq!(read("out.how.ndjson"), format!("{header}1;2;3\n"));
    drop(two);
    // A start with the lengths of a commit writes no second header.
    let mut again = FileSink::open(&path, &groups(&["who", "how"]), CSV, &lengths).unwrap();
    assert_eq!(again.sync().unwrap(), lengths);
}

#[test]
fn what_does_not_fit_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let open = |names: &[&str], format, lengths: &[(String, u64)]| {
        FileSink::open(&path, &groups(names), format, lengths).map(|_| ())
    };
    assert!(matches!(open(&[], CSV, &[]), Err(SinkError::NoGroup)));
    for name in ["", "../x", "a/b", ".hidden", "a b"] {
        assert!(matches!(open(&[name], CSV, &[]), Err(SinkError::GroupName { .. })), "{name}");
    }
    assert!(matches!(open(&["x", "x"], CSV, &[]), Err(SinkError::DuplicateGroup { .. })));
    assert!(matches!(open(&["x"], CSV, &[("y".into(), 0)]), Err(SinkError::ForeignGroup { .. })));
    assert!(matches!(open(&["x"], Format::Csv { separator: b'\n' }, &[]), Err(SinkError::Separator)));
    let standard = |names: &[&str], format| FileSink::open(Path::new("-"), &groups(names), format, &[]).map(|_| ());
    assert!(matches!(standard(&["x"], CSV), Err(SinkError::StandardOutput)));
    assert!(matches!(standard(&["x", "y"], Format::Ndjson), Err(SinkError::StandardOutput)));
    assert!(standard(&["x"], Format::Ndjson).is_ok());
    assert!(contents(directory.path()).is_empty(), "refusals must leave no files");

    let mut sink = FileSink::open(&path, &groups(&["x"]), Format::Ndjson, &[]).unwrap();
    assert!(matches!(sink.append(1, b"{}\n"), Err(SinkError::NoSuchGroup { group: 1, groups: 1 })));
    let error = sink.append(0, b"{\"CANARY\":1}").unwrap_err();
    assert!(matches!(error, SinkError::UnfinishedLine { .. }));
    assert!(!format!("{error} {error:?}").contains("CANARY"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// A run that is killed before, between and after its syncs leaves the files of an undisturbed run.
    #[test]
    fn a_killed_run_continues_where_it_was_committed(
        batches in prop::collection::vec((prop::collection::vec(0..999_u32, 0..4), prop::collection::vec(0..999_u32, 0..4), 0..4_u8), 1..6),
        format in prop::sample::select(vec![Format::Ndjson, CSV, Format::Parquet]),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let groups: Vec<GroupColumns> =
            ["x", "y"].map(|name| GroupColumns { name: name.into(), columns: vec!["v".into()] }).into();
        let lines = |values: &[u32]| -> Vec<u8> {
            let line = |v: &u32| if format == CSV { format!("{v}\n") } else { format!("{{\"v\":{v}}}\n") };
            values.iter().map(line).collect::<String>().into_bytes()
        };
        let (calm, killed) = (directory.path().join("calm"), directory.path().join("killed"));
        for root in [&calm, &killed] {
            fs::create_dir(root).unwrap();
            // A process that another test is just starting has the lock of a file that was open here, until it is itself.
            let deadline = Instant::now() + Duration::from_secs(10);
            let open = |lengths: &[(String, u64)]| loop {
                match FileSink::open(&root.join("out"), &groups, format, lengths) {
                    Err(SinkError::Locked { .. }) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
                    opened => break opened.unwrap(),
                }
            };
            let mut sink = open(&[]);
            let mut committed = sink.sync().unwrap();
            for (x, y, fate) in &batches {
                if root == &killed && *fate > 0 {
                    sink.append(0, &lines(x)).unwrap();
                    if *fate > 1 {
                        sink.append(1, &lines(y)).unwrap();
                        sink.sync().unwrap();
                    }
                    if *fate > 2 {
                        sink.truncate_to(&committed).unwrap();
                    } else {
                        drop(sink);
                        sink = open(&committed);
                    }
                }
                sink.append(0, &lines(x)).unwrap();
                sink.append(1, &lines(y)).unwrap();
                committed = sink.sync().unwrap();
            }
        }
        let relative = |root: &Path| -> BTreeMap<PathBuf, Vec<u8>> {
            contents(root).into_iter().map(|(path, bytes)| (path.strip_prefix(root).unwrap().to_owned(), bytes)).collect()
        };
        // Parquet writes no segment for a commit without records.
        let nothing = format == Format::Parquet && batches.iter().all(|(x, y, _)| x.is_empty() && y.is_empty());
        prop_assert_eq!(relative(&calm).is_empty(), nothing);
        prop_assert_eq!(relative(&calm), relative(&killed));
    }
}

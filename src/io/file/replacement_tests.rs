use super::super::append::lock;
use super::*;

fn columns() -> GroupColumns {
    GroupColumns { name: "all".into(), columns: vec!["a".into()] }
}

fn release(path: &Path, format: Format, lines: &str) -> Result<(), SinkError> {
    Replacement::ready(path, "all", format)?.fill(columns(), lines.as_bytes())
}

fn below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        if path.is_dir() {
            found.extend(below(&path));
        }
    }
    found.sort();
    found
}

#[test]
fn a_directory_is_never_replaced_by_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine");
    fs::create_dir_all(path.join("deep")).unwrap();
    fs::write(path.join("deep/thesis"), "years").unwrap();
    for format in [Format::Ndjson, Format::Csv { separator: b',' }] {
        assert!(matches!(Replacement::ready(&path, "all", format), Err(SinkError::NotRegular { .. })));
    }
    assert_eq!(below(folder.path()), ["deep", "mine", "thesis"]);
}

#[test]
fn only_segments_are_replaced_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    release(&path, Format::Parquet, "{\"a\":\"1\"}\n").unwrap();
    fs::write(path.join("all/segment-00000001.parquet"), "of a longer release").unwrap();
    fs::write(path.join("notes"), "beside it").unwrap();
    release(&path, Format::Parquet, "{\"a\":\"2\"}\n").unwrap();
    assert_eq!(below(folder.path()), ["all", "notes", "out", "segment-00000000.parquet"]);
    for place in ["out/all", "out/.all.replaced", ".out.unfinished/all"] {
        let mine = folder.path().join(place);
        fs::create_dir_all(&mine).unwrap();
        fs::write(mine.join("thesis"), "years").unwrap();
        let before = below(folder.path());
        let refused = Replacement::ready(&path, "all", Format::Parquet).unwrap_err();
        assert!(matches!(&refused, SinkError::NotOurs { entry, .. } if entry == "thesis"), "{place}: {refused}");
        assert_eq!(below(folder.path()), before);
        fs::remove_file(mine.join("thesis")).unwrap();
    }
    fs::write(folder.path().join("file"), "x").unwrap();
    let file = folder.path().join("file");
    assert!(matches!(Replacement::ready(&file, "all", Format::Parquet), Err(SinkError::NotDirectory { .. })));
}

/// Killed between taking the old one aside and removing it.
#[test]
fn what_a_killed_release_left_is_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    for both in [false, true] {
        fs::create_dir_all(path.join(".all.replaced")).unwrap();
        fs::write(path.join(".all.replaced/segment-00000000.parquet"), "old").unwrap();
        fs::create_dir_all(folder.path().join(".out.unfinished/all")).unwrap();
        assert_eq!(path.join("all").exists(), both);
        release(&path, Format::Parquet, "{\"a\":\"1\"}\n").unwrap();
        assert_eq!(below(folder.path()), ["all", "out", "segment-00000000.parquet"]);
    }
}

#[test]
fn what_another_one_writes_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // A daemon writes segments of this group, and has its directory locked.
    fs::create_dir_all(at("out/all")).unwrap();
    fs::write(at("out/all/segment-00000000.parquet"), "committed").unwrap();
    let held = File::open(at("out/all")).unwrap();
    lock(&held, &at("out/all")).unwrap();
    assert!(matches!(Replacement::ready(&at("out"), "all", Format::Parquet), Err(SinkError::Locked { .. })));
    assert_eq!(fs::read_to_string(at("out/all/segment-00000000.parquet")).unwrap(), "committed");
    // Another release is being written and has no name yet.
    for (format, directory) in [(Format::Ndjson, false), (Format::Parquet, true)] {
        let ready = Replacement::ready(&at("new"), "all", format).unwrap();
        let unfinished = if directory { at(".new.unfinished/all") } else { at(".new.unfinished") };
        if directory {
            fs::create_dir_all(&unfinished).unwrap();
        } else {
            fs::write(&unfinished, "theirs").unwrap();
        }
        let held = File::open(&unfinished).unwrap();
        lock(&held, &unfinished).unwrap();
        assert!(matches!(ready.fill(columns(), b"{\"a\":\"1\"}\n"), Err(SinkError::Locked { .. })));
        assert!(unfinished.exists() && !at("new").exists(), "it is theirs to name or to remove");
        let (Ok(()) | Err(_)) = fs::remove_file(&unfinished);
    }
}

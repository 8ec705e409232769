use std::os::unix::fs::symlink;

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[test]
fn what_a_link_leads_to_is_written_also_where_nothing_is_there_yet() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("real")).unwrap();
    symlink("real/page", at("link")).unwrap();
    for text in ["one", "two"] {
        write(&at("link"), text.as_bytes()).unwrap();
        assert!(at("link").is_symlink());
        assert_eq!(fs::read_to_string(at("real/page")).unwrap(), text);
    }
    assert_eq!(names(&at("real")), ["page"], "nothing unfinished stays");
    symlink("round", at("round")).unwrap();
    assert!(write(&at("round"), b"x").is_err() && at("round").is_symlink(), "a circle leads nowhere");
}

#[test]
fn what_another_one_writes_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["page", ".page.unfinished"] {
        fs::write(at(name), "theirs").unwrap();
        let held = File::open(at(name)).unwrap();
        lock(&held, &at(name), &at(name)).unwrap();
        assert!(matches!(write(&at("page"), b"ours"), Err(SinkError::Locked { .. })), "{name}");
        assert_eq!(fs::read_to_string(at(name)).unwrap(), "theirs");
    }
    write(&at("page"), b"ours").unwrap();
    assert_eq!(fs::read_to_string(at("page")).unwrap(), "ours");
    assert_eq!(names(folder.path()), ["page"]);
}

#[test]
fn a_place_that_cannot_be_written_is_told_before() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    for name in ["folder", "none/page"] {
        assert!(matches!(check(&at(name)), Err(SinkError::Open { .. })), "{name}");
    }
    check(&at("folder/page")).unwrap();
    assert!(names(&at("folder")).is_empty(), "asking leaves nothing behind");
}

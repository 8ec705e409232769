use std::os::unix::fs::symlink;

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

#[test]
fn write_through_link_replaces_or_creates_its_target() {
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
fn write_refuses_file_locked_by_another_process() {
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
fn check_detects_unwritable_path() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder")).unwrap();
    for name in ["folder", "none/page"] {
        assert!(matches!(check_writable(&at(name)), Err(SinkError::Open { .. })), "{name}");
    }
    check_writable(&at("folder/page")).unwrap();
    assert!(names(&at("folder")).is_empty(), "asking leaves nothing behind");
}

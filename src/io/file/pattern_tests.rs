use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::expand_pattern;

fn found(folder: &Path, pattern: &str) -> Vec<String> {
    let files = expand_pattern(&folder.join(pattern)).unwrap();
    let mut names: Vec<String> =
        files.iter().map(|file| file.strip_prefix(folder).unwrap().display().to_string()).collect();
    names.sort();
    names
}

fn write(folder: &Path, files: &[&str]) {
    for file in files {
        fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
        fs::write(folder.join(file), "").unwrap();
    }
}

fn all(at: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() { all(&entry.path(), found) } else { found.push(entry.path()) }
    }
}

proptest! {
    #[test]
    fn pattern_returns_exactly_the_matching_files(
        files in prop::collection::btree_set("([a.]/){0,2}[ab.]b?x", 1..8),
        pattern in "(([a?]|\\*|\\*\\*)/){0,3}([abx?]|\\*|\\[a-b\\]){1,3}",
    ) {
        // At the end of a path, `**` matches directories only.
        prop_assume!(!pattern.ends_with("**"));
        let folder = tempfile::tempdir().unwrap();
        let usable = |file: &&String| !file.split('/').any(|name| name == ".");
        write(folder.path(), &files.iter().filter(usable).map(String::as_str).collect::<Vec<_>>());
        let Ok(whole) = glob::Pattern::new(&pattern) else { return Ok(()) };
        let options = glob::MatchOptions { require_literal_separator: true, require_literal_leading_dot: true, ..Default::default() };
        let mut there = Vec::new();
        all(folder.path(), &mut there);
        let names = there.iter().map(|file| file.strip_prefix(folder.path()).unwrap());
        let expected: BTreeSet<String> = names
            .filter(|name| whole.matches_path_with(name, options))
            .map(|name| name.display().to_string())
            .collect();
        let names = found(folder.path(), &pattern);
        prop_assert_eq!(names, expected.into_iter().collect::<Vec<_>>(), "{}", pattern);
    }
}

#[test]
fn pattern_does_not_follow_link_cycles() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &["1.csv", "sub/2.csv", ".hidden/3.csv"]);
    symlink(".", folder.path().join("loop")).unwrap();
    symlink("..", folder.path().join("sub/up")).unwrap();
    assert_eq!(found(folder.path(), "**/*.csv"), ["1.csv", "sub/2.csv"]);
    assert_eq!(found(folder.path(), "**/sub/**/*.csv"), ["sub/2.csv"]);
    assert_eq!(found(folder.path(), "loop/*.csv"), ["loop/1.csv"], "a link that is named is followed");
    assert_eq!(found(folder.path(), "s*/*.csv"), ["sub/2.csv"]);
    assert_eq!(found(folder.path(), ".hidden/*.csv"), [".hidden/3.csv"]);
    assert_eq!(found(folder.path(), "**"), [""; 0], "directories are no files");
}

#[test]
fn unreadable_paths_and_bad_patterns_are_named() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &["sub/1.csv"]);
    for place in ["sub/2.csv", "other"] {
        symlink("nowhere", folder.path().join(place)).unwrap();
        let said = expand_pattern(&folder.path().join("*/*.csv")).unwrap_err().to_string();
        assert!(said.contains(place), "{said}");
        fs::remove_file(folder.path().join(place)).unwrap();
    }
    for pattern in ["a**", "[", "**/a**/x"] {
        let said = expand_pattern(&folder.path().join(pattern)).unwrap_err().to_string();
        assert!(said.contains("is not a valid file name pattern"), "{pattern}: {said}");
    }
}

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{files_of, format_sample_of};
use crate::io::file::FileFormat;

const CSV: FileFormat = FileFormat::Csv { separator: b',' };

fn refused(path: &Path) -> String {
    files_of(path, CSV).unwrap_err().to_string()
}

#[test]
fn links_to_one_file_are_refused_with_both_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("1.csv"), "a\n1\n").unwrap();
    fs::write(at("5.csv"), "a\n1\n").unwrap();
    assert_eq!(files_of(folder.path(), CSV).unwrap().unwrap().len(), 2, "two files may be alike");
    fs::create_dir(at("sub")).unwrap();
    for link in ["2.csv", "sub/2.csv"] {
        for hard in [false, true] {
            if hard { fs::hard_link(at("1.csv"), at(link)) } else { symlink(at("1.csv"), at(link)) }.unwrap();
            let path = if link.contains('/') { at("**/*.csv") } else { folder.path().to_owned() };
            let said = refused(&path);
            assert!(said.contains("1.csv") && said.contains(link) && said.contains("two names of one file"), "{said}");
            fs::remove_file(at(link)).unwrap();
        }
    }
    symlink(at("1.csv"), at("sub/2.csv")).unwrap();
    assert_eq!(files_of(&at("sub"), CSV).unwrap().unwrap(), [at("sub/2.csv")], "one name of it, by a link");
}

#[test]
fn file_names_that_are_not_utf8_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join(OsStr::from_bytes(b"a-\x80.csv"));
    fs::write(&name, "a\n1\n").unwrap();
    fs::write(folder.path().join("a-é.csv"), "a\n1\n").unwrap();
    for path in [folder.path().to_owned(), folder.path().join("*.csv"), folder.path().join("a-?.csv")] {
        let said = refused(&path);
        assert!(said.contains("a-\u{fffd}.csv is not UTF-8"), "{said}");
    }
    fs::rename(name, folder.path().join(OsStr::from_bytes(b"a-\x80.txt"))).unwrap();
    assert_eq!(files_of(folder.path(), CSV).unwrap().unwrap().len(), 1, "it is none of them");
    let inner = folder.path().join(OsStr::from_bytes(b"\x80"));
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("b.csv"), "a\n1\n").unwrap();
    assert!(refused(&folder.path().join("*/*.csv")).contains("is not UTF-8"));
    assert_eq!(files_of(&inner, CSV).unwrap().unwrap().len(), 1, "the names in it are");
}

#[test]
fn broken_link_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("1.csv"), "a\n1\n").unwrap();
    for (link, counts) in [("2.csv", true), ("notes.txt", false), (".3.csv", false)] {
        symlink("nowhere", folder.path().join(link)).unwrap();
        for path in [folder.path().to_owned(), folder.path().join("*.csv")] {
            match files_of(&path, CSV) {
                Ok(files) => assert!(!counts && files.unwrap().len() == 1, "{link}"),
                Err(error) => assert!(counts && error.to_string().contains("2.csv"), "{link}: {error}"),
            }
        }
        assert_eq!(format_sample_of(folder.path()), folder.path().join("1.csv"));
        fs::remove_file(folder.path().join(link)).unwrap();
    }
}

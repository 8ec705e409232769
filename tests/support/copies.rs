//! Reads state directories through copies: a process started meanwhile by another test may inherit the file lock.

use std::fs;
use std::path::Path;

pub fn tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).unwrap_or_else(|why| panic!("{}: {why}", from.display())) {
        let entry = entry.expect("a directory entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a file type").is_dir() {
            tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
    fs::set_permissions(to, fs::metadata(from).expect("a directory").permissions()).expect("a directory of ours");
}

pub fn look<R>(path: &Path, look: impl FnOnce(&sled::Db) -> R) -> R {
    let copy = tempfile::tempdir().expect("a directory");
    tree(path, copy.path());
    look(&sled::open(copy.path()).expect("a database"))
}

/// The database `path` must not be open.
pub fn change<R>(path: &Path, change: impl FnOnce(&sled::Db) -> R) -> R {
    let copy = tempfile::tempdir().expect("a directory");
    tree(path, copy.path());
    let result = {
        let db = sled::open(copy.path()).expect("a database");
        let result = change(&db);
        db.flush().expect("a flush");
        result
    };
    fs::remove_dir_all(path).expect("nobody has it open");
    tree(copy.path(), path);
    result
}

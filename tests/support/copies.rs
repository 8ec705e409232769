//! Looks into state directories, at copies of them.
//!
//! A lock of the system belongs to an open file, and every process that another test starts meanwhile has a copy of that file until its
//! program begins. Whoever opened a database where it is could not open it again in the next moment, and no daemon could.

use std::fs;
use std::path::Path;

/// Copies all that is in `from`, with its modes.
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

/// Opens a copy of the database `path`.
pub fn look<R>(path: &Path, look: impl FnOnce(&sled::Db) -> R) -> R {
    let copy = tempfile::tempdir().expect("a directory");
    tree(path, copy.path());
    look(&sled::open(copy.path()).expect("a database"))
}

/// Changes the database `path`, which nobody has open.
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

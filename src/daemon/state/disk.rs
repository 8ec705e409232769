//! The disk under the state: how much room it has, and what is wrong with it when it does not answer.

use rustix::fs::{StatVfsMountFlags, statvfs};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes that stay free beyond the write at hand: the database takes segments of half a mebibyte, and rewrites pages now and
/// then that are larger than what was added to them.
const RESERVE: u64 = 16 << 20;

/// Times that a write is counted: in the log, and in the pages that it is merged into.
const COPIES: u64 = 4;

/// How long the disk is asked what is wrong with it.
const PROBE_TIME: Duration = Duration::from_secs(2);

/// Written to find out what a disk has against being written to.
pub(super) const PROBE: &str = "probe.new";

/// Bytes that this process may still write to the disk of `path`; `None` when the system does not tell.
#[must_use]
pub fn free_bytes(path: &Path) -> Option<u64> {
    let told = statvfs(path).ok()?;
    Some(told.f_bavail.saturating_mul(told.f_frsize))
}

/// Bytes that must be free before `bytes` more are handed to the database.
#[must_use]
pub fn needed(bytes: usize) -> u64 {
    RESERVE + COPIES * bytes as u64
}

/// What keeps the disk of `path` from being written to, as it says itself; `None` when a small write succeeds or nothing is
/// known within two seconds.
pub(super) fn complaint(path: &Path) -> Option<String> {
    let read_only = |path: &Path| statvfs(path).is_ok_and(|told| told.f_flag.contains(StatVfsMountFlags::RDONLY));
    let (sender, answer) = crossbeam_channel::bounded(1);
    let path = path.to_owned();
    // On a thread of its own: a disk that hangs hangs this one too.
    let asked = std::thread::Builder::new().name("disk-probe".to_owned()).spawn(move || {
        let found = if read_only(&path) {
            Some("its file system is mounted read-only".to_owned())
        } else {
            probe(&path.join(PROBE)).err().map(|error| error.to_string())
        };
        // Whoever asked may have gone on without an answer.
        let (Ok(()) | Err(_)) = sender.send(found);
    });
    match asked {
        Ok(_) => answer.recv_timeout(PROBE_TIME).ok().flatten(),
        Err(_) => None,
    }
}

/// Writes two segments of the database, brings it to the disk, and removes it.
fn probe(file: &PathBuf) -> std::io::Result<()> {
    let written = std::fs::File::create(file).and_then(|mut opened| {
        opened.write_all(&vec![0; 1 << 20])?;
        opened.sync_all()
    });
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => written.and(Err(error)),
        Ok(()) | Err(_) => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writable_disk_has_room_and_nothing_against_it() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(free_bytes(dir.path()).expect("a size") > 0);
        assert_eq!(complaint(dir.path()), None);
        assert!(std::fs::read_dir(dir.path()).expect("a directory").next().is_none(), "nothing is left behind");
        assert!(needed(1 << 20) > needed(0));
    }

    #[test]
    fn a_directory_that_is_gone_is_named_as_the_cause() {
        let dir = tempfile::tempdir().expect("a directory");
        let gone = dir.path().join("gone");
        assert_eq!(free_bytes(&gone), None);
        assert!(complaint(&gone).expect("a cause").contains("No such file"), "the system's own words");
    }
}

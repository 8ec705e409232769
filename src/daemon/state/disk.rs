//! Free space and errors of the state's disk.

use rustix::fs::{StatVfsMountFlags, statvfs};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// sled allocates segments of 512 KiB, and rewrites whole pages.
const RESERVED_BYTES: u64 = 16 << 20;

/// Log and pages.
const WRITE_COPIES: u64 = 4;

const DISK_PROBE_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) const PROBE_FILE: &str = "probe.new";

/// Returns the free bytes on the disk of `path`, if known.
#[must_use]
pub fn free_bytes(path: &Path) -> Option<u64> {
    let told = statvfs(path).ok()?;
    Some(told.f_bavail.saturating_mul(told.f_frsize))
}

/// Returns the free bytes required for a write.
#[must_use]
pub fn required_bytes(bytes: usize) -> u64 {
    RESERVED_BYTES + WRITE_COPIES * bytes as u64
}

/// Returns `None` if a small write succeeds or has no result within two seconds.
pub(super) fn write_failure_cause(path: &Path) -> Option<String> {
    let read_only = |path: &Path| statvfs(path).is_ok_and(|told| told.f_flag.contains(StatVfsMountFlags::RDONLY));
    let (sender, answer) = crossbeam_channel::bounded(1);
    let path = path.to_owned();
    let asked = std::thread::Builder::new().name("disk-probe".to_owned()).spawn(move || {
        let found = if read_only(&path) {
            Some("its file system is mounted read-only".to_owned())
        } else {
            probe_write(&path.join(PROBE_FILE)).err().map(|error| error.to_string())
        };
        let (Ok(()) | Err(_)) = sender.send(found);
    });
    match asked {
        Ok(_) => answer.recv_timeout(DISK_PROBE_TIMEOUT).ok().flatten(),
        Err(_) => None,
    }
}

fn probe_write(file: &PathBuf) -> std::io::Result<()> {
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
    fn writable_disk_has_space_and_no_failure_cause() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(free_bytes(dir.path()).expect("a size") > 0);
        assert_eq!(write_failure_cause(dir.path()), None);
        assert!(std::fs::read_dir(dir.path()).expect("a directory").next().is_none(), "nothing is left behind");
        assert!(required_bytes(1 << 20) > required_bytes(0));
    }

    #[test]
    fn missing_directory_is_the_failure_cause() {
        let dir = tempfile::tempdir().expect("a directory");
        let gone = dir.path().join("gone");
        assert_eq!(free_bytes(&gone), None);
        assert!(write_failure_cause(&gone).expect("a cause").contains("No such file"), "the system's own words");
    }
}

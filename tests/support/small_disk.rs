//! A disk of a few megabytes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A memory disk that is mounted for as long as this lives. Mounting needs privileges: where they are missing the tests that ask
/// for a disk fail and say so, unless `THRONG_NO_MOUNTS` is set.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts a disk of `size` (as `mount` spells it) at `path`, which is made. `None` only where the tests were told that
    /// there are no mounts here.
    pub fn mount(path: &Path, size: &str) -> Option<Self> {
        if std::env::var_os("THRONG_NO_MOUNTS").is_some() {
            eprintln!("NOT TESTED: THRONG_NO_MOUNTS is set, and this test needs a small disk");
            return None;
        }
        std::fs::create_dir_all(path).expect("a directory");
        let disk = Self(path.to_owned());
        let done = disk.ask(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]));
        assert!(
            done,
            "no disk could be mounted: run as root in a mount namespace, or set THRONG_NO_MOUNTS and go without"
        );
        Some(disk)
    }

    /// Mounts it again with other options: `size=64m`, `ro`.
    pub fn remount(&self, options: &str) {
        assert!(self.ask(Command::new("mount").args(["-o", &format!("remount,{options}")])), "remounted: {options}");
    }

    fn ask(&self, command: &mut Command) -> bool {
        command.arg(&self.0).status().is_ok_and(|status| status.success())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        self.ask(Command::new("umount").arg("-l"));
    }
}

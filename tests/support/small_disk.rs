//! Mounts a disk of a few megabytes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Memory disk, mounted until it is dropped. Without privileges, tests fail unless `THRONG_NO_MOUNTS` is set.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `size` as `mount` spells it. Returns `None` only if `THRONG_NO_MOUNTS` is set.
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

    /// Options such as `size=64m` or `ro`.
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

//! The memory of this process.

/// Resident bytes, from the kernel's account of the process; None where there is no such account.
pub(super) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    resident_of(&status)
}

fn resident_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{resident_bytes, resident_of};

    #[test]
    fn the_kernel_account_is_read() {
        assert_eq!(resident_of("Name:\tx\nVmRSS:\t   12 kB\nThreads:\t1\n"), Some(12 * 1024));
        assert_eq!(resident_of("Name:\tx\n"), None);
        if cfg!(target_os = "linux") {
            assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
        }
    }
}

//! Standard figures of the process (`process_*`), read when they are requested.

use super::figure_rounding::round_count;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

static STARTED: LazyLock<f64> =
    LazyLock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64()));

/// Keeps the time of the start, which is otherwise read with the first figures.
pub(super) fn keep_start_time() {
    LazyLock::force(&STARTED);
}

/// Figures of the process.
pub(super) struct ProcessFigures {
    /// Unix time of the start, in seconds.
    pub started: f64,
    /// Processor time in whole seconds.
    pub processor_seconds: u64,
    pub open_files: u64,
    /// Limit of open files.
    pub max_files: u64,
    /// Rounded.
    pub resident_bytes: u64,
}

impl ProcessFigures {
    pub fn read() -> Self {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let open_files = std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
        Self {
            started: *STARTED,
            processor_seconds: u64::try_from(used.tv_sec).unwrap_or_default(),
            open_files,
            max_files: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
            resident_bytes: rounded_resident_bytes().unwrap_or_default(),
        }
    }
}

/// Rounds to two digits and at least 16 MiB, to hide a table that doubles for one value.
pub(super) fn rounded_resident_bytes() -> Option<u64> {
    resident_bytes().map(|bytes| round_count(bytes, 16 << 20, 0.5))
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    parse_resident_bytes(&status)
}

fn parse_resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::{ProcessFigures, parse_resident_bytes, resident_bytes};

    #[test]
    fn resident_memory_is_read_from_proc_status() {
        assert_eq!(parse_resident_bytes("Name:\tx\nVmRSS:\t   12 kB\nThreads:\t1\n"), Some(12 * 1024));
        assert_eq!(parse_resident_bytes("Name:\tx\n"), None);
        if cfg!(target_os = "linux") {
            assert!(resident_bytes().is_some_and(|bytes| bytes > 1 << 20));
        }
    }

    #[test]
    fn process_figures_are_plausible() {
        let figures = ProcessFigures::read();
        assert!(figures.started > 1.7e9, "{}", figures.started);
        if cfg!(target_os = "linux") {
            assert!((1..=figures.max_files).contains(&figures.open_files), "{} files", figures.open_files);
        }
    }
}

//! Runs `throng run` as a separate process and samples its metrics.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::machine::{memory_mib, process};
use crate::metrics::Metrics;
use crate::ports::free_port;

pub const LOOK: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub at: Instant,
    pub consumed: u64,
    pub window: u64,
    pub resident_mib: f64,
}

pub struct Daemon {
    child: Child,
    port: u16,
    log: PathBuf,
    pub looks: Vec<Look>,
    pub peak_mib: f64,
    pub metrics: Metrics,
}

impl Daemon {
    /// Starts `throng run` with the fragments of the wearable configuration and with the keys of `overrides`.
    pub fn start(folder: &Path, name: &str, overrides: &[(&str, &str)]) -> Self {
        let port = free_port();
        let shipped = std::fs::read_to_string(crate::CONFIGURATION).expect("the shipped configuration");
        let mut fragments: toml::Table = shipped.parse().expect("the shipped configuration");
        fragments.remove("series");
        let config = folder.join(format!("{name}.toml"));
        std::fs::write(&config, fragments.to_string()).expect("the configuration");
        let log = folder.join(format!("{name}.log"));
        let stderr = File::create(&log).expect("a log file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
        command
            .args(["run", "-c"])
            .arg(&config)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("THRONG__TELEMETRY__LISTEN", format!("127.0.0.1:{port}"))
            .env("THRONG__STATE__SECRET_FILE", "")
            // Instances of a group share the secret.
            .env("THRONG_SECRET", "a secret of the benchmark, and of nobody else")
            // The represented share is not limited.
            .env("THRONG__RELEASE__MIN_REPRESENTED", "0")
            .env("THRONG__STATE__PATH", folder.join(format!("{name}.state")))
            .envs(overrides.iter().map(|(key, value)| (format!("THRONG__{key}"), *value)))
            .stdin(Stdio::null())
            .stdout(stderr.try_clone().expect("a second handle"))
            .stderr(stderr);
        let child = command.spawn().expect("throng starts");
        Self { child, port, log, looks: Vec::new(), peak_mib: 0.0, metrics: Metrics::default() }
    }

    /// Takes one sample. Returns false if the process has ended.
    pub fn look(&mut self) -> bool {
        let pid = self.child.id();
        if process(pid).is_none_or(|p| p.state == 'Z') {
            return false;
        }
        self.peak_mib = memory_mib(pid, "VmHWM").unwrap_or(0.0).max(self.peak_mib);
        let resident_mib = memory_mib(pid, "VmRSS");
        let Some(metrics) = Metrics::fetch(self.port) else { return true };
        if let Some(resident_mib) = resident_mib {
            let window = metrics.get("throng_window_records") as u64;
            self.looks.push(Look { at: Instant::now(), consumed: metrics.consumed(), window, resident_mib });
        }
        self.metrics = metrics;
        true
    }

    pub fn watch_to_the_end(&mut self) {
        while self.look() {
            std::thread::sleep(LOOK);
        }
    }

    pub fn watch_until(&mut self, records: u64, patience: Duration) {
        let deadline = Instant::now() + patience;
        loop {
            assert!(self.look(), "throng ended early:\n{}", self.last_words());
            let consumed = self.looks.last().map_or(0, |look| look.consumed);
            if consumed >= records {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "throng has consumed {consumed} of {records} records after {} s:\n{}",
                patience.as_secs(),
                self.last_words()
            );
            std::thread::sleep(LOOK);
        }
    }

    pub fn stop(mut self) {
        if process(self.child.id()).is_some_and(|p| p.state != 'Z') {
            kill_process(Pid::from_child(&self.child), Signal::TERM).expect("our own child");
        }
        let status = self.child.wait().expect("our own child");
        assert!(status.success(), "throng ended with {status}:\n{}", self.last_words());
    }

    /// Returns the records per second from the first to the last commit.
    pub fn rate_from_first_to_last_commit(&self) -> f64 {
        let first = self.looks.iter().find(|l| l.consumed > 0).expect("something was consumed");
        let last_count = self.looks.last().expect("a look").consumed;
        let last = self.looks.iter().find(|l| l.consumed == last_count).expect("the last look at least");
        (last.consumed - first.consumed) as f64 / (last.at - first.at).as_secs_f64()
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The process has ended after `stop`, but not after a panic.
        if let Ok(None) = self.child.try_wait()
            && self.child.kill().and_then(|()| self.child.wait()).is_err()
        {
            eprintln!("throng (pid {}) may still run", self.child.id());
        }
    }
}

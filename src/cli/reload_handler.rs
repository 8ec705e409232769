//! Configuration reload in a running daemon, with the checks of `throng check`.

use super::outcome::Failure;
use super::streamable::{refuse_missing_device, refuse_unstreamable};
use crate::config::{self, ConfigProblem};
use crate::daemon::run::ReloadInputs;
use crate::start::checked_config::CheckedConfig;
use anyhow::{Context, anyhow};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const TRIAL_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Time to end after SIGTERM.
const TRIAL_TERMINATION_GRACE: Duration = Duration::from_secs(5);

/// Output of a trial process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PolicyTrialResult {
    /// Digest of the policy.
    pub policy: String,
    /// Failed tests.
    pub failed: Vec<String>,
}

/// Returns the handler that reads `file` on request or SIGHUP.
pub fn install_reload_handler(file: &Path) -> Result<ReloadInputs, Failure> {
    let hangup = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&hangup))
        .map_err(|error| Failure::Running(error.into()))?;
    let file = file.to_owned();
    Ok(ReloadInputs { read: Arc::new(move |over| load_and_test(&file, over)), hangup })
}

/// Reads, checks and tests the configuration.
fn load_and_test(path: &Path, over: &AtomicBool) -> Result<CheckedConfig, Vec<String>> {
    let said = |problems: Vec<ConfigProblem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    let file = path.display().to_string();
    // A pipe could block the shutdown.
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return Err(vec![format!(
            "{file}: not a regular file: a reload cannot read it again (write the configuration to a file)"
        )]);
    }
    let config = config::load(path, std::env::vars()).map_err(said)?;
    refuse_unstreamable(&config, &file).map_err(|failure| failure_reasons(&failure))?;
    refuse_missing_device(&config, &file).map_err(|failure| failure_reasons(&failure))?;
    let checked = CheckedConfig::new(config, &file).map_err(said)?;
    let problems = crate::start::policy_test_checks::problems(&checked);
    if !problems.is_empty() {
        return Err(said(problems));
    }
    if checked.config.test.is_empty() {
        return Ok(checked);
    }
    let trial = run_tests_in_child(path, over).map_err(|error| vec![format!("{file}: test: {error:#}")])?;
    if !trial.failed.is_empty() {
        let failed = |name: &String| format!("{file}: test {name:?} fails (run throng check -c {file} for details)");
        return Err(trial.failed.iter().map(failed).collect());
    }
    if trial.policy != checked.policy.to_string() {
        return Err(vec![format!("{file}: changed during its test (reload again)")]);
    }
    Ok(checked)
}

fn failure_reasons(failure: &Failure) -> Vec<String> {
    match failure {
        Failure::Problems(problems) => problems.iter().map(ToString::to_string).collect(),
        Failure::Usage(error)
        | Failure::Hardware(error)
        | Failure::FindingAboveLimit(error)
        | Failure::Running(error) => {
            vec![format!("{error:#}")]
        }
    }
}

/// Works also after a replacement of the file.
fn running_executable() -> std::io::Result<std::path::PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() }
}

/// SIGTERM lets the trial remove its files; kills it after five seconds.
fn terminate_child(child: &mut Child) -> std::io::Result<()> {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended already.
        kill_process(pid, Signal::TERM).or_else(|error| if error == Errno::SRCH { Ok(()) } else { Err(error) })?;
    }
    let until = Instant::now() + TRIAL_TERMINATION_GRACE;
    while Instant::now() < until {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(TRIAL_POLL_INTERVAL);
    }
    child.kill()?;
    child.wait().map(drop)
}

/// A process isolates log, memory and exit of the tests.
fn run_tests_in_child(path: &Path, over: &AtomicBool) -> anyhow::Result<PolicyTrialResult> {
    let program = running_executable().context("cannot find the running executable")?;
    let mut child = Command::new(program)
        .args(["check", "--for-reload", "-c"])
        .arg(path)
        // Fail points apply to the daemon only.
        .env_remove("FAILPOINTS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start a process for the tests")?;
    let mut out = child.stdout.take().ok_or_else(|| anyhow!("the tests have no output"))?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let status = loop {
        if let Some(status) = child.try_wait().context("cannot wait for the tests")? {
            break status;
        }
        if over.load(Ordering::Acquire) {
            terminate_child(&mut child).context("cannot stop the tests")?;
            return Err(anyhow!("the daemon is shutting down"));
        }
        std::thread::sleep(TRIAL_POLL_INTERVAL);
    };
    let text =
        reader.join().map_err(|_| anyhow!("cannot read the test result"))?.context("cannot read the test result")?;
    if !status.success() {
        return Err(anyhow!("the tests could not be run (run throng check -c {} for the cause)", path.display()));
    }
    serde_json::from_str(&text).context("cannot parse the test result")
}

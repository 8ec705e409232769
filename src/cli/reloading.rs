//! How a running daemon reads its configuration anew: as `throng check` does, tests included.

use super::outcome::Failure;
use super::streamable::{refuse_missing_device, refuse_unstreamable};
use crate::config::{self, Problem};
use crate::daemon::run::Reloading;
use crate::start::checked::Checked;
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

/// How often it is looked whether the tests have ended, or the daemon does.
const LOOK: Duration = Duration::from_millis(50);

/// How long a trial may take to end by itself.
const ENDING: Duration = Duration::from_secs(5);

/// What a trial in a process of its own says on its standard output.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Trial {
    /// Digest of the policy that was tried.
    pub policy: String,
    /// Names of the tests that have failed.
    pub failed: Vec<String>,
}

/// Reads `file` anew whenever it is asked to, or SIGHUP comes.
pub fn reloading(file: &Path) -> Result<Reloading, Failure> {
    let hangup = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&hangup))
        .map_err(|error| Failure::Running(error.into()))?;
    let file = file.to_owned();
    Ok(Reloading { read: Arc::new(move |over| read(&file, over)), hangup })
}

/// Reads and tries the configuration.
fn read(path: &Path, over: &AtomicBool) -> Result<Checked, Vec<String>> {
    let said = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    let file = path.display().to_string();
    // The end of the daemon does not wait for whoever writes to a pipe.
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file()) {
        return Err(vec![format!(
            "{file}: not a regular file, which a reload can read again (write the configuration to a file)"
        )]);
    }
    let config = config::load(path, std::env::vars()).map_err(said)?;
    refuse_unstreamable(&config, &file).map_err(|failure| reasons(&failure))?;
    refuse_missing_device(&config, &file).map_err(|failure| reasons(&failure))?;
    let checked = Checked::new(config, &file).map_err(said)?;
    let problems = crate::start::trials::problems(&checked);
    if !problems.is_empty() {
        return Err(said(problems));
    }
    if checked.config.test.is_empty() {
        return Ok(checked);
    }
    let trial = tried(path, over).map_err(|error| vec![format!("{file}: test: {error:#}")])?;
    if !trial.failed.is_empty() {
        let failed = |name: &String| format!("{file}: test {name:?} fails (throng check -c {file} shows what it got)");
        return Err(trial.failed.iter().map(failed).collect());
    }
    if trial.policy != checked.policy.to_string() {
        return Err(vec![format!("{file}: it was changed while it was tried (ask once more)")]);
    }
    Ok(checked)
}

fn reasons(failure: &Failure) -> Vec<String> {
    match failure {
        Failure::Problems(problems) => problems.iter().map(ToString::to_string).collect(),
        Failure::Usage(error) | Failure::Hardware(error) | Failure::Found(error) | Failure::Running(error) => {
            vec![format!("{error:#}")]
        }
    }
}

/// The program that runs, even where another version lies in its place by now.
fn this_program() -> std::io::Result<std::path::PathBuf> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() }
}

/// Ends a trial, which removes what it has written; one that does not end by itself within five seconds is killed.
fn end(child: &mut Child) -> std::io::Result<()> {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // One that has ended meanwhile is no error.
        kill_process(pid, Signal::TERM).or_else(|error| if error == Errno::SRCH { Ok(()) } else { Err(error) })?;
    }
    let until = Instant::now() + ENDING;
    while Instant::now() < until {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    child.kill()?;
    child.wait().map(drop)
}

/// Runs the tests in a process of its own: its log, its memory and its end are not the daemon's.
fn tried(path: &Path, over: &AtomicBool) -> anyhow::Result<Trial> {
    let program = this_program().context("this program is not found")?;
    let mut child = Command::new(program)
        .args(["check", "--for-reload", "-c"])
        .arg(path)
        // Crash points of tests are the daemon's.
        .env_remove("FAILPOINTS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("the tests cannot be run in a process of their own")?;
    let mut out = child.stdout.take().ok_or_else(|| anyhow!("the tests have no output"))?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let status = loop {
        if let Some(status) = child.try_wait().context("the tests cannot be waited for")? {
            break status;
        }
        if over.load(Ordering::Acquire) {
            end(&mut child).context("the tests cannot be ended")?;
            return Err(anyhow!("the daemon ends"));
        }
        std::thread::sleep(LOOK);
    };
    let text = reader.join().map_err(|_| anyhow!("the tests cannot be read"))?.context("the tests cannot be read")?;
    if !status.success() {
        return Err(anyhow!("the tests could not be run (throng check -c {} says why)", path.display()));
    }
    serde_json::from_str(&text).context("the tests cannot be read")
}

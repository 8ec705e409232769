//! Runs the binary in a temporary directory and reads its output.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::ports::free_port;

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

const SETTINGS: &str = r#"
[source]
kind = "file"
path = "in.ndjson"
[sink]
kind = "file"
path = "out.ndjson"
dead_letter_path = "dead.ndjson"
[schema]
file = "schema.toml"
[state]
path = "state"
secret_file = "secret"
[privacy]
k = 3
max_lines_per_subject = 0
max_delay = "0s"
[batch]
max_records = 50
[telemetry]
log_level = "trace"
"#;

/// Accepts releases of a few records.
const ANY_SHARE: (&str, &str) = ("THRONG__RELEASE__MIN_REPRESENTED", "0");

pub fn throng() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.env(ANY_SHARE.0, ANY_SHARE.1);
    command
}

pub struct Place {
    home: TempDir,
    pub port: u16,
}

impl Place {
    /// `more` is appended to the configuration.
    pub fn new(schema: &str, more: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let port = free_port();
        let place = Self { home, port };
        place.write("schema.toml", schema);
        place.write("throng.toml", format!("{SETTINGS}listen = \"127.0.0.1:{port}\"\n{more}"));
        place.write("secret", "a secret of the tests, and of nobody else");
        fs::set_permissions(place.path("secret"), fs::Permissions::from_mode(0o600)).expect("a file of ours");
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("a file");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_default()
    }

    pub fn lines(&self, name: &str) -> Vec<String> {
        String::from_utf8(self.read(name)).expect("text").lines().map(str::to_owned).collect()
    }

    pub fn files(&self, name: &str) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(path: &Path, into: &mut Vec<(PathBuf, Vec<u8>)>) {
            if path.is_dir() {
                for entry in fs::read_dir(path).expect("a directory") {
                    walk(&entry.expect("an entry").path(), into);
                }
            } else {
                into.push((path.to_owned(), fs::read(path).expect("a file")));
            }
        }
        let mut files = Vec::new();
        walk(&self.path(name), &mut files);
        files
    }

    /// Overrides are named as `PRIVACY__K`.
    pub fn command(&self, overrides: &[(&str, &str)], arguments: &[&str]) -> Command {
        let mut command = throng();
        command.args(["run", "-c", "throng.toml"]).args(arguments);
        self.surround(&mut command, overrides);
        command
    }

    /// The file `throng.tuning` sets internal parameters.
    pub fn surround(&self, command: &mut Command, overrides: &[(&str, &str)]) {
        command.current_dir(self.home.path());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THRONG_")) {
            command.env_remove(name);
        }
        if let Ok(tuning) = fs::read_to_string(self.path("throng.tuning")) {
            command.env("THRONG_TUNING", tuning);
        }
        command.env(ANY_SHARE.0, ANY_SHARE.1);
        command.envs(overrides.iter().map(|(name, value)| (format!("THRONG__{name}"), value)));
    }

    pub fn run(&self, overrides: &[(&str, &str)]) -> Outcome {
        self.start(overrides).wait()
    }

    pub fn start(&self, overrides: &[(&str, &str)]) -> Process {
        Process::spawn(self.command(overrides, &[]), self.port)
    }
}

pub struct Process {
    child: Child,
    port: u16,
    pub token: Option<String>,
    stdout: JoinHandle<()>,
    stderr: JoinHandle<()>,
    printed: Arc<Mutex<Vec<u8>>>,
    logged: Arc<Mutex<Vec<u8>>>,
}

/// Collects what `stream` gives until it ends.
fn collect(mut stream: impl Read + Send + 'static) -> (JoinHandle<()>, Arc<Mutex<Vec<u8>>>) {
    let collected = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&collected);
    let thread = std::thread::spawn(move || {
        let mut piece = [0; 8 * 1024];
        loop {
            let read = stream.read(&mut piece).expect("a pipe that can be read");
            if read == 0 {
                return;
            }
            into.lock().expect("no panic").extend_from_slice(&piece[..read]);
        }
    });
    (thread, collected)
}

fn taken(thread: JoinHandle<()>, collected: &Mutex<Vec<u8>>) -> Vec<u8> {
    thread.join().expect("a thread");
    std::mem::take(&mut collected.lock().expect("no panic"))
}

impl Process {
    pub fn spawn(mut command: Command, port: u16) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let (stdout, printed) = collect(child.stdout.take().expect("a pipe"));
        let (stderr, logged) = collect(child.stderr.take().expect("a pipe"));
        Self { child, port, token: None, stdout, stderr, printed, logged }
    }

    /// Standard input stays open.
    pub fn feed(&mut self, bytes: impl AsRef<[u8]>) {
        let input = self.child.stdin.as_mut().expect("an open pipe");
        input.write_all(bytes.as_ref()).and_then(|()| input.flush()).expect("the daemon reads");
    }

    pub fn end_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Returns bytes, or `None` if the system does not provide the figure.
    pub fn peak_memory(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(peak.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
    }

    pub fn terminate(&self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a pid")).expect("a pid");
        kill_process(pid, Signal::TERM).expect("our own child");
    }

    pub fn get(&self, page: &str) -> Option<(u16, String)> {
        let head = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        ask(self.port, &format!("GET {page}"), &head, b"")
    }

    pub fn until(&self, what: &str, wanted: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let deadline = Instant::now() + PATIENCE;
        let mut last = None;
        while Instant::now() < deadline {
            let status = self.get("/status.json").and_then(|(_, body)| serde_json::from_str(&body).ok());
            if let Some(status) = status {
                if wanted(&status) {
                    return status;
                }
                last = Some(status["totals"].clone());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let state = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let state = state.lines().find(|line| line.starts_with("State")).unwrap_or("no process").to_owned();
        let logged = self.logged.lock().expect("no panic").clone();
        let logged = String::from_utf8_lossy(&logged);
        let end = logged.char_indices().rev().nth(4000).map_or(0, |(i, _)| i);
        let (ready, log) = (self.get("/readyz"), &logged[end..]);
        panic!("it did not come to pass that {what}: {last:?}, {state}, readiness {ready:?}, log:\n{log}");
    }

    pub fn ends_within(&mut self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        loop {
            if self.child.try_wait().expect("our own child").is_some() {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn kill(mut self) -> Outcome {
        self.child.kill().expect("our own child");
        self.wait()
    }

    pub fn wait(mut self) -> Outcome {
        self.end_input();
        if !self.ends_within(PATIENCE) {
            self.child.kill().expect("our own child");
            let stderr = taken(self.stderr, &self.logged);
            panic!("the daemon did not end: {}", String::from_utf8_lossy(&stderr));
        }
        let status = self.child.wait().expect("our own child");
        Outcome {
            code: status.code(),
            stdout: taken(self.stdout, &self.printed),
            stderr: String::from_utf8_lossy(&taken(self.stderr, &self.logged)).into_owned(),
        }
    }
}

pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// Conservation line of a run over a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub consumed: u64,
    pub released: u64,
    pub suppressed: u64,
    pub held: u64,
    pub dead_lettered: u64,
    pub dropped: u64,
}

impl Outcome {
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        self
    }

    #[track_caller]
    pub fn account(&self) -> Account {
        let line = self.stderr.lines().rev().find(|l| l.starts_with("consumed ")).expect("a line of conservation");
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |name: &str| -> u64 {
            let at = words.iter().position(|w| *w == name).expect("a term");
            words[at + 1].parse().expect("a number")
        };
        let account = Account {
            consumed: number("consumed"),
            released: number("released"),
            suppressed: number("suppressed"),
            held: number("held"),
            dead_lettered: number("dead-lettered"),
            dropped: number("dropped"),
        };
        let sum = account.released + account.suppressed + account.held + account.dead_lettered + account.dropped;
        assert_eq!(account.consumed, sum, "{line}");
        account
    }
}

pub fn get(port: u16, page: &str) -> Option<(u16, String)> {
    ask(port, &format!("GET {page}"), "", b"")
}

/// `head` has further header lines. Returns status and body of the response.
pub fn ask(port: u16, request: &str, head: &str, body: &[u8]) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\n{head}Connection: close\r\n\r\n").ok()?;
    // A server that refuses a body may close the connection early.
    let (Ok(()) | Err(_)) = stream.write_all(body);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split_whitespace().nth(1)?.parse().ok()?, body.to_owned()))
}

pub fn series(metrics: &str) -> BTreeMap<String, f64> {
    metrics
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a sample");
            (name.to_owned(), value.parse().expect("a number"))
        })
        .collect()
}

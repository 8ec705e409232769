//! Runs a real schema registry (Apicurio) and Confluent's client in Python, both from `.tools` (`./dev kafka fetch`).

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::ports::free_port;

const START: Duration = Duration::from_secs(180);

fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".tools")
}

pub struct Registry {
    port: u16,
    _keeper: Child,
}

const KEEPER: &str = r#"
trap '' HUP INT TERM
"$@" >/dev/null 2>&1 </dev/null &
registry=$!
read -r word
kill -9 "$registry" 2>/dev/null
"#;

impl Registry {
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Registry>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    fn start() -> Option<Self> {
        if !tools().join("registry/ready").exists() {
            assert!(
                std::env::var_os("THRONG_WITHOUT_KAFKA").is_some(),
                "no schema registry in .tools/registry: run `./dev kafka fetch` (or set THRONG_WITHOUT_KAFKA=1 to skip what needs it)"
            );
            eprintln!("SKIPPED: this test needs a schema registry, and THRONG_WITHOUT_KAFKA is set");
            return None;
        }
        let jar = std::fs::read_dir(tools().join("registry"))
            .expect("the registry's folder")
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .find(|path| path.to_string_lossy().ends_with("-runner.jar"))
            .expect("the registry's jar");
        let port = free_port();
        let keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper", "java", "-Xmx384m"])
            .arg(format!("-Dquarkus.http.port={port}"))
            .arg("-Dquarkus.http.host=127.0.0.1")
            .arg("-jar")
            .arg(jar)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("a shell");
        let registry = Self { port, _keeper: keeper };
        let deadline = Instant::now() + START;
        while registry.status("/subjects") != Some(200) {
            assert!(Instant::now() < deadline, "the schema registry does not answer");
            std::thread::sleep(Duration::from_millis(200));
        }
        Some(registry)
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/apis/ccompat/v7", self.port)
    }

    fn status(&self, path: &str) -> Option<u16> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        write!(stream, "GET /apis/ccompat/v7{path} HTTP/1.0\r\n\r\n").ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        line.split(' ').nth(1)?.parse().ok()
    }
}

/// Runs `tests/formats/client.py COMMAND ARGUMENTS…`, with `input` on standard input.
pub fn client(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(tools().join("python/bin/python"))
        .arg("-W")
        .arg("ignore")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats/client.py"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python from .tools/python");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).expect("the client reads"));
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
    writer.join().expect("written");
    assert!(child.wait().expect("our own child").success(), "the client failed");
    said
}

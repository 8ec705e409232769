//! Runs audits in a temporary folder.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub struct Place(pub TempDir);

pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let place = Self::new();
        place.write(name, content);
        place
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.0.path().join(name), content).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join(name)).expect("a file of text")
    }

    pub fn audit(&self, words: &str) -> Outcome {
        self.fed(words, b"")
    }

    pub fn fed(&self, words: &str, input: &[u8]) -> Outcome {
        let mut child = Command::new(env!("CARGO_BIN_EXE_throng"))
            .arg("audit")
            .args(words.split_whitespace())
            .current_dir(self.0.path())
            // Hides any GPU.
            .env("CUDA_VISIBLE_DEVICES", "")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        match pipe.write_all(input) {
            // The program may refuse its arguments before it reads any input.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            result => result.expect("written"),
        }
        drop(pipe);
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Outcome {
            code: output.status.code().expect("an exit code"),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    #[track_caller]
    pub fn report(&self, words: &str) -> Value {
        self.audit(&format!("{words} --json")).json()
    }
}

impl Outcome {
    #[track_caller]
    pub fn json(self) -> Value {
        assert_eq!(self.code, 0, "{}", self.stderr);
        assert_eq!(self.stdout.lines().count(), 1, "one object on one line");
        serde_json::from_str(&self.stdout).expect("JSON")
    }

    #[track_caller]
    pub fn refuses(self, code: i32, says: &[&str]) {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        for what in says {
            assert!(self.stderr.contains(what), "{what:?} is not in {:?}", self.stderr);
        }
        assert!(self.stdout.is_empty(), "{}", self.stdout);
    }
}

pub fn sets(report: &Value, key: &str) -> Vec<String> {
    let names = |set: &Value| {
        let names: Vec<&str> = set.as_array().expect("a set").iter().map(|n| n.as_str().expect("a name")).collect();
        names.join("+")
    };
    report[key].as_array().expect("a list").iter().map(names).collect()
}

/// Each value of sex, education and race is shared by at least four records, each age by at least three. The woman of
/// 60 with a doctorate and the two men of 60 are below k.
pub const CENSUS: &str = "age;sex;education;race\n\
    30;Male;Bachelors;White\n30;Male;Bachelors;White\n30;Male;Bachelors;White\n\
    30;Female;Bachelors;White\n30;Female;Bachelors;White\n30;Female;Bachelors;White\n\
    60;Male;Doctorate;White\n60;Male;Doctorate;White\n60;Female;Doctorate;White\n\
    40;Female;Doctorate;White\n40;Female;Doctorate;White\n40;Female;Doctorate;White\n";

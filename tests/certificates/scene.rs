//! A file that is anonymized with certificates, and what is made of them here without the product's own code.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::canaries::hex;
use crate::support::daemon::{Daemon, Dice, configure, payload, scratch};

/// The key of RFC 8410 and its public half, and a key of somebody else.
pub const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
pub const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";
/// As hex: RFC 8032, test 2.
pub const OTHER_KEY: &str = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
pub const OTHER_PUBLIC: &str = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";

pub const BATCH: usize = 40;

/// The last batch is not full.
pub const LINES: usize = 14 * BATCH + 17;

/// From file to file, with certificates.
pub struct Run {
    pub dir: tempfile::TempDir,
}

impl Run {
    pub fn new(hold: usize) -> Self {
        let dir = scratch();
        let mut dice = Dice::new(5);
        let payloads = (0..).filter_map(|n| payload(n, &mut dice)).take(LINES);
        let lines: Vec<u8> = payloads.flat_map(|line| [line, b"\n".to_vec()].concat()).collect();
        fs::write(dir.path().join("in.ndjson"), lines).expect("the input");
        let ends =
            "[source]\nkind = \"file\"\npath = \"@/in.ndjson\"\n[sink]\nkind = \"file\"\npath = \"@/out.ndjson\"\n";
        let place = dir.path().to_string_lossy().into_owned();
        configure(dir.path(), "only", &ends.replace('@', &place), hold, BATCH, "1h");
        let run = Self { dir };
        run.sign_with(KEY);
        run.write("public.pem", PUBLIC);
        run.write("other.hex", OTHER_PUBLIC);
        run.change(|text| {
            format!("{text}[certificates]\nkey_file = \"{place}/signing\"\npath = \"{place}/certificates.ndjson\"\n")
        });
        run
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, content: &str) {
        fs::write(self.path(name), content).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The key that signs from the next start on.
    pub fn sign_with(&self, key: &str) {
        self.write("signing", key);
        fs::set_permissions(self.path("signing"), fs::Permissions::from_mode(0o600)).expect("a file of ours");
    }

    /// Changes the configuration.
    pub fn change(&self, how: impl FnOnce(String) -> String) {
        let text = how(self.read("only.toml"));
        self.write("only.toml", &text);
    }

    pub fn start(&self, crash: Option<&str>) -> Daemon {
        Daemon::start(&self.path("only.toml"), &[], crash)
    }

    /// Runs to the end of the input, and gives what was said.
    pub fn finish(&self) -> String {
        let mut daemon = self.start(None);
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.said());
        daemon.said()
    }

    /// `throng verify-release` of the output.
    pub fn verify(&self, arguments: &[&str]) -> Verdict {
        let all = [&["verify-release", "out.ndjson", "-c", "only.toml", "--json"], arguments].concat();
        Verdict::of(&throng(self.dir.path(), &all))
    }

    /// The usual check: these certificates, the right key.
    pub fn check(&self, certificates: &str) -> Verdict {
        self.verify(&["--certificates", certificates, "--public-key", "public.pem"])
    }
}

/// Runs the binary in a folder.
pub fn throng(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.current_dir(dir).args(arguments).output().expect("the binary runs")
}

/// What `verify-release --json` says of certificates.
#[derive(Debug)]
pub struct Verdict {
    pub code: Option<i32>,
    pub report: Value,
    pub said: String,
}

impl Verdict {
    pub fn of(output: &Output) -> Self {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Self { code: output.status.code(), report: report["certificates"].clone(), said }
    }

    /// What is broken: the promise, the batch, the output.
    pub fn broken(&self) -> Vec<(String, Option<u64>, Option<String>)> {
        let broken = self.report["broken"].as_array().unwrap_or_else(|| panic!("a report: {self:?}"));
        let one = |b: &Value| {
            let promise = b["promise"].as_str().expect("a promise").to_owned();
            (promise, b["batch"].as_u64(), b["output"].as_str().map(str::to_owned))
        };
        broken.iter().map(one).collect()
    }

    /// Nothing is.
    #[track_caller]
    pub fn is_whole(&self) -> &Self {
        assert_eq!(self.code, Some(0), "{}\n{:#}", self.said, self.report);
        assert_eq!(self.report["kept"], true);
        self
    }

    /// This is broken at this batch, with exit code 4.
    #[track_caller]
    pub fn names(&self, promise: &str, batch: Option<u64>) -> &Self {
        assert_eq!(self.code, Some(4), "{}\n{:#}", self.said, self.report);
        let broken = self.broken();
        assert!(
            broken.iter().any(|(p, b, _)| p.contains(promise) && *b == batch),
            "{promise:?} of {batch:?} in {broken:#?}"
        );
        self
    }
}

/// The statement in a line, and SHA-256 of its bytes.
pub fn statement(line: &str) -> (Value, String) {
    let envelope: Value = serde_json::from_str(line).expect("an envelope");
    let payload = STANDARD.decode(envelope["payload"].as_str().expect("a payload")).expect("base64");
    (serde_json::from_slice(&payload).expect("a statement"), hex(&Sha256::digest(&payload)))
}

/// Lines of certificates as statements, their chain checked by hand: numbers, links, one instance, one a batch.
#[track_caller]
pub fn chained<'l>(lines: impl Iterator<Item = &'l str>) -> Vec<Value> {
    let mut before: Option<(String, Value)> = None;
    let mut statements = Vec::new();
    for (number, line) in (1..).zip(lines) {
        let (statement, digest) = statement(line);
        let chain = statement["predicate"]["chain"].clone();
        assert_eq!((chain["number"].as_u64(), chain["sequence"].as_u64()), (Some(number), Some(number)));
        match &before {
            None => assert_eq!(chain["previous"], Value::Null),
            Some((previous, instance)) => {
                assert_eq!(chain["previous"], Value::from(previous.as_str()), "certificate {number}");
                assert_eq!(chain["instance"], *instance);
            }
        }
        before = Some((digest, chain["instance"].clone()));
        statements.push(statement);
    }
    statements
}

/// What two runs over the same records say alike: all but who ran, when, and the links that follow from it.
pub fn comparable(mut statement: Value) -> Value {
    for field in ["instance", "previous"] {
        statement["predicate"]["chain"].as_object_mut().expect("a chain").remove(field);
    }
    statement["predicate"].as_object_mut().expect("a predicate").remove("clock_ms");
    statement
}

//! A folder and a store, and audits of what is in them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::Value;
use tempfile::TempDir;

use crate::stub::{KEY, SECRET, Stub};

pub struct Place {
    pub home: TempDir,
    pub stub: Stub,
    /// What the environment says of the store.
    pub told: BTreeMap<&'static str, String>,
}

pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    /// An empty folder and an empty store, whose listings come in pages of so many keys.
    pub fn new(page: usize) -> Self {
        let stub = Stub::new(page);
        let address = format!("http://127.0.0.1:{}", stub.port);
        let told = [
            ("AWS_ACCESS_KEY_ID", KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", &address),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_TIMEOUT", "20s"),
        ];
        let told = told.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
        Self { home: tempfile::tempdir().expect("a folder"), stub, told }
    }

    /// A file, and an object of the same name and bytes in the bucket `data`.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
        self.stub.put("data", name, bytes);
    }

    pub fn start(&self, words: &str) -> Child {
        Command::new(env!("CARGO_BIN_EXE_throng"))
            .arg("audit")
            .args(words.split_whitespace())
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("CUDA_VISIBLE_DEVICES", "")
            .envs(&self.told)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts")
    }

    /// `throng audit` with these words, a space between each. Whatever it says, it tells no secret.
    #[track_caller]
    pub fn audit(&self, words: &str) -> Outcome {
        let output = self.start(words).wait_with_output().expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        for secret in [KEY, SECRET, "AWS4-HMAC", "authorization:", "a-token-of-the-tests"] {
            assert!(!stdout.contains(secret) && !stderr.contains(secret), "{secret} is in {stderr}");
        }
        Outcome { code: output.status.code().expect("an exit code"), stdout, stderr }
    }

    /// The report of an audit that succeeds, without its seconds and the names of its input.
    #[track_caller]
    pub fn report(&self, words: &str) -> Value {
        let outcome = self.audit(&format!("{words} --json"));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let mut report: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        let keys = report.as_object_mut().expect("an object");
        for key in ["seconds", "timings", "input"] {
            keys.remove(key).expect("it is there");
        }
        report
    }
}

impl Outcome {
    #[track_caller]
    pub fn refuses(self, code: i32, says: &[&str]) {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        for what in says {
            assert!(self.stderr.contains(what), "{what:?} is not in {:?}", self.stderr);
        }
        assert!(self.stdout.is_empty(), "{}", self.stdout);
    }
}

/// Numbers that look like chance and are the same each time.
fn roll(seed: &mut u64, sides: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % sides
}

/// Rows of a file: a person, and six columns of few and many values.
pub fn rows(count: usize, mut seed: u64) -> RecordBatch {
    let mut cells = |sides: u64| (0..count).map(|_| roll(&mut seed, sides)).collect::<Vec<u64>>();
    let text = |cells: Vec<u64>| -> ArrayRef {
        Arc::new(cells.iter().map(|cell| (cell % 7 > 0).then(|| format!("v{cell}"))).collect::<StringArray>())
    };
    let whole =
        |cells: Vec<u64>| -> ArrayRef { Arc::new(cells.iter().map(|cell| *cell as i64).collect::<Int64Array>()) };
    let people: ArrayRef = Arc::new(cells(900).iter().map(|cell| Some(format!("p{cell}"))).collect::<StringArray>());
    let columns = [
        ("person", people),
        ("age", whole(cells(60))),
        ("sex", whole(cells(2))),
        ("place", text(cells(300))),
        ("steps", whole(cells(40))),
        ("number", whole(cells(100_000))),
        ("illness", text(cells(12))),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

/// A Parquet file of these rows, so many in a row group.
pub fn parquet(batch: &RecordBatch, group: usize) -> Vec<u8> {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group)).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("a writer");
    writer.write(batch).expect("written");
    writer.close().expect("closed");
    bytes
}

/// The most memory that a process has had so far, in bytes; none once it has ended.
pub fn peak_of(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(id.to_string()).join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

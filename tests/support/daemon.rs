//! Runs the daemon as a separate process on a small stream with countable output.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use throng::daemon::state::entries::{EntryCodec, EntryReader};
use throng::daemon::state::state_keys::StateKeys;
use throng::daemon::state::store::{RecoveredState, StateStore};
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_kafka::changelog;
use throng_kafka::connection::KafkaCluster;

use super::copies;
use super::kafka::{Record, TestCluster, unique};
use super::schemas::schema;

pub const K: usize = 3;

/// Records that share a value of `lot`; the output may contain no more.
pub const LOT: usize = 10;

pub const SECRET: &str = "a secret of the tests, and of nobody else";

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// `lot` has a separate group, so that released records can be counted. Every record has another subject.
const SCHEMA: &str = schema!("visits"; person, text "lot", hundred "age", more r#"
[[attribute]]
name = "ward"
type = "string"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"beds" = ["north", "south"]
"day" = ["east", "west", "tent"]
"#);

pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// Some payloads are malformed, some are tombstones.
pub fn payload(number: usize, dice: &mut Dice) -> Option<Vec<u8>> {
    let ages = [dice.roll(100), 30 + dice.roll(5), 70 + dice.roll(3)];
    let age = ages[dice.roll(3) as usize];
    let ward = ["north", "south", "east", "west", "tent"][dice.roll(12).min(4) as usize];
    match number {
        n if n % 97 == 5 => None,
        n if n % 89 == 7 => Some(b"{\"person\": \"cut sho".to_vec()),
        n => Some(
            format!("{{\"person\":\"p{n}\",\"lot\":\"L{}\",\"age\":{age},\"ward\":\"{ward}\"}}", n / LOT).into_bytes(),
        ),
    }
}

/// Distributed over `partitions` by lot.
pub fn records(seed: u64, from: usize, to: usize, partitions: i32) -> Vec<Record> {
    let mut dice = Dice::new(seed);
    (0..to)
        .map(|n| Record {
            partition: Some(i32::try_from(n / LOT).expect("few lots") % partitions),
            payload: payload(n, &mut dice),
            ..Record::default()
        })
        .skip(from)
        .collect()
}

pub struct Stage<'a> {
    pub broker: &'a TestCluster,
    pub dir: tempfile::TempDir,
    pub group: String,
    pub raw: String,
    pub out: String,
    pub letters: String,
    pub changelog: String,
    pub properties: String,
    pub sessions: &'static str,
    pub brokers: String,
    pub security: String,
}

impl<'a> Stage<'a> {
    pub fn new(broker: &'a TestCluster, partitions: i32) -> Self {
        let stage = Self {
            broker,
            dir: scratch(),
            group: unique("group"),
            raw: unique("raw"),
            out: unique("out"),
            letters: unique("letters"),
            changelog: unique("changelog"),
            properties: String::new(),
            sessions: "\"session.timeout.ms\" = \"2000\"\n\"heartbeat.interval.ms\" = \"300\"",
            brokers: broker.bootstrap(),
            security: String::new(),
        };
        broker.create_topic(&stage.raw, partitions, false);
        broker.create_topic_with(&stage.out, 2, &[("retention.ms", "-1")]);
        broker.create_topic(&stage.letters, 1, false);
        broker.create_topic(&stage.changelog, partitions + 1, true);
        stage
    }

    pub fn state(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `wait` closes a partial batch.
    pub fn configure(&self, name: &str, hold: usize, batch: usize, wait: &str) -> PathBuf {
        let Self { group, raw, out, letters, changelog, properties, sessions, brokers, security, .. } = self;
        let source = format!(
            r#"
[source]
kind = "kafka"
brokers = "{brokers}"
topics = ["{raw}"]
group = "{group}"
[source.librdkafka]
{sessions}
"fetch.wait.max.ms" = "50"
{properties}
[sink]
kind = "kafka"
topic = "{out}"
dead_letter_topic = "{letters}"
changelog_topic = "{changelog}"
{security}
"#
        );
        configure(self.dir.path(), name, &source, hold, batch, wait)
    }

    /// The next member replaces a killed one immediately.
    pub fn with_static_membership(mut self) -> Self {
        self.properties = "\"group.instance.id\" = \"only\"".to_owned();
        self
    }

    /// KIP-848.
    pub fn with_consumer_protocol(mut self) -> Self {
        self.sessions = "\"group.protocol\" = \"consumer\"";
        self
    }

    pub fn reached_by(mut self, brokers: String) -> Self {
        self.brokers = brokers;
        self
    }

    pub fn start(&self, name: &str, crash: Option<&str>) -> TestDaemon {
        self.start_with(name, &[], crash)
    }

    pub fn start_with(&self, name: &str, arguments: &[&str], crash: Option<&str>) -> TestDaemon {
        TestDaemon::start(&self.dir.path().join(format!("{name}.toml")), arguments, crash)
    }

    pub fn consumed(&self) -> i64 {
        self.broker.group_offsets_now(&self.group, &self.raw).values().map(|at| at.unwrap_or(0)).sum()
    }

    pub fn wait_consumed(&self, records: usize, daemons: &mut [&mut TestDaemon]) {
        let deadline = Instant::now() + PATIENCE;
        while self.consumed() < i64::try_from(records).expect("few records") {
            for daemon in &mut *daemons {
                assert!(daemon.ended().is_none(), "it ended early: {}", daemon.said());
            }
            if Instant::now() > deadline {
                let said: Vec<String> = daemons.iter().map(|d| d.said()).collect();
                panic!("{} of {records} records after {PATIENCE:?}: {}", self.consumed(), said.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The instance that restores held records counts them as consumed.
    pub fn waiting(&self) -> u64 {
        let cluster = KafkaCluster::new(&self.broker.bootstrap(), BTreeMap::new());
        let partitions = cluster.partitions(&[&self.raw], PATIENCE).expect("the source")[0];
        let mut reader = EntryReader::new(EntryCodec::new(&StateKeys::derive(SECRET.as_bytes()), &self.group));
        let mut take = |record: changelog::RawChangelogRecord<'_>| reader.add_record(record);
        changelog::read_state(
            &cluster,
            &self.changelog,
            &(0..partitions).collect(),
            &|| false,
            &mut || Ok(()),
            &mut take,
        )
        .expect("the changelog");
        let restored = reader.into_restored(|_| true).expect("entries of our secret");
        restored.waiting.iter().filter(|row| !row.released).count() as u64
    }

    pub fn released(&self) -> BTreeMap<i32, Vec<String>> {
        let mut lines: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        for stored in self.broker.read_committed(&self.out) {
            assert!(stored.key.is_none() && stored.headers.is_empty(), "a fragment has a payload and nothing else");
            let text = String::from_utf8(stored.payload.expect("a payload")).expect("text");
            lines.entry(stored.partition).or_default().push(text);
        }
        lines
    }

    pub fn dead_letters(&self) -> Vec<String> {
        let letters = self.broker.read_committed(&self.letters);
        letters.into_iter().map(|l| String::from_utf8(l.payload.expect("a payload")).expect("text")).collect()
    }
}

pub fn scratch() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    fs::write(dir.path().join("visits.toml"), SCHEMA).expect("the schema");
    fs::write(dir.path().join("key"), SECRET).expect("the secret");
    fs::set_permissions(dir.path().join("key"), fs::Permissions::from_mode(0o600)).expect("a file of ours");
    dir
}

pub fn configure(dir: &Path, name: &str, ends: &str, hold: usize, batch: usize, wait: &str) -> PathBuf {
    let file = dir.join(format!("{name}.toml"));
    let place = dir.display();
    let text = format!(
        r#"{ends}
[schema]
file = "{place}/visits.toml"
[batch]
max_records = {batch}
max_wait = "{wait}"
max_age = "1h"
[privacy]
k = {K}
max_hold_batches = {hold}
max_lines_per_subject = 0
max_delay = "0s"
[plan]
interval = "1h"
[state]
path = "{place}/{name}"
secret_file = "{place}/key"
[telemetry]
listen = "127.0.0.1:0"
[[group]]
name = "trace"
attributes = ["lot"]
[[group]]
name = "visit"
attributes = ["age", "ward"]
"#
    );
    fs::write(&file, text).expect("the configuration");
    file
}

/// Returns the pipe next to the configuration, if any. Opening does not wait for a writer.
fn input(config: &Path) -> Stdio {
    let pipe = config.with_file_name("in.fifo");
    if !pipe.exists() {
        return Stdio::null();
    }
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("a flag");
    let mut options = fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::custom_flags(options.read(true), flags);
    options.open(pipe).expect("the pipe").into()
}

pub struct TestDaemon {
    child: Child,
    log: PathBuf,
}

impl TestDaemon {
    /// `crash` is the value of `FAILPOINTS`.
    pub fn start(config: &Path, arguments: &[&str], crash: Option<&str>) -> Self {
        Self::start_in(config, arguments, crash, &[])
    }

    /// A `.tuning` file next to the configuration sets internal parameters.
    pub fn start_in(config: &Path, arguments: &[&str], crash: Option<&str>, environment: &[(&str, &Path)]) -> Self {
        let log = config.with_extension(unique("log"));
        let mut command = crate::support::binary::throng();
        command.arg("run").arg("-c").arg(config).args(arguments);
        command.env_remove("FAILPOINTS").stdin(input(config)).stdout(Stdio::null());
        command.stderr(fs::File::create(&log).expect("a log file"));
        if let Some(crash) = crash {
            command.env("FAILPOINTS", crash);
        }
        if let Ok(tuning) = fs::read_to_string(config.with_extension("tuning")) {
            command.env("THRONG_TUNING", tuning);
        }
        command.envs(environment.iter().copied());
        Self { child: command.spawn().expect("the daemon starts"), log }
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("our own child");
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child")
    }

    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(Instant::now() < deadline, "it did not end within {PATIENCE:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn crashes(&mut self, point: &str) {
        let status = self.wait();
        assert_eq!(status.signal(), Some(Signal::ABORT.as_raw()), "{point} was not reached: {status}, {}", self.said());
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("our own child");
        self.child.wait().expect("our own child");
    }

    pub fn stop(&mut self) {
        self.signal(Signal::TERM);
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "SIGTERM: {}", self.said());
    }

    pub fn says(&mut self, words: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.said().contains(words) {
            assert!(self.ended().is_none() && Instant::now() < deadline, "it did not say {words:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) && self.child.kill().is_ok() {
            self.child.wait().expect("our own child");
        }
    }
}

/// Reads the state of a stopped daemon, as its next start would.
pub fn state(path: &Path) -> RecoveredState {
    let copy = tempfile::tempdir().expect("a directory");
    copies::tree(path, copy.path());
    let mut ledger = SubjectLedger::default();
    let (_, _, recovered) =
        StateStore::open(copy.path(), Some(SECRET.as_bytes()), &mut ledger).expect("a state that opens");
    recovered
}

/// Returns the number of records that have not moved to another instance.
pub fn conserved(path: &Path) -> u64 {
    let RecoveredState { progress, intent, held, .. } = state(path);
    assert!(intent.is_none(), "a batch is pending after an ordered end");
    let t = progress.totals;
    let gone = t.released + t.suppressed + t.dead_lettered + t.dropped + t.moved;
    assert!(held.is_empty(), "{} records are held after an ordered end", held.len());
    assert_eq!(t.consumed, gone, "conservation: {t:?}");
    t.consumed - t.moved
}

/// No lot more often than it has records, no class below k.
pub fn sound<'l>(lines: impl Iterator<Item = &'l String>) -> usize {
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines {
        *classes.entry(line).or_default() += 1;
    }
    for (line, count) in &classes {
        assert!(*count >= K, "{count} of {line}");
        assert!(!line.contains("\"L") || *count <= LOT, "{count} of {line}: a record was released twice");
    }
    classes.values().sum()
}

#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub released: BTreeMap<i32, Vec<String>>,
    pub dead_letters: Vec<String>,
}

pub fn finish(stage: &Stage, total: usize) -> Seen {
    let mut daemon = stage.start("only", None);
    stage.wait_consumed(total, &mut [&mut daemon]);
    finished(stage, &mut daemon, total)
}

pub fn finished(stage: &Stage, daemon: &mut TestDaemon, total: usize) -> Seen {
    daemon.stop();
    // A stop before the partition assignment leaves held records in the changelog.
    let waiting = stage.waiting();
    assert_eq!(conserved(&stage.state("only")) + waiting, total as u64, "{waiting} wait: {}", daemon.said());
    let seen = Seen { released: stage.released(), dead_letters: stage.dead_letters() };
    let lines = sound(seen.released.values().flatten());
    assert!(lines > total / 2, "{lines} fragments of {total} records say little");
    seen
}

/// Dead letters may differ only in the name of the source topic.
pub fn same(stage: &Stage, seen: &Seen, other: &Stage, undisturbed: &Seen) {
    // `assert_eq` would print thousands of lines.
    for (partition, lines) in &undisturbed.released {
        let other = &seen.released[partition];
        let differs = lines.iter().zip(other).position(|(a, b)| a != b);
        assert!(differs.is_none() && lines.len() == other.len(), "partition {partition} differs at {differs:?}");
    }
    let letters: Vec<String> = seen.dead_letters.iter().map(|l| l.replace(&stage.raw, &other.raw)).collect();
    assert_eq!(letters, undisturbed.dead_letters);
}

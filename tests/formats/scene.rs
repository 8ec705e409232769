//! Runs a daemon between topics of the shared broker, and generates heart rates for it.

use crate::support::binary::get;
use crate::support::daemon::TestDaemon;
use crate::support::kafka::{TestCluster, unique};
use crate::support::ports::free_port;
use crate::support::registry::client;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub const K: usize = 5;
pub const PEOPLE: usize = 40;

/// Heart rates of a wristband, with the person in the key.
pub const SCHEMA: &str = include_str!("../../schemas/wrist-heart-rate.toml");

pub struct Scene {
    pub broker: &'static TestCluster,
    pub dir: tempfile::TempDir,
    pub raw: String,
    pub out: String,
    pub letters: String,
    pub group: String,
    pub max_age: &'static str,
    pub port: u16,
}

pub fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(name).display().to_string()
}

impl Scene {
    pub fn new(broker: &'static TestCluster, schema: &str) -> Self {
        let scene = Self {
            broker,
            dir: tempfile::tempdir().expect("a temporary directory"),
            raw: unique("raw"),
            out: unique("out"),
            letters: unique("letters"),
            group: unique("group"),
            max_age: "5m",
            port: free_port(),
        };
        broker.create_topic(&scene.raw, 1, false);
        broker.create_topic_with(&scene.out, 2, &[("retention.ms", "-1")]);
        broker.create_topic(&scene.letters, 1, false);
        broker.create_topic(&format!("{}.changelog", scene.group), 2, true);
        std::fs::write(scene.dir.path().join("schema.toml"), schema).expect("the schema");
        let key = scene.dir.path().join("key");
        std::fs::write(&key, "a secret of the tests, long enough").expect("the secret");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("a file of ours");
        scene
    }

    pub fn start(&self, source: &str, sink: &str, more: &str) -> TestDaemon {
        let Self { raw, out, letters, group, max_age, port, .. } = self;
        let place = self.dir.path().display();
        let text = format!(
            r#"
[source]
brokers = "{brokers}"
topics = ["{raw}"]
group = "{group}"
{source}
[source.librdkafka]
"fetch.wait.max.ms" = "50"
[sink]
topic = "{out}"
dead_letter_topic = "{letters}"
changelog_topic = "{group}.changelog"
{sink}
[schema]
file = "{place}/schema.toml"
[batch]
max_records = 1000
max_wait = "200ms"
max_age = "{max_age}"
[privacy]
k = {K}
max_delay = "0s"
max_lines_per_subject = 0
[plan]
interval = "1h"
[state]
path = "{place}/state"
secret_file = "{place}/key"
[telemetry]
listen = "127.0.0.1:{port}"
{more}
"#,
            brokers = self.broker.bootstrap(),
        );
        let config = self.config();
        std::fs::write(&config, text).expect("the configuration");
        TestDaemon::start(&config, &[], None)
    }

    pub fn config(&self) -> PathBuf {
        self.dir.path().join("throng.toml")
    }

    pub fn consumed(&self) -> i64 {
        self.broker.group_offsets_now(&self.group, &self.raw).values().map(|at| at.unwrap_or(0)).sum()
    }

    pub fn wait_consumed(&self, records: usize, daemon: &mut TestDaemon) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(90);
        while self.consumed() < records as i64 {
            assert!(daemon.ended().is_none(), "it ended early: {}", daemon.said());
            assert!(std::time::Instant::now() < deadline, "{} of {records}: {}", self.consumed(), daemon.said());
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    pub fn letters(&self) -> Vec<Value> {
        let letters = self.broker.read_committed(&self.letters);
        letters
            .iter()
            .map(|l| serde_json::from_slice(l.payload.as_deref().expect("a payload")).expect("JSON"))
            .collect()
    }

    pub fn refused_elements(&self) -> BTreeSet<(u64, Option<u64>, String)> {
        let of = |letter: &Value| {
            let reason = letter["reason"].as_str().expect("a reason").to_owned();
            (letter["offset"].as_u64().expect("an offset"), letter["element"].as_u64(), reason)
        };
        self.letters().iter().map(of).collect()
    }

    pub fn released(&self) -> usize {
        self.broker.read_committed(&self.out).len()
    }

    pub fn reasons(&self) -> Vec<(i64, String)> {
        let letters = self.letters();
        let of =
            |l: &Value| (l["offset"].as_i64().expect("an offset"), l["reason"].as_str().expect("a reason").to_owned());
        letters.iter().map(of).collect()
    }

    /// Registers a schema with Confluent's client. `references` are `NAME=SUBJECT`.
    pub fn register(&self, url: &str, subject: &str, extension: &str, schema: &str, references: &[&str]) -> u32 {
        let path = self.dir.path().join(format!("{subject}.{extension}"));
        std::fs::write(&path, schema).expect("a schema");
        let path = path.display().to_string();
        let arguments = [&["register", url, subject, &path][..], references].concat();
        client(&arguments, "").trim().parse().expect("a number")
    }

    pub fn produce(&self, url: &str, key: &str, value: &str, each: usize) {
        let arguments = ["produce", &self.broker.bootstrap(), url, &self.raw, &file(key), &file(value)];
        client(&arguments, &heart_rates(each));
    }

    pub fn page(&self, name: &str) -> (u16, String) {
        get(self.port, &format!("/{name}")).expect("an answer")
    }

    pub fn read_back(&self, url: &str, kind: &str) -> Vec<Value> {
        let lines = self.released().to_string();
        let said = client(&["consume", &self.broker.bootstrap(), url, &self.out, &lines, kind], "");
        said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

pub fn framed(id: u32, datum: &[u8]) -> Vec<u8> {
    [&[0][..], &id.to_be_bytes(), datum].concat()
}

pub fn heart_rates(each: usize) -> String {
    let mut lines = String::new();
    for i in 0..PEOPLE * each {
        let person = i % PEOPLE;
        let activity = ["REST", "WALK"][person % 2];
        let rate = if i % 17 == 0 { Value::Null } else { json!(60 + person % 4 * 5) };
        let record = json!({
            "key": {"projectId": "p", "userId": format!("user-{person}"), "sourceId": format!("band-{person}")},
            "value": {
                "time": 1_700_000_000.25 + i as f64,
                "timeReceived": 1_700_000_001.5 + i as f64,
                "heartRate": rate,
                "activity": activity,
                "battery": 0.5,
            },
        });
        writeln!(lines, "{record}").expect("text");
    }
    lines
}

pub fn forward(port: u16, target: std::net::SocketAddr) {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is still free");
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = std::net::TcpStream::connect(target) else { continue };
            let (mut up, mut down) = (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
            let (mut client, mut server) = (client, server);
            std::thread::spawn(move || {
                if std::io::copy(&mut up, &mut server).is_err() {
                    // The other side has closed the connection.
                }
            });
            std::thread::spawn(move || {
                if std::io::copy(&mut down, &mut client).is_err() {
                    // The other side has closed the connection.
                }
            });
        }
    });
}

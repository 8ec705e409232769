//! Profiles of people from a topic or a file, joined to their records.

use crate::support;

mod at_once;
mod files;
mod radar;
mod refusals;
mod repeated;
mod settling;
mod topics;

use std::collections::BTreeMap;

use support::binary::{Place, Process, series};
use support::kafka::{Record, TestCluster, unique};
use support::schemas::schema;

const SCHEMA: &str = schema!("visits"; person, text "ward", more r#"
[[attribute]]
name = "age"
type = "integer"
from = "join:profiles"
pointer = "/born/age"
missing = ["-1"]
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 100
widths = [10, 50]
[[attribute]]
name = "sex"
type = "string"
from = "join:profiles"
"#);

const K: usize = 3;

struct Scene {
    broker: &'static TestCluster,
    place: Place,
    raw: String,
    out: String,
    profiles: String,
    letters: String,
    changelog: String,
    group: String,
    batch: String,
    hold: &'static str,
}

impl Scene {
    /// 0 closes batches after a short wait instead.
    fn new(broker: &'static TestCluster, batch: usize, more: &str) -> Self {
        Self::with(broker, batch, more, true)
    }

    /// The broker rejects messages without a key in a compacted topic.
    fn with(broker: &'static TestCluster, batch: usize, more: &str, compacted: bool) -> Self {
        let profiles = unique("profiles");
        let join = format!("[[join]]\nname = \"profiles\"\ntopic = \"{profiles}\"\nkey_format = \"text\"\n{more}");
        let scene = Self {
            broker,
            place: Place::new(SCHEMA, &join),
            raw: unique("raw"),
            out: unique("out"),
            letters: unique("letters"),
            changelog: unique("changelog"),
            group: unique("group"),
            batch: if batch == 0 { "1000".into() } else { batch.to_string() },
            profiles,
            hold: "0",
        };
        broker.create_topic(&scene.raw, 1, false);
        broker.create_topic(&scene.profiles, 2, compacted);
        broker.create_topic_with(&scene.out, 1, &[("retention.ms", "-1")]);
        broker.create_topic(&scene.letters, 1, false);
        broker.create_topic(&scene.changelog, 2, true);
        scene
    }

    fn start(&self, crash: Option<&str>) -> Process {
        let wait = if self.batch == "1000" { "300ms" } else { "1h" };
        let brokers = self.broker.bootstrap();
        let mut command = self.place.command(
            &[
                ("SOURCE__KIND", "kafka"),
                ("SOURCE__BROKERS", &brokers),
                ("SOURCE__TOPICS", &self.raw),
                ("SOURCE__GROUP", &self.group),
                ("SOURCE__LIBRDKAFKA__GROUP_INSTANCE_ID", "only"),
                ("SOURCE__LIBRDKAFKA__SESSION_TIMEOUT_MS", "6000"),
                ("SINK__KIND", "kafka"),
                ("SINK__TOPIC", &self.out),
                ("SINK__DEAD_LETTER_TOPIC", &self.letters),
                ("SINK__CHANGELOG_TOPIC", &self.changelog),
                ("PRIVACY__MAX_HOLD_BATCHES", self.hold),
                ("BATCH__MAX_RECORDS", &self.batch),
                ("BATCH__MAX_WAIT", wait),
                ("BATCH__MAX_AGE", "1h"),
            ],
            &[],
        );
        command.env_remove("FAILPOINTS");
        if let Some(crash) = crash {
            command.env("FAILPOINTS", crash);
        }
        Process::spawn(command, self.place.port)
    }

    fn visits(&self, people: impl IntoIterator<Item = usize>) {
        let visit = |person| Record {
            partition: Some(0),
            payload: Some(
                format!("{{\"person\":\"p{person}\",\"ward\":\"east\",\"age\":1,\"sex\":\"q\"}}").into_bytes(),
            ),
            ..Record::default()
        };
        self.broker.produce_records(&self.raw, &people.into_iter().map(visit).collect::<Vec<_>>());
    }

    fn profiles(&self, profiles: &[(usize, Option<(i64, &str)>)]) {
        let record = |&(person, profile): &(usize, Option<(i64, &str)>)| Record {
            partition: Some(i32::try_from(person % 2).expect("small")),
            key: Some(format!("p{person}").into_bytes()),
            payload: profile.map(|(age, sex)| format!("{{\"born\":{{\"age\":{age}}},\"sex\":\"{sex}\"}}").into_bytes()),
            ..Record::default()
        };
        self.broker.produce_records(&self.profiles, &profiles.iter().map(record).collect::<Vec<_>>());
    }

    fn released(&self) -> Vec<String> {
        lines(&self.broker.read_committed(&self.out))
    }
}

fn lines(stored: &[support::kafka::Stored]) -> Vec<String> {
    stored.iter().map(|s| String::from_utf8(s.payload.clone().expect("a payload")).expect("text")).collect()
}

/// Requires at least k per class; each person sends one record per batch.
fn classes(lines: &[String]) -> BTreeMap<String, usize> {
    let mut classes = BTreeMap::new();
    for line in lines {
        *classes.entry(line.clone()).or_insert(0) += 1;
    }
    assert!(classes.values().all(|people| *people >= K), "a class below k: {classes:?}");
    classes
}

fn line(age: &str, sex: &str) -> String {
    format!("{{\"ward\":\"east\",\"age\":{age},\"sex\":{sex}}}")
}

fn metric(process: &Process, name: &str) -> f64 {
    series(&process.get("/metrics").expect("an answer").1).get(name).copied().unwrap_or(f64::NAN)
}

/// Waits until the updates are read, and another second for their application between two batches.
fn wait_for_updates(process: &Process, updates: f64) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while metric(process, "throng_profile_updates_total") < updates {
        assert!(std::time::Instant::now() < deadline, "the updates have not come");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    std::thread::sleep(std::time::Duration::from_secs(1));
}

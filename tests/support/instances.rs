//! Runs instances of one group that share the partitions of a source, and creates the topics of such a group.

use super::binary::{Place, Process, series};
use super::kafka::{Record, Stored, TestCluster, unique};
use super::schemas::schema;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub const SCHEMA: &str = schema!("visits"; person, text "city");

pub const K: usize = 3;

const PATIENCE: Duration = Duration::from_secs(90);

pub struct Instance {
    pub place: Place,
    pub process: Option<Process>,
    pub name: &'static str,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub consumed: u64,
    pub released: u64,
    pub suppressed: u64,
    pub dead_lettered: u64,
    pub dropped: u64,
}

impl Instance {
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("a running instance")
    }

    pub fn spawn(&mut self, settings: &[(&str, &str)], faults: &str) {
        let mut command = self.place.command(settings, &[]);
        command.env_remove("FAILPOINTS");
        if !faults.is_empty() {
            command.env("FAILPOINTS", faults);
        }
        self.process = Some(Process::spawn(command, self.place.port));
    }

    pub fn end(&mut self) {
        let process = self.process.take().expect("a running instance");
        process.terminate();
        process.wait().expect(0);
    }

    pub fn was_refused(&mut self) -> String {
        let outcome = self.process.take().expect("it was started").wait();
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        outcome.stderr
    }

    pub fn keep_an_own_secret(&self) {
        let settings = String::from_utf8(self.place.read("throng.toml")).expect("text");
        self.place.write("throng.toml", settings.replace("secret_file = \"secret\"\n", ""));
    }

    pub fn metric(&self, name: &str) -> f64 {
        let page = self.process().get("/metrics").map(|(_, page)| page).unwrap_or_default();
        series(&page).get(name).copied().unwrap_or(f64::NAN)
    }

    pub fn wait_for(&self, name: &str, wanted: impl Fn(f64) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(self.metric(name)) {
            assert!(Instant::now() < deadline, "{}: {name} is {}", self.name, self.metric(name));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn status(&self) -> serde_json::Value {
        let page = self.process().get("/status.json").map(|(_, page)| page).unwrap_or_default();
        serde_json::from_str(&page).unwrap_or_default()
    }

    pub fn consumed(&self) -> u64 {
        self.status()["totals"]["consumed"].as_u64().unwrap_or_default()
    }

    pub fn wait_consumed(&self, records: u64) {
        self.process().until("its records are consumed", |s| s["totals"]["consumed"] == records);
    }

    pub fn account(&self) -> Account {
        let status = self.status();
        let total = |name: &str| status["totals"][name].as_u64().unwrap_or_default();
        let account = Account {
            consumed: total("consumed") - total("moved"),
            released: total("released"),
            suppressed: total("suppressed"),
            dead_lettered: total("dead_lettered"),
            dropped: total("dropped"),
        };
        let Account { released, suppressed, dead_lettered, dropped, .. } = account;
        let gone = released + suppressed + dead_lettered + dropped;
        assert_eq!(account.consumed, gone + status["held"].as_u64().unwrap_or_default(), "{account:?}");
        account
    }
}

pub fn wait(what: &str, instances: &[&Instance], wanted: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !wanted() {
        let accounts: Vec<Account> = instances.iter().map(|instance| instance.account()).collect();
        assert!(Instant::now() < deadline, "it did not come to pass that {what}: {accounts:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub fn together(instances: &[&Instance]) -> Account {
    instances.iter().map(|instance| instance.account()).fold(Account::default(), |sum, one| Account {
        consumed: sum.consumed + one.consumed,
        released: sum.released + one.released,
        suppressed: sum.suppressed + one.suppressed,
        dead_lettered: sum.dead_lettered + one.dead_lettered,
        dropped: sum.dropped + one.dropped,
    })
}

pub struct Topics {
    pub broker: &'static TestCluster,
    brokers: String,
    pub raw: String,
    pub out: String,
    pub letters: String,
    pub changelog: String,
    pub group: String,
}

impl Topics {
    pub fn new(broker: &'static TestCluster, partitions: i32) -> Self {
        let topics = Self {
            broker,
            brokers: broker.bootstrap(),
            raw: unique("raw"),
            out: unique("out"),
            letters: unique("letters"),
            changelog: unique("changelog"),
            group: unique("group"),
        };
        broker.create_topic(&topics.raw, partitions, false);
        broker.create_topic_with(&topics.out, 1, &[("retention.ms", "-1")]);
        broker.create_topic(&topics.letters, 1, false);
        broker.create_topic(&topics.changelog, partitions + 1, true);
        topics
    }

    pub fn instance(&self, name: &'static str) -> Instance {
        Instance { place: Place::new(SCHEMA, ""), process: None, name }
    }

    /// `session` is the session timeout in milliseconds. Entries of `more` replace those of `own`.
    pub fn settings<'a>(
        &'a self,
        name: &'a str,
        session: &'a str,
        own: &[(&'a str, &'a str)],
        more: &[(&'a str, &'a str)],
    ) -> Vec<(&'a str, &'a str)> {
        let mut settings = vec![
            ("SOURCE__KIND", "kafka"),
            ("SOURCE__BROKERS", &*self.brokers),
            ("SOURCE__TOPICS", &*self.raw),
            ("SOURCE__GROUP", &*self.group),
            ("SOURCE__LIBRDKAFKA__GROUP_INSTANCE_ID", name),
            ("SOURCE__LIBRDKAFKA__SESSION_TIMEOUT_MS", session),
            ("SOURCE__LIBRDKAFKA__HEARTBEAT_INTERVAL_MS", "300"),
            ("SINK__KIND", "kafka"),
            ("SINK__TOPIC", &*self.out),
            ("SINK__DEAD_LETTER_TOPIC", &*self.letters),
            ("SINK__CHANGELOG_TOPIC", &*self.changelog),
            ("BATCH__MAX_RECORDS", "1000"),
            ("BATCH__MAX_WAIT", "200ms"),
        ];
        settings.extend(own);
        settings.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        settings.extend(more);
        settings
    }

    pub fn visits(&self, partition: i32, visits: &[(String, &str)]) {
        let record = |(person, city): &(String, &str)| Record {
            partition: Some(partition),
            payload: Some(format!("{{\"person\":\"{person}\",\"city\":\"{city}\"}}").into_bytes()),
            ..Record::default()
        };
        self.broker.produce_records(&self.raw, &visits.iter().map(record).collect::<Vec<_>>());
    }

    pub fn released(&self) -> BTreeMap<String, usize> {
        by("city", &self.broker.read_committed(&self.out))
    }

    pub fn attempted(&self) -> BTreeMap<String, usize> {
        by("city", &self.broker.read_uncommitted(&self.out))
    }

    pub fn refused(&self) -> BTreeMap<String, usize> {
        by("reason", &self.broker.read_committed(&self.letters))
    }
}

fn by(field: &str, stored: &[Stored]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for stored in stored {
        let line: serde_json::Value = serde_json::from_slice(stored.payload.as_ref().expect("a line")).expect("JSON");
        *found.entry(line[field].as_str().expect("a text").to_owned()).or_default() += 1;
    }
    found
}

pub fn people(city: &'static str, from: usize, many: usize) -> Vec<(String, &'static str)> {
    (from..from + many).map(|n| (format!("{city}{n}"), city)).collect()
}

pub fn wearable(records: usize, partitions: i32) -> Vec<Record> {
    let input = crate::support::binary::throng()
        .args(["generate", "wearable", "--records", &records.to_string(), "--seed", "5", "-o", "-"])
        .output()
        .expect("records");
    let lines = input.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let record = |(n, line): (i32, &[u8])| Record {
        partition: Some(n % partitions),
        payload: Some(line.to_vec()),
        ..Record::default()
    };
    (0..).zip(lines).map(record).collect()
}

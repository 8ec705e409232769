//! Two instances, each with a partition of its own, and what they release.

use crate::support::binary::{Place, Process, series};
use crate::support::kafka::{Broker, Record, unique};
use crate::support::schemas::schema;
use std::collections::BTreeMap;

const SCHEMA: &str = schema!("visits"; person, text "city");

pub const K: usize = 3;

/// Longer than anything here takes on a busy machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(90);

/// Topics of one group.
pub struct Scene {
    pub broker: &'static Broker,
    pub raw: String,
    pub out: String,
    pub letters: String,
    pub commits: String,
    pub ledger: String,
    pub group: String,
    /// Milliseconds after which the group gives up an instance that has gone.
    pub session: &'static str,
}

/// An instance of the group: its directory, and its process while it runs.
pub struct Instance {
    pub place: Place,
    pub process: Option<Process>,
    pub name: &'static str,
}

impl Instance {
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("a running instance")
    }

    /// Ends it in order.
    pub fn end(&mut self) {
        let process = self.process.take().expect("a running instance");
        process.terminate();
        process.wait().expect(0);
    }

    /// A series of `/metrics`.
    pub fn metric(&self, name: &str) -> f64 {
        let page = self.process().get("/metrics").map(|(_, page)| page).unwrap_or_default();
        series(&page).get(name).copied().unwrap_or(f64::NAN)
    }

    /// Waits until a series is as it should be.
    pub fn wait_for(&self, name: &str, wanted: impl Fn(f64) -> bool) {
        let deadline = std::time::Instant::now() + PATIENCE;
        while !wanted(self.metric(name)) {
            assert!(std::time::Instant::now() < deadline, "{}: {name} is {}", self.name, self.metric(name));
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    pub fn consumed(&self) -> u64 {
        let page = self.process().get("/status.json").map(|(_, page)| page).unwrap_or_default();
        let status: serde_json::Value = serde_json::from_str(&page).unwrap_or_default();
        status["totals"]["consumed"].as_u64().unwrap_or_default()
    }

    pub fn wait_consumed(&self, records: u64) {
        self.process().until("its records are consumed", |s| s["totals"]["consumed"] == records);
    }
}

pub const HEARD: &str = "throng_shared_ledger_records_total{direction=\"in\"}";
pub const TOLD: &str = "throng_shared_ledger_records_total{direction=\"out\"}";

pub fn foreign(reason: &str) -> String {
    format!("throng_ledger_foreign_total{{reason=\"{reason}\"}}")
}

impl Scene {
    pub fn new(broker: &'static Broker) -> Self {
        Self::of_partitions(broker, 2)
    }

    /// The source has so many partitions.
    pub fn of_partitions(broker: &'static Broker, partitions: i32) -> Self {
        let scene = Self {
            broker,
            raw: unique("raw"),
            out: unique("out"),
            letters: unique("letters"),
            commits: unique("commits"),
            ledger: unique("ledger"),
            group: unique("group"),
            session: "6000",
        };
        broker.create_topic(&scene.raw, partitions, false);
        broker.create_topic_with(&scene.out, 1, &[("retention.ms", "-1")]);
        broker.create_topic(&scene.letters, 1, false);
        broker.create_topic(&scene.commits, 1, true);
        broker.create_topic_with(&scene.ledger, 2, &[("retention.ms", "-1")]);
        scene
    }

    /// An instance that has not been started.
    pub fn instance(&self, name: &'static str) -> Instance {
        Instance { place: Place::new(SCHEMA, ""), process: None, name }
    }

    /// What an instance is configured with beside its file.
    fn settings(&self, instance: &Instance, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let brokers = self.broker.bootstrap();
        let mut settings = vec![
            ("SOURCE__KIND", "kafka"),
            ("SOURCE__BROKERS", &brokers),
            ("SOURCE__TOPICS", &self.raw),
            ("SOURCE__GROUP", &self.group),
            ("SOURCE__LIBRDKAFKA__GROUP_INSTANCE_ID", instance.name),
            ("SOURCE__LIBRDKAFKA__SESSION_TIMEOUT_MS", self.session),
            ("SOURCE__LIBRDKAFKA__HEARTBEAT_INTERVAL_MS", "300"),
            ("SINK__KIND", "kafka"),
            ("SINK__TOPIC", &self.out),
            ("SINK__DEAD_LETTER_TOPIC", &self.letters),
            ("SINK__COMMITS_TOPIC", &self.commits),
            ("SINK__LEDGER_TOPIC", &self.ledger),
            ("PRIVACY__MAX_HOLD_BATCHES", "0"),
            ("BATCH__MAX_RECORDS", "1000"),
            ("BATCH__MAX_WAIT", "200ms"),
            ("BATCH__MAX_AGE", "1h"),
        ];
        settings.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        settings.extend(more);
        settings.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Starts an instance with more settings, and faults.
    pub fn start(&self, instance: &mut Instance, more: &[(&str, &str)], faults: &str) {
        let settings = self.settings(instance, more);
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut command = instance.place.command(&settings, &[]);
        command.env_remove("FAILPOINTS");
        if !faults.is_empty() {
            command.env("FAILPOINTS", faults);
        }
        instance.process = Some(Process::spawn(command, instance.place.port));
    }

    /// Erases people from an instance that does not run.
    pub fn forget(&self, instance: &Instance, people: &[&str]) {
        let settings = self.settings(instance, &[]);
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_throng"));
        command.args(["forget", "-c", "throng.toml"]).args(people);
        instance.place.surround(&mut command, &settings);
        let done = command.output().expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Two running instances with a partition each: first the one that reads partition 0. Faults by instance.
    pub fn two(&self, more: &[(&str, &str)], faults: [&str; 2]) -> [Instance; 2] {
        let mut both = [self.instance("one"), self.instance("two")];
        for (instance, faults) in both.iter_mut().zip(faults) {
            self.start(instance, more, faults);
        }
        self.in_order(both)
    }

    /// Waits until each of both has a partition, and puts the one first that reads partition 0.
    pub fn in_order(&self, mut both: [Instance; 2]) -> [Instance; 2] {
        for instance in &both {
            instance.wait_for("throng_partitions_assigned", |partitions| partitions == 1.0);
        }
        // A crowd that supports nobody here.
        self.visits(0, &crowd("Sion", 0));
        let deadline = std::time::Instant::now() + PATIENCE;
        while both.iter().all(|instance| instance.consumed() == 0) {
            assert!(std::time::Instant::now() < deadline, "nobody reads partition 0");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        if both[0].consumed() == 0 {
            both.swap(0, 1);
        }
        both[0].wait_consumed(K as u64);
        both
    }

    /// Visits of people to cities, in one partition.
    pub fn visits(&self, partition: i32, visits: &[(String, &str)]) {
        let record = |(person, city): &(String, &str)| Record {
            partition: Some(partition),
            payload: Some(format!("{{\"person\":\"{person}\",\"city\":\"{city}\"}}").into_bytes()),
            ..Record::default()
        };
        self.broker.produce_records(&self.raw, &visits.iter().map(record).collect::<Vec<_>>());
    }

    /// What readers of committed records see of each city.
    pub fn released(&self) -> BTreeMap<String, usize> {
        by_city(&self.broker.read_committed(&self.out))
    }

    /// The same of all that was ever written.
    pub fn attempted(&self) -> BTreeMap<String, usize> {
        by_city(&self.broker.read_uncommitted(&self.out))
    }
}

fn by_city(stored: &[crate::support::kafka::Stored]) -> BTreeMap<String, usize> {
    let mut cities = BTreeMap::new();
    for stored in stored {
        let line: serde_json::Value = serde_json::from_slice(stored.payload.as_ref().expect("a line")).expect("JSON");
        *cities.entry(line["city"].as_str().expect("a city").to_owned()).or_default() += 1;
    }
    cities
}

/// k people in a city; `from` makes them other people.
pub fn crowd(city: &'static str, from: usize) -> Vec<(String, &'static str)> {
    (from..from + K).map(|n| (format!("{city}{n}"), city)).collect()
}

/// One more in `city`, among a crowd elsewhere: a batch of fewer than k people releases nothing.
pub fn one_more(city: &'static str, elsewhere: &'static str) -> Vec<(String, &'static str)> {
    let mut visits = crowd(elsewhere, 0);
    visits.push((format!("late-{city}"), city));
    visits
}

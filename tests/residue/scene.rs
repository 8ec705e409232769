//! Instances that share the partitions of a source, and the topic through which they hand records on.

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
    pub residue: String,
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

/// What an instance says became of its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub consumed: u64,
    pub released: u64,
    pub suppressed: u64,
    pub dead_lettered: u64,
    pub dropped: u64,
    pub forwarded: u64,
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

    /// What became of its records, which add up.
    pub fn account(&self) -> Account {
        let page = self.process().get("/status.json").map(|(_, page)| page).unwrap_or_default();
        let status: serde_json::Value = serde_json::from_str(&page).unwrap_or_default();
        let total = |name: &str| status["totals"][name].as_u64().unwrap_or_default();
        let account = Account {
            consumed: total("consumed"),
            released: total("released"),
            suppressed: total("suppressed"),
            dead_lettered: total("dead_lettered"),
            dropped: total("dropped"),
            forwarded: status["forwarded"].as_u64().unwrap_or_default(),
        };
        let Account { released, suppressed, dead_lettered, dropped, forwarded, .. } = account;
        let gone = released + suppressed + dead_lettered + dropped + forwarded;
        assert_eq!(account.consumed, gone + status["held"].as_u64().unwrap_or_default(), "{account:?}");
        account
    }
}

/// Waits until something is true of some instances.
pub fn wait(what: &str, instances: &[&Instance], wanted: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !wanted() {
        let accounts: Vec<Account> = instances.iter().map(|instance| instance.account()).collect();
        assert!(std::time::Instant::now() < deadline, "it did not come to pass that {what}: {accounts:?}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// The accounts of some instances, added up.
pub fn together(instances: &[&Instance]) -> Account {
    instances.iter().map(|instance| instance.account()).fold(Account::default(), |sum, one| Account {
        consumed: sum.consumed + one.consumed,
        released: sum.released + one.released,
        suppressed: sum.suppressed + one.suppressed,
        dead_lettered: sum.dead_lettered + one.dead_lettered,
        dropped: sum.dropped + one.dropped,
        forwarded: sum.forwarded + one.forwarded,
    })
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
            residue: unique("residue"),
            group: unique("group"),
            session: "6000",
        };
        broker.create_topic(&scene.raw, partitions, false);
        broker.create_topic_with(&scene.out, 1, &[("retention.ms", "-1")]);
        broker.create_topic(&scene.letters, 1, false);
        broker.create_topic(&scene.commits, 1, true);
        broker.create_topic(&scene.residue, 1, false);
        scene
    }

    /// An instance that has not been started.
    pub fn instance(&self, name: &'static str) -> Instance {
        Instance { place: Place::new(SCHEMA, ""), process: None, name }
    }

    /// Starts an instance with more settings, and faults.
    pub fn start(&self, instance: &mut Instance, more: &[(&str, &str)], faults: &str) {
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
            ("SINK__RESIDUE_TOPIC", &self.residue),
            ("PRIVACY__BATCH_CROWD", "3"),
            ("BATCH__MAX_RECORDS", "1000"),
            ("BATCH__MAX_WAIT", "200ms"),
            ("BATCH__MAX_AGE", "10s"),
        ];
        settings.retain(|(name, _)| more.iter().all(|(other, _)| other != name));
        settings.extend(more);
        let mut command = instance.place.command(&settings, &[]);
        command.env_remove("FAILPOINTS");
        if !faults.is_empty() {
            command.env("FAILPOINTS", faults);
        }
        instance.process = Some(Process::spawn(command, instance.place.port));
    }

    /// Two running instances: each has a partition of the source, and one of them that of the residue as well.
    pub fn two(&self, more: &[(&str, &str)]) -> [Instance; 2] {
        let mut both = [self.instance("one"), self.instance("two")];
        both.iter_mut().for_each(|instance| self.start(instance, more, ""));
        let partitions = if more.contains(&("SINK__RESIDUE_TOPIC", "")) { 2.0 } else { 3.0 };
        let assigned = |instance: &Instance| instance.metric("throng_partitions_assigned");
        let [one, two] = &both;
        wait("each has a partition", &[one, two], || {
            assigned(one) >= 1.0 && assigned(two) >= 1.0 && assigned(one) + assigned(two) == partitions
        });
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
        let mut cities = BTreeMap::new();
        for stored in self.broker.read_committed(&self.out) {
            let line = stored.payload.expect("a line");
            let line: serde_json::Value = serde_json::from_slice(&line).expect("JSON");
            *cities.entry(line["city"].as_str().expect("a city").to_owned()).or_default() += 1;
        }
        cities
    }

    /// Dead letters by reason.
    pub fn refused(&self) -> BTreeMap<String, usize> {
        let mut reasons = BTreeMap::new();
        for stored in self.broker.read_committed(&self.letters) {
            let letter: serde_json::Value = serde_json::from_slice(&stored.payload.expect("a letter")).expect("JSON");
            *reasons.entry(letter["reason"].as_str().expect("a reason").to_owned()).or_default() += 1;
        }
        reasons
    }
}

/// So many people in a city; `from` makes them other people.
pub fn people(city: &'static str, from: usize, many: usize) -> Vec<(String, &'static str)> {
    (from..from + many).map(|n| (format!("{city}{n}"), city)).collect()
}

//! Tests erasure topics on a real broker: every instance erases named subjects, after any crash.

use crate::forget::at_rest::SCHEMA;
use crate::forget::kills::{POINTS, is_done};
use crate::forget::opened::{Opened, databases, spellings};
use crate::support::binary::{Place, get, series};
use crate::support::canaries::Canaries;
use crate::support::daemon::{Stage, TestDaemon, finished, records};
use crate::support::kafka::{Record, TestCluster, unique};
use crate::support::ports::free_port;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions};
use rdkafka::client::DefaultClientContext;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const SECRET: &[u8] = b"a secret of the tests, and of nobody else";
const PART: usize = 200;
/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

struct Scene {
    stage: Stage<'static>,
    topic: String,
    produced: usize,
}

struct Instance {
    name: &'static str,
    file: PathBuf,
    port: u16,
}

impl Scene {
    fn new(broker: &'static TestCluster, partitions: i32) -> Self {
        let topic = unique("erasures");
        broker.create_topic(&topic, partitions, false);
        Self { stage: Stage::new(broker, 2), topic, produced: 0 }
    }

    fn with_static_membership(mut self) -> Self {
        self.stage = self.stage.with_static_membership();
        // An expelled member would repeat an erasure, and this test counts erasures.
        self.stage.sessions = "\"session.timeout.ms\" = \"30000\"";
        self
    }

    fn instance(&self, name: &'static str, interval: &str) -> Instance {
        let file = self.stage.configure(name, 2, 40, "100ms");
        let port = free_port();
        let text = fs::read_to_string(&file).expect("the configuration");
        let listen = "listen = \"127.0.0.1:0\"\n";
        assert!(text.contains(listen));
        let more = format!("listen = \"127.0.0.1:{port}\"\n[erasure]\ntopic = \"{}\"\n", self.topic);
        fs::write(&file, text.replace(listen, &more)).expect("the configuration");
        fs::write(file.with_extension("tuning"), format!("erasure_interval = \"{interval}\"")).expect("a file");
        Instance { name, file, port }
    }

    fn produce(&mut self) {
        let from = self.produced;
        self.produced += PART;
        self.stage.broker.produce_records(&self.stage.raw, &records(9, from, self.produced, 2));
    }

    fn name<'a>(&self, people: impl IntoIterator<Item = &'a str>) {
        self.name_in(0, people);
    }

    fn name_in<'a>(&self, partition: i32, people: impl IntoIterator<Item = &'a str>) {
        let message = |(n, person): (usize, &str)| Record {
            partition: Some(partition),
            key: Some(person.as_bytes().to_vec()),
            payload: (n % 2 == 0).then(|| b"{\"ticket\":\"canary-of-a-value\"}".to_vec()),
            ..Record::default()
        };
        let messages: Vec<Record> = people.into_iter().enumerate().map(message).collect();
        self.stage.broker.produce_records(&self.topic, &messages);
    }

    fn forgotten(&self, instance: &Instance, people: &[String]) {
        let config = throng::config::load(&instance.file, std::iter::empty()).unwrap_or_else(|p| panic!("{p:#?}"));
        let state = Opened::read(&self.stage.state(instance.name), SECRET);
        for person in people {
            assert_eq!(state.with(&spellings(&config, SECRET, person)), Vec::<String>::new(), "{person}");
        }
    }

    fn remembered(&self, instance: &Instance, person: &str) -> bool {
        let config = throng::config::load(&instance.file, std::iter::empty()).unwrap_or_else(|p| panic!("{p:#?}"));
        !Opened::read(&self.stage.state(instance.name), SECRET).with(&spellings(&config, SECRET, person)).is_empty()
    }
}

impl Instance {
    fn metric(&self, name: &str) -> Option<f64> {
        series(&get(self.port, "/metrics")?.1).get(name).copied()
    }

    #[track_caller]
    fn until(&self, daemon: &mut TestDaemon, name: &str, wanted: f64) {
        let deadline = Instant::now() + PATIENCE;
        while self.metric(name) != Some(wanted) {
            assert!(daemon.ended().is_none(), "it ended early: {}", daemon.said());
            assert!(Instant::now() < deadline, "{name} is {:?} and not {wanted}: {}", self.metric(name), daemon.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn until_done(&self, daemon: &mut TestDaemon) {
        self.until(daemon, "throng_erasure_lag_records", 0.0);
    }

    fn erasures(&self) -> f64 {
        self.metric("throng_erasures_total").expect("a daemon that runs")
    }
}

#[test]
fn threat_37_erasure_topic_is_processed_despite_kills() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut scene = Scene::new(broker, 2).with_static_membership();
    let only = scene.instance("only", "200ms");
    let mut erased = Vec::new();
    let points: Vec<&str> = POINTS.iter().copied().chain(["erasure-unanswered"]).collect();
    for point in &points {
        scene.produce();
        let mut daemon = scene.stage.start("only", Some(&format!("{point}=return")));
        scene.stage.wait_consumed(scene.produced, &mut [&mut daemon]);
        let person = format!("p{}", scene.produced - PART + 3);
        scene.name([person.as_str()]);
        daemon.crashes(point);
        erased.push(person);
        let mut daemon = scene.stage.start("only", None);
        only.until_done(&mut daemon);
        assert_eq!(only.erasures(), if is_done(point) { 0.0 } else { 1.0 }, "{point}: {}", daemon.said());
        if Some(point) == points.last() {
            scene.stage.wait_consumed(scene.produced, &mut [&mut daemon]);
            finished(&scene.stage, &mut daemon, scene.produced);
        } else {
            daemon.stop();
        }
        scene.forgotten(&only, &erased);
    }
}

#[test]
fn threat_37_many_erasures_use_one_database_and_show_no_name() {
    let Some(broker) = TestCluster::shared() else { return };
    let canaries = Canaries::default();
    let mut scene = Scene::new(broker, 1).with_static_membership();
    let only = scene.instance("only", "200ms");
    let people: Vec<String> = (0..20).map(|_| canaries.text()).collect();
    let of = |(n, person): (usize, &String)| Record {
        partition: Some(0),
        payload: Some(format!("{{\"person\":\"{person}\",\"lot\":\"C{}\",\"age\":3{}}}", n / 10, n % 3).into_bytes()),
        ..Record::default()
    };
    broker.produce_records(&scene.stage.raw, &people.iter().enumerate().map(of).collect::<Vec<_>>());
    scene.produce();
    let total = scene.produced + people.len();
    let mut daemon = scene.stage.start("only", None);
    scene.stage.wait_consumed(total, &mut [&mut daemon]);
    daemon.stop();
    assert!(people.iter().all(|person| scene.remembered(&only, person)), "what is looked for is there");

    // Named while no daemon runs, and mostly unknown.
    let unknown: Vec<String> = (0..980).map(|n| format!("nobody{n}")).collect();
    scene.name(people.iter().chain(&unknown).map(String::as_str));
    let odd = |key: Option<Vec<u8>>| Record {
        partition: Some(0),
        key,
        payload: Some(canaries.text().into_bytes()),
        ..Record::default()
    };
    let long = canaries.text().repeat(300);
    let odd = [odd(None), odd(Some(Vec::new())), odd(Some(vec![0xff, 0xfe])), odd(Some(long.into_bytes()))];
    broker.produce_records(&scene.topic, &odd);
    let mut daemon = scene.stage.start("only", None);
    only.until(&mut daemon, "throng_erasure_requests_refused_total", 4.0);
    only.until_done(&mut daemon);
    assert_eq!(only.metric("throng_erasure_requests_total"), Some(1_000.0));
    assert!(only.erasures() < 2.5, "those of the start, and what may have been read behind them: {}", daemon.said());
    assert!(daemon.said().contains("people were erased from the state people=1000"), "{}", daemon.said());
    let before = only.erasures();
    // Named again, twice, in another spelling.
    let spelled = format!("  {} ", people[0]);
    scene.name([spelled.as_str(), people[0].as_str()]);
    only.until(&mut daemon, "throng_erasure_requests_total", 1_002.0);
    only.until_done(&mut daemon);
    assert!(only.erasures() > before);
    for page in ["/", "/metrics", "/status.json", "/plan"] {
        canaries.absent_from(page, get(only.port, page).expect("a page").1);
    }
    daemon.stop();
    let said = daemon.said();
    canaries.absent_from("the log", &said);
    assert!(!said.contains("canary-of-a-value"), "nothing of a value is read");
    assert!(said.contains("by=\"topic\"") && said.contains("names no subject"), "{said}");
    scene.forgotten(&only, &people);
    assert_eq!(databases(&scene.stage.state("only")).len(), 1);
    let mut daemon = scene.stage.start("only", None);
    only.until_done(&mut daemon);
    assert_eq!((only.erasures(), only.metric("throng_erasure_requests_total")), (0.0, Some(0.0)));
    daemon.stop();
}

#[test]
fn erasure_that_fails_is_retried() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut scene = Scene::new(broker, 1).with_static_membership();
    let only = scene.instance("only", "200ms");
    scene.produce();
    let mut daemon = scene.stage.start("only", Some("database-fails=2*return->off"));
    scene.stage.wait_consumed(scene.produced, &mut [&mut daemon]);
    scene.name(["p3"]);
    only.until(&mut daemon, "throng_erasures_total", 1.0);
    assert_eq!(only.metric("throng_erasure_failures_total"), Some(2.0));
    only.until_done(&mut daemon);
    assert_eq!(databases(&scene.stage.state("only")).len(), 1, "what was not finished is gone");
    let said = daemon.said();
    assert_eq!(said.matches("could not be erased: retrying").count(), 2, "{said}");
    finished(&scene.stage, &mut daemon, scene.produced);
    scene.forgotten(&only, &["p3".to_owned()]);
}

#[test]
fn erasure_configuration_errors_name_the_key() {
    let refused = |schema: &str, more: &str, overrides: &[(&str, &str)], says: &str| {
        let place = Place::new(schema, more);
        place.write("in.ndjson", "");
        let said = place.run(overrides).expect(2).stderr;
        assert!(said.contains(says), "{says}: {said}");
    };
    let topic = "[erasure]\ntopic = \"erasures\"\n";
    refused(SCHEMA, topic, &[], "erasure.topic: erasure requests are read from a topic");
    let kafka = [
        ("SOURCE__KIND", "kafka"),
        ("SOURCE__BROKERS", "127.0.0.1:1"),
        ("SOURCE__TOPICS", "raw"),
        ("SOURCE__GROUP", "g"),
        ("SINK__KIND", "kafka"),
        ("SINK__TOPIC", "out"),
    ];
    let nobody = SCHEMA.replace("role = \"subject\"", "role = \"identifier\"");
    refused(&nobody, topic, &kafka, "erasure.topic: the record schema has no subject");
    let twice = "[erasure]\ntopic = \"raw\"\n";
    refused(SCHEMA, twice, &kafka, "erasure.topic: this topic is also named by source.topics");
}

#[test]
fn erasure_topic_is_processed_by_every_instance() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut scene = Scene::new(broker, 1);
    let instances = [scene.instance("one", "200ms"), scene.instance("two", "200ms")];
    let mut daemons = instances.each_ref().map(|instance| scene.stage.start(instance.name, None));
    scene.produce();
    let [one, two] = &mut daemons;
    scene.stage.wait_consumed(scene.produced, &mut [one, two]);
    let people = ["p3".to_owned(), "p13".to_owned()];
    scene.name(people.iter().map(String::as_str));
    for (instance, daemon) in instances.iter().zip(&mut daemons) {
        instance.until(daemon, "throng_erasure_requests_total", 2.0);
        instance.until_done(daemon);
        assert!(instance.erasures() > 0.0);
    }
    for (instance, mut daemon) in instances.iter().zip(daemons) {
        daemon.stop();
        scene.forgotten(instance, &people);
    }
}

/// Requests deleted from the topic before they are read cannot be executed.
#[test]
fn erasure_requests_deleted_unread_are_reported() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut scene = Scene::new(broker, 2).with_static_membership();
    let only = scene.instance("only", "100ms");
    scene.produce();
    scene.name(["p1"]);
    let mut daemon = scene.stage.start("only", None);
    only.until(&mut daemon, "throng_erasures_total", 1.0);
    only.until_done(&mut daemon);
    assert_eq!(only.metric("throng_erasure_partitions_missed_total"), Some(0.0));
    daemon.stop();
    scene.name(["p2", "p3"]);
    scene.name_in(1, ["p5", "p6"]);
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create().expect("an admin client");
    let mut before = TopicPartitionList::new();
    before.add_partition_offset(&scene.topic, 0, Offset::Offset(3)).expect("an offset");
    before.add_partition_offset(&scene.topic, 1, Offset::Offset(2)).expect("an offset");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(admin.delete_records(&before, &AdminOptions::new())).expect("records that are deleted");
    let mut daemon = scene.stage.start("only", None);
    only.until(&mut daemon, "throng_erasure_partitions_missed_total", 2.0);
    only.until_done(&mut daemon);
    assert!(daemon.said().contains("were deleted before this instance read them"), "{}", daemon.said());
    scene.name(["p4"]);
    only.until(&mut daemon, "throng_erasures_total", 1.0);
    only.until_done(&mut daemon);
    // A new partition is read from its beginning.
    let more = NewPartitions::new(&scene.topic, 3);
    runtime.block_on(admin.create_partitions([&more], &AdminOptions::new())).expect("one partition more");
    scene.name_in(2, ["p7"]);
    only.until(&mut daemon, "throng_erasures_total", 2.0);
    daemon.stop();
}

#[test]
fn erasure_topic_that_is_missing_is_refused() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut scene = Scene::new(broker, 1).with_static_membership();
    scene.topic = unique("nowhere");
    scene.instance("only", "100ms");
    let mut daemon = scene.stage.start("only", None);
    assert_eq!(daemon.wait().code(), Some(2), "{}", daemon.said());
    assert!(daemon.said().contains(&format!("missing topics: {}", scene.topic)), "{}", daemon.said());
}

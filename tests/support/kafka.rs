//! Runs a real Apache Kafka for a test, with the jars of `.tools/kafka` (`./dev kafka fetch`).
//!
//! A broker ends with its [`TestCluster`] and with the test process: when a pipe closes, a small shell kills it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::metadata::{MetadataPartition, MetadataTopic};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::util::Timeout;
use rdkafka::{ClientContext, Offset, TopicPartitionList};
use rustix::process::{Pid, Signal, kill_process};

use super::copies;
use super::ports::free_port;

#[path = "topics.rs"]
mod topics;

const START: Duration = Duration::from_secs(120);
const ANSWER: Duration = Duration::from_secs(30);

/// Shell script: `keep` kills the broker and keeps its data, the end of the pipe kills it and removes them. It must
/// survive signals of a terminal.
const KEEPER: &str = r#"
trap '' HUP INT TERM
"$@" >>"$DIR/log" 2>&1 </dev/null &
broker=$!
echo "$broker"
word=
read -r word
kill -9 "$broker" 2>/dev/null
wait "$broker" 2>/dev/null
[ "$word" = keep ] || rm -rf "$DIR"
"#;

pub type KeyAndPayload = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Without a partition the client chooses one.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub partition: Option<i32>,
    pub key: Option<Vec<u8>>,
    pub payload: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// Milliseconds since the epoch; the client's clock when absent.
    pub timestamp: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub partition: i32,
    pub offset: i64,
    pub key: Option<Vec<u8>>,
    pub payload: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    pub timestamp: Option<i64>,
}

#[derive(Debug)]
pub struct TestCluster {
    port: u16,
    controller_port: u16,
    /// Second listening port, and the port advertised to its clients.
    proxied: Option<(u16, u16)>,
    /// The last value of a property applies.
    added: String,
    tools: PathBuf,
    dir: PathBuf,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    keeper: Child,
    broker: Pid,
}

impl TestCluster {
    /// Returns `None` when the jars are missing and `THRONG_WITHOUT_KAFKA` is set.
    ///
    /// # Panics
    /// When the jars are missing, and when the broker does not start.
    pub fn start() -> Option<Self> {
        Self::start_on(&tools(), None, &|_, _| String::new())
    }

    /// Starts the newer release `kafka-4`, with the group protocol of KIP-848 and session timeouts of seconds.
    pub fn newer() -> Option<Self> {
        let quick = "group.consumer.min.session.timeout.ms=1000\ngroup.consumer.session.timeout.ms=3000\n\
            group.consumer.min.heartbeat.interval.ms=100\ngroup.consumer.heartbeat.interval.ms=300\n";
        Self::start_on(&release("kafka-4"), None, &|_, _| quick.to_owned())
    }

    /// `THRONG_TEST_KAFKA=kafka-4`.
    pub fn is_newer() -> bool {
        tools() == release("kafka-4")
    }

    /// The properties are computed from the broker's port and its controller's port.
    pub fn start_with(added: &dyn Fn(u16, u16) -> String) -> Option<Self> {
        Self::start_on(&tools(), None, added)
    }

    /// Also returns a second port, which advertises `proxy` to its clients.
    pub fn start_behind(proxy: u16) -> Option<(Self, u16)> {
        let broker = Self::start_on(&tools(), Some(proxy), &|_, _| String::new())?;
        let (listens, _) = broker.proxied.expect("as asked for");
        Some((broker, listens))
    }

    fn start_on(tools: &Path, proxy: Option<u16>, added: &dyn Fn(u16, u16) -> String) -> Option<Self> {
        if !tools.join("ready").exists() {
            assert!(
                std::env::var_os("THRONG_WITHOUT_KAFKA").is_some(),
                "no Kafka in {}: run `./dev kafka fetch` (or set THRONG_WITHOUT_KAFKA=1 to skip what needs it)",
                tools.display()
            );
            eprintln!("SKIPPED: this test needs a real Kafka, and THRONG_WITHOUT_KAFKA is set");
            return None;
        }
        // Another process may take a free port before the broker binds it.
        for attempt in 1.. {
            let dir = tempfile::Builder::new().prefix("throng-kafka-").tempdir().expect("a temporary directory").keep();
            let formatted = tools.join("formatted");
            assert!(formatted.is_dir(), "there is no {}; run `./dev kafka fetch`", formatted.display());
            copies::tree(&formatted, &dir.join("data"));
            rename_cluster(&dir.join("data/meta.properties"));
            let [port, controller_port, proxied] = [(); 3].map(|()| free_port());
            let proxied = proxy.map(|proxy| (proxied, proxy));
            let added = added(port, controller_port);
            let broker =
                Self { port, controller_port, proxied, added, tools: tools.to_owned(), dir, running: Mutex::new(None) };
            match broker.launch() {
                Ok(()) => return Some(broker),
                Err(why) if attempt == 3 => panic!("Kafka did not start: {why}"),
                Err(why) => eprintln!("Kafka did not start on port {port}, trying another: {why}"),
            }
        }
        unreachable!("the third attempt returns or panics")
    }

    /// Each test uses separate topics and groups ([`unique`]).
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<TestCluster>> = OnceLock::new();
        let broker = SHARED.get_or_init(Self::start).as_ref();
        if broker.is_none() {
            eprintln!("SKIPPED: this test needs a real Kafka");
        }
        broker
    }

    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Sends SIGKILL and keeps the data for [`restart`](Self::restart).
    pub fn kill(&self) {
        let Some(mut running) = self.running().take() else { return };
        running.keeper.stdin.take().expect("the keeper has a pipe").write_all(b"keep\n").expect("the keeper listens");
        running.keeper.wait().expect("the keeper ends");
    }

    pub fn restart(&self) {
        self.kill();
        self.launch().unwrap_or_else(|why| panic!("Kafka did not start again: {why}"));
    }

    /// SIGSTOP: connections stay open without answers. Returns when every thread has stopped, because a signal reaches
    /// them one after another.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        let broker = self.running().as_ref().expect("a running broker").broker;
        let tasks = PathBuf::from(format!("/proc/{}/task", broker.as_raw_nonzero()));
        let deadline = Instant::now() + ANSWER;
        while !all_stopped(&tasks) {
            assert!(Instant::now() < deadline, "the broker did not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let broker = self.running().as_ref().expect("a running broker").broker;
        kill_process(broker, signal).expect("our own child");
    }

    pub fn produce(&self, topic: &str, records: Vec<KeyAndPayload>) {
        let records: Vec<Record> =
            records.into_iter().map(|(key, payload)| Record { key, payload, ..Record::default() }).collect();
        self.produce_records(topic, &records);
    }

    pub fn produce_records(&self, topic: &str, records: &[Record]) {
        let producer: BaseProducer<Deliveries> = self
            .client()
            // Starts faster than an idempotent producer. Without retries there are no duplicates either.
            .set("message.send.max.retries", "0")
            .set("linger.ms", "5")
            .create_with_context(Deliveries::default())
            .expect("a producer");
        for record in records {
            send(&producer, topic, record);
        }
        producer.flush(START).expect("the broker takes the records");
        assert_eq!(producer.context().failed.load(Ordering::Relaxed), 0, "records were not delivered to {topic}");
    }

    pub fn transactional(&self, transactional_id: &str) -> BaseProducer<Deliveries> {
        let producer: BaseProducer<Deliveries> = self
            .client()
            .set("transactional.id", transactional_id)
            .create_with_context(Deliveries::default())
            .expect("a producer");
        producer.init_transactions(ANSWER).expect("transactions start");
        producer
    }

    pub fn read_committed(&self, topic: &str) -> Vec<Stored> {
        self.read(topic, "read_committed")
    }

    /// Includes open and aborted transactions.
    pub fn read_uncommitted(&self, topic: &str) -> Vec<Stored> {
        self.read(topic, "read_uncommitted")
    }

    /// Waits for undecided transactions with offsets. `None`: none committed.
    pub fn group_offsets(&self, group: &str, topic: &str) -> BTreeMap<i32, Option<i64>> {
        self.offsets_of(group, topic, "read_committed")
    }

    /// Does not wait for undecided transactions.
    pub fn group_offsets_now(&self, group: &str, topic: &str) -> BTreeMap<i32, Option<i64>> {
        self.offsets_of(group, topic, "read_uncommitted")
    }

    fn offsets_of(&self, group: &str, topic: &str, isolation: &str) -> BTreeMap<i32, Option<i64>> {
        let consumer: BaseConsumer =
            self.client().set("group.id", group).set("isolation.level", isolation).create().expect("a consumer");
        let mut wanted = TopicPartitionList::new();
        for partition in partitions_of(&consumer, topic) {
            wanted.add_partition(topic, partition);
        }
        // A coordinator that is being elected returns an error.
        let deadline = Instant::now() + ANSWER;
        let committed = loop {
            match consumer.committed_offsets(wanted.clone(), ANSWER) {
                Ok(committed) => break committed,
                Err(why) => assert!(Instant::now() < deadline, "the coordinator does not answer: {why}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        committed
            .elements()
            .iter()
            .map(|e| (e.partition(), if let Offset::Offset(at) = e.offset() { Some(at) } else { None }))
            .collect()
    }

    /// The group must have no member.
    pub fn set_group_offset(&self, group: &str, topic: &str, partition: i32, offset: i64) {
        let consumer: BaseConsumer = self.client().set("group.id", group).create().expect("a consumer");
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Offset(offset)).expect("a valid offset");
        consumer.commit(&list, CommitMode::Sync).expect("the coordinator takes the offset");
    }

    fn client(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.bootstrap());
        config
    }

    fn read(&self, topic: &str, isolation: &str) -> Vec<Stored> {
        let consumer: BaseConsumer = self
            .client()
            .set("group.id", "throng-test-reader")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("isolation.level", isolation)
            .create()
            .expect("a consumer");
        let partitions = partitions_of(&consumer, topic);
        assert!(!partitions.is_empty(), "topic {topic} does not exist");
        let mut assignment = TopicPartitionList::new();
        for &partition in &partitions {
            assignment.add_partition_offset(topic, partition, Offset::Beginning).expect("a valid offset");
        }
        consumer.assign(&assignment).expect("an assignment");
        let mut ended = std::collections::BTreeSet::new();
        let mut stored = Vec::new();
        while ended.len() < partitions.len() {
            match consumer.poll(ANSWER) {
                None => panic!("reading {topic} came to no end within {ANSWER:?}"),
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    ended.insert(partition);
                }
                Some(Err(why)) => panic!("reading {topic}: {why}"),
                Some(Ok(message)) => stored.push(Stored {
                    partition: message.partition(),
                    offset: message.offset(),
                    key: message.key().map(<[u8]>::to_vec),
                    payload: message.payload().map(<[u8]>::to_vec),
                    headers: message.headers().map_or_else(Vec::new, |headers| {
                        headers.iter().map(|h| (h.key.to_owned(), h.value.map(<[u8]>::to_vec))).collect()
                    }),
                    timestamp: message.timestamp().to_millis(),
                }),
            }
        }
        stored.sort_by_key(|s| (s.partition, s.offset));
        stored
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the URLs of the token signing keys, separated by commas.
    fn keys_of_tokens(&self) -> String {
        let named = |line: &str| line.split_once("sasl.oauthbearer.jwks.endpoint.url=").map(|(_, url)| url.to_owned());
        self.added.lines().filter_map(named).collect::<Vec<_>>().join(",")
    }

    fn launch(&self) -> Result<(), String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kafka-dev");
        let properties = fs::read_to_string(root.join("server.properties")).map_err(|why| why.to_string())?;
        let mut properties = properties
            .replace("@DATA@", &self.dir.join("data").to_string_lossy())
            .replace("@PORT@", &self.port.to_string())
            .replace("@CONTROLLER_PORT@", &self.controller_port.to_string());
        if let Some((listens, told)) = self.proxied {
            // The last value of a property applies.
            let (port, controller_port) = (self.port, self.controller_port);
            properties += &format!(
                "\nlisteners=PLAINTEXT://127.0.0.1:{port},PROXIED://127.0.0.1:{listens},CONTROLLER://127.0.0.1:{controller_port}\n\
                 advertised.listeners=PLAINTEXT://127.0.0.1:{port},PROXIED://127.0.0.1:{told}\n\
                 listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
                 inter.broker.listener.name=PLAINTEXT\n"
            );
        }
        properties += &self.added;
        let file = self.dir.join("server.properties");
        fs::write(&file, properties).map_err(|why| why.to_string())?;
        let logged = fs::metadata(self.log()).map_or(0, |m| usize::try_from(m.len()).unwrap_or(usize::MAX));
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper", "java", "-Xmx512m", "-XX:+UseSerialGC", "-cp"])
            .arg(format!("{}/lib/*", self.tools.display()))
            .arg(format!("-Dlog4j.configuration=file:{}", root.join("log4j.properties").display()))
            // From 4.0 on a broker reads token keys only from allowed URLs.
            .arg(format!("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={}", self.keys_of_tokens()))
            .arg("kafka.Kafka")
            .arg(&file)
            .env("DIR", &self.dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|why| format!("no shell: {why}"))?;
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().expect("a pipe")).read_line(&mut line).map_err(|why| why.to_string())?;
        let broker = line.trim().parse().ok().and_then(Pid::from_raw).ok_or("the shell gave no pid")?;
        *self.running() = Some(Running { keeper, broker });
        self.wait_until_it_answers(logged)
    }

    /// `logged` is the length of the log before this start.
    fn wait_until_it_answers(&self, logged: usize) -> Result<(), String> {
        let broker = self.running().as_ref().ok_or("not started")?.broker;
        let deadline = Instant::now() + START;
        loop {
            let log = fs::read(self.log()).unwrap_or_default();
            let log = String::from_utf8_lossy(log.get(logged..).unwrap_or_default()).into_owned();
            if log.contains("Kafka Server started") {
                break;
            }
            let ended = has_ended(broker);
            if ended || Instant::now() > deadline {
                let lines: Vec<&str> = log.lines().collect();
                let what = if ended { "it has ended" } else { "it does not answer" };
                return Err(format!(
                    "{what}; the end of its log:\n{}",
                    lines[lines.len().saturating_sub(20)..].join("\n")
                ));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let consumer: BaseConsumer = self.client().create().map_err(|why| why.to_string())?;
        consumer.fetch_metadata(None, ANSWER).map(drop).map_err(|why| why.to_string())
    }
}

/// Checks that a process does not exist or is not yet reaped. The command line is empty for a moment during exec.
fn has_ended(process: Pid) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_pid())) else { return true };
    // "PID (NAME) STATE …", and the name may contain any character.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, None | Some('Z' | 'X'))
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        let running = self.running().take();
        if let Some(mut running) = running {
            drop(running.keeper.stdin.take());
            if let Err(why) = running.keeper.wait() {
                eprintln!("the keeper of Kafka on port {} did not end: {why}", self.port);
            }
        } else if let Err(why) = fs::remove_dir_all(&self.dir) {
            eprintln!("Kafka's data stay in {}: {why}", self.dir.display());
        }
    }
}

#[derive(Debug, Default)]
pub struct Deliveries {
    pub failed: AtomicU64,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if result.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

pub fn send(producer: &BaseProducer<Deliveries>, topic: &str, record: &Record) {
    let mut message: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic);
    if let Some(partition) = record.partition {
        message = message.partition(partition);
    }
    if let Some(key) = &record.key {
        message = message.key(key);
    }
    if let Some(payload) = &record.payload {
        message = message.payload(payload);
    }
    if let Some(timestamp) = record.timestamp {
        message = message.timestamp(timestamp);
    }
    if !record.headers.is_empty() {
        let mut headers = OwnedHeaders::new_with_capacity(record.headers.len());
        for (key, value) in &record.headers {
            headers = headers.insert(Header { key, value: value.as_deref() });
        }
        message = message.headers(headers);
    }
    while let Err((why, refused)) = producer.send(message) {
        assert_eq!(why.rdkafka_error_code(), Some(RDKafkaErrorCode::QueueFull), "{topic}: {why}");
        producer.poll(Timeout::After(Duration::from_millis(10)));
        message = refused;
    }
    producer.poll(Timeout::After(Duration::ZERO));
}

pub fn unique(stem: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{stem}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn partitions_of(consumer: &BaseConsumer, topic: &str) -> Vec<i32> {
    let metadata = consumer.fetch_metadata(Some(topic), ANSWER).expect("the broker answers");
    let partitions = metadata.topics().iter().filter(|t| t.name() == topic).flat_map(MetadataTopic::partitions);
    partitions.filter(|p| p.leader() >= 0).map(MetadataPartition::id).collect()
}

/// The oldest supported release, unless `THRONG_TEST_KAFKA` names another.
fn tools() -> PathBuf {
    release(&std::env::var("THRONG_TEST_KAFKA").unwrap_or_else(|_| "kafka".to_owned()))
}

fn release(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".tools").join(name)
}

/// `tasks` is a folder of `/proc`. A thread that ends meanwhile does not count.
fn all_stopped(tasks: &Path) -> bool {
    let threads = std::fs::read_dir(tasks).expect("the broker runs");
    threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok()).all(|stat| {
        // The state follows the name, which is in parentheses and may contain any character.
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    })
}

/// All brokers are copies of one formatted directory.
fn rename_cluster(properties: &Path) {
    let text = fs::read_to_string(properties).expect("a formatted directory");
    let mut own = uuid::Uuid::new_v4().simple().to_string();
    own.truncate(22);
    let lines: Vec<String> = text
        .lines()
        .map(|line| if line.starts_with("cluster.id=") { format!("cluster.id={own}") } else { line.to_owned() })
        .collect();
    fs::write(properties, lines.join("\n")).expect("a file of ours");
}

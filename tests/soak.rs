//! Runs two instances under a steady load for half an hour, with kills of instances and broker. No record is lost or
//! released twice, every class has its crowd, and neither memory nor state grows with time.
//!
//! `./dev soak [MINUTES]` runs it; without `THRONG_SOAK_MINUTES` it is skipped.

use crate::support;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use support::daemon::{Dice, K, LOT, Stage, TestDaemon, conserved, payload};
use support::kafka::{Record, TestCluster};

const PARTITIONS: i32 = 4;
const INSTANCES: [&str; 2] = ["one", "two"];
const BATCH: usize = 2000;
/// Records that measure the speed of two undisturbed instances.
const BACKLOG: usize = 300_000;
/// `THRONG_SOAK_PACE` divides both intervals.
const KILL_EVERY: Duration = Duration::from_secs(20);
const BOUNCE_EVERY: Duration = Duration::from_secs(300);
const STEP: Duration = Duration::from_secs(1);

struct Stream {
    dice: Dice,
    next: usize,
}

impl Stream {
    fn take(&mut self, count: usize) -> Vec<Record> {
        let numbers = self.next..self.next + count;
        self.next = numbers.end;
        let record = |n: usize| Record {
            partition: Some((n / LOT % PARTITIONS as usize) as i32),
            payload: payload(n, &mut self.dice),
            ..Record::default()
        };
        numbers.map(record).collect()
    }
}

fn configure(stage: &Stage, name: &str) {
    let file = stage.configure(name, 0, BATCH, "500ms");
    let text = fs::read_to_string(&file).expect("a configuration");
    let text = text
        .replace("\n[plan]", "\nrelease_window = \"5m\"\n[plan]")
        .replace("interval = \"1h\"", "interval = \"1m\"\nwindow_records = 20000")
        .replace("[source.librdkafka]", &format!("[source.librdkafka]\n\"group.instance.id\" = \"{name}\""));
    fs::write(file, text).expect("a configuration");
}

fn resident(daemon: &TestDaemon) -> u64 {
    let path = format!("/proc/{}/statm", daemon.pid().as_raw_nonzero());
    let pages = fs::read_to_string(path).ok().and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or_default() * 4096
}

fn bytes_below(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    entries
        .map(|entry| match entry.metadata() {
            Ok(about) if about.is_dir() => bytes_below(&entry.path()),
            Ok(about) => about.len(),
            Err(_) => 0,
        })
        .sum()
}

fn mib(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / f64::from(1 << 20))
}

fn start(stage: &Stage, name: &str) -> TestDaemon {
    stage.start(name, None)
}

/// The lines are too many to keep.
fn short(line: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

fn read_committed(broker: &TestCluster, topic: &str, partitions: i32, mut each: impl FnMut(i64, &[u8])) {
    let patience = Duration::from_secs(30);
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", broker.bootstrap())
        .set("group.id", "soak-recount")
        .set("isolation.level", "read_committed")
        .set("enable.partition.eof", "true")
        .set("enable.auto.commit", "false")
        .create()
        .expect("a consumer");
    let mut wanted = TopicPartitionList::new();
    for partition in 0..partitions {
        wanted.add_partition_offset(topic, partition, Offset::Beginning).expect("a partition");
    }
    consumer.assign(&wanted).expect("assigned");
    let mut ends = 0;
    while ends < partitions {
        match consumer.poll(patience) {
            Some(Ok(message)) => {
                each(message.timestamp().to_millis().expect("a stamp"), message.payload().expect("a payload"));
            }
            Some(Err(KafkaError::PartitionEOF(_))) => ends += 1,
            Some(Err(why)) => panic!("{topic}: {why}"),
            None => {
                let ends: Vec<_> = (0..partitions).map(|p| consumer.fetch_watermarks(topic, p, patience)).collect();
                panic!("{topic}: nothing comes, and no end: {:?}, {ends:?}", consumer.position());
            }
        }
    }
}

fn written(stage: &Stage) -> i64 {
    let consumer: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", stage.broker.bootstrap()).create().expect("a consumer");
    let end =
        |partition| consumer.fetch_watermarks(&stage.raw, partition, Duration::from_secs(30)).expect("an answer").1;
    (0..PARTITIONS).map(end).sum()
}

/// Returns the numbers of batches and lines.
fn recount(stage: &Stage, total: usize) -> (usize, usize) {
    let (mut classes, mut lots) = (HashMap::<(i64, u64), u32>::new(), HashMap::<u64, u32>::new());
    let (mut stamps, mut lines) = (BTreeSet::new(), 0);
    read_committed(stage.broker, &stage.out, 2, |stamp, line| {
        if line.windows(2).any(|bytes| bytes == b"\"L") {
            *lots.entry(short(line)).or_default() += 1;
        }
        *classes.entry((stamp, short(line))).or_default() += 1;
        stamps.insert(stamp);
        lines += 1;
    });
    let below = classes.values().filter(|people| (**people as usize) < K).count();
    assert_eq!(below, 0, "classes of batches with fewer than {K} people");
    let twice = lots.values().filter(|lines| **lines as usize > LOT).count();
    assert_eq!(twice, 0, "lots of {LOT} records with more lines than that: records left twice");
    let broken = (0..total).filter(|n| n % 97 != 5 && n % 89 == 7).count();
    let mut letters = HashSet::new();
    read_committed(stage.broker, &stage.letters, 1, |_, letter| {
        assert!(letters.insert(short(letter)), "a dead letter left twice");
    });
    assert_eq!(letters.len(), broken, "dead letters");
    (stamps.len(), lines)
}

#[test]
#[ignore = "takes as long as THRONG_SOAK_MINUTES says: ./dev soak"]
fn soak_with_kills_is_exactly_once_without_growth() {
    let minutes = std::env::var("THRONG_SOAK_MINUTES").ok().and_then(|text| text.parse::<u64>().ok());
    let Some(minutes) = minutes else {
        eprintln!("SKIPPED: THRONG_SOAK_MINUTES is not set (./dev soak sets it)");
        return;
    };
    let pace = std::env::var("THRONG_SOAK_PACE").map_or(1, |text| text.parse().expect("a number of times"));
    let Some(broker) = TestCluster::start() else { return };
    let stage = Stage::new(&broker, PARTITIONS);
    INSTANCES.iter().for_each(|name| configure(&stage, name));
    let mut stream = Stream { dice: Dice::new(77), next: 0 };

    broker.produce_records(&stage.raw, &stream.take(BACKLOG));
    let mut daemons: Vec<TestDaemon> = INSTANCES.iter().map(|name| start(&stage, name)).collect();
    let consumed = |wanted: usize, daemons: &mut [TestDaemon]| {
        let mut all: Vec<&mut TestDaemon> = daemons.iter_mut().collect();
        stage.wait_consumed(wanted, &mut all);
    };
    consumed(BACKLOG / 10, &mut daemons);
    let (began, from) = (Instant::now(), stage.consumed());
    consumed(BACKLOG, &mut daemons);
    let fastest = (BACKLOG as i64 - from) as f64 / began.elapsed().as_secs_f64();
    let rate = (fastest / 2.0) as usize;
    println!("undisturbed: {fastest:.0} records/s; the load is {rate} records/s for {minutes} min");
    println!(
        "| minute | produced | behind | resident, MiB | state, MiB | kills | bounces |\n|---|---|---|---|---|---|---|"
    );

    let (began, mut killed, mut bounced) = (Instant::now(), Instant::now(), Instant::now());
    let (mut kills, mut bounces, mut minute) = (0_usize, 0, 0);
    let mut peaks: Vec<(u64, u64)> = Vec::new();
    while began.elapsed() < Duration::from_secs(60 * minutes) {
        let step = Instant::now();
        broker.produce_records(&stage.raw, &stream.take(rate));
        if killed.elapsed() >= KILL_EVERY / pace {
            killed = Instant::now();
            let which = kills % INSTANCES.len();
            assert!(daemons[which].ended().is_none(), "it ended by itself: {}", daemons[which].said());
            daemons[which].kill();
            daemons[which] = start(&stage, INSTANCES[which]);
            kills += 1;
        }
        if bounced.elapsed() >= BOUNCE_EVERY / pace {
            bounced = Instant::now();
            broker.kill();
            std::thread::sleep(Duration::from_secs(2));
            broker.restart();
            bounces += 1;
        }
        let now = began.elapsed().as_secs() / 60;
        if now > minute {
            minute = now;
            let memory = daemons.iter().map(resident).max().unwrap_or_default();
            let state = INSTANCES.iter().map(|name| bytes_below(&stage.state(name))).max().unwrap_or_default();
            peaks.push((memory, state));
            let behind = stream.next as i64 - stage.consumed();
            println!(
                "| {minute} | {} | {behind} | {} | {} | {kills} | {bounces} |",
                stream.next,
                mib(memory),
                mib(state)
            );
        }
        std::thread::sleep(STEP.saturating_sub(step.elapsed()));
    }
    let total = stream.next;
    consumed(total, &mut daemons);
    daemons.iter_mut().for_each(TestDaemon::stop);
    let (there, taken) = (written(&stage), stage.consumed());
    assert_eq!(
        (there, taken),
        (total as i64, total as i64),
        "records in the topic, and offsets of the group, of {total} produced"
    );
    let (batches, lines) = recount(&stage, total);
    let accounts: Vec<u64> = INSTANCES.iter().map(|name| conserved(&stage.state(name))).collect();
    assert_eq!(accounts.iter().sum::<u64>(), total as u64, "a record was consumed twice, or by nobody: {accounts:?}");
    println!(
        "{total} records, {lines} lines in {batches} batches, {kills} kills, {bounces} bounces: conserved, once, every class of every batch with {K} people"
    );
    assert_no_growth(&peaks, minutes >= 10);
}

/// More memory or state in the second half than in the first counts as growth.
fn assert_no_growth(peaks: &[(u64, u64)], is_long_enough: bool) {
    let (first, second) = peaks.split_at(peaks.len() / 2);
    let most = |half: &[(u64, u64)], of: fn(&(u64, u64)) -> u64| half.iter().map(of).max().unwrap_or_default();
    let memory = (most(first, |p| p.0), most(second, |p| p.0));
    let state = (most(first, |p| p.1), most(second, |p| p.1));
    println!(
        "most of the first half and of the second: resident {} and {} MiB, state {} and {} MiB",
        mib(memory.0),
        mib(memory.1),
        mib(state.0),
        mib(state.1)
    );
    if is_long_enough {
        assert!(memory.1 < memory.0 * 5 / 4 + (32 << 20), "memory grows: {memory:?}");
        assert!(state.1 < state.0 * 3 / 2 + (32 << 20), "the state grows: {state:?}");
    }
}

//! Measures the time from append to release with a paced producer.
//!
//! All fragments of a batch have its timestamp, and the group `clock` has a fragment of every record. Batches take
//! records in the order of sending.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer;
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use throng_kafka::connection::{KafkaCluster, QueryClient};
use throng_kafka::managed_client::ManagedClient;

use crate::client::PARTITIONS;
use crate::input::Input;
use crate::kafka::Deliveries;

const PATIENCE: Duration = Duration::from_secs(30);

/// Prefix of a fragment of the counting group.
const COUNTED: &[u8] = b"{\"timestamp\"";

/// Sends records at `records_a_second` to partition 0. Returns their append times in milliseconds since 1970.
pub fn send_at(cluster: &KafkaCluster, input: &Input, topic: &str, records_a_second: f64, time: Duration) -> Vec<i64> {
    let mut config = cluster.producer("none");
    config.remove("transactional.id");
    let producer: ManagedClient<BaseProducer<Deliveries>> =
        config.create("the benchmark", Deliveries::default()).expect("a producer");
    let wanted = (records_a_second * time.as_secs_f64()) as usize;
    let mut appended = Vec::with_capacity(wanted);
    let mut lines = input.lines();
    let start = Instant::now();
    while appended.len() < wanted {
        let due = ((start.elapsed().as_secs_f64() * records_a_second) as usize).min(wanted);
        while appended.len() < due {
            let Some(line) = lines.next_line() else {
                lines = input.lines();
                continue;
            };
            let now = crate::now_ms();
            let record: BaseRecord<'_, (), [u8]> = BaseRecord::to(topic).payload(line).partition(0).timestamp(now);
            // A full queue means that the broker has stopped.
            producer.send(record).map_err(|(why, _)| why).expect("room in the queue");
            appended.push(now);
        }
        producer.poll(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(5));
    }
    producer.flush(PATIENCE).expect("acknowledged");
    assert_eq!(producer.context().failed.load(Ordering::Relaxed), 0, "messages were not delivered");
    appended
}

/// Fragments of the counting group, and arrival of the last one.
#[derive(Clone, Copy, Debug)]
struct Visible {
    records: u64,
    at_ms: i64,
}

pub struct Reader {
    consumer: QueryClient,
    topic: String,
}

impl Reader {
    pub fn from_the_end(cluster: &KafkaCluster, topic: &str) -> Self {
        let mut config = cluster.consumer("throng-bench-reader");
        // The reader must not be the bottleneck.
        config.set("queued.min.messages", "1000000").set("queued.max.messages.kbytes", "262144");
        config.set("fetch.queue.backoff.ms", "5");
        let consumer = config.query_client("the benchmark").expect("a consumer");
        let mut places = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            let (_, end) = consumer.fetch_watermarks(topic, partition, PATIENCE).expect("the broker answers");
            places.add_partition_offset(topic, partition, Offset::Offset(end)).expect("a valid offset");
        }
        consumer.assign(&places).expect("an assignment");
        Self { consumer, topic: topic.to_owned() }
    }

    /// Reads until `stop`, and counts into `seen`.
    fn run(&self, seen: &AtomicU64, stop: &AtomicBool) -> BTreeMap<i64, Visible> {
        let mut batches: BTreeMap<i64, Visible> = BTreeMap::new();
        while !stop.load(Ordering::Acquire) {
            let Some(message) = self.consumer.poll(Duration::from_millis(20)) else { continue };
            let message = message.unwrap_or_else(|why| panic!("{}: {why}", self.topic));
            if !message.payload().is_some_and(|payload| payload.starts_with(COUNTED)) {
                continue;
            }
            let clock = message.timestamp().to_millis().expect("throng gives a timestamp");
            let at_ms = crate::now_ms();
            let batch = batches.entry(clock).or_insert(Visible { records: 0, at_ms });
            batch.records += 1;
            batch.at_ms = at_ms;
            seen.fetch_add(1, Ordering::Release);
        }
        batches
    }
}

pub struct Latencies {
    /// Latency of the oldest record per batch.
    pub oldest: Vec<f64>,
    pub every: Vec<f64>,
}

/// Reads until every record of `produce`, which returns append times, is seen.
///
/// # Errors
/// If the counting group did not have a fragment of every record.
pub fn observe(reader: &Reader, produce: impl FnOnce() -> Vec<i64>) -> Result<Latencies, String> {
    let (seen, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (appended, batches) = std::thread::scope(|scope| {
        let reading = scope.spawn(|| reader.run(&seen, &stop));
        let appended = produce();
        let deadline = Instant::now() + PATIENCE;
        while seen.load(Ordering::Acquire) < appended.len() as u64 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Release);
        (appended, reading.join().expect("the reader reads"))
    });
    latencies(&appended, batches.values().copied())
}

fn latencies(appended: &[i64], batches: impl Iterator<Item = Visible> + Clone) -> Result<Latencies, String> {
    let counted: u64 = batches.clone().map(|b| b.records).sum();
    if counted != appended.len() as u64 {
        return Err(format!("not measured: {counted} fragments of the counting group for {} records", appended.len()));
    }
    let (mut oldest, mut every) = (Vec::new(), Vec::with_capacity(appended.len()));
    for batch in batches {
        let from = every.len();
        let taken = &appended[from..from + batch.records as usize];
        every.extend(taken.iter().map(|&at| (batch.at_ms - at) as f64 / 1000.0));
        oldest.push(every[from]);
    }
    oldest.sort_by(f64::total_cmp);
    every.sort_by(f64::total_cmp);
    Ok(Latencies { oldest, every })
}

/// Returns the smallest value such that the share `q` of `sorted` is at or below it.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[rank.min(sorted.len()) - 1]
}

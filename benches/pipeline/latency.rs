//! From append to release, seen from outside: a paced producer, and a `read_committed` reader of what leaves.
//!
//! No record can be followed through the anonymization, and none needs to be. All fragments of a batch bear the batch's
//! own timestamp, and one group (`clock`) has a fragment of every record: its count says how many records a batch took.
//! The producer writes to one partition, so that batches take its records in the order in which they were sent.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rdkafka::consumer::Consumer;
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use throng::io::kafka::connection::{Asking, Cluster};
use throng::io::kafka::live::Live;

use crate::client::PARTITIONS;
use crate::input::Input;
use crate::kafka::Deliveries;

const PATIENCE: Duration = Duration::from_secs(30);

/// What a fragment of the counting group begins with.
const COUNTED: &[u8] = b"{\"timestamp\"";

/// Sends records for `time` at `records_a_second` to partition 0, from the start of the input again where it ends.
/// Gives the time at which each was handed to the client, in milliseconds since 1970.
pub fn send_at(cluster: &Cluster, input: &Input, topic: &str, records_a_second: f64, time: Duration) -> Vec<i64> {
    let mut config = cluster.producer("none");
    config.remove("transactional.id");
    let producer: Live<BaseProducer<Deliveries>> =
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
            // The queue takes a million messages: a full one means that the broker has stopped.
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

/// When a batch became visible: fragments of the counting group, and the arrival of the last of them.
#[derive(Clone, Copy, Debug)]
struct Visible {
    records: u64,
    at_ms: i64,
}

/// Reads what is committed to a topic from now on.
pub struct Reader {
    consumer: Asking,
    topic: String,
}

impl Reader {
    pub fn from_the_end(cluster: &Cluster, topic: &str) -> Self {
        let mut config = cluster.consumer("throng-bench-reader");
        // The reader must not be what is measured: it fetches on while much waits, and looks again at once.
        config.set("queued.min.messages", "1000000").set("queued.max.messages.kbytes", "262144");
        config.set("fetch.queue.backoff.ms", "5");
        let consumer = config.asking("the benchmark").expect("a consumer");
        let mut places = TopicPartitionList::new();
        for partition in 0..PARTITIONS {
            // The end as it is now: an assignment to "the end" would look it up after records have come.
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

/// Latencies in seconds.
pub struct Latencies {
    /// Of the oldest record of each batch.
    pub oldest: Vec<f64>,
    /// Of every record.
    pub every: Vec<f64>,
}

/// Reads beside `produce`, which gives the times at which records were appended, until every record has been seen.
///
/// # Errors
/// What was seen instead, when the counting group did not have a fragment of every record.
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

/// The value below which the share `q` of `sorted` lies.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[rank.min(sorted.len()) - 1]
}

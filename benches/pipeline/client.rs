//! Baseline of the Kafka client: the library, settings and topics of throng, without anonymization.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use throng_kafka::connection::KafkaCluster;
use throng_kafka::managed_client::ManagedClient;

use crate::input::{Input, Lines};
use crate::kafka::Deliveries;

pub const BATCH: u64 = 10_000;

pub const PARTITIONS: i32 = 2;

const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the cluster with throng's librdkafka properties (`THRONG__SOURCE__LIBRDKAFKA__…`).
pub fn cluster(brokers: &str) -> KafkaCluster {
    let without_secret = [("THRONG__STATE__SECRET_FILE".to_owned(), String::new())];
    let env = std::env::vars().chain(without_secret);
    let config = throng::config::load(crate::CONFIGURATION.as_ref(), env).expect("a sound configuration");
    let properties = [&config.source.librdkafka, &config.sink.librdkafka];
    let properties = properties.iter().flat_map(|p| p.iter()).map(|(key, value)| (key.to_owned(), value.to_owned()));
    KafkaCluster::new(brokers, properties.collect())
}

fn producer(cluster: &KafkaCluster, transactional_id: Option<&str>) -> ManagedClient<BaseProducer<Deliveries>> {
    let mut config = cluster.producer(transactional_id.unwrap_or("none"));
    if transactional_id.is_none() {
        config.remove("transactional.id");
    }
    let producer: ManagedClient<BaseProducer<Deliveries>> =
        config.create("the benchmark", Deliveries::default()).expect("a producer");
    if transactional_id.is_some() {
        producer.init_transactions(PATIENCE).expect("transactions start");
    }
    producer
}

fn send(producer: &BaseProducer<Deliveries>, topic: &str, partition: i32, payload: &[u8], timestamp: i64) {
    let mut record: BaseRecord<'_, (), [u8]> =
        BaseRecord::to(topic).payload(payload).partition(partition).timestamp(timestamp);
    while let Err((why, back)) = producer.send(record) {
        assert!(matches!(why, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull)), "{topic}: {why}");
        producer.poll(Duration::from_millis(1));
        record = back;
    }
}

fn flush(producer: &BaseProducer<Deliveries>) {
    let deadline = Instant::now() + PATIENCE;
    while producer.in_flight_count() > 0 {
        assert!(Instant::now() < deadline, "messages were not acknowledged within {PATIENCE:?}");
        if producer.flush(Duration::ZERO).is_err() {
            producer.poll(Duration::from_millis(1));
        }
    }
    assert_eq!(producer.context().failed.load(Ordering::Relaxed), 0, "messages were not delivered");
}

pub fn load(cluster: &KafkaCluster, input: &Input, topic: &str) {
    let producer = producer(cluster, None);
    let mut lines = input.lines();
    let mut rank = 0i32;
    while let Some(line) = lines.next_line() {
        send(&producer, topic, rank, line, crate::now_ms());
        rank = (rank + 1) % PARTITIONS;
    }
    flush(&producer);
}

/// Returns the records per second from the first to the last commit.
pub fn copy(cluster: &KafkaCluster, from: &str, to: &str, records: u64, transactions: bool) -> f64 {
    let name = format!("{to}.copy");
    let consumer = cluster.member(&name).query_client("the benchmark").expect("a consumer");
    consumer.subscribe(&[from]).expect("a subscription");
    let producer = producer(cluster, transactions.then_some(name.as_str()));
    let mut next: BTreeMap<i32, i64> = BTreeMap::new();
    let (mut done, mut first, mut last) = (0, None, Instant::now());
    while done < records {
        if transactions {
            producer.begin_transaction().expect("begins");
        }
        let until = records.min(done + BATCH);
        let deadline = Instant::now() + PATIENCE;
        while done < until {
            assert!(Instant::now() < deadline, "{from}: {done} of {records} records were read, then no more");
            let Some(message) = consumer.poll(Duration::from_millis(100)) else { continue };
            let message = message.expect("a record");
            let payload = message.payload().expect("no record is a tombstone");
            send(&producer, to, message.partition() % PARTITIONS, payload, crate::now_ms());
            next.insert(message.partition(), message.offset() + 1);
            done += 1;
        }
        let mut offsets = TopicPartitionList::new();
        for (&partition, &offset) in &next {
            offsets.add_partition_offset(from, partition, Offset::Offset(offset)).expect("a valid offset");
        }
        if transactions {
            let group = consumer.group_metadata().expect("a member");
            producer.send_offsets_to_transaction(&offsets, &group, PATIENCE).expect("takes the offsets");
            flush(&producer);
            producer.commit_transaction(PATIENCE).expect("commits");
        } else {
            producer.poll(Duration::ZERO);
            consumer.commit(&offsets, CommitMode::Async).expect("takes the offsets");
            if done == records {
                flush(&producer);
            }
        }
        last = Instant::now();
        first.get_or_insert((last, done));
    }
    let (from, already) = first.expect("a batch");
    (records - already) as f64 / (last - from).as_secs_f64()
}

/// Produces throng's fragments, in transactions of the fragments of 10,000 records. Returns their number.
pub fn produce_fragments(cluster: &KafkaCluster, files: &[PathBuf], topic: &str) -> u64 {
    let producer = producer(cluster, Some(&format!("{topic}.fragments")));
    let mut files: Vec<Lines> = files.iter().map(|path| Lines::open(path)).collect();
    let mut sent = 0;
    loop {
        let before = sent;
        producer.begin_transaction().expect("begins");
        let (timestamp, mut rank) = (crate::now_ms(), 0i32);
        for lines in &mut files {
            for _ in 0..BATCH {
                let Some(line) = lines.next_line() else { break };
                send(&producer, topic, rank, line, timestamp);
                rank = (rank + 1) % PARTITIONS;
                sent += 1;
            }
        }
        flush(&producer);
        producer.commit_transaction(PATIENCE).expect("commits");
        if sent == before {
            return sent;
        }
    }
}

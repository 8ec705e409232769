//! Tests the broker of the test suite: transaction isolation, offsets, and recovery after a kill.

use crate::support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::Producer;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use support::kafka::{Record, TestCluster, send, unique};
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::stream::release_sink::{BatchEnvelope, BatchSink, DeliveryError};
use throng_kafka::connection::KafkaCluster;
use throng_kafka::marker::{BatchMarker, last_committed};
use throng_kafka::transaction::{TransactionOutputs, TransactionalSink};

const PATIENCE: Duration = Duration::from_secs(30);

fn payloads(records: &[support::kafka::Stored]) -> Vec<&str> {
    records.iter().map(|r| std::str::from_utf8(r.payload.as_deref().unwrap_or_default()).expect("text")).collect()
}

fn record(payload: &str) -> Record {
    Record { partition: Some(0), payload: Some(payload.into()), ..Record::default() }
}

#[test]
fn aborted_transaction_is_hidden_from_committed_readers() {
    let Some(broker) = TestCluster::shared() else { return };
    let topic = unique("isolation");
    broker.create_topic(&topic, 1, false);
    let producer = broker.transactional(&unique("writer"));
    for (payload, commit) in [("one", true), ("two", false), ("three", true)] {
        producer.begin_transaction().expect("begins");
        send(&producer, &topic, &record(payload));
        if commit {
            producer.commit_transaction(PATIENCE).expect("commits");
        } else {
            // An abort would otherwise drop the message.
            producer.flush(PATIENCE).expect("delivered");
            producer.abort_transaction(PATIENCE).expect("aborts");
        }
    }
    assert_eq!(payloads(&broker.read_committed(&topic)), ["one", "three"]);
    assert_eq!(payloads(&broker.read_uncommitted(&topic)), ["one", "two", "three"]);
}

#[test]
fn offsets_are_committed_only_with_their_transaction() {
    let Some(broker) = TestCluster::shared() else { return };
    let (topic, group) = (unique("offsets"), unique("group"));
    broker.create_topic(&topic, 2, false);
    let producer = broker.transactional(&unique("writer"));
    let member: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", broker.bootstrap())
        .set("group.id", &group)
        .create()
        .expect("a consumer");
    for (at, commit) in [(7, true), (9, false)] {
        let mut offsets = TopicPartitionList::new();
        offsets.add_partition_offset(&topic, 1, Offset::Offset(at)).expect("a valid offset");
        producer.begin_transaction().expect("begins");
        let metadata = member.group_metadata().expect("metadata of the group");
        producer.send_offsets_to_transaction(&offsets, &metadata, PATIENCE).expect("takes the offsets");
        if commit {
            producer.commit_transaction(PATIENCE).expect("commits");
        } else {
            producer.abort_transaction(PATIENCE).expect("aborts");
        }
    }
    assert_eq!(broker.group_offsets(&group, &topic), BTreeMap::from([(0, None), (1, Some(7))]));
    broker.set_group_offset(&group, &topic, 1, 3);
    assert_eq!(broker.group_offsets(&group, &topic), BTreeMap::from([(0, None), (1, Some(3))]));
}

#[test]
fn record_metadata_and_tombstones_are_stored_unchanged() {
    let Some(broker) = TestCluster::shared() else { return };
    let topic = unique("shape");
    broker.create_topic(&topic, 2, true);
    let written = Record {
        partition: Some(1),
        key: Some(b"k".to_vec()),
        payload: Some(vec![0, 255]),
        headers: vec![("empty".to_owned(), None), ("h".to_owned(), Some(b"v".to_vec()))],
        timestamp: Some(1_700_000_000_123),
    };
    broker.produce_records(&topic, std::slice::from_ref(&written));
    broker.produce(&topic, vec![(Some(b"gone".to_vec()), None)]);
    let stored = broker.read_committed(&topic);
    assert_eq!(stored.len(), 2);
    let whole = stored.iter().find(|s| s.key == written.key).expect("the first record");
    assert_eq!((whole.partition, &whole.payload, &whole.headers), (1, &written.payload, &written.headers));
    assert_eq!(whole.timestamp, written.timestamp);
    let tombstone = stored.iter().find(|s| s.key.as_deref() == Some(b"gone")).expect("the tombstone");
    assert_eq!(tombstone.payload, None);
}

#[test]
fn killed_broker_restarts_with_its_records() {
    let Some(broker) = TestCluster::start() else { return };
    broker.create_topic("kept", 1, false);
    broker.produce("kept", vec![(None, Some(b"before".to_vec()))]);
    let log = broker.log();
    broker.kill();
    assert!(log.exists(), "a killed broker keeps its data");
    broker.restart();
    broker.pause();
    let lonely: BaseConsumer =
        ClientConfig::new().set("bootstrap.servers", broker.bootstrap()).create().expect("a consumer");
    assert!(lonely.fetch_metadata(None, Duration::from_millis(500)).is_err(), "a paused broker must not answer");
    broker.resume();
    broker.produce("kept", vec![(None, Some(b"after".to_vec()))]);
    assert_eq!(payloads(&broker.read_committed("kept")), ["before", "after"]);
    drop(broker);
    assert!(!log.exists(), "a broker that is dropped takes its data along");
}

#[test]
fn batch_aborted_with_queued_messages_keeps_the_sink_usable() {
    let Some(broker) = TestCluster::shared() else { return };
    let (source, changelog, id) = (unique("source"), unique("changelog"), unique("sink"));
    let group = unique("group");
    broker.create_topic(&source, 1, false);
    broker.create_topic(&changelog, 2, true);
    let cluster = KafkaCluster::new(&broker.bootstrap(), BTreeMap::new());
    let member: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", broker.bootstrap())
        .set("group.id", &group)
        .create()
        .expect("a consumer");
    // A member that has left its group cannot commit offsets: the batch is aborted.
    let left = Arc::new(AtomicBool::new(true));
    let gone = Arc::clone(&left);
    let outputs = TransactionOutputs {
        sinks: Vec::new(),
        dead_letters: None,
        audit: None,
        changelog: changelog.clone(),
        contributions: None,
        sources: vec![source],
        group: group.clone(),
        keeps_offsets: true,
        attributes: vec![],
    };
    let mut sink = TransactionalSink::open(
        &cluster,
        &id,
        outputs,
        Arc::new(move || (!gone.load(Ordering::Acquire)).then(|| member.group_metadata()).flatten()),
        Arc::new(AtomicBool::new(false)),
        PATIENCE,
    )
    .expect("opens");
    let positions = BTreeMap::from([((0, 0), 5)]);
    let mut deliver = |attempt| {
        let envelope = BatchEnvelope {
            sequence: 1,
            attempt,
            clock_ms: 1,
            positions: &positions,
            rejected: &[],
            subjects: &[],
            coordinates: &[],
            untruthful: None,
            audit: None,
            series: None,
            changelog: &[],
            contributions: &[],
        };
        sink.deliver(&ReleasableBatch::without_lines(1), &envelope)
    };
    for attempt in 1..=3 {
        let since = Instant::now();
        assert!(matches!(deliver(attempt), Err(DeliveryError::Aborted(_))));
        assert!(since.elapsed() < PATIENCE, "the abort hung");
    }
    left.store(false, Ordering::Release);
    deliver(4).expect("the next attempt leaves");
    let last = last_committed(&cluster, &changelog, &id, PATIENCE).expect("a marker");
    assert_eq!(last, BatchMarker { sequence: 1, attempt: 4 });
}

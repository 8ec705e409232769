//! Sends records to a Kafka topic. Retries within one run neither lose nor duplicate records; an interrupted run leaves
//! its records.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};

use super::GenerateError;

/// Of the first metadata query.
const METADATA_TIMEOUT_SECS: u64 = 15;

#[derive(Debug, Default)]
struct DeliveryFailures {
    failed: AtomicU64,
    first: Mutex<Option<String>>,
}

impl ClientContext for DeliveryFailures {}

impl ProducerContext for DeliveryFailures {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            self.failed.fetch_add(1, Ordering::Relaxed);
            // Valid even if poisoned.
            let mut first = self.first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            first.get_or_insert_with(|| error.to_string());
        }
    }
}

/// Publisher to one topic.
pub struct RecordPublisher {
    producer: ThreadedProducer<DeliveryFailures>,
    topic: String,
    sent: u64,
}

impl RecordPublisher {
    /// Connects and queries the topic. `properties` go to librdkafka and override idempotence, zstd and 50 ms linger.
    ///
    /// # Errors
    /// [`GenerateError::Property`] for a refused property, [`GenerateError::Producer`] without a producer,
    /// [`GenerateError::Send`] without a broker within 15 seconds or without the topic.
    pub fn connect(brokers: &str, topic: &str, properties: &[(String, String)]) -> Result<Self, GenerateError> {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", brokers)
            .set("client.id", "throng-generate")
            .set("enable.idempotence", "true")
            .set("compression.type", "zstd")
            .set("linger.ms", "50")
            .set("message.timeout.ms", "60000");
        for (key, value) in properties {
            config.set(key, value);
        }
        let producer: ThreadedProducer<DeliveryFailures> =
            config.create_with_context(DeliveryFailures::default()).map_err(|source| match source {
                // The client's message contains the value, perhaps a password.
                KafkaError::ClientConfig(_, _, name, _) => GenerateError::Property { name },
                source => GenerateError::Producer { brokers: brokers.to_owned(), source },
            })?;
        let refused = |source| GenerateError::Send { topic: topic.to_owned(), source };
        let metadata = producer
            .client()
            .fetch_metadata(Some(topic), Duration::from_secs(METADATA_TIMEOUT_SECS))
            .map_err(refused)?;
        for found in metadata.topics() {
            if let Some(error) = found.error() {
                return Err(refused(KafkaError::MetadataFetch(error.into())));
            }
        }
        Ok(Self { producer, topic: topic.to_owned(), sent: 0 })
    }

    /// Enqueues a record. Returns `false` after 100 ms if the queue is full.
    ///
    /// # Errors
    /// [`GenerateError::Undelivered`] for a previous record, [`GenerateError::Send`] for this one, if it is too large
    /// or the producer fenced.
    pub fn enqueue(&mut self, key: Option<&[u8]>, payload: &[u8]) -> Result<bool, GenerateError> {
        self.check_deliveries()?;
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&self.topic).payload(payload);
        if let Some(key) = key {
            record = record.key(key);
        }
        match self.producer.send(record) {
            Ok(()) => {
                self.sent += 1;
                Ok(true)
            }
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => {
                std::thread::sleep(Duration::from_millis(100));
                Ok(false)
            }
            Err((source, _)) => Err(GenerateError::Send { topic: self.topic.clone(), source }),
        }
    }

    /// Waits for all acknowledgements; returns their number.
    ///
    /// # Errors
    /// As [`enqueue`](Self::enqueue), and [`GenerateError::Send`] after `patience`.
    pub fn flush_and_count(self, patience: Duration) -> Result<u64, GenerateError> {
        self.producer.flush(patience).map_err(|source| GenerateError::Send { topic: self.topic.clone(), source })?;
        self.check_deliveries()?;
        Ok(self.sent)
    }

    fn check_deliveries(&self) -> Result<(), GenerateError> {
        let deliveries = self.producer.context();
        let failed = deliveries.failed.load(Ordering::Relaxed);
        if failed == 0 {
            return Ok(());
        }
        let first = deliveries.first.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        Err(GenerateError::Undelivered {
            topic: self.topic.clone(),
            sent: self.sent,
            failed,
            first: first.unwrap_or_else(|| "no reason given".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{RecordStream, WearableSettings, WearableStream};
    use rdkafka::Message;
    use rdkafka::consumer::{BaseConsumer, Consumer};
    use rdkafka::mocking::MockCluster;

    #[test]
    fn published_records_have_subject_keys() {
        let cluster = MockCluster::new(1).expect("librdkafka's mock cluster");
        cluster.create_topic("wearable.raw", 2, 1).expect("a topic");
        let brokers = cluster.bootstrap_servers();
        let mut stream = WearableStream::new(WearableSettings { subjects: 5, ..Default::default() }).expect("in range");
        let mut publisher = RecordPublisher::connect(&brokers, "wearable.raw", &[]).expect("connected");
        let mut expected = Vec::new();
        for _ in 0..200 {
            let (mut key, mut record) = (Vec::new(), Vec::new());
            stream.append(&mut record);
            stream.append_subject(&mut key);
            while !publisher.enqueue(Some(&key), &record).expect("accepted") {}
            expected.push((key, record));
        }
        assert_eq!(publisher.flush_and_count(Duration::from_secs(20)).expect("delivered"), 200);

        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", &brokers)
            .set("group.id", "test")
            .set("auto.offset.reset", "earliest")
            .create()
            .expect("a consumer");
        consumer.subscribe(&["wearable.raw"]).expect("subscribed");
        let mut arrived = Vec::new();
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while arrived.len() < 200 && std::time::Instant::now() < deadline {
            if let Some(message) = consumer.poll(Duration::from_millis(200)) {
                let message = message.expect("a message");
                arrived.push((message.key().expect("key").to_vec(), message.payload().expect("payload").to_vec()));
            }
        }
        arrived.sort();
        expected.sort();
        assert!(arrived == expected, "{} records arrived", arrived.len());
    }

    #[test]
    fn unknown_kafka_property_is_refused_with_name() {
        let properties = [("no.such.property".to_owned(), "1".to_owned())];
        let error = RecordPublisher::connect("localhost:1", "t", &properties).err().expect("refused");
        assert!(error.to_string().contains("no.such.property"), "{error}");
    }
}

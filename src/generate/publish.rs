//! Sends generated records to a Kafka topic.
//!
//! The producer is idempotent: a record is neither lost nor doubled by a retry within one run. Runs are not
//! transactions; a run that is stopped leaves what it has sent.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};

use super::GenerateError;

/// How long brokers may take to answer the first question about the topic.
const CONNECT_SECS: u64 = 15;

/// Counts what the brokers refused.
#[derive(Debug, Default)]
struct Deliveries {
    failed: AtomicU64,
    first: Mutex<Option<String>>,
}

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            self.failed.fetch_add(1, Ordering::Relaxed);
            // A poisoned lock holds a text all the same.
            let mut first = self.first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            first.get_or_insert_with(|| error.to_string());
        }
    }
}

/// A topic that takes generated records.
pub struct Publisher {
    producer: ThreadedProducer<Deliveries>,
    topic: String,
    sent: u64,
}

impl Publisher {
    /// Connects and asks for the topic. `properties` go to librdkafka as they are and override the defaults chosen
    /// here (idempotence, zstd, 50 ms of lingering).
    ///
    /// # Errors
    /// [`GenerateError::Property`] when a property is refused, [`GenerateError::Send`] when no broker answers within
    /// 15 seconds or the topic is not there.
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
        let producer: ThreadedProducer<Deliveries> =
            config.create_with_context(Deliveries::default()).map_err(|source| match source {
                // The client repeats the value, which may be a password.
                KafkaError::ClientConfig(_, _, name, _) => GenerateError::Property { name },
                source => GenerateError::Producer { brokers: brokers.to_owned(), source },
            })?;
        let refused = |source| GenerateError::Send { topic: topic.to_owned(), source };
        let metadata =
            producer.client().fetch_metadata(Some(topic), Duration::from_secs(CONNECT_SECS)).map_err(refused)?;
        for found in metadata.topics() {
            if let Some(error) = found.error() {
                return Err(refused(KafkaError::MetadataFetch(error.into())));
            }
        }
        Ok(Self { producer, topic: topic.to_owned(), sent: 0 })
    }

    /// Hands a record over. False when the queue stayed full for a tenth of a second: offer it again, or stop.
    ///
    /// # Errors
    /// [`GenerateError::Undelivered`] as soon as a record is known to have been refused, [`GenerateError::Send`]
    /// when this one cannot be sent at all (it is too large, the producer is fenced).
    pub fn offer(&mut self, key: Option<&[u8]>, payload: &[u8]) -> Result<bool, GenerateError> {
        self.check()?;
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

    /// Waits until everything handed over is acknowledged; returns the number of records.
    ///
    /// # Errors
    /// As [`offer`](Self::offer), and [`GenerateError::Send`] when `patience` runs out.
    pub fn finish(self, patience: Duration) -> Result<u64, GenerateError> {
        self.producer.flush(patience).map_err(|source| GenerateError::Send { topic: self.topic.clone(), source })?;
        self.check()?;
        Ok(self.sent)
    }

    fn check(&self) -> Result<(), GenerateError> {
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
    use crate::generate::{RecordStream, Wearable, WearableSettings};
    use rdkafka::Message;
    use rdkafka::consumer::{BaseConsumer, Consumer};
    use rdkafka::mocking::MockCluster;

    #[test]
    fn records_arrive_with_the_subject_as_key() {
        let cluster = MockCluster::new(1).expect("librdkafka's mock cluster");
        cluster.create_topic("wearable.raw", 2, 1).expect("a topic");
        let brokers = cluster.bootstrap_servers();
        let mut stream = Wearable::new(WearableSettings { subjects: 5, ..Default::default() }).expect("in range");
        let mut publisher = Publisher::connect(&brokers, "wearable.raw", &[]).expect("connected");
        let mut expected = Vec::new();
        for _ in 0..200 {
            let (mut key, mut record) = (Vec::new(), Vec::new());
            stream.append(&mut record);
            stream.append_subject(&mut key);
            while !publisher.offer(Some(&key), &record).expect("accepted") {}
            expected.push((key, record));
        }
        assert_eq!(publisher.finish(Duration::from_secs(20)).expect("delivered"), 200);

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
    fn an_unknown_property_is_refused_by_name() {
        let properties = [("no.such.property".to_owned(), "1".to_owned())];
        let error = Publisher::connect("localhost:1", "t", &properties).err().expect("refused");
        assert!(error.to_string().contains("no.such.property"), "{error}");
    }
}

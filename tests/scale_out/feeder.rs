//! Records keep coming, whatever happens to instances and broker.

use crate::scale_out::people::Stream;
use crate::support::kafka::{Broker, Deliveries, send};
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, Producer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often some records are written, and how many.
const TICK: Duration = Duration::from_millis(100);
const AT_ONCE: usize = 12;

const PATIENCE: Duration = Duration::from_secs(120);

pub struct Feeder {
    sent: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Feeder {
    /// Writes the stream from its beginning, each record once: the producer repeats what a dying broker has not answered, under its number.
    pub fn begin(broker: &Broker, topic: &str, stream: Stream) -> Self {
        let producer: BaseProducer<Deliveries> = ClientConfig::new()
            .set("bootstrap.servers", broker.bootstrap())
            .set("enable.idempotence", "true")
            .create_with_context(Deliveries::default())
            .expect("a producer");
        let (sent, over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (topic, count, ended) = (topic.to_owned(), Arc::clone(&sent), Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                for _ in 0..AT_ONCE {
                    send(&producer, &topic, &stream.record(count.load(Ordering::Acquire)));
                    count.fetch_add(1, Ordering::AcqRel);
                }
                // The pace of the stream.
                std::thread::sleep(TICK);
            }
            producer.flush(PATIENCE).expect("the broker takes the records");
            assert_eq!(producer.context().failed.load(Ordering::Relaxed), 0, "records were not delivered");
        });
        Self { sent, over, thread }
    }

    /// Records so far.
    pub fn sent(&self) -> usize {
        self.sent.load(Ordering::Acquire)
    }

    /// Ends the stream, and gives the number of its records, all of which the topic has.
    pub fn end(self) -> usize {
        self.over.store(true, Ordering::Release);
        self.thread.join().expect("the stream was written");
        self.sent.load(Ordering::Acquire)
    }
}

//! Producer that keeps sending records during faults of instances and broker.

use crate::scale_out::people::Stream;
use crate::support::kafka::{Deliveries, TestCluster, send};
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, Producer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(100);
const AT_ONCE: usize = 12;

const PATIENCE: Duration = Duration::from_secs(120);

pub struct Feeder {
    sent: Arc<AtomicUsize>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Feeder {
    /// The idempotent producer writes each record exactly once.
    pub fn begin(broker: &TestCluster, topic: &str, stream: Stream) -> Self {
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
                // Limits the rate of the stream.
                std::thread::sleep(TICK);
            }
            producer.flush(PATIENCE).expect("the broker takes the records");
            assert_eq!(producer.context().failed.load(Ordering::Relaxed), 0, "records were not delivered");
        });
        Self { sent, over, thread }
    }

    pub fn sent(&self) -> usize {
        self.sent.load(Ordering::Acquire)
    }

    pub fn end(self) -> usize {
        self.over.store(true, Ordering::Release);
        self.thread.join().expect("the stream was written");
        self.sent.load(Ordering::Acquire)
    }
}

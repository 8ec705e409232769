//! Synthetic records: a stream of wearable readings and a wide health table. A seed determines every byte on every
//! machine, because all arithmetic is on integers or exactly rounded by IEEE 754. Records are written into a byte
//! buffer and not stored.

pub mod alias_table;
pub mod health;
pub mod record_publisher;
pub mod record_writer;
pub mod seeded_random;
pub mod wearable;

pub use health::{HealthRecordStream, HealthSettings};
pub use record_writer::RecordLayout;
pub use wearable::{WearableSettings, WearableStream};

/// Endless source of synthetic records.
pub trait RecordStream {
    /// Appends the line before the first record (CSV column names) with its line feed, if any.
    fn header(&self, out: &mut Vec<u8>);

    /// Appends the next record without a line feed.
    fn append(&mut self, out: &mut Vec<u8>);

    /// Appends the subject of the last record, if any, as message key.
    fn append_subject(&self, out: &mut Vec<u8>);
}

/// Error of generation or delivery.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum GenerateError {
    #[error("{setting} is {given}, which is outside {allowed}: choose a value in this range")]
    OutOfRange { setting: &'static str, given: String, allowed: &'static str },
    #[error("unknown librdkafka property \"{name}\", or invalid value: correct --property {name}=…")]
    Property { name: String },
    #[error("cannot set up a producer for brokers \"{brokers}\": {source}; see --brokers and --property")]
    Producer {
        brokers: String,
        #[source]
        source: rdkafka::error::KafkaError,
    },
    #[error("cannot send to topic \"{topic}\": {source}; check that the topic exists and the brokers are reachable")]
    Send {
        topic: String,
        #[source]
        source: rdkafka::error::KafkaError,
    },
    #[error("{failed} of {sent} records were not delivered to topic \"{topic}\": {first}")]
    Undelivered { topic: String, sent: u64, failed: u64, first: String },
}

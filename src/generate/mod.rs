//! Synthetic records (wing: generate): a stream of wearable readings and a wide table of health records.
//!
//! Every generator is a [`RecordStream`]: a seed fixes every byte, on every machine, because all arithmetic is done
//! in integers and in the five floating-point operations that IEEE 754 rounds exactly ([`dice`]). Records are
//! written straight into a byte buffer; nothing about a record outlives it.
//!
//! | room | what it holds |
//! |---|---|
//! | [`wearable`] | readings of people who wear devices |
//! | [`health`] | one record a person, of 107 attributes |
//! | [`layout`] | JSON and CSV |
//! | [`dice`], [`weighted`] | randomness that is the same everywhere; draws by weight |
//! | [`publish`] | records into a topic |

pub mod dice;
pub mod health;
pub mod layout;
pub mod publish;
pub mod wearable;
pub mod weighted;

pub use health::{Health, HealthSettings};
pub use layout::Layout;
pub use wearable::{Wearable, WearableSettings};

/// A source of synthetic records that never ends and remembers no record.
pub trait RecordStream {
    /// Appends the line that goes before the first record (the names of a CSV file's columns), line feed included;
    /// nothing for JSON.
    fn header(&self, out: &mut Vec<u8>);

    /// Appends the next record as one line without its line feed.
    fn append(&mut self, out: &mut Vec<u8>);

    /// Appends the subject of the record written last, for those who want it as a message key. Nothing is appended
    /// where records have no subject.
    fn append_subject(&self, out: &mut Vec<u8>);
}

/// Why records cannot be generated or delivered.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the message of a variant says what it is and names its fields")]
pub enum GenerateError {
    #[error("{setting} is {given}, which is outside {allowed}: choose a value inside it")]
    OutOfRange { setting: &'static str, given: String, allowed: &'static str },
    #[error(
        "the client knows no librdkafka property \"{name}\", or does not take its value: correct --property {name}=…"
    )]
    Property { name: String },
    #[error("cannot set up a producer for brokers \"{brokers}\": {source}; see --brokers and --property")]
    Producer {
        brokers: String,
        #[source]
        source: rdkafka::error::KafkaError,
    },
    #[error("cannot send to topic \"{topic}\": {source}; is the topic there and are the brokers reachable?")]
    Send {
        topic: String,
        #[source]
        source: rdkafka::error::KafkaError,
    },
    #[error("{failed} of {sent} records were not delivered to topic \"{topic}\": {first}")]
    Undelivered { topic: String, sent: u64, failed: u64, first: String },
}

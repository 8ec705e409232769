//! Kafka: the consumer that feeds batches, topics that are read whole, and the transaction that a batch leaves in.

pub mod connection;
mod epoch;
pub mod feed;
pub mod health;
pub mod marker;
pub mod offsets;
mod producer;
pub mod reader;
mod reports;
pub mod sampled;
mod standing;
pub mod transaction;
pub mod values;
pub mod whole;

pub use standing::GroupMetadata;

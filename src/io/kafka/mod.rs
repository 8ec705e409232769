//! Kafka: the consumer that feeds batches, topics that are read whole, and the transaction that a batch leaves in.

pub mod changelog;
pub mod connection;
mod epoch;
pub(in crate::io) mod failure;
pub mod feed;
pub mod fence;
pub mod health;
pub mod hearing;
mod keeper;
pub mod live;
pub mod marker;
mod native;
pub mod offsets;
pub mod paused;
mod probe;
mod producer;
pub mod reader;
pub mod refusal;
mod reports;
pub mod sampled;
mod standing;
mod token;
pub mod topic;
pub mod transaction;
pub mod unread;
pub mod whole;

pub use standing::GroupMetadata;

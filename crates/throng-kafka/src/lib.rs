//! Kafka clients of throng: consumers of batches and of complete topics, and the transaction of a batch.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod changelog;
pub mod connection;
mod credential_renewal;
mod epoch;
pub mod failure;
pub mod fence;
pub mod health;
pub mod managed_client;
pub mod marker;
mod offset_check;
pub mod offsets;
pub mod partition_lags;
pub mod paused;
mod probe;
mod producer;
pub mod reader;
pub mod refusal;
pub mod refusal_log;
mod reports;
pub mod secret_file;
pub mod security;
mod security_properties;
pub mod subscription;
mod token;
pub mod topic;
pub mod topic_sample;
pub mod transaction;
pub mod unread_records;
pub mod whole_topic;

pub use offset_check::GroupMetadata;

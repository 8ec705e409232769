//! Kafka client of throng: the consumer that reads batches, topics that are read completely, and the transaction that
//! writes a batch with its offsets.
//!
//! | module | content |
//! |---|---|
//! | [`connection`], [`managed_client`] | cluster, client with renewed credentials |
//! | [`security`], [`secret_file`], [`refusal`], [`refusal_log`] | credentials, and reasons for which brokers refuse them |
//! | [`subscription`], [`reader`], [`paused`], [`health`] | group member, batches of its partitions, paused partitions, lag |
//! | [`transaction`], [`marker`], [`fence`] | transaction of a batch, its marker, exclusion of former instances |
//! | [`changelog`], [`whole_topic`], [`unread_records`], [`offsets`] | topics read completely, number of unread records, committed offsets |
//! | [`topic`], [`topic_sample`] | topics of outputs, sample of a topic |

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

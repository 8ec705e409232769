//! The stream: sources and sinks put together, and the loop over them.
//!
//! | room | what it holds |
//! |---|---|
//! | [`run`] | the one loop, over any source |
//! | [`source`] | what a source is |
//! | `file_source`, `kafka_source` | files and topics as sources |
//! | `from_file`, `from_kafka` | a daemon's parts, put together by the kind of its source |
//! | `to_kafka` | what every sink into a topic needs |

mod file_source;
mod from_file;
mod from_kafka;
mod kafka_source;
pub mod run;
pub mod source;
mod to_kafka;

pub(super) use from_file::run_file;
pub(super) use from_kafka::run_kafka;

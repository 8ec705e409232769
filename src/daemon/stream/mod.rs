//! The stream: sources and sinks put together, and the loop over them.
//!
//! | room | what it holds |
//! |---|---|
//! | [`run`] | the one loop, over any source |
//! | [`source`] | what a source is |
//! | `file_source`, `kafka_source` | files and topics as sources |
//! | `from_file`, `from_kafka` | a daemon's parts, put together by the kind of its source |
//! | `supervision` | what a pipeline shares with the process |
//! | `restore` | the state of partitions that come, from the changelog |
//! | `profiles` | the profiles that records are joined to, at the start |
//! | `to_kafka` | what every sink into a topic needs |

mod file_source;
mod from_file;
mod from_kafka;
mod idle;
mod kafka_source;
mod profiles;
mod restore;
pub mod run;
pub mod source;
mod supervision;
pub(super) mod to_kafka;

use super::run_error::RunError;
use crate::config::SourceKind;
use crate::start::checked::Checked;
use crate::start::findings::Finding;
use crate::telemetry::Telemetry;
use from_file::run_file;
pub use from_file::{loss, refused_loss, refused_share};
use from_kafka::run_kafka;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
pub(super) use supervision::Supervision;

/// Runs a pipeline over the source that is configured, until it ends, `stop` is set or a reload is to take its place.
pub(super) fn run_source(
    checked: Checked,
    supervision: &mut Supervision<'_>,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
    watcher: &dyn run::Watcher,
) -> Result<Vec<Finding>, RunError> {
    match checked.config.source.kind {
        SourceKind::File => run_file(checked, supervision, telemetry, stop, watcher),
        SourceKind::Kafka => run_kafka(checked, supervision, telemetry, stop),
    }
}

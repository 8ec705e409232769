//! The stream: combinations of sources and sinks, and the loop over batches.
//!
//! | module | content |
//! |---|---|
//! | [`run`] | the main loop, for any source |
//! | [`source`] | the interface of a source |
//! | `file_source`, `kafka_source` | files and topics as sources |
//! | `read_file_hierarchy`, `from_kafka` | assembly of a daemon for each kind of source |
//! | `supervision` | parts of the process used by a pipeline |
//! | `restore` | restore of assigned partitions from the changelog |
//! | `idle` | search for partitions without unread records |
//! | `profiles` | initial read of the profiles that records are joined to |
//! | `to_kafka` | common parts of every sink that writes to a topic |

mod changelog_restore;
mod file_pipeline;
mod file_source;
mod idle_partitions;
pub(super) mod kafka_outputs;
mod kafka_pipeline;
mod kafka_source;
mod pipeline_context;
mod profile_start;
pub mod source;
pub mod stream_loop;

use super::run_error::RunError;
use crate::config::SourceKind;
use crate::start::checked_config::CheckedConfig;
use crate::start::run_findings::RunFinding;
use crate::telemetry::Telemetry;
use file_pipeline::run_file;
pub use file_pipeline::{loss_message, loss_refusal, share_refusal};
use kafka_pipeline::run_kafka;
pub(super) use pipeline_context::PipelineContext;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs a pipeline over the configured source until it ends, `stop` is set or a reload replaces it.
pub(super) fn run_source(
    checked: CheckedConfig,
    supervision: &mut PipelineContext<'_>,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
    watcher: &dyn stream_loop::ReadProgressWatcher,
) -> Result<Vec<RunFinding>, RunError> {
    match checked.config.source.kind {
        SourceKind::File => run_file(checked, supervision, telemetry, stop, watcher),
        SourceKind::Kafka => run_kafka(checked, supervision, telemetry, stop),
    }
}

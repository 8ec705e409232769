//! Pipelines of a source and a sink, and their loop ([`stream_loop`]).

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

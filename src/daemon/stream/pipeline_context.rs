//! Parts of the process that a pipeline uses.

use crate::daemon::engine::build::assemble::RunOptions;
use crate::daemon::erasure::ErasureReceiver;
use crate::daemon::reload::NextConfig;
use crate::daemon::run_error::RunError;
use crossbeam_channel::Receiver;

/// Parts shared by consecutive pipelines.
pub struct PipelineContext<'a> {
    /// Options of the process.
    pub options: &'a RunOptions,
    /// Requests for erasures.
    pub erasures: &'a ErasureReceiver,
    /// Receiver of the configuration that ends this pipeline.
    pub next: &'a Receiver<NextConfig>,
    /// Called when all parts are open.
    pub on_start: &'a mut dyn FnMut() -> Result<(), RunError>,
}

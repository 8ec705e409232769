//! Parts of the process that a pipeline uses.

use crate::daemon::engine::assemble::Options;
use crate::daemon::erasure::ErasureRequests;
use crate::daemon::reload::NextConfig;
use crate::daemon::run_error::RunError;
use crossbeam_channel::Receiver;

/// What a pipeline shares with the process that starts one after another.
pub struct Supervision<'a> {
    /// Of the process's start.
    pub options: &'a Options,
    /// Requests for erasures.
    pub erasures: &'a ErasureRequests,
    /// Holds the next configuration once this pipeline is to end for it.
    pub next: &'a Receiver<NextConfig>,
    /// To be called when everything is open and the stream begins.
    pub on_start: &'a mut dyn FnMut() -> Result<(), RunError>,
}

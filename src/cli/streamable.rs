//! Checks for features that a stream lacks.

use super::outcome::Failure;
use crate::config::{ComputeBackend, Config};
use anyhow::anyhow;
use throng_risk::counting::shared_device;

/// Refuses features of complete data sets.
pub fn refuse_unstreamable(config: &Config, file: &str) -> Result<(), Failure> {
    if config.anonymize.ceiling.is_enabled() {
        return Err(Failure::Usage(anyhow!(
            "{file}: anonymize.ceiling.lines: counterfeits are not supported in streams, because a reader of several batches can distinguish them from records (docs/internals/decisions.md); remove the key, or use throng anonymize"
        )));
    }
    Ok(())
}

/// Refuses `cuda` without a GPU.
pub fn refuse_missing_device(config: &Config, file: &str) -> Result<(), Failure> {
    if config.compute.backend == ComputeBackend::Cuda
        && let Err(error) = shared_device()
    {
        return Err(Failure::Hardware(anyhow!(
            "{file}: compute.backend = \"cuda\": {error}; set \"auto\" or \"cpu\" (same results)"
        )));
    }
    Ok(())
}

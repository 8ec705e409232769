//! What a stream cannot do although its configuration is sound.

use super::outcome::Failure;
use crate::config::{Backend, Config};
use anyhow::anyhow;
use throng_risk::counting::shared_device;

/// Refuses what is for one data set at once.
pub fn refuse_unstreamable(config: &Config, file: &str) -> Result<(), Failure> {
    if config.anonymize.ceiling.is_on() {
        return Err(Failure::Usage(anyhow!(
            "{file}: anonymize.ceiling.lines: no counterfeits are put into streams, for who reads several batches tells them from records (docs/decisions/0043-no-counterfeits-in-streams.md); remove the key, or use throng anonymize"
        )));
    }
    Ok(())
}

/// Refuses a configuration that needs a GPU where there is none.
pub fn refuse_missing_device(config: &Config, file: &str) -> Result<(), Failure> {
    if config.compute.backend == Backend::Cuda
        && let Err(error) = shared_device()
    {
        return Err(Failure::Hardware(anyhow!(
            "{file}: compute.backend = \"cuda\": {error}; set \"auto\" or \"cpu\" (the same answers)"
        )));
    }
    Ok(())
}

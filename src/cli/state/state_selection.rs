//! Selection and opening of a state.

use crate::cli::outcome::Failure;
use crate::config::{self, Config, Secret};
use crate::daemon::state::directory::StateError;
use anyhow::anyhow;
use std::path::PathBuf;

/// Configuration that names the state.
#[derive(Debug, clap::Args)]
pub struct StateSelection {
    /// Configuration of the state: `state.path`, its secret, its schema
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
}

impl StateSelection {
    /// Loads the configuration, and its name in messages.
    pub fn load(&self) -> Result<(Config, String), Failure> {
        Ok((config::load(&self.config, std::env::vars())?, self.config.display().to_string()))
    }
}

/// Returns the configured secret; `None` if the state keeps it.
#[must_use]
pub fn configured_secret(config: &Config) -> Option<&[u8]> {
    config.secret.as_ref().map(Secret::expose)
}

/// Maps a state error.
#[must_use]
pub fn state_failure(error: StateError) -> Failure {
    if let StateError::Locked(path) = &error {
        return Failure::Running(anyhow!(
            "state directory {} is in use by a running throng (stop it first; until then, see its status page)",
            path.display()
        ));
    }
    if error.is_refusal() { Failure::Usage(error.into()) } else { Failure::Running(error.into()) }
}

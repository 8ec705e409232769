//! The state that a command is about, and what it says where that cannot be opened.

use crate::cli::outcome::Failure;
use crate::config::{self, Config, Secret};
use crate::daemon::state::directory::StateError;
use anyhow::anyhow;
use std::path::PathBuf;

/// The configuration that names the state.
#[derive(Debug, clap::Args)]
pub struct Named {
    /// The configuration that the state belongs to: `state.path`, its secret, its schema
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
}

impl Named {
    /// The configuration, and its name in messages.
    pub fn load(&self) -> Result<(Config, String), Failure> {
        Ok((config::load(&self.config, std::env::vars())?, self.config.display().to_string()))
    }
}

/// The secret that a configuration names; none where the state directory keeps its own.
#[must_use]
pub fn secret(config: &Config) -> Option<&[u8]> {
    config.secret.as_ref().map(Secret::expose)
}

/// A state that cannot be opened, or fails.
#[must_use]
pub fn failed(error: StateError) -> Failure {
    if let StateError::Locked(path) = &error {
        return Failure::Running(anyhow!(
            "state directory {} is in use by a running throng (stop it first; its figures are on its status page meanwhile)",
            path.display()
        ));
    }
    if error.is_refusal() { Failure::Usage(error.into()) } else { Failure::Running(error.into()) }
}

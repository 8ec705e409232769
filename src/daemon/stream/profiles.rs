//! The profiles that records are joined to, at the start of a daemon.

use crate::config::Config;
use crate::daemon::engine::{BatchError, Engine};
use crate::daemon::run_error::RunError;
use crate::daemon::state::records::Intent;
use crate::daemon::stream::run::StreamError;
use crate::io::kafka::connection::Cluster;
use crate::start::profiles::{NotRead, read};
use crate::telemetry::Telemetry;
use std::sync::atomic::AtomicBool;
use throng_core::values::schema::Schema;

/// Begins to read profiles, and waits for all that there are before the first batch; not where `intent` is to be repeated first.
/// False where `stop` came before.
pub(super) fn begin(
    engine: &mut Engine,
    intent: Option<&Intent>,
    (config, schema, file): (&Config, &Schema, &str),
    cluster: &Cluster,
    telemetry: &Telemetry,
    stop: &AtomicBool,
) -> Result<bool, RunError> {
    let Some(subjects) = engine.subjects().filter(|_| !config.join.is_empty()) else { return Ok(true) };
    let feeds = read(config, schema, file, (&subjects, cluster, telemetry)).map_err(|error| match error {
        NotRead::Problems(problems) => RunError::Configuration(problems),
        NotRead::Profiles(error) => error.into(),
    })?;
    engine.take_profiles_from(feeds);
    let read = intent.is_some()
        || engine.read_profiles(stop).map_err(|error| match error {
            BatchError::Profiles(error) => error.into(),
            error => RunError::from(StreamError::from(error)),
        })?;
    Ok(read)
}

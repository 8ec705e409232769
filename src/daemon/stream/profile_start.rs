//! Initial read of the profiles that records are joined to.

use crate::config::Config;
use crate::daemon::engine::{BatchError, Engine};
use crate::daemon::run_error::RunError;
use crate::daemon::state::records::BatchIntent;
use crate::daemon::stream::stream_loop::StreamError;
use crate::start::profile_sources::{ProfilesUnavailable, start_profile_readers};
use crate::telemetry::Telemetry;
use std::sync::atomic::AtomicBool;
use throng_core::values::schema::Schema;
use throng_kafka::connection::KafkaCluster;

/// Waits for existing profiles, except before a retry. Returns false if stopped.
pub(super) fn read_initial_profiles(
    engine: &mut Engine,
    intent: Option<&BatchIntent>,
    (config, schema, file): (&Config, &Schema, &str),
    cluster: &KafkaCluster,
    telemetry: &Telemetry,
    stop: &AtomicBool,
) -> Result<bool, RunError> {
    let Some(subjects) = engine.subjects().filter(|_| !config.join.is_empty()) else { return Ok(true) };
    let feeds =
        start_profile_readers(config, schema, file, (&subjects, cluster, telemetry)).map_err(|error| match error {
            ProfilesUnavailable::Problems(problems) => RunError::Configuration(problems),
            ProfilesUnavailable::Profiles(error) => error.into(),
        })?;
    engine.set_profile_feeds(feeds);
    let read = intent.is_some()
        || engine.read_profiles(stop).map_err(|error| match error {
            BatchError::Profiles(error) => error.into(),
            error => RunError::from(StreamError::from(error)),
        })?;
    Ok(read)
}

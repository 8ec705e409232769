//! One daemon from its configuration to its end.

pub use super::run_error::RunError;
use super::stream::run::Watcher;
use super::stream::run_source;
use crate::config::Config;
pub use crate::daemon::engine::assemble::Options;
use crate::daemon::http::serve::Pages;
use crate::records::schema::Schema;
use crate::start::doubts;
pub use crate::start::findings::Finding;
use crate::start::protections::protections;
use crate::start::schema::load_schema;
use crate::start::shapes::group_shapes;
use crate::telemetry::{Doubt, Telemetry};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs until the source ends or `stop` is set, and says what an operator must know of the records. The pages are served
/// as long as it runs.
///
/// # Errors
/// See [`RunError`].
pub fn run(
    config: &Config,
    options: &Options,
    telemetry: &Telemetry,
    schema: &Arc<Schema>,
    stop: &Arc<AtomicBool>,
    watcher: &dyn Watcher,
) -> Result<Vec<Finding>, RunError> {
    telemetry.set_readiness(|r| r.schema = true);
    for doubt in doubts::of_configuration(config, schema) {
        Doubt(doubt).emit(telemetry);
    }
    let pages = Pages::serve(config, telemetry)?;
    // A panic in a treatment poisons the whole run: nothing that it held may still be delivered.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run_source(config, options, telemetry, schema, stop, watcher)
    }));
    pages.end();
    outcome.unwrap_or(Err(RunError::Panicked))
}

/// The telemetry of a configuration.
///
/// # Errors
/// When schema, groups or privacy models are wrong.
pub fn prepare(config: &Config, file: &str) -> Result<(Arc<Schema>, Telemetry), RunError> {
    let schema = load_schema(config).map_err(RunError::Configuration)?;
    let shapes = group_shapes(config, &schema, file).map_err(RunError::Configuration)?;
    protections(config, &schema, file).map_err(RunError::Configuration)?;
    let names: Vec<String> = shapes.into_iter().map(|s| s.name).collect();
    Ok((schema, Telemetry::new(config.privacy.k, &names)))
}

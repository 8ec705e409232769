//! One daemon from its configuration to its end.

pub use super::assemble::Options;
use super::assemble::{group_shapes, load_schema};
use super::doubts;
use super::file_run::Watcher;
pub use super::findings::Finding;
use super::from_file::run_file;
use super::from_kafka::run_kafka;
use super::pages::Pages;
use super::protections::protections;
pub use super::run_error::RunError;
use crate::config::{Config, SourceKind};
use crate::records::schema::Schema;
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
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match config.source.kind {
        SourceKind::File => run_file(config, options, telemetry, schema, stop, watcher),
        SourceKind::Kafka => run_kafka(config, options, telemetry, schema, stop),
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

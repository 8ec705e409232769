//! One daemon from its configuration to its end.

use super::errand::errands;
pub use super::run_error::RunError;
use super::stream::run::Watcher;
use super::stream::run_source;
pub use crate::daemon::engine::assemble::Options;
use crate::daemon::http::serve::Pages;
use crate::daemon::reload::desk::Desk;
pub use crate::daemon::reload::desk::Reloading;
use crate::start::checked::Checked;
use crate::start::doubts;
pub use crate::start::findings::Finding;
use crate::start::reading::written_as;
use crate::telemetry::{Doubt, ErasureLag, Telemetry};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs until the source ends or `stop` is set, and says what an operator must know of the records. The pages are served
/// as long as it runs. With `reloading`, another configuration can take the place of this one meanwhile.
///
/// # Errors
/// See [`RunError`].
pub fn run(
    checked: Checked,
    options: &Options,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
    watcher: &dyn Watcher,
    reloading: Option<Reloading>,
) -> Result<Vec<Finding>, RunError> {
    telemetry.set_readiness(|r| r.schema = true);
    telemetry.read_as(written_as(checked.config.source.format()));
    if checked.config.erasure.is_on() {
        // Before a page says that nobody waits.
        ErasureLag { records: None }.emit(telemetry);
    }
    for doubt in doubts::of_configuration(&checked.config, &checked.schema) {
        Doubt(doubt).emit(telemetry);
    }
    let (desk, door, candidates) = match reloading {
        Some(reloading) => {
            let (desk, door, candidates) =
                Desk::open(reloading, checked.clone(), telemetry).map_err(RunError::Thread)?;
            (Some(desk), Some(door), Some(candidates))
        }
        None => (None, None, None),
    };
    let (ask, erasures) = errands();
    let pages = Pages::serve(&checked.config, telemetry, ask, door)?;
    // A panic in a treatment poisons the whole run: nothing that it held may still be delivered.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        run_source(checked, options, telemetry, stop, watcher, (candidates, &erasures))
    }));
    // The stream has gone: who waits for a reload or an erasure hears of it before the pages end.
    drop((desk, erasures));
    pages.end();
    outcome.unwrap_or(Err(RunError::Panicked))
}

//! The stream: sources and sinks put together, and the loop over them.
//!
//! | room | what it holds |
//! |---|---|
//! | [`run`] | the one loop, over any source |
//! | [`replace`] | the swap of a policy between two batches |
//! | [`source`] | what a source is |
//! | `file_source`, `kafka_source` | files and topics as sources |
//! | `from_file`, `from_kafka` | a daemon's parts, put together by the kind of its source |
//! | `erasing`, `naming` | erasures that are asked for, between two batches; people whom a topic names |
//! | `profiles` | the profiles that records are joined to, at the start |
//! | `to_kafka` | what every sink into a topic needs |

mod erasing;
mod file_source;
mod from_file;
mod from_kafka;
mod kafka_source;
pub mod naming;
mod profiles;
pub mod replace;
pub mod run;
pub mod source;
pub(super) mod to_kafka;

use super::errand::Errands;
use super::run_error::RunError;
use crate::config::SourceKind;
use crate::daemon::engine::assemble::Options;
use crate::daemon::reload::candidate::Candidate;
use crate::io::closing::SharedLimits;
use crate::start::checked::Checked;
use crate::start::findings::Finding;
use crate::start::memory::closing;
use crate::telemetry::Telemetry;
use crossbeam_channel::Receiver;
use from_file::run_file;
use from_kafka::run_kafka;
use replace::Replacements;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs over the source that is configured, until it ends or `stop` is set. `candidates` take the place of the configuration meanwhile, and people are
/// erased who are asked for by `erasures`.
pub(super) fn run_source(
    checked: Checked,
    options: &Options,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
    watcher: &dyn run::Watcher,
    (candidates, erasures): (Option<Receiver<Candidate>>, &Errands),
) -> Result<Vec<Finding>, RunError> {
    let limits = SharedLimits::new(closing(&checked.config, &checked.schema));
    let policies = Replacements { candidates, erasures, limits, options };
    match checked.config.source.kind {
        SourceKind::File => run_file(checked, &policies, telemetry, stop, watcher),
        SourceKind::Kafka => run_kafka(checked, &policies, telemetry, stop),
    }
}

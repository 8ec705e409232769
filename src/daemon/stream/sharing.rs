//! The ledger that the instances of a group share, at the start of a daemon.

use crate::config::Config;
use crate::daemon::engine::assemble::{Accord, Options};
use crate::daemon::engine::clock::StateClock;
use crate::daemon::engine::{BatchError, Engine};
use crate::daemon::run_error::RunError;
use crate::daemon::state::records::Intent;
use crate::daemon::stream::run::StreamError;
use crate::io::kafka::connection::Cluster;
use crate::io::kafka::transaction::TransactionalSink;
use crate::io::shared_ledger::{Listener, SharedTerms, Teller};
use crate::telemetry::Telemetry;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Lets the engine hear the others, and the sink tell them; waits for what they have said before the first batch, not where `intent` is to
/// be repeated first. False where `stop` came before.
pub(super) fn begin(
    (engine, sink, clock): (&mut Engine, &mut TransactionalSink, &mut StateClock),
    intent: Option<&Intent>,
    Accord { sealer, terms, .. }: Accord,
    (config, options): (&Config, &Options),
    (cluster, telemetry): (&Cluster, &Telemetry),
    stop: &AtomicBool,
) -> Result<bool, RunError> {
    let Some(topic) = config.sink.shared_ledger() else { return Ok(true) };
    let (group, instance, terms) =
        (config.source.group.clone(), engine.state_number().to_string(), SharedTerms::new(terms));
    let clocks = Arc::clone(&options.clocks);
    let wall: Arc<dyn Fn() -> i64 + Send + Sync> = Arc::new(move || clocks.read().wall_ms);
    let window = config.privacy.support_window + config.sink.ledger_skew;
    engine.listen_to(topic);
    let listener = Listener {
        cluster: cluster.clone(),
        topic: topic.to_owned(),
        from: engine.heard().places.clone(),
        sealer: sealer.clone(),
        group: group.clone(),
        instance: instance.clone(),
        terms: terms.clone(),
        window_ms: i64::try_from(window.as_millis()).unwrap_or(i64::MAX),
        wall: Arc::clone(&wall),
        telemetry: telemetry.clone(),
    };
    engine.share(listener.listen()?, terms.clone(), (config.sink.ledger_skew, config.privacy.support_window));
    sink.share(Teller { sealer, group, instance, terms, wall, has_spoken: false }, telemetry);
    if intent.is_some() {
        return Ok(true);
    }
    engine.take_in_others(&mut || clock.now(), stop).map_err(|error| match error {
        BatchError::Sharing(error) => error.into(),
        error => RunError::from(StreamError::from(error)),
    })
}

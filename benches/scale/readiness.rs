//! How soon a new instance is ready where the others have told much.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use throng::daemon::engine::assemble::assemble;
use throng::io::shared_ledger::{SharedTerms, Teller};
use throng::ledger::delta::LedgerDelta;
use throng::start::checked::Checked;
use throng::telemetry::Telemetry;

use crate::daemon::{Daemon, LOOK};
use crate::kafka::{Broker, Record};

/// Classes of one record of the topic, about.
const CLASSES: u64 = 10_000;
const PATIENCE: Duration = Duration::from_secs(120);

/// What a new instance met.
pub struct Readiness {
    /// Pairs of a class and a person that others have told.
    pub entries: u64,
    /// Bytes of the topic.
    pub bytes: u64,
    /// From its start until it is ready.
    pub ready: Duration,
    pub peak_mib: f64,
}

/// A new instance under `overrides`, where the others have told of `classes` classes.
pub fn readiness(broker: &Broker, topic: &str, classes: u64, run: &Path, overrides: &[(&str, &str)]) -> Readiness {
    let (entries, bytes, records) = tell(broker, topic, classes, run, overrides);
    let begun = Instant::now();
    let mut daemon = Daemon::start(run, "new", overrides);
    let heard = "throng_shared_ledger_records_total{direction=\"in\"}";
    while daemon.looks.is_empty()
        || daemon.metrics.get(heard) < records as f64
        || daemon.metrics.get("throng_ready") < 1.0
    {
        assert!(daemon.look(), "the instance has ended by itself");
        assert!(begun.elapsed() < PATIENCE, "it is not ready after {} s", PATIENCE.as_secs());
        std::thread::sleep(LOOK);
    }
    let (ready, peak_mib) = (begun.elapsed(), daemon.peak_mib);
    daemon.stop();
    Readiness { entries, bytes, ready, peak_mib }
}

/// Tells what other instances of the configuration would: entries, bytes, records.
fn tell(broker: &Broker, topic: &str, classes: u64, run: &Path, overrides: &[(&str, &str)]) -> (u64, u64, usize) {
    let state = run.join("others.state").to_str().expect("a UTF-8 path").to_owned();
    let keys = overrides.iter().copied().chain([("STATE__PATH", state.as_str())]);
    let env = keys.map(|(key, value)| (format!("THRONG__{key}"), value.to_owned()));
    let config = throng::config::load(crate::CONFIGURATION.as_ref(), env).expect("a sound configuration");
    let (k, group) = (config.privacy.k as u64, config.source.group.clone());
    let telemetry = Telemetry::new(config.privacy.k, &[]);
    let checked = Checked::new(config, crate::CONFIGURATION).expect("a sound configuration");
    let assembled = assemble(checked, &telemetry, false, &mut |_, _| Ok(false)).unwrap_or_else(|e| panic!("{e}"));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock after 1970").as_millis();
    let clock_ms = i64::try_from(now).expect("a clock before the year 292,000,000");
    let teller = Teller {
        sealer: assembled.accord.sealer,
        group,
        instance: assembled.id,
        terms: SharedTerms::new(assembled.accord.terms),
        wall: Arc::new(move || clock_ms),
        has_spoken: true,
    };
    let (mut entries, mut bytes, mut written, mut told) = (0, 0, 0, 0);
    while told < classes {
        let many = CLASSES.min(classes - told);
        // Keys as even as those of a keyed digest.
        let key = |n: u64| u128::from(n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let delta = LedgerDelta {
            classes: (told..told + many).map(|class| (key(class), u32::try_from(k).expect("a small crowd"))).collect(),
            subjects: (told * k..(told + many) * k).map(|subject| subject + 1).collect(),
            ..LedgerDelta::default()
        };
        told += many;
        entries += delta.subjects.len() as u64;
        let sealed = teller.records(&delta, told, clock_ms);
        written += sealed.len();
        bytes += sealed.iter().map(|record| record.len() as u64).sum::<u64>();
        let records = sealed.into_iter().map(|payload| Record { payload: Some(payload), ..Record::default() });
        broker.produce_records(topic, &records.collect::<Vec<_>>());
    }
    (entries, bytes, written)
}

//! `throng demo`: the complete product on one machine.

mod before_after;
mod demo_series;
mod embedded_files;

use super::outcome::Failure;
use super::run::begin_logging;
use super::run_summary::print_run_summary;
use super::trial_run::{SilentWatcher, temporary_directory};
use crate::config;
use crate::daemon::run::{RunOptions, run as run_daemon};
use crate::generate::record_publisher::RecordPublisher;
use crate::generate::{RecordLayout, RecordStream, WearableSettings, WearableStream};
use crate::start::checked_config::CheckedConfig;
use anyhow::{Context, anyhow};
use embedded_files::{DEMO_CONFIG, DEMO_SCHEMA};
use rdkafka::mocking::MockCluster;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The demo would end before the default delay.
const DEMO_DELAY_SECONDS: u32 = 10;

/// Subjects, and mean generated time between two records.
const DEMO_SUBJECTS: u32 = 2000;
const INTERVAL_MICROS: u64 = 8_000_000;

/// Run a complete demonstration: a broker, a generator, the daemon and its status page
///
/// An in-process broker replaces Kafka, a generator writes wearable records to it, and the daemon releases them
/// 5-anonymously to a second topic. The command prints the address of the status page. The in-process broker accepts
/// transactions but does not isolate them: exactly-once needs a real broker, and is tested on one.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Show records before and after, side by side, and end: no broker, no page
    #[arg(long, conflicts_with_all = ["seconds", "rate", "listen"])]
    show: bool,
    /// With --show: write charts of the series to an HTML page
    #[arg(long, value_name = "FILE", requires = "show")]
    html: Option<PathBuf>,
    /// End after this many seconds with a summary (default: at Ctrl-C)
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Records per second written by the generator
    #[arg(long, value_name = "R", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=50_000))]
    rate: u64,
    /// Listen address of the status page
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464")]
    listen: String,
}

/// Runs `throng demo`.
pub fn run(args: &DemoArgs) -> Result<(), Failure> {
    if args.show {
        return before_after::run(args.html.as_deref());
    }
    let directory = temporary_directory("demo")?;
    let schema_file = directory.path().join("wearable.toml");
    std::fs::write(&schema_file, DEMO_SCHEMA).context("the schema cannot be written to the temporary directory")?;
    let cluster = MockCluster::new(1).context("the in-process broker did not start")?;
    for (topic, partitions) in [
        ("wearable.raw", 2),
        ("wearable.sanitized", 2),
        ("throng.dead-letters", 1),
        ("throng.changelog", 3),
        ("throng.changelog.contributions", 1),
    ] {
        cluster.create_topic(topic, partitions, 1).context("cannot create a topic on the in-process broker")?;
    }
    let brokers = cluster.bootstrap_servers();
    let overrides = [
        ("THRONG__SOURCE__BROKERS", brokers.clone()),
        ("THRONG__SCHEMA__FILE", schema_file.display().to_string()),
        ("THRONG__STATE__SECRET_FILE", String::new()),
        ("THRONG__STATE__PATH", directory.path().join("state").display().to_string()),
        ("THRONG__TELEMETRY__LISTEN", args.listen.clone()),
        ("THRONG__TELEMETRY__LOG_LEVEL", "warn".to_owned()),
        ("THRONG__PRIVACY__MAX_DELAY", format!("{DEMO_DELAY_SECONDS}s")),
        ("THRONG__COHORT__WARM_UP", "1d".to_owned()),
    ];
    let env = overrides.into_iter().map(|(k, v)| (k.to_owned(), v));
    let config = config::parse(DEMO_CONFIG, "the demo's configuration", env)?;
    begin_logging(&config)?;
    let checked = CheckedConfig::new(config, "the demo's configuration")?;
    let (k, telemetry) = (checked.config.privacy.k, checked.telemetry());
    let stop = super::run::stop_on_signals()?;
    println!("throng demo: wearable.raw → wearable.sanitized, k = {k}, {} records/s", args.rate);
    println!("             status page http://{}/   metrics http://{}/metrics", args.listen, args.listen);
    println!(
        "             values that do not change within a person are released once, up to {DEMO_DELAY_SECONDS} s late (default: within 30 days, privacy.static_window)"
    );
    println!("             days pass in seconds: cohort statistics appear on the page after about half a minute");
    println!("             the in-process broker does not isolate transactions; exactly-once needs a real broker");
    match args.seconds {
        Some(n) => println!("             stops after {n} s"),
        None => println!("             stop with Ctrl-C"),
    }
    let failed = AtomicBool::new(false);
    let outcome = std::thread::scope(|scope| {
        let clock = Arc::clone(&stop);
        let seconds = args.seconds;
        scope.spawn(move || {
            let start = Instant::now();
            while !clock.load(Ordering::Acquire) && seconds.is_none_or(|s| start.elapsed() < Duration::from_secs(s)) {
                std::thread::sleep(Duration::from_millis(50));
            }
            clock.store(true, Ordering::Release);
        });
        let generator = scope.spawn(|| publish_demo_records(&brokers, args.rate, &stop));
        let options = RunOptions { uses_demo_broker: true, ..RunOptions::default() };
        let outcome = run_daemon(checked, &options, &telemetry, &stop, &SilentWatcher, None);
        stop.store(true, Ordering::Release);
        match generator.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                failed.store(true, Ordering::Release);
                eprintln!("error: the generator failed: {error:#}");
            }
            Err(_) => failed.store(true, Ordering::Release),
        }
        outcome
    });
    outcome?;
    if failed.load(Ordering::Acquire) {
        return Err(Failure::Running(anyhow!("the demo's generator failed")));
    }
    print_run_summary(&telemetry, None);
    Ok(())
}

fn publish_demo_records(brokers: &str, rate: u64, stop: &AtomicBool) -> anyhow::Result<()> {
    // A generated day takes about five seconds. Two years ago, because records from the future are refused.
    let start_seconds = chrono::Utc::now().timestamp() - 2 * 365 * 86_400;
    let settings = WearableSettings {
        subjects: DEMO_SUBJECTS,
        start_seconds,
        interval_micros: INTERVAL_MICROS,
        layout: RecordLayout::Flat,
        ..WearableSettings::default()
    };
    let mut stream = WearableStream::new(settings)?;
    let mut publisher = RecordPublisher::connect(brokers, "wearable.raw", &[])?;
    let start = Instant::now();
    let mut sent = 0u64;
    let mut record = Vec::new();
    while !stop.load(Ordering::Acquire) {
        let due = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_mul(rate) / 1000;
        while sent < due && !stop.load(Ordering::Acquire) {
            record.clear();
            stream.append(&mut record);
            while !publisher.enqueue(None, &record)? {
                std::thread::sleep(Duration::from_millis(1));
            }
            sent += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    publisher.flush_and_count(Duration::from_secs(10))?;
    Ok(())
}

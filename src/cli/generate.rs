//! `throng generate`: synthetic records.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::ProgressBar;

use super::progress::progress_bar;
use super::run::stop_on_signals;
use crate::generate::record_publisher::RecordPublisher;
use crate::generate::{
    HealthRecordStream, HealthSettings, RecordLayout, RecordStream, WearableSettings, WearableStream,
};

/// Generate synthetic records; the same seed gives the same bytes on every machine
#[derive(Debug, clap::Args)]
pub struct GenerateArgs {
    #[command(subcommand)]
    kind: GeneratorKind,
}

#[derive(Debug, clap::Subcommand)]
enum GeneratorKind {
    /// Stream of wearable readings: 25 attributes, many records per subject (schemas/wearable.toml)
    Wearable(WearableArgs),
    /// Wide table of health records: 107 attributes, one record per subject (schemas/health.toml)
    Health(HealthArgs),
}

#[derive(Debug, clap::Args)]
struct HealthArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Draw disease, drug, SNP and gene only once per record, so that the twenty columns of a family are
    /// identical
    #[arg(long)]
    legacy: bool,
}

#[derive(Debug, clap::Args)]
struct WearableArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// Number of subjects
    #[arg(long, value_name = "M", default_value_t = 10_000)]
    subjects: u32,
    /// Skew of the records over the subjects: Zipf exponent, 0 (even) to 4
    #[arg(long, value_name = "Z", default_value_t = 0.6)]
    skew: f64,
    /// Share of lost readings, 0 to 0.9; at 0 every device has every sensor
    #[arg(long, value_name = "P", default_value_t = 0.03)]
    missing: f64,
    /// First record (counted from 0) from a different population: older, in other places, with newer devices
    #[arg(long, value_name = "N")]
    shift_at: Option<u64>,
    /// Mean time between two records of the stream, in event time
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    interval: humantime::Duration,
    /// Time of the first record
    #[arg(long, value_name = "RFC3339", default_value = "2026-01-05T14:00:00Z", value_parser = humantime::parse_rfc3339_weak)]
    start: std::time::SystemTime,
}

#[derive(Debug, clap::Args)]
struct OutputArgs {
    /// Number of records
    #[arg(long, value_name = "N")]
    records: u64,
    /// Seed that determines every byte of the output
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Output file, overwritten if it exists; CSV if its name ends in .csv, otherwise one JSON object per line; "-"
    /// is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Kafka topic to send to instead of a file, one JSON object per message
    #[arg(long, value_name = "T", conflicts_with = "output", requires = "brokers")]
    topic: Option<String>,
    /// Brokers of the topic
    #[arg(long, value_name = "HOST:PORT,…", requires = "topic")]
    brokers: Option<String>,
    /// Use the subject as message key, so that the records of a subject stay in one partition (default: no key)
    #[arg(long, requires = "topic")]
    key_by_subject: bool,
    /// Property of the librdkafka producer, such as security.protocol=ssl (repeatable)
    #[arg(long = "property", value_name = "KEY=VALUE", value_parser = property_argument, requires = "topic")]
    properties: Vec<(String, String)>,
    /// Maximum number of records per second (default: unlimited)
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
}

fn property_argument(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("write it as KEY=VALUE".to_owned()),
    }
}

/// Runs `throng generate`.
///
/// # Errors
/// Fails for a setting out of range (cause `GenerateError::OutOfRange`), an unavailable output, or an interruption. The
/// output keeps complete records.
pub fn run(args: GenerateArgs) -> anyhow::Result<()> {
    match args.kind {
        GeneratorKind::Wearable(args) => {
            let start = args.start.duration_since(std::time::UNIX_EPOCH).context("--start must not be before 1970")?;
            let settings = WearableSettings {
                seed: args.output.seed,
                subjects: args.subjects,
                skew: args.skew,
                missing: args.missing,
                shift_at: args.shift_at,
                start_seconds: i64::try_from(start.as_secs())?,
                interval_micros: u64::try_from(args.interval.as_micros())?,
                layout: args.output.layout(),
            };
            write_generated_records(WearableStream::new(settings)?, &args.output)
        }
        GeneratorKind::Health(args) => {
            if args.output.key_by_subject {
                bail!("--key-by-subject: health records have no subject, every record is a person (remove the option)");
            }
            let layout = args.output.layout();
            write_generated_records(
                HealthRecordStream::new(HealthSettings { seed: args.output.seed, legacy: args.legacy, layout }),
                &args.output,
            )
        }
    }
}

impl OutputArgs {
    fn layout(&self) -> RecordLayout {
        let is_csv = self.topic.is_none() && self.output.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
        if is_csv { RecordLayout::Csv } else { RecordLayout::Flat }
    }
}

/// Between two checks of clock and stop flag.
const MAX_STRIDE: u64 = 1_000;

fn write_generated_records(mut stream: impl RecordStream, args: &OutputArgs) -> anyhow::Result<()> {
    let pace = OutputPacer::new(args, stop_on_signals()?);
    let written = match &args.topic {
        Some(topic) => to_topic(&mut stream, args, topic, &pace),
        None => to_file(&mut stream, args, &pace),
    }?;
    pace.bar.finish_and_clear();
    if written < args.records && pace.stop_requested() {
        bail!("interrupted after {written} of {} records", args.records);
    }
    Ok(())
}

fn to_file(stream: &mut impl RecordStream, args: &OutputArgs, pace: &OutputPacer) -> anyhow::Result<u64> {
    let name = || format!("cannot write \"{}\"", args.output.display());
    let stdout = args.output.as_os_str() == "-";
    let mut out: Box<dyn Write> =
        if stdout { Box::new(std::io::stdout()) } else { Box::new(File::create(&args.output).with_context(name)?) };
    let mut out = BufWriter::with_capacity(1 << 20, &mut out);
    let mut lines = Vec::with_capacity(1 << 19);
    let mut written = 0;
    stream.header(&mut lines);
    while written < args.records && !pace.stop_requested() {
        let until = args.records.min(written + pace.stride);
        for _ in written..until {
            stream.append(&mut lines);
            lines.push(b'\n');
        }
        match out.write_all(&lines).and_then(|()| if pace.flushes_each_stride { out.flush() } else { Ok(()) }) {
            // The reader closed standard output (`| head`).
            Err(error) if stdout && error.kind() == std::io::ErrorKind::BrokenPipe => {
                // Discards the undeliverable rest.
                drop(out.into_parts());
                return Ok(written);
            }
            result => result.with_context(name)?,
        }
        lines.clear();
        written = until;
        pace.wait_for_rate(written);
    }
    match out.write_all(&lines).and_then(|()| out.flush()) {
        Err(error) if stdout && error.kind() == std::io::ErrorKind::BrokenPipe => {
            drop(out.into_parts());
        }
        result => result.with_context(name)?,
    }
    Ok(written)
}

fn to_topic(stream: &mut impl RecordStream, args: &OutputArgs, topic: &str, pace: &OutputPacer) -> anyhow::Result<u64> {
    let brokers = args.brokers.as_deref().context("--topic needs --brokers")?;
    let mut publisher = RecordPublisher::connect(brokers, topic, &args.properties)?;
    let (mut key, mut record) = (Vec::new(), Vec::new());
    let mut written = 0;
    'sending: while written < args.records && !pace.stop_requested() {
        let until = args.records.min(written + pace.stride);
        while written < until {
            record.clear();
            stream.append(&mut record);
            key.clear();
            if args.key_by_subject {
                stream.append_subject(&mut key);
            }
            while !publisher.enqueue(args.key_by_subject.then_some(key.as_slice()), &record)? {
                if pace.stop_requested() {
                    break 'sending;
                }
            }
            written += 1;
        }
        pace.wait_for_rate(written);
    }
    Ok(publisher.flush_and_count(Duration::from_secs(if pace.stop_requested() { 10 } else { 120 }))?)
}

/// Rate, progress bar and stop flag.
struct OutputPacer {
    started: Instant,
    rate: Option<u64>,
    stride: u64,
    /// The output may be followed live.
    flushes_each_stride: bool,
    bar: ProgressBar,
    stop: Arc<AtomicBool>,
}

impl OutputPacer {
    fn new(args: &OutputArgs, stop: Arc<AtomicBool>) -> Self {
        let to_screen = args.topic.is_none() && args.output.as_os_str() == "-" && std::io::stdout().is_terminal();
        let bar = if to_screen {
            ProgressBar::hidden()
        } else {
            progress_bar("{bar:30} {human_pos}/{human_len} records  {per_sec}  {eta} left", args.records)
        };
        // Twenty steps per second keep a slow stream smooth.
        let stride = args.rate.map_or(MAX_STRIDE, |rate| (rate / 20).clamp(1, MAX_STRIDE));
        Self { started: Instant::now(), rate: args.rate, stride, flushes_each_stride: args.rate.is_some(), bar, stop }
    }

    fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn wait_for_rate(&self, written: u64) {
        self.bar.set_position(written);
        let Some(rate) = self.rate else { return };
        let due = Duration::from_secs_f64(written as f64 / rate as f64);
        // Ctrl-C also acts at low rates.
        while let Some(left) = due.checked_sub(self.started.elapsed()).filter(|left| !left.is_zero()) {
            if self.stop_requested() {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct GenerateTestArgs {
        #[command(flatten)]
        args: GenerateArgs,
    }

    fn parse(words: &[&str]) -> Result<GenerateArgs, clap::Error> {
        GenerateTestArgs::try_parse_from(std::iter::once("generate").chain(words.iter().copied())).map(|cli| cli.args)
    }

    fn bytes(words: &[&str], file: &str) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(file);
        let mut words = words.to_vec();
        words.extend(["-o", path.to_str().expect("UTF-8")]);
        run(parse(&words).expect("parses")).expect("runs");
        std::fs::read(&path).expect("written")
    }

    #[test]
    fn same_seed_gives_same_file() {
        let one = bytes(&["wearable", "--records", "2500", "--seed", "7"], "a.ndjson");
        assert_eq!(one.iter().filter(|b| **b == b'\n').count(), 2_500);
        assert!(one == bytes(&["wearable", "--records", "2500", "--seed", "7"], "b.ndjson"));
        assert!(one != bytes(&["wearable", "--records", "2500", "--seed", "8"], "c.ndjson"));
        let csv = bytes(&["wearable", "--records", "10", "--seed", "7"], "a.CSV");
        assert!(csv.starts_with(b"user_id,email,"), "the extension decides");
        assert_eq!(csv.iter().filter(|b| **b == b'\n').count(), 11);
        let empty = bytes(&["wearable", "--records", "0"], "empty.csv");
        assert_eq!(empty.iter().filter(|b| **b == b'\n').count(), 1, "no records, but a header");
    }

    #[test]
    fn contradictory_arguments_are_refused() {
        assert!(parse(&["wearable", "--records", "1", "--topic", "t"]).is_err(), "a topic needs brokers");
        assert!(parse(&["wearable", "--records", "1", "--topic", "t", "--brokers", "b", "-o", "f"]).is_err());
        assert!(parse(&["wearable"]).is_err(), "how many?");
        assert!(parse(&["wearable", "--records", "1", "--rate", "0"]).is_err());
        let skew = parse(&["wearable", "--records", "1", "--skew", "9", "-o", "x"]).expect("parses");
        assert!(run(skew).expect_err("refused").to_string().contains("skew is 9"));
    }
}

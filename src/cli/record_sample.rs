//! Samples for schema inference.

use super::input_formats::{FormatArg, detect_record_format, separator_argument};
use super::outcome::Failure;
use super::progress::spinner;
use super::text_format;
use crate::config::{Config, SourceKind};
use crate::io::file::{FileFormat, SourceError};
use crate::io::table::{self, LoadedTable, ReadProgress, TableColumn, TableReadError, TableRequest};
use crate::io::topic_lines::TopicLines;
use crate::start::clusters::source_cluster;
use crate::start::message_decoders::whole_message_decoder;
use crate::telemetry::Telemetry;
use anyhow::anyhow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use throng_core::values::schema::AttributeOrigin;
use throng_formats::DecodeLimits;
use throng_kafka::connection::KafkaFailure;
use throng_kafka::topic_sample::TopicSample;

const MAX_SAMPLE_COLUMNS: usize = 4096;
const SAMPLE_BROKER_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_SAMPLE_BYTES: u64 = 2 << 30;

/// Selection of the sample.
#[derive(Clone, Debug, clap::Args)]
pub struct SampleArgs {
    /// CSV, NDJSON or Parquet file; `throng schema infer -` reads standard input (NDJSON, or CSV with --format csv)
    #[arg(value_name = "INPUT")]
    pub input: Option<PathBuf>,
    /// Record format: csv, json, parquet or apple_health (default: by extension, otherwise by content)
    #[arg(long, value_enum, value_name = "F")]
    pub format: Option<FormatArg>,
    /// Separator of CSV fields (default: the most frequent of , ; tab | in the first line; the comma on standard
    /// input)
    #[arg(long, value_name = "C", value_parser = separator_argument)]
    pub separator: Option<u8>,
    /// Read only the first N records; at most 2 GiB are kept (12 bytes per cell, plus the distinct values)
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub records: u64,
}

/// Sample with its origin.
pub struct RecordSample {
    /// Records as texts.
    pub table: LoadedTable,
    /// Format of the records.
    pub format: FileFormat,
    /// Source in messages.
    pub named: String,
}

/// Reads a sample without unreadable records.
pub fn read(args: &SampleArgs) -> Result<RecordSample, Failure> {
    let Some(path) = &args.input else {
        return Err(Failure::Usage(anyhow!("no input is named: give a file with records")));
    };
    let format = detect_record_format(path, args.format, args.separator).map_err(sample_failure)?;
    let table = read_file(path, format, args.records)?;
    let named = match path.file_name() {
        _ if path == Path::new("-") => "standard input".to_owned(),
        Some(name) => name.to_string_lossy().into_owned(),
        None => path.display().to_string(),
    };
    Ok(RecordSample { table, format, named })
}

/// Reads the first `records` messages of the configured topics, without their schema, and commits nothing. Messages
/// name `file`.
pub fn read_topics(config: &Config, file: &str, records: u64) -> Result<RecordSample, Failure> {
    if config.source.kind == SourceKind::File {
        return Err(Failure::Usage(anyhow!("{file}: the source is a file: give it as INPUT")));
    }
    let messages = whole_message_decoder(config, file, &Telemetry::new(0, &[]))
        .map_err(|problem| Failure::Problems(vec![problem]))?;
    let cluster = source_cluster(config).map_err(|error| Failure::Usage(error.into()))?;
    let open = |topic: &String| Ok((topic.clone(), TopicSample::open(&cluster, topic, SAMPLE_BROKER_TIMEOUT)?));
    let topics: Result<Vec<_>, _> = config.source.topics.iter().map(open).collect();
    let lines = TopicLines::new(topics.map_err(|error: KafkaFailure| Failure::Running(error.into()))?, messages);
    let unreadable = lines.unreadable();
    let named = format!("topic {}", config.source.topics.join(", "));
    let limits = DecodeLimits {
        // A record has key and value.
        max_record_bytes: usize::try_from(config.source.max_record_bytes).unwrap_or(usize::MAX).saturating_mul(3),
        max_depth: DecodeLimits::default().max_depth + 1,
        ..DecodeLimits::default()
    };
    let request = TableRequest { limits, ..request(Path::new(&named), FileFormat::Ndjson, records) };
    let read = with_read_progress(|progress| table::read_lines(Box::new(lines), &request, progress));
    let unreadable = unreadable.lock().expect("no panic while the lock is held").clone();
    let mut table = read.map_err(|error| match error {
        TableReadError::NoRecords { .. } if !unreadable.is_empty() => {
            let count =
                |(why, count): (&&str, &u64)| format!("{} {}", why.replace('_', " "), text_format::number(*count));
            let why: Vec<String> = unreadable.iter().map(count).collect();
            let keys = "source.format and source.key_format";
            Failure::Usage(anyhow!("{named}: no message can be read ({}): correct {keys}", why.join(", ")))
        }
        error => topic_failure(error),
    })?;
    for (why, count) in unreadable {
        *table.unreadable.entry(why).or_default() += count;
    }
    table.columns.iter_mut().for_each(strip_message_part);
    Ok(RecordSample { table, format: FileFormat::Ndjson, named })
}

/// Removes `key` or `value` from path and name.
fn strip_message_part(column: &mut TableColumn) {
    if column.key_path.remove(0) == "key" {
        column.from = AttributeOrigin::Key;
    }
    if !column.key_path.is_empty() {
        column.name = column.key_path.join(".");
    }
}

fn read_file(path: &Path, format: FileFormat, records: u64) -> Result<LoadedTable, Failure> {
    let request = request(path, format, records);
    with_read_progress(|progress| table::read(&request, progress)).map_err(sample_failure)
}

fn request(path: &Path, format: FileFormat, records: u64) -> TableRequest<'_> {
    TableRequest {
        path,
        more: &[],
        format,
        schema: None,
        selects: false,
        columns: None,
        limits: DecodeLimits::default(),
        max_columns: MAX_SAMPLE_COLUMNS,
        max_bytes: MAX_SAMPLE_BYTES,
        max_records: Some(records),
        skip_unreadable: true,
    }
}

fn with_read_progress<T>(read: impl FnOnce(&mut dyn FnMut(ReadProgress)) -> T) -> T {
    let bar = spinner("{spinner} reading {msg}");
    let read = read(&mut |at: ReadProgress| bar.set_message(text_format::counted(at.records, "record")));
    bar.finish_and_clear();
    read
}

/// A read error comes from the brokers or the registry: it is one of the usage only if the operator must change
/// something.
fn topic_failure(error: TableReadError) -> Failure {
    let TableReadError::Source(SourceError::Read { source, .. }) = &error else { return sample_failure(error) };
    let failure = source.get_ref().and_then(|inner| inner.downcast_ref::<KafkaFailure>());
    if failure.is_some_and(KafkaFailure::is_usage) { sample_failure(error) } else { Failure::Running(error.into()) }
}

fn sample_failure(error: TableReadError) -> Failure {
    Failure::Usage(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalled_read_of_a_topic_is_a_runtime_failure() {
        let failure_of = |inner: KafkaFailure| {
            let source = std::io::Error::other(inner);
            topic_failure(TableReadError::Source(SourceError::Read { path: "topic raw".into(), byte: 0, source }))
        };
        let (brokers, topic) = ("b".to_owned(), "raw".to_owned());
        let stalled = KafkaFailure::ReadStalled { brokers, topic, partition: 0, offset: 5, end: 9, seconds: 30 };
        let Failure::Running(error) = failure_of(stalled) else { panic!("it is no fault of the usage") };
        assert!(format!("{error:#}").contains("offset 5 of partition 0"), "{error:#}");
        let denied = KafkaFailure::Denied { brokers: "b".to_owned(), right: "read it".to_owned() };
        assert!(matches!(failure_of(denied), Failure::Usage(_)));
    }
}

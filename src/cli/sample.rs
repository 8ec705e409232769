//! Records that somebody names to learn from: the first ones of a file, of standard input or of a topic.

use super::outcome::Failure;
use super::progress::spinner;
use super::text;
use super::written_down::{FormatArg, format_of, separator};
use crate::config::{Config, SourceKind};
use crate::io::file::Format;
use crate::io::kafka::sampled::Sampled;
use crate::io::table::{self, ReadProgress, Request, TableColumn, TableError, WholeTable};
use crate::io::topic_lines::TopicLines;
use crate::start::clusters::source_cluster;
use crate::start::messages::whole_messages;
use crate::telemetry::Telemetry;
use anyhow::anyhow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use throng_core::values::schema::Origin;
use throng_formats::Limits;

/// Columns of one sample.
const MAX_COLUMNS: usize = 4096;
/// How long a broker may not answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Memory for a sample.
const MAX_BYTES: u64 = 2 << 30;

/// Which records to look at.
#[derive(Clone, Debug, clap::Args)]
pub struct SampleArgs {
    /// A CSV, NDJSON or Parquet file; `throng schema infer -` reads standard input (NDJSON, or CSV with --format csv)
    #[arg(value_name = "INPUT")]
    pub input: Option<PathBuf>,
    /// How records are written: csv, json or parquet (default: by the extension, else by the content)
    #[arg(long, value_enum, value_name = "F")]
    pub format: Option<FormatArg>,
    /// Separator of CSV fields (default: the most frequent of , ; tab | in the first line; the comma on standard input)
    #[arg(long, value_name = "C", value_parser = separator)]
    pub separator: Option<u8>,
    /// Look at the first N records only; at most 2 GiB are held (12 bytes a cell and the different values)
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub records: u64,
}

/// A sample, and what it is.
pub struct Sample {
    /// The records, as texts.
    pub table: WholeTable,
    /// How they are written.
    pub format: Format,
    /// What they come from, as messages name it.
    pub named: String,
}

/// Reads a sample; unreadable records are left out and counted.
pub fn read(args: &SampleArgs) -> Result<Sample, Failure> {
    let Some(path) = &args.input else {
        return Err(Failure::Usage(anyhow!("no records are named: give a file")));
    };
    let format = format_of(path, args.format, args.separator).map_err(refused)?;
    let table = read_file(path, format, args.records)?;
    let named = match path.file_name() {
        _ if path == Path::new("-") => "standard input".to_owned(),
        Some(name) => name.to_string_lossy().into_owned(),
        None => path.display().to_string(),
    };
    Ok(Sample { table, format, named })
}

/// Reads the first `records` messages of the topics that a configuration, `file` in messages, names. No group is joined and
/// nothing committed; the configuration's schema is not looked at. Attributes of keys come from there.
pub fn read_topics(config: &Config, file: &str, records: u64) -> Result<Sample, Failure> {
    if config.source.kind == SourceKind::File {
        return Err(Failure::Usage(anyhow!("{file} reads a file: name that as INPUT")));
    }
    let messages =
        whole_messages(config, file, &Telemetry::new(0, &[])).map_err(|problem| Failure::Problems(vec![problem]))?;
    let cluster = source_cluster(config).map_err(|error| Failure::Usage(error.into()))?;
    let open = |topic: &String| Ok((topic.clone(), Sampled::open(&cluster, topic, PATIENCE)?));
    let topics: Result<Vec<_>, _> = config.source.topics.iter().map(open).collect();
    let lines = TopicLines::new(
        topics.map_err(|error: crate::io::kafka::connection::KafkaFailure| Failure::Running(error.into()))?,
        messages,
    );
    let unreadable = lines.unreadable();
    let named = format!("topic {}", config.source.topics.join(", "));
    let limits = Limits {
        // Key and value in one.
        max_record_bytes: usize::try_from(config.source.max_record_bytes).unwrap_or(usize::MAX).saturating_mul(3),
        max_depth: Limits::default().max_depth + 1,
        ..Limits::default()
    };
    let request = Request { limits, ..request(Path::new(&named), Format::Ndjson, records) };
    let read = progressing(|progress| table::read_lines(Box::new(lines), &request, progress));
    let unreadable = unreadable.lock().expect("no panic while it is held").clone();
    let mut table = read.map_err(|error| match error {
        TableError::NoRecords { .. } if !unreadable.is_empty() => {
            let count = |(why, count): (&&str, &u64)| format!("{} {}", why.replace('_', " "), text::number(*count));
            let why: Vec<String> = unreadable.iter().map(count).collect();
            let keys = "source.format and source.key_format";
            Failure::Usage(anyhow!("{named}: no message can be read ({}): correct {keys}", why.join(", ")))
        }
        error => refused(error),
    })?;
    for (why, count) in unreadable {
        *table.unreadable.entry(why).or_default() += count;
    }
    table.columns.iter_mut().for_each(part_of_message);
    Ok(Sample { table, format: Format::Ndjson, named })
}

/// Takes the part of the message, `key` or `value`, off the column's way and name.
fn part_of_message(column: &mut TableColumn) {
    if column.way.remove(0) == "key" {
        column.from = Origin::Key;
    }
    if !column.way.is_empty() {
        column.name = column.way.join(".");
    }
}

fn read_file(path: &Path, format: Format, records: u64) -> Result<WholeTable, Failure> {
    let request = request(path, format, records);
    progressing(|progress| table::read(&request, progress)).map_err(refused)
}

fn request(path: &Path, format: Format, records: u64) -> Request<'_> {
    Request {
        path,
        more: &[],
        format,
        schema: None,
        columns: None,
        limits: Limits::default(),
        max_columns: MAX_COLUMNS,
        max_bytes: MAX_BYTES,
        max_records: Some(records),
        skip_unreadable: true,
    }
}

fn progressing<T>(read: impl FnOnce(&mut dyn FnMut(ReadProgress)) -> T) -> T {
    let bar = spinner("{spinner} reading {msg}");
    let read = read(&mut |at: ReadProgress| bar.set_message(text::counted(at.records, "record")));
    bar.finish_and_clear();
    read
}

/// What cannot be read as records was named in vain.
fn refused(error: TableError) -> Failure {
    Failure::Usage(error.into())
}

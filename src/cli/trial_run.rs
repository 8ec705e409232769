//! Trial runs: the real pipeline into a temporary directory.

use super::outcome::Failure;
use super::stop_signals::TemporaryDirectory;
use crate::config::{Config, JOINED_OUTPUT, RecordFormat, RowContent, SinkConfig, SinkKind, SourceKind};
use crate::daemon::run::{RunOptions, run as run_daemon};
use crate::daemon::stream::stream_loop::ReadProgressWatcher;
use crate::io::file::{format_sample_of, separator_of};
use crate::start::checked_config::CheckedConfig;
use crate::telemetry::Telemetry;
use anyhow::{Context, anyhow};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use throng_core::plan::GroupShape;
use throng_core::series::AllSeriesTerms;
use throng_core::values::schema::Schema;

/// Ignores progress.
pub struct SilentWatcher;

impl ReadProgressWatcher for SilentWatcher {
    fn bytes_read(&self, _: u64) {}
}

/// Creates a temporary directory of mode 0700 with the label in its name.
pub fn temporary_directory(what: &str) -> Result<TemporaryDirectory, Failure> {
    let made = tempfile::Builder::new().prefix(&format!("throng-{what}-")).tempdir();
    Ok(TemporaryDirectory::register_directory(made.context("cannot create a temporary directory")?))
}

/// Finished trial run, with outputs until drop.
pub struct TrialRun {
    directory: TemporaryDirectory,
    /// Configuration of the run.
    pub config: Arc<Config>,
    /// Schema of the records.
    pub schema: Arc<Schema>,
    /// Attribute groups.
    pub shapes: Vec<GroupShape>,
    /// Series terms.
    pub terms: Option<Arc<AllSeriesTerms>>,
    /// Counters.
    pub telemetry: Telemetry,
    /// Groups with their files, in order.
    pub outputs: Vec<(String, PathBuf)>,
    /// Series with their files, in order.
    pub series: Vec<(String, PathBuf)>,
}

/// Format of the records.
#[derive(Clone, Copy)]
pub struct RecordFileFormat {
    /// Encoding.
    pub format: RecordFormat,
    /// CSV separator.
    pub separator: char,
}

/// Determines the format by file name, else as the configured source file, or JSON.
pub fn record_file_format(config: &Config, input: &Path) -> Result<RecordFileFormat, Failure> {
    let named = RecordFormat::from_known_extension(&format_sample_of(input));
    let source = &config.source;
    Ok(match named {
        // CSV settings apply to the configured source file.
        Some(RecordFormat::Csv) | None if source.kind == SourceKind::File && source.format() == RecordFormat::Csv => {
            RecordFileFormat { format: RecordFormat::Csv, separator: source.separator }
        }
        Some(RecordFormat::Csv) => {
            let separator = separator_of(input).map_err(|error| Failure::Usage(error.into()))?;
            RecordFileFormat { format: RecordFormat::Csv, separator: char::from(separator) }
        }
        Some(format) => RecordFileFormat { format, separator: ',' },
        None if source.kind == SourceKind::File => {
            RecordFileFormat { format: source.format(), separator: source.separator }
        }
        None => RecordFileFormat { format: RecordFormat::Json, separator: ',' },
    })
}

fn redirect_to_files(mut config: Config, input: &Path, written: RecordFileFormat, directory: &Path) -> Config {
    if written.format != config.source.format() {
        // Groups and plan come from the input.
        config.plan.prime = None;
    }
    config.source.kind = SourceKind::File;
    config.source.path = input.to_owned();
    config.source.format = Some(written.format);
    config.source.separator = written.separator;
    let rows = config.sink.rows;
    let dead_letter_path = Some(directory.join("dead-letters.ndjson"));
    config.sink = SinkConfig {
        kind: SinkKind::File,
        path: directory.join("out.ndjson"),
        dead_letter_path,
        rows,
        ..SinkConfig::default()
    };
    config.state.path = PathBuf::new();
    // The caller judges the represented share.
    config.release.min_represented = 0.0;
    config.telemetry.listen.clear();
    config
}

/// Runs `config` over `input` until `stop` is set. Messages name `file`; `watcher` receives the bytes read.
///
/// # Errors
/// Fails for unfit configuration or input, profiles in a topic, and a failed or stopped run.
pub fn execute_trial_run(
    config: Config,
    file: &str,
    input: &Path,
    written: RecordFileFormat,
    lineage: bool,
    stop: &Arc<AtomicBool>,
    watcher: &dyn ReadProgressWatcher,
) -> Result<TrialRun, Failure> {
    if let Some(at) = config.join.iter().position(|join| join.topic.is_some()) {
        return Err(Failure::Usage(anyhow!(
            "{file}: join[{at}].topic: a trial run reads only files, but the profiles of {:?} are in a topic (use a copy of the configuration whose join[{at}] names a file in path)",
            config.join[at].name
        )));
    }
    let directory = temporary_directory("rehearsal")?;
    let config = redirect_to_files(config, input, written, directory.path());
    let checked = CheckedConfig::new(config, file)?;
    let (config, schema, telemetry) = (Arc::clone(&checked.config), Arc::clone(&checked.schema), checked.telemetry());
    let names: Vec<String> = match config.sink.rows {
        _ if !config.release.fragments => Vec::new(),
        RowContent::Fragments => checked.shapes.iter().map(|shape| shape.name.clone()).collect(),
        RowContent::Joined => vec![JOINED_OUTPUT.to_owned()],
    };
    let is_alone = names.len() + config.series.len() == 1;
    let placed = |name: &String| (name.clone(), SinkConfig::file_of(&config.sink.path, name, is_alone));
    let outputs = names.iter().map(placed).collect();
    let series = config.series.iter().map(|series| placed(&series.name)).collect();
    let (shapes, terms) = (checked.shapes.clone(), checked.series.clone());
    let lineage = lineage.then(|| directory.path().join("lineage.ndjson"));
    let options = RunOptions { lineage, ..RunOptions::default() };
    if stop.load(Ordering::Acquire) {
        return Err(stopped_failure(input));
    }
    run_daemon(checked, &options, &telemetry, stop, watcher, None)?;
    if stop.load(Ordering::Acquire) {
        return Err(stopped_failure(input));
    }
    Ok(TrialRun { directory, config, schema, shapes, terms, telemetry, outputs, series })
}

fn stopped_failure(input: &Path) -> Failure {
    Failure::Running(anyhow!("stopped before the end of {}", input.display()))
}

impl TrialRun {
    /// Returns the number of lines and the first `most`.
    pub fn read_first_lines(path: &Path, most: usize) -> anyhow::Result<(u64, Vec<String>)> {
        let file = match std::fs::File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((0, Vec::new())),
            Err(error) => return Err(error.into()),
        };
        let (mut count, mut first) = (0, Vec::new());
        for line in BufReader::new(file).lines() {
            let line = line?;
            count += 1;
            if first.len() < most {
                first.push(line);
            }
        }
        Ok((count, first))
    }

    /// Returns the path of dead letters, if any.
    #[must_use]
    pub fn dead_letters(&self) -> PathBuf {
        self.directory.path().join("dead-letters.ndjson")
    }

    /// Returns the path of the lineage, if requested.
    #[must_use]
    pub fn lineage(&self) -> PathBuf {
        self.directory.path().join("lineage.ndjson")
    }
}

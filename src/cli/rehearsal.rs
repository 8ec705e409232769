//! A run that nobody keeps: the real pipeline over a file, into a directory that goes with the command.

use super::outcome::Failure;
use super::stopping::Temporary;
use crate::anonymity::planner::GroupShape;
use crate::anonymity::series::Terms;
use crate::config::{Config, Format, JOINED, Rows, Sink, SinkKind, SourceKind};
use crate::daemon::run::{Options, run as run_daemon};
use crate::daemon::stream::run::Watcher;
use crate::io::file::{separator_of, telling};
use crate::start::checked::Checked;
use crate::telemetry::Telemetry;
use anyhow::{Context, anyhow};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use throng_core::values::schema::Schema;

/// Nobody looks at how far the run is.
pub struct Silent;

impl Watcher for Silent {
    fn read(&self, _: u64) {}
}

/// Makes a directory of mode 0700 that is removed when it goes out of use; `what` is part of its name.
pub fn temporary_directory(what: &str) -> Result<Temporary, Failure> {
    let made = tempfile::Builder::new().prefix(&format!("throng-{what}-")).tempdir();
    Ok(Temporary::of(made.context("no temporary directory can be made")?))
}

/// A run that has ended; what it wrote goes with it.
pub struct Rehearsal {
    directory: Temporary,
    /// As it was run.
    pub config: Arc<Config>,
    /// The schema of the records.
    pub schema: Arc<Schema>,
    /// The groups of its attributes.
    pub shapes: Vec<GroupShape>,
    /// The terms of its series.
    pub terms: Option<Arc<Terms>>,
    /// What was counted.
    pub telemetry: Telemetry,
    /// The groups, in their order, and the file of each; none where only series leave.
    pub outputs: Vec<(String, PathBuf)>,
    /// The series, in their order, and the file of each.
    pub series: Vec<(String, PathBuf)>,
}

/// How the records of a rehearsal are written down.
#[derive(Clone, Copy)]
pub struct Written {
    /// Their format.
    pub format: Format,
    /// Of CSV.
    pub separator: char,
}

/// How the records of `input` are written down: as its name says; else like the file that the configuration reads, or as JSON.
pub fn written(config: &Config, input: &Path) -> Result<Written, Failure> {
    let named = Format::named_by(&telling(input));
    let source = &config.source;
    Ok(match named {
        // What the configuration says of CSV is said of its own file.
        Some(Format::Csv) | None if source.kind == SourceKind::File && source.format() == Format::Csv => {
            Written { format: Format::Csv, separator: source.separator }
        }
        Some(Format::Csv) => {
            let separator = separator_of(input).map_err(|error| Failure::Usage(error.into()))?;
            Written { format: Format::Csv, separator: char::from(separator) }
        }
        Some(format) => Written { format, separator: ',' },
        None if source.kind == SourceKind::File => Written { format: source.format(), separator: source.separator },
        None => Written { format: Format::Json, separator: ',' },
    })
}

/// The configuration with its source and sink exchanged for files: nothing is read or written elsewhere, and no page is served.
fn over_files(mut config: Config, input: &Path, written: Written, directory: &Path) -> Config {
    if written.format != config.source.format() {
        // Its records are in the format of the source: here groups and plan come of the input.
        config.plan.prime = None;
    }
    config.source.kind = SourceKind::File;
    config.source.path = input.to_owned();
    config.source.format = Some(written.format);
    config.source.separator = written.separator;
    let rows = config.sink.rows;
    let dead_letter_path = Some(directory.join("dead-letters.ndjson"));
    config.sink =
        Sink { kind: SinkKind::File, path: directory.join("out.ndjson"), dead_letter_path, rows, ..Sink::default() };
    config.state.path = PathBuf::new();
    // The caller judges what the release represents.
    config.release.min_represented = 0.0;
    // No page is served.
    config.telemetry.listen.clear();
    config
}

/// Runs `config`, the file `file` in messages, over `input` to its end, or until `stop` is set.
///
/// # Errors
/// Where the configuration or the input does not fit, where profiles are in a topic, and where the run fails or is stopped.
pub fn rehearse(
    config: Config,
    file: &str,
    input: &Path,
    written: Written,
    lineage: bool,
    stop: &Arc<AtomicBool>,
) -> Result<Rehearsal, Failure> {
    if let Some(at) = config.join.iter().position(|join| join.topic.is_some()) {
        return Err(Failure::Usage(anyhow!(
            "{file}: join[{at}].topic: a trial reads files alone, and the profiles of {:?} are in a topic (try a copy of the configuration whose join[{at}] names a file in path)",
            config.join[at].name
        )));
    }
    let directory = temporary_directory("rehearsal")?;
    let config = over_files(config, input, written, directory.path());
    let checked = Checked::new(config, file)?;
    let (config, schema, telemetry) = (Arc::clone(&checked.config), Arc::clone(&checked.schema), checked.telemetry());
    let names: Vec<String> = match config.sink.rows {
        _ if !config.release.fragments => Vec::new(),
        Rows::Fragments => checked.shapes.iter().map(|shape| shape.name.clone()).collect(),
        Rows::Joined => vec![JOINED.to_owned()],
    };
    let is_alone = names.len() + config.series.len() == 1;
    let placed = |name: &String| (name.clone(), Sink::file_of(&config.sink.path, name, is_alone));
    let outputs = names.iter().map(placed).collect();
    let series = config.series.iter().map(|series| placed(&series.name)).collect();
    let (shapes, terms) = (checked.shapes.clone(), checked.series.clone());
    let lineage = lineage.then(|| directory.path().join("lineage.ndjson"));
    let options = Options { lineage, ..Options::default() };
    if stop.load(Ordering::Acquire) {
        return Err(stopped(input));
    }
    run_daemon(checked, &options, &telemetry, stop, &Silent, None)?;
    if stop.load(Ordering::Acquire) {
        return Err(stopped(input));
    }
    Ok(Rehearsal { directory, config, schema, shapes, terms, telemetry, outputs, series })
}

fn stopped(input: &Path) -> Failure {
    Failure::Running(anyhow!("stopped before the end of {}", input.display()))
}

impl Rehearsal {
    /// The lines of one output: how many, and the first `most` of them.
    pub fn lines(path: &Path, most: usize) -> anyhow::Result<(u64, Vec<String>)> {
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

    /// Where the dead letters are, if there are any.
    #[must_use]
    pub fn dead_letters(&self) -> PathBuf {
        self.directory.path().join("dead-letters.ndjson")
    }

    /// Where the lineage is, if there is one.
    #[must_use]
    pub fn lineage(&self) -> PathBuf {
        self.directory.path().join("lineage.ndjson")
    }
}

//! Pipeline over files (a job) or standard input (a stream).

use super::file_source::{FileReadAhead, FileReader};
use super::pipeline_context::PipelineContext;
use super::profile_start::read_initial_profiles;
use super::source::SourceFailure;
use super::stream_loop::{ReadProgressWatcher, StreamError, StreamLoop};
use crate::config::{Config, JOINED_OUTPUT, RecordFormat, RowContent, SinkKind};
use crate::daemon::engine::Engine;
use crate::daemon::engine::build::assemble::{AssembledEngine, assemble, state_clock};
use crate::daemon::run_error::RunError;
use crate::daemon::state::clock::StateClock;
use crate::io::file::sink::{FileSink, LineageNames, NullFileSink, SeriesColumns, refuse_replacement};
use crate::io::file::{
    FileReadSettings, FileSnapshot, FileSource, GroupColumns, OutputColumn, StopFlag, content_digest_of,
};
use crate::start::checked_config::{CheckedConfig, policy_files};
use crate::start::memory_budget;
use crate::start::record_formats::{codec_limits, fields, file_format};
use crate::start::run_findings::RunFinding;
use crate::telemetry::{ColumnsDropped, ShareScope, Telemetry};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use throng_core::plan::GroupShape;
use throng_core::printable::percent;
use throng_core::stream::release_sink::BatchSink;
use throng_core::values::schema::Schema;
use throng_kafka::connection::KafkaCluster;
use throng_kafka::transaction::UNTRUTHFUL_HEADER;

/// Runs over files or standard input until the end or `stop`. A job replaces its outputs before its state; after a kill
/// in between, the next run repeats the release identically.
pub fn run_file(
    checked: CheckedConfig,
    supervision: &mut PipelineContext<'_>,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
    watcher: &dyn ReadProgressWatcher,
) -> Result<Vec<RunFinding>, RunError> {
    let options = supervision.options;
    let (config, schema, file) = (Arc::clone(&checked.config), Arc::clone(&checked.schema), checked.file.clone());
    let policy = policy_files(&config, &file);
    if let Some(problem) = options.lineage.as_deref().and_then(|path| config.lineage_problem(path, &policy)) {
        return Err(RunError::Configuration(vec![problem]));
    }
    let is_job = config.is_job();
    let format = file_format(config.source.format(), config.source.separator);
    let standing = is_job.then(|| FileSnapshot::of_regular(&config.source.path, format)).transpose()?;
    let files = standing.as_ref().map(FileSnapshot::files);
    let input = files.as_deref().map(|files| recorded_digest(&checked, files, stop)).transpose()?.flatten();
    let names = LineageNames {
        source: config.source.path.display().to_string(),
        groups: checked.shapes.iter().map(|shape| shape.name.clone()).collect(),
        attributes: schema.attributes.iter().map(|a| a.name.clone()).collect(),
    };
    let columns = if config.release.fragments { output_columns(&config, &checked.shapes, &schema) } else { Vec::new() };
    let series = checked.series.as_deref().map_or_else(Vec::new, SeriesColumns::of);
    telemetry.set_readiness(|r| r.broker = true);
    // Fragments of a pending intent count as released.
    let AssembledEngine { mut engine, .. } = assemble(checked, telemetry, options.accept_rewind, &mut |_, _| Ok(true))?;
    engine.watch_store(stop);
    if is_job {
        record_job_input(&mut engine, &config, input)?;
        if config.sink.kind == SinkKind::File && engine.has_published_series() {
            refuse_replacement(&config, &columns, &series, options.lineage.as_deref())?;
        }
    }
    let clock = state_clock(&config, options, &engine, None);
    let clock = if is_job { clock.with_fixed_time() } else { clock };
    let no_cluster = KafkaCluster::new("", BTreeMap::new()); // the profiles of a file source are in files, too
    if !read_initial_profiles(&mut engine, None, (&config, &schema, &file), &no_cluster, telemetry, stop)? {
        return if is_job { Err(RunError::Interrupted) } else { Ok(engine.findings()) };
    }
    let Some(source) = open_source(&config, &schema, files, telemetry, stop)? else {
        return if is_job { Err(RunError::Interrupted) } else { Ok(engine.findings()) };
    };
    telemetry.set_readiness(|r| r.assignment = true);
    let consumed_before = telemetry.status().totals.consumed;
    let mut sink = match config.sink.kind {
        SinkKind::File => {
            Some(open_sink((&config, &schema), (&columns, &series), names, options.lineage.as_deref(), &engine)?)
        }
        SinkKind::None | SinkKind::Kafka => None,
    };
    let reader = FileReader {
        source,
        width: schema.attributes.len(),
        limits: memory_budget::batch_limits(&config, &schema),
        subject: schema.subject_attribute(),
        joined: schema.joined_attributes(),
        is_whole: config.batch.is_whole,
        watcher,
        stop,
    };
    (supervision.on_start)()?;
    stream_file(reader, (&mut engine, &mut sink), clock, &config, supervision, telemetry)?;
    if is_job && stop.load(Ordering::Acquire) {
        return Err(RunError::Interrupted);
    }
    let findings = engine.findings();
    if let Some(standing) = standing {
        standing.reject_changed_files()?;
        let consumed = telemetry.status().totals.consumed - consumed_before;
        check_loss(telemetry, &findings, (consumed, options.max_lost_share), &config.source.path)?;
        if let Some(what) = share_refusal(telemetry) {
            return Err(RunError::Unrepresented { what, findings });
        }
    }
    if let Some(sink) = sink {
        sink.finish()?;
    }
    engine.keep_copy()?;
    Ok(findings)
}

/// Reads on another thread while this one releases.
fn stream_file(
    reader: FileReader<'_>,
    (engine, sink): (&mut Engine, &mut Option<FileSink>),
    clock: StateClock,
    config: &Config,
    supervision: &PipelineContext<'_>,
    telemetry: &Telemetry,
) -> Result<(), RunError> {
    let stop = reader.stop;
    let outcome = std::thread::scope(|scope| {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        scope.spawn(move || reader.read_all(&sender));
        let mut source = FileReadAhead::new(receiver, config.is_job(), stop);
        let mut nothing = NullFileSink;
        let sink: &mut dyn BatchSink = sink.as_mut().map_or(&mut nothing, |sink| sink);
        StreamLoop {
            source: &mut source,
            engine,
            sink,
            telemetry,
            clock,
            max_age: config.batch.max_age,
            retry: None,
            erasures: supervision.erasures,
            erasure_topic: None,
            idle: None,
            assigned: BTreeSet::new(),
            restore: None,
            next: supervision.next,
            stop,
        }
        .run()
    });
    match outcome {
        Err(StreamError::Source(SourceFailure::Stopped)) => Err(RunError::Interrupted),
        outcome => Ok(outcome?),
    }
}

/// Refuses a repeated input.
fn record_job_input(engine: &mut Engine, config: &Config, input: Option<[u8; 32]>) -> Result<(), RunError> {
    if let Some(input) = input
        && !engine.begin_job(&input)?
    {
        return Err(RunError::SameInput { path: config.source.path.clone(), state: config.state.path.clone() });
    }
    Ok(())
}

fn check_loss(
    telemetry: &Telemetry,
    findings: &[RunFinding],
    (consumed, most): (u64, Option<f64>),
    path: &Path,
) -> Result<(), RunError> {
    let Some(most) = most else { return Ok(()) };
    if consumed == 0 {
        return Err(RunError::NoRecords { path: path.to_owned() });
    }
    match loss_refusal(telemetry, ShareScope::WholeState, findings, most) {
        Some(what) => Err(RunError::Lost { what, findings: findings.to_vec() }),
        None => Ok(()),
    }
}

/// The digest must never be used as a key: it allows an attacker that knows all but one value to test candidates.
fn recorded_digest(
    checked: &CheckedConfig,
    files: &[PathBuf],
    stop: &AtomicBool,
) -> Result<Option<[u8; 32]>, RunError> {
    let (config, schema) = (&checked.config, &checked.schema);
    let has_release_log = schema.subject.is_some() && !config.privacy.longest_delay().is_zero();
    if !config.has_state() || !has_release_log {
        return Ok(None);
    }
    content_digest_of(files, stop)?.map(Some).ok_or(RunError::Interrupted)
}

/// Returns the message for a loss of more than the share `most`, or of all.
pub fn loss_refusal(telemetry: &Telemetry, of: ShareScope, findings: &[RunFinding], most: f64) -> Option<String> {
    let swallowed = findings.iter().map(RunFinding::swallowed_lines).sum();
    loss_message(telemetry.share_lost(of, swallowed), swallowed, most, telemetry.status().totals.released > 0)
}

/// Returns the message for less than `release.min_represented`.
pub fn share_refusal(telemetry: &Telemetry) -> Option<String> {
    let represented = telemetry.represented();
    let found = represented.below_minimum()?;
    Some(format!(
        "the release represents {} of the records{}, but release.min_represented requires {}",
        percent(found.share()),
        found.note(),
        percent(represented.minimum)
    ))
}

/// Returns the message of [`loss_refusal`]. `swallowed` records are lines inside an unclosed quote; `before` is true
/// after other releases.
pub fn loss_message(lost: f64, swallowed: u64, most: f64, before: bool) -> Option<String> {
    if lost <= most && lost < 1.0 {
        return None;
    }
    let lines = match swallowed {
        0 => String::new(),
        lines => format!(", including {lines} line(s) inside an unclosed quote"),
    };
    Some(if lost >= 1.0 {
        let which = if before { "every record of this run" } else { "every record" };
        format!("{which} was lost{lines}: none was released (see the notes above)")
    } else {
        format!("{} of the records were lost{lines}, but --fail-above allows {}", percent(lost), percent(most))
    })
}

fn output_columns(config: &Config, shapes: &[GroupShape], schema: &Schema) -> Vec<GroupColumns> {
    let columns = |name: &str, shapes: &[GroupShape]| {
        let attributes: BTreeSet<usize> = shapes.iter().flat_map(|shape| shape.without_ladder().attributes()).collect();
        let columns = OutputColumn::of_attributes(attributes.iter().map(|&a| schema.attributes[a].as_ref()));
        GroupColumns { name: name.to_owned(), columns }
    };
    match config.sink.rows {
        RowContent::Fragments => shapes.iter().map(|shape| columns(&shape.name, std::slice::from_ref(shape))).collect(),
        RowContent::Joined => vec![columns(JOINED_OUTPUT, shapes)],
    }
}

fn open_source(
    config: &Config,
    schema: &Schema,
    files: Option<Vec<PathBuf>>,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
) -> Result<Option<FileSource>, RunError> {
    let (path, format) = (&config.source.path, config.source.format());
    let (limits, unknown) = codec_limits(config);
    let reading = FileReadSettings {
        format: file_format(format, config.source.separator),
        fields: fields(schema, format == RecordFormat::Csv),
        limits,
        unknown,
        stop: StopFlag::new(Arc::clone(stop)),
    };
    let opened = match files {
        Some(files) => FileSource::reading_files(path, files, reading),
        None => FileSource::reading(path, reading),
    };
    let source = match opened {
        Err(error) if error.is_stop() => return Ok(None),
        source => source?.selecting(&schema.attributes)?,
    };
    let mut absent = source.absent_attributes();
    absent.retain(|a| schema.attributes[*a].from.join().is_none());
    if !absent.is_empty() {
        let attributes = absent.into_iter().map(|a| schema.attributes[a].name.clone()).collect();
        return Err(RunError::NoColumn { path: source.file().to_owned(), attributes });
    }
    ColumnsDropped { path, columns: source.unknown_columns() }.emit(telemetry);
    Ok(Some(source))
}

/// If the schema alters no attribute, earlier alterations may be in any output.
fn untruthful_marks(outputs: &[GroupColumns], schema: &Schema, how: Option<&str>) -> Vec<Option<String>> {
    let is_altered = |column: &OutputColumn| {
        schema.position(&column.name).is_some_and(|a| schema.attributes[a].treatment.is_untruthful())
    };
    let altered: Vec<bool> = outputs.iter().map(|output| output.columns.iter().any(is_altered)).collect();
    let any = altered.contains(&true);
    let text = |is_altered: bool| how.filter(|_| is_altered || !any).map(|how| format!("{UNTRUTHFUL_HEADER}: {how}\n"));
    altered.into_iter().map(text).collect()
}

fn open_sink(
    (config, schema): (&Config, &Schema),
    (outputs, series): (&[GroupColumns], &[SeriesColumns]),
    names: LineageNames,
    lineage: Option<&Path>,
    engine: &Engine,
) -> Result<FileSink, RunError> {
    let format = file_format(config.sink.format(), config.source.separator);
    let untruthful = untruthful_marks(outputs, schema, engine.untruthful());
    Ok(FileSink::open(config, format, outputs, series, lineage, untruthful, names)?)
}

//! A run over files, which is a job, or over standard input, which is a stream: its parts, put together.

use super::file_source::{FileReadAhead, FileReader};
use super::profiles;
use super::run::{Run, StreamError, Watcher};
use super::source::SourceFailure;
use super::supervision::Supervision;
use crate::anonymity::planner::GroupShape;
use crate::config::{Config, Format, JOINED, Rows, SinkKind};
use crate::daemon::engine::Engine;
use crate::daemon::engine::assemble::{Assembled, assemble, state_clock};
use crate::daemon::run_error::RunError;
use crate::io::file::sink::{FileSink, Names, NoSink, SeriesColumns, refuse_replacement};
use crate::io::file::{FileSource, GroupColumns, Reading, Standing, StopFlag, content_digest_of};
use crate::io::kafka::connection::Cluster;
use crate::io::kafka::transaction::UNTRUTHFUL;
use crate::release::sink::Sink;
use crate::start::checked::{Checked, policy_files};
use crate::start::findings::Finding;
use crate::start::memory;
use crate::start::reading::{codec_limits, fields, file_format};
use crate::telemetry::{ColumnsDropped, Settled, Telemetry};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use throng_core::values::schema::Schema;

/// Runs over files or standard input to the end, or until `stop`.
///
/// A job writes beside its outputs and replaces them at the end, then keeps its state, where it has one: a run that ends in between has
/// released what the state does not know, and the next one over the same files does the same again.
pub fn run_file(
    checked: Checked,
    supervision: &mut Supervision<'_>,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
    watcher: &dyn Watcher,
) -> Result<Vec<Finding>, RunError> {
    let options = supervision.options;
    let (config, schema, file) = (Arc::clone(&checked.config), Arc::clone(&checked.schema), checked.file.clone());
    let policy = policy_files(&config, &file);
    if let Some(problem) = options.lineage.as_deref().and_then(|path| config.lineage_problem(path, &policy)) {
        return Err(RunError::Configuration(vec![problem]));
    }
    let is_job = config.is_job();
    let format = file_format(config.source.format(), config.source.separator);
    let standing = is_job.then(|| Standing::of_regular(&config.source.path, format)).transpose()?;
    let files = standing.as_ref().map(Standing::files);
    let input = files.as_deref().map(|files| noted_digest(&checked, files, stop)).transpose()?.flatten();
    let names = Names {
        source: config.source.path.display().to_string(),
        groups: checked.shapes.iter().map(|shape| shape.name.clone()).collect(),
        attributes: schema.attributes.iter().map(|a| a.name.clone()).collect(),
    };
    let columns = if config.release.fragments { output_columns(&config, &checked.shapes, &schema) } else { Vec::new() };
    let series = checked.series.as_deref().map_or_else(Vec::new, SeriesColumns::of);
    telemetry.set_readiness(|r| r.broker = true);
    // A batch that was about to leave when a process ended may have: its lines count as released.
    let Assembled { mut engine, .. } = assemble(checked, telemetry, options.accept_rewind, &mut |_, _| Ok(true))?;
    engine.heed(stop);
    if is_job {
        begin_job(&mut engine, &config, input)?;
        if config.sink.kind == SinkKind::File && engine.has_published_series() {
            refuse_replacement(&config, &columns, &series, options.lineage.as_deref())?;
        }
    }
    let clock = state_clock(&config, options, &engine, None);
    let clock = if is_job { clock.at_rest() } else { clock };
    // Profiles beside a file of records are in files, too.
    let no_cluster = Cluster::new("", BTreeMap::new());
    if !profiles::begin(&mut engine, None, (&config, &schema, &file), &no_cluster, telemetry, stop)? {
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
        limits: memory::closing(&config, &schema),
        subject: schema.subject_attribute(),
        joined: schema.joined(),
        is_whole: config.batch.is_whole,
        watcher,
        stop,
    };
    (supervision.on_start)()?;
    let outcome = std::thread::scope(|scope| {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        scope.spawn(move || reader.read_all(&sender));
        let mut source = FileReadAhead::new(receiver, is_job, stop);
        let mut nothing = NoSink;
        let sink: &mut dyn Sink = sink.as_mut().map_or(&mut nothing, |sink| sink);
        Run {
            source: &mut source,
            engine: &mut engine,
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
        Err(StreamError::Source(SourceFailure::Stopped)) => return Err(RunError::Interrupted),
        outcome => outcome?,
    }
    // The run may have ended without its last batch.
    if is_job && stop.load(Ordering::Acquire) {
        return Err(RunError::Interrupted);
    }
    let findings = engine.findings();
    if let Some(standing) = standing {
        standing.refuse_changed_files()?;
        let consumed = telemetry.status().totals.consumed - consumed_before;
        refuse_loss(telemetry, &findings, (consumed, options.most_lost), &config.source.path)?;
        if let Some(what) = refused_share(telemetry) {
            return Err(RunError::Unrepresented { what, findings });
        }
    }
    if let Some(sink) = sink {
        sink.finish()?;
    }
    engine.keep_copy()?;
    Ok(findings)
}

/// Notes the input of a job. Refuses one that the state has taken in already.
fn begin_job(engine: &mut Engine, config: &Config, input: Option<[u8; 32]>) -> Result<(), RunError> {
    if let Some(input) = input
        && !engine.begin_job(&input)?
    {
        return Err(RunError::SameInput { path: config.source.path.clone(), state: config.state.path.clone() });
    }
    Ok(())
}

/// Refuses a job that has consumed nothing, or lost more than the share `most`.
fn refuse_loss(
    telemetry: &Telemetry,
    findings: &[Finding],
    (consumed, most): (u64, Option<f64>),
    path: &Path,
) -> Result<(), RunError> {
    let Some(most) = most else { return Ok(()) };
    if consumed == 0 {
        return Err(RunError::NoRecords { path: path.to_owned() });
    }
    match refused_loss(telemetry, Settled::ByTheState, findings, most) {
        Some(what) => Err(RunError::Lost { what, findings: findings.to_vec() }),
        None => Ok(()),
    }
}

/// Returns the digest of a job's `files` that its state is to note; none where it notes none. The digest is never a key: whoever
/// knows the input but for one value could try candidates for that value.
fn noted_digest(checked: &Checked, files: &[PathBuf], stop: &AtomicBool) -> Result<Option<[u8; 32]>, RunError> {
    let (config, schema) = (&checked.config, &checked.schema);
    let has_release_log = schema.subject.is_some() && !config.privacy.longest_delay().is_zero();
    if !config.has_state() || !has_release_log {
        return Ok(None);
    }
    content_digest_of(files, stop)?.map(Some).ok_or(RunError::Interrupted)
}

/// What is said of a run that has lost more than the share `most` of its records, or all of them; none of another.
pub fn refused_loss(telemetry: &Telemetry, of: Settled, findings: &[Finding], most: f64) -> Option<String> {
    let swallowed = findings.iter().map(Finding::swallowed_lines).sum();
    loss(telemetry.share_lost(of, swallowed), swallowed, most, telemetry.status().totals.released > 0)
}

/// The message of a release that represents less than `release.min_represented`; none of another.
pub fn refused_share(telemetry: &Telemetry) -> Option<String> {
    let represented = telemetry.represented();
    let found = represented.too_little()?;
    let (share, minimum) = (found.share() * 100.0, represented.minimum * 100.0);
    Some(format!(
        "the release represents {share:.1} % of the records{}, and release.min_represented asks for {minimum:.0} %",
        found.note()
    ))
}

/// As [`refused_loss`], where the share `lost` is known. `swallowed` of the lost ones are lines inside a quote that is likely to be open
/// by mistake; `before`: something of others had been released.
pub fn loss(lost: f64, swallowed: u64, most: f64, before: bool) -> Option<String> {
    if lost <= most && lost < 1.0 {
        return None;
    }
    let lines = match swallowed {
        0 => String::new(),
        lines => format!(", counting {lines} line(s) that a quote left open has swallowed"),
    };
    Some(if lost >= 1.0 {
        let which = if before { "every record that this run has settled" } else { "every record" };
        format!("{which} was lost{lines}: nothing of any was released (the notes above say why)")
    } else {
        let (lost, most) = (lost * 100.0, most * 100.0);
        format!("{lost:.1} % of the records were lost{lines}, and --fail-above allows {most:.1} %")
    })
}

/// The columns of each output.
fn output_columns(config: &Config, shapes: &[GroupShape], schema: &Schema) -> Vec<GroupColumns> {
    let columns = |name: &str, shapes: &[GroupShape]| {
        let attributes: BTreeSet<usize> = shapes.iter().flat_map(|shape| shape.without_ladder().attributes()).collect();
        let columns = attributes.into_iter().map(|a| schema.attributes[a].name.clone()).collect();
        GroupColumns { name: name.to_owned(), columns }
    };
    match config.sink.rows {
        Rows::Fragments => shapes.iter().map(|shape| columns(&shape.name, std::slice::from_ref(shape))).collect(),
        Rows::Joined => vec![columns(JOINED, shapes)],
    }
}

/// The source, of a job its `files`; none where the stream is to stop before it has begun.
fn open_source(
    config: &Config,
    schema: &Schema,
    files: Option<Vec<PathBuf>>,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
) -> Result<Option<FileSource>, RunError> {
    let (path, format) = (&config.source.path, config.source.format());
    let (limits, unknown) = codec_limits(config);
    let reading = Reading {
        format: file_format(format, config.source.separator),
        fields: fields(schema, format == Format::Csv),
        limits,
        unknown,
        stop: StopFlag::new(Arc::clone(stop)),
    };
    let opened = match files {
        Some(files) => FileSource::reading_files(path, files, reading),
        None => FileSource::reading(path, reading),
    };
    let source = match opened {
        // The header of a pipe was waited for.
        Err(error) if error.is_stop() => return Ok(None),
        source => source?,
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

/// By output, the mark of one that may be untrue for the reason `how`: it has an altered attribute. Where the schema alters none, what was
/// altered before is in the state, and may be in any of them.
fn marks(outputs: &[GroupColumns], schema: &Schema, how: Option<&str>) -> Vec<Option<String>> {
    let is_altered =
        |column: &String| schema.position(column).is_some_and(|a| schema.attributes[a].treatment.is_untruthful());
    let altered: Vec<bool> = outputs.iter().map(|output| output.columns.iter().any(is_altered)).collect();
    let any = altered.contains(&true);
    let text = |is_altered: bool| how.filter(|_| is_altered || !any).map(|how| format!("{UNTRUTHFUL}: {how}\n"));
    altered.into_iter().map(text).collect()
}

fn open_sink(
    (config, schema): (&Config, &Schema),
    (outputs, series): (&[GroupColumns], &[SeriesColumns]),
    names: Names,
    lineage: Option<&Path>,
    engine: &Engine,
) -> Result<FileSink, RunError> {
    let format = file_format(config.sink.format(), config.source.separator);
    let untruthful = marks(outputs, schema, engine.untruthful());
    Ok(FileSink::open(config, format, outputs, series, lineage, untruthful, names)?)
}

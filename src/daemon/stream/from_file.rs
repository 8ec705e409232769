//! A daemon whose source is a file: its parts, put together.

use super::file_source::{FileClosing, FileReadAhead, read_all};
use super::run::{Run, Watcher};
use super::to_kafka::{PATIENCE, UNTRUTHFUL, check_marker, has_left, outputs, sink_cluster};
use crate::codec::Field;
use crate::config::{Config, Format, SinkKind};
use crate::daemon::engine::assemble::{Assembled, Options, assemble, state_clock};
use crate::daemon::run_error::RunError;
use crate::daemon::state::directory::StateError;
use crate::io::file::delivery::{FileDelivery, NoDelivery, dead_letter_length, group_lengths, lineage_length};
use crate::io::file::{
    self, DeadLetterFile, FileMarker, FileSink, FileSource, GroupColumns, LineageFile, Places, SinkError,
    SourcePosition,
};
use crate::io::kafka::connection::KafkaFailure;
use crate::io::kafka::marker::{self, Marker};
use crate::io::kafka::transaction::{GroupMetadata, TransactionalSink};
use crate::records::schema::Schema;
use crate::release::sink::Sink;
use crate::start::findings::Finding;
use crate::start::reading::{codec_limits, fields, file_format};
use crate::start::shapes::group_shapes;
use crate::telemetry::{ColumnsDropped, Telemetry};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn closing(config: &Config, schema: &Schema) -> FileClosing {
    FileClosing {
        max_records: config.batch.max_records,
        max_bytes: config.batch.max_bytes,
        max_wait: config.batch.max_wait,
        max_age: config.batch.max_age,
        min_subjects: config.min_subjects(),
        subject: schema.subject,
    }
}

/// Runs over a file to its end, or until `stop`.
pub fn run_file(
    config: &Config,
    options: &Options,
    telemetry: &Telemetry,
    schema: &Arc<Schema>,
    stop: &Arc<AtomicBool>,
    watcher: &dyn Watcher,
) -> Result<Vec<Finding>, RunError> {
    if let Some(problem) = options.lineage.as_deref().and_then(|path| config.lineage_problem(path)) {
        return Err(RunError::Configuration(vec![problem]));
    }
    let shapes = group_shapes(config, schema, &options.file).map_err(RunError::Configuration)?;
    telemetry.set_readiness(|r| r.broker = true);
    let format = config.source.format();
    let fields: Vec<Field> = fields(schema, format == Format::Csv);
    let (limits, unknown) = codec_limits(config);
    let columns: Vec<GroupColumns> = shapes
        .iter()
        .map(|s| {
            let mut attributes: Vec<usize> = [&s.quasi[..], &s.sensitive, &s.insensitive].concat();
            attributes.sort_unstable();
            GroupColumns {
                name: s.name.clone(),
                columns: attributes.into_iter().map(|a| schema.attributes[a].name.clone()).collect(),
            }
        })
        .collect();
    let names: Vec<String> = shapes.iter().map(|s| s.name.clone()).collect();
    let attributes: Vec<String> = schema.attributes.iter().map(|a| a.name.clone()).collect();

    let mut kafka: Option<(TransactionalSink, Marker)> = None;
    let Assembled { mut engine, intent, made_with, .. } =
        assemble(config, schema, shapes, telemetry, options.accept_rewind, &mut |intent, id| {
            // The commit point of files is the state itself: an intent still pending did not leave. Into a topic the
            // marker decides.
            if config.sink.kind != SinkKind::Kafka {
                return Ok(false);
            }
            let (sink, last) = open_file_to_kafka(config, id, attributes.clone(), stop)
                .map_err(|e| StateError::Marker { path: config.state.path.clone(), what: e.to_string() })?;
            kafka = Some((sink, last));
            has_left(config, intent, last)
        })?;
    engine.heed(stop);
    let clock = state_clock(config, options, &engine, intent.as_ref());
    let start = engine.progress().clone();
    let position = SourcePosition {
        records: start.positions.get(&(0, 0)).map_or(0, |n| u64::try_from(*n).unwrap_or(0)),
        bytes: start.source_bytes,
    };
    let source = FileSource::open(
        &config.source.path,
        file_format(format, config.source.separator),
        &fields,
        limits,
        unknown,
        position,
    )?;
    let absent = source.absent_attributes();
    if !absent.is_empty() {
        let attributes = absent.into_iter().map(|a| schema.attributes[a].name.clone()).collect();
        return Err(RunError::NoColumn { path: config.source.path.clone(), attributes });
    }
    ColumnsDropped { path: &config.source.path, columns: source.unknown_columns() }.emit(telemetry);
    telemetry.set_readiness(|r| r.assignment = true);
    let mut sink: Box<dyn Sink> = match config.sink.kind {
        SinkKind::None => Box::new(NoDelivery { committed: start.lengths.clone() }),
        SinkKind::Kafka => {
            let (opened, last) = match kafka {
                Some(opened) => opened,
                None => open_file_to_kafka(config, &engine.state_id(), attributes, stop)?,
            };
            check_marker(config, engine.progress().sequence, last)?;
            Box::new(opened)
        }
        SinkKind::File => {
            let format = file_format(config.sink.format(), config.sink.separator);
            let lengths = start.lengths.clone();
            let places = Places {
                path: &config.sink.path,
                groups: &columns,
                format,
                dead_letters: config.sink.dead_letter_path.as_deref(),
                lineage: options.lineage.as_deref(),
            };
            places.check(&lengths)?;
            let marker = config.sink.marker_path();
            let marker =
                marker.map(|path| FileMarker::open(&path, &engine.state_id(), engine.marks(), options.accept_rewind));
            let marker = marker.transpose().map_err(|error| match error {
                // Who has the marker open has the outputs open.
                SinkError::Locked { .. } => SinkError::Locked { path: config.sink.path.clone() },
                error => error,
            })?;
            mark_as_untruthful(config)?;
            let mut delivery = FileDelivery::new(
                FileSink::open(&config.sink.path, &columns, format, &group_lengths(&lengths))?,
                config
                    .sink
                    .dead_letter_path
                    .as_ref()
                    .map(|path| DeadLetterFile::open(path, dead_letter_length(&lengths)))
                    .transpose()?,
                options.lineage.as_ref().map(|path| LineageFile::open(path, lineage_length(&lengths))).transpose()?,
                names,
                attributes,
                config.source.path.display().to_string(),
                lengths,
            );
            if let Some(marker) = marker {
                engine.found_marked(marker.found());
                delivery = delivery.with_marker(marker);
            }
            engine.begin(delivery.begin()?)?;
            Box::new(delivery)
        }
    };
    let (width, closing) = (schema.attributes.len(), closing(config, schema));
    let replayed = intent.as_ref().and_then(|i| i.ranges.first().and_then(|r| usize::try_from(r.to - r.from).ok()));
    std::thread::scope(|scope| {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        scope.spawn(move || read_all(source, width, closing, replayed, stop, &sender));
        let mut source = FileReadAhead::new(receiver, stop);
        let (engine, sink, max_age) = (&mut engine, &mut *sink, config.batch.max_age);
        Run { source: &mut source, engine, sink, telemetry, watcher, clock, max_age, retry: intent }.run()
    })?;
    let mut findings = engine.findings();
    let (before, after) = (start.totals.consumed, engine.progress().totals.consumed);
    if before > 0 && before == after {
        let source_path = config.source.path.display().to_string();
        findings.push(Finding::NothingNew { records: before, source_path, made_with: made_with.into() });
    } else if let Some(made_with) = made_with.filter(|k| before > 0 && *k != config.privacy.k as u64) {
        findings.push(Finding::OtherK { made_with: Some(made_with).into(), k: config.privacy.k });
    }
    Ok(findings)
}

/// A producer for a file source: no offsets to commit, the marker alone decides. Also the last committed batch.
fn open_file_to_kafka(
    config: &Config,
    id: &str,
    attributes: Vec<String>,
    stop: &Arc<AtomicBool>,
) -> Result<(TransactionalSink, Marker), KafkaFailure> {
    let cluster = sink_cluster(config);
    cluster.check_retention(&config.sink.topic, config.privacy.support_window, PATIENCE)?;
    let outputs = outputs(config, &cluster, Vec::new(), attributes)?;
    let transactional_id = format!("{}-{id}", config.source.group);
    let no_group: GroupMetadata = Arc::new(|| None);
    let commits = cluster.partitions(&[&config.sink.commits_topic], PATIENCE)?;
    let sink = TransactionalSink::open(&cluster, &transactional_id, outputs, no_group, Arc::clone(stop), PATIENCE)?;
    let last = marker::last_committed(&cluster, &config.sink.commits_topic, &transactional_id, commits[0], PATIENCE)?;
    Ok((sink, last))
}

/// Says beside the output files that values are exchanged between the records in them, before the first is written.
fn mark_as_untruthful(config: &Config) -> Result<(), RunError> {
    if !config.treatment.dampening || config.sink.path.as_os_str() == "-" {
        return Ok(());
    }
    let path = config.sink.mark_path();
    let (what, how) = UNTRUTHFUL;
    let text = format!("{what}: {how}\n");
    file::whole::write(&path, text.as_bytes()).map_err(|source| RunError::Mark { path, source })
}

//! A daemon whose source is a file: its parts, put together.

use super::file_source::{FileClosing, FileReadAhead, read_all};
use super::profiles;
use super::replace::Replacements;
use super::run::{Run, Watcher};
use super::to_kafka::{PATIENCE, check_marker, check_retention, has_left, outputs, transactional_id};
use crate::anonymity::planner::GroupShape;
use crate::config::{Config, Format, JOINED, Rows, SinkKind};
use crate::daemon::engine::Engine;
use crate::daemon::engine::assemble::{Assembled, Options, assemble, state_clock};
use crate::daemon::run_error::RunError;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::Progress;
use crate::io::closing::SharedLimits;
use crate::io::file::delivery::{
    FileDelivery, NoDelivery, certificates_length, dead_letter_length, group_lengths, lineage_length,
};
use crate::io::file::{
    self, CertificateFile, DeadLetterFile, FileBegun, FileMarker, FileSink, FileSource, GroupColumns, LineageFile,
    Places, Reading, Rotation, SinkError, SourcePosition, StopFlag,
};
use crate::io::kafka::GroupMetadata;
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::marker::{self, Marker};
use crate::io::kafka::transaction::{TransactionalSink, UNTRUTHFUL};
use crate::records::schema::Schema;
use crate::release::sink::{Lengths, Sink};
use crate::start::checked::Checked;
use crate::start::clusters::sink_cluster;
use crate::start::findings::Finding;
use crate::start::reading::{codec_limits, fields, file_format};
use crate::start::registered::register;
use crate::telemetry::{ColumnsDropped, PassedOver, Telemetry};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn closing(limits: &SharedLimits, schema: &Schema) -> FileClosing {
    FileClosing { limits: limits.clone(), subject: schema.subject, joined: schema.joined() }
}

/// What every part of a daemon over a file takes part in.
struct Start<'a> {
    config: &'a Config,
    schema: &'a Schema,
    options: &'a Options,
    telemetry: &'a Telemetry,
    stop: &'a Arc<AtomicBool>,
    /// Names of the attributes, in the order of the schema.
    attributes: Vec<String>,
    /// Names of the groups.
    groups: Vec<String>,
    /// By output, what a line of it holds.
    columns: Vec<GroupColumns>,
}

/// Runs over a file to its end, or until `stop`.
pub fn run_file(
    mut checked: Checked,
    policies: &Replacements<'_>,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
    watcher: &dyn Watcher,
) -> Result<Vec<Finding>, RunError> {
    let options = policies.options;
    let (config, schema, file) = (Arc::clone(&checked.config), Arc::clone(&checked.schema), checked.file.clone());
    if let Some(problem) = options.lineage.as_deref().and_then(|path| config.lineage_problem(path)) {
        return Err(RunError::Configuration(vec![problem]));
    }
    if !register(&mut checked, telemetry, stop).map_err(RunError::Configuration)? {
        return Ok(Vec::new());
    }
    telemetry.set_readiness(|r| r.broker = true);
    let start = Start {
        config: &config,
        schema: &schema,
        options,
        telemetry,
        stop,
        attributes: schema.attributes.iter().map(|a| a.name.clone()).collect(),
        groups: checked.shapes.iter().map(|shape| shape.name.clone()).collect(),
        columns: output_columns(&config, &checked.shapes, &schema),
    };
    let mut topic = None;
    let Assembled { mut engine, intent, made_with, begun, .. } =
        assemble(checked, telemetry, options.accept_rewind, &mut |intent, id| {
            // The commit point of files is the state itself: an intent still pending did not leave. Into a topic the
            // marker decides.
            if config.sink.kind != SinkKind::Kafka {
                return Ok(false);
            }
            let (sink, last) = start
                .open_topic(id)
                .map_err(|e| StateError::Marker { path: config.state.path.clone(), what: e.to_string() })?;
            topic = Some((sink, last));
            has_left(&config, intent, last)
        })?;
    engine.heed(stop);
    let clock = state_clock(&config, options, &engine, intent.as_ref());
    let before = engine.progress().clone();
    if !profiles::begin(&mut engine, intent.as_ref(), (&config, &schema, &file), &no_cluster(), telemetry, stop)? {
        return Ok(engine.findings());
    }
    let pending = intent.as_ref().map_or(&[][..], |intent| &intent.begun);
    let Some(source) = start.open_source(&before, &begun, pending)? else { return Ok(engine.findings()) };
    if source.known_before().len() < begun.len() {
        engine.keep_begun(source.known_before())?;
    }
    telemetry.set_readiness(|r| r.assignment = true);
    let mut sink: Box<dyn Sink> = match config.sink.kind {
        SinkKind::None => Box::new(NoDelivery { committed: before.lengths.clone() }),
        SinkKind::Kafka => {
            let (opened, last) = match topic {
                Some(opened) => opened,
                None => start.open_topic(&engine.state_id())?,
            };
            check_marker(&config, engine.progress().sequence, last)?;
            Box::new(opened)
        }
        SinkKind::File => Box::new(start.open_files(&mut engine, &before.lengths, intent.is_some())?),
    };
    let (width, closing) = (schema.attributes.len(), closing(&policies.limits, &schema));
    let replayed = intent.as_ref().and_then(|i| i.ranges.first().and_then(|r| u64::try_from(r.to - r.from).ok()));
    std::thread::scope(|scope| {
        let (sender, receiver) = crossbeam_channel::bounded(1);
        scope.spawn(move || read_all(source, width, &closing, replayed, stop, &sender));
        let mut source = FileReadAhead::new(receiver, stop);
        let (engine, sink, max_age) = (&mut engine, &mut *sink, config.batch.max_age);
        Run {
            source: &mut source,
            engine,
            sink,
            telemetry,
            watcher,
            clock,
            max_age,
            retry: intent,
            erasures: policies.erasures,
            naming: None,
            policies: Some(policies),
            stop,
        }
        .run()
    })?;
    engine.tell_of_chain();
    let mut findings = engine.findings();
    // Who was stopped before the first batch has not looked.
    let stopped = stop.load(Ordering::Acquire) && before.totals.consumed == engine.progress().totals.consumed;
    findings.extend(of_restart(&config, &before, engine.progress(), made_with).filter(|_| !stopped));
    Ok(findings)
}

/// Profiles beside a file of records are in files, too.
fn no_cluster() -> Cluster {
    Cluster::new("", BTreeMap::new())
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

/// What a run that goes on from `before` may have to say of that.
fn of_restart(config: &Config, before: &Progress, after: &Progress, made_with: Option<u64>) -> Option<Finding> {
    let (before, after) = (before.totals.consumed, after.totals.consumed);
    if before == 0 {
        None
    } else if before == after {
        let source_path = config.source.path.display().to_string();
        Some(Finding::NothingNew { records: before, source_path, made_with: made_with.into() })
    } else {
        let other = made_with.filter(|k| *k != config.privacy.k as u64)?;
        Some(Finding::OtherK { made_with: Some(other).into(), k: config.privacy.k })
    }
}

impl Start<'_> {
    /// The source, from where the state has settled its records; none where the daemon is to stop before it has begun.
    fn open_source(
        &self,
        settled: &Progress,
        begun: &[FileBegun],
        pending: &[FileBegun],
    ) -> Result<Option<FileSource>, RunError> {
        let config = self.config;
        let path = &config.source.path;
        let position = SourcePosition {
            records: settled.positions.get(&(0, 0)).map_or(0, |n| u64::try_from(*n).unwrap_or(0)),
            bytes: settled.source_bytes,
        };
        let format = config.source.format();
        let (limits, unknown) = codec_limits(config);
        let reading = Reading {
            format: file_format(format, config.source.separator),
            fields: fields(self.schema, format == Format::Csv),
            limits,
            unknown,
            stop: StopFlag::new(Arc::clone(self.stop)),
        };
        if position.records > 0 && !file::is_at_rest(path) {
            PassedOver { path, records: position.records }.emit();
        }
        let source = match FileSource::resume(path, reading, position, begun, pending) {
            // The header of a pipe was waited for.
            Err(error) if error.is_stop() => return Ok(None),
            source => source?,
        };
        let mut absent = source.absent_attributes();
        absent.retain(|a| self.schema.attributes[*a].from.join().is_none());
        if !absent.is_empty() {
            let attributes = absent.into_iter().map(|a| self.attributes[a].clone()).collect();
            return Err(RunError::NoColumn { path: source.file().to_owned(), attributes });
        }
        ColumnsDropped { path: &config.source.path, columns: source.unknown_columns() }.emit(self.telemetry);
        Ok(Some(source))
    }

    /// The output files, cut back to the `lengths` that have been settled; `repeats`: a batch behind them was begun and did not leave.
    fn open_files(&self, engine: &mut Engine, lengths: &Lengths, repeats: bool) -> Result<FileDelivery, RunError> {
        let (config, options) = (self.config, self.options);
        let format = file_format(config.sink.format(), config.sink.separator);
        let (dead_letters, lineage) = (config.sink.dead_letter_path.as_deref(), options.lineage.as_deref());
        let rotation = config.sink.rotate.is_on().then(|| Rotation {
            bytes: config.sink.rotate.size,
            age_ms: u64::try_from(config.sink.rotate.age.as_millis()).unwrap_or(u64::MAX),
        });
        let certificates = config.certificates.path.as_deref().filter(|_| config.certificates.is_on());
        let (path, groups, rotates) = (&config.sink.path, &self.columns, rotation.is_some());
        let places = Places { path, groups, format, rotates, dead_letters, certificates, lineage };
        places.check(lengths)?;
        places.check_behind(lengths, repeats)?;
        let marker = config.sink.marker_path(config.first_group());
        let marker =
            marker.map(|path| FileMarker::open(&path, &engine.state_id(), engine.marks(), options.accept_rewind));
        let marker = marker.transpose().map_err(|error| match error {
            // Who has the marker open has the outputs open.
            SinkError::Locked { .. } => SinkError::Locked { path: config.sink.path.clone() },
            error => error,
        })?;
        mark_as_untruthful(config, engine.untruthful())?;
        let mut delivery = FileDelivery::new(
            FileSink::rotated(path, groups, format, rotation, &group_lengths(lengths))?,
            dead_letters.map(|path| DeadLetterFile::open(path, dead_letter_length(lengths))).transpose()?,
            lineage.map(|path| LineageFile::open(path, lineage_length(lengths))).transpose()?,
            self.groups.clone(),
            self.attributes.clone(),
            config.source.path.display().to_string(),
            lengths.clone(),
        )
        .with_certificates(
            certificates.map(|path| CertificateFile::open(path, certificates_length(lengths))).transpose()?,
        );
        if let Some(marker) = marker {
            engine.found_marked(marker.found());
            delivery = delivery.with_marker(marker);
        }
        engine.begin(delivery.begin()?)?;
        Ok(delivery)
    }

    /// A producer for a file source: no offsets to commit, the marker alone decides. Also the last committed batch.
    fn open_topic(&self, id: &str) -> Result<(TransactionalSink, Marker), KafkaFailure> {
        let config = self.config;
        let cluster = sink_cluster(config)?;
        check_retention(config, &cluster)?;
        let outputs = outputs(config, &cluster, Vec::new(), self.attributes.clone())?;
        let transactional_id = transactional_id(&config.source.group, id);
        let no_group: GroupMetadata = Arc::new(|| None);
        let commits = cluster.partitions(&[&config.sink.commits_topic], PATIENCE)?;
        let sink =
            TransactionalSink::open(&cluster, &transactional_id, outputs, no_group, Arc::clone(self.stop), PATIENCE)?;
        let last =
            marker::last_committed(&cluster, &config.sink.commits_topic, &transactional_id, commits[0], PATIENCE)?;
        Ok((sink, last))
    }
}

/// Says beside the output files that what is in them may be untrue, and why, before the first is written.
fn mark_as_untruthful(config: &Config, how: Option<&str>) -> Result<(), RunError> {
    let Some(how) = how.filter(|_| config.sink.path.as_os_str() != "-") else { return Ok(()) };
    let path = config.sink.mark_path(config.first_group());
    let text = format!("{UNTRUTHFUL}: {how}\n");
    file::whole::write(&path, text.as_bytes()).map_err(|source| RunError::Mark { path, source })
}

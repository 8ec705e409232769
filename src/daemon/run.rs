//! One daemon from its configuration to its end.

use super::assemble::{Assembled, AssemblyError, assemble, codec_limits, fields, group_shapes, load_schema};
use super::engine::Engine;
use super::file_run::{self, FileClosing, FileRunError, Watcher};
use super::http::{self, HttpError};
use super::kafka_run::{KafkaRun, KafkaRunError};
use super::state::directory::StateError;
use super::state::records::Intent;
use crate::config::{Config, Format, Problem, SinkKind, SourceKind};
use crate::io::codec::{Field, JsonCodec};
use crate::io::file::delivery::{FileDelivery, NoDelivery, dead_letter_length, group_lengths, lineage_length};
use crate::io::file::{
    self, DeadLetterFile, FileSink, FileSource, GroupColumns, LineageFile, SinkError, SourcePosition,
};
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::feed::{Closing, FeedConsumer, Reader, subscribe};
use crate::io::kafka::health::Health;
use crate::io::kafka::marker::{self, Marker};
use crate::io::kafka::transaction::{GroupMetadata, OutputTopic, Outputs, TransactionalSink};
use crate::records::schema::Schema;
use crate::release::sink::Sink;
use crate::telemetry::{SourceLost, Telemetry};
use rdkafka::consumer::Consumer;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Why a daemon did not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration, the schema or what they name is wrong.
    #[error("{} problem(s) in the configuration", .0.len())]
    Configuration(Vec<Problem>),
    #[error(transparent)]
    Assembly(#[from] AssemblyError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Kafka(#[from] KafkaFailure),
    #[error(transparent)]
    KafkaRun(#[from] KafkaRunError),
    #[error(transparent)]
    FileRun(#[from] FileRunError),
    #[error(transparent)]
    Sink(#[from] SinkError),
    #[error(transparent)]
    Source(#[from] crate::io::file::SourceError),
    #[error(
        "{0} holds something already and this state has never written to it (move it away, or continue with the state directory that belongs to it)"
    )]
    Occupied(PathBuf),
    #[error("the HTTP pages' thread: {0}")]
    Thread(std::io::Error),
    #[error("a part of the daemon panicked; nothing that it worked on was released")]
    Panicked,
}

impl RunError {
    /// Whether the operator must change something before another start makes sense.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Configuration(_)
                | Self::Occupied(_)
                | Self::Http(_)
                | Self::Assembly(
                    AssemblyError::Codebook(_)
                        | AssemblyError::State(
                            StateError::Foreign(_)
                                | StateError::WrongSecret(_)
                                | StateError::OtherStream(_)
                                | StateError::Version { .. }
                        )
                )
                | Self::Kafka(KafkaFailure::MissingTopic { .. } | KafkaFailure::ShortRetention { .. })
        )
    }
}

/// What a start is given besides its configuration.
pub struct Options {
    /// The configuration's name in messages.
    pub file: String,
    pub lineage: Option<PathBuf>,
    pub accept_rewind: bool,
    /// The broker is the demo's stand-in, which cannot be asked for the settings of a topic.
    pub stand_in_broker: bool,
}

/// Runs until the source ends or `stop` is set. The pages are served as long as it runs.
///
/// # Errors
/// See [`RunError`].
pub fn run(
    config: &Config,
    options: &Options,
    telemetry: &Telemetry,
    schema: &Arc<Schema>,
    stop: &Arc<AtomicBool>,
    watcher: &dyn Watcher,
) -> Result<(), RunError> {
    telemetry.set_readiness(|r| r.schema = true);
    let pages = Pages::serve(config, telemetry)?;
    // A panic in a treatment poisons the whole run: nothing that it held may still be delivered.
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match config.source.kind {
        SourceKind::File => run_file(config, options, telemetry, schema, stop, watcher),
        SourceKind::Kafka => run_kafka(config, options, telemetry, schema, stop),
    }));
    pages.end();
    outcome.unwrap_or(Err(RunError::Panicked))
}

/// The telemetry of a configuration.
///
/// # Errors
/// When schema or groups are wrong.
pub fn prepare(config: &Config, file: &str) -> Result<(Arc<Schema>, Telemetry), RunError> {
    let schema = load_schema(config).map_err(RunError::Configuration)?;
    let shapes = group_shapes(config, &schema, file).map_err(RunError::Configuration)?;
    let names: Vec<String> = shapes.into_iter().map(|s| s.name).collect();
    Ok((schema, Telemetry::new(config.privacy.k, &names)))
}

/// The HTTP pages on a thread of their own.
struct Pages {
    shutdown: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Pages {
    fn serve(config: &Config, telemetry: &Telemetry) -> Result<Self, RunError> {
        let Some(address) = config.telemetry.address() else { return Ok(Self { shutdown: None, thread: None }) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(RunError::Thread)?;
        let listener = runtime.block_on(http::bind(address))?;
        let (shutdown, stopped) = tokio::sync::oneshot::channel::<()>();
        let telemetry = telemetry.clone();
        let thread = std::thread::Builder::new()
            .name("pages".to_owned())
            .spawn(move || {
                let served = runtime.block_on(http::serve(listener, telemetry, async move {
                    // Dropping the sender ends the pages as well.
                    let (Ok(()) | Err(_)) = stopped.await;
                }));
                if let Err(error) = served {
                    tracing::error!(%error, "the HTTP pages ended");
                }
            })
            .map_err(RunError::Thread)?;
        Ok(Self { shutdown: Some(shutdown), thread: Some(thread) })
    }

    fn end(self) {
        drop(self.shutdown);
        if let Some(thread) = self.thread {
            if thread.join().is_err() {
                tracing::error!("the HTTP pages panicked");
            }
        }
    }
}

fn file_format(format: Format, separator: char) -> file::Format {
    match format {
        Format::Json => file::Format::Ndjson,
        Format::Csv => file::Format::Csv { separator: u8::try_from(separator).unwrap_or(b',') },
        Format::Parquet => file::Format::Parquet,
    }
}

fn closing(config: &Config) -> FileClosing {
    FileClosing {
        max_records: config.batch.max_records,
        max_bytes: config.batch.max_bytes,
        max_wait: config.batch.max_wait,
        max_age: config.batch.max_age,
        min_subjects: config.min_subjects(),
    }
}

fn run_file(
    config: &Config,
    options: &Options,
    telemetry: &Telemetry,
    schema: &Arc<Schema>,
    stop: &Arc<AtomicBool>,
    watcher: &dyn Watcher,
) -> Result<(), RunError> {
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
    let Assembled { mut engine, intent, fresh, .. } =
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
    telemetry.set_readiness(|r| r.assignment = true);
    let mut sink: Box<dyn Sink> = match config.sink.kind {
        SinkKind::None => Box::new(NoDelivery),
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
            if fresh {
                let beside = [config.sink.dead_letter_path.as_ref(), options.lineage.as_ref()];
                let filled = |path: &&PathBuf| std::fs::metadata(path).is_ok_and(|m| m.len() > 0);
                let occupied = FileSink::occupied(&config.sink.path, &columns, format)?;
                if let Some(path) = occupied.or(beside.into_iter().flatten().find(filled).cloned()) {
                    return Err(RunError::Occupied(path));
                }
            }
            let lengths = start.lengths.clone();
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
            engine.begin(delivery.begin()?)?;
            Box::new(delivery)
        }
    };
    let width = schema.attributes.len();
    file_run::run(source, width, closing(config), &mut engine, intent, &mut *sink, stop, watcher)?;
    Ok(())
}

/// How long a start waits for a cluster before it says so and tries again.
const PATIENCE: Duration = Duration::from_secs(30);

fn sink_cluster(config: &Config) -> Cluster {
    Cluster {
        brokers: config.sink_brokers().to_owned(),
        properties: config.sink.librdkafka.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    }
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

/// The topics that a batch leaves to, which must all be there.
fn outputs(
    config: &Config,
    cluster: &Cluster,
    sources: Vec<String>,
    attributes: Vec<String>,
) -> Result<Outputs, KafkaFailure> {
    let topic = |name: &str| -> Result<OutputTopic, KafkaFailure> {
        Ok(OutputTopic { name: name.to_owned(), partitions: cluster.partitions(&[name], PATIENCE)?[0] })
    };
    let sink = match config.sink.kind {
        SinkKind::Kafka => Some(topic(&config.sink.topic)?),
        SinkKind::File | SinkKind::None => None,
    };
    let dead_letters = match config.sink.dead_letter_topic.as_str() {
        "" => None,
        name => Some(topic(name)?),
    };
    Ok(Outputs { sink, dead_letters, commits: config.sink.commits_topic.clone(), sources, attributes })
}

/// Asks until the cluster answers: a daemon may well start before its broker. A missing topic is an answer.
fn reach(
    cluster: &Cluster,
    topics: &[&str],
    telemetry: &Telemetry,
    stop: &AtomicBool,
) -> Result<Option<Vec<i32>>, KafkaFailure> {
    let mut wait = Duration::from_millis(500);
    loop {
        if stop.load(Ordering::Acquire) {
            return Ok(None);
        }
        match cluster.partitions(topics, Duration::from_secs(5)) {
            Err(KafkaFailure::Unreachable { .. }) => {
                SourceLost.emit(telemetry);
                let until = std::time::Instant::now() + wait;
                while std::time::Instant::now() < until && !stop.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(50));
                }
                wait = (wait * 2).min(Duration::from_secs(30));
            }
            answer => return answer.map(Some),
        }
    }
}

fn run_kafka(
    config: &Config,
    options: &Options,
    telemetry: &Telemetry,
    schema: &Arc<Schema>,
    stop: &Arc<AtomicBool>,
) -> Result<(), RunError> {
    let shapes = group_shapes(config, schema, &options.file).map_err(RunError::Configuration)?;
    let attributes: Vec<String> = schema.attributes.iter().map(|a| a.name.clone()).collect();
    let cluster = Cluster {
        brokers: config.source.brokers.clone(),
        properties: config.source.librdkafka.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    };
    let producer_cluster = sink_cluster(config);
    let topics = &config.source.topics;
    let mut wanted: Vec<&str> = topics.iter().map(String::as_str).collect();
    wanted.push(&config.sink.commits_topic);
    let Some(partitions) = reach(&cluster, &wanted, telemetry, stop)? else { return Ok(()) };
    let commit_partitions = partitions.last().copied().unwrap_or(1);
    let consumer: Arc<OnceLock<Arc<FeedConsumer>>> = Arc::new(OnceLock::new());
    let health = Arc::new(Health::default());
    let group: GroupMetadata = {
        let (consumer, health) = (Arc::clone(&consumer), Arc::clone(&health));
        // A reader that gave up waiting has let partitions go that a batch in flight still has: nothing may be committed
        // in the name of the group any more, although the client has long joined its next generation.
        Arc::new(move || consumer.get().filter(|_| !health.abandoned()).and_then(|c| c.group_metadata()))
    };
    let mut opened: Option<TransactionalSink> = None;
    let mut open = |id: &str| -> Result<Marker, KafkaFailure> {
        let transactional_id = format!("{}-{id}", config.source.group);
        if config.sink.kind == SinkKind::Kafka && !options.stand_in_broker {
            producer_cluster.check_retention(&config.sink.topic, config.privacy.support_window, PATIENCE)?;
        }
        let outputs = outputs(config, &producer_cluster, topics.clone(), attributes.clone())?;
        // The order matters: fencing the older self settles its open transaction, and only then is the marker final.
        let sink = TransactionalSink::open(
            &producer_cluster,
            &transactional_id,
            outputs,
            Arc::clone(&group),
            Arc::clone(stop),
            PATIENCE,
        )?;
        let last = marker::last_committed(
            &producer_cluster,
            &config.sink.commits_topic,
            &transactional_id,
            commit_partitions,
            PATIENCE,
        )?;
        opened = Some(sink);
        Ok(last)
    };
    let mut marker_failure = None;
    let mut committed = None;
    let assembled =
        assemble(config, schema, shapes, telemetry, options.accept_rewind, &mut |intent, id| match open(id) {
            Ok(last) => {
                committed = Some(last);
                has_left(config, intent, last)
            }
            Err(failure) => {
                let what = failure.to_string();
                marker_failure = Some(failure);
                Err(StateError::Marker { path: config.state.path.clone(), what })
            }
        });
    if let Some(failure) = marker_failure {
        return Err(failure.into());
    }
    let Assembled { mut engine, intent, id, .. } = assembled?;
    let committed = match committed {
        Some(last) => last,
        None => open(&id)?,
    };
    check_marker(config, engine.progress().sequence, committed)?;
    let mut sink = opened.ok_or(RunError::Panicked)?;
    stream(config, telemetry, schema, stop, &cluster, &consumer, &health, &mut engine, intent, &mut sink)
}

/// State and marker must agree once the pending intent has been decided. A marker ahead of the state means that the state
/// is an older copy; one behind it, that the markers were lost or belong to another group, and that nothing could be
/// decided by them.
fn check_marker(config: &Config, sequence: u64, marker: Marker) -> Result<(), StateError> {
    let committed = marker.sequence;
    if sequence == committed {
        return Ok(());
    }
    Err(StateError::Damaged {
        path: config.state.path.clone(),
        what: format!(
            "it ends at batch {sequence}, but {:?} knows of {committed} as the last (was `source.group` changed, the topic emptied, or the directory restored?)",
            config.sink.commits_topic
        ),
    })
}

/// Ends the reader whatever ends the run, a panic included.
struct EndReader<'a> {
    closed: &'a AtomicBool,
    reader: &'a AtomicBool,
}

impl Drop for EndReader<'_> {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
        self.reader.store(true, Ordering::Release);
    }
}

/// Whether the batch of an intent left, by the marker. A marker of a later batch, or of another attempt at this one, is
/// none that this state has made: somebody has gone on with a copy of it.
fn has_left(config: &Config, intent: &Intent, last: Marker) -> Result<bool, StateError> {
    let sequence = intent.after.sequence;
    if sequence > last.sequence + 1 {
        let what = format!(
            "the commits topic has no marker of batch {} (was it deleted, or is it another topic?)",
            sequence - 1
        );
        return Err(StateError::Marker { path: config.state.path.clone(), what });
    }
    if sequence > last.sequence {
        return Ok(false);
    }
    if (sequence, intent.attempt) == (last.sequence, last.attempt) {
        return Ok(true);
    }
    Err(older_copy(config, sequence - 1, last))
}

fn older_copy(config: &Config, sequence: u64, last: Marker) -> StateError {
    let what = format!("it ends at batch {sequence}, but batch {} was committed by a copy of it", last.sequence);
    StateError::Damaged { path: config.state.path.clone(), what }
}

/// Reads the topics until the end of the daemon.
#[allow(clippy::too_many_arguments, reason = "the parts of one stream")]
fn stream(
    config: &Config,
    telemetry: &Telemetry,
    schema: &Arc<Schema>,
    stop: &Arc<AtomicBool>,
    cluster: &Cluster,
    slot: &OnceLock<Arc<FeedConsumer>>,
    health: &Arc<Health>,
    engine: &mut Engine,
    intent: Option<Intent>,
    sink: &mut TransactionalSink,
) -> Result<(), RunError> {
    let (feed_in, feed) = crossbeam_channel::bounded(1);
    let (commands, commands_out) = crossbeam_channel::unbounded();
    engine.watch(Arc::clone(health));
    let closed = Arc::new(AtomicBool::new(false));
    let consumer = subscribe(
        cluster,
        &config.source.group,
        &config.source.topics,
        feed_in.clone(),
        Arc::clone(health),
        Arc::clone(&closed),
    )?;
    slot.get_or_init(|| Arc::clone(&consumer));
    let (limits, unknown) = codec_limits(config);
    let reader_stop = Arc::new(AtomicBool::new(false));
    let reader = Reader {
        consumer,
        cluster: cluster.clone(),
        codec: JsonCodec::new(&fields(schema, false), limits).with_unknown(unknown),
        width: schema.attributes.len(),
        closing: Closing {
            max_records: config.batch.max_records as u64,
            max_bytes: config.batch.max_bytes,
            max_wait: config.batch.max_wait,
            max_age: config.batch.max_age,
            min_subjects: config.min_subjects(),
            subject: schema.subject,
        },
        feed: feed_in,
        commands: commands_out,
        stop: Arc::clone(&reader_stop),
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || reader.run());
        let end_reader = EndReader { closed: &closed, reader: &reader_stop };
        // Readiness does not wait for a batch that waits for the broker.
        scope.spawn(|| {
            while !closed.load(Ordering::Acquire) {
                let (reachable, assigned) = (health.reachable(), health.assigned() > 0);
                telemetry.set_readiness(|r| {
                    r.broker = reachable;
                    r.assignment = assigned;
                });
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let outcome = KafkaRun {
            engine,
            sink,
            feed: &feed,
            commands: &commands,
            health,
            telemetry,
            stop,
            max_age: config.batch.max_age,
            retry: intent,
        }
        .run();
        drop(end_reader);
        drop(feed);
        if thread.join().is_err() {
            return Err(RunError::Panicked);
        }
        outcome.map_err(RunError::from)
    })
}

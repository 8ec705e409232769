//! A daemon whose source is a topic: its parts, put together.

use super::idle::IdlePartitions;
use super::kafka_source::{Group, KafkaSource};
use super::profiles;
use super::restore::{Changelog, Restore};
use super::run::Run;
use super::supervision::Supervision;
use super::to_kafka::{PATIENCE, check_marker, has_left, outputs, transactional_id};
use crate::config::Config;
use crate::daemon::engine::Engine;
use crate::daemon::engine::assemble::{Assembled, assemble, state_clock};
use crate::daemon::engine::clock::StateClock;
use crate::daemon::erasure::topic::{ErasureTopic, TopicReader};
use crate::daemon::run_error::RunError;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::Intent;
use crate::io::input::{Origin, Place};
use crate::io::kafka::GroupMetadata;
use crate::io::kafka::changelog;
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::io::kafka::feed::{Ending, FeedConsumer, membership, subscribe};
use crate::io::kafka::health::Health;
use crate::io::kafka::marker::{self, Marker};
use crate::io::kafka::paused::PausedPartitions;
use crate::io::kafka::reader::Reader;
use crate::io::kafka::refusal::Refusal;
use crate::io::kafka::transaction::TransactionalSink;
use crate::start::checked::Checked;
use crate::start::clusters::clusters;
use crate::start::findings::Finding;
use crate::start::memory::closing;
use crate::start::messages::messages;
use crate::start::registered::register;
use crate::telemetry::{SourceLost, SourceRefused, Telemetry};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use throng_core::values::schema::Schema;

/// Asks until the cluster answers: a daemon may well start before its broker. A missing topic is an answer.
fn reach(
    cluster: &Cluster,
    address: &str,
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
            Err(failure) if failure.passes() => {
                SourceLost { address }.emit(telemetry);
                if let KafkaFailure::Refused { refusal, told, .. } = failure {
                    SourceRefused { refusal: refusal.label(), told: &told }.emit(telemetry);
                }
                let until = std::time::Instant::now() + wait;
                while std::time::Instant::now() < until && !stop.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(50));
                }
                wait = (wait * 2).min(Duration::from_secs(30));
            }
            answer => {
                telemetry.set_readiness(|readiness| readiness.refused = None);
                return answer.map(Some);
            }
        }
    }
}

/// What the reader of the topics and the sink of a daemon share.
struct Start<'a> {
    config: &'a Config,
    /// Its name in messages.
    file: &'a str,
    schema: &'a Schema,
    telemetry: &'a Telemetry,
    stop: &'a Arc<AtomicBool>,
    /// What is read from.
    cluster: Cluster,
    /// What is written to.
    sink: Cluster,
    /// The consumer, once there is one.
    consumer: Arc<OnceLock<Arc<FeedConsumer>>>,
    health: Arc<Health>,
    /// The broker is a stand-in within this process.
    stand_in: bool,
}

/// Runs until `stop`, or until something breaks that only a new start can mend.
pub fn run_kafka(
    mut checked: Checked,
    supervision: &mut Supervision<'_>,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Finding>, RunError> {
    let options = supervision.options;
    if !register(&mut checked, telemetry, stop).map_err(RunError::Configuration)? {
        return Ok(Vec::new());
    }
    let (config, schema, file) = (Arc::clone(&checked.config), Arc::clone(&checked.schema), checked.file.clone());
    let (cluster, sink) = clusters(&config)?;
    let start = Start {
        file: &file,
        config: &config,
        schema: &schema,
        telemetry,
        stop,
        cluster,
        sink,
        consumer: Arc::default(),
        health: Arc::default(),
        stand_in: options.stand_in_broker,
    };
    let topics = config.consumed_topics();
    let mut wanted: Vec<&str> = topics.iter().map(String::as_str).collect();
    wanted.extend(config.join.iter().filter_map(|join| join.topic.as_deref()));
    wanted.extend(config.erasure.is_on().then_some(config.erasure.topic.as_str()));
    wanted.push(&config.sink.changelog_topic);
    let Some(partitions) = reach(&start.cluster, &config.source.brokers, &wanted, telemetry, stop)? else {
        return Ok(Vec::new());
    };
    let source_partitions = &partitions[..config.source.topics.len()];
    if let Some(topic) = config.contributions_topic() {
        changelog::expect_one_partition(&topic, partitions[source_partitions.len()])?;
    }
    let most = source_partitions.iter().max().copied().unwrap_or(0);
    changelog::expect_partitions(&start.sink, &config.sink.changelog_topic, most, PATIENCE)?;
    if !options.stand_in_broker {
        changelog::expect_compacted(&start.sink, &config.sink.changelog_topic)?;
    }
    let mut opened: Option<TransactionalSink> = None;
    let open = |opened: &mut Option<TransactionalSink>, id: &str| -> Result<Marker, KafkaFailure> {
        let (sink, last) = start.open_sink(id)?;
        *opened = Some(sink);
        Ok(last)
    };
    let mut marker_failure = None;
    let mut committed = None;
    let assembled =
        assemble(checked, telemetry, options.accept_rewind, &mut |intent, id| match open(&mut opened, id) {
            Ok(last) => {
                committed = Some(last);
                has_left(&config, intent, last)
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
        None => open(&mut opened, &id)?,
    };
    check_marker(&config, engine.progress().sequence, committed)?;
    let mut sink = opened.ok_or(RunError::Panicked)?;
    if !profiles::begin(&mut engine, intent.as_ref(), (&config, &schema, &file), &start.cluster, telemetry, stop)? {
        return Ok(engine.findings());
    }
    let erasure_topic = start.erasure_topic(&engine)?;
    engine.heed(stop);
    let clock = state_clock(&config, options, &engine, intent.as_ref());
    if config.contributions_topic().is_some() {
        let (place, sources) = places(source_partitions);
        engine.exchange_series(place, sources);
    }
    let restore = start.restore(&engine, &id, options.accept_rewind);
    start.stream(&mut engine, intent, &mut sink, (clock, erasure_topic, restore), supervision)?;
    Ok(engine.findings())
}

/// The partition of contributions to series, behind the topics of the source; and all partitions of these, by the number that each topic has.
fn places(source_partitions: &[i32]) -> (Place, Vec<Place>) {
    let topics = (0u16..).zip(source_partitions);
    let sources = topics.flat_map(|(topic, partitions)| (0..*partitions).map(move |partition| (topic, partition)));
    ((u16::try_from(source_partitions.len()).expect("few topics"), 0), sources.collect())
}

/// Tells of a refusal that was not heard before.
fn hear(cluster: &Cluster, heard: &mut Option<Refusal>, telemetry: &Telemetry) {
    let refusal = cluster.hearing().refusal();
    if let Some(new) = refusal.filter(|_| refusal != *heard) {
        SourceRefused { refusal: new.label(), told: &cluster.told(new).1 }.emit(telemetry);
    }
    *heard = refusal;
}

/// Ends the reader whatever ends the run, a panic included.
struct EndReader<'a> {
    ending: &'a Ending,
    reader: &'a AtomicBool,
}

impl Drop for EndReader<'_> {
    fn drop(&mut self) {
        self.ending.stop_listening();
        self.reader.store(true, Ordering::Release);
    }
}

/// Tells the client, whatever has happened, that it is alone when it closes.
struct Parting(Arc<Ending>);

impl Drop for Parting {
    fn drop(&mut self) {
        self.0.stop_reading();
    }
}

impl Start<'_> {
    /// Begins to read the erasure topic, if there is one.
    fn erasure_topic(&self, engine: &Engine) -> Result<Option<TopicReader>, RunError> {
        let config = self.config;
        let Some(subjects) = engine.subjects().filter(|_| config.erasure.is_on()) else { return Ok(None) };
        let position = engine.erasure_position(&config.erasure.topic)?;
        let (cluster, telemetry) = (self.cluster.clone(), self.telemetry.clone());
        let interval = config.tuning.erasure_interval;
        Ok(Some(TopicReader::start(ErasureTopic { cluster, position, interval, subjects, telemetry })?))
    }

    /// A sink for the state `id`, and the last batch that it knows to be committed.
    fn open_sink(&self, id: &str) -> Result<(TransactionalSink, Marker), KafkaFailure> {
        let (config, cluster) = (self.config, &self.sink);
        let transactional_id = transactional_id(&config.source.group, id);
        let attributes = self.schema.attributes.iter().map(|a| a.name.clone()).collect();
        let outputs = outputs(config, cluster, attributes, !self.stand_in)?;
        let (group, stop) = (self.group(), Arc::clone(self.stop));
        // The order matters: fencing the older self settles its open transaction, and only then is the marker final.
        let sink = TransactionalSink::open(cluster, &transactional_id, outputs, group, stop, PATIENCE)?;
        let last = marker::last_committed(cluster, &config.sink.changelog_topic, &transactional_id, PATIENCE)?;
        Ok((sink, last))
    }

    /// Reads the state of partitions that come.
    fn restore(&self, engine: &Engine, id: &str, accepts: bool) -> Option<Restore> {
        let config = self.config;
        let codec = engine.entry_codec()?.clone();
        Some(Restore::new(Changelog {
            source: self.cluster.clone(),
            group: config.source.group.clone(),
            topics: config.consumed_topics(),
            cluster: self.sink.clone(),
            topic: config.sink.changelog_topic.clone(),
            codec,
            own: id.to_owned(),
            // The stand-in does not keep what a group has committed.
            refuses_short: !self.stand_in,
            accepts: accepts && !self.stand_in,
        }))
    }

    /// In whose name offsets are committed: that of the consumer as a member of its group.
    fn group(&self) -> GroupMetadata {
        let (consumer, health) = (Arc::clone(&self.consumer), Arc::clone(&self.health));
        // A reader that gave up waiting has let partitions go that a batch in flight still has: nothing may be committed
        // in the name of the group any more, although the client has long joined its next generation.
        Arc::new(move || {
            let consumer = consumer.get().filter(|_| !health.abandoned.load(Ordering::Acquire))?;
            membership(consumer)
        })
    }

    /// Reads the topics until the end of the daemon.
    fn stream(
        &self,
        engine: &mut Engine,
        intent: Option<Intent>,
        sink: &mut TransactionalSink,
        (clock, erasure_topic, restore): (StateClock, Option<TopicReader>, Option<Restore>),
        supervision: &mut Supervision<'_>,
    ) -> Result<(), RunError> {
        let Self { config, file, schema, telemetry, stop, cluster, sink: sink_cluster, health, .. } = self;
        let (feed_in, feed) = crossbeam_channel::bounded(1);
        let (commands, commands_out) = crossbeam_channel::unbounded();
        let paused = Arc::<PausedPartitions>::default();
        engine.come_from(Arc::clone(health) as Arc<dyn Origin>);
        let ending = Arc::new(Ending::default());
        let _parting = Parting(Arc::clone(&ending));
        let topics = config.consumed_topics();
        let contributions = config.contributions_topic().map(|topic| (topic, config.source.group.clone()));
        let idle = contributions
            .as_ref()
            .map(|_| IdlePartitions::new(cluster.clone(), config.source.group.clone(), topics.clone()));
        let consumer = subscribe(
            cluster,
            &config.source.group,
            &topics,
            feed_in.clone(),
            Arc::clone(health),
            Arc::clone(&paused),
            Arc::clone(&ending),
        )?;
        self.consumer.get_or_init(|| Arc::clone(&consumer));
        let reader_stop = Arc::new(AtomicBool::new(false));
        let reader = Reader {
            consumer,
            cluster: cluster.clone(),
            messages: messages(config, schema, file, telemetry).map_err(RunError::Configuration)?,
            width: schema.attributes.len(),
            closing: closing(config, schema),
            contributions,
            subject: schema.subject_attribute(),
            feed: feed_in,
            commands: commands_out,
            stop: Arc::clone(&reader_stop),
        };
        (supervision.on_start)()?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || reader.run());
            let end_reader = EndReader { ending: &ending, reader: &reader_stop };
            // Readiness does not wait for a batch that waits for the broker.
            scope.spawn(|| {
                let mut heard = [None, None];
                while !ending.is_unheard() {
                    for (cluster, heard) in [cluster, sink_cluster].into_iter().zip(&mut heard) {
                        hear(cluster, heard, telemetry);
                    }
                    let refused = heard.iter().flatten().next().map(|refusal: &Refusal| refusal.label());
                    let (reachable, assigned) =
                        (health.reachable.load(Ordering::Relaxed), health.assigned.load(Ordering::Relaxed));
                    telemetry.set_readiness(|r| {
                        r.broker = reachable;
                        r.assignment = assigned;
                        r.refused = refused;
                    });
                    std::thread::sleep(Duration::from_millis(200));
                }
            });
            let group = Group { cluster, name: &config.source.group, topics: &topics };
            let orders = (&commands, &*paused);
            let mut source = KafkaSource::new(group, &feed, orders, health, &config.source.brokers, telemetry, stop);
            let max_age = config.batch.max_age;
            let outcome = Run {
                source: &mut source,
                engine,
                sink,
                telemetry,
                clock,
                max_age,
                retry: intent,
                erasures: supervision.erasures,
                erasure_topic,
                idle,
                assigned: BTreeSet::new(),
                restore,
                next: supervision.next,
                stop,
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
}

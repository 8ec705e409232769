//! Pipeline with a topic as its source.

use super::changelog_restore::{ChangelogLocation, PartitionRestore};
use super::idle_partitions::IdlePartitions;
use super::kafka_outputs::{
    CLUSTER_TIMEOUT, check_marker, transaction_outputs, transactional_id, was_batch_released, with_missing_outputs,
};
use super::kafka_source::{KafkaSource, SourceGroup};
use super::pipeline_context::PipelineContext;
use super::profile_start;
use super::stream_loop::StreamLoop;
use crate::config::Config;
use crate::daemon::engine::Engine;
use crate::daemon::engine::build::assemble::{AssembledEngine, assemble, state_clock};
use crate::daemon::erasure::erasure_topic_reader::{ErasureTopic, TopicReader};
use crate::daemon::run_error::RunError;
use crate::daemon::state::clock::StateClock;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::BatchIntent;
use crate::start::checked_config::CheckedConfig;
use crate::start::clusters::clusters;
use crate::start::memory_budget::batch_limits;
use crate::start::message_decoders::message_decoders;
use crate::start::run_findings::RunFinding;
use crate::start::schema_registration::register;
use crate::telemetry::{SourceLag, SourceLost, SourceRefused, Telemetry, TopicUnavailable};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use throng_core::stream::input_batch::{InputPartition, SourceStatus};
use throng_core::values::schema::Schema;
use throng_kafka::GroupMetadata;
use throng_kafka::changelog;
use throng_kafka::connection::{KafkaCluster, KafkaFailure};
use throng_kafka::health::ConsumerHealth;
use throng_kafka::marker::{self, BatchMarker};
use throng_kafka::partition_lags::LagByPartition;
use throng_kafka::paused::PausedPartitions;
use throng_kafka::reader::SourceTopicReader;
use throng_kafka::refusal::ConnectionRefusal;
use throng_kafka::subscription::{ShutdownProgress, SubscribedConsumer, group_metadata_of_member, subscribe};
use throng_kafka::transaction::TransactionalSink;

/// A daemon may start before its broker. A missing topic counts as an answer.
fn wait_for_cluster(
    cluster: &KafkaCluster,
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
            Err(failure) if failure.may_pass_later() => {
                if matches!(failure, KafkaFailure::TopicUnavailable { .. }) {
                    TopicUnavailable { failure: &failure.to_string() }.emit(telemetry);
                } else {
                    SourceLost { address }.emit(telemetry);
                }
                if let KafkaFailure::Refused { refusal, told, .. } = failure {
                    SourceRefused { refusal: refusal.label(), message: &told }.emit(telemetry);
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

struct KafkaPipeline<'a> {
    config: &'a Config,
    file: &'a str,
    schema: &'a Schema,
    telemetry: &'a Telemetry,
    stop: &'a Arc<AtomicBool>,
    cluster: KafkaCluster,
    sink: KafkaCluster,
    consumer: Arc<OnceLock<Arc<SubscribedConsumer>>>,
    health: Arc<ConsumerHealth>,
    stand_in: bool,
}

/// Runs until `stop` is set, or an error requires a new start.
pub fn run_kafka(
    mut checked: CheckedConfig,
    supervision: &mut PipelineContext<'_>,
    telemetry: &Telemetry,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<RunFinding>, RunError> {
    let options = supervision.options;
    if !register(&mut checked, telemetry, stop).map_err(RunError::Configuration)? {
        return Ok(Vec::new());
    }
    let (config, schema, file) = (Arc::clone(&checked.config), Arc::clone(&checked.schema), checked.file.clone());
    let (cluster, sink) = clusters(&config)?;
    let start = KafkaPipeline {
        file: &file,
        config: &config,
        schema: &schema,
        telemetry,
        stop,
        cluster,
        sink,
        consumer: Arc::default(),
        health: Arc::default(),
        stand_in: options.uses_demo_broker,
    };
    let topics = config.consumed_topics();
    let mut wanted: Vec<&str> = topics.iter().map(String::as_str).collect();
    wanted.extend(config.join.iter().filter_map(|join| join.topic.as_deref()));
    wanted.extend(config.erasure.is_enabled().then_some(config.erasure.topic.as_str()));
    let asked = wait_for_cluster(&start.cluster, &config.source.brokers, &wanted, telemetry, stop);
    let Some(partitions) = asked.map_err(|failure| with_missing_outputs(&config, &start.sink, failure))? else {
        return Ok(Vec::new());
    };
    let source_partitions = &partitions[..config.source.topics.len()];
    start.check_topics(&partitions)?;
    let mut opened: Option<TransactionalSink> = None;
    let open = |opened: &mut Option<TransactionalSink>, id: &str| -> Result<BatchMarker, KafkaFailure> {
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
                was_batch_released(&config, intent, last)
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
    let AssembledEngine { mut engine, intent, id, .. } = assembled?;
    let committed = match committed {
        Some(last) => last,
        None => open(&mut opened, &id)?,
    };
    check_marker(&config, engine.progress().sequence, committed)?;
    let mut sink = opened.ok_or(RunError::Panicked)?;
    if !profile_start::read_initial_profiles(
        &mut engine,
        intent.as_ref(),
        (&config, &schema, &file),
        &start.cluster,
        telemetry,
        stop,
    )? {
        return Ok(engine.findings());
    }
    let erasure_topic = start.start_erasure_reader(&engine)?;
    engine.watch_store(stop);
    let clock = state_clock(&config, options, &engine, intent.as_ref());
    if config.contributions_topic().is_some() {
        let (place, sources) = contribution_partitions(source_partitions);
        engine.exchange_series(place, sources);
    }
    let restore = start.partition_restore(&engine, &id, options.accept_rewind);
    start.stream_topics(&mut engine, intent, &mut sink, (clock, erasure_topic, restore), supervision)?;
    Ok(engine.findings())
}

/// Contributions are numbered after the source topics.
fn contribution_partitions(source_partitions: &[i32]) -> (InputPartition, Vec<InputPartition>) {
    let topics = (0u16..).zip(source_partitions);
    let sources = topics.flat_map(|(topic, partitions)| (0..*partitions).map(move |partition| (topic, partition)));
    ((u16::try_from(source_partitions.len()).expect("few topics"), 0), sources.collect())
}

fn report_new_refusal(cluster: &KafkaCluster, heard: &mut Option<ConnectionRefusal>, telemetry: &Telemetry) {
    let refusal = cluster.cluster_refusals().refusal();
    if let Some(new) = refusal.filter(|_| refusal != *heard) {
        SourceRefused { refusal: new.label(), message: &cluster.describe_refusal(new).1 }.emit(telemetry);
    }
    *heard = refusal;
}

/// Reports the lags if they differ from `reported`.
fn report_new_lags(health: &ConsumerHealth, topics: &[String], reported: &mut LagByPartition, telemetry: &Telemetry) {
    let lags = health.lags.by_partition();
    if lags == *reported {
        return;
    }
    let named = lags.iter().filter_map(|(&(topic, partition), lag)| {
        let name = topics.get(usize::from(topic))?;
        Some((name.as_str(), partition, *lag))
    });
    SourceLag { partitions: &named.collect::<Vec<_>>() }.emit(telemetry);
    *reported = lags;
}

/// Ends the reader on every exit.
struct ReaderEndGuard<'a> {
    ending: &'a ShutdownProgress,
    reader: &'a AtomicBool,
}

impl Drop for ReaderEndGuard<'_> {
    fn drop(&mut self) {
        self.ending.mark_daemon_ended();
        self.reader.store(true, Ordering::Release);
    }
}

/// Allows the client to close on every exit.
struct ClientCloseGuard(Arc<ShutdownProgress>);

impl Drop for ClientCloseGuard {
    fn drop(&mut self) {
        self.0.mark_reader_ended();
    }
}

impl KafkaPipeline<'_> {
    /// Refuses topics with the wrong number of `partitions` or the wrong retention. The source topics come first, then
    /// the topic of contributions, if any.
    fn check_topics(&self, partitions: &[i32]) -> Result<(), RunError> {
        let config = self.config;
        let source_partitions = &partitions[..config.source.topics.len()];
        if let Some(topic) = config.contributions_topic() {
            changelog::expect_one_partition(&topic, partitions[source_partitions.len()])?;
        }
        let most = source_partitions.iter().max().copied().unwrap_or(0);
        changelog::expect_partitions(&self.sink, &config.sink.changelog_topic, most, CLUSTER_TIMEOUT)
            .map_err(|failure| with_missing_outputs(config, &self.sink, failure))?;
        if !self.stand_in {
            changelog::expect_compacted(&self.sink, &config.sink.changelog_topic)?;
        }
        Ok(())
    }

    /// Updates the readiness independently of a batch that waits for the broker.
    fn watch_connections(&self, ending: &ShutdownProgress) {
        let (health, telemetry) = (&self.health, self.telemetry);
        let topics = self.config.consumed_topics();
        let (mut heard, mut lags) = ([None, None], LagByPartition::new());
        while !ending.has_daemon_ended() {
            for (cluster, heard) in [&self.cluster, &self.sink].into_iter().zip(&mut heard) {
                report_new_refusal(cluster, heard, telemetry);
            }
            let refused = heard.iter().flatten().next().map(|refusal: &ConnectionRefusal| refusal.label());
            let (reachable, assigned) =
                (health.reachable.load(Ordering::Relaxed), health.assigned.load(Ordering::Relaxed));
            telemetry.set_readiness(|r| {
                r.broker = reachable;
                r.assignment = assigned;
                r.refused = refused;
            });
            report_new_lags(health, &topics, &mut lags, telemetry);
            std::thread::sleep(Duration::from_millis(200));
        }
        SourceLag { partitions: &[] }.emit(telemetry);
    }

    fn start_erasure_reader(&self, engine: &Engine) -> Result<Option<TopicReader>, RunError> {
        let config = self.config;
        let Some(subjects) = engine.subjects().filter(|_| config.erasure.is_enabled()) else { return Ok(None) };
        let position = engine.erasure_position(&config.erasure.topic)?;
        let (cluster, telemetry) = (self.cluster.clone(), self.telemetry.clone());
        let interval = config.tuning.erasure_interval;
        Ok(Some(TopicReader::start(ErasureTopic { cluster, position, interval, subjects, telemetry })?))
    }

    fn open_sink(&self, id: &str) -> Result<(TransactionalSink, BatchMarker), KafkaFailure> {
        let (config, cluster) = (self.config, &self.sink);
        let transactional_id = transactional_id(&config.source.group, id);
        let attributes = self.schema.attributes.iter().map(|a| a.name.clone()).collect();
        let outputs = transaction_outputs(config, cluster, attributes, !self.stand_in)?;
        let (group, stop) = (self.commit_group(), Arc::clone(self.stop));
        // Order matters: fencing ends the previous producer's open transaction, and only then is the marker final.
        let sink = TransactionalSink::open(cluster, &transactional_id, outputs, group, stop, CLUSTER_TIMEOUT)?;
        let last = marker::last_committed(cluster, &config.sink.changelog_topic, &transactional_id, CLUSTER_TIMEOUT)?;
        Ok((sink, last))
    }

    fn partition_restore(&self, engine: &Engine, id: &str, accepts: bool) -> Option<PartitionRestore> {
        let config = self.config;
        let codec = engine.entry_codec()?.clone();
        Some(PartitionRestore::new(ChangelogLocation {
            source: self.cluster.clone(),
            group: config.source.group.clone(),
            topics: config.consumed_topics(),
            cluster: self.sink.clone(),
            topic: config.sink.changelog_topic.clone(),
            codec,
            own_id: id.to_owned(),
            // The demo broker does not keep a group's offsets.
            refuses_short: !self.stand_in,
            accepts_any_offset: accepts && !self.stand_in,
        }))
    }

    fn commit_group(&self) -> GroupMetadata {
        let (consumer, health) = (Arc::clone(&self.consumer), Arc::clone(&self.health));
        // After an unacknowledged revocation, a batch in flight may use partitions of other members: the group must
        // receive no offsets.
        Arc::new(move || {
            let consumer = consumer.get().filter(|_| !health.abandoned.load(Ordering::Acquire))?;
            group_metadata_of_member(consumer)
        })
    }

    fn stream_topics(
        &self,
        engine: &mut Engine,
        intent: Option<BatchIntent>,
        sink: &mut TransactionalSink,
        (clock, erasure_topic, restore): (StateClock, Option<TopicReader>, Option<PartitionRestore>),
        supervision: &mut PipelineContext<'_>,
    ) -> Result<(), RunError> {
        let Self { config, file, schema, telemetry, stop, cluster, health, .. } = self;
        let (feed_in, feed) = crossbeam_channel::bounded(1);
        let (commands, commands_out) = crossbeam_channel::unbounded();
        let paused = Arc::<PausedPartitions>::default();
        engine.set_origin(Arc::clone(health) as Arc<dyn SourceStatus>);
        let ending = Arc::new(ShutdownProgress::default());
        let _parting = ClientCloseGuard(Arc::clone(&ending));
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
        let reader = SourceTopicReader {
            consumer,
            cluster: cluster.clone(),
            messages: message_decoders(config, schema, file, telemetry).map_err(RunError::Configuration)?,
            width: schema.attributes.len(),
            closing: batch_limits(config, schema),
            contributions,
            subject: schema.subject_attribute(),
            feed: feed_in,
            commands: commands_out,
            stop: Arc::clone(&reader_stop),
        };
        (supervision.on_start)()?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || reader.run());
            let end_reader = ReaderEndGuard { ending: &ending, reader: &reader_stop };
            scope.spawn(|| self.watch_connections(&ending));
            let group = SourceGroup { cluster, name: &config.source.group, topics: &topics };
            let orders = (&commands, &*paused);
            let mut source = KafkaSource::new(group, &feed, orders, health, &config.source.brokers, telemetry, stop);
            let max_age = config.batch.max_age;
            let outcome = StreamLoop {
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

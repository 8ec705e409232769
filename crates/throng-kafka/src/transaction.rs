//! Transaction of one batch: fragments, dead letters, consumed offsets and the marker are written atomically.

use super::changelog::{MARKER_PARTITION, key_of_contributions, partition_of};
use super::connection::{KafkaCluster, KafkaFailure};
use super::epoch::ProducerSequence;
use super::marker::BatchMarker;
use super::offset_check::{GroupMetadata, OffsetCheck, SentOffset, partition_list};
use super::producer::{
    SHUTDOWN_TIMEOUT, STEP_TIMEOUT, TransactionProducer, delivery_error_of, permanent_failure_text, retry_step,
};
use super::topic::OutputTopic;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use throng_core::faults::crash_point;
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::series::RowFormat;
use throng_core::stream::dead_letter::DeadLetter;
use throng_core::stream::release_sink::{BatchEnvelope, BatchSink, DeliveryError};

/// Destinations of a batch.
pub struct TransactionOutputs {
    /// Topics of fragments: one per attribute group (several groups may share one), or one for joined rows. The
    /// topics of the series follow. Empty if nothing is released.
    pub sinks: Vec<OutputTopic>,
    /// Topic of dead letters; none if they are only counted.
    pub dead_letters: Option<OutputTopic>,
    /// Topic of audit records, if configured.
    pub audit: Option<OutputTopic>,
    /// Changelog topic: markers, and the state of each source partition.
    pub changelog: String,
    /// Topic of contributions to series; none without series.
    pub contributions: Option<String>,
    /// Names of the consumed topics, by index; empty if the source is not in this cluster.
    pub sources: Vec<String>,
    /// Consumer group of these topics.
    pub group: String,
    /// True if the cluster stores committed offsets, so that they can be checked. A mock cluster does not.
    pub keeps_offsets: bool,
    /// Names of the attributes, for dead letters.
    pub attributes: Vec<String>,
}

/// Header of every fragment of a stream that may contain untrue values.
pub const UNTRUTHFUL_HEADER: &str = "throng-untruthful";

/// Sink that writes each batch in one Kafka transaction.
pub struct TransactionalSink {
    pub(super) epochs: ProducerSequence,
    transactional_id: String,
    outputs: TransactionOutputs,
    group: GroupMetadata,
    pub(super) stop: Arc<AtomicBool>,
    bytes_out: u64,
}

/// Attempt to write a batch, with a separate producer.
pub(super) struct TransactionAttempt<'a> {
    pub producer: TransactionProducer,
    pub sink: &'a TransactionalSink,
}

/// Timeout of one step of an abort.
const ABORT_STEP_TIMEOUT: Duration = Duration::from_millis(50);

/// Longest time for which the client's queue may stay full.
const QUEUE_FULL_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for the client to report why a transaction has failed.
const REPORT_TIMEOUT: Duration = Duration::from_millis(50);

/// Poll interval while the queue is full or messages are not acknowledged.
const FLUSH_POLL_INTERVAL: Duration = Duration::from_millis(1);

impl TransactionalSink {
    /// Opens the first producer, which fences older instances with the same transactional id.
    pub fn open(
        cluster: &KafkaCluster,
        transactional_id: &str,
        outputs: TransactionOutputs,
        group: GroupMetadata,
        stop: Arc<AtomicBool>,
        patience: Duration,
    ) -> Result<Self, KafkaFailure> {
        let mut written: Vec<String> = outputs
            .sinks
            .iter()
            .chain(&outputs.dead_letters)
            .chain(&outputs.audit)
            .map(|topic| topic.name.clone())
            .chain(outputs.contributions.clone())
            .collect();
        written.sort();
        written.dedup();
        let is_looked_for = outputs.keeps_offsets && !outputs.sources.is_empty();
        let standing = is_looked_for.then(|| OffsetCheck::open(cluster, &outputs.group, Arc::clone(&group)));
        let standing = standing.transpose()?;
        let epochs =
            ProducerSequence::open(cluster, transactional_id, &outputs.changelog, written, standing, patience)?;
        Ok(Self { epochs, transactional_id: transactional_id.to_owned(), outputs, group, stop, bytes_out: 0 })
    }

    /// Returns the offsets that a batch commits.
    fn offsets(&self, envelope: &BatchEnvelope<'_>) -> Vec<SentOffset> {
        let sent = |(&(topic, partition), &next): (&(u16, i32), &i64)| SentOffset {
            topic: self.outputs.sources[usize::from(topic)].clone(),
            partition,
            next,
        };
        match self.outputs.sources.as_slice() {
            [] => Vec::new(),
            _ => envelope.positions.iter().map(sent).collect(),
        }
    }
}

impl TransactionAttempt<'_> {
    fn run(
        &self,
        batch: &ReleasableBatch,
        envelope: &BatchEnvelope<'_>,
        marker: BatchMarker,
        sent: &[SentOffset],
    ) -> Result<u64, DeliveryError> {
        let Self { sink: TransactionalSink { outputs, .. }, producer } = self;
        producer.begin_transaction().map_err(|e| delivery_error_of(&e))?;
        crash_point("begun");
        let mut bytes = 0u64;
        let (mut rank, mut before) = (0i64, "");
        for output in 0..batch.outputs() {
            let lines = batch.output(output);
            let Some(sink) = outputs.sinks.get(output) else {
                // A daemon that only observes has no fragments.
                if lines.is_empty() {
                    continue;
                }
                return Err(DeliveryError::Fatal(format!("output {output} has no topic")));
            };
            // Ranks are counted per topic.
            rank = if sink.name == before { rank } else { 0 };
            before = &sink.name;
            for (_, line) in lines {
                // The partition of a fragment reveals only its rank among the sorted bytes of the batch.
                let partition = i32::try_from(rank % i64::from(sink.partitions)).expect("below the partition count");
                rank += 1;
                bytes += line.bytes.len() as u64;
                let mut record = BaseRecord::<(), [u8]>::to(&sink.name)
                    .payload(line.bytes)
                    .partition(partition)
                    .timestamp(envelope.clock_ms);
                if let Some(how) = envelope.untruthful {
                    let header = rdkafka::message::Header { key: UNTRUTHFUL_HEADER, value: Some(how) };
                    record = record.headers(rdkafka::message::OwnedHeaders::new_with_capacity(1).insert(header));
                }
                self.send(record)?;
            }
        }
        bytes += self.send_series(batch, envelope)?;
        if let Some(topic) = &outputs.dead_letters {
            for (rank, rejected) in (0i64..).zip(envelope.rejected) {
                let source = outputs.sources.get(usize::from(rejected.coordinate.topic));
                let source = source.map_or("", String::as_str);
                let letter = DeadLetter::of(rejected, source, &outputs.attributes, envelope.sequence);
                let body = letter.body();
                let partition = i32::try_from(rank % i64::from(topic.partitions)).expect("below the partition count");
                bytes += body.len() as u64;
                let mut headers = rdkafka::message::OwnedHeaders::new();
                for (key, value) in &letter.headers() {
                    headers = headers.insert(rdkafka::message::Header { key, value: Some(value) });
                }
                self.send(
                    BaseRecord::<(), [u8]>::to(&topic.name)
                        .payload(body.as_bytes())
                        .partition(partition)
                        .headers(headers)
                        .timestamp(envelope.clock_ms),
                )?;
            }
        }
        if let (Some(topic), Some(audit)) = (&outputs.audit, envelope.audit) {
            // A single partition keeps the records of an instance in the order of its batches.
            let record = BaseRecord::<[u8], [u8]>::to(&topic.name).key(audit.key.as_bytes()).partition(0);
            self.send(record.payload(&audit.line).timestamp(envelope.clock_ms))?;
        }
        for entry in envelope.changelog {
            let record = BaseRecord::<[u8], [u8]>::to(&outputs.changelog).key(&entry.key);
            let record = record.partition(partition_of(entry.source_partition)).timestamp(envelope.clock_ms);
            self.send(match &entry.value {
                Some(value) => record.payload(value),
                None => record,
            })?;
        }
        if let Some(topic) = &outputs.contributions {
            for sealed in envelope.contributions {
                let key = key_of_contributions(&outputs.group, sealed);
                let record = BaseRecord::<[u8], [u8]>::to(topic).key(&key).partition(0);
                self.send(record.payload(sealed).timestamp(envelope.clock_ms))?;
            }
        }
        self.send_marker(marker, envelope.clock_ms)?;
        crash_point("produced");
        self.flush()?;
        crash_point("acknowledged");
        // Sent last: an instance that reads these offsets finds the changelog entries before the end that it reads
        // next.
        self.send_offsets(sent)?;
        crash_point("offsets-sent");
        self.commit()?;
        crash_point("committed");
        Ok(bytes)
    }

    /// Sends the rows of the series as JSON, independent of the format of the fragments. Returns their size in bytes.
    fn send_series(&self, batch: &ReleasableBatch, envelope: &BatchEnvelope<'_>) -> Result<u64, DeliveryError> {
        let (series, sinks) = (batch.series(), &self.sink.outputs.sinks);
        let mut bytes = 0;
        for (number, topic) in sinks.iter().skip(sinks.len().saturating_sub(series.series())).enumerate() {
            for (rank, line) in (0i64..).zip(series.lines(number, RowFormat::Json)) {
                let partition = i32::try_from(rank % i64::from(topic.partitions)).expect("below the partition count");
                bytes += line.len() as u64;
                let record = BaseRecord::<(), [u8]>::to(&topic.name).payload(line.as_slice()).partition(partition);
                self.send(record.timestamp(envelope.clock_ms))?;
            }
        }
        Ok(bytes)
    }

    fn send_marker(&self, marker: BatchMarker, clock_ms: i64) -> Result<(), DeliveryError> {
        let TransactionalSink { outputs, transactional_id, .. } = self.sink;
        let body = marker.body();
        let record = BaseRecord::<[u8], [u8]>::to(&outputs.changelog)
            .key(transactional_id.as_bytes())
            .partition(MARKER_PARTITION);
        self.send(record.payload(body.as_bytes()).timestamp(clock_ms))
    }

    fn send<K: rdkafka::message::ToBytes + ?Sized>(
        &self,
        record: BaseRecord<'_, K, [u8]>,
    ) -> Result<(), DeliveryError> {
        let mut full_since = None;
        let mut record = record;
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back))
                    if full_since.get_or_insert_with(Instant::now).elapsed() < QUEUE_FULL_TIMEOUT =>
                {
                    record = back;
                    self.producer.poll(FLUSH_POLL_INTERVAL);
                }
                Err((error, _)) => return Err(delivery_error_of(&error)),
            }
        }
    }

    fn send_offsets(&self, sent: &[SentOffset]) -> Result<(), DeliveryError> {
        let TransactionalSink { group, stop, .. } = self.sink;
        if sent.is_empty() {
            return Ok(());
        }
        let offsets = partition_list(sent).map_err(|e| delivery_error_of(&e))?;
        let group = group().ok_or_else(|| DeliveryError::Aborted("the consumer has left its group".to_owned()))?;
        retry_step(stop, || self.producer.send_offsets_to_transaction(&offsets, &group, STEP_TIMEOUT))
    }

    /// Waits until every message is acknowledged. Polls each millisecond, because the client's flush polls every 100
    /// ms.
    pub fn flush(&self) -> Result<(), DeliveryError> {
        let since = Instant::now();
        // The first call sends all messages immediately instead of after `linger.ms`. The client's count of messages
        // in flight also includes events, which only a poll removes.
        while self.producer.flush(Duration::ZERO).is_err() {
            if let Some((code, _)) = self.producer.client().fatal_error() {
                return Err(DeliveryError::Fatal(permanent_failure_text(code)));
            }
            if self.producer.context().has_failed() {
                return Err(DeliveryError::Aborted("the transaction failed".to_owned()));
            }
            if self.sink.stop.load(Ordering::Acquire) && since.elapsed() >= SHUTDOWN_TIMEOUT {
                return Err(DeliveryError::Fatal("stopped while waiting for an answer of the broker".to_owned()));
            }
            self.producer.poll(FLUSH_POLL_INTERVAL);
        }
        // Removes the client events of this batch, which would accumulate.
        self.producer.poll(Duration::ZERO);
        Ok(())
    }

    /// Returns `error`, or a fatal error with the topic if the permission to write to it is missing.
    pub fn name_denied_topic(&self, error: DeliveryError) -> DeliveryError {
        // The client's report may still be in its queue.
        self.producer.poll(REPORT_TIMEOUT);
        match self.producer.context().denied() {
            Some(topic) => DeliveryError::Fatal(format!(
                "no right to write to topic {topic:?} (Write): grant it to our user (docs/deploy.md)"
            )),
            None => error,
        }
    }

    pub fn commit(&self) -> Result<(), DeliveryError> {
        retry_step(&self.sink.stop, || self.producer.commit_transaction(STEP_TIMEOUT))
    }

    /// Aborts the transaction. An abort discards queued messages and waits until each one is reported, so the reports
    /// are polled between short steps.
    pub fn abort(&self) -> Result<(), DeliveryError> {
        retry_step(&self.sink.stop, || {
            let turn = self.producer.abort_transaction(ABORT_STEP_TIMEOUT);
            if turn.is_err() {
                self.producer.poll(FLUSH_POLL_INTERVAL);
            }
            turn
        })
    }
}

impl BatchSink for TransactionalSink {
    fn deliver(&mut self, batch: &ReleasableBatch, envelope: &BatchEnvelope<'_>) -> Result<(), DeliveryError> {
        let marker = BatchMarker { sequence: envelope.sequence, attempt: envelope.attempt };
        let sent = self.offsets(envelope);
        let producer = self.epochs.take_producer(&self.stop)?;
        let attempt = TransactionAttempt { producer, sink: self };
        let outcome =
            match attempt.run(batch, envelope, marker, &sent).map_err(|error| attempt.name_denied_topic(error)) {
                Err(DeliveryError::Aborted(why)) => {
                    // An abort purges the queue. If it is not confirmed, the state of this producer is unknown.
                    match attempt.abort() {
                        Ok(()) => Err(DeliveryError::Aborted(why)),
                        Err(failed) => Err(DeliveryError::Fatal(format!("{why}, and the abort failed: {failed}"))),
                    }
                }
                decided => decided,
            };
        let TransactionAttempt { producer, .. } = attempt;
        match &outcome {
            Ok(_) => self.epochs.request_next(producer, marker, sent)?,
            Err(DeliveryError::Aborted(_)) => self.epochs.request_next(producer, marker, Vec::new())?,
            Err(DeliveryError::Fatal(_)) => {}
        }
        self.bytes_out += outcome?;
        Ok(())
    }

    fn wait_until_visible(&mut self, patience: Duration) -> Result<(), DeliveryError> {
        self.epochs.await_committed_offsets(&self.stop, patience)
    }

    fn bytes_out(&self) -> u64 {
        self.bytes_out
    }
}

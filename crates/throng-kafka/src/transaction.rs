//! Transaction of one batch with its consumed offsets and marker.

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
    /// Topics of fragments (per group, or one for joined rows), then of series.
    pub sinks: Vec<OutputTopic>,
    /// Topic of dead letters, if written.
    pub dead_letters: Option<OutputTopic>,
    /// Topic of audit records, if configured.
    pub audit: Option<OutputTopic>,
    /// Changelog topic: markers and partition states.
    pub changelog: String,
    /// Topic of contributions to series.
    pub contributions: Option<String>,
    /// Consumed topics by index; empty for another cluster.
    pub sources: Vec<String>,
    /// Consumer group of these topics.
    pub group: String,
    /// True if the cluster stores committed offsets.
    pub keeps_offsets: bool,
    /// Names of the attributes, for dead letters.
    pub attributes: Vec<String>,
}

/// Header of fragments with possibly untrue values.
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

pub(super) struct TransactionAttempt<'a> {
    pub producer: TransactionProducer,
    pub sink: &'a TransactionalSink,
}

const ABORT_STEP_TIMEOUT: Duration = Duration::from_millis(50);

const QUEUE_FULL_TIMEOUT: Duration = Duration::from_secs(60);

const REPORT_TIMEOUT: Duration = Duration::from_millis(50);

const FLUSH_POLL_INTERVAL: Duration = Duration::from_millis(1);

impl TransactionalSink {
    /// Opens the first producer, which fences older instances.
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
                if lines.is_empty() {
                    continue;
                }
                return Err(DeliveryError::Fatal(format!("output {output} has no topic")));
            };
            rank = if sink.name == before { rank } else { 0 };
            before = &sink.name;
            for (_, line) in lines {
                // The partition reveals only a fragment's rank among the sorted bytes of the batch.
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
            // One partition keeps the batches of an instance in order.
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
        // Last: their reader finds the changelog entries before the end.
        self.send_offsets(sent)?;
        crash_point("offsets-sent");
        self.commit()?;
        crash_point("committed");
        Ok(bytes)
    }

    /// Sends the series as JSON in every output format; returns the bytes.
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

    /// Waits until every message is acknowledged. The client's flush would poll only every 100 ms.
    pub fn flush(&self) -> Result<(), DeliveryError> {
        let since = Instant::now();
        // Sends all messages without `linger.ms`. Only a poll removes events from the messages in flight.
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
        // Removes accumulated events.
        self.producer.poll(Duration::ZERO);
        Ok(())
    }

    /// Adds the topic with a missing write permission to `error`.
    pub fn name_denied_topic(&self, error: DeliveryError) -> DeliveryError {
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

    /// Aborts the transaction; polls the report of each discarded message.
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
                    // After an unconfirmed abort the producer's state is unknown.
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

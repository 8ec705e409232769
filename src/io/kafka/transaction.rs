//! One batch, one transaction: fragments, dead letters, consumed offsets and the marker, all or nothing.

use super::changelog::{MARKERS, key_of_contributions, partition_of};
use super::connection::{Cluster, KafkaFailure};
use super::epoch::Epochs;
use super::marker::Marker;
use super::producer::{PARTING, STEP, Writer, classify, ended, retried};
use super::standing::{GroupMetadata, Sent, Standing, listed};
use super::topic::OutputTopic;
use crate::anonymity::series::RowFormat;
use crate::faults::crash_point;
use crate::io::dead_letter::DeadLetter;
use crate::release::sink::{DeliveryError, Envelope, Sink};
use crate::release::verified::Verified;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where a batch leaves to.
pub struct Outputs {
    /// Fragments: a topic for each group, of which several may be the same, or one for joined rows; none where nothing leaves.
    pub sinks: Vec<OutputTopic>,
    /// Where dead letters go; none where they are only counted.
    pub dead_letters: Option<OutputTopic>,
    /// Topic of audit records; none where none are configured.
    pub audit: Option<OutputTopic>,
    /// The changelog: markers, and the state of each source partition.
    pub changelog: String,
    /// The topic of contributions to series; none without series.
    pub contributions: Option<String>,
    /// Names of the topics that are consumed, by index; empty when the source is no topic of this cluster.
    pub sources: Vec<String>,
    /// The group that reads them.
    pub group: String,
    /// Whether the cluster keeps the offsets that a transaction commits, so that they can be looked for; a stand-in does not.
    pub keeps_offsets: bool,
    /// Names of the attributes, for dead letters.
    pub attributes: Vec<String>,
}

/// The header of every fragment of a stream that may say what is not true.
pub const UNTRUTHFUL: &str = "throng-untruthful";

/// The transactional sink.
pub struct TransactionalSink {
    pub(super) epochs: Epochs,
    transactional_id: String,
    outputs: Outputs,
    group: GroupMetadata,
    pub(super) stop: Arc<AtomicBool>,
    bytes_out: u64,
}

/// One attempt at a batch, with a producer of its own.
pub(super) struct Attempt<'a> {
    pub producer: Writer,
    pub sink: &'a TransactionalSink,
}

/// How long one turn of an abort may take.
const TURN: Duration = Duration::from_millis(50);

/// How long the client's queue may stay full.
const FULL: Duration = Duration::from_secs(60);

/// How long a client may take to say why a transaction has failed.
const SAYING: Duration = Duration::from_millis(50);

/// How long a full queue or an unflushed message is waited for between two looks.
const LOOK: Duration = Duration::from_millis(1);

impl TransactionalSink {
    /// Opens the first producer, which fences every older self with the same transactional id.
    pub fn open(
        cluster: &Cluster,
        transactional_id: &str,
        outputs: Outputs,
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
        let standing = is_looked_for.then(|| Standing::open(cluster, &outputs.group, Arc::clone(&group)));
        let standing = standing.transpose()?;
        let epochs = Epochs::open(cluster, transactional_id, &outputs.changelog, written, standing, patience)?;
        Ok(Self { epochs, transactional_id: transactional_id.to_owned(), outputs, group, stop, bytes_out: 0 })
    }

    /// The offsets that a batch sends.
    fn offsets(&self, envelope: &Envelope<'_>) -> Vec<Sent> {
        let sent = |(&(topic, partition), &next): (&(u16, i32), &i64)| Sent {
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

impl Attempt<'_> {
    fn run(
        &self,
        batch: &Verified,
        envelope: &Envelope<'_>,
        marker: Marker,
        sent: &[Sent],
    ) -> Result<u64, DeliveryError> {
        let Self { sink: TransactionalSink { outputs, .. }, producer } = self;
        producer.begin_transaction().map_err(|e| classify(&e))?;
        crash_point("begun");
        let mut bytes = 0u64;
        let (mut rank, mut before) = (0i64, "");
        for output in 0..batch.outputs() {
            let lines = batch.output(output);
            let Some(sink) = outputs.sinks.get(output) else {
                // Where the daemon only watches, there are no fragments.
                if lines.is_empty() {
                    continue;
                }
                return Err(DeliveryError::Fatal(format!("output {output} has no topic")));
            };
            // Places are counted in each topic by itself.
            rank = if sink.name == before { rank } else { 0 };
            before = &sink.name;
            for (_, line) in lines {
                // The place of a fragment says nothing but its rank among the sorted bytes of the batch.
                let partition = i32::try_from(rank % i64::from(sink.partitions)).expect("below the partition count");
                rank += 1;
                bytes += line.bytes.len() as u64;
                let mut record = BaseRecord::<(), [u8]>::to(&sink.name)
                    .payload(line.bytes)
                    .partition(partition)
                    .timestamp(envelope.clock_ms);
                if let Some(how) = envelope.untruthful {
                    let header = rdkafka::message::Header { key: UNTRUTHFUL, value: Some(how) };
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
            // One partition, so that records of an instance are read in the order of its batches.
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
        // Whoever finds these offsets finds the entries of the changelog before the end that it looks up next.
        self.send_offsets(sent)?;
        crash_point("offsets-sent");
        self.commit()?;
        crash_point("committed");
        Ok(bytes)
    }

    /// Sends the rows of the series, as JSON whatever the fragments are. Returns their bytes.
    fn send_series(&self, batch: &Verified, envelope: &Envelope<'_>) -> Result<u64, DeliveryError> {
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

    fn send_marker(&self, marker: Marker, clock_ms: i64) -> Result<(), DeliveryError> {
        let TransactionalSink { outputs, transactional_id, .. } = self.sink;
        let body = marker.body();
        let record =
            BaseRecord::<[u8], [u8]>::to(&outputs.changelog).key(transactional_id.as_bytes()).partition(MARKERS);
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
                    if full_since.get_or_insert_with(Instant::now).elapsed() < FULL =>
                {
                    record = back;
                    self.producer.poll(LOOK);
                }
                Err((error, _)) => return Err(classify(&error)),
            }
        }
    }

    fn send_offsets(&self, sent: &[Sent]) -> Result<(), DeliveryError> {
        let TransactionalSink { group, stop, .. } = self.sink;
        if sent.is_empty() {
            return Ok(());
        }
        let offsets = listed(sent).map_err(|e| classify(&e))?;
        let group = group().ok_or_else(|| DeliveryError::Aborted("the consumer has left its group".to_owned()))?;
        retried(stop, || self.producer.send_offsets_to_transaction(&offsets, &group, STEP))
    }

    /// Waits until every message is acknowledged, looking often: the client's own flush looks every 100 ms.
    pub fn flush(&self) -> Result<(), DeliveryError> {
        let since = Instant::now();
        // The first call hands everything to the sender threads at once instead of after `linger.ms`. The count of what is in
        // flight would not do: it includes the client's own notices, which nothing but a poll takes away.
        while self.producer.flush(Duration::ZERO).is_err() {
            if let Some((code, _)) = self.producer.client().fatal_error() {
                return Err(DeliveryError::Fatal(ended(code)));
            }
            if self.producer.context().has_failed() {
                return Err(DeliveryError::Aborted("the transaction failed before its end".to_owned()));
            }
            if self.sink.stop.load(Ordering::Acquire) && since.elapsed() >= PARTING {
                return Err(DeliveryError::Fatal("told to stop while the broker does not answer".to_owned()));
            }
            self.producer.poll(LOOK);
        }
        // Its notices are taken away with every batch: they would pile up.
        self.producer.poll(Duration::ZERO);
        Ok(())
    }

    /// The error, or the topic that we may not write to, where that is why: a new attempt would be refused as well.
    pub fn named(&self, error: DeliveryError) -> DeliveryError {
        // What the client has to say of it lies in its queue.
        self.producer.poll(SAYING);
        match self.producer.context().denied() {
            Some(topic) => DeliveryError::Fatal(format!(
                "no right to write to topic {topic:?} (Write): grant it to our user (docs/security.md)"
            )),
            None => error,
        }
    }

    pub fn commit(&self) -> Result<(), DeliveryError> {
        retried(&self.sink.stop, || self.producer.commit_transaction(STEP))
    }

    /// An abort throws away what is queued and waits until all of it has been reported to us. The reports are taken between
    /// short turns: while they lie in the client the messages count as unsettled, and the abort would never end.
    pub fn abort(&self) -> Result<(), DeliveryError> {
        retried(&self.sink.stop, || {
            let turn = self.producer.abort_transaction(TURN);
            if turn.is_err() {
                self.producer.poll(LOOK);
            }
            turn
        })
    }
}

impl Sink for TransactionalSink {
    fn deliver(&mut self, batch: &Verified, envelope: &Envelope<'_>) -> Result<(), DeliveryError> {
        let marker = Marker { sequence: envelope.sequence, attempt: envelope.attempt };
        let sent = self.offsets(envelope);
        let producer = self.epochs.take(&self.stop)?;
        let attempt = Attempt { producer, sink: self };
        let outcome = match attempt.run(batch, envelope, marker, &sent).map_err(|error| attempt.named(error)) {
            Err(DeliveryError::Aborted(why)) => {
                // An abort purges what is queued. If it cannot be confirmed, nothing more may be said of this producer.
                match attempt.abort() {
                    Ok(()) => Err(DeliveryError::Aborted(why)),
                    Err(failed) => Err(DeliveryError::Fatal(format!("{why}, and the abort failed: {failed}"))),
                }
            }
            decided => decided,
        };
        let Attempt { producer, .. } = attempt;
        match &outcome {
            Ok(_) => self.epochs.renew(producer, marker, sent)?,
            Err(DeliveryError::Aborted(_)) => self.epochs.renew(producer, marker, Vec::new())?,
            Err(DeliveryError::Fatal(_)) => {}
        }
        self.bytes_out += outcome?;
        Ok(())
    }

    fn stand(&mut self, patience: Duration) -> Result<(), DeliveryError> {
        self.epochs.stand(&self.stop, patience)
    }

    fn bytes_out(&self) -> u64 {
        self.bytes_out
    }
}

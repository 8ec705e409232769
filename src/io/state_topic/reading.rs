//! All that the topic has of one instance.

use super::spelling::{Body, Place, Spelling};
use crate::io::kafka::access::Asking;
use crate::io::kafka::connection::{Cluster, KafkaFailure};
use crate::release::kept_sum::KeptSum;
use crate::release::kept_sum::StateChange;
use crate::release::sink::KeptIn;
use rdkafka::Message;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// What cannot be done, in errors.
const WHAT: &str = "cannot read the state topic";
/// What it takes, in errors.
const RIGHT: &str = "read the state topic (Read)";
/// The group that is named, and never joined.
const READER: &str = "throng.state.reader";
/// How long a broker may take to answer, and to send the next message.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(200);
/// How long another instance's open transaction may hide what is ours: the time-out of a transaction and some more.
const UNDECIDED: Duration = Duration::from_secs(90);

/// Why the state of an instance cannot be had from its topic.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum StateTopicError {
    #[error(transparent)]
    Kafka(#[from] KafkaFailure),
    #[error(
        "the secret does not belong to the state of instance {instance:?} in topic {topic:?} (give back the secret that it was made with, or name another state.instance)"
    )]
    Secret { topic: String, instance: String },
    #[error(
        "the record at offset {offset} in partition {partition} of topic {topic:?} has the name of instance {instance:?} and does not open, while others of it do: another program has written it (write a record without a value with its key there, and give back the topic where that had a value before; and leave the right to write to throng)"
    )]
    Foreign { topic: String, partition: i32, offset: i64, instance: String },
    #[error(
        "topic {topic:?} has no state of instance {instance:?}, and the commits topic knows of batches of it (was the topic emptied, or were partitions added? restore it, or name another state.instance: what this one has released supports nothing then)"
    )]
    Missing { topic: String, instance: String },
    #[error(
        "the state of instance {instance:?} in topic {topic:?} is damaged: {what} (restore the topic, or name another state.instance)"
    )]
    Damaged { topic: String, instance: String, what: &'static str },
    #[error(
        "partition {partition} of topic {topic:?} does not have the state of instance {instance:?} as it was committed with its last batch: records of it were removed, or older ones put back (restore the topic; or give back a directory that is in step, which another state.topic takes whole; or name another state.instance: what this one has released supports nothing then)"
    )]
    Incomplete { topic: String, partition: i32, instance: String },
    #[error(
        "another process of instance {instance:?} has gone on while this one read its state from topic {topic:?} (let only one process have that state.instance; this one may be started again)"
    )]
    Overtaken { topic: String, instance: String },
}

impl StateTopicError {
    /// Whether the operator must change something before another start makes sense.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Kafka(failure) => failure.is_usage(),
            Self::Overtaken { .. } => false,
            Self::Secret { .. }
            | Self::Foreign { .. }
            | Self::Missing { .. }
            | Self::Damaged { .. }
            | Self::Incomplete { .. } => true,
        }
    }
}

/// The topic of states, as one instance sees it.
#[derive(Clone)]
pub struct StateTopic {
    /// Where it is.
    pub cluster: Cluster,
    /// Its name.
    pub topic: String,
    /// The partition of the instance.
    pub partition: i32,
    /// How its values are spelled.
    pub spelling: Spelling,
}

/// What a topic has of an instance.
#[derive(Default)]
pub struct Kept {
    /// The values of one generation.
    pub values: Vec<StateChange>,
    /// Nothing of another generation is there.
    pub is_alone: bool,
    /// Bytes that were read, of all instances in the partition.
    pub bytes: u64,
}

/// The offset of a record, and what it holds.
type Sealed = (i64, Vec<u8>);

impl StateTopic {
    /// The topic `topic`, which must be there, be compacted, and delete nothing by age.
    ///
    /// # Errors
    /// When it is not, or the cluster does not answer.
    pub fn find(cluster: &Cluster, topic: &str, spelling: Spelling, is_asked: bool) -> Result<Self, StateTopicError> {
        let partitions = cluster.partitions(&[topic], PATIENCE)?[0];
        if is_asked {
            cluster.check_compacted(topic, PATIENCE)?;
        }
        let partition = spelling.partition(partitions);
        Ok(Self { cluster: cluster.clone(), topic: topic.to_owned(), partition, spelling })
    }

    /// The values of `generation`, which make the sum `kept`, and whether something is there of another one. Call it after
    /// `init_transactions`, which settles what an older self had open; what other instances have open is waited for.
    ///
    /// # Errors
    /// When the partition cannot be read to its end, or what is read does not open or fit together.
    pub fn read(&self, generation: u64, kept: KeptSum) -> Result<Kept, StateTopicError> {
        let mut live: BTreeMap<Place, Sealed> = BTreeMap::new();
        let mut others: BTreeSet<Place> = BTreeSet::new();
        let mut bytes = 0;
        self.walk(|offset, key, body| {
            bytes += (key.len() + body.map_or(0, <[u8]>::len)) as u64;
            let Some(place) = self.spelling.place(key) else { return };
            match body {
                Some(body) if place.generation == generation => drop(live.insert(place, (offset, body.to_vec()))),
                Some(_) => drop(others.insert(place)),
                None => {
                    live.remove(&place);
                    others.remove(&place);
                }
            }
        })?;
        let values = self.put_together(self.open(live)?)?;
        if values.is_empty() {
            return Err(self.missing());
        }
        if KeptSum::of(&values) != kept {
            let (topic, instance) = (self.topic.clone(), self.spelling.instance().to_owned());
            return Err(StateTopicError::Incomplete { topic, partition: self.partition, instance });
        }
        Ok(Kept { values, is_alone: others.is_empty(), bytes })
    }

    /// The keys of all records of the instance that are of another generation than this one. What they hold is not kept in memory, and
    /// need not open.
    ///
    /// # Errors
    /// When the partition cannot be read to its end.
    pub fn others(&self, generation: u64) -> Result<Vec<Vec<u8>>, KafkaFailure> {
        let mut others = BTreeSet::new();
        self.walk(|_, key, body| {
            let Some(place) = self.spelling.place(key).filter(|place| place.generation != generation) else { return };
            match body {
                Some(_) => others.insert(place),
                None => others.remove(&place),
            };
        })?;
        Ok(others.iter().map(|place| self.spelling.key_of(place)).collect())
    }

    /// Opens all of `live`. Where nothing opens it is of another secret, and else somebody else has written what does not.
    fn open(&self, live: BTreeMap<Place, Sealed>) -> Result<Vec<(Place, Body)>, StateTopicError> {
        let (mut opened, mut shut) = (Vec::with_capacity(live.len()), None);
        for (place, (offset, sealed)) in live {
            match self.spelling.open(&self.spelling.key_of(&place), &sealed) {
                Some(body) => opened.push((place, body)),
                None => shut = Some(shut.map_or(offset, |first: i64| first.min(offset))),
            }
        }
        let (topic, instance) = (self.topic.clone(), self.spelling.instance().to_owned());
        match shut {
            None => Ok(opened),
            Some(_) if opened.is_empty() => Err(StateTopicError::Secret { topic, instance }),
            Some(offset) => Err(StateTopicError::Foreign { topic, partition: self.partition, offset, instance }),
        }
    }

    /// Puts the parts of each value together.
    fn put_together(&self, opened: Vec<(Place, Body)>) -> Result<Vec<StateChange>, StateTopicError> {
        let mut values: Vec<StateChange> = Vec::new();
        // Records of the value in hand that are still to come.
        let mut left = 0;
        for (place, body) in opened {
            if place.part == 0 && left == 0 {
                left = body.parts;
                values.push(StateChange {
                    tree: body.tree,
                    key: body.key,
                    value: Some(body.bytes),
                    parts: 0,
                    had: None,
                });
            } else {
                let of = values.last_mut().filter(|last| left > 0 && last.key == body.key && last.tree == body.tree);
                let value = of.and_then(|last| last.value.as_mut());
                value.ok_or_else(|| self.damaged("a part of a value has no place"))?.extend(body.bytes);
            }
            left = left.checked_sub(1).ok_or_else(|| self.damaged("a value has no parts"))?;
        }
        if left > 0 {
            return Err(self.damaged("a part of a value is missing"));
        }
        Ok(values)
    }

    fn damaged(&self, what: &'static str) -> StateTopicError {
        let (topic, instance) = (self.topic.clone(), self.spelling.instance().to_owned());
        StateTopicError::Damaged { topic, instance, what }
    }

    /// The error of a process that has lost the name of its instance to another one.
    #[must_use]
    pub fn overtaken(&self) -> StateTopicError {
        StateTopicError::Overtaken { topic: self.topic.clone(), instance: self.spelling.instance().to_owned() }
    }

    /// The error of a topic that has nothing of the instance.
    #[must_use]
    pub fn missing(&self) -> StateTopicError {
        StateTopicError::Missing { topic: self.topic.clone(), instance: self.spelling.instance().to_owned() }
    }

    /// Where the state of the instance is kept, and how far that partition is written now.
    ///
    /// # Errors
    /// When the cluster does not say.
    pub fn kept_in(&self) -> Result<KeptIn, KafkaFailure> {
        let (begin, end) = self.ends()?;
        Ok(KeptIn { topic: self.topic.clone(), partition: self.partition, begin, end })
    }

    /// The first offset of the partition, and the one behind its last, whatever is still undecided.
    fn ends(&self) -> Result<(i64, i64), KafkaFailure> {
        let reader = self.reader("read_uncommitted")?;
        let ends = reader.fetch_watermarks(&self.topic, self.partition, PATIENCE);
        ends.map_err(|error| self.cluster.failure_of(WHAT, RIGHT, error))
    }

    /// Shows offsets, keys and bodies of all committed records of the partition, as far as its end is now.
    fn walk(&self, mut visit: impl FnMut(i64, &[u8], Option<&[u8]>)) -> Result<(), KafkaFailure> {
        let (topic, partition) = (self.topic.as_str(), self.partition);
        let failed = |e| self.cluster.failure(WHAT, e);
        let (_, end) = self.ends()?;
        let committed = self.reader("read_committed")?;
        // To a client of committed records the end is the beginning of the first open transaction, whoever has it open.
        let deadline = Instant::now() + UNDECIDED;
        while committed.fetch_watermarks(topic, partition, PATIENCE).map_or(0, |(_, decided)| decided) < end {
            if Instant::now() > deadline {
                return Err(KafkaFailure::Undecided { topic: topic.to_owned(), seconds: UNDECIDED.as_secs() });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition, Offset::Beginning).map_err(failed)?;
        committed.assign(&list).map_err(failed)?;
        let mut heard = Instant::now();
        loop {
            match committed.poll(POLL) {
                Some(Ok(message)) => {
                    heard = Instant::now();
                    visit(message.offset(), message.key().unwrap_or_default(), message.payload());
                }
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                Some(Err(error)) if crate::io::kafka::failure::is_final_without_group(&error) => {
                    return Err(self.cluster.failure_of(WHAT, RIGHT, error));
                }
                // Errors that the client retries by itself.
                Some(Err(_)) | None if heard.elapsed() > PATIENCE => return Err(self.cluster.unanswered(PATIENCE)),
                Some(Err(_)) | None => {}
            }
        }
    }

    fn reader(&self, isolation: &str) -> Result<Asking, KafkaFailure> {
        let mut config = self.cluster.consumer(READER);
        config.set("enable.partition.eof", "true");
        config.set("auto.offset.reset", "earliest");
        config.set("isolation.level", isolation);
        config.set("statistics.interval.ms", "0");
        config.asking(WHAT)
    }
}

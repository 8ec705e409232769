//! Reader of committed records and markers.

use crate::scale_out::seen::{Batches, Seen};
use crate::support::kafka::TestCluster;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

pub struct Reader {
    out: String,
    changelog: String,
    bootstrap: String,
    committed: BaseConsumer,
    everything: BaseConsumer,
    next: i64,
    pub lines: Vec<Seen>,
    /// Instances that committed batches, by timestamp, from the markers.
    pub batches: Batches,
}

fn consumer(bootstrap: &str, isolation: &str) -> BaseConsumer {
    let consumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "scale-out-reader")
        .set("isolation.level", isolation)
        .set("enable.partition.eof", "true")
        .set("enable.auto.commit", "false")
        .set("fetch.wait.max.ms", "10")
        .create();
    consumer.expect("a consumer")
}

fn end_of(consumer: &BaseConsumer, topic: &str) -> i64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match consumer.fetch_watermarks(topic, 0, PATIENCE) {
            Ok((_, end)) => return end,
            // The broker may have just restarted.
            Err(why) => assert!(Instant::now() < deadline, "{topic}: {why}"),
        }
    }
}

fn read(consumer: &BaseConsumer, topic: &str, from: i64, mut each: impl FnMut(&BorrowedMessage<'_>)) {
    let end = end_of(consumer, topic);
    let mut wanted = TopicPartitionList::new();
    wanted.add_partition_offset(topic, 0, Offset::Offset(from)).expect("a partition");
    consumer.assign(&wanted).expect("assigned");
    let deadline = Instant::now() + PATIENCE;
    let mut next = from;
    while next < end {
        match consumer.poll(PATIENCE) {
            Some(Ok(message)) => {
                next = message.offset() + 1;
                if next <= end {
                    each(&message);
                }
            }
            Some(Err(KafkaError::PartitionEOF(_))) => break,
            other => assert!(Instant::now() < deadline, "{topic}: {:?}", other.map(|read| read.map(|_| ()))),
        }
    }
    consumer.unassign().expect("nothing piles up until the next look");
}

impl Reader {
    pub fn new(broker: &TestCluster, out: &str, changelog: &str) -> Self {
        Self {
            out: out.to_owned(),
            changelog: changelog.to_owned(),
            bootstrap: broker.bootstrap(),
            committed: consumer(&broker.bootstrap(), "read_committed"),
            everything: consumer(&broker.bootstrap(), "read_uncommitted"),
            next: 0,
            lines: Vec::new(),
            batches: Batches::new(),
        }
    }

    pub fn end(&self) -> i64 {
        self.lines.last().map_or(0, |line| line.offset + 1)
    }

    pub fn decided(&self) -> [i64; 2] {
        [&self.out, &self.changelog].map(|topic| end_of(&self.committed, topic))
    }

    pub fn written(&self) -> [i64; 2] {
        [&self.out, &self.changelog].map(|topic| end_of(&self.everything, topic))
    }

    /// Reads all lines again with a new client and prints those that differ.
    pub fn compare(&self) {
        let mut again: BTreeMap<i64, String> = BTreeMap::new();
        let client = consumer(&self.bootstrap, "read_committed");
        read(&client, &self.out, 0, |message| {
            let line = message.payload().map(<[u8]>::to_vec).unwrap_or_default();
            again.insert(message.offset(), String::from_utf8(line).expect("text"));
        });
        let seen: BTreeMap<i64, &Seen> = self.lines.iter().map(|line| (line.offset, line)).collect();
        println!("{} lines seen at {} offsets, {} when read again", self.lines.len(), seen.len(), again.len());
        for line in &self.lines {
            if again.get(&line.offset) != Some(&line.text) {
                println!("  not there any more: {line:?}, now {:?}", again.get(&line.offset));
            }
        }
        for (offset, line) in again.iter().filter(|(offset, _)| !seen.contains_key(offset)) {
            println!("  not seen: {offset} {line}");
        }
        for line in self.lines.iter().rev().take(3000) {
            println!("  {} {} {:?} {}", line.offset, line.stamp, self.batches.get(&line.stamp), line.text);
        }
    }

    pub fn look(&mut self) {
        let (from, lines) = (self.end(), &mut self.lines);
        read(&self.committed, &self.out, from, |message| {
            assert!(message.key().is_none() && message.headers().is_none(), "a line has a payload and nothing else");
            lines.push(Seen {
                offset: message.offset(),
                stamp: message.timestamp().to_millis().expect("a stamp"),
                text: String::from_utf8(message.payload().expect("a line").to_vec()).expect("text"),
            });
        });
        let (from, next, batches) = (self.next, &mut self.next, &mut self.batches);
        read(&self.committed, &self.changelog, from, |marker| {
            let by = String::from_utf8(marker.key().expect("a name").to_vec()).expect("text");
            batches.entry(marker.timestamp().to_millis().expect("a stamp")).or_default().push(by);
            *next = marker.offset() + 1;
        });
    }
}

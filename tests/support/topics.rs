//! Creates, empties and deletes topics for a test.

use super::{ANSWER, TestCluster, partitions_of};
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::BaseConsumer;
use rdkafka::{Offset, TopicPartitionList};
use std::time::{Duration, Instant};

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(ANSWER))
}

fn answer<T>(asked: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(asked)
}

impl TestCluster {
    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.client().create().expect("an admin client")
    }

    /// Waits until the partitions have a leader.
    pub fn create_topic(&self, name: &str, partitions: i32, compacted: bool) {
        let settings: &[(&str, &str)] = if compacted { &[("cleanup.policy", "compact")] } else { &[] };
        self.create_topic_with(name, partitions, settings);
    }

    pub fn create_topic_with(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let admin = self.admin();
        let mut topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
        for (key, value) in settings {
            topic = topic.set(key, value);
        }
        for topic in answer(admin.create_topics([&topic], &options())).expect("the broker answers") {
            topic.unwrap_or_else(|(name, why)| panic!("topic {name} was not created: {why}"));
        }
        self.wait_partitions(name, partitions as usize);
    }

    pub fn delete_topic(&self, name: &str) {
        let admin = self.admin();
        for topic in answer(admin.delete_topics(&[name], &options())).expect("the broker answers") {
            topic.unwrap_or_else(|(name, why)| panic!("topic {name} was not deleted: {why}"));
        }
        self.wait_partitions(name, 0);
    }

    pub fn make_topic_anew(&self, name: &str, partitions: i32, compacted: bool) {
        self.delete_topic(name);
        self.create_topic(name, partitions, compacted);
    }

    pub fn add_partitions(&self, name: &str, partitions: usize) {
        let admin = self.admin();
        let wanted = NewPartitions::new(name, partitions);
        let added = answer(admin.create_partitions([&wanted], &options())).expect("the broker answers");
        added.into_iter().for_each(|topic| assert!(topic.is_ok(), "{topic:?}"));
        self.wait_partitions(name, partitions);
    }

    fn wait_partitions(&self, name: &str, wanted: usize) {
        let consumer: BaseConsumer =
            self.client().set("allow.auto.create.topics", "false").create().expect("a consumer");
        let deadline = Instant::now() + ANSWER;
        while partitions_of(&consumer, name).len() != wanted {
            assert!(Instant::now() < deadline, "topic {name} has not {wanted} partitions");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn remove_before(&self, topic: &str, partition: i32, offset: i64) {
        let admin = self.admin();
        let mut before = TopicPartitionList::new();
        before.add_partition_offset(topic, partition, Offset::Offset(offset)).expect("a valid offset");
        let removed = answer(admin.delete_records(&before, &options())).expect("the broker answers");
        removed.elements().iter().for_each(|element| element.error().expect("removed"));
    }
}

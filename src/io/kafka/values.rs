//! Everything that a topic holds now, as readers of committed records see it.

use super::connection::{Cluster, KafkaFailure};
use super::whole::{Reading, WholeTopic};
use rdkafka::Message;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The values of `topic` by partition and offset; records without one are left out. `what` is said to be impossible where it cannot be read.
///
/// # Errors
/// When the topic does not exist or may not be read, and when nothing comes for `patience`.
pub fn values(
    cluster: &Cluster,
    topic: &str,
    what: &'static str,
    patience: Duration,
) -> Result<Vec<Vec<u8>>, KafkaFailure> {
    let silent = || KafkaFailure::Unreachable { brokers: cluster.brokers.clone(), seconds: patience.as_secs() };
    let mut deadline = Instant::now() + patience;
    let reading = Reading { topic: topic.to_owned(), group: "throng.sample", what, from: BTreeMap::new() };
    let mut whole = WholeTopic::open(cluster, reading, &|| Instant::now() > deadline)?.ok_or_else(silent)?;
    let mut found = Vec::new();
    while !whole.is_whole() {
        if Instant::now() > deadline {
            return Err(silent());
        }
        whole.poll(|message| {
            deadline = Instant::now() + patience;
            if let Some(value) = message.payload() {
                found.push((message.partition(), message.offset(), value.to_vec()));
            }
        })?;
    }
    found.sort_by_key(|(partition, offset, _)| (*partition, *offset));
    Ok(found.into_iter().map(|(_, _, value)| value).collect())
}

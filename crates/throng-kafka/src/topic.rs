//! Output topics, creation of topics, and the cleanup policy of a topic.

use super::connection::{KafkaCluster, KafkaFailure};
use super::failure::is_denied;
use rdkafka::admin::{AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::error::RDKafkaErrorCode;
use std::time::Duration;

/// Topic that throng writes to.
#[derive(Clone, Debug)]
pub struct OutputTopic {
    /// Name of the topic.
    pub name: String,
    /// Number of partitions.
    pub partitions: i32,
}

/// `None` if unreported.
pub(super) fn cleanup_policy(
    cluster: &KafkaCluster,
    topic: &str,
    patience: Duration,
) -> Result<Option<String>, KafkaFailure> {
    const WHAT: &str = "cannot read the settings of a topic";
    let client = cluster.administrator(WHAT)?;
    let options = AdminOptions::new().request_timeout(Some(patience));
    let topics = [ResourceSpecifier::Topic(topic)];
    let asked = client.describe_configs(&topics, &options);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|_| cluster.no_answer_failure(patience))?;
    let answers = runtime.block_on(asked).map_err(|e| cluster.failure(WHAT, e))?;
    let settings = answers.into_iter().flatten().next();
    Ok(settings.and_then(|settings| settings.get("cleanup.policy")?.value.clone()))
}

/// Topic to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSettings {
    /// Name of the topic.
    pub name: String,
    /// Number of partitions.
    pub partitions: i32,
    /// Properties of the topic, such as `cleanup.policy`.
    pub properties: Vec<(String, String)>,
}

/// Creates topics with `replicas` copies of each partition, or the brokers' default number. Succeeds for a topic that
/// exists. Returns the topics that could not be created, with the reason.
///
/// # Errors
/// If no broker answers within `timeout`.
pub fn create_topics(
    cluster: &KafkaCluster,
    topics: &[TopicSettings],
    replicas: Option<i32>,
    timeout: Duration,
) -> Result<Vec<(String, String)>, KafkaFailure> {
    const WHAT: &str = "cannot create topics";
    let client = cluster.administrator(WHAT)?;
    let options = AdminOptions::new().request_timeout(Some(timeout)).operation_timeout(Some(timeout));
    let wanted: Vec<NewTopic<'_>> = topics.iter().map(|topic| new_topic(topic, replicas)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|_| cluster.no_answer_failure(timeout))?;
    let results = runtime.block_on(client.create_topics(&wanted, &options)).map_err(|e| cluster.failure(WHAT, e))?;
    let failed = |(name, code): (String, RDKafkaErrorCode)| {
        let reason = if is_denied(code) {
            "no right to create it (Create on the topic or the cluster)".to_owned()
        } else {
            code.to_string()
        };
        (name, reason)
    };
    let refused = results.into_iter().filter_map(Result::err);
    Ok(refused.filter(|(_, code)| *code != RDKafkaErrorCode::TopicAlreadyExists).map(failed).collect())
}

fn new_topic(topic: &TopicSettings, replicas: Option<i32>) -> NewTopic<'_> {
    // -1 selects the default of the brokers.
    let new = NewTopic::new(&topic.name, topic.partitions, TopicReplication::Fixed(replicas.unwrap_or(-1)));
    topic.properties.iter().fold(new, |new, (key, value)| new.set(key, value))
}

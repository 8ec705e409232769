//! Output topics, creation of topics, and the cleanup policy of a topic.

use super::connection::{KafkaCluster, KafkaFailure};
use super::failure::is_denied;
use rdkafka::admin::{AdminOptions, NewTopic, ResourceSpecifier, TopicReplication, TopicResult};
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

/// Result of the creation of one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicCreation {
    /// The topic was created.
    Created,
    /// The topic existed before, perhaps with other settings.
    Existed,
    /// The brokers refused the topic, with the reason.
    Refused(String),
}

/// Creates topics with `replicas` copies of each partition, or the brokers' default number. Returns the result of each
/// topic, in the order of `topics`.
///
/// # Errors
/// If no broker answers within `timeout`.
pub fn create_topics(
    cluster: &KafkaCluster,
    topics: &[TopicSettings],
    replicas: Option<i32>,
    timeout: Duration,
) -> Result<Vec<TopicCreation>, KafkaFailure> {
    const WHAT: &str = "cannot create topics";
    let client = cluster.administrator(WHAT)?;
    let options = AdminOptions::new().request_timeout(Some(timeout)).operation_timeout(Some(timeout));
    let wanted: Vec<NewTopic<'_>> = topics.iter().map(|topic| new_topic(topic, replicas)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|_| cluster.no_answer_failure(timeout))?;
    let results = runtime.block_on(client.create_topics(&wanted, &options)).map_err(|e| cluster.failure(WHAT, e))?;
    Ok(topics.iter().map(|topic| creation_of(&topic.name, &results)).collect())
}

fn creation_of(topic: &str, results: &[TopicResult]) -> TopicCreation {
    let is_of_topic = |result: &&TopicResult| match result {
        Ok(name) | Err((name, _)) => name == topic,
    };
    match results.iter().find(is_of_topic) {
        Some(Ok(_)) => TopicCreation::Created,
        Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => TopicCreation::Existed,
        Some(Err((_, code))) if is_denied(*code) => {
            TopicCreation::Refused("no right to create it (Create on the topic or the cluster)".to_owned())
        }
        Some(Err((_, code))) => TopicCreation::Refused(code.to_string()),
        None => TopicCreation::Refused("the brokers returned no result (try again)".to_owned()),
    }
}

fn new_topic(topic: &TopicSettings, replicas: Option<i32>) -> NewTopic<'_> {
    // -1 selects the default of the brokers.
    let new = NewTopic::new(&topic.name, topic.partitions, TopicReplication::Fixed(replicas.unwrap_or(-1)));
    topic.properties.iter().fold(new, |new, (key, value)| new.set(key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_topic_is_distinguished_from_a_created_one() {
        let results = [
            Ok("new".to_owned()),
            Err(("old".to_owned(), RDKafkaErrorCode::TopicAlreadyExists)),
            Err(("denied".to_owned(), RDKafkaErrorCode::TopicAuthorizationFailed)),
        ];
        assert_eq!(creation_of("new", &results), TopicCreation::Created);
        assert_eq!(creation_of("old", &results), TopicCreation::Existed);
        for topic in ["denied", "unanswered"] {
            assert!(matches!(creation_of(topic, &results), TopicCreation::Refused(_)), "{topic}");
        }
    }
}

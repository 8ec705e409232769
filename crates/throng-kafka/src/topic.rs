//! Output topics, and the cleanup policy of a topic.

use super::connection::{KafkaCluster, KafkaFailure};
use rdkafka::admin::{AdminOptions, ResourceSpecifier};
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

//! Topics: those that a batch is written to, and how the brokers clean one.

use super::connection::{Cluster, KafkaFailure};
use rdkafka::admin::{AdminOptions, ResourceSpecifier};
use std::time::Duration;

/// A topic to write to.
#[derive(Clone, Debug)]
pub struct OutputTopic {
    /// Its name.
    pub name: String,
    /// How many partitions it has.
    pub partitions: i32,
}

/// `cleanup.policy` of a topic; none where the brokers do not say, because we have no right to ask for example.
///
/// # Errors
/// When the client cannot be made, or nobody answers.
pub(super) fn cleanup_policy(
    cluster: &Cluster,
    topic: &str,
    patience: Duration,
) -> Result<Option<String>, KafkaFailure> {
    const WHAT: &str = "cannot ask for the settings of a topic";
    let client = cluster.administrator(WHAT)?;
    let options = AdminOptions::new().request_timeout(Some(patience));
    let topics = [ResourceSpecifier::Topic(topic)];
    let asked = client.describe_configs(&topics, &options);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|_| cluster.unanswered(patience))?;
    let answers = runtime.block_on(asked).map_err(|e| cluster.failure(WHAT, e))?;
    let settings = answers.into_iter().flatten().next();
    Ok(settings.and_then(|settings| settings.get("cleanup.policy")?.value.clone()))
}

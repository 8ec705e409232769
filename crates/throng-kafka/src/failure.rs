//! Errors of a Kafka cluster.

use super::refusal::ConnectionRefusal;
use crate::secret_file::AccessError;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// Error of a Kafka cluster, without message content.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each variant has an error message")]
pub enum KafkaFailure {
    #[error("kafka at {brokers}: {what}: {source}")]
    Client { brokers: String, what: &'static str, source: rdkafka::error::KafkaError },
    #[error(
        "kafka at {brokers}: unknown librdkafka property {name:?}, or invalid value: correct it in the configuration or the environment"
    )]
    Setting { brokers: String, name: String },
    #[error("kafka at {brokers}: the client rejects the TLS files: correct {keys}")]
    Files { brokers: String, keys: String },
    #[error("kafka at {brokers}: {key}: {source}")]
    Secret { brokers: String, key: String, source: AccessError },
    #[error("kafka at {brokers}: {told}")]
    Refused { brokers: String, refusal: ConnectionRefusal, told: String },
    #[error("kafka at {brokers}: no right to {right}: grant it to our user (docs/deploy.md)")]
    Denied { brokers: String, right: String },
    #[error(
        "kafka at {brokers}: missing topics: {} (create them with `throng topics create`, or correct the configuration)",
        .topics.join(", ")
    )]
    MissingTopics { brokers: String, topics: Vec<String> },
    #[error(
        "topic {topic:?} has {partitions} partitions and needs {needed}, one for markers and one per partition of the largest source topic (kafka-topics.sh --alter --topic {topic} --partitions {needed})"
    )]
    TooFewPartitions { topic: String, partitions: i32, needed: i32 },
    #[error(
        "topic {topic:?} has {partitions} partitions and must have one: a single instance holds all cohorts of the series (delete and recreate it; contributions in it are lost)"
    )]
    NotOnePartition { topic: String, partitions: i32 },
    #[error(
        "topic {topic:?} has cleanup.policy={policy}: the brokers would delete limits and waiting records by age (kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config cleanup.policy=compact)"
    )]
    DeletedByAge { topic: String, policy: String },
    #[error(
        "topic {topic:?}: an open transaction of another instance has hidden our records there for {seconds} s (start again after that instance has restarted, or after its transaction.timeout.ms)"
    )]
    Undecided { topic: String, seconds: u64 },
    #[error(
        "kafka at {brokers}: no answer within {seconds} s (check that the broker is up, and that `brokers` and the security properties are right)"
    )]
    Unreachable { brokers: String, seconds: u64 },
    #[error(
        "kafka at {brokers}: cannot describe topic {topic:?}: {code} (correct the name of the topic, or try again when the brokers have recovered)"
    )]
    TopicUnavailable { brokers: String, topic: String, code: RDKafkaErrorCode },
    #[error(
        "kafka at {brokers}: topic {topic:?}: no message within {seconds} s at offset {offset} of partition {partition}, which ends at {end} (an open transaction hides the messages, or the leader of the partition does not answer: try again when the transaction has ended, or check the broker)"
    )]
    ReadStalled { brokers: String, topic: String, partition: i32, offset: i64, end: i64, seconds: u64 },
    #[error(
        "kafka at {brokers}: partition {partition} of topic {topic:?} went back to offset {offset}, which was already read: the topic was recreated, or lost its end (start again: reading resumes at the committed offsets, or reports the problem with them)"
    )]
    WentBack { brokers: String, topic: String, partition: i32, offset: i64 },
    #[error(
        "kafka at {brokers}: the brokers do not support the consumer group protocol (KIP-848): remove group.protocol from source.librdkafka, or use brokers of Kafka 4.0 or later with \"consumer\" in group.coordinator.rebalance.protocols"
    )]
    NoConsumerProtocol { brokers: String },
    #[error(
        "kafka at {brokers}: another member still has our group.instance.id: it is alive, or its session has not expired yet (start again after the brokers' group.consumer.session.timeout.ms; each instance needs a different id)"
    )]
    InstanceTaken { brokers: String },
    #[error(
        "kafka at {brokers}: another member has taken over our group.instance.id: two processes have it (stop one, or set a different id for each in source.librdkafka), or restarted brokers took our repeated join request for another process (start again)"
    )]
    InstanceTakenOver { brokers: String },
    #[error("panic while reading a message; no part of the message was released")]
    ReaderPanicked,
}

impl KafkaFailure {
    /// Returns true if a restart needs a change by the operator.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::MissingTopics { .. }
                | Self::TooFewPartitions { .. }
                | Self::NotOnePartition { .. }
                | Self::DeletedByAge { .. }
                | Self::NoConsumerProtocol { .. }
                | Self::Setting { .. }
                | Self::Files { .. }
                | Self::Secret { .. }
                | Self::Refused { .. }
                | Self::Denied { .. }
                | Self::TopicUnavailable { code: RDKafkaErrorCode::InvalidTopic, .. }
        )
    }

    /// Returns true if a retry cannot succeed.
    pub fn is_denial(&self) -> bool {
        matches!(self, Self::Denied { .. } | Self::ReaderPanicked)
    }

    /// Returns true if waiting may help.
    pub fn may_pass_later(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { refusal, .. } => refusal.is_temporary(),
            Self::TopicUnavailable { code, .. } => *code != RDKafkaErrorCode::InvalidTopic,
            _ => false,
        }
    }

    pub(super) fn of_member(code: RDKafkaErrorCode, brokers: &str) -> Option<Self> {
        let brokers = brokers.to_owned();
        match code {
            RDKafkaErrorCode::UnsupportedVersion | RDKafkaErrorCode::UnsupportedFeature => {
                Some(Self::NoConsumerProtocol { brokers })
            }
            RDKafkaErrorCode::UnreleasedInstanceId => Some(Self::InstanceTaken { brokers }),
            RDKafkaErrorCode::FencedInstanceId => Some(Self::InstanceTakenOver { brokers }),
            _ => None,
        }
    }
}

pub(super) fn is_denied(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::TopicAuthorizationFailed
            | RDKafkaErrorCode::GroupAuthorizationFailed
            | RDKafkaErrorCode::ClusterAuthorizationFailed
            | RDKafkaErrorCode::TransactionalIdAuthorizationFailed
    )
}

/// Failed authentication is not final: credentials may be replaced.
pub(super) fn is_final(error: &KafkaError) -> bool {
    matches!(error, KafkaError::MessageConsumptionFatal(_))
        || error.rdkafka_error_code().is_some_and(|code| code == RDKafkaErrorCode::Fatal || is_denied(code))
}

/// Returns true for a final error; a reader that never joins ignores a denied group.
pub fn is_final_without_group(error: &KafkaError) -> bool {
    is_final(error) && error.rdkafka_error_code() != Some(RDKafkaErrorCode::GroupAuthorizationFailed)
}

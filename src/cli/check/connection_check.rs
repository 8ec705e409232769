//! Connections of a configuration: brokers, topics, rights and schema registry.

use crate::cli::outcome::Failure;
use crate::cli::topics::{BrokerProblem, TopicTable};
use crate::config::SourceKind;
use crate::io::registry::RegistryError;
use crate::start::checked_config::CheckedConfig;
use crate::start::clusters::clusters;
use crate::start::message_parts::registry_client;
use crate::start::needed_topics::{TopicPurpose, needed_topics};
use std::time::{Duration, Instant};
use throng_kafka::changelog::expect_compacted;
use throng_kafka::connection::{KafkaCluster, KafkaFailure};
use throng_kafka::fence::end_transaction_of;
use throng_kafka::offsets::committed_now;
use throng_kafka::topic_sample::TopicSample;

const BROKER_TIMEOUT: Duration = Duration::from_secs(15);

/// Subject that no schema has: the registry answers that it is unknown.
const UNKNOWN_SUBJECT: &str = "throng.connection-check";

/// Connects to everything that a run would use and prints one line per part. Releases and commits nothing.
pub fn check_connections(checked: &CheckedConfig) -> Result<(), Failure> {
    let file = &checked.file;
    let mut problems: Vec<BrokerProblem> = Vec::new();
    let mut report = |part: &str, outcome: Result<String, BrokerProblem>| match outcome {
        Ok(state) => println!("{part:<22}  {state}"),
        Err(problem) => {
            println!("{part:<22}  {}", problem.message);
            problems.push(problem);
        }
    };
    if checked.config.source.kind == SourceKind::Kafka {
        check_brokers(checked, &mut report)?;
    }
    if let Some(client) = registry_client(&checked.config, file).map_err(|problem| vec![problem])? {
        let answer = client.latest(UNKNOWN_SUBJECT).map(|_| "answers".to_owned());
        report("schema registry", answer.map_err(|error| registry_problem(&error)));
    }
    match problems.len() {
        0 => Ok(()),
        count => {
            let message = format!("{file}: {count} of the connections failed: see above");
            Err(BrokerProblem::failure_of(&problems, message))
        }
    }
}

fn check_brokers(
    checked: &CheckedConfig,
    report: &mut impl FnMut(&str, Result<String, BrokerProblem>),
) -> Result<(), Failure> {
    let config = &checked.config;
    let (reader, writer) = clusters(config).map_err(|error| Failure::Usage(error.into()))?;
    // Without an answer, nothing else can be tried.
    let topics = TopicTable::of(checked)?;
    report("brokers", Ok(format!("{} answer", config.source.brokers)));
    print!("{}", topics.describe());
    for problem in topics.problems(topics.source_partitions().unwrap_or(0)) {
        report("topics", Err(problem));
    }
    for topic in needed_topics(config).iter().filter(|topic| is_read(topic.purpose) && topics.exists(&topic.name)) {
        // The changelog is read with the properties of the sink.
        let cluster = if topic.purpose == TopicPurpose::Changelog { &writer } else { &reader };
        report("right to read", try_read(cluster, &topic.name));
    }
    if topics.exists(&config.sink.changelog_topic) {
        let compacted = expect_compacted(&writer, &config.sink.changelog_topic);
        if let Err(failure) = compacted {
            report("changelog", Err(failure.into()));
        }
    }
    if let Some(topic) = config.source.topics.first().filter(|topic| topics.exists(topic)) {
        let offsets = committed_now(&reader, &config.source.group, &[(topic, 0)], BROKER_TIMEOUT);
        report("consumer group", described(&config.source.group, offsets.map(drop)));
    }
    let id = format!("{}/check", config.source.group);
    report("transactional id", described(&id, try_transactional_id(&writer, &id)));
    println!("{:<22}  tried by the first batch only", "right to write");
    Ok(())
}

fn is_read(purpose: TopicPurpose) -> bool {
    match purpose {
        TopicPurpose::Source
        | TopicPurpose::Profiles
        | TopicPurpose::Erasures
        | TopicPurpose::Changelog
        | TopicPurpose::Contributions => true,
        TopicPurpose::Release | TopicPurpose::DeadLetters | TopicPurpose::Audit => false,
    }
}

fn described(name: &str, outcome: Result<(), KafkaFailure>) -> Result<String, BrokerProblem> {
    outcome.map(|()| format!("{name}: usable")).map_err(BrokerProblem::from)
}

fn registry_problem(error: &RegistryError) -> BrokerProblem {
    let is_usage = !matches!(error, RegistryError::Unreachable { .. });
    BrokerProblem { message: error.to_string(), is_usage }
}

/// Reads one message without a group. An open transaction hides its messages: if none arrives in time, the failure
/// names the awaited offset, and is not one of the usage.
fn try_read(cluster: &KafkaCluster, topic: &str) -> Result<String, BrokerProblem> {
    let message = TopicSample::open(cluster, topic, BROKER_TIMEOUT)?.next_message()?;
    Ok(format!("{topic}: {}", if message.is_some() { "readable" } else { "readable, empty" }))
}

/// An id of this check: the instances have others with the same prefix.
fn try_transactional_id(cluster: &KafkaCluster, id: &str) -> Result<(), KafkaFailure> {
    let deadline = Instant::now() + BROKER_TIMEOUT;
    if end_transaction_of(cluster, id, &|| Instant::now() > deadline)? {
        Ok(())
    } else {
        Err(cluster.no_answer_failure(BROKER_TIMEOUT))
    }
}

//! `throng topics`.

use super::outcome::Failure;
use crate::config;
use crate::start::checked_config::CheckedConfig;
use crate::start::clusters::clusters;
use crate::start::needed_topics::{NeededTopic, TopicPurpose, needed_topics};
use anyhow::anyhow;
use std::path::PathBuf;
use std::time::Duration;
use throng_kafka::connection::{KafkaCluster, KafkaFailure, TopicPartitions};
use throng_kafka::topic::{TopicCreation, TopicSettings, create_topics};

/// List or create the Kafka topics of a configuration
#[derive(Debug, clap::Subcommand)]
pub enum TopicsArgs {
    /// List the topics of a configuration, and whether they exist with enough partitions
    #[command(
        after_help = "Exit codes: 0 every topic exists · 1 no broker answers · 2 topics are missing, wrong or not described"
    )]
    List(ListArgs),
    /// Create the missing topics of a configuration
    ///
    /// The changelog gets one partition more than the largest source topic, and is compacted. Existing topics are not
    /// changed. Source topics and topics of profiles are created only with --source-partitions.
    #[command(
        after_help = "Example:\n  throng topics create -c throng.toml --source-partitions 3\n\nExit codes: 0 every topic exists · 1 no broker answers, or it refuses a topic · 2 a source topic is missing, or a topic is wrong"
    )]
    Create(CreateArgs),
}

/// Arguments of `throng topics list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Configuration
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

/// Arguments of `throng topics create`.
#[derive(Debug, clap::Args)]
pub struct CreateArgs {
    /// Configuration
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// Copies of each partition [default: the default of the brokers]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i16).range(1..))]
    replication: Option<i16>,
    /// Also create missing source topics and topics of profiles, with this number of partitions
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(1..))]
    source_partitions: Option<i32>,
}

const BROKER_TIMEOUT: Duration = Duration::from_secs(15);

/// Runs `throng topics`.
pub fn run(args: &TopicsArgs) -> Result<(), Failure> {
    match args {
        TopicsArgs::List(args) => {
            let topics = TopicTable::read(&args.config)?;
            print!("{}", topics.describe());
            topics.refuse_problems(&args.config.display().to_string())
        }
        TopicsArgs::Create(args) => create(args),
    }
}

/// Problem of a topic or a connection.
#[derive(Debug)]
pub(super) struct BrokerProblem {
    /// Description.
    pub message: String,
    /// The operator must change something; otherwise a later attempt may succeed.
    pub is_usage: bool,
}

impl BrokerProblem {
    fn usage(message: String) -> Self {
        Self { message, is_usage: true }
    }

    /// Returns the failure with `message`: of the usage, unless all `problems` may be temporary.
    pub(super) fn failure_of(problems: &[Self], message: String) -> Failure {
        let is_usage = problems.iter().any(|problem| problem.is_usage);
        if is_usage { Failure::Usage(anyhow!(message)) } else { Failure::Running(anyhow!(message)) }
    }
}

impl From<KafkaFailure> for BrokerProblem {
    fn from(failure: KafkaFailure) -> Self {
        Self { message: failure.to_string(), is_usage: failure.is_usage() }
    }
}

/// Topic with the answer of the brokers.
struct DescribedTopic {
    topic: NeededTopic,
    partitions: TopicPartitions,
}

impl DescribedTopic {
    /// Number of partitions, if the topic is known to exist.
    fn found(&self) -> Option<i32> {
        self.partitions.as_ref().ok().copied().flatten()
    }

    fn is_missing(&self) -> bool {
        matches!(self.partitions, Ok(None))
    }

    /// Returns why the topic cannot be described.
    fn refusal(&self) -> Option<String> {
        match self.partitions.as_ref().err()? {
            KafkaFailure::Denied { .. } => {
                Some("no right to describe it (Describe, included in Read and Write: docs/deploy.md)".to_owned())
            }
            failure => Some(failure.to_string()),
        }
    }

    /// Returns the problem of the topic, if the largest source topic has `source` partitions.
    fn problem(&self, source: i32) -> Option<BrokerProblem> {
        let name = &self.topic.name;
        match &self.partitions {
            Ok(None) => Some(BrokerProblem::usage(format!("{name} is missing"))),
            Ok(Some(partitions)) => {
                let problem = self.topic.purpose.partition_problem(*partitions, source)?;
                Some(BrokerProblem::usage(format!("{name} {problem}")))
            }
            Err(failure) => {
                Some(BrokerProblem { message: format!("{name}: {}", self.refusal()?), is_usage: failure.is_usage() })
            }
        }
    }

    fn describe(&self, source: Option<i32>) -> String {
        if let Some(refusal) = self.refusal() {
            return refusal;
        }
        match (self.found(), source) {
            (Some(found), _) => {
                let problem = self.topic.purpose.partition_problem(found, source.unwrap_or(0));
                let problem = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
                format!("{found} partition{}{problem}", plural(found))
            }
            (None, Some(source)) => format!("missing: {}", settings_text(&self.topic.settings(source))),
            (None, None) => "missing".to_owned(),
        }
    }
}

/// Topics of a configuration, with the partitions of those that exist.
pub(super) struct TopicTable {
    reader: KafkaCluster,
    writer: KafkaCluster,
    topics: Vec<DescribedTopic>,
}

impl TopicTable {
    fn read(file: &std::path::Path) -> Result<Self, Failure> {
        let named = file.display().to_string();
        Self::of(&CheckedConfig::new(config::load_for_job(file, std::env::vars())?, &named)?)
    }

    /// Asks the brokers for the topics of a configuration.
    pub(super) fn of(checked: &CheckedConfig) -> Result<Self, Failure> {
        let needed = needed_topics(&checked.config);
        if needed.is_empty() {
            return Err(Failure::Usage(anyhow!("{}: the source is a file: no topic is needed", checked.file)));
        }
        let clusters = clusters(&checked.config).map_err(|error| Failure::Usage(error.into()))?;
        Self::ask(clusters, needed).map_err(broker_failure)
    }

    /// Describes each topic with the client properties of the side that uses it: source or sink.
    fn ask((reader, writer): (KafkaCluster, KafkaCluster), needed: Vec<NeededTopic>) -> Result<Self, KafkaFailure> {
        let (written, read): (Vec<_>, Vec<_>) = needed.into_iter().partition(|topic| topic.purpose.is_written());
        let mut topics = Vec::new();
        for (cluster, needed) in [(&reader, read), (&writer, written)] {
            if needed.is_empty() {
                continue;
            }
            let names: Vec<&str> = needed.iter().map(|topic| topic.name.as_str()).collect();
            let answers = cluster.describe_topics(&names, BROKER_TIMEOUT)?;
            let described = needed.into_iter().zip(answers);
            topics.extend(described.map(|(topic, partitions)| DescribedTopic { topic, partitions }));
        }
        Ok(Self { reader, writer, topics })
    }

    /// Partitions of the largest source topic.
    pub(super) fn source_partitions(&self) -> Option<i32> {
        let sources = self.topics.iter().filter(|described| described.topic.purpose == TopicPurpose::Source);
        sources.filter_map(DescribedTopic::found).max()
    }

    /// Returns true if the topic exists.
    pub(super) fn exists(&self, name: &str) -> bool {
        self.topics.iter().any(|described| described.topic.name == name && described.found().is_some())
    }

    fn missing(&self) -> impl Iterator<Item = &NeededTopic> {
        self.topics.iter().filter(|described| described.is_missing()).map(|described| &described.topic)
    }

    /// Problems of the topics, if the largest source topic has `source` partitions.
    pub(super) fn problems(&self, source: i32) -> Vec<BrokerProblem> {
        self.topics.iter().filter_map(|described| described.problem(source)).collect()
    }

    pub(super) fn describe(&self) -> String {
        let width = self.topics.iter().map(|described| described.topic.name.chars().count()).max().unwrap_or(0);
        let source = self.source_partitions();
        let line = |described: &DescribedTopic| {
            let NeededTopic { name, purpose } = &described.topic;
            format!("{name:<width$}  {:<13}  {}\n", purpose.label(), described.describe(source))
        };
        self.topics.iter().map(line).collect()
    }

    fn refuse_problems(&self, file: &str) -> Result<(), Failure> {
        let problems = self.problems(self.source_partitions().unwrap_or(0));
        if problems.is_empty() {
            return Ok(());
        }
        let remedy = match self.missing().next() {
            Some(_) => format!(" (throng topics create -c {file})"),
            None => String::new(),
        };
        let messages: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        Err(BrokerProblem::failure_of(&problems, format!("{file}: {}{remedy}", messages.join("; "))))
    }

    /// Returns the partitions of the largest source topic after the creation of the missing topics. `given` is the
    /// number for missing input topics.
    fn partitions_after_creation(&self, given: Option<i32>) -> Result<i32, BrokerProblem> {
        let is_source = |topic: &NeededTopic| topic.purpose == TopicPurpose::Source;
        let inputs: Vec<&str> =
            self.missing().filter(|topic| topic.purpose.is_input()).map(|topic| topic.name.as_str()).collect();
        if !inputs.is_empty() && given.is_none() {
            return Err(BrokerProblem::usage(format!(
                "missing input topics: {} (correct source.topics, or create them with --source-partitions NUMBER)",
                inputs.join(", ")
            )));
        }
        let unknown = self.topics.iter().find(|described| is_source(&described.topic) && described.partitions.is_err());
        if let Some(problem) = unknown.filter(|_| self.missing().next().is_some()).and_then(|topic| topic.problem(0)) {
            return Err(problem);
        }
        let created = given.filter(|_| self.missing().any(is_source));
        Ok(self.source_partitions().max(created).unwrap_or(1))
    }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let file = args.config.display().to_string();
    let table = TopicTable::read(&args.config)?;
    let given = args.source_partitions;
    let source = table.partitions_after_creation(given).map_err(|problem| {
        let message = format!("{file}: nothing was created: {}", problem.message);
        BrokerProblem::failure_of(&[problem], message)
    })?;
    if given.is_some() && table.missing().all(|topic| !topic.purpose.is_input()) {
        eprintln!("note: --source-partitions is not used: all source topics and topics of profiles exist");
    }
    create_missing(&table, args, source)?;
    let present = table.topics.iter().filter(|described| described.found().is_some()).count();
    if present > 0 {
        println!("{present} of {} topics existed before", table.topics.len());
    }
    let existing = table.topics.iter().filter(|described| !described.is_missing());
    let wrong: Vec<BrokerProblem> = existing.filter_map(|described| described.problem(source)).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let messages: Vec<&str> = wrong.iter().map(|problem| problem.message.as_str()).collect();
    Err(BrokerProblem::failure_of(&wrong, format!("{file}: {}", messages.join("; "))))
}

/// Creates the missing topics; `source` is the number of partitions of the largest source topic.
fn create_missing(table: &TopicTable, args: &CreateArgs, source: i32) -> Result<(), Failure> {
    let settings = |topic: &NeededTopic| {
        topic.settings(if topic.purpose.is_input() { args.source_partitions.unwrap_or(source) } else { source })
    };
    let mut refused: Vec<String> = Vec::new();
    for (cluster, is_written) in [(&table.reader, false), (&table.writer, true)] {
        let wanted = table.missing().filter(|topic| topic.purpose.is_written() == is_written);
        let wanted: Vec<TopicSettings> = wanted.map(settings).collect();
        if wanted.is_empty() {
            continue;
        }
        let created = create_topics(cluster, &wanted, args.replication.map(i32::from), BROKER_TIMEOUT);
        for (topic, creation) in wanted.iter().zip(created.map_err(broker_failure)?) {
            match creation {
                TopicCreation::Refused(reason) => refused.push(format!("{}: {reason}", topic.name)),
                creation => println!("{}", creation_text(topic, &creation)),
            }
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    Err(Failure::Running(anyhow!("topics were not created: {}", refused.join("; "))))
}

fn creation_text(topic: &TopicSettings, creation: &TopicCreation) -> String {
    match creation {
        TopicCreation::Created => format!("created {}: {}", topic.name, settings_text(topic)),
        TopicCreation::Existed => format!(
            "exists {}: it was created in the meantime, perhaps with other settings (throng topics list)",
            topic.name
        ),
        TopicCreation::Refused(reason) => format!("refused {}: {reason}", topic.name),
    }
}

fn plural(count: i32) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn settings_text(topic: &TopicSettings) -> String {
    let partitions = format!("{} partition{}", topic.partitions, plural(topic.partitions));
    let properties = topic.properties.iter().map(|(key, value)| format!(", {key}={value}"));
    std::iter::once(partitions).chain(properties).collect()
}

pub(super) fn broker_failure(failure: KafkaFailure) -> Failure {
    if failure.is_usage() { Failure::Usage(failure.into()) } else { Failure::Running(failure.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdkafka::error::RDKafkaErrorCode;
    use rdkafka::mocking::MockCluster;
    use std::collections::BTreeMap;

    fn needed(name: &str, purpose: TopicPurpose) -> NeededTopic {
        NeededTopic { name: name.to_owned(), purpose }
    }

    fn table(topics: Vec<(TopicPurpose, TopicPartitions)>) -> TopicTable {
        let cluster = KafkaCluster::new("localhost:9", BTreeMap::new());
        let described = |(purpose, partitions): (TopicPurpose, TopicPartitions)| DescribedTopic {
            topic: needed(purpose.label(), purpose),
            partitions,
        };
        TopicTable { reader: cluster.clone(), writer: cluster, topics: topics.into_iter().map(described).collect() }
    }

    fn denied() -> TopicPartitions {
        Err(KafkaFailure::Denied { brokers: "b".to_owned(), right: "describe it".to_owned() })
    }

    fn unavailable() -> TopicPartitions {
        let (brokers, topic) = ("b".to_owned(), "t".to_owned());
        Err(KafkaFailure::TopicUnavailable { brokers, topic, code: RDKafkaErrorCode::LeaderNotAvailable })
    }

    #[test]
    fn source_partitions_are_used_only_for_missing_inputs() {
        use TopicPurpose::{Changelog, Profiles, Source};
        let existing = table(vec![(Source, Ok(Some(3))), (Changelog, Ok(None))]);
        for given in [None, Some(12)] {
            assert_eq!(existing.partitions_after_creation(given).ok(), Some(3), "{given:?}");
        }
        let profiles = table(vec![(Source, Ok(Some(3))), (Profiles, Ok(None))]);
        assert!(profiles.partitions_after_creation(None).is_err());
        assert_eq!(profiles.partitions_after_creation(Some(12)).ok(), Some(3));
        let missing = table(vec![(Source, Ok(None)), (Changelog, Ok(None))]);
        assert!(missing.partitions_after_creation(None).is_err());
        assert_eq!(missing.partitions_after_creation(Some(12)).ok(), Some(12));
    }

    #[test]
    fn undescribable_topic_is_a_problem_of_its_own() {
        use TopicPurpose::{Changelog, DeadLetters, Source};
        let topics = table(vec![(Source, Ok(Some(3))), (DeadLetters, denied()), (Changelog, Ok(None))]);
        let text = topics.describe();
        assert!(text.contains("no right to describe it") && text.contains("missing: 4 partitions"), "{text}");
        assert!(matches!(topics.refuse_problems("f"), Err(Failure::Usage(_))));
        assert_eq!(topics.missing().count(), 1, "only the changelog is created");
        // Without the partitions of a source topic, the changelog could become too small.
        let unknown = table(vec![(Source, Ok(Some(3))), (Source, denied()), (Changelog, Ok(None))]);
        assert!(unknown.partitions_after_creation(None).is_err_and(|problem| problem.is_usage));
        let complete = table(vec![(Source, denied()), (Changelog, Ok(Some(4)))]);
        assert!(complete.partitions_after_creation(None).is_ok());
    }

    #[test]
    fn temporary_problem_is_a_runtime_failure() {
        use TopicPurpose::{Changelog, Source};
        let topics = table(vec![(Source, Ok(Some(3))), (Changelog, unavailable())]);
        assert!(matches!(topics.refuse_problems("f"), Err(Failure::Running(_))));
        let topics = table(vec![(Source, Ok(None)), (Changelog, unavailable())]);
        assert!(matches!(topics.refuse_problems("f"), Err(Failure::Usage(_))));
    }

    #[test]
    fn topics_are_asked_where_they_are_used() {
        let [source, sink] = [(); 2].map(|()| MockCluster::new(1).expect("librdkafka's mock cluster"));
        source.create_topic("raw", 3, 1).expect("a topic");
        sink.create_topic("changelog", 4, 1).expect("a topic");
        let [reader, writer] =
            [&source, &sink].map(|broker| KafkaCluster::new(&broker.bootstrap_servers(), BTreeMap::new()));
        let wanted = vec![needed("raw", TopicPurpose::Source), needed("changelog", TopicPurpose::Changelog)];
        let topics = TopicTable::ask((reader, writer), wanted).expect("both answer");
        assert_eq!((topics.source_partitions(), topics.problems(3).len()), (Some(3), 0), "{}", topics.describe());
    }

    #[test]
    fn existing_topic_is_not_printed_as_created() {
        let topic = needed("t", TopicPurpose::Changelog).settings(3);
        let text = |creation: TopicCreation| creation_text(&topic, &creation);
        assert_eq!(text(TopicCreation::Created), "created t: 4 partitions, cleanup.policy=compact");
        assert!(text(TopicCreation::Existed).starts_with("exists t"));
    }
}

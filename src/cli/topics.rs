//! `throng topics`.

use super::outcome::Failure;
use crate::config;
use crate::start::checked_config::CheckedConfig;
use crate::start::clusters::clusters;
use crate::start::needed_topics::{NeededTopic, TopicPurpose, needed_topics};
use anyhow::anyhow;
use std::path::PathBuf;
use std::time::Duration;
use throng_kafka::connection::KafkaCluster;
use throng_kafka::topic::{TopicSettings, create_topics};

/// List or create the Kafka topics of a configuration
#[derive(Debug, clap::Subcommand)]
pub enum TopicsArgs {
    /// List the topics of a configuration, and whether they exist with enough partitions
    #[command(after_help = "Exit codes: 0 every topic exists · 1 no broker answers · 2 topics are missing or wrong")]
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
    /// Also create missing source topics, with this number of partitions
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

/// Topics of a configuration, with the partitions of those that exist.
pub(super) struct TopicTable {
    writer: KafkaCluster,
    topics: Vec<(NeededTopic, Option<i32>)>,
}

impl TopicTable {
    fn read(file: &std::path::Path) -> Result<Self, Failure> {
        let named = file.display().to_string();
        Self::of(&CheckedConfig::new(config::load_for_job(file, std::env::vars())?, &named)?)
    }

    /// Asks the brokers for the topics of a configuration.
    pub(super) fn of(checked: &CheckedConfig) -> Result<Self, Failure> {
        let named = &checked.file;
        let needed = needed_topics(&checked.config);
        if needed.is_empty() {
            return Err(Failure::Usage(anyhow!("{named}: the source is a file: no topic is needed")));
        }
        let (reader, writer) = clusters(&checked.config).map_err(|error| Failure::Usage(error.into()))?;
        let names: Vec<&str> = needed.iter().map(|topic| topic.name.as_str()).collect();
        let partitions = reader.existing_partitions(&names, BROKER_TIMEOUT).map_err(broker_failure)?;
        Ok(Self { writer, topics: needed.into_iter().zip(partitions).collect() })
    }

    /// Partitions of the largest source topic.
    pub(super) fn source_partitions(&self) -> Option<i32> {
        self.topics
            .iter()
            .filter(|(topic, _)| topic.purpose == TopicPurpose::Source)
            .filter_map(|(_, found)| *found)
            .max()
    }

    /// Returns true if the topic exists.
    pub(super) fn exists(&self, name: &str) -> bool {
        self.topics.iter().any(|(topic, partitions)| topic.name == name && partitions.is_some())
    }

    fn missing(&self) -> impl Iterator<Item = &NeededTopic> {
        self.topics.iter().filter(|(_, partitions)| partitions.is_none()).map(|(topic, _)| topic)
    }

    /// Problems of the topics, if the largest source topic has `source` partitions.
    pub(super) fn problems(&self, source: i32) -> Vec<String> {
        let problem = |(topic, partitions): &(NeededTopic, Option<i32>)| {
            let problem = match *partitions {
                None => Some("is missing".to_owned()),
                Some(partitions) => topic.purpose.partition_problem(partitions, source),
            };
            problem.map(|problem| format!("{} {problem}", topic.name))
        };
        self.topics.iter().filter_map(problem).collect()
    }

    pub(super) fn describe(&self) -> String {
        let width = self.topics.iter().map(|(topic, _)| topic.name.chars().count()).max().unwrap_or(0);
        let source = self.source_partitions();
        let line = |(topic, partitions): &(NeededTopic, Option<i32>)| {
            let state = match *partitions {
                Some(found) => {
                    let problem = topic.purpose.partition_problem(found, source.unwrap_or(0));
                    format!(
                        "{found} partition{}{}",
                        plural(found),
                        problem.map(|p| format!(": {p}")).unwrap_or_default()
                    )
                }
                None => match source {
                    Some(source) => format!("missing: {}", settings_text(&topic.settings(source))),
                    None => "missing".to_owned(),
                },
            };
            format!("{:<width$}  {:<13}  {state}\n", topic.name, topic.purpose.label())
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
        Err(Failure::Usage(anyhow!("{file}: {}{remedy}", problems.join("; "))))
    }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let file = args.config.display().to_string();
    let table = TopicTable::read(&args.config)?;
    let absent: Vec<&str> = table
        .missing()
        .filter(|topic| topic.purpose.is_input() && args.source_partitions.is_none())
        .map(|topic| topic.name.as_str())
        .collect();
    if !absent.is_empty() {
        return Err(Failure::Usage(anyhow!(
            "{file}: nothing was created: missing input topics: {} (correct source.topics, or create them with --source-partitions NUMBER)",
            absent.join(", ")
        )));
    }
    let existing = table.source_partitions();
    let source = existing.max(args.source_partitions).unwrap_or(1);
    let settings = |topic: &NeededTopic| {
        let largest = if topic.purpose.is_input() { args.source_partitions.unwrap_or(source) } else { source };
        topic.settings(largest)
    };
    let wanted: Vec<TopicSettings> = table.missing().map(settings).collect();
    if !wanted.is_empty() {
        let refused = create_topics(&table.writer, &wanted, args.replication.map(i32::from), BROKER_TIMEOUT)
            .map_err(broker_failure)?;
        for topic in wanted.iter().filter(|topic| refused.iter().all(|(name, _)| *name != topic.name)) {
            println!("created {}: {}", topic.name, settings_text(topic));
        }
        if !refused.is_empty() {
            let reasons: Vec<String> = refused.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
            return Err(Failure::Running(anyhow!("topics were not created: {}", reasons.join("; "))));
        }
    }
    let present = table.topics.len() - wanted.len();
    if present > 0 {
        println!("{present} of {} topics existed before", table.topics.len());
    }
    let wrong: Vec<String> =
        table.problems(source).into_iter().filter(|problem| !problem.ends_with("is missing")).collect();
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Usage(anyhow!("{file}: {}", wrong.join("; ")))) }
}

fn plural(count: i32) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn settings_text(topic: &TopicSettings) -> String {
    let partitions = format!("{} partition{}", topic.partitions, plural(topic.partitions));
    let properties = topic.properties.iter().map(|(key, value)| format!(", {key}={value}"));
    std::iter::once(partitions).chain(properties).collect()
}

pub(super) fn broker_failure(failure: throng_kafka::connection::KafkaFailure) -> Failure {
    if failure.is_usage() { Failure::Usage(failure.into()) } else { Failure::Running(failure.into()) }
}

//! Kafka topics that a configuration needs.

use crate::config::{Config, SinkKind, SourceKind};
use throng_kafka::changelog::partition_of;
use throng_kafka::topic::TopicSettings;

/// Content of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicPurpose {
    /// Records to anonymize.
    Source,
    /// Profiles of subjects, for `[[join]]`.
    Profiles,
    /// Subjects to erase.
    Erasures,
    /// Released lines.
    Release,
    /// Positions of unreadable records.
    DeadLetters,
    /// Audit records, one per batch.
    Audit,
    /// State of each source partition.
    Changelog,
    /// Contributions to series, on their way to the instance that holds the cohorts.
    Contributions,
}

impl TopicPurpose {
    /// Describes the content in a few words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Profiles => "profiles",
            Self::Erasures => "erasures",
            Self::Release => "release",
            Self::DeadLetters => "dead letters",
            Self::Audit => "audit records",
            Self::Changelog => "changelog",
            Self::Contributions => "contributions",
        }
    }

    /// Returns true if the producer of the records creates the topic.
    pub fn is_input(self) -> bool {
        matches!(self, Self::Source | Self::Profiles)
    }

    /// Returns true if the sink writes the topic, with the properties of `sink.librdkafka`.
    pub fn is_written(self) -> bool {
        match self {
            Self::Source | Self::Profiles | Self::Erasures => false,
            Self::Release | Self::DeadLetters | Self::Audit | Self::Changelog | Self::Contributions => true,
        }
    }

    /// Returns the number of partitions of a new topic, if the largest source topic has `source` partitions.
    pub fn partitions(self, source: i32) -> i32 {
        match self {
            Self::Source | Self::Profiles | Self::Release => source,
            Self::Erasures | Self::DeadLetters | Self::Audit | Self::Contributions => 1,
            Self::Changelog => partition_of(source),
        }
    }

    /// Explains why `partitions` is a wrong number of partitions.
    pub fn partition_problem(self, partitions: i32, source: i32) -> Option<String> {
        match self {
            Self::Changelog if partitions < partition_of(source) => {
                Some(format!("needs {} or more partitions", partition_of(source)))
            }
            Self::Contributions if partitions != 1 => Some("must have one partition".to_owned()),
            _ => None,
        }
    }

    fn is_compacted(self) -> bool {
        matches!(self, Self::Changelog | Self::Profiles)
    }
}

/// Topic with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededTopic {
    /// Name of the topic.
    pub name: String,
    /// Content of the topic.
    pub purpose: TopicPurpose,
}

impl NeededTopic {
    /// Returns the settings of a new topic, if the largest source topic has `source` partitions.
    pub fn settings(&self, source: i32) -> TopicSettings {
        let compacted = self.purpose.is_compacted();
        let properties = compacted.then(|| ("cleanup.policy".to_owned(), "compact".to_owned()));
        TopicSettings {
            name: self.name.clone(),
            partitions: self.purpose.partitions(source),
            properties: properties.into_iter().collect(),
        }
    }
}

/// Returns the topics of `config`, source topics first.
pub fn needed_topics(config: &Config) -> Vec<NeededTopic> {
    if config.source.kind != SourceKind::Kafka {
        return Vec::new();
    }
    let (source, sink) = (&config.source, &config.sink);
    let mut topics: Vec<NeededTopic> = Vec::new();
    let mut need = |purpose: TopicPurpose, name: String| {
        if !name.is_empty() && topics.iter().all(|topic| topic.name != name) {
            topics.push(NeededTopic { name, purpose });
        }
    };
    source.topics.iter().for_each(|topic| need(TopicPurpose::Source, topic.clone()));
    config.join.iter().filter_map(|join| join.topic.clone()).for_each(|topic| need(TopicPurpose::Profiles, topic));
    need(TopicPurpose::Erasures, config.erasure.topic.clone());
    if sink.kind == SinkKind::Kafka {
        config.output_names().iter().for_each(|name| need(TopicPurpose::Release, sink.topic_of(name)));
    }
    need(TopicPurpose::DeadLetters, sink.dead_letter_topic.clone());
    need(TopicPurpose::Audit, sink.audit_topic.clone());
    need(TopicPurpose::Changelog, sink.changelog_topic.clone());
    need(TopicPurpose::Contributions, config.contributions_topic().unwrap_or_default());
    topics
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{JoinConfig, SeriesConfig};

    fn config() -> Config {
        let mut config = Config::default();
        config.source.topics = vec!["raw".into()];
        config.sink.topic = "clean.{group}".into();
        config
    }

    fn names(config: &Config) -> Vec<(String, &'static str)> {
        needed_topics(config).into_iter().map(|topic| (topic.name, topic.purpose.label())).collect()
    }

    #[test]
    fn each_output_and_optional_topic_is_listed_once() {
        let mut config = config();
        config.series = vec![SeriesConfig { name: "daily".into(), ..SeriesConfig::default() }];
        config.join = vec![JoinConfig { topic: Some("profiles".into()), ..JoinConfig::default() }];
        config.erasure.topic = "erase".into();
        config.sink.audit_topic = "audit".into();
        let expected = [
            ("raw", "source"),
            ("profiles", "profiles"),
            ("erase", "erasures"),
            ("clean.all", "release"),
            ("clean.daily", "release"),
            ("throng.dead-letters", "dead letters"),
            ("audit", "audit records"),
            ("throng.changelog", "changelog"),
            ("throng.changelog.contributions", "contributions"),
        ];
        assert_eq!(names(&config), expected.map(|(name, purpose)| (name.to_owned(), purpose)));
    }

    #[test]
    fn topics_without_a_name_and_outputs_of_other_sinks_are_absent() {
        let mut config = config();
        config.sink.dead_letter_topic = String::new();
        config.sink.kind = SinkKind::None;
        assert_eq!(names(&config), [("raw".to_owned(), "source"), ("throng.changelog".to_owned(), "changelog")]);
        config.source.kind = SourceKind::File;
        assert_eq!(names(&config), []);
    }

    #[test]
    fn changelog_is_compacted_and_has_a_partition_for_markers() {
        let changelog = NeededTopic { name: "c".into(), purpose: TopicPurpose::Changelog };
        let settings = changelog.settings(3);
        assert_eq!((settings.partitions, settings.properties.len()), (4, 1));
        assert!(TopicPurpose::Changelog.partition_problem(3, 3).is_some());
        assert_eq!(TopicPurpose::Changelog.partition_problem(4, 3), None);
        assert!(TopicPurpose::Contributions.partition_problem(2, 3).is_some());
        assert_eq!(TopicPurpose::Release.partition_problem(1, 3), None);
    }
}

//! Typed configuration: one TOML file, overridden by the environment and validated before any work starts.
//!
//! The doc comments of the fields are the manual. `schemas/config.schema.json` and `docs/configuration.md` are
//! generated from them.
//!
//! Paths, in file and environment, are relative to the working directory of the process.

mod anonymize;
mod choice;
mod environment;
mod join;
mod kafka_properties;
mod load;
mod paths;
mod plan;
mod policy_test;
mod privacy;
mod problem;
mod quantity;
mod reference;
mod secret;
mod security;
mod series;
mod series_validation;
mod service;
mod shape;
mod sink;
mod source;
mod treatment;
mod tuning;
mod validate;

pub use anonymize::{AnonymizeConfig, CeilingConfig, LatticeStrategy, QualityMeasure, RecodingScope};
pub use join::JoinConfig;
pub use kafka_properties::KafkaProperties;
pub use load::{load, load_for_job, parse};
pub use paths::{UsedFile, find_overwritten, is_same_file, resolve_links};
pub use plan::{GroupConfig, GroupSelection, KeepConfig, PlanConfig, RecodingMode};
pub use policy_test::PolicyTest;
pub use privacy::{DiversityKind, GroundDistance, ModelKind, PrivacyConfig, PrivacyModel};
pub use problem::ConfigProblem;
pub use quantity::{format_size, parse_size};
pub use reference::{json_schema, reference_markdown};
pub use secret::{AccessError, Secret, SecretError};
pub use security::{BrokerProtocol, OauthConfig, SaslMechanism, SecurityConfig};
pub use series::{CohortConfig, ReleaseConfig, SeriesConfig, SeriesCycle};
pub use service::{
    BatchConfig, ComputeBackend, ComputeConfig, ErasureConfig, LogFormat, LogLevel, PagesTls, ProcessConfig,
    StateConfig, TelemetryConfig,
};
pub use sink::{JOINED_OUTPUT, OutputConfig, OutputShape, RowContent, SinkConfig, SinkKind, with_group_name};
pub use source::{
    KeyFormat, RecordFormat, RegistryConfig, SchemaConfig, SourceConfig, SourceKind, UnknownAttributes,
    has_compressed_extension, is_pattern, names_several_files,
};
pub use treatment::{TreatmentConfig, TreatmentMethod, TreatmentPreset, TreatmentRule, ValueKind};
pub use tuning::FixedSettings;

/// Upper limit of distinct values in any dictionary.
pub const MOST_VALUES: usize = 1 << 26;

/// Configuration of one daemon.
///
/// Every key has a default; unknown keys are refused. `THRONG__SECTION__KEY` in the environment overrides a key of
/// the file. Durations are written like `1s`, `5m`, `24h`; sizes in bytes like `1MiB`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Sets the source of the raw records.
    pub source: SourceConfig,
    /// Sets the schema registry.
    pub registry: RegistryConfig,
    /// Joins profiles of subjects to their records.
    #[schemars(example = [JoinConfig { name: "profiles".into(), topic: Some("profiles".into()), ..JoinConfig::default() }])]
    pub join: Vec<JoinConfig>,
    /// Sets the conditions that close a micro-batch.
    pub batch: BatchConfig,
    /// Describes the records.
    pub schema: SchemaConfig,
    /// Sets the privacy guarantees of a release.
    pub privacy: PrivacyConfig,
    /// Controls the planner's search for generalizations.
    pub plan: PlanConfig,
    /// Defines groups of attributes of the record schema. Each group is released as a separate fragment, in this order.
    /// Groups are disjoint except for the attributes of `plan.shared`. Without any, all attributes that may be released
    /// are one group.
    #[schemars(example = [GroupConfig { name: "person".into(), attributes: vec!["age".into(), "zip".into()], ..GroupConfig::default() }])]
    pub group: Vec<GroupConfig>,
    /// Publishes statistics of cohorts over time, instead of or together with records of single subjects
    /// (docs/series.md).
    #[schemars(example = [SeriesConfig { name: "daily".into(), ..SeriesConfig::default() }])]
    pub series: Vec<SeriesConfig>,
    /// Controls the assignment of subjects to the cohorts of the series.
    pub cohort: CohortConfig,
    /// Selects the released forms of output.
    pub release: ReleaseConfig,
    /// Lists attributes that the planner keeps together as far as `plan.price` allows, the highest weight first.
    /// `throng check` reports outcome and cost.
    #[schemars(example = [KeepConfig { attributes: vec!["timestamp".into(), "heart_rate".into()], weight: 3.0 }])]
    pub keep: Vec<KeepConfig>,
    /// Sets the treatment of values that too few subjects share.
    pub treatment: TreatmentConfig,
    /// Controls the policy search of `throng anonymize`.
    pub anonymize: AnonymizeConfig,
    /// Sets the destination of released records.
    pub sink: SinkConfig,
    /// Sets the layout of a released line.
    pub output: OutputConfig,
    /// Erases subjects that are named in a topic.
    pub erasure: ErasureConfig,
    /// Sets the state that the daemon keeps on disk.
    pub state: StateConfig,
    /// Selects the hardware that counts groups.
    pub compute: ComputeConfig,
    /// Limits the machine resources that the daemon uses.
    pub process: ProcessConfig,
    /// Sets metrics, status page and logs.
    pub telemetry: TelemetryConfig,
    /// Defines tests of the policy, which `throng check` and every reload run.
    #[schemars(example = [PolicyTest {
        name: "an age that 20 people share is released".into(), input: vec!["{\"user\": \"anna\", \"age\": 34}".into()], people: 20,
        expect: vec!["{\"age\": 34}".into()], never: vec!["anna".into()], ..PolicyTest::default()
    }])]
    pub test: Vec<PolicyTest>,
    /// Key of every digest of a subject, from `state.secret_file` or `THRONG_SECRET`. None: the daemon generates one
    /// and keeps it in its state directory.
    #[serde(skip)]
    #[schemars(skip)]
    pub secret: Option<Secret>,
    /// Settings that are not configurable.
    #[serde(skip)]
    #[schemars(skip)]
    pub tuning: FixedSettings,
}

impl Config {
    /// Returns true for a job over files: it reads them to the end, and its outputs replace existing files.
    pub fn is_job(&self) -> bool {
        self.source.kind == SourceKind::File && self.source.path != std::path::Path::new("-")
    }

    /// Returns true if the run keeps its release history.
    pub fn has_state(&self) -> bool {
        !self.state.path.as_os_str().is_empty()
    }

    /// Returns the number of records whose values every dictionary must hold: window, sample and batches.
    pub fn max_remembered_records(&self) -> usize {
        self.plan.window_records + self.plan.sample_records() + self.batch.max_records * self.max_remembered_batches()
    }

    /// Returns the batches in [`Config::max_remembered_records`]: withheld, current and next, plus one if treatments
    /// create values.
    pub fn max_remembered_batches(&self) -> usize {
        self.privacy.max_hold_batches as usize + 2 + usize::from(self.treatment.creates_values())
    }

    /// Returns the upper limit of lines that wait for their delay.
    pub fn max_waiting_lines(&self) -> usize {
        if self.privacy.longest_delay().is_zero() { 0 } else { self.tuning.max_waiting_lines }
    }

    /// Returns the names of the groups, or `all` without `[[group]]`.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        let of_everything = self.group.is_empty().then_some("all");
        self.group.iter().map(|group| group.name.as_str()).chain(of_everything)
    }

    /// Returns the names of the outputs: those of the fragments, then those of the series.
    pub fn output_names(&self) -> Vec<&str> {
        self.fragment_outputs().into_iter().chain(self.series.iter().map(|series| series.name.as_str())).collect()
    }

    /// Returns the topic that carries series contributions to the owner of the cohorts. None without series or topics.
    pub fn contributions_topic(&self) -> Option<String> {
        let has_series = self.source.kind == SourceKind::Kafka && !self.series.is_empty();
        has_series.then(|| format!("{}.contributions", self.sink.changelog_topic))
    }

    /// Returns the topics of the group by number: source topics, then the topic of contributions.
    pub fn consumed_topics(&self) -> Vec<String> {
        self.source.topics.iter().cloned().chain(self.contributions_topic()).collect()
    }

    /// Returns the fragment outputs: the groups, or [`JOINED_OUTPUT`] if rows are joined.
    pub fn fragment_outputs(&self) -> Vec<&str> {
        match self.sink.rows {
            _ if !self.release.fragments => Vec::new(),
            RowContent::Fragments => self.group_names().collect(),
            RowContent::Joined => vec![JOINED_OUTPUT],
        }
    }

    /// Returns true if any topic is read or written.
    pub fn uses_kafka(&self) -> bool {
        self.source.kind == SourceKind::Kafka || self.sink.kind == SinkKind::Kafka
    }
}

#[cfg(test)]
mod tests;

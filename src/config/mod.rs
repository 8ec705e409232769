//! Typed configuration: one TOML file, overridden by the environment, judged as a whole before anything starts.
//!
//! The doc comments of the fields below *are* the manual: `schemas/config.schema.json` and `docs/configuration.md`
//! are generated from them, and a test fails when the checked-in files drift.
//!
//! Paths are relative to the working directory of the process, in the file and in the environment alike.

mod anonymize;
mod choice;
mod environment;
mod join;
mod load;
mod paths;
mod plan;
mod privacy;
mod problem;
mod properties;
mod quantity;
mod reference;
mod secret;
mod security;
mod series;
mod series_rules;
mod service;
mod shape;
mod sink;
mod source;
mod test;
mod treatment;
mod tuning;
mod validate;

pub use anonymize::{Anonymize, Ceiling, Measure, Strategy, Transformation};
pub use join::Join;
pub use load::{load, load_for_job, parse};
pub use paths::{Used, is_same_file, overwritten, place};
pub use plan::{Group, Grouping, Keep, Plan, Recoding};
pub use privacy::{Diversity, GroundDistance, ModelKind, Privacy, PrivacyModel};
pub use problem::Problem;
pub use properties::Properties;
pub use quantity::{format_size, parse_size};
pub use reference::{json_schema, reference_markdown};
pub use secret::{AccessError, Secret, SecretError};
pub use security::{Mechanism, Oauth, Protocol, Security};
pub use series::{Cohort, Release, Series, SeriesCycle};
pub use service::{Backend, Batch, Compute, Erasure, LogFormat, LogLevel, PagesTls, Process, State, Telemetry};
pub use sink::{JOINED, Output, OutputShape, Rows, Sink, SinkKind, placed};
pub use source::{
    Format, KeyFormat, Registry, Schema, Source, SourceKind, Unknown, is_named_compressed, is_of_several, is_pattern,
};
pub use test::PolicyTest;
pub use treatment::{Preset, Treat, Treatment, TreatmentRule, ValueKind};
pub use tuning::Tuning;

/// Distinct values that any dictionary holds at most.
pub const MOST_VALUES: usize = 1 << 26;

/// The whole configuration of one daemon.
///
/// Every key has a default; unknown keys are refused. `THRONG__SECTION__KEY` in the environment overrides a key of
/// the file. Durations are written like `1s`, `5m`, `24h`; sizes in bytes like `1MiB`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the raw records come from.
    pub source: Source,
    /// Where the schemas of records are kept.
    pub registry: Registry,
    /// Profiles of people, joined to their records.
    #[schemars(example = [Join { name: "profiles".into(), topic: Some("profiles".into()), ..Join::default() }])]
    pub join: Vec<Join>,
    /// When a micro-batch is closed.
    pub batch: Batch,
    /// What the records are.
    pub schema: Schema,
    /// What a release promises.
    pub privacy: Privacy,
    /// How the planner looks for generalizations.
    pub plan: Plan,
    /// Groups of attributes, disjoint but for those of `plan.shared`; each leaves as a fragment of its own, in the order given here. Without any, all
    /// attributes that may leave are one group. Attributes are those of the record schema.
    #[schemars(example = [Group { name: "person".into(), attributes: vec!["age".into(), "zip".into()], ..Group::default() }])]
    pub group: Vec<Group>,
    /// Statistics of cohorts over time, in the place of records of single people or together with them (docs/series.md).
    #[schemars(example = [Series { name: "daily".into(), ..Series::default() }])]
    pub series: Vec<Series>,
    /// How people become the cohorts of the series.
    pub cohort: Cohort,
    /// What leaves.
    pub release: Release,
    /// Wishes: attributes that the planner keeps together as far as `plan.price` allows, the weightiest first. `throng check`
    /// says what each has come to and what it costs.
    #[schemars(example = [Keep { attributes: vec!["timestamp".into(), "heart_rate".into()], weight: 3.0 }])]
    pub keep: Vec<Keep>,
    /// How records are treated that stand out.
    pub treatment: Treatment,
    /// How `throng anonymize` looks for the policy of a data set.
    pub anonymize: Anonymize,
    /// Where released records go.
    pub sink: Sink,
    /// What a released line looks like.
    pub output: Output,
    /// People who are to be erased, named in a topic.
    pub erasure: Erasure,
    /// What the daemon keeps on disk.
    pub state: State,
    /// On what hardware groups are counted.
    pub compute: Compute,
    /// What the daemon may take of its machine.
    pub process: Process,
    /// Metrics, status page and logs.
    pub telemetry: Telemetry,
    /// Tests of the policy, which `throng check` and every reload run.
    #[schemars(example = [PolicyTest {
        name: "an age alone is shown in tens".into(), input: vec!["{\"user\": \"anna\", \"age\": 34}".into()], people: 20,
        expect: vec!["{\"age\": \"[30, 40)\"}".into()], never: vec!["anna".into()], ..PolicyTest::default()
    }])]
    pub test: Vec<PolicyTest>,
    /// The secret that keys every digest of a subject, from `state.secret_file` or `THRONG_SECRET`; never a key of
    /// the file. None: the daemon draws one and keeps it in its state directory.
    #[serde(skip)]
    #[schemars(skip)]
    pub secret: Option<Secret>,
    /// What is not configured.
    #[serde(skip)]
    #[schemars(skip)]
    pub tuning: Tuning,
}

impl Config {
    /// Whether a run is a job over files: it reads them to the end, and its outputs replace what was there before.
    pub fn is_job(&self) -> bool {
        self.source.kind == SourceKind::File && self.source.path != std::path::Path::new("-")
    }

    /// Whether a run keeps a state. Without, what it remembers ends with it.
    pub fn has_state(&self) -> bool {
        !self.state.path.as_os_str().is_empty()
    }

    /// Records of which a dictionary must hold every value: those of the window, the planner's sample, and the batches.
    pub fn rows_remembered(&self) -> usize {
        self.plan.window_records + self.plan.sample_records() + self.batch.max_records * self.batches_remembered()
    }

    /// Batches among them: those that are held, the one at work and the next, and another one of values that are made.
    pub fn batches_remembered(&self) -> usize {
        self.privacy.max_hold_batches as usize + 2 + usize::from(self.treatment.makes_values())
    }

    /// Lines that wait for their delay at most.
    pub fn max_waiting_lines(&self) -> usize {
        if self.privacy.longest_delay().is_zero() { 0 } else { self.tuning.max_waiting_lines }
    }

    /// The names of the groups: those of `[[group]]`, or `all`, the one of everything.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        let of_everything = self.group.is_empty().then_some("all");
        self.group.iter().map(|group| group.name.as_str()).chain(of_everything)
    }

    /// The names of the outputs, a file or a topic each: those of the fragments, then those of the series.
    pub fn output_names(&self) -> Vec<&str> {
        self.fragment_outputs().into_iter().chain(self.series.iter().map(|series| series.name.as_str())).collect()
    }

    /// The topic through which contributions to series reach the instance that has the cohorts; none where no series come of topics.
    pub fn contributions_topic(&self) -> Option<String> {
        let has_series = self.source.kind == SourceKind::Kafka && !self.series.is_empty();
        has_series.then(|| format!("{}.contributions", self.sink.changelog_topic))
    }

    /// The topics that instances of the group consume, by number: those of the source, then that of contributions to series.
    pub fn consumed_topics(&self) -> Vec<String> {
        self.source.topics.iter().cloned().chain(self.contributions_topic()).collect()
    }

    /// The names of the outputs of fragments: those of the groups, or [`JOINED`] where their rows are joined.
    pub fn fragment_outputs(&self) -> Vec<&str> {
        match self.sink.rows {
            _ if !self.release.fragments => Vec::new(),
            Rows::Fragments => self.group_names().collect(),
            Rows::Joined => vec![JOINED],
        }
    }

    /// Whether any topic is read or written, so that `source.brokers` and `source.security` are used.
    pub fn uses_kafka(&self) -> bool {
        self.source.kind == SourceKind::Kafka || self.sink.kind == SinkKind::Kafka
    }
}

#[cfg(test)]
mod tests;

//! Engine settings derived from a configuration.

use crate::config::{ComputeBackend, Config, RowContent, SinkKind};
use crate::daemon::engine::learn::model::ModelSettings;
use crate::daemon::state::state_keys::StateKeys;
use crate::io::registry::FrameEncoding;
use crate::planner::PlannerSettings;
use crate::start::memory_budget::{max_dictionary_values, memory_bounds};
use crate::start::nested_output::{is_nested, nesting};
use crate::start::output_names::output_schema_kind;
use crate::start::profile_sources::joins_by_name;
use crate::start::record_formats::line_format;
use std::sync::Arc;
use std::time::Duration;
use throng_core::ledger::release_log::ReleaseLog;
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::ledger::supporters::{SupportLimits, SupporterTable};
use throng_core::treatment::batch_treatment::TreatmentSettings;
use throng_core::values::codebook::{Codebook, CodebookError};
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::Schema;
use throng_formats::{LineFormat, TypedGroup};
use throng_risk::counting::BackendChoice;

/// Engine settings.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct EngineSettings {
    /// Class requirements.
    pub policy: TreatmentSettings,
    /// Limits of a plan search.
    pub planner: PlannerSettings,
    /// Time between plan searches, if records arrived.
    pub plan_interval_ms: i64,
    /// Batches from a plan request to its adoption.
    pub handover_batches: u64,
    /// Maximum wait for a late plan or for evidence.
    pub search_budget: Duration,
    /// Jensen–Shannon divergence in bits that counts as drift; 1: never.
    pub drift: f64,
    /// Backend of evidence counts.
    pub backend: BackendChoice,
    /// Model limits.
    pub model: ModelSettings,
    /// Encoding of lines.
    pub format: LineFormat,
    /// Content of a line.
    pub rows: RowContent,
    /// Absent equals missing in the output.
    pub absent_as_null: bool,
    /// Monitoring: no fragments are released.
    pub monitor: bool,
    /// Accepts settled offsets again.
    pub accept_rewind: bool,
    /// Encoded values per attribute; further values are `*`.
    pub max_dictionary_values: usize,
    /// Dictionary bytes before compaction; `None`: unlimited.
    pub dictionary_bytes: Option<u64>,
    /// The first batch makes the first plan.
    pub plans_from_first_batch: bool,
    /// A value and a replacing mean per record and attribute.
    max_values_per_record: usize,
    /// Limits on lines per subject.
    pub repetition: RepetitionSettings,
    /// Joins, ordered by name.
    pub joins: Vec<JoinSettings>,
}

impl EngineSettings {
    pub(crate) fn of(
        config: &Config,
        schema: &Schema,
        registered: &Arc<[TypedGroup]>,
        accept_rewind: bool,
    ) -> EngineSettings {
        let (format, absent_as_null) = line_format_of(config, schema, registered);
        let bounds = memory_bounds(config, schema);
        let joined = |join: &crate::config::JoinConfig| JoinSettings {
            name: join.name.clone(),
            attributes: schema.attributes_of_join(&join.name),
            max_people: join.max_people,
            follows_topic: join.topic.is_some(),
        };
        EngineSettings {
            policy: TreatmentSettings {
                k: config.privacy.required_subjects(),
                max_hold_batches: u8::try_from(config.privacy.max_hold_batches).unwrap_or(u8::MAX),
            },
            planner: PlannerSettings::settings_from_config(config),
            handover_batches: config.tuning.handover_batches,
            search_budget: config.tuning.search_budget,
            drift: config.tuning.drift,
            backend: match config.compute.backend {
                ComputeBackend::Auto => BackendChoice::Auto,
                ComputeBackend::Cpu => BackendChoice::Cpu,
                ComputeBackend::Cuda => BackendChoice::Device,
            },
            model: ModelSettings {
                window_records: config.plan.window_records,
                max_edges: bounds.max_edges,
                value_bytes: bounds.value_bytes,
            },
            plan_interval_ms: milliseconds(config.plan.interval),
            format,
            rows: config.sink.rows,
            absent_as_null,
            monitor: config.sink.kind == SinkKind::None || !config.release.fragments,
            accept_rewind,
            max_dictionary_values: max_dictionary_values(config, schema),
            dictionary_bytes: bounds.dictionary_bytes,
            plans_from_first_batch: config.batch.is_whole,
            max_values_per_record: if config.treatment.creates_values() { 2 } else { 1 },
            repetition: RepetitionSettings::of(config, schema),
            joins: joins_by_name(config).into_iter().map(joined).collect(),
        }
    }

    pub(crate) fn max_new_values(&self, rows: usize) -> usize {
        self.max_values_per_record * rows
    }
}

fn line_format_of(config: &Config, schema: &Schema, registered: &Arc<[TypedGroup]>) -> (LineFormat, bool) {
    if config.sink.kind == SinkKind::None {
        return (LineFormat::Json, false);
    }
    let registered = Arc::clone(registered);
    let format = match output_schema_kind(config) {
        Some(FrameEncoding::Avro) => LineFormat::Avro(registered),
        Some(FrameEncoding::Protobuf) => LineFormat::Protobuf(registered),
        Some(FrameEncoding::Json) => LineFormat::FramedJson(registered, is_nested(config).then(|| nesting(schema))),
        None => line_format(config, schema),
    };
    (format, config.sink.writes_absent_cells())
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// One join.
#[derive(Clone, Debug)]
pub struct JoinSettings {
    /// Join name.
    pub name: String,
    /// Attributes, in profile cell order.
    pub attributes: Vec<usize>,
    /// Maximum subjects with a profile.
    pub max_people: usize,
    /// Profiles arrive after the start.
    pub follows_topic: bool,
}

/// Repetition limits; none without a subject in the schema.
#[derive(Clone, Copy, Debug, Default)]
pub struct RepetitionSettings {
    /// Lines per subject and batch in a changing group; 0: unlimited.
    pub max_lines: usize,
    /// Maximum delay in a static group; 0: no static groups.
    pub max_delay_ms: i64,
    /// Time that one line represents its subject in a static group.
    pub window_ms: i64,
    /// Maximum waiting lines.
    pub max_waiting: usize,
    /// Subjects that one attacker may control.
    pub colluders: usize,
}

const ATTEMPTS_PER_DELAY: i64 = 24;

impl RepetitionSettings {
    fn of(config: &Config, schema: &Schema) -> Self {
        if schema.subject.is_none() {
            return Self::default();
        }
        Self {
            max_lines: config.privacy.max_lines_per_subject,
            max_delay_ms: milliseconds(config.privacy.longest_delay()),
            window_ms: milliseconds(config.privacy.static_window),
            max_waiting: memory_bounds(config, schema).max_waiting_lines,
            colluders: config.privacy.colluders,
        }
    }

    /// Returns the next retry after `age_ms`. Retry times are common, so that lines of one class meet.
    pub(crate) fn next_attempt_ms(&self, age_ms: i64) -> i64 {
        let step = (self.max_delay_ms / ATTEMPTS_PER_DELAY).max(1);
        (age_ms.div_euclid(step) + 1) * step
    }
}

pub(crate) fn empty_ledger(config: &Config, schema: &Schema) -> SubjectLedger {
    let bounds = memory_bounds(config, schema);
    let mut ledger = SubjectLedger::default();
    let limits = SupportLimits {
        window_ms: milliseconds(config.privacy.release_window),
        min_tenure: config.privacy.min_tenure,
        max_classes: config.privacy.max_classes_per_subject,
        max_entries: bounds.max_budget_entries,
    };
    if limits.min_tenure > 0 || limits.max_classes > 0 {
        ledger.supporters = Some(SupporterTable::new(limits));
    }
    let repetition = RepetitionSettings::of(config, schema);
    if repetition.max_delay_ms > 0 {
        ledger.release_log = Some(ReleaseLog::new(repetition.window_ms, bounds.max_said_lines));
    }
    ledger
}

/// Factory of empty codebooks and ledgers.
pub struct EmptyStateFactory {
    config: Arc<Config>,
    schema: Arc<Schema>,
    class_key: DigestKey,
    repetition_key: DigestKey,
}

impl EmptyStateFactory {
    pub(crate) fn new(config: &Arc<Config>, schema: &Arc<Schema>, keys: &StateKeys) -> Self {
        Self {
            config: Arc::clone(config),
            schema: Arc::clone(schema),
            class_key: DigestKey(keys.classes),
            repetition_key: DigestKey(keys.repetition),
        }
    }

    pub(crate) fn books(&self) -> Result<Vec<Codebook>, CodebookError> {
        let values = max_dictionary_values(&self.config, &self.schema);
        self.schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &self.class_key, values)).collect()
    }

    pub(crate) fn ledger(&self) -> SubjectLedger {
        let mut ledger = empty_ledger(&self.config, &self.schema);
        ledger.set_window_key(&self.repetition_key);
        ledger
    }
}

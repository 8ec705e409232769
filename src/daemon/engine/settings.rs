//! The settings of an engine, as a configuration asks for them.

use super::model::ModelSettings;
use crate::anonymity::planner::PlannerSettings;
use crate::anonymity::treatment::treat::Policy;
use crate::config::{Backend, Config, Rows, SinkKind};
use crate::daemon::state::seal::Keys;
use crate::io::registry::FramedAs;
use crate::start::memory::{bounds, max_dictionary_values};
use crate::start::nested::{is_nested, nesting};
use crate::start::output_names::written_under;
use crate::start::profiles::in_order;
use crate::start::reading::line_format;
use std::sync::Arc;
use std::time::Duration;
use throng_core::ledger::per_subject::Ledger;
use throng_core::ledger::said::Said;
use throng_core::ledger::supporters::{SupportLimits, Supporters};
use throng_core::values::codebook::{Codebook, CodebookError};
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::Schema;
use throng_formats::{LineFormat, TypedGroup};
use throng_risk::counting::Wanted;

/// Settings of the engine.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct EngineSettings {
    /// What treatment asks of a class, and which records it may hold.
    pub policy: Policy,
    /// Limits of a search for a plan, and the crowds that it plans for.
    pub planner: PlannerSettings,
    /// Time from the end of one search for a plan to the next, if records have come since.
    pub plan_interval_ms: i64,
    /// Batches from the one that a plan is asked for to the one that it is in force for; 0: it is made at once.
    pub handover_batches: u64,
    /// A plan that is late is waited for no longer than this, and evidence is sought no longer.
    pub search_budget: Duration,
    /// Jensen–Shannon divergence in bits from which the stream has drifted; 1: never.
    pub drift: f64,
    /// Who counts the groups of the window for the evidence.
    pub backend: Wanted,
    /// How much of the stream is remembered and counted.
    pub model: ModelSettings,
    /// How lines are written; verification reads the same bytes back.
    pub format: LineFormat,
    /// What a line carries.
    pub rows: Rows,
    /// Absent and missing cells are one: the output cannot tell them apart.
    pub absent_as_null: bool,
    /// Nothing is released: the risk is measured.
    pub monitor: bool,
    /// Offsets that the state has settled may come again; without it they are refused.
    pub accept_rewind: bool,
    /// At most so many values of one attribute have a code; a value that finds no room shows `*`.
    pub max_dictionary_values: usize,
    /// Bytes that all dictionaries together may take before they are rid of what no record needs; `None`: only their values are limited.
    pub dictionary_bytes: Option<u64>,
    /// The first plan is made from the first batch, which is all there is of a file, or most of it.
    pub plans_from_first_batch: bool,
    /// Values of one attribute that a record brings at most: its own, and the mean that may take its place.
    values_a_record: usize,
    /// Limits on what is said of one subject.
    pub repetition: RepetitionSettings,
    /// What joins bring, in the order of their names.
    pub joins: Vec<JoinSettings>,
}

impl EngineSettings {
    /// All settings of an engine. With `accept_rewind`, records that the state has settled may come again.
    pub(super) fn of(
        config: &Config,
        schema: &Schema,
        registered: &Arc<[TypedGroup]>,
        accept_rewind: bool,
    ) -> EngineSettings {
        let (format, absent_as_null) = line_format_of(config, schema, registered);
        let bounds = bounds(config, schema);
        let joined = |join: &crate::config::Join| JoinSettings {
            name: join.name.clone(),
            attributes: schema.joined_by(&join.name),
            max_people: join.max_people,
            tails: join.topic.is_some(),
        };
        EngineSettings {
            policy: Policy::of(config),
            planner: PlannerSettings::of(config),
            handover_batches: config.tuning.handover_batches,
            search_budget: config.tuning.search_budget,
            drift: config.tuning.drift,
            backend: match config.compute.backend {
                Backend::Auto => Wanted::Auto,
                Backend::Cpu => Wanted::Cpu,
                Backend::Cuda => Wanted::Device,
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
            values_a_record: if config.treatment.makes_values() { 2 } else { 1 },
            repetition: RepetitionSettings::of(config, schema),
            joins: in_order(config).into_iter().map(joined).collect(),
        }
    }

    /// Values of one attribute that a batch of `rows` records brings at most.
    pub(super) fn values_of(&self, rows: usize) -> usize {
        self.values_a_record * rows
    }
}

/// How lines are written, and whether they cannot tell an absent cell from a missing one.
fn line_format_of(config: &Config, schema: &Schema, registered: &Arc<[TypedGroup]>) -> (LineFormat, bool) {
    if config.sink.kind == SinkKind::None {
        return (LineFormat::Json, false);
    }
    let registered = Arc::clone(registered);
    let format = match written_under(config) {
        Some(FramedAs::Avro) => LineFormat::Avro(registered),
        Some(FramedAs::Protobuf) => LineFormat::Protobuf(registered),
        Some(FramedAs::Json) => LineFormat::FramedJson(registered, is_nested(config).then(|| nesting(schema))),
        None => line_format(config, schema),
    };
    (format, config.sink.cannot_omit())
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// What a join brings.
#[derive(Clone, Debug)]
pub struct JoinSettings {
    /// Its name.
    pub name: String,
    /// The attributes, in the order of the profiles' cells.
    pub attributes: Vec<usize>,
    /// People of whom a profile is kept, at most.
    pub max_people: usize,
    /// Profiles go on coming after the start.
    pub tails: bool,
}

/// Limits on repetition. Without a subject in the schema there are none: every record is its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct RepetitionSettings {
    /// Lines of a subject in a batch, in a group that changes; 0: no limit.
    pub max_lines: usize,
    /// The longest delay of a line in a group that does not; 0: there are no such groups.
    pub max_delay_ms: i64,
    /// How long a line stands for the others of its subject in such a group, and may look for a class.
    pub window_ms: i64,
    /// Lines that wait at most.
    pub max_waiting: usize,
    /// People who may be one person's invention: what only they change does not change.
    pub colluders: usize,
}

/// How often in the longest delay a line that has found no class looks for one.
const CALLS: i64 = 24;

impl RepetitionSettings {
    fn of(config: &Config, schema: &Schema) -> Self {
        if schema.subject.is_none() {
            return Self::default();
        }
        Self {
            max_lines: config.privacy.max_lines_per_subject,
            max_delay_ms: milliseconds(config.privacy.longest_delay()),
            window_ms: milliseconds(config.privacy.static_window),
            max_waiting: bounds(config, schema).max_waiting_lines,
            colluders: config.privacy.colluders,
        }
    }

    /// When a line that found no class at `age_ms` comes again. These moments are the same for all lines, so that those who
    /// make a crowd together meet; they lie after `age_ms`, so that a quiet stream does not ask for ever.
    pub(super) fn next_call(&self, age_ms: i64) -> i64 {
        let step = (self.max_delay_ms / CALLS).max(1);
        (age_ms.div_euclid(step) + 1) * step
    }
}

/// The ledger that a configuration asks for, empty.
pub(super) fn empty_ledger(config: &Config, schema: &Schema) -> Ledger {
    let bounds = bounds(config, schema);
    let mut ledger = Ledger::default();
    let limits = SupportLimits {
        window_ms: milliseconds(config.privacy.release_window),
        min_tenure: config.privacy.min_tenure,
        max_classes: config.privacy.max_classes_per_subject,
        max_entries: bounds.max_budget_entries,
    };
    if limits.min_tenure > 0 || limits.max_classes > 0 {
        ledger.supporters = Some(Supporters::new(limits));
    }
    let repetition = RepetitionSettings::of(config, schema);
    if repetition.max_delay_ms > 0 {
        ledger.said = Some(Said::new(repetition.window_ms, bounds.max_said_lines));
    }
    ledger
}

/// Makes memories without a past: at a start, and for an erasure.
pub struct Blank {
    config: Arc<Config>,
    schema: Arc<Schema>,
    class_key: DigestKey,
    repetition_key: DigestKey,
}

impl Blank {
    pub(super) fn new(config: &Arc<Config>, schema: &Arc<Schema>, keys: &Keys) -> Self {
        Self {
            config: Arc::clone(config),
            schema: Arc::clone(schema),
            class_key: DigestKey(keys.classes),
            repetition_key: DigestKey(keys.repetition),
        }
    }

    /// Codebooks without values, one an attribute.
    pub(super) fn books(&self) -> Result<Vec<Codebook>, CodebookError> {
        let values = max_dictionary_values(&self.config, &self.schema);
        self.schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &self.class_key, values)).collect()
    }

    /// A ledger in which nothing has left.
    pub(super) fn ledger(&self) -> Ledger {
        let mut ledger = empty_ledger(&self.config, &self.schema);
        ledger.key_said(&self.repetition_key);
        ledger
    }
}

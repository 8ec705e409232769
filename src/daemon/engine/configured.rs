//! The settings of an engine that a configuration asks for.

use super::model::ModelSettings;
use super::settings::{EngineSettings, JoinSettings, RepetitionSettings, SearchSettings};
use crate::anonymity::planner::PlannerSettings;
use crate::anonymity::treatment::treat::Policy;
use crate::codec::{LineFormat, TypedGroup};
use crate::config::{Backend, Config, Join, SinkKind};
use crate::counting::Wanted;
use crate::io::registry::FramedAs;
use crate::records::schema::Schema;
use crate::start::memory::{bounds, max_dictionary_values};
use crate::start::nested::{is_nested, nesting};
use crate::start::output_names::written_under;
use crate::start::profiles::in_order;
use crate::start::reading::line_format;
use std::sync::Arc;

/// Limits on what is said of one subject; none where the schema names no subject.
pub(super) fn repetition(config: &Config, schema: &Schema) -> RepetitionSettings {
    if schema.subject.is_none() {
        return RepetitionSettings::default();
    }
    RepetitionSettings {
        max_lines: config.privacy.max_lines_per_subject,
        max_delay_ms: i64::try_from(config.privacy.longest_delay().as_millis()).unwrap_or(i64::MAX),
        window_ms: i64::try_from(config.privacy.release_window.as_millis()).unwrap_or(i64::MAX),
        max_waiting: bounds(config, schema).max_waiting_lines,
        colluders: config.privacy.colluders,
    }
}

/// All settings of an engine. With `accept_rewind`, records that the state has settled may come again.
pub(super) fn settings(
    config: &Config,
    schema: &Schema,
    registered: &Arc<[TypedGroup]>,
    accept_rewind: bool,
) -> EngineSettings {
    let (format, absent_as_null) = lines(config, schema, registered);
    let bounds = bounds(config, schema);
    EngineSettings {
        policy: Policy::of(config),
        planner: PlannerSettings::of(config),
        search: search(config),
        model: ModelSettings {
            window_records: config.plan.window_records,
            max_edges: bounds.max_edges,
            value_bytes: bounds.value_bytes,
        },
        plan_interval_ms: i64::try_from(config.plan.interval.as_millis()).unwrap_or(i64::MAX),
        format,
        rows: config.sink.rows,
        absent_as_null,
        monitor: config.sink.kind == SinkKind::None,
        accept_rewind,
        max_dictionary_values: max_dictionary_values(config, schema),
        dictionary_bytes: bounds.dictionary_bytes,
        plans_from_first_batch: config.batch.is_whole,
        values_a_record: if config.treatment.makes_values() { 2 } else { 1 },
        repetition: repetition(config, schema),
        joins: in_order(config).into_iter().map(|join| joined(join, schema)).collect(),
    }
}

fn joined(join: &Join, schema: &Schema) -> JoinSettings {
    JoinSettings {
        name: join.name.clone(),
        attributes: schema.joined_by(&join.name),
        max_people: join.max_people,
        tails: join.topic.is_some(),
    }
}

/// How lines are written, and whether they cannot tell an absent cell from a missing one.
fn lines(config: &Config, schema: &Schema, registered: &Arc<[TypedGroup]>) -> (LineFormat, bool) {
    let format = match written_under(config) {
        Some(FramedAs::Avro) => LineFormat::Avro(Arc::clone(registered)),
        Some(FramedAs::Protobuf) => LineFormat::Protobuf(Arc::clone(registered)),
        Some(FramedAs::Json) => {
            LineFormat::FramedJson(Arc::clone(registered), is_nested(config).then(|| nesting(schema)))
        }
        None => line_format(config, schema),
    };
    match config.sink.kind {
        SinkKind::File | SinkKind::Kafka => (format, config.sink.cannot_omit()),
        SinkKind::None => (LineFormat::Json, false),
    }
}

fn search(config: &Config) -> SearchSettings {
    SearchSettings {
        handover_batches: config.tuning.handover_batches,
        budget: config.tuning.search_budget,
        drift: config.tuning.drift,
        backend: match config.compute.backend {
            Backend::Auto => Wanted::Auto,
            Backend::Cpu => Wanted::Cpu,
            Backend::Cuda => Wanted::Device,
        },
    }
}

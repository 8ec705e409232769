//! Builds an engine from a configuration.

use super::prime::{PrimeError, prime};
use super::settings::{EmptyStateFactory, EngineSettings, empty_ledger};
use crate::config::{Config, JoinConfig, OutputShape, RowContent, SinkKind, SourceKind};
use crate::daemon::engine::core::{ActivePlan, DurableState, Engine, PlanningState, ValueEncoding};
use crate::daemon::engine::gather::contribution_limit::ContributionDraws;
use crate::daemon::engine::gather::held_records::HeldRows;
use crate::daemon::engine::gather::profile_joins::ProfileJoins;
use crate::daemon::engine::learn::model::ModelSize;
use crate::daemon::engine::learn::stream_knowledge::{StreamKnowledge, new_model};
use crate::daemon::engine::release::series_stream::SeriesStream;
use crate::daemon::engine::report::audit::Auditor;
use crate::daemon::engine::report::group_choice_summary;
use crate::daemon::state::clock::{ClockSource, MachineClocks, StateClock};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::entries::{EntryCodec, StateBinding};
use crate::daemon::state::records::{BatchIntent, StreamProgress};
use crate::daemon::state::rows::RowPacker;
use crate::daemon::state::state_keys::StateKeys;
use crate::daemon::state::store::{RecoveredState, StateStore};
use crate::planner::drift::DriftBaseline;
use crate::planner::planner_sample::PlannerSample;
use crate::start::checked_config::CheckedConfig;
use crate::start::memory_budget::{memory_division, usage_limits};
use crate::start::profile_sources::joins_by_name;
use crate::start::run_findings::RunStatistics;
use crate::telemetry::{PolicyActivated, RecordTotals, StateRecovered, Telemetry};
use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::plan::GroupShape;
use throng_core::stream::input_batch::FileSourceStatus;
use throng_core::values::codebook::CodebookError;
use throng_core::values::digest::{DigestKey, NameDigest};
use throng_core::values::schema::Schema;
use throng_core::values::subject_digest::SubjectDigester;

/// Start options outside the configuration.
pub struct RunOptions {
    /// `--lineage`: file that maps records to lines; file sinks only.
    pub lineage: Option<PathBuf>,
    /// `--accept-rewind`: settled records may be released again.
    pub accept_rewind: bool,
    /// `--fail-above`: largest permitted share of lost records; `None`: unchecked.
    pub max_lost_share: Option<f64>,
    /// In-process broker of the demo.
    pub uses_demo_broker: bool,
    /// Clocks of the machine.
    pub clocks: Arc<dyn ClockSource>,
}

impl Default for RunOptions {
    fn default() -> Self {
        let clocks = Arc::new(MachineClocks::new());
        Self { lineage: None, max_lost_share: None, accept_rewind: false, uses_demo_broker: false, clocks }
    }
}

/// Creates the state clock.
pub fn state_clock(config: &Config, options: &RunOptions, engine: &Engine, intent: Option<&BatchIntent>) -> StateClock {
    let mut anchors: Vec<_> = intent.map(|intent| intent.after.anchor).into_iter().collect();
    let progress = engine.progress();
    if progress.sequence > 0 {
        anchors.push(progress.anchor);
    }
    let clock = StateClock::resume(Arc::clone(&options.clocks), &anchors, config.privacy.release_window);
    if config.source.kind == SourceKind::Kafka { clock.shared_by_group() } else { clock }
}

/// Engine with restored state.
pub struct AssembledEngine {
    /// Engine after the last released batch.
    pub engine: Engine,
    /// Batch with an intent but unknown outcome.
    pub intent: Option<BatchIntent>,
    /// Identity of the state.
    pub id: String,
}

/// Reason why no engine can be built.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    /// The state is unusable, damaged, or of another stream or sink.
    #[error(transparent)]
    State(#[from] StateError),
    /// Attribute with too many levels.
    #[error(transparent)]
    Codebook(#[from] CodebookError),
    /// `plan.prime` yields no plan.
    #[error(transparent)]
    Prime(#[from] PrimeError),
    /// The policy changed while a batch is pending.
    #[error(
        "the policy has changed while batch {sequence} is pending: a retry could release its records with other generalizations than a consumer may have seen (start once with the previous configuration and record schema until the batch is released, or accept it with --accept-rewind)"
    )]
    OtherPolicy {
        /// Number of that batch.
        sequence: u64,
    },
}

fn stream_identity(config: &Config, schema: &Schema) -> String {
    let joins: Vec<String> = joins_by_name(config).into_iter().map(JoinConfig::identity).collect();
    let joins = if joins.is_empty() { String::new() } else { format!(" joins {}", joins.join(", ")) };
    format!("{} {}{joins}", schema.fingerprint(), config.source.identity())
}

fn sink_identity(config: &Config) -> Option<String> {
    let place = match config.sink.kind {
        SinkKind::None => return None,
        SinkKind::Kafka => format!("topic {}", config.sink.topic),
        SinkKind::File => "files".to_owned(),
    };
    Some(match config.sink.rows {
        RowContent::Fragments if config.output.shape == OutputShape::Nested => format!("{place}, nested"),
        RowContent::Fragments => place,
        RowContent::Joined => format!("{place}, joined"),
    })
}

fn groups_text(shapes: &[GroupShape], schema: &Schema) -> String {
    let group = |shape: &GroupShape| {
        let attributes = shape.without_ladder().attributes();
        let names: Vec<&str> = attributes.iter().map(|&a| schema.attributes[a].name.as_str()).collect();
        format!("[[group]]\nname = {:?}\nattributes = {names:?}\n", shape.name)
    };
    let mut groups: Vec<String> = shapes.iter().map(group).collect();
    groups.sort();
    groups.concat()
}

/// Callback that decides if a pending batch was released.
pub type PendingBatchCheck<'a> = dyn FnMut(&BatchIntent, &str) -> Result<bool, StateError> + 'a;

/// Creates an empty ledger.
pub fn new_ledger(checked: &CheckedConfig) -> SubjectLedger {
    empty_ledger(&checked.config, &checked.schema)
}

fn bind_state(store: &mut StateStore, checked: &CheckedConfig, fresh: bool) -> Result<(), StateError> {
    let CheckedConfig { config, schema, .. } = checked;
    store.bind_stream(&stream_identity(config, schema))?;
    if let Some(sink) = sink_identity(config) {
        store.bind_sink(&sink)?;
        store.bind_groups(&groups_text(&checked.shapes, schema), fresh)?;
    }
    Ok(())
}

/// Opens the state and builds the engine; `left`: a pending batch was released.
pub fn assemble(
    checked: CheckedConfig,
    telemetry: &Telemetry,
    accept_rewind: bool,
    left: &mut PendingBatchCheck<'_>,
) -> Result<AssembledEngine, AssemblyError> {
    let start = Instant::now();
    let CheckedConfig { config, schema, .. } = &checked;
    let mut ledger = empty_ledger(config, schema);
    let secret = config.secret.as_ref().map(crate::config::Secret::expose);
    let (mut store, keys, mut recovered) = if config.has_state() {
        StateStore::open(&config.state.path, secret, &mut ledger)?
    } else {
        StateStore::open_temporary(secret, &mut ledger)?
    };
    if config.is_job() && config.has_state() {
        store.check_last_job(recovered.progress.sequence)?;
        store.work_on_copy()?;
    }
    ledger.set_window_key(&DigestKey(keys.repetition));
    let log = (config.source.kind == SourceKind::Kafka).then(|| EntryCodec::new(&keys, &config.source.group));
    if log.is_some() {
        store.use_changelog();
    }
    telemetry.set_rounding_key(&keys.pages);
    bind_state(&mut store, &checked, recovered.progress.sequence == 0 && recovered.intent.is_none())?;
    let untruthful = store
        .record_untruthful(config.treatment.may_be_untruthful())?
        .then(|| "numbers replaced by others or by means".to_owned());
    let id = store.id().to_owned();
    let fresh = recovered.progress.sequence == 0 && recovered.intent.is_none();
    let digest = checked.policy;
    let tried_under = store.stored_policy()?.filter(|known| known != digest.bytes());
    let pending = match recovered.intent.take() {
        None => None,
        Some(intent) if left(&intent, &id)? => {
            recovered.apply_released(&intent);
            store.resolve_recovered_intent(intent, true, &mut ledger)?;
            None
        }
        // Without records it only changes the changelog.
        Some(intent) if tried_under.is_some() && !accept_rewind && !intent.affected_partitions().is_empty() => {
            return Err(AssemblyError::OtherPolicy { sequence: intent.after.sequence });
        }
        Some(intent) => {
            recovered.rows.retain(|(sequence, _)| *sequence != intent.after.sequence);
            store.resolve_recovered_intent(intent.clone(), false, &mut ledger)?;
            Some(intent)
        }
    };
    if config.source.kind == SourceKind::File {
        recovered.progress.positions.clear();
        if config.is_job() {
            (recovered.progress.totals, recovered.met) = (RecordTotals::default(), None);
        }
    }
    if log.is_some() {
        // Assigned partitions restore these.
        recovered.progress.positions.clear();
        recovered.progress.totals.count_held_as_moved();
    }
    if fresh {
        store.write_progress(&recovered.progress)?;
    }
    if store.stored_policy()?.as_ref() != Some(digest.bytes()) {
        store.write_policy(digest.bytes())?;
    }
    let releases = config.sink.kind != SinkKind::None;
    PolicyActivated {
        digest: &digest.short(),
        k: config.privacy.k,
        min_represented: if releases { config.release.min_represented } else { 0.0 },
        judges_unreadable: config.source.kind == SourceKind::File,
        only_series: releases && !config.release.fragments,
    }
    .emit(telemetry);
    StateRecovered {
        sequence: recovered.progress.sequence,
        deltas: recovered.deltas,
        seconds: start.elapsed().as_secs_f64(),
        bytes: recovered.bytes,
    }
    .emit(telemetry);
    let auditor = Auditor::new(config, &digest, &id);
    let opened = OpenedState { ledger, store, log, keys, untruthful, auditor };
    let engine = build_engine(checked, telemetry, accept_rewind, opened, recovered)?;
    Ok(AssembledEngine { engine, intent: pending, id })
}

/// Opens a state without an engine.
///
/// # Errors
/// When it is missing, in use, damaged, or of another stream.
pub fn open_state(checked: &CheckedConfig) -> Result<(StateStore, StateKeys, RecoveredState), StateError> {
    let CheckedConfig { config, schema, .. } = checked;
    let secret = config.secret.as_ref().map(crate::config::Secret::expose);
    let (mut store, keys) = StateStore::open_existing(&config.state.path, secret)?;
    let recovered = store.load(&mut empty_ledger(config, schema))?;
    store.bind_stream(&stream_identity(config, schema))?;
    Ok((store, keys, recovered))
}

struct OpenedState {
    ledger: SubjectLedger,
    store: StateStore,
    log: Option<EntryCodec>,
    keys: StateKeys,
    untruthful: Option<String>,
    auditor: Option<Auditor>,
}

fn state_binding(config: &Config, schema: &Schema, shapes: &[GroupShape], names: &NameDigest) -> StateBinding {
    let sink = sink_identity(config);
    StateBinding {
        stream: names.digest(&stream_identity(config, schema)),
        groups: sink.as_ref().map_or(0, |_| names.digest(&groups_text(shapes, schema))),
        sink: sink.map_or(0, |sink| names.digest(&sink)),
    }
}

fn report_limits(config: &Config, schema: &Schema, telemetry: &Telemetry) {
    telemetry.set_memory_limits(&memory_division(config, schema).map_or_else(Vec::new, |division| division.parts));
    usage_limits(config, schema).emit(telemetry);
}

fn build_engine(
    checked: CheckedConfig,
    telemetry: &Telemetry,
    accept_rewind: bool,
    opened: OpenedState,
    mut past: RecoveredState,
) -> Result<Engine, AssemblyError> {
    let CheckedConfig {
        config,
        schema,
        shapes,
        protections,
        planned_groups: grown,
        selected_treatments: treated,
        registered,
        series,
        ..
    } = checked;
    let OpenedState { ledger, store, log, keys, untruthful, auditor } = opened;
    let blank = EmptyStateFactory::new(&config, &schema, &keys);
    let new_subjects =
        || schema.subject.map(|a| SubjectDigester::new(Arc::clone(&schema.attributes[a]), &DigestKey(keys.subjects)));
    let settings = EngineSettings::of(&config, &schema, &registered, accept_rewind);
    report_limits(&config, &schema, telemetry);
    let primed = if past.progress.plan_version == 0 {
        let (books, subjects) = (blank.books()?, new_subjects());
        prime(&config, &schema, &shapes, books, subjects, settings.absent_as_null, &settings.planner)?
    } else {
        None
    };
    let width = schema.attributes.len();
    let attribute_names: Vec<&str> = schema.attributes.iter().map(|a| a.name.as_str()).collect();
    let chosen = grown
        .map(|grown| group_choice_summary::group_choice_summary(&grown, &attribute_names, telemetry.rounding_draws()));
    let quasi: BTreeSet<usize> = shapes.iter().flat_map(|shape| shape.quasi.iter().copied()).collect();
    let names = NameDigest::new(&DigestKey(keys.classes));
    let learning = StreamKnowledge {
        model: new_model(&schema, &shapes, &settings, &StreamProgress::default(), &store)?,
        model_size: ModelSize::default(),
        sample: PlannerSample::new(width, config.plan.sample_records(), config.plan.window_records),
        baseline: DriftBaseline::default(),
        met: RunStatistics::new(width, settings.policy.k),
        next_value_check: 0,
    };
    let durable = DurableState {
        store,
        log,
        binding: state_binding(&config, &schema, &shapes, &names),
        places: BTreeSet::new(),
        erased: VecDeque::new(),
        pending: Vec::new(),
        packer: RowPacker::default(),
        progress: StreamProgress::default(),
    };
    let mut engine = Engine {
        in_force: ActivePlan::new(protections),
        learning,
        planning: PlanningState {
            primed,
            chosen: chosen.unwrap_or_default(),
            treatments: group_choice_summary::treatment_summary(&treated, &attribute_names),
            ..PlanningState::default()
        },
        durable,
        coding: ValueEncoding { books: blank.books()?, subjects: new_subjects(), numbering: 0, compacted_bytes: 0 },
        quasi: quasi.into_iter().collect(),
        joins: ProfileJoins::new(&settings.joins, std::mem::take(&mut past.profiles)),
        held: HeldRows::new(width, schema.joined_attributes()),
        series: series.map(|terms| SeriesStream::new(terms, &DigestKey(keys.repetition), config.has_state())),
        schema,
        settings,
        shapes,
        ledger,
        telemetry: telemetry.clone(),
        digest: Box::new(move |name| names.digest(name)),
        draws: ContributionDraws::new(&DigestKey(keys.repetition)),
        blank,
        auditor,
        untruthful,
        origin: Arc::new(FileSourceStatus),
    };
    engine.restore_state(past)?;
    if let Some(series) = &engine.series {
        series.published().emit(telemetry);
    }
    telemetry.restore(engine.durable.progress.totals, engine.learning.met.monitored());
    Ok(engine)
}

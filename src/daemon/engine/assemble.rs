//! From a configuration to an engine: everything that is checked and opened before the first record is read.

use super::clock::{Clocks, StateClock};
use super::model::ModelSettings;
use super::prime::{PrimeError, prime};
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::planner::{GroupShape, InBatch, LadderLimits, PlannerSettings};
use crate::anonymity::privacy::protection::Protection;
use crate::anonymity::treatment::treat::Policy;
use crate::codec::LineFormat;
use crate::config::{Backend, Config, Format, Problem, Recoding, SinkKind};
use crate::counting::cuda::Wanted;
use crate::daemon::engine::{
    DampeningSettings, Draws, Engine, EngineSettings, Parts, Past, RepetitionSettings, SearchSettings,
};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::Intent;
use crate::daemon::state::seal::Keys;
use crate::daemon::state::store::Store;
use crate::ledger::classes::Ledger;
use crate::ledger::said::Said;
use crate::ledger::supporters::{SupportLimits, Supporters};
use crate::ledger::tally::Tally;
use crate::records::codebook::{Codebook, CodebookError};
use crate::records::digest::DigestKey;
use crate::records::schema::Schema;
use crate::records::subject::Subjects;
use crate::release::given::Needs;
use crate::start::population::{People, Populations, read_populations};
use crate::start::protections::{kept, protections};
use crate::start::reading::line_format;
use crate::telemetry::{PastUnknown, PopulationsRead, StateRecovered, Telemetry};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// What a start is given besides its configuration.
pub struct Options {
    /// The configuration's name in messages.
    pub file: String,
    pub lineage: Option<PathBuf>,
    pub accept_rewind: bool,
    /// The broker is the demo's stand-in, which cannot be asked for the settings of a topic.
    pub stand_in_broker: bool,
    /// The clocks of the machine.
    pub clocks: Arc<dyn Clocks>,
}

/// The clock of an engine's state, which goes on where its last batch, or the attempt at the next one, left it.
#[must_use]
pub fn state_clock(config: &Config, options: &Options, engine: &Engine, intent: Option<&Intent>) -> StateClock {
    let mut anchors: Vec<_> = intent.map(|intent| intent.after.anchor).into_iter().collect();
    let progress = engine.progress();
    if progress.sequence > 0 {
        anchors.push(progress.anchor);
    }
    StateClock::resume(Arc::clone(&options.clocks), &anchors, config.privacy.support_window)
}

/// An engine with the state it continues from.
pub struct Assembled {
    pub engine: Engine,
    /// A batch that was about to leave when the process before this one ended.
    pub intent: Option<Intent>,
    /// Identity of the state.
    pub id: String,
    /// `privacy.k` of what has left before this start, where it is known.
    pub made_with: Option<u64>,
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Codebook(#[from] CodebookError),
    #[error(transparent)]
    Prime(#[from] PrimeError),
    #[error("{} problem(s) in the privacy models", .0.len())]
    Models(Vec<Problem>),
    #[error(
        "the populations are others than when batch {sequence} was tried, which has not left: tried again, its records could leave under other generalizations than some reader may have seen (restore the files until it has left, or accept it with --accept-rewind)"
    )]
    OtherPopulations { sequence: u64 },
}

/// What a state belongs to.
fn stream_of(config: &Config, schema: &Schema) -> String {
    format!("{} {}", schema.fingerprint(), config.source.identity())
}

/// Limits on what is said of one subject; none where the schema names no subject.
fn repetition(config: &Config, schema: &Schema) -> RepetitionSettings {
    if schema.subject.is_none() {
        return RepetitionSettings::default();
    }
    RepetitionSettings {
        max_lines: config.privacy.max_lines_per_subject,
        max_delay_ms: i64::try_from(config.privacy.longest_delay().as_millis()).unwrap_or(i64::MAX),
        window_ms: i64::try_from(config.privacy.repetition_window().as_millis()).unwrap_or(i64::MAX),
        max_waiting: config.max_waiting_lines(),
        colluders: config.privacy.colluders,
    }
}

/// Where the batches of a state leave to; `None` where nothing leaves, which a state may begin with.
fn sink_of(config: &Config) -> Option<String> {
    let path = &config.sink.path;
    match config.sink.kind {
        SinkKind::None => None,
        SinkKind::Kafka => Some(format!("topic {}", config.sink.topic)),
        SinkKind::File if path.as_os_str() == "-" => Some("standard output".to_owned()),
        SinkKind::File => Some(format!("file {}", std::path::absolute(path).as_ref().unwrap_or(path).display())),
    }
}

/// What an intent found at start means, by the marker or by the file sink's commit point: `Some(lengths)` if its batch
/// left, `None` if it did not.
pub type Verdict<'a> = dyn FnMut(&Intent, &str) -> Result<bool, StateError> + 'a;

/// Opens the state and builds the engine on it. `left` decides whether the batch of a pending intent left.
///
/// # Errors
/// When the state is refused.
pub fn assemble(
    config: &Config,
    schema: &Arc<Schema>,
    shapes: Vec<GroupShape>,
    telemetry: &Telemetry,
    accept_rewind: bool,
    left: &mut Verdict<'_>,
) -> Result<Assembled, AssemblyError> {
    let start = Instant::now();
    let protections = protections(config, schema, "the configuration").map_err(AssemblyError::Models)?;
    let people = read_populations(config, schema, "the configuration").map_err(AssemblyError::Models)?;
    let window_seconds = u32::try_from(config.privacy.support_window.as_secs()).unwrap_or(u32::MAX);
    let mut ledger = Ledger::new(config.privacy.crowd(), window_seconds, config.state.max_ledger_classes);
    if !protections.is_empty() {
        let window_ms = i64::try_from(config.privacy.support_window.as_millis()).unwrap_or(i64::MAX);
        ledger.keep_tally(Tally::new(window_ms, config.state.max_shown_values, &kept(&protections)));
    }
    let limits = SupportLimits {
        window_ms: i64::try_from(config.privacy.support_window.as_millis()).unwrap_or(i64::MAX),
        min_tenure: config.privacy.min_tenure,
        max_classes: config.privacy.max_classes_per_subject,
        max_entries: config.state.max_ledger_classes,
    };
    if limits.min_tenure > 0 || limits.max_classes > 0 {
        ledger.keep_supporters(Supporters::new(limits));
    }
    let repetition = repetition(config, schema);
    if repetition.max_delay_ms > 0 {
        let window_ms = i64::try_from(config.privacy.repetition_window().as_millis()).unwrap_or(i64::MAX);
        ledger.keep_said(Said::new(window_ms, config.state.max_said_lines));
    }
    let secret = config.secret.as_ref().map(crate::config::Secret::expose);
    let (mut store, keys, mut recovered) = Store::open(&config.state.path, secret, &mut ledger)?;
    ledger.key_said(&DigestKey(keys.repetition));
    telemetry.key_draws(&keys.pages);
    store.bind(&stream_of(config, schema))?;
    if let Some(sink) = sink_of(config) {
        store.bind_sink(&sink)?;
    }
    let made_with = store.make_with(config.privacy.k)?;
    let id = store.id().to_owned();
    let fresh = recovered.progress.sequence == 0 && recovered.intent.is_none() && recovered.progress.lengths.is_empty();
    let fingerprints: Vec<[u8; 32]> = people.iter().map(|p| p.fingerprint(schema)).collect();
    let changed = store.populations()? != fingerprints;
    let mut pending = None;
    if let Some(intent) = recovered.intent.take() {
        if left(&intent, &id)? {
            let progress = intent.after.clone();
            let (held, settled, sampled, plan) =
                (intent.held.clone(), intent.settled.clone(), intent.sampled.clone(), intent.plan.clone());
            recovered.evidence = intent.evidence.clone().or(recovered.evidence);
            recovered.baseline = intent.baseline.clone().unwrap_or(recovered.baseline);
            if plan.is_some() {
                recovered.references.clone_from(&intent.references);
            }
            recovered.met = intent.met.clone();
            recovered.witnessed.seen.extend(&intent.witnessed.seen);
            recovered.witnessed.raws.extend(intent.witnessed.raws.iter().cloned());
            store.settle_recovered(intent, Some(progress.lengths.clone()), &mut ledger)?;
            recovered.held.retain(|row| !settled.contains(&row.ordinal));
            recovered.held.extend(held);
            recovered.sample.extend(sampled);
            recovered.plan = plan.or(recovered.plan);
            recovered.progress = progress;
        } else if changed && !accept_rewind {
            return Err(AssemblyError::OtherPopulations { sequence: intent.after.sequence });
        } else {
            recovered.rows.retain(|(sequence, _)| *sequence != intent.after.sequence);
            store.settle_recovered(intent.clone(), None, &mut ledger)?;
            pending = Some(intent);
        }
    }
    if fresh {
        store.begin(&recovered.progress)?;
    }
    if changed {
        store.note_populations(&fingerprints)?;
    }
    if changed || !people.is_empty() {
        let counts = people.iter().map(|p| p.count as u64).collect();
        PopulationsRead { people: counts, changed: changed && !fresh }.emit(telemetry);
    }
    StateRecovered {
        sequence: recovered.progress.sequence,
        deltas: recovered.deltas,
        seconds: start.elapsed().as_secs_f64(),
        bytes: recovered.bytes,
    }
    .emit(telemetry);
    if let Some(attributes @ 1..) = ledger.tally().map(|tally| tally.unknown(recovered.progress.age_ms)) {
        PastUnknown { attributes: attributes as u64 }.emit(telemetry);
    }
    let engine = build(
        config,
        schema,
        shapes,
        protections,
        &people,
        telemetry,
        accept_rewind,
        ledger,
        store,
        &keys,
        Past {
            progress: recovered.progress,
            plan: recovered.plan,
            primed: None,
            baseline: recovered.baseline,
            evidence: recovered.evidence,
            references: recovered.references,
            sample: recovered.sample,
            rows: recovered.rows.into_iter().map(|(_, block)| block).collect(),
            held: recovered.held,
            witnessed: recovered.witnessed,
            met: recovered.met,
        },
    )?;
    Ok(Assembled { engine, intent: pending, id, made_with })
}

#[allow(clippy::too_many_arguments, reason = "the one place where all parts meet")]
fn build(
    config: &Config,
    schema: &Arc<Schema>,
    shapes: Vec<GroupShape>,
    protections: Vec<Protection>,
    people: &[People],
    telemetry: &Telemetry,
    accept_rewind: bool,
    ledger: Ledger,
    store: Store,
    keys: &Keys,
    mut past: Past,
) -> Result<Engine, AssemblyError> {
    let width = schema.attributes.len();
    let class_key = DigestKey(keys.classes);
    let new_books = || {
        let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &class_key, config.state.max_dictionary_values);
        schema.attributes.iter().map(book).collect::<Result<Vec<_>, _>>()
    };
    let new_subjects =
        || schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), &DigestKey(keys.subjects)));
    let (books, subjects) = (new_books()?, new_subjects());
    let (format, absent_as_null) = match (config.sink.kind, config.sink.format()) {
        (SinkKind::File, format) => (line_format(format, config.sink.separator), format != Format::Json),
        (SinkKind::Kafka, format) => (line_format(format, config.sink.separator), false),
        (SinkKind::None, _) => (LineFormat::Json, false),
    };
    let k = config.privacy.crowd();
    let settings = EngineSettings {
        policy: Policy::of(config),
        needs: Needs::of(&config.privacy),
        planner: PlannerSettings {
            k,
            ladder: LadderLimits { complete: config.plan.complete_lattice, chosen: config.plan.ladder_nodes },
            identifier_cardinality: config.plan.identifier_cardinality,
            window_records: config.plan.window_records,
            batch: Some(InBatch { crowd: config.privacy.crowd_in_batch(), records: config.batch.max_records })
                .filter(|batch| batch.crowd > 0),
        },
        search: SearchSettings {
            handover_batches: config.plan.handover_batches,
            budget: config.plan.search_budget,
            drift: config.plan.drift,
            backend: match config.compute.backend {
                Backend::Auto => Wanted::Auto,
                Backend::Cpu => Wanted::Cpu,
                Backend::Cuda => Wanted::Cuda,
            },
        },
        model: ModelSettings {
            window_records: config.plan.window_records,
            max_edges: config.plan.max_edges,
            half_life: config.plan.half_life_records,
            // Dampening asks for the strongest edges of all before every batch.
            coarse: !config.treatment.dampening,
        },
        dampening: config.treatment.dampening.then_some(DampeningSettings {
            above: config.treatment.dampening_above,
            most_altered: config.treatment.dampening_most_altered,
        }),
        plan_interval_ms: i64::try_from(config.plan.interval.as_millis()).unwrap_or(i64::MAX),
        format,
        absent_as_null,
        monitor: config.sink.kind == SinkKind::None,
        accept_rewind,
        max_dictionary_values: config.state.max_dictionary_values,
        repetition: repetition(config, schema),
        // A crowd in the batch keeps the promise of strict recoding by itself: nothing has to be remembered for it.
        max_witnesses: (config.privacy.recoding == Recoding::Strict && config.privacy.crowd_in_batch() < k)
            .then_some(config.state.max_ledger_classes),
    };
    if past.progress.plan_version == 0 {
        past.primed = prime(config, schema, &shapes, new_books()?, new_subjects(), absent_as_null, &settings.planner)?;
    }
    let populations = Populations::new(people, schema, &class_key, absent_as_null)?;
    let names = crate::records::digest::NameDigest::new(&class_key);
    Engine::new(
        Parts {
            schema: Arc::clone(schema),
            settings,
            shapes,
            protections,
            populations,
            books,
            subjects,
            ledger,
            sample: Sample::new(width, config.plan.sample_records, config.plan.window_records),
            store,
            telemetry: telemetry.clone(),
            digest: Box::new(move |name| names.digest(name)),
            draws: Draws::new(&DigestKey(keys.repetition)),
        },
        past,
    )
    .map_err(AssemblyError::State)
}

//! From a configuration to an engine: everything that is checked and opened before the first record is read.

use super::audit::Auditor;
use super::clock::{Clocks, MachineClocks, StateClock};
use super::contribution_limit::Draws;
use super::core::{Coding, Durable, Engine, InForce, Learning, Planning};
use super::held::Held;
use super::joins::Joins;
use super::model::ModelSize;
use super::prime::{PrimeError, prime};
use super::resume::new_model;
use super::series_stream::SeriesStream;
use super::settings::{Blank, EngineSettings, empty_ledger};
use crate::anonymity::planner::GroupShape;
use crate::anonymity::planner::drift::Baseline;
use crate::anonymity::planner::sample::Sample;
use crate::config::{Config, Join, OutputShape, Rows, SinkKind, SourceKind};
use crate::daemon::http::chosen_page;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::entries::{Binding, EntryCodec};
use crate::daemon::state::records::{Intent, Progress};
use crate::daemon::state::rows::RowPacker;
use crate::daemon::state::seal::Keys;
use crate::daemon::state::store::{Recovered, Store};
use crate::io::input::FileOrigin;
use crate::start::checked::Checked;
use crate::start::findings::Met;
use crate::start::memory::division;
use crate::start::profiles::in_order;
use crate::telemetry::{PolicyInForce, StateRecovered, Telemetry, Totals};
use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use throng_core::ledger::per_subject::Ledger;
use throng_core::values::codebook::CodebookError;
use throng_core::values::digest::{DigestKey, NameDigest};
use throng_core::values::schema::Schema;
use throng_core::values::subject::Subjects;

/// What a start is given besides its configuration.
pub struct Options {
    /// Where `--lineage` writes which record became which line; `None`: nowhere. File sinks only.
    pub lineage: Option<PathBuf>,
    /// `--accept-rewind`: records may be read, and leave, a second time where the state would refuse that.
    pub accept_rewind: bool,
    /// `--fail-above`: a job that loses a larger share of its records, or all of them, or that has none, fails and replaces nothing;
    /// `None`: it is not judged.
    pub most_lost: Option<f64>,
    /// The broker is the demo's stand-in.
    pub stand_in_broker: bool,
    /// The clocks of the machine.
    pub clocks: Arc<dyn Clocks>,
}

impl Default for Options {
    fn default() -> Self {
        let clocks = Arc::new(MachineClocks::new());
        Self { lineage: None, most_lost: None, accept_rewind: false, stand_in_broker: false, clocks }
    }
}

/// The clock of an engine's state, which goes on where its last batch, or the attempt at the next one, left it.
pub fn state_clock(config: &Config, options: &Options, engine: &Engine, intent: Option<&Intent>) -> StateClock {
    let mut anchors: Vec<_> = intent.map(|intent| intent.after.anchor).into_iter().collect();
    let progress = engine.progress();
    if progress.sequence > 0 {
        anchors.push(progress.anchor);
    }
    let clock = StateClock::resume(Arc::clone(&options.clocks), &anchors, config.privacy.release_window);
    if config.source.kind == SourceKind::Kafka { clock.of_group() } else { clock }
}

/// An engine with the state it continues from.
pub struct Assembled {
    /// Goes on behind the last batch that left.
    pub engine: Engine,
    /// A batch that was about to leave when the process before this one ended.
    pub intent: Option<Intent>,
    /// Identity of the state.
    pub id: String,
}

/// Why there is no engine.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    /// The state directory cannot be opened, is damaged, or belongs to another stream or sink.
    #[error(transparent)]
    State(#[from] StateError),
    /// An attribute has more levels than codes have room for.
    #[error(transparent)]
    Codebook(#[from] CodebookError),
    /// The file of `plan.prime` gives no plan.
    #[error(transparent)]
    Prime(#[from] PrimeError),
    /// The policy is another one, and a batch from before waits to be tried again.
    #[error(
        "the policy is another than when batch {sequence} was tried, which has not left: tried again, its records could leave under other generalizations than some reader may have seen (start once with the configuration and the record schema of then until it has left, or accept it with --accept-rewind)"
    )]
    OtherPolicy {
        /// Number of that batch.
        sequence: u64,
    },
}

/// What a state belongs to.
fn stream_of(config: &Config, schema: &Schema) -> String {
    let joins: Vec<String> = in_order(config).into_iter().map(Join::identity).collect();
    let joins = if joins.is_empty() { String::new() } else { format!(" joins {}", joins.join(", ")) };
    format!("{} {}{joins}", schema.fingerprint(), config.source.identity())
}

/// Where the batches of a state leave to; `None` where nothing leaves, which a state may begin with.
fn sink_of(config: &Config) -> Option<String> {
    let place = match config.sink.kind {
        SinkKind::None => return None,
        SinkKind::Kafka => format!("topic {}", config.sink.topic),
        // The state of a job goes on with the next file, which is written to another place.
        SinkKind::File => "files".to_owned(),
    };
    Some(match config.sink.rows {
        Rows::Fragments if config.output.shape == OutputShape::Nested => format!("{place}, nested"),
        Rows::Fragments => place,
        Rows::Joined => format!("{place}, joined"),
    })
}

/// The groups as a configuration spells them, in the order of their names.
fn groups_of(shapes: &[GroupShape], schema: &Schema) -> String {
    let group = |shape: &GroupShape| {
        let attributes = shape.without_ladder().attributes();
        let names: Vec<&str> = attributes.iter().map(|&a| schema.attributes[a].name.as_str()).collect();
        format!("[[group]]\nname = {:?}\nattributes = {names:?}\n", shape.name)
    };
    let mut groups: Vec<String> = shapes.iter().map(group).collect();
    groups.sort();
    groups.concat()
}

/// Whether the batch of an intent found at start left.
pub type Verdict<'a> = dyn FnMut(&Intent, &str) -> Result<bool, StateError> + 'a;

/// The ledger that a configuration asks for, empty.
pub fn ledger(checked: &Checked) -> Ledger {
    empty_ledger(&checked.config, &checked.schema)
}

/// Binds a state to what a configuration says it is of; one that has released nothing yet is `fresh`.
fn bind(store: &mut Store, checked: &Checked, fresh: bool) -> Result<(), StateError> {
    let Checked { config, schema, .. } = checked;
    store.bind(&stream_of(config, schema))?;
    if let Some(sink) = sink_of(config) {
        store.bind_sink(&sink)?;
        store.bind_groups(&groups_of(&checked.shapes, schema), fresh)?;
    }
    Ok(())
}

/// Opens the state and builds the engine on it. `left` decides whether the batch of a pending intent left.
pub fn assemble(
    checked: Checked,
    telemetry: &Telemetry,
    accept_rewind: bool,
    left: &mut Verdict<'_>,
) -> Result<Assembled, AssemblyError> {
    let start = Instant::now();
    let Checked { config, schema, .. } = &checked;
    let mut ledger = empty_ledger(config, schema);
    let secret = config.secret.as_ref().map(crate::config::Secret::expose);
    let (mut store, keys, mut recovered) = if config.has_state() {
        Store::open(&config.state.path, secret, &mut ledger)?
    } else {
        Store::open_temporary(secret, &mut ledger)?
    };
    if config.is_job() && config.has_state() {
        store.expect_last_job(recovered.progress.sequence)?;
        store.work_on_copy()?;
    }
    ledger.key_said(&DigestKey(keys.repetition));
    let log = (config.source.kind == SourceKind::Kafka).then(|| EntryCodec::new(&keys, &config.source.group));
    if log.is_some() {
        store.keep_in_log();
    }
    telemetry.key_draws(&keys.pages);
    bind(&mut store, &checked, recovered.progress.sequence == 0 && recovered.intent.is_none())?;
    let untruthful = store
        .note_untruthful(config.treatment.may_be_untruthful())?
        .then(|| "numbers replaced by others or by means".to_owned());
    let id = store.id().to_owned();
    let fresh = recovered.progress.sequence == 0 && recovered.intent.is_none();
    let digest = checked.policy;
    let tried_under = store.policy()?.filter(|known| known != digest.bytes());
    let pending = match recovered.intent.take() {
        None => None,
        Some(intent) if left(&intent, &id)? => {
            recovered.take_over(&intent);
            store.settle_recovered(intent, true, &mut ledger)?;
            None
        }
        // One without records only changes the changelog: nobody has seen anything of it.
        Some(intent) if tried_under.is_some() && !accept_rewind && !intent.places().is_empty() => {
            return Err(AssemblyError::OtherPolicy { sequence: intent.after.sequence });
        }
        Some(intent) => {
            recovered.rows.retain(|(sequence, _)| *sequence != intent.after.sequence);
            store.settle_recovered(intent.clone(), false, &mut ledger)?;
            Some(intent)
        }
    };
    if config.source.kind == SourceKind::File {
        // Another input, whose records are counted from the first one on.
        recovered.progress.positions.clear();
        if config.is_job() {
            (recovered.progress.totals, recovered.met) = (Totals::default(), None);
        }
    }
    if log.is_some() {
        // Partitions bring their positions and what waits of them.
        recovered.progress.positions.clear();
        recovered.progress.totals.let_go();
    }
    if fresh {
        store.note_progress(&recovered.progress)?;
    }
    if store.policy()?.as_ref() != Some(digest.bytes()) {
        store.note_policy(digest.bytes())?;
    }
    let releases = config.sink.kind != SinkKind::None;
    PolicyInForce {
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
    let opened = Opened { ledger, store, log, keys, untruthful, auditor };
    let engine = build(checked, telemetry, accept_rewind, opened, recovered)?;
    Ok(Assembled { engine, intent: pending, id })
}

/// Opens the state of a configuration without making an engine of it.
///
/// # Errors
/// When there is none, or as for [`assemble`]: it is in use, damaged, or of another stream.
pub fn open_at_rest(checked: &Checked) -> Result<(Store, Keys, Recovered), StateError> {
    let Checked { config, schema, .. } = checked;
    let secret = config.secret.as_ref().map(crate::config::Secret::expose);
    let (mut store, keys) = Store::existing(&config.state.path, secret)?;
    let recovered = store.load(&mut empty_ledger(config, schema))?;
    store.bind(&stream_of(config, schema))?;
    Ok((store, keys, recovered))
}

/// An open state.
struct Opened {
    ledger: Ledger,
    store: Store,
    log: Option<EntryCodec>,
    keys: Keys,
    /// How what leaves from it may be untrue.
    untruthful: Option<String>,
    auditor: Option<Auditor>,
}

fn build(
    checked: Checked,
    telemetry: &Telemetry,
    accept_rewind: bool,
    opened: Opened,
    mut past: Recovered,
) -> Result<Engine, AssemblyError> {
    let Checked { config, schema, shapes, protections, grown, treated, registered, series, .. } = checked;
    let Opened { ledger, store, log, keys, untruthful, auditor } = opened;
    let blank = Blank::new(&config, &schema, &keys);
    let new_subjects =
        || schema.subject.map(|a| Subjects::new(Arc::clone(&schema.attributes[a]), &DigestKey(keys.subjects)));
    let settings = EngineSettings::of(&config, &schema, &registered, accept_rewind);
    telemetry.divide_memory(&division(&config, &schema).map_or_else(Vec::new, |division| division.parts));
    let primed = if past.progress.plan_version == 0 {
        let (books, subjects) = (blank.books()?, new_subjects());
        prime(&config, &schema, &shapes, books, subjects, settings.absent_as_null, &settings.planner)?
    } else {
        None
    };
    let width = schema.attributes.len();
    let attribute_names: Vec<&str> = schema.attributes.iter().map(|a| a.name.as_str()).collect();
    let chosen = grown.map(|grown| chosen_page::summary(&grown, &attribute_names, telemetry.draws()));
    let quasi: BTreeSet<usize> = shapes.iter().flat_map(|shape| shape.quasi.iter().copied()).collect();
    let names = NameDigest::new(&DigestKey(keys.classes));
    let sink = sink_of(&config);
    let binding = Binding {
        stream: names.digest(&stream_of(&config, &schema)),
        groups: sink.as_ref().map_or(0, |_| names.digest(&groups_of(&shapes, &schema))),
        sink: sink.map_or(0, |sink| names.digest(&sink)),
    };
    let learning = Learning {
        model: new_model(&schema, &shapes, &settings, &Progress::default(), &store)?,
        model_size: ModelSize::default(),
        sample: Sample::new(width, config.plan.sample_records(), config.plan.window_records),
        baseline: Baseline::default(),
        met: Met::new(width, settings.policy.k),
        doubt_at: 0,
    };
    let mut engine = Engine {
        in_force: InForce::new(protections),
        learning,
        planning: Planning {
            primed,
            chosen: chosen.unwrap_or_default(),
            treatments: chosen_page::treatments(&treated, &attribute_names),
            ..Planning::default()
        },
        durable: Durable {
            store,
            log,
            binding,
            places: BTreeSet::new(),
            erased: VecDeque::new(),
            pending: Vec::new(),
            packer: RowPacker::default(),
            progress: Progress::default(),
        },
        coding: Coding { books: blank.books()?, subjects: new_subjects(), numbering: 0, compacted_bytes: 0 },
        quasi: quasi.into_iter().collect(),
        joins: Joins::new(&settings.joins, std::mem::take(&mut past.profiles)),
        held: Held::new(width, schema.joined()),
        series: series.map(|terms| SeriesStream::new(terms, &DigestKey(keys.repetition), config.has_state())),
        schema,
        settings,
        shapes,
        ledger,
        telemetry: telemetry.clone(),
        digest: Box::new(move |name| names.digest(name)),
        draws: Draws::new(&DigestKey(keys.repetition)),
        blank,
        auditor,
        untruthful,
        origin: Arc::new(FileOrigin),
    };
    engine.go_on(past)?;
    if let Some(series) = &engine.series {
        series.published().emit(telemetry);
    }
    telemetry.restore(engine.durable.progress.totals, engine.learning.met.monitored());
    Ok(engine)
}

//! Runs an engine without a daemon, with JSON batches, a recorded release and every fault.

use super::invariants::{GroupNames, Line, Promise};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use throng::config::{self, Config, FixedSettings, SourceKind};
use throng::daemon::engine::build::assemble::{AssemblyError, assemble};
use throng::daemon::engine::{BatchError, Engine, NextBatchSource, QueuedBatch};
use throng::daemon::state::directory::StateError;
use throng::daemon::state::entries::{EntryReader, RestoredPartitions};
use throng::daemon::state::records::BatchIntent;
use throng::daemon::state::records::Flush;
use throng::start::checked_config::CheckedConfig;
use throng::start::record_formats::{codec_limits, fields};
use throng::telemetry::conservation::is_conserved;
use throng::telemetry::{RecordTotals, Telemetry};
use throng_core::plan::GroupShape;
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::stream::input_batch::{CloseReason, InputBatch};
use throng_core::stream::release_sink::{BatchEnvelope, BatchSink, ChangelogRecord, DeliveryError, RejectedRecord};
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::schema::Schema;
use throng_formats::JsonCodec;

pub const SECRET: &str = "a secret that is long enough for anybody";

/// Milliseconds.
pub const RETRIED_AFTER_MS: i64 = 777;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    /// The process stops regularly after the batch.
    Restart,
    /// The sink aborts the first attempt, and the same process retries.
    Abort,
    /// The sink aborts the first attempt and the process is killed, and so is the next one.
    AbortAndDie,
    /// The batch is released, and the process is killed before it records that.
    LeaveAndDie,
    /// Another process with a separate directory takes the partition after the batch.
    Move,
    /// As `LeaveAndDie`; then another process takes the partition.
    LeaveAndMove,
}

#[derive(Debug, Default)]
pub struct Collector {
    pub lines: Vec<Line>,
    pub rejected: Vec<RejectedRecord>,
    /// Sequence number and clock of the last released batch.
    pub committed: (u64, i64),
    pub abort_next: bool,
    pub aborts: u32,
    /// Each process starts its numbering at zero.
    pub base: u64,
    pub changelog: Vec<ChangelogRecord>,
    /// Clock and lines of an aborted attempt.
    pub attempt: Option<(i64, Vec<Line>)>,
    /// Disables the check that a retry has the bytes of the first attempt.
    pub another_attempt_may_differ: bool,
    bytes: u64,
}

impl BatchSink for Collector {
    fn deliver(&mut self, batch: &ReleasableBatch, envelope: &BatchEnvelope<'_>) -> Result<(), DeliveryError> {
        let mut lines = Vec::new();
        for group in 0..batch.groups() {
            for line in batch.lines(group) {
                let at = envelope.coordinates[line.row as usize];
                let subject = envelope.subjects[line.row as usize];
                lines.push(Line {
                    batch: self.base + envelope.sequence,
                    clock_ms: envelope.clock_ms,
                    group,
                    text: String::from_utf8(line.bytes.to_vec()).expect("lines are text"),
                    subject: (subject != 0).then(|| format!("{subject:016x}")),
                    source: (at.topic, at.partition, at.offset),
                });
            }
        }
        let more = self.aborts.checked_sub(1).inspect(|left| self.aborts = *left).is_some();
        if std::mem::take(&mut self.abort_next) || more {
            self.attempt = Some((envelope.clock_ms, lines));
            return Err(DeliveryError::Aborted("asked to".to_owned()));
        }
        // A crowd too old at the retry changes the clock.
        let same_clock = |(clock, _): &(i64, Vec<Line>)| *clock == envelope.clock_ms;
        if let Some((_, first)) = self.attempt.take().filter(same_clock).filter(|_| !self.another_attempt_may_differ)
            && let Some(at) = (0..first.len().max(lines.len())).find(|&i| first.get(i) != lines.get(i))
        {
            panic!("a second attempt differs from the first: {:?} became {:?}", first.get(at), lines.get(at));
        }
        self.bytes += lines.iter().map(|l| l.text.len() as u64).sum::<u64>();
        self.lines.extend(lines);
        self.rejected.extend(envelope.rejected.iter().cloned());
        self.changelog.extend(envelope.changelog.iter().cloned());
        self.committed = (envelope.sequence, envelope.clock_ms);
        Ok(())
    }

    fn bytes_out(&self) -> u64 {
        self.bytes
    }
}

pub struct Stand {
    pub config: Config,
    pub telemetry: Telemetry,
    pub sink: Collector,
    pub promise: Promise,
    /// Records offered so far: the next offset.
    pub offered: i64,
    pub partition: i32,
    schema: Arc<Schema>,
    codec: JsonCodec,
    engine: Option<Engine>,
    pending: Option<BatchIntent>,
    next: Option<Vec<Option<Vec<u8>>>>,
    announced: Announcement,
    home: TempDir,
    /// Moves to another process, and the record totals of the earlier processes.
    moved: u32,
    past: RecordTotals,
}

struct Announced {
    records: Vec<Option<Vec<u8>>>,
    first: i64,
    turn: QueuedBatch,
}

#[derive(Default)]
struct Announcement(Option<Announced>);

impl NextBatchSource for Announcement {
    fn look(&mut self, _: &AtomicBool) -> Option<&mut QueuedBatch> {
        self.0.as_mut().map(|announced| &mut announced.turn)
    }
}

impl Stand {
    /// `schema` and `settings` are TOML (`[privacy]`, `[[group]]`, …).
    pub fn new(schema: &str, settings: &str) -> Self {
        Self::with_secret(schema, settings, SECRET)
    }

    pub fn with_secret(schema: &str, settings: &str, secret: &str) -> Self {
        Self::tuned(schema, settings, secret, FixedSettings::default())
    }

    pub fn tuned(schema: &str, settings: &str, secret: &str, tuning: FixedSettings) -> Self {
        Self::with(schema, settings, secret, ("file", "file"), tuning)
    }

    pub fn watching(schema: &str, settings: &str) -> Self {
        Self::with(schema, settings, SECRET, ("file", "none"), FixedSettings::default())
    }

    pub fn of_a_topic(schema: &str, settings: &str, tuning: FixedSettings) -> Self {
        Self::with(schema, settings, SECRET, ("kafka", "kafka"), tuning)
    }

    fn with(schema: &str, settings: &str, secret: &str, (source, sink): (&str, &str), tuning: FixedSettings) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| home.path().join(name).display().to_string();
        std::fs::write(path("schema.toml"), schema).expect("a file");
        let env = [
            ("THRONG__SOURCE__KIND", source.to_owned()),
            ("THRONG__SOURCE__PATH", if source == "file" { "-".to_owned() } else { String::new() }),
            ("THRONG__SOURCE__TOPICS", if source == "file" { String::new() } else { "in".to_owned() }),
            ("THRONG__SOURCE__GROUP", "stand".to_owned()),
            ("THRONG__SOURCE__BROKERS", "nobody-asks:9092".to_owned()),
            ("THRONG__SINK__TOPIC", if sink == "kafka" { "out".to_owned() } else { String::new() }),
            ("THRONG__SINK__KIND", sink.to_owned()),
            ("THRONG__SINK__PATH", if sink == "file" { path("out.ndjson") } else { String::new() }),
            ("THRONG__SCHEMA__FILE", path("schema.toml")),
            ("THRONG__STATE__PATH", path("state")),
            ("THRONG_SECRET", secret.to_owned()),
        ];
        // Limits on repetition are disabled unless the test sets them.
        let unless_given = [("max_delay", "0s"), ("max_lines_per_subject", "0")];
        let limits = unless_given.into_iter().filter(|(key, _)| !settings.contains(key));
        let limits = limits.map(|(key, value)| (format!("THRONG__PRIVACY__{}", key.to_uppercase()), value.to_owned()));
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(limits);
        let config = config::parse(settings, "stand.toml", env).unwrap_or_else(|p| panic!("{p:#?}"));
        let config = Config { tuning, ..config };
        let checked = CheckedConfig::new(config.clone(), "stand.toml").unwrap_or_else(|p| panic!("{p:#?}"));
        let telemetry = checked.telemetry();
        let CheckedConfig { schema, shapes, .. } = checked;
        let groups = shapes.iter().map(|s| names(s, &schema)).collect();
        let (limits, unknown) = codec_limits(&config);
        let codec = JsonCodec::new(&fields(&schema, false), limits).with_unknown(unknown);
        let promise = Promise { k: config.privacy.k, groups };
        let mut stand = Self {
            config,
            telemetry,
            sink: Collector::default(),
            promise,
            offered: 0,
            partition: 0,
            schema,
            codec,
            engine: None,
            pending: None,
            next: None,
            announced: Announcement::default(),
            home,
            moved: 0,
            past: RecordTotals::default(),
        };
        stand.start();
        stand
    }

    pub fn position(&self, attribute: &str) -> usize {
        self.schema.position(attribute).expect("an attribute of the schema")
    }

    pub fn state(&self) -> &Path {
        &self.config.state.path
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn engine(&mut self) -> &mut Engine {
        self.engine.as_mut().expect("a running engine")
    }

    pub fn parts(&mut self) -> (&mut Engine, &mut Collector) {
        (self.engine.as_mut().expect("a running engine"), &mut self.sink)
    }

    pub fn offer(&mut self, records: &[Option<Vec<u8>>], settling: Flush, now_ms: i64, fault: Fault) {
        let first = self.offered;
        self.sink.abort_next = matches!(fault, Fault::Abort | Fault::AbortAndDie);
        let mut outcome = self.process(records, first, settling, None, now_ms);
        if let Err(BatchError::Aborted { intent, .. }) = outcome {
            let mut retry = Some(*intent);
            if fault == Fault::AbortAndDie {
                self.die();
                self.die();
                retry = self.pending.take();
                assert!(retry.is_some(), "an intent that did not leave is given back");
            }
            // The attempt keeps its clock, and the flush of its intent although the source passes another.
            let other = if settling == Flush::No { Flush::Shutdown } else { Flush::No };
            outcome = self.process(records, first, other, retry.as_ref(), now_ms + RETRIED_AFTER_MS);
        }
        self.offered = first + i64::try_from(records.len()).expect("a small batch");
        match outcome {
            Ok(()) => {}
            Err(error) => panic!("a batch was not released: {error}"),
        }
        match fault {
            Fault::Restart => {
                self.engine().flush().expect("a state that can be written");
                self.die();
            }
            Fault::LeaveAndDie => self.die(),
            Fault::Move => {
                self.engine().drop_all_partitions().expect("a state that can be written");
                self.move_on();
            }
            Fault::LeaveAndMove => self.move_on(),
            Fault::Nothing | Fault::Abort | Fault::AbortAndDie => {}
        }
    }

    pub fn settle(&mut self, settling: Flush, now_ms: i64) {
        let engine = self.engine.as_mut().expect("a running engine");
        engine.settle(|_| true, settling, None, &mut self.sink, now_ms).expect("held records are settled");
    }

    /// The engine sees the announced records while the next batch is released.
    pub fn announce(&mut self, records: &[Option<Vec<u8>>]) {
        self.next = Some(records.to_vec());
    }

    pub fn process(
        &mut self,
        records: &[Option<Vec<u8>>],
        first: i64,
        settling: Flush,
        retry: Option<&BatchIntent>,
        now_ms: i64,
    ) -> Result<(), BatchError> {
        // A retried batch is read again.
        let ahead = self.announced.0.take().filter(|a| a.first == first && a.records == records && retry.is_none());
        let mut turn = match ahead {
            Some(announced) => announced.turn,
            None => Box::new(self.input(records, first, retry.is_some())).into(),
        };
        if let Some(records) = self.next.take() {
            let first = first + i64::try_from(turn.input.records()).expect("a small batch");
            let turn = Box::new(self.input(&records, first, false)).into();
            self.announced.0 = Some(Announced { records, first, turn });
        }
        let engine = self.engine.as_mut().expect("a running engine");
        engine.process(&mut turn, settling, retry, &mut self.sink, now_ms, &mut self.announced)
    }

    pub fn turn(&self, records: &[Option<Vec<u8>>], first: i64) -> QueuedBatch {
        Box::new(self.input(records, first, false)).into()
    }

    fn input(&self, records: &[Option<Vec<u8>>], first: i64, replay: bool) -> InputBatch {
        let mut input = InputBatch::new(self.schema.attributes.len(), 0);
        for (offset, record) in (first..).zip(records) {
            let coordinate = RecordPosition { topic: 0, partition: self.partition, offset, element: 0 };
            input.consume(coordinate);
            let Some(payload) = record else {
                *input.tombstones.entry((0, 0)).or_default() += 1;
                continue;
            };
            input.bytes += payload.len() as u64;
            if let Err(reason) = self.codec.decode(payload, coordinate, &mut input.raw) {
                input.rejected.push(RejectedRecord { coordinate, reason, attribute: None });
            }
        }
        if replay {
            input.closed = CloseReason::Replay;
        }
        input
    }

    /// Another process starts on the same state.
    pub fn die(&mut self) {
        drop(self.engine.take());
        self.announced.0 = None;
        self.start();
    }

    /// Another process with a separate directory continues the partitions.
    pub fn move_on(&mut self) {
        self.past = self.totals();
        self.past.count_held_as_moved();
        drop(self.engine.take());
        self.announced.0 = None;
        let begun = self.sink.committed;
        self.sink.base += begun.0;
        self.moved += 1;
        self.config.state.path = self.home.path().join(format!("state-{}", self.moved));
        self.sink.committed.0 = 0;
        self.start();
        assert!(self.pending.is_none());
        self.sink.committed.1 = begun.1;
    }

    pub fn in_the_changelog(&mut self) -> RestoredPartitions {
        let codec = self.engine().entry_codec().expect("a topic").clone();
        let mut reader = EntryReader::new(codec);
        self.sink.changelog.iter().for_each(|record| reader.add_record((&record.key, record.value.as_deref())));
        reader.into_restored(|_| true).expect("entries of one secret")
    }

    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    fn start(&mut self) {
        let committed = self.sink.committed.0;
        let mut left = |intent: &BatchIntent, _: &str| Ok(intent.after.sequence <= committed);
        // The database threads release the lock shortly after the drop.
        let deadline = Instant::now() + Duration::from_secs(10);
        let assembled = loop {
            let checked = CheckedConfig::new(self.config.clone(), "stand.toml").expect("a sound configuration");
            match assemble(checked, &self.telemetry, false, &mut left) {
                Err(AssemblyError::State(StateError::Locked(_))) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                assembled => break assembled.expect("an engine"),
            }
        };
        self.engine = Some(assembled.engine);
        self.pending = assembled.intent;
        if self.config.source.kind == SourceKind::Kafka {
            let restored = self.in_the_changelog();
            let places = restored.progress.keys().copied().collect();
            let age_ms = self.sink.committed.1;
            self.engine().adopt_partitions(restored, &places, age_ms).expect("a state of these series");
        }
    }

    pub fn totals(&mut self) -> RecordTotals {
        let (now, past) = (self.engine().progress().totals, self.past);
        RecordTotals {
            consumed: past.consumed + now.consumed,
            released: past.released + now.released,
            suppressed: past.suppressed + now.suppressed,
            dead_lettered: past.dead_lettered + now.dead_lettered,
            dropped: past.dropped + now.dropped,
            moved: past.moved + now.moved,
        }
    }

    /// Every offered record is accounted for, and the released records are in the output.
    pub fn check_conservation(&mut self) -> Result<(), String> {
        let totals = self.totals();
        let held = self.engine().unreleased_records() as u64;
        let status = self.telemetry.status();
        let released = super::invariants::records_released(&self.sink.lines);
        let offered = u64::try_from(self.offered).expect("not negative");
        if totals.consumed - totals.moved != offered {
            return Err(format!("{offered} records were offered, {totals:?}"));
        }
        if !is_conserved(&totals, held) || status.held != held || !status.conserved {
            return Err(format!("{held} records are held, {totals:?}, the page says {}", status.held));
        }
        if totals.released != released {
            return Err(format!("{released} records have left, {totals:?}"));
        }
        let letters = self.sink.rejected.len() as u64;
        if totals.dead_lettered != letters {
            return Err(format!("{letters} dead letters, {totals:?}"));
        }
        Ok(())
    }
}

pub fn names(shape: &GroupShape, schema: &Schema) -> GroupNames {
    let of = |list: &[usize]| list.iter().map(|&a| schema.attributes[a].name.clone()).collect::<Vec<_>>();
    let mut all = [&shape.quasi[..], &shape.sensitive, &shape.insensitive].concat();
    all.sort_unstable();
    GroupNames { all: of(&all), quasi: of(&shape.quasi), sensitive: of(&shape.sensitive) }
}

#[allow(clippy::unnecessary_wraps, reason = "a batch also has tombstones")]
pub fn record(json: impl Into<String>) -> Option<Vec<u8>> {
    Some(json.into().into_bytes())
}

//! The steps of a batch (`docs/exactly-once.md`): gathered, treated, verified, prepared, intended, delivered, applied.
//!
//! Each step takes what the one before it gives, by value: what has not been verified cannot be intended, what has not been
//! intended cannot be delivered, and what has not been delivered is not remembered.

use super::audit::AuditedBatch;
use super::changelog::Changes;
use super::clock::Moment;
use super::contribution_limit::needs;
use super::core::{BatchError, Coding, Engine};
use super::encode_ahead::{Encoder, SetOnDrop, Turn, Unseen, Upcoming};
use super::gather::{Gathered, Order, Settling};
use super::held::{Remaining, kept, kept_waiting};
use super::series_exchange::Share;
use super::series_stream::{EncodedInput, SeriesStep, SeriesStream, SourceEnd, StepError};
use super::treatment::VerifiedBatch;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::{Intent, KeptRow, OffsetRange, Progress};
use crate::daemon::state::store::Store;
use crate::faults::crash_point;
use crate::io::input::InputBatch;
use crate::release::sink::{AuditLine, DeliveryError, Envelope, SeriesLineage, Sink};
use crate::release::verified::Verified;
use crate::telemetry::{BatchReport, LimitReached, SuppressionReason};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use throng_core::ledger::SHARDS;
use throng_core::ledger::per_subject::Ledger;
use throng_core::values::raw::Coordinate;
use throng_core::values::table::Batch;

/// What a batch changes once it has left.
struct Effects {
    verified: Verified,
    /// What goes on waiting, by row.
    remaining: BTreeMap<u32, Remaining>,
    report: BatchReport,
}

/// A batch with all that will be remembered of it, in memory.
struct Prepared<'a> {
    gathered: Gathered<'a>,
    effects: Effects,
    intent: Intent,
    audit: Option<AuditLine>,
    /// Records that contribute to no bucket, by position of the series.
    dropped: Vec<(Coordinate, usize)>,
    /// What its records contribute to series of another instance.
    contributions: Vec<Vec<u8>>,
    /// What it writes to the changelog.
    changes: Changes,
    /// Waiting rows of people who are erased with it.
    erased: HashSet<Coordinate>,
}

/// A batch whose intent is on the disk.
struct Intended<'b, 'a>(&'b Prepared<'a>);

/// A batch that has left.
struct Delivered<'a> {
    prepared: Prepared<'a>,
    bytes_out: u64,
}

/// Whether more records can come after the batch of an order.
fn source_end(order: &Order<'_>) -> SourceEnd {
    match order.settling {
        _ if !order.is_all() => SourceEnd::No,
        Settling::EndOfStream => SourceEnd::Ended,
        _ => SourceEnd::Stopped,
    }
}

impl Engine {
    /// Treats, verifies and delivers a batch, and remembers it.
    ///
    /// `retry` is the intent of the attempt before, when there was one: its clock and its ranges are kept, so that the attempt
    /// reproduces the same bytes; unless a crowd has lost tenure since, and the batch is treated again. What is `upcoming` is encoded
    /// while the batch leaves.
    ///
    /// # Errors
    /// See [`BatchError`]; nothing has left and nothing is remembered then.
    pub fn process(
        &mut self,
        turn: &mut Turn,
        settling: Settling,
        retry: Option<&Intent>,
        sink: &mut dyn Sink,
        now: impl Into<Moment>,
        upcoming: &mut dyn Upcoming,
    ) -> Result<(), BatchError> {
        // A batch that is repeated takes the same waiting rows along, whatever has come to wait since.
        let settled: Option<HashSet<Coordinate>> =
            retry.map(|intent| intent.settled.iter().map(|(_, at)| *at).collect());
        // Contributions bring nobody for whom a row waits.
        let has_records = turn.input.records() > 0;
        let of = |at| settled.as_ref().map_or(has_records, |settled| settled.contains(&at));
        self.process_part(turn, of, &Order::new(settling, retry, now.into()), sink, upcoming)
    }

    /// Settles the held records of some partitions, and only those. What waits for a delay is settled where the
    /// records' time here is over (end, shutdown), and waits on where the stream is only quiet.
    pub fn settle(
        &mut self,
        of: impl Fn(Coordinate) -> bool,
        settling: Settling,
        retry: Option<&Intent>,
        sink: &mut dyn Sink,
        now: impl Into<Moment>,
    ) -> Result<(), BatchError> {
        let order = Order::new(settling, retry, now.into());
        let (_, age_ms) = order.clock_and_age(&self.durable.progress);
        let closes_series = retry.is_some_and(|intent| intent.series_place.is_some())
            || self
                .series
                .as_ref()
                .is_some_and(|series| series.closes_all(source_end(&order)) && series.has_open_buckets());
        if !closes_series && self.held.joining(&of, age_ms, order.is_all()).is_empty() {
            return Ok(());
        }
        let input = InputBatch::new(self.schema.attributes.len(), 0);
        self.process_part(&mut Box::new(input).into(), of, &order, sink, &mut Unseen)
    }

    /// A batch without a record.
    pub(super) fn process_nothing(&mut self, order: &Order<'_>, sink: &mut dyn Sink) -> Result<(), BatchError> {
        let input = InputBatch::new(self.schema.attributes.len(), 0);
        self.process_part(&mut Box::new(input).into(), |_| false, order, sink, &mut Unseen)
    }

    /// Takes a batch through all its steps. Held records of the places that `of` names come along.
    fn process_part(
        &mut self,
        turn: &mut Turn,
        of: impl Fn(Coordinate) -> bool,
        order: &Order<'_>,
        sink: &mut dyn Sink,
        upcoming: &mut dyn Upcoming,
    ) -> Result<(), BatchError> {
        let gathered = self.gather(turn, &of, order)?;
        let verified = self.treat_and_verify(gathered, order)?;
        let series = self.series_of(&verified.gathered, order)?;
        let mut prepared = self.prepare(verified, series, order);
        prepared.changes = self.changes_of(&prepared.gathered, &prepared.intent, order);
        let delivered = self.deliver(prepared, sink, upcoming)?;
        self.apply(delivered);
        Ok(())
    }

    /// What a batch contributes to series, and the rows of the buckets that it closes. Nothing where there are no series, or while entries
    /// of people are about to go.
    fn series_of(&mut self, gathered: &Gathered<'_>, order: &Order<'_>) -> Result<SeriesStep, BatchError> {
        let (has_cohorts, position) = (self.has_series_state(), self.series_position());
        let Some(series) = self.series.as_mut().filter(|_| order.erased.is_empty()) else {
            return Ok(SeriesStep::default());
        };
        let Coding { books, numbering, .. } = &self.coding;
        let batch = EncodedInput { input: gathered.input, rows: &gathered.fresh, books, numbering: *numbering };
        let erased = &self.durable.erased;
        let share = Share { has_cohorts, age_ms: gathered.age_ms, position, repeated: order.retry, erased };
        series.step(batch, gathered.clock_ms, source_end(order), &share).map_err(|error| match error {
            StepError::Refused(refusal) => refusal.into(),
            StepError::OtherSeries(_) => BatchError::Fatal(error.to_string()),
        })
    }

    /// Closes the buckets of series that wait for nothing but a batch.
    ///
    /// # Errors
    /// See [`BatchError`]; nothing has left and nothing is remembered then.
    pub fn close_series(&mut self, sink: &mut dyn Sink, now: impl Into<Moment>) -> Result<(), BatchError> {
        if !self.has_series_state()
            || !self.series.as_ref().is_some_and(|series| series.has_due(self.series_position()))
        {
            return Ok(());
        }
        self.process_nothing(&Order::new(Settling::Quiet, None, now.into()), sink)
    }

    /// Makes up all that will be remembered of the batch.
    fn prepare<'a>(&mut self, verified: VerifiedBatch<'a>, series: SeriesStep, order: &Order<'_>) -> Prepared<'a> {
        let VerifiedBatch { mut gathered, mut proposal, verified } = verified;
        let SeriesStep { published, dropped: uncounted, contributions, idle, sources } = series;
        let (rows, changes) = published.unzip();
        let mut turnout = std::mem::take(&mut gathered.turnout);
        let monitor = self.settings.monitor;
        let remaining = self.limiter(&gathered).remaining(&mut turnout, &mut proposal, &verified, monitor);
        gathered.turnout = turnout;
        let mut report = self.account(&gathered, &proposal, &remaining, &verified, order.settling);
        let (erased, dropped) = self.erased_rows(order);
        report.dropped += dropped;
        report.held -= dropped;
        // The last moment: the pairs of the batch before have had all this time.
        let start = Instant::now();
        self.settle_model();
        self.measure_model(&mut report);
        gathered.seconds.learn = start.elapsed().as_secs_f64();
        let mut effects = Effects { verified, remaining, report };
        let mut intent = self.intent(&gathered, order, &effects);
        intent.series_place = changes.as_ref().and(self.series.as_ref()).and_then(SeriesStream::place);
        intent.series = changes;
        (intent.idle, intent.sources) = (idle.into_iter().collect(), sources);
        let audit = self.auditor.as_ref().map(|auditor| {
            auditor.line(&AuditedBatch {
                sequence: intent.after.sequence,
                clock_ms: intent.after.clock_ms,
                ranges: &intent.ranges,
                verified: &effects.verified,
                report: &effects.report,
                fragments: (!monitor).then_some(intent.after.totals),
                unreadable: intent.after.totals.dead_lettered,
                series: self
                    .series
                    .as_ref()
                    .zip(intent.series.as_ref())
                    .map(|(series, changes)| series.published_after(changes)),
                groups: self.in_force.plan.groups.iter().map(|group| group.name.as_str()).collect(),
            })
        });
        if let Some(rows) = rows {
            effects.verified.attach(rows);
        }
        let changes = Changes::default();
        Prepared { gathered, effects, intent, audit, dropped: uncounted, contributions, changes, erased }
    }

    /// What must be on the disk before anything leaves.
    fn intent(&mut self, gathered: &Gathered<'_>, order: &Order<'_>, effects: &Effects) -> Intent {
        let Effects { verified, remaining, report } = effects;
        let Gathered { input, batch, fresh, ordinals, planned, rejected, .. } = gathered;
        let (books, in_force) = (&self.coding.books, &self.in_force);
        let keep = |(&row, wait): (&u32, &Remaining)| {
            let needed = needs(&in_force.plan, &in_force.turn_names, books.len(), wait);
            let ordinal = ordinals[row as usize];
            kept_waiting(batch, row as usize, ordinal, wait, &needed, books, &self.held.joined)
        };
        let held: Vec<KeptRow> = remaining.iter().map(keep).collect();
        let range = |(&(topic, partition), &(from, to))| OffsetRange { topic, partition, from, to };
        let plan = planned.plan.clone();
        let mut met = self.learning.met.clone();
        met.add(fresh, rejected, input.long_rows);
        met.monitor(report.suppressed.get(SuppressionReason::Monitoring));
        Intent {
            attempt: uuid::Uuid::new_v4().as_u64_pair().0,
            ranges: input.ranges.iter().map(range).collect(),
            last: gathered.last,
            all: order.is_all(),
            after: self.progress_after(gathered, order, report),
            ledger: (!self.settings.monitor).then(|| verified.delta().clone()),
            sampled: self.sampled(fresh),
            settled: gathered
                .taken
                .iter()
                .map(|&at| (self.held.ordinals[at], self.held.batch.coordinates[at]))
                .collect(),
            held,
            baseline: plan.is_some().then(|| self.learning.baseline.clone()),
            references: if plan.is_some() { self.in_force.references.clone() } else { Vec::new() },
            plan,
            evidence: self.take_evidence(),
            met: Some(met),
            profiles: self.durable.store.profiles_version(),
            series: None,
            series_place: None,
            idle: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// The rows of `fresh` that the planner's sample takes, as the state keeps them.
    fn sampled(&self, fresh: &Batch) -> Vec<KeptRow> {
        let first = self.durable.progress.rows;
        (0..fresh.rows())
            .filter(|row| (first + *row as u64).is_multiple_of(self.learning.sample.stride()))
            .map(|row| kept(fresh, row, first + row as u64, &self.coding.books))
            .collect()
    }

    /// How far the stream has come when this batch has left.
    fn progress_after(&self, gathered: &Gathered<'_>, order: &Order<'_>, report: &BatchReport) -> Progress {
        let Gathered { input, fresh, planned, .. } = gathered;
        let mut after = self.durable.progress.clone();
        after.sequence += 1;
        (after.clock_ms, after.age_ms, after.anchor) = (gathered.clock_ms, gathered.age_ms, order.now.anchor);
        after.totals.add(report);
        after.rows += fresh.rows() as u64;
        after.last_rows = fresh.rows() as u64;
        after.batches += u64::from(fresh.rows() > 0);
        after.stride = self.learning.sample.stride();
        after.positions.extend(input.ranges.iter().map(|(place, range)| (*place, range.1)));
        after.left_out = self.learning.model.counted().left_out_pairs();
        after.derived = self.learning.model.derived();
        after.asked = self.planning.search.as_ref().map(|search| search.asked);
        if planned.ended {
            after.planned_ms = gathered.age_ms;
            after.planned_rows = self.durable.progress.rows;
        }
        if gathered.is_learned {
            after.planned_rows = after.rows;
        }
        if let Some(plan) = &planned.plan {
            after.plan_version = plan.version;
        }
        after
    }

    /// Writes the intent down, then lets the batch leave. What is `upcoming` is encoded meanwhile.
    fn deliver<'a>(
        &mut self,
        mut prepared: Prepared<'a>,
        sink: &mut dyn Sink,
        upcoming: &mut dyn Upcoming,
    ) -> Result<Delivered<'a>, BatchError> {
        let start = Instant::now();
        let nothing = self.settings.monitor.then(|| {
            let mut nothing = Verified::nothing(self.in_force.plan.groups.len());
            nothing.attach(prepared.effects.verified.take_series());
            nothing
        });
        let bytes_before = sink.bytes_out();
        let mut encoder = Encoder::new(&self.schema, &self.settings, &mut self.coding);
        let untruthful = self.untruthful.as_deref();
        let (store, ledger, over) = (&mut self.durable.store, &self.ledger, AtomicBool::new(false));
        let series = self.series.as_ref();
        let delivered = std::thread::scope(|scope| {
            scope.spawn(|| encoder.look_ahead(upcoming, &over));
            let _over = SetOnDrop(&over);
            let intended = prepared.intend(store, ledger)?;
            crash_point("intent-flushed");
            Ok::<_, BatchError>(intended.deliver(sink, nothing.as_ref(), untruthful, series))
        })?;
        match delivered {
            Ok(()) => {
                crash_point("delivered");
                // What has left is drawn on the status page.
                if let Some(mut nothing) = nothing {
                    prepared.effects.verified.attach(nothing.take_series());
                }
                prepared.gathered.seconds.commit = start.elapsed().as_secs_f64();
                Ok(Delivered { prepared, bytes_out: sink.bytes_out() - bytes_before })
            }
            Err(DeliveryError::Aborted(why)) => Err(BatchError::Aborted { why, intent: Box::new(prepared.intent) }),
            Err(DeliveryError::Fatal(why)) => Err(BatchError::Fatal(why)),
        }
    }

    /// Remembers a batch that has left, and reports it: nothing here may fail.
    fn apply(&mut self, delivered: Delivered<'_>) {
        let start = Instant::now();
        let Delivered { prepared: Prepared { gathered, effects, intent, erased, .. }, bytes_out } = delivered;
        let Effects { verified, remaining, mut report } = effects;
        let Gathered { input, fresh, batch, ordinals, taken, rejected, turnout, mut seconds, .. } = gathered;
        let (adopted, is_learned) = (gathered.planned.plan.is_some(), gathered.is_learned);
        self.ledger.apply(verified.delta());
        if let (Some(series), Some(changes)) = (&mut self.series, &intent.series) {
            series.apply(changes.clone());
            series.published().emit(&self.telemetry);
            self.telemetry.draw(verified.series().means(), verified.series().undrawn());
        }
        self.tell_of_full_supporters(batch.rows());
        self.ledger.expire(usize::try_from(intent.after.sequence).unwrap_or(0) % SHARDS, gathered.age_ms);
        self.meet(intent.met.as_ref());
        if !is_learned {
            self.learning.sample.add(&fresh, self.durable.progress.rows);
        }
        self.durable.progress = intent.after.clone();
        let (plan, names, width) = (&self.in_force.plan, &self.in_force.turn_names, self.schema.attributes.len());
        self.held.advance(&taken, &batch, &ordinals, remaining, |wait| needs(plan, names, width, wait));
        if !erased.is_empty() {
            self.held.remove_where(|at| erased.contains(&at));
        }
        if let Some(limit) = turnout.full {
            LimitReached { limit }.emit(&self.telemetry);
        }
        self.durable.store.left(intent);
        self.take_updates_with_batch();
        self.forget_sample();
        seconds.commit += start.elapsed().as_secs_f64();
        let start = Instant::now();
        if !is_learned {
            self.learn(&fresh);
        }
        seconds.learn += start.elapsed().as_secs_f64();
        if adopted {
            self.begin_recheck();
        }
        // The rows that have left the window.
        let window = self.learning.model.window().rows() as u64;
        self.durable.store.forget_rows_before(self.durable.progress.rows - window);
        crash_point("applied");
        (report.altered_cells, report.unjoined_records) = (gathered.altered_cells, gathered.unjoined);
        (report.bytes_out, report.uncovered_cells, report.seconds) = (bytes_out, gathered.uncovered_cells, seconds);
        self.keep_within();
        self.report(report, input.oldest_ms);
        self.tell_of_misfits(&rejected);
        self.doubt();
    }

    /// Forgets the rows of the sample that neither it nor a search under way needs.
    fn forget_sample(&mut self) {
        let sample = &self.learning.sample;
        if sample.rows() > 0 {
            let oldest = self.planning.search.as_ref().and_then(|search| search.first_row).unwrap_or(u64::MAX);
            self.durable.store.forget_sample_before(sample.ordinal(0).min(oldest));
        }
    }
}

impl<'a> Prepared<'a> {
    /// Writes the intent down.
    fn intend(&self, store: &mut Store, ledger: &Ledger) -> Result<Intended<'_, 'a>, StateError> {
        store.intend(&self.intent, ledger)?;
        Ok(Intended(self))
    }
}

impl Intended<'_, '_> {
    /// Lets the batch leave; where the risk is only watched, `nothing` of it.
    fn deliver(
        &self,
        sink: &mut dyn Sink,
        nothing: Option<&Verified>,
        untruthful: Option<&str>,
        series: Option<&SeriesStream>,
    ) -> Result<(), DeliveryError> {
        let Prepared {
            gathered,
            effects: Effects { verified, .. },
            intent,
            audit,
            dropped,
            contributions,
            changes,
            ..
        } = self.0;
        let envelope = Envelope {
            sequence: intent.after.sequence,
            attempt: intent.attempt,
            clock_ms: gathered.clock_ms,
            positions: &changes.positions,
            changelog: &changes.records,
            contributions,
            rejected: &gathered.rejected,
            subjects: &gathered.batch.subjects,
            coordinates: &gathered.batch.coordinates,
            untruthful,
            audit: audit.as_ref(),
            series: series.zip(intent.series.as_ref()).map(|(series, changes)| SeriesLineage {
                terms: series.terms(),
                before: series.state(),
                changes,
                dropped,
            }),
        };
        sink.deliver(nothing.unwrap_or(verified), &envelope)
    }
}

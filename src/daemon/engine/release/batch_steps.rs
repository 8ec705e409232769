//! Steps of a batch (`docs/internals/exactly-once.md`): gather, treat, verify, prepare, intend, deliver, apply. Each
//! step consumes the previous result.

use super::series_exchange::SeriesStepContext;
use super::series_stream::{SeriesBatchInput, SeriesStep, SeriesStream, SourceEnd, StepError};
use super::treatment::{BatchTreatment, TreatedBatch, VerifiedBatch};
use crate::daemon::engine::core::{BatchError, DurableState, Engine, ValueEncoding};
use crate::daemon::engine::durable::changelog::ChangelogBatch;
use crate::daemon::engine::gather::contribution_limit::needed_attributes;
use crate::daemon::engine::gather::encode_ahead::{BatchEncoder, NextBatchSource, NoNextBatch, QueuedBatch, SetOnDrop};
use crate::daemon::engine::gather::gathered_batch::{BatchInstruction, GatheredBatch};
use crate::daemon::engine::gather::held_records::{PendingRow, stored_pending_row, stored_row};
use crate::daemon::engine::report::audit::AuditedBatch;
use crate::daemon::engine::report::batch_report;
use crate::daemon::state::clock::BatchTime;
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::{BatchIntent, Flush, OffsetRange, StoredRow, StreamProgress};
use crate::daemon::state::store::StateStore;
use crate::telemetry::{BatchReport, LimitReached, SuppressionReason};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use throng_core::faults::crash_point;
use throng_core::ledger::SHARDS;
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::stream::input_batch::InputBatch;
use throng_core::stream::release_sink::{AuditLine, BatchEnvelope, BatchSink, DeliveryError, SeriesLineage};
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::raw_batch::RecordPosition;

struct BatchEffects {
    verified: ReleasableBatch,
    /// Held parts, by row.
    remaining: BTreeMap<u32, PendingRow>,
    report: BatchReport,
}

struct PreparedBatch<'a> {
    gathered: GatheredBatch<'a>,
    effects: BatchEffects,
    intent: BatchIntent,
    audit: Option<AuditLine>,
    dropped: Vec<(RecordPosition, usize)>,
    contributions: Vec<Vec<u8>>,
    changes: ChangelogBatch,
    erased: HashSet<RecordPosition>,
}

struct IntendedBatch<'b, 'a>(&'b PreparedBatch<'a>);

struct DeliveredBatch<'a> {
    prepared: PreparedBatch<'a>,
    bytes_out: u64,
}

fn source_end(order: &BatchInstruction<'_>) -> SourceEnd {
    match order.flush {
        _ if !order.flushes_delayed() => SourceEnd::Continues,
        Flush::EndOfStream => SourceEnd::Ended,
        _ => SourceEnd::Stopped,
    }
}

impl Engine {
    /// Treats, verifies, delivers and applies a batch, while the `upcoming` batch is encoded. A retry reproduces the
    /// same bytes, unless a class has lost tenure.
    ///
    /// # Errors
    /// See [`BatchError`]; nothing is released and no state changes.
    pub fn process(
        &mut self,
        turn: &mut QueuedBatch,
        flush: Flush,
        retry: Option<&BatchIntent>,
        sink: &mut dyn BatchSink,
        now: impl Into<BatchTime>,
        upcoming: &mut dyn NextBatchSource,
    ) -> Result<(), BatchError> {
        let settled: Option<HashSet<RecordPosition>> =
            retry.map(|intent| intent.settled.iter().map(|(_, at)| *at).collect());
        // Contributions alone complete no classes.
        let has_records = turn.input.records() > 0;
        let of = |at| settled.as_ref().map_or(has_records, |settled| settled.contains(&at));
        self.run_steps(turn, of, &BatchInstruction::new(flush, retry, now.into()), sink, upcoming)
    }

    /// Settles held records of the matching partitions; delayed rows only at the end and at shutdown.
    pub fn settle(
        &mut self,
        of: impl Fn(RecordPosition) -> bool,
        flush: Flush,
        retry: Option<&BatchIntent>,
        sink: &mut dyn BatchSink,
        now: impl Into<BatchTime>,
    ) -> Result<(), BatchError> {
        let order = BatchInstruction::new(flush, retry, now.into());
        let (_, age_ms) = order.clock_and_age(&self.durable.progress);
        let closes_series = retry.is_some_and(|intent| intent.series_place.is_some())
            || self
                .series
                .as_ref()
                .is_some_and(|series| series.closes_all(source_end(&order)) && series.has_open_buckets());
        if !closes_series && self.held.due_rows(&of, age_ms, order.flushes_delayed()).is_empty() {
            return Ok(());
        }
        let input = InputBatch::new(self.schema.attributes.len(), 0);
        self.run_steps(&mut Box::new(input).into(), of, &order, sink, &mut NoNextBatch)
    }

    pub(crate) fn process_empty(
        &mut self,
        order: &BatchInstruction<'_>,
        sink: &mut dyn BatchSink,
    ) -> Result<(), BatchError> {
        let input = InputBatch::new(self.schema.attributes.len(), 0);
        self.run_steps(&mut Box::new(input).into(), |_| false, order, sink, &mut NoNextBatch)
    }

    fn run_steps(
        &mut self,
        turn: &mut QueuedBatch,
        of: impl Fn(RecordPosition) -> bool,
        order: &BatchInstruction<'_>,
        sink: &mut dyn BatchSink,
        upcoming: &mut dyn NextBatchSource,
    ) -> Result<(), BatchError> {
        let gathered = self.gather(turn, &of, order)?;
        let verified = self.treat_and_verify(gathered, order)?;
        let series = self.series_step(&verified.gathered, order)?;
        let mut prepared = self.prepare(verified, series, order);
        prepared.changes = self.changelog_entries(&prepared.gathered, &prepared.intent, order);
        let delivered = self.deliver(prepared, sink, upcoming)?;
        self.apply(delivered);
        Ok(())
    }

    fn treat_and_verify<'a>(
        &mut self,
        gathered: GatheredBatch<'a>,
        order: &BatchInstruction<'_>,
    ) -> Result<VerifiedBatch<'a>, BatchError> {
        let (fresh, first) = (Arc::clone(&gathered.fresh), self.durable.progress.rows);
        let sequence = self.durable.progress.sequence + 1;
        let DurableState { store, packer, .. } = &mut self.durable;
        let (attributes, books) = (self.learning.model.stored_attributes(), self.coding.books.as_slice());
        let policy = &self.settings.policy;
        let treatment = BatchTreatment { in_force: &self.in_force, books, ledger: &self.ledger, policy, sequence };
        std::thread::scope(|scope| {
            let laid = scope.spawn(|| {
                let rows = (fresh.rows() > 0).then(|| packer.pack(&fresh, first, attributes, books));
                store.write_rows(sequence, rows.as_ref())
            });
            let mut treated = treatment.treat(gathered);
            let is_late = order.retry.is_some() && order.now.age_ms > treated.gathered.age_ms;
            if is_late && treatment.verify(&mut treated, order.now.age_ms, true).is_err() {
                // Class sizes have priority over identical bytes.
                treated.gathered.age_ms = order.now.age_ms;
                treated.gathered.clock_ms = treated.gathered.clock_ms.max(order.now.clock_ms);
                treated = treatment.treat(treated.gathered);
            }
            let start = Instant::now();
            let age_ms = treated.gathered.age_ms;
            let verified = treatment.verify(&mut treated, age_ms, false)?;
            let TreatedBatch { mut gathered, proposal } = treated;
            gathered.seconds.verify = start.elapsed().as_secs_f64();
            laid.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(VerifiedBatch { gathered, proposal, verified })
        })
    }

    /// Empty without series, and for erasures.
    fn series_step(
        &mut self,
        gathered: &GatheredBatch<'_>,
        order: &BatchInstruction<'_>,
    ) -> Result<SeriesStep, BatchError> {
        let (has_cohorts, position) = (self.has_series_state(), self.series_position());
        let Some(series) = self.series.as_mut().filter(|_| order.erased.is_empty()) else {
            return Ok(SeriesStep::default());
        };
        let ValueEncoding { books, numbering, .. } = &self.coding;
        let batch = SeriesBatchInput { input: gathered.input, rows: &gathered.fresh, books, numbering: *numbering };
        let erased = &self.durable.erased;
        let share = SeriesStepContext { has_cohorts, age_ms: gathered.age_ms, position, repeated: order.retry, erased };
        series.step(batch, gathered.clock_ms, source_end(order), &share).map_err(|error| match error {
            StepError::Refused(refusal) => refusal.into(),
            StepError::OtherSeries(_) => BatchError::Fatal(error.to_string()),
        })
    }

    /// Closes due buckets of series.
    ///
    /// # Errors
    /// See [`BatchError`]; nothing is released and no state changes.
    pub fn close_series(&mut self, sink: &mut dyn BatchSink, now: impl Into<BatchTime>) -> Result<(), BatchError> {
        if !self.has_series_state()
            || !self.series.as_ref().is_some_and(|series| series.has_due(self.series_position()))
        {
            return Ok(());
        }
        self.process_empty(&BatchInstruction::new(Flush::Quiet, None, now.into()), sink)
    }

    fn prepare<'a>(
        &mut self,
        verified: VerifiedBatch<'a>,
        series: SeriesStep,
        order: &BatchInstruction<'_>,
    ) -> PreparedBatch<'a> {
        let VerifiedBatch { mut gathered, mut proposal, verified } = verified;
        let SeriesStep { published, dropped: uncounted, contributions, idle, sources } = series;
        let (rows, changes) = published.unzip();
        let mut turnout = std::mem::take(&mut gathered.turnout);
        let monitor = self.settings.monitor;
        let remaining = self.limiter(&gathered).pending_rows(&mut turnout, &mut proposal, &verified, monitor);
        gathered.turnout = turnout;
        let mut report = batch_report::build_report(self, &gathered, &proposal, &remaining, &verified, order.flush);
        let (erased, dropped) = self.erased_rows(order);
        report.dropped += dropped;
        report.held -= dropped;
        let start = Instant::now();
        self.learning.wait_for_model(&self.telemetry);
        batch_report::measure_model(self, &mut report);
        gathered.seconds.learn = start.elapsed().as_secs_f64();
        let mut effects = BatchEffects { verified, remaining, report };
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
        let changes = ChangelogBatch::default();
        PreparedBatch { gathered, effects, intent, audit, dropped: uncounted, contributions, changes, erased }
    }

    fn intent(
        &mut self,
        gathered: &GatheredBatch<'_>,
        order: &BatchInstruction<'_>,
        effects: &BatchEffects,
    ) -> BatchIntent {
        let BatchEffects { verified, remaining, report } = effects;
        let GatheredBatch { input, batch, fresh, ordinals, planned, rejected, .. } = gathered;
        let (books, in_force) = (&self.coding.books, &self.in_force);
        let keep = |(&row, wait): (&u32, &PendingRow)| {
            let needed = needed_attributes(&in_force.plan, &in_force.group_keys, books.len(), wait);
            let ordinal = ordinals[row as usize];
            stored_pending_row(batch, row as usize, ordinal, wait, &needed, books, &self.held.joined)
        };
        let held: Vec<StoredRow> = remaining.iter().map(keep).collect();
        let range = |(&(topic, partition), &(from, to))| OffsetRange { topic, partition, from, to };
        let plan = planned.plan.clone();
        let mut met = self.learning.met.clone();
        met.add(fresh, rejected, input.long_rows);
        met.monitor(report.suppressed.get(SuppressionReason::Monitoring));
        BatchIntent {
            attempt: uuid::Uuid::new_v4().as_u64_pair().0,
            ranges: input.ranges.iter().map(range).collect(),
            flush: gathered.flush,
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

    fn sampled(&self, fresh: &CodeBatch) -> Vec<StoredRow> {
        let first = self.durable.progress.rows;
        (0..fresh.rows())
            .filter(|row| (first + *row as u64).is_multiple_of(self.learning.sample.stride()))
            .map(|row| stored_row(fresh, row, first + row as u64, &self.coding.books))
            .collect()
    }

    fn progress_after(
        &self,
        gathered: &GatheredBatch<'_>,
        order: &BatchInstruction<'_>,
        report: &BatchReport,
    ) -> StreamProgress {
        let GatheredBatch { input, fresh, planned, .. } = gathered;
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

    fn deliver<'a>(
        &mut self,
        mut prepared: PreparedBatch<'a>,
        sink: &mut dyn BatchSink,
        upcoming: &mut dyn NextBatchSource,
    ) -> Result<DeliveredBatch<'a>, BatchError> {
        let start = Instant::now();
        let nothing = self.settings.monitor.then(|| {
            let mut nothing = ReleasableBatch::without_lines(self.in_force.plan.groups.len());
            nothing.attach(prepared.effects.verified.take_series());
            nothing
        });
        let bytes_before = sink.bytes_out();
        let mut encoder = BatchEncoder::new(&self.schema, &self.settings, &mut self.coding);
        let untruthful = self.untruthful.as_deref();
        let (store, ledger, over) = (&mut self.durable.store, &self.ledger, AtomicBool::new(false));
        let series = self.series.as_ref();
        let delivered = std::thread::scope(|scope| {
            scope.spawn(|| encoder.encode_next(upcoming, &over));
            let _over = SetOnDrop(&over);
            let intended = prepared.intend(store, ledger)?;
            crash_point("intent-flushed");
            Ok::<_, BatchError>(intended.deliver(sink, nothing.as_ref(), untruthful, series))
        })?;
        match delivered {
            Ok(()) => {
                crash_point("delivered");
                if let Some(mut nothing) = nothing {
                    prepared.effects.verified.attach(nothing.take_series());
                }
                prepared.gathered.seconds.commit = start.elapsed().as_secs_f64();
                Ok(DeliveredBatch { prepared, bytes_out: sink.bytes_out() - bytes_before })
            }
            Err(DeliveryError::Aborted(why)) => Err(BatchError::Aborted { why, intent: Box::new(prepared.intent) }),
            Err(DeliveryError::Fatal(why)) => Err(BatchError::Fatal(why)),
        }
    }

    fn apply(&mut self, delivered: DeliveredBatch<'_>) {
        let start = Instant::now();
        let DeliveredBatch { prepared: PreparedBatch { gathered, effects, intent, erased, .. }, bytes_out } = delivered;
        let BatchEffects { verified, remaining, mut report } = effects;
        let GatheredBatch { input, fresh, batch, ordinals, taken, rejected, turnout, mut seconds, .. } = gathered;
        let (adopted, is_learned) = (gathered.planned.plan.is_some(), gathered.is_learned);
        self.ledger.apply(verified.delta());
        if let (Some(series), Some(changes)) = (&mut self.series, &intent.series) {
            series.apply(changes.clone());
            series.published().emit(&self.telemetry);
            self.telemetry.add_to_charts(verified.series().means(), verified.series().undrawn());
            self.telemetry.add_signals_with_rows(verified.series().signals());
        }
        batch_report::report_full_supporters(self, batch.rows());
        self.ledger.expire(usize::try_from(intent.after.sequence).unwrap_or(0) % SHARDS, gathered.age_ms);
        self.learning.update_findings(intent.met.as_ref(), &self.schema);
        if !is_learned {
            self.learning.sample.add(&fresh, self.durable.progress.rows);
        }
        self.durable.progress = intent.after.clone();
        self.origin.note_committed(&self.durable.progress.positions);
        let (plan, names, width) = (&self.in_force.plan, &self.in_force.group_keys, self.schema.attributes.len());
        self.held.advance(&taken, &batch, &ordinals, remaining, |wait| needed_attributes(plan, names, width, wait));
        if !erased.is_empty() {
            self.held.remove_where(|at| erased.contains(&at));
        }
        if let Some(limit) = turnout.reached_limit {
            LimitReached { limit }.emit(&self.telemetry);
        }
        self.durable.store.mark_released(intent);
        self.receive_updates_with_batch();
        self.prune_sample();
        seconds.commit += start.elapsed().as_secs_f64();
        let start = Instant::now();
        if !is_learned {
            self.learning.learn(&fresh, &self.coding.books, &self.telemetry);
            self.send_to_recheck(&fresh);
        }
        seconds.learn += start.elapsed().as_secs_f64();
        if adopted {
            self.begin_recheck();
        }
        let window = self.learning.model.window().rows() as u64;
        self.durable.store.prune_rows_before(self.durable.progress.rows - window);
        crash_point("applied");
        (report.altered_cells, report.unjoined_records) = (gathered.altered_cells, gathered.unjoined);
        (report.bytes_out, report.uncovered_cells, report.seconds) = (bytes_out, gathered.uncovered_cells, seconds);
        self.compaction().limit_memory();
        batch_report::emit_report(self, report, input.oldest_ms);
        batch_report::report_wrong_types(self, &rejected);
        batch_report::report_unprotected_values(self);
    }

    fn prune_sample(&mut self) {
        let sample = &self.learning.sample;
        if sample.rows() > 0 {
            let oldest = self.planning.search.as_ref().and_then(|search| search.first_row).unwrap_or(u64::MAX);
            self.durable.store.prune_sample_before(sample.ordinal(0).min(oldest));
        }
    }
}

impl<'a> PreparedBatch<'a> {
    fn intend(&self, store: &mut StateStore, ledger: &SubjectLedger) -> Result<IntendedBatch<'_, 'a>, StateError> {
        store.write_intent(&self.intent, ledger)?;
        Ok(IntendedBatch(self))
    }
}

impl IntendedBatch<'_, '_> {
    /// `without_lines` is delivered in monitoring mode.
    fn deliver(
        &self,
        sink: &mut dyn BatchSink,
        nothing: Option<&ReleasableBatch>,
        untruthful: Option<&str>,
        series: Option<&SeriesStream>,
    ) -> Result<(), DeliveryError> {
        let PreparedBatch {
            gathered,
            effects: BatchEffects { verified, .. },
            intent,
            audit,
            dropped,
            contributions,
            changes,
            ..
        } = self.0;
        let envelope = BatchEnvelope {
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

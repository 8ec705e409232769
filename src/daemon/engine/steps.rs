//! The steps of a batch (`docs/exactly-once.md`): gathered, treated, verified, prepared, intended, delivered, applied.
//!
//! Each step takes what the one before it gives, by value: what has not been verified cannot be intended, what has not been
//! intended cannot be delivered, and what has not been delivered is not remembered.

use super::ahead::{Encoder, SetOnDrop, Turn, Upcoming};
use super::audit::AuditedBatch;
use super::batch_error::BatchError;
use super::clock::Moment;
use super::fields::{Durable, Engine, InForce};
use super::gathered::{Before, Gathered, Planned};
use super::held::{Remaining, kept_waiting};
use super::input::ranges_of;
use super::settling::{Settling, is_all};
use super::turnout;
use super::unjudged::judged;
use crate::anonymity::treatment::mask::Mask;
use crate::anonymity::treatment::proposal::{Proposal, ProposedGroup};
use crate::anonymity::treatment::treat::{Policy, Records, Rules, treat};
use crate::daemon::state::directory::StateError;
use crate::daemon::state::records::{Intent, KeptRow};
use crate::daemon::state::store::Store;
use crate::faults::crash_point;
use crate::io::input::{Closed, InputBatch};
use crate::ledger::SHARDS;
use crate::ledger::per_subject::Ledger;
use crate::records::codebook::Codebook;
use crate::records::raw::Coordinate;
use crate::release::given::Given;
use crate::release::sink::{AuditLine, DeliveryError, Envelope, Positions, Rejected, Sink};
use crate::release::verified::Verified;
use crate::release::verify::{Refusal, verify};
use crate::telemetry::{BatchReport, LimitReached, StageSeconds};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// How a batch is to be treated, and when.
pub(super) struct Order<'a> {
    pub settling: Settling,
    /// The intent of the attempt before, when there was one.
    pub retry: Option<&'a Intent>,
    pub now: Moment,
}

impl Order<'_> {
    /// Whether what waits for a delay settles as well.
    fn is_all(&self) -> bool {
        is_all(self.settling, self.retry)
    }
}

/// A batch with a proposal of what may leave of it at `gathered.age_ms`.
struct Treated<'a> {
    gathered: Gathered<'a>,
    proposal: Proposal,
}

/// A batch of which verified lines may leave.
struct VerifiedBatch<'a> {
    gathered: Gathered<'a>,
    /// Without its lines: those are verified now.
    proposal: Proposal,
    verified: Verified,
}

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
}

/// A batch whose intent is on the disk.
struct Intended<'b, 'a>(&'b Prepared<'a>);

/// A batch that has left.
struct Delivered<'a> {
    prepared: Prepared<'a>,
    bytes_out: u64,
}

/// A batch that has left and is remembered.
struct Applied<'a> {
    input: &'a InputBatch,
    rejected: Vec<Rejected>,
    uncovered_cells: u64,
    report: BatchReport,
    seconds: StageSeconds,
    bytes_out: u64,
}

impl Engine {
    /// Takes a batch through all its steps. Held records of the places that `of` names come along.
    pub(super) fn process_part(
        &mut self,
        turn: &mut Turn,
        of: impl Fn(Coordinate) -> bool,
        order: &Order<'_>,
        sink: &mut dyn Sink,
        upcoming: &mut dyn Upcoming,
    ) -> Result<(), BatchError> {
        let gathered = self.gather(turn, &of, order)?;
        let verified = self.treat_and_verify(gathered, order)?;
        let prepared = self.prepare(verified, order);
        let delivered = self.deliver(prepared, sink, upcoming)?;
        let applied = self.apply(delivered);
        self.keep_within();
        self.tell(applied.report, applied.seconds, applied.bytes_out, applied.uncovered_cells, applied.input.oldest_ms);
        self.tell_of_misfits(&applied.rejected);
        self.doubt();
        Ok(())
    }

    /// Encodes the input, puts held records before it, and decides who takes part.
    fn gather<'a>(
        &mut self,
        turn: &'a mut Turn,
        of: &impl Fn(Coordinate) -> bool,
        order: &Order<'_>,
    ) -> Result<Gathered<'a>, BatchError> {
        let encoded = turn.take_encoded(self.coding.numbering);
        let input = &*turn.input;
        self.check_positions(input)?;
        self.check_profiles(order.retry)?;
        let progress = &self.durable.progress;
        let clock_ms = order.retry.map_or(order.now.clock_ms, |r| r.after.clock_ms).max(progress.clock_ms);
        let age_ms = order.retry.map_or(order.now.age_ms, |r| r.after.age_ms).max(progress.age_ms);
        // Whoever encoded ahead saw that there was room.
        let joining = self.rows_to_join(input, of, age_ms, order.is_all());
        self.compact_dictionaries(if encoded.is_some() { 0 } else { self.settings.values_of(input.rows()) }, joining);
        let learns_first = self.learns_first(order.retry);
        let planned = if learns_first { Planned::default() } else { self.plan_if_due(age_ms) };
        let encoded = match encoded {
            Some(encoded) => encoded,
            None => self.encoder().encode(input),
        };
        let mut gathered = self.put_together(input, encoded, of, (clock_ms, age_ms), order.is_all());
        gathered.planned = planned;
        if learns_first {
            self.learning.model.begin(&gathered.fresh);
            gathered.planned = self.plan_from(&gathered.fresh);
        }
        gathered.is_learned = learns_first;
        gathered.last = order.settling != Settling::No || input.closed == Closed::Settle;
        if !learns_first {
            self.learning.model.begin(&gathered.fresh);
        }

        let start = Instant::now();
        let waiting = gathered.batch.rows() - gathered.fresh.rows();
        gathered.altered_cells = self.alter(&mut gathered.batch, waiting);
        gathered.turnout = self.turn_out(&gathered.batch, &gathered.waits, age_ms, order.is_all());
        gathered.seconds.treat = start.elapsed().as_secs_f64();
        Ok(gathered)
    }

    /// Treats and verifies. Rows are large and must be on disk before the batch leaves: that is waited for beside the treatment.
    fn treat_and_verify<'a>(
        &mut self,
        gathered: Gathered<'a>,
        order: &Order<'_>,
    ) -> Result<VerifiedBatch<'a>, BatchError> {
        let (fresh, first) = (Arc::clone(&gathered.fresh), self.durable.progress.rows);
        let sequence = self.durable.progress.sequence + 1;
        let Durable { store, packer, .. } = &mut self.durable;
        let (attributes, books) = (self.learning.model.kept(), self.coding.books.as_slice());
        let policy = &self.settings.policy;
        let desk = Desk { in_force: &self.in_force, books, ledger: &self.ledger, policy, sequence };
        std::thread::scope(|scope| {
            let laid = scope.spawn(|| {
                let rows = (fresh.rows() > 0).then(|| packer.pack(&fresh, first, attributes, books));
                store.lay_rows(sequence, rows.as_ref())
            });
            let mut treated = desk.treat(gathered);
            // The intent may be old: who was settled then need not be any more.
            let late = order.retry.is_some() && order.now.age_ms > treated.gathered.age_ms;
            let verified = if late && desk.judge(&mut treated, order.now.age_ms, true).is_ok() {
                desk.verify(treated)?
            } else {
                if late {
                    // Other bytes than those of the attempt before: the crowd is worth more.
                    treated.gathered.age_ms = order.now.age_ms;
                    treated.gathered.clock_ms = treated.gathered.clock_ms.max(order.now.clock_ms);
                    treated = desk.treat(treated.gathered);
                }
                desk.judge_and_take(treated)?
            };
            laid.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(verified)
        })
    }

    /// Makes up all that will be remembered of the batch.
    fn prepare<'a>(&mut self, verified: VerifiedBatch<'a>, order: &Order<'_>) -> Prepared<'a> {
        let VerifiedBatch { mut gathered, mut proposal, verified } = verified;
        let age_ms = gathered.age_ms;
        let mut turnout = std::mem::take(&mut gathered.turnout);
        let before = Before { batch: &gathered.batch, waits: &gathered.waits, waited: &gathered.waited };
        let remaining = self.remaining(&mut turnout, &before, &mut proposal, &verified, age_ms);
        let mut report = self.account(&gathered, &proposal, &turnout, &remaining, &verified, order.settling);
        gathered.turnout = turnout;
        // The last moment: the pairs of the batch before have had all this time.
        let start = Instant::now();
        self.settle_model();
        self.measure_model(&mut report);
        gathered.seconds.learn = start.elapsed().as_secs_f64();
        let effects = Effects { verified, remaining, report };
        let intent = self.intent(&gathered, order, &effects);
        let audit = self.audit_line(&intent, &effects);
        Prepared { gathered, effects, intent, audit }
    }

    fn audit_line(&self, intent: &Intent, effects: &Effects) -> Option<AuditLine> {
        let batch = AuditedBatch {
            sequence: intent.after.sequence,
            clock_ms: intent.after.clock_ms,
            ranges: &intent.ranges,
            verified: &effects.verified,
            report: &effects.report,
            groups: self.in_force.plan.groups.iter().map(|group| group.name.as_str()).collect(),
        };
        self.auditor.as_ref().map(|auditor| auditor.line(&batch))
    }

    /// What must be on the disk before anything leaves.
    fn intent(&mut self, gathered: &Gathered<'_>, order: &Order<'_>, effects: &Effects) -> Intent {
        let Effects { verified, remaining, report, .. } = effects;
        let Gathered { input, batch, fresh, ordinals, planned, rejected, is_learned, .. } = gathered;
        let keep = |(&row, wait): (&u32, &Remaining)| {
            let (needed, books) = (self.needs(wait), &self.coding.books);
            kept_waiting(batch, row as usize, ordinals[row as usize], wait, &needed, books, &self.held.joined)
        };
        let held: Vec<KeptRow> = remaining.iter().map(keep).collect();
        let moment = Moment { clock_ms: gathered.clock_ms, age_ms: gathered.age_ms, anchor: order.now.anchor };
        let attempt = uuid::Uuid::new_v4().as_u64_pair().0;
        let mut after = self.progress_after(input, moment, fresh.rows(), report, planned);
        if *is_learned {
            after.planned_rows = after.rows;
        }
        let met = self.met_with(fresh, rejected, input.long_rows, report);
        let (monitor, plan) = (self.settings.monitor, planned.plan.clone());
        Intent {
            attempt,
            ranges: ranges_of(input),
            last: gathered.last,
            all: order.is_all(),
            after,
            ledger: (!monitor).then(|| verified.delta().clone()),
            sampled: self.sampled(fresh),
            settled: gathered.taken.iter().map(|&at| self.held.ordinals[at]).collect(),
            held,
            baseline: plan.is_some().then(|| self.learning.baseline.clone()),
            references: if plan.is_some() { self.in_force.references.clone() } else { Vec::new() },
            plan,
            evidence: self.take_evidence(),
            met: Some(met),
            profiles: self.durable.store.profiles_version(),
        }
    }

    /// Writes the intent down, then lets the batch leave. What is `upcoming` is encoded meanwhile.
    fn deliver<'a>(
        &mut self,
        mut prepared: Prepared<'a>,
        sink: &mut dyn Sink,
        upcoming: &mut dyn Upcoming,
    ) -> Result<Delivered<'a>, BatchError> {
        let start = Instant::now();
        let nothing = self.settings.monitor.then(|| Verified::nothing(self.in_force.plan.groups.len()));
        let bytes_before = sink.bytes_out();
        let (schema, settings) = (&self.schema, &self.settings);
        let mut encoder = Encoder::new(schema, settings, &mut self.coding);
        let untruthful = self.untruthful.as_deref();
        let (store, ledger, over) = (&mut self.durable.store, &self.ledger, AtomicBool::new(false));
        let delivered = std::thread::scope(|scope| {
            scope.spawn(|| encoder.look_ahead(upcoming, &over));
            let _over = SetOnDrop(&over);
            let intended = prepared.intend(store, ledger)?;
            crash_point("intent-flushed");
            Ok::<_, BatchError>(intended.deliver(sink, nothing.as_ref(), untruthful))
        })?;
        match delivered {
            Ok(()) => {
                crash_point("delivered");
                prepared.gathered.seconds.commit = start.elapsed().as_secs_f64();
                Ok(Delivered { prepared, bytes_out: sink.bytes_out() - bytes_before })
            }
            Err(DeliveryError::Aborted(why)) => Err(BatchError::Aborted { why, intent: Box::new(prepared.intent) }),
            Err(DeliveryError::Fatal(why)) => Err(BatchError::Fatal(why)),
        }
    }

    /// Remembers a batch that has left: nothing here may fail.
    fn apply<'a>(&mut self, delivered: Delivered<'a>) -> Applied<'a> {
        let start = Instant::now();
        let Delivered { prepared, bytes_out } = delivered;
        let Prepared { gathered, effects, intent, .. } = prepared;
        let Effects { verified, remaining, mut report, .. } = effects;
        let Gathered { input, fresh, batch, ordinals, taken, rejected, uncovered_cells, turnout, mut seconds, .. } =
            gathered;
        let (adopted, is_learned) = (gathered.planned.plan.is_some(), gathered.is_learned);
        self.ledger.apply(verified.delta());
        self.tell_of_full_supporters(batch.rows());
        self.ledger.expire(usize::try_from(intent.after.sequence).unwrap_or(0) % SHARDS, gathered.age_ms);
        self.meet(intent.met.as_ref());
        if !is_learned {
            self.learning.sample.add(&fresh, self.durable.progress.rows);
        }
        self.durable.progress = intent.after.clone();
        let (plan, names, width) = (&self.in_force.plan, &self.in_force.turn_names, self.schema.attributes.len());
        let needs = |wait: &Remaining| turnout::needs(plan, names, width, wait);
        self.held.advance(&taken, &batch, &ordinals, remaining, needs);
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
        self.forget_rows();
        crash_point("applied");
        report.altered_cells = gathered.altered_cells;
        report.unjoined_records = gathered.unjoined;
        Applied { input, rejected, uncovered_cells, report, seconds, bytes_out }
    }

    /// What encodes for this engine.
    fn encoder(&mut self) -> Encoder<'_> {
        Encoder::new(&self.schema, &self.settings, &mut self.coding)
    }

    /// Forgets the rows of the sample that neither it nor a search under way needs.
    fn forget_sample(&mut self) {
        let sample = &self.learning.sample;
        if sample.rows() > 0 {
            let oldest = self.planning.search.as_ref().and_then(|search| search.first_row).unwrap_or(u64::MAX);
            self.durable.store.forget_sample_before(sample.ordinal(0).min(oldest));
        }
    }

    /// Forgets the rows that have left the window.
    fn forget_rows(&mut self) {
        let window = self.learning.model.window().rows() as u64;
        self.durable.store.forget_rows_before(self.durable.progress.rows - window);
    }
}

/// Where batches are treated and verified: all that this takes of an engine.
struct Desk<'a> {
    in_force: &'a InForce,
    books: &'a [Codebook],
    ledger: &'a Ledger,
    policy: &'a Policy,
    sequence: u64,
}

impl Desk<'_> {
    fn treat<'a>(&self, mut gathered: Gathered<'a>) -> Treated<'a> {
        let start = Instant::now();
        let proposal = self.propose(&gathered, &gathered.turnout.mask);
        gathered.seconds.treat += start.elapsed().as_secs_f64();
        Treated { gathered, proposal }
    }

    /// What may leave of a batch in which `mask` says who takes part.
    fn propose(&self, gathered: &Gathered<'_>, mask: &Mask) -> Proposal {
        let InForce { plan, names, protected, .. } = self.in_force;
        let Gathered { batch, waited, last, age_ms, .. } = gathered;
        let rules = Rules { plan, names, books: self.books, policy: self.policy, protected };
        treat(&Records { batch, mask, waited, last: *last }, &rules, &self.ledger.at(*age_ms))
    }

    /// Verifies a treated batch as of `age_ms`; where that cannot be judged, with fewer groups. `keeps`: the lines are needed
    /// again.
    fn judge(&self, treated: &mut Treated<'_>, age_ms: i64, keeps: bool) -> Result<Verified, Refusal> {
        let Treated { gathered, proposal } = treated;
        let propose = |mask: &Mask| self.propose(gathered, mask);
        let verified = |groups| self.verified(gathered, groups, age_ms);
        judged(proposal, &self.in_force.plan, &gathered.turnout.mask, keeps, propose, verified)
    }

    fn judge_and_take<'a>(&self, mut treated: Treated<'a>) -> Result<VerifiedBatch<'a>, Refusal> {
        let start = Instant::now();
        let age_ms = treated.gathered.age_ms;
        let verified = self.judge(&mut treated, age_ms, false)?;
        let Treated { mut gathered, proposal } = treated;
        gathered.seconds.verify = start.elapsed().as_secs_f64();
        Ok(VerifiedBatch { gathered, proposal, verified })
    }

    fn verify<'a>(&self, treated: Treated<'a>) -> Result<VerifiedBatch<'a>, Refusal> {
        let start = Instant::now();
        let Treated { mut gathered, mut proposal } = treated;
        let verified = self.verified(&gathered, std::mem::take(&mut proposal.groups), gathered.age_ms)?;
        gathered.seconds.verify = start.elapsed().as_secs_f64();
        Ok(VerifiedBatch { gathered, proposal, verified })
    }

    fn verified(&self, gathered: &Gathered<'_>, lines: Vec<ProposedGroup>, age_ms: i64) -> Result<Verified, Refusal> {
        let (given, ledger) = (self.given(gathered, age_ms), self.ledger.at(age_ms));
        verify(lines, &given, &self.in_force.terms, self.books, ledger, self.policy.k)
    }

    fn given<'g>(&self, gathered: &'g Gathered<'_>, age_ms: i64) -> Given<'g> {
        let (batch, waiting) = (&gathered.batch, gathered.batch.rows() - gathered.fresh.rows());
        let (subjects, columns) = (batch.subjects.as_slice(), batch.columns.as_slice());
        Given { subjects, columns, waiting, sequence: self.sequence, age_ms }
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
    ) -> Result<(), DeliveryError> {
        let Prepared { gathered, effects: Effects { verified, .. }, intent, audit } = self.0;
        let positions: Positions = gathered.input.ranges.iter().map(|(place, range)| (*place, range.1)).collect();
        let envelope = Envelope {
            sequence: intent.after.sequence,
            attempt: intent.attempt,
            clock_ms: gathered.clock_ms,
            positions: &positions,
            rejected: &gathered.rejected,
            subjects: &gathered.batch.subjects,
            coordinates: &gathered.batch.coordinates,
            untruthful,
            audit: audit.as_ref(),
        };
        sink.deliver(nothing.unwrap_or(verified), &envelope)
    }
}

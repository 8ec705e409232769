//! The first step of a batch: encoded input, held records before it, and who takes part.

use super::clock::Moment;
use super::contribution_limit::{ContributionLimiter, Turnout};
use super::core::{BatchError, Engine};
use super::encode_ahead::{Encoded, Encoder, Turn};
use super::held::Remaining;
use crate::anonymity::microaggregation::Resolution;
use crate::anonymity::plan::Plan;
use crate::anonymity::treatment::alter::{Alteration, Number, altered};
use crate::daemon::state::entries::Erased;
use crate::daemon::state::records::{Intent, Progress};
use crate::io::input::{Closed, InputBatch, Place};
use crate::release::sink::Rejected;
use crate::telemetry::{Limit, LimitReached, StageSeconds};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use throng_core::values::canonical::Canonical;
use throng_core::values::codebook::{Code, FIRST_VALUE};
use throng_core::values::raw::{Coordinate, Token};
use throng_core::values::schema::Treatment;
use throng_core::values::table::Batch;

/// What became of planning before a batch.
#[derive(Debug, Default)]
pub(super) struct Planned {
    /// A plan that is in force from this batch on.
    pub plan: Option<Plan>,
    /// A search has ended, with a plan or without: the next is due an interval from now.
    pub ended: bool,
}

impl Planned {
    pub fn with(plan: Plan) -> Self {
        Self { plan: Some(plan), ended: true }
    }
}

/// A batch before its treatment.
pub(super) struct Gathered<'a> {
    pub input: &'a InputBatch,
    /// The records that have just been read.
    pub fresh: Arc<Batch>,
    /// The held records that come along, then the fresh ones; how long each has waited, and its number in the stream.
    pub batch: Batch,
    pub waited: Vec<u8>,
    pub ordinals: Vec<u64>,
    /// Where the held records that come along lie among all, and what they waited for.
    pub taken: Vec<usize>,
    pub waits: Vec<Remaining>,
    /// Records that could not be read or encoded, in the order of the source.
    pub rejected: Vec<Rejected>,
    /// Cells that their hierarchies miss.
    pub uncovered_cells: u64,
    /// Who takes part in which group.
    pub turnout: Turnout,
    pub altered_cells: u64,
    /// Records to which a join brought nothing.
    pub unjoined: u64,
    pub planned: Planned,
    /// The model and the sample have its fresh records already.
    pub is_learned: bool,
    /// Held records settle with this batch.
    pub last: bool,
    pub clock_ms: i64,
    pub age_ms: i64,
    pub seconds: StageSeconds,
}

/// Why held records are settled without new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settling {
    /// The batch is an ordinary one.
    No,
    /// The source has ended: no later record can complete a crowd.
    EndOfStream,
    /// The process was asked to stop.
    Shutdown,
    /// Nothing, or too few subjects, came for `batch.max_age`. What waits for a delay waits on.
    Quiet,
}

/// How a batch is to be treated, and when.
pub(super) struct Order<'a> {
    pub settling: Settling,
    /// The intent of the attempt before, when there was one.
    pub retry: Option<&'a Intent>,
    pub now: Moment,
    /// Entries of the changelog about people who are erased with it.
    pub erased: Vec<(Place, Erased)>,
}

impl<'a> Order<'a> {
    /// An order that erases nobody.
    pub fn new(settling: Settling, retry: Option<&'a Intent>, now: Moment) -> Self {
        Self { settling, retry, now, erased: Vec::new() }
    }

    /// Whether a batch settles as well what waits for a delay; the repetition of one does what it did.
    pub fn is_all(&self) -> bool {
        let over = matches!(self.settling, Settling::EndOfStream | Settling::Shutdown);
        self.retry.map_or(over, |intent| intent.all)
    }

    /// Clock of the batch after `progress`, and the age of the state with it.
    pub fn clock_and_age(&self, progress: &Progress) -> (i64, i64) {
        let (clock_ms, age_ms) =
            self.retry.map_or((self.now.clock_ms, self.now.age_ms), |r| (r.after.clock_ms, r.after.age_ms));
        (clock_ms.max(progress.clock_ms), age_ms.max(progress.age_ms))
    }
}

impl Engine {
    /// Encodes the input, puts the held records of the places that `of` names before it, and decides who takes part.
    pub(super) fn gather<'a>(
        &mut self,
        turn: &'a mut Turn,
        of: &impl Fn(Coordinate) -> bool,
        order: &Order<'_>,
    ) -> Result<Gathered<'a>, BatchError> {
        let encoded = turn.take_encoded(self.coding.numbering);
        let input = &*turn.input;
        self.check_positions(input)?;
        self.check_profiles(order.retry)?;
        let (clock_ms, age_ms) = order.clock_and_age(&self.durable.progress);
        let taken = self.held.joining(of, age_ms, order.is_all());
        // Whoever encoded ahead saw that there was room.
        let coming = if encoded.is_some() { 0 } else { self.settings.values_of(input.rows()) };
        let joining = if self.joins.is_empty() { 0 } else { input.raw.rows() + taken.len() };
        self.compact_dictionaries(coming, joining);
        let learns_first = self.learns_first(order.retry);
        let planned = if learns_first { Planned::default() } else { self.plan_if_due(age_ms) };
        let encoded = match encoded {
            Some(encoded) => encoded,
            None => Encoder::new(&self.schema, &self.settings, &mut self.coding).encode(input),
        };
        let mut gathered = self.put_together(input, encoded, taken);
        (gathered.planned, gathered.clock_ms, gathered.age_ms) = (planned, clock_ms, age_ms);
        self.learning.model.begin(&gathered.fresh);
        if learns_first {
            gathered.planned = self.plan_from(&gathered.fresh);
        }
        gathered.is_learned = learns_first;
        gathered.last = order.settling != Settling::No || input.closed == Closed::Settle;

        let start = Instant::now();
        let waiting = gathered.waits.len();
        gathered.altered_cells = self.alter(&mut gathered.batch, waiting);
        gathered.turnout = self.limiter(&gathered).turn_out(order.is_all());
        gathered.seconds.treat = start.elapsed().as_secs_f64();
        Ok(gathered)
    }

    pub(super) fn limiter<'a>(&'a self, gathered: &'a Gathered<'_>) -> ContributionLimiter<'a> {
        ContributionLimiter {
            settings: self.settings.repetition,
            plan: &self.in_force.plan,
            names: &self.in_force.turn_names,
            draws: &self.draws,
            said: self.ledger.said.as_ref(),
            held: &self.held,
            batch: &gathered.batch,
            waits: &gathered.waits,
            waited: &gathered.waited,
            age_ms: gathered.age_ms,
        }
    }

    /// Refuses records that this state has already settled.
    fn check_positions(&self, input: &InputBatch) -> Result<(), BatchError> {
        if self.settings.accept_rewind {
            return Ok(());
        }
        for (&(topic, partition), &(offset, _)) in &input.ranges {
            if let Some(&position) = self.durable.progress.positions.get(&(topic, partition))
                && offset < position
            {
                return Err(BatchError::Rewound { topic, partition, offset, position });
            }
        }
        Ok(())
    }

    /// Puts the held records at `taken` before the encoded input.
    fn put_together<'a>(&mut self, input: &'a InputBatch, encoded: Encoded, taken: Vec<usize>) -> Gathered<'a> {
        let Encoded { rows: mut fresh, mut rejected, mut uncovered_cells, seconds: encode, .. } = encoded;
        let joined = self.joins.join(&mut fresh, &mut self.coding.books, false);
        uncovered_cells += joined.uncovered;
        if self.coding.books.iter().any(|b| b.values() >= self.settings.max_dictionary_values) {
            LimitReached { limit: Limit::DictionaryValues }.emit(&self.telemetry);
        }
        rejected.splice(0..0, input.rejected.iter().cloned());
        let waits: Vec<Remaining> = taken.iter().map(|&at| self.held.waits[at].clone()).collect();
        let mut waited: Vec<u8> = waits.iter().map(|wait| wait.waited).collect();
        let mut batch = self.held.copy(&taken);
        self.joins.join(&mut batch, &mut self.coding.books, true);
        batch.append(&fresh);
        waited.resize(batch.rows(), 0);
        let first = self.durable.progress.rows;
        let held = taken.iter().map(|&at| self.held.ordinals[at]);
        let ordinals = held.chain(first..first + fresh.rows() as u64).collect();
        let (read, decode) = (input.read_seconds, input.decode_seconds);
        Gathered {
            input,
            fresh: Arc::new(fresh),
            batch,
            waited,
            ordinals,
            taken,
            waits,
            rejected,
            uncovered_cells,
            turnout: Turnout::default(),
            altered_cells: 0,
            unjoined: joined.unjoined,
            planned: Planned::default(),
            is_learned: false,
            last: false,
            clock_ms: 0,
            age_ms: 0,
            seconds: StageSeconds { read, decode, encode, ..StageSeconds::default() },
        }
    }

    /// Alters the numbers of the fresh records of `batch`, which stand behind `waiting` held ones, as the treatments of their attributes
    /// ask for. Held records were altered when they were fresh. Gives the number of cells that have changed.
    ///
    /// It is a function of what the batch says, not of codes or of the order of its records: a batch that is repeated is altered alike.
    fn alter(&mut self, batch: &mut Batch, waiting: usize) -> u64 {
        let mut changed = 0;
        for number in 0..self.in_force.plan.groups.len() {
            let quasi = self.in_force.plan.groups[number].quasi.clone();
            for &attribute in &quasi {
                if self.in_force.plan.identifiers.contains(&attribute) {
                    continue;
                }
                let alteration = match self.schema.attributes[attribute].treatment {
                    Treatment::Perturb => Alteration::Closest,
                    Treatment::Aggregate => Alteration::Mean,
                    Treatment::Generalize | Treatment::SuppressCell | Treatment::SuppressRecord => continue,
                };
                let Some(resolution) = Resolution::of(&self.schema.attributes[attribute].typing) else { continue };
                let others: Vec<usize> = quasi.iter().copied().filter(|other| *other != attribute).collect();
                let mut codes: HashMap<i64, Option<Code>> = HashMap::new();
                for alike in self.alike(batch, waiting, attribute, &others, resolution) {
                    for (row, steps) in altered(alike, alteration, self.settings.policy.k) {
                        let code = *codes.entry(steps).or_insert_with(|| self.code_of(attribute, resolution, steps));
                        if let Some(code) = code {
                            batch.columns[attribute][row as usize] = code;
                            changed += 1;
                        }
                    }
                }
            }
        }
        changed
    }

    /// The numbers of `attribute` in the fresh rows, those of rows together that have the same codes of all `others`.
    fn alike(
        &self,
        batch: &Batch,
        waiting: usize,
        attribute: usize,
        others: &[usize],
        resolution: Resolution,
    ) -> Vec<Vec<Number>> {
        let (book, column) = (&self.coding.books[attribute], &batch.columns[attribute]);
        let mut alike: HashMap<Vec<Code>, Vec<Number>> = HashMap::new();
        for row in (waiting..batch.rows()).filter(|&row| column[row] >= FIRST_VALUE) {
            let Some(steps) = resolution.steps(book.canonical(column[row])) else { continue };
            let key = others.iter().map(|&other| batch.columns[other][row]).collect();
            let number =
                Number { row: u32::try_from(row).expect("a batch is bounded"), subject: batch.subjects[row], steps };
            alike.entry(key).or_default().push(number);
        }
        alike.into_values().collect()
    }

    /// The code of a number that may be nobody's; none where its text would be read back as something else, as a spelling of missing is.
    fn code_of(&mut self, attribute: usize, resolution: Resolution, steps: i64) -> Option<Code> {
        let text = resolution.number(steps);
        let mut canonical = String::new();
        let typing = self.schema.attributes[attribute].typing.converted_already();
        let read = typing.canonical(Token::Number(&text), &mut canonical);
        let is_itself = read == Ok(Canonical::Value) && canonical == text;
        is_itself.then(|| self.coding.books[attribute].encode_canonical(&text))
    }
}

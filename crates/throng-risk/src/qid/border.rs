//! Default strategy: descent by witnesses, then verification (docs/internals/find-qid.md).
//!
//! Exact: a set becomes a non-QID only below a verified set, and a QID only by one of its classes.

use super::column_bits::{ColumnBits, ColumnBitsMap, ColumnBitsSet, join_level, sort_by_columns};
use super::search_request::{MAX_LEVEL_SETS, QidBorders, QidSearchContext, QidSearchProgress};
use super::table_classes::TableClasses;
use super::witnesses::{WitnessClass, WitnessJudgement, WitnessScratch, WitnessStore};
use crate::counting::cpu::in_threads;
use crate::counting::{AttributeSet, ComputeError};
use crate::multigrid::AttributeAggregation;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

const CANDIDATES_PER_STEP: usize = 64;

pub(super) fn search(
    run: &QidSearchContext<'_>,
    attributes: &AttributeAggregation,
    mut witnesses: WitnessStore,
    classes: &TableClasses<'_>,
) -> Result<QidBorders, ComputeError> {
    let witnesses = &mut witnesses;
    match attributes.kept().len() {
        0..=64 => BorderSearch::<1>::new(run, attributes, classes).run_to_limit(witnesses),
        65..=128 => BorderSearch::<2>::new(run, attributes, classes).run_to_limit(witnesses),
        _ => BorderSearch::<16>::new(run, attributes, classes).run_to_limit(witnesses),
    }
}

const FIRST_DESCENT_TIME: Duration = Duration::from_millis(250);

const SETS_PER_TIME_CHECK: usize = 2048;

const PROVED_BYTES: u64 = 512;

const PENDING_BYTES: u64 = 512;

struct BorderSearch<'a, const W: usize> {
    run: &'a QidSearchContext<'a>,
    attributes: &'a AttributeAggregation,
    classes: &'a TableClasses<'a>,
    table_judgements: ColumnBitsMap<W, WitnessJudgement>,
    implied: Vec<ColumnBits<W>>,
    /// Tentative and verified non-QIDs without implied columns. INVARIANT: contains all subsets.
    alive: ColumnBitsSet<W>,
    /// Proved QIDs, minimal or not.
    qids: Vec<ColumnBits<W>>,
    verified: ColumnBitsSet<W>,
    complete: bool,
    out_of_memory: bool,
    evaluated: u64,
    pruned: u64,
}

struct DescentState<const W: usize> {
    /// Tentative sets of one size.
    level: ColumnBitsMap<W, Vec<WitnessClass>>,
    /// Unjudged sets one larger.
    candidates: Vec<ColumnBits<W>>,
    /// Tentative candidates.
    next: ColumnBitsMap<W, Vec<WitnessClass>>,
    bytes: [u64; 2],
    done: bool,
}

struct JudgedCandidates<const W: usize> {
    tentative: ColumnBitsMap<W, Vec<WitnessClass>>,
    qids: Vec<ColumnBits<W>>,
    judged_count: usize,
    bytes: u64,
}

impl<'a, const W: usize> BorderSearch<'a, W> {
    fn new(run: &'a QidSearchContext<'a>, attributes: &'a AttributeAggregation, classes: &'a TableClasses<'a>) -> Self {
        let implied = |number| ColumnBits::of(attributes.implied(number).iter().copied());
        Self {
            run,
            attributes,
            classes,
            table_judgements: ColumnBitsMap::default(),
            implied: (0..attributes.kept().len()).map(implied).collect(),
            alive: ColumnBitsSet::default(),
            qids: Vec::new(),
            verified: ColumnBitsSet::default(),
            complete: true,
            out_of_memory: false,
            evaluated: 0,
            pruned: 0,
        }
    }

    /// Without a limit, the descent ends first; with one, descent and verification alternate in doubled turns.
    ///
    /// The order of work ignores the limit, so a longer limit never proves less.
    fn run_to_limit(mut self, witnesses: &mut WitnessStore) -> Result<QidBorders, ComputeError> {
        let mut descent = self.judge_single_columns(witnesses)?;
        let mut until = self.run.question.budget.map(|_| FIRST_DESCENT_TIME);
        loop {
            self.descend(&mut descent, witnesses, until)?;
            if descent.done {
                descent = DescentState { done: true, ..DescentState::new() };
                until = None;
            }
            let judged = self.verify(until.map(|until| until + until / 2))?;
            if judged && descent.done {
                break;
            }
            if self.run.clock.is_over() {
                self.complete = false;
                break;
            }
            self.drop_failed(&mut descent);
            until = until.map(|until| until * 2);
        }
        self.pruned += self.alive.len().saturating_sub(self.verified.len()) as u64;
        Ok(self.into_borders())
    }

    fn report(&self, open: usize) {
        let Self { evaluated, pruned, .. } = *self;
        (self.run.progress)(QidSearchProgress { evaluated, pruned, found: self.qids.len(), open });
    }

    fn bytes(&self) -> u64 {
        let proved = (self.qids.len() + self.verified.len()) as u64;
        proved * PROVED_BYTES + (self.alive.len() * 2 * size_of::<ColumnBits<W>>()) as u64
    }

    fn memory_left(&self, descent: &DescentState<W>) -> u64 {
        let candidates = (descent.candidates.len() * size_of::<ColumnBits<W>>()) as u64;
        let held = self.bytes() + candidates + descent.bytes[0] + descent.bytes[1];
        self.run.question.memory.map_or(u64::MAX, |most| most.saturating_sub(held))
    }

    fn judge_single_columns(&mut self, witnesses: &mut WitnessStore) -> Result<DescentState<W>, ComputeError> {
        self.alive.insert(ColumnBits::EMPTY);
        let singles: Vec<ColumnBits<W>> = (0..self.attributes.kept().len()).map(|c| ColumnBits::of([c])).collect();
        let sights = self.classes.judge_columns(self.attributes.kept(), witnesses)?;
        let of_column = |set: ColumnBits<W>, _: &mut WitnessScratch| sights[set.last().expect("a column")].clone();
        let clock = self.run.clock;
        let sighted = self.judge_candidates(&singles, 1, &of_column, &|_| clock.is_over());
        let mut descent = DescentState::new();
        self.evaluated = sighted.judged_count as u64;
        if sighted.judged_count < singles.len() {
            self.complete = false;
            descent.done = true;
        }
        self.record_judgements(&mut descent, sighted);
        Ok(descent)
    }

    fn judge_unwitnessed(
        &mut self,
        descent: &DescentState<W>,
        witnesses: &mut WitnessStore,
    ) -> Result<(), ComputeError> {
        let unseen = |set: &&ColumnBits<W>| set.iter().all(|c| descent.level[&set.without(c)].is_empty());
        let sets: Vec<ColumnBits<W>> = descent.candidates.iter().filter(unseen).copied().collect();
        let originals: Vec<AttributeSet> =
            sets.iter().map(|set| self.attributes.to_table_columns(set.iter())).collect();
        let clock = self.run.clock;
        let sights = self.classes.judge_sets_on_table(&originals, witnesses, &|| clock.is_over())?;
        self.table_judgements = sets.into_iter().zip(sights).collect();
        Ok(())
    }

    fn record_judgements(&mut self, descent: &mut DescentState<W>, sighted: JudgedCandidates<W>) {
        self.alive.extend(sighted.tentative.keys());
        self.qids.extend(sighted.qids);
        descent.next.extend(sighted.tentative);
        descent.bytes[1] += sighted.bytes;
        descent.candidates.drain(..sighted.judged_count.min(descent.candidates.len()));
    }

    fn descend(
        &mut self,
        descent: &mut DescentState<W>,
        witnesses: &mut WitnessStore,
        until: Option<Duration>,
    ) -> Result<(), ComputeError> {
        let (clock, k) = (self.run.clock, self.run.question.k);
        while !descent.done && !clock.has_reached(until) && !clock.is_over() {
            if descent.candidates.is_empty() {
                self.next_level(descent);
                self.judge_unwitnessed(descent, witnesses)?;
                continue;
            }
            let (level, witnesses, looked_at) = (&descent.level, &*witnesses, &self.table_judgements);
            let of_parents = |set: ColumnBits<W>, scratch: &mut WitnessScratch| {
                if let Some(sight) = looked_at.get(&set) {
                    return sight.clone();
                }
                let classes = |c| level[&set.without(c)].iter().map(move |class| (class, c));
                let parents: Vec<(&WitnessClass, usize)> = set.iter().flat_map(classes).collect();
                witnesses.judge_by_parents(&parents, k, scratch)
            };
            let room = self.memory_left(descent);
            let stop = |bytes: u64| bytes > room || clock.has_reached(until) || clock.is_over();
            let sighted = self.judge_candidates(&descent.candidates, CANDIDATES_PER_STEP, &of_parents, &stop);
            let is_full = sighted.bytes > room;
            self.pruned += sighted.qids.len() as u64;
            self.record_judgements(descent, sighted);
            if is_full {
                self.end_descent(descent);
            }
        }
        Ok(())
    }

    /// Only current tentative sets are then verified.
    fn end_descent(&mut self, descent: &mut DescentState<W>) {
        (self.complete, self.out_of_memory, descent.done) = (false, true, true);
    }

    fn next_level(&mut self, descent: &mut DescentState<W>) {
        descent.level = std::mem::take(&mut descent.next);
        descent.bytes = [descent.bytes[1], 0];
        let mut sets: Vec<ColumnBits<W>> = descent.level.keys().copied().collect();
        sort_by_columns(&mut sets);
        // Sets are also held in a list and as keys.
        let bytes = size_of::<ColumnBits<W>>() as u64;
        let room = (self.memory_left(descent) / bytes).saturating_sub(3 * sets.len() as u64);
        let most = usize::try_from(room).unwrap_or(usize::MAX).min(MAX_LEVEL_SETS);
        let clock = self.run.clock;
        match join_level(&sets, most, &|| clock.is_over()) {
            Some(candidates) => descent.candidates = candidates,
            // Ends the verification, too.
            None if clock.is_over() => (self.complete, descent.done) = (false, true),
            None => self.end_descent(descent),
        }
        if sets.first().is_some_and(|set| set.len() == 1) {
            descent.candidates.retain(|set| set.iter().all(|a| self.implied[a].minus(set) == self.implied[a]));
        }
        self.report(descent.candidates.len());
        descent.done |= descent.candidates.is_empty();
    }

    fn drop_failed(&self, descent: &mut DescentState<W>) {
        descent.level.retain(|set, _| self.alive.contains(set));
        descent.next.retain(|set, _| self.alive.contains(set));
        descent.candidates.retain(|set| self.has_alive_subsets(*set));
    }

    fn has_alive_subsets(&self, set: ColumnBits<W>) -> bool {
        set.iter().all(|c| self.alive.contains(&set.without(c)))
    }

    /// `stop` gets the bytes used.
    fn judge_candidates(
        &self,
        candidates: &[ColumnBits<W>],
        share: usize,
        sight: &(impl Fn(ColumnBits<W>, &mut WitnessScratch) -> WitnessJudgement + Sync),
        stop: &(impl Fn(u64) -> bool + Sync),
    ) -> JudgedCandidates<W> {
        let found = Mutex::new((ColumnBitsMap::default(), Vec::new()));
        let (next, bytes) = (AtomicUsize::new(0), AtomicU64::new(0));
        let shares: Vec<&[ColumnBits<W>]> = candidates.chunks(share).collect();
        let work = || {
            let mut scratch = WitnessScratch::default();
            while !stop(bytes.load(Ordering::Relaxed)) {
                let Some(share) = shares.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let sights: Vec<WitnessJudgement> = share.iter().map(|set| sight(*set, &mut scratch)).collect();
                let mut found = found.lock().expect("no search panics with the lock");
                for (set, sight) in share.iter().zip(sights) {
                    match sight {
                        WitnessJudgement::Qid => {
                            bytes.fetch_add(PROVED_BYTES, Ordering::Relaxed);
                            found.1.push(*set);
                        }
                        WitnessJudgement::Tentative(classes) => {
                            bytes.fetch_add(
                                witness_bytes(&classes) + 4 * size_of::<ColumnBits<W>>() as u64,
                                Ordering::Relaxed,
                            );
                            found.0.insert(*set, classes);
                        }
                    }
                }
            }
        };
        in_threads(self.run.question.threads.clamp(1, shares.len().max(1)), &work);
        let (tentative, qids) = found.into_inner().expect("no search panicked");
        let taken = (next.into_inner() * share).min(candidates.len());
        JudgedCandidates { tentative, qids, judged_count: taken, bytes: bytes.into_inner() }
    }

    /// Judges maximal tentative sets, and the sets below failed ones. Returns false at the time limit.
    fn verify(&mut self, until: Option<Duration>) -> Result<bool, ComputeError> {
        let QidSearchContext { counter, question, clock, .. } = *self.run;
        let mut pending = Vec::new();
        for (at, set) in self.alive.iter().enumerate() {
            if at % 1024 == 1023 && clock.is_over() {
                return Ok(false);
            }
            if !self.verified.contains(set) && self.is_maximal(*set) {
                pending.push(*set);
            }
        }
        sort_by_columns(&mut pending);
        while !pending.is_empty() {
            if clock.is_over() || clock.has_reached(until) {
                return Ok(false);
            }
            self.report(pending.len());
            let room = self.run.question.memory.map_or(u64::MAX, |most| most.saturating_sub(self.bytes()));
            let room = usize::try_from(room / PENDING_BYTES).unwrap_or(usize::MAX).max(SETS_PER_TIME_CHECK);
            let at_once =
                if question.budget.is_some() { SETS_PER_TIME_CHECK.max(counter.preferred_batch_size()) } else { room };
            let rest = pending.split_off(at_once.min(pending.len()));
            let sets: Vec<AttributeSet> =
                pending.iter().map(|set| self.attributes.to_table_columns(set.iter())).collect();
            let verdicts = counter.judge(&sets, question.k, &|| clock.is_over())?;
            let (mut failed, mut stopped) = (Vec::new(), false);
            for (set, verdict) in pending.iter().zip(verdicts) {
                self.evaluated += u64::from(verdict.is_some());
                match verdict {
                    None => stopped = true,
                    Some(false) => {
                        self.verified.insert(*set);
                    }
                    Some(true) => {
                        self.alive.remove(set);
                        failed.push(*set);
                    }
                }
            }
            let below: ColumnBitsSet<W> = failed.iter().flat_map(|set| self.largest_subsets(*set)).collect();
            self.qids.extend(failed);
            if stopped {
                return Ok(false);
            }
            // A set occurs once: when the last set above it fails.
            let mut below: Vec<ColumnBits<W>> = below.into_iter().filter(|set| self.awaits_verification(set)).collect();
            sort_by_columns(&mut below);
            pending = rest;
            pending.extend(below);
        }
        Ok(true)
    }

    fn awaits_verification(&self, set: &ColumnBits<W>) -> bool {
        self.alive.contains(set) && !self.verified.contains(set) && self.is_maximal(*set)
    }

    fn closure_of(&self, set: ColumnBits<W>) -> ColumnBits<W> {
        set.iter().fold(set, |closed, c| closed.union(&self.implied[c]))
    }

    fn generator(&self, set: ColumnBits<W>) -> ColumnBits<W> {
        set.iter().fold(set, |left, c| left.minus(&self.implied[c]))
    }

    fn is_maximal(&self, set: ColumnBits<W>) -> bool {
        let closed = self.closure_of(set);
        let grown = |c: usize| self.alive.contains(&set.minus(&self.implied[c]).with(c));
        (0..self.implied.len()).all(|c| closed.contains(c) || !grown(c))
    }

    fn largest_subsets(&self, set: ColumnBits<W>) -> Vec<ColumnBits<W>> {
        let closed = self.closure_of(set);
        set.iter().map(|c| self.generator(closed.without(c))).collect()
    }

    /// A QID with a subset outside `alive` contains a proved QID; the others are minimal.
    fn into_borders(mut self) -> QidBorders {
        let mut borders = QidBorders::of_finished_search(vec![], vec![]);
        (borders.complete, borders.out_of_memory) = (self.complete, self.out_of_memory);
        (borders.evaluated, borders.pruned) = (self.evaluated, self.pruned);
        let qids = std::mem::take(&mut self.qids);
        let minimal = qids.into_iter().filter(|set| self.has_alive_subsets(*set));
        borders.minimal_qids = minimal.flat_map(|set| self.attributes.expand_minimal_qid(set.iter())).collect();
        let below = self.below_verified();
        let largest = self.verified.iter().filter(|set| !below.contains(*set));
        borders.maximal_non_qids = largest.map(|set| self.attributes.expand_maximal_non_qid(set.iter())).collect();
        borders.minimal_qids.sort_unstable();
        borders.maximal_non_qids.sort_unstable();
        borders
    }

    /// Ends at the size verified earlier.
    fn below_verified(&self) -> ColumnBitsSet<W> {
        let mut below = ColumnBitsSet::default();
        let earlier = self.verified.iter().filter(|set| !self.is_maximal(**set));
        let columns = |set: &ColumnBits<W>| self.closure_of(*set).len();
        let Some(smallest) = earlier.map(columns).min() else { return below };
        let mut open: Vec<ColumnBits<W>> = self.verified.iter().copied().collect();
        while let Some(set) = open.pop() {
            let parts = self.largest_subsets(set).into_iter().filter(|part| columns(part) >= smallest);
            open.extend(parts.filter(|part| below.insert(*part)));
        }
        below
    }
}

fn witness_bytes(classes: &[WitnessClass]) -> u64 {
    let of_class = |class: &WitnessClass| 4 * class.rows.capacity() + size_of::<WitnessClass>() + LIST_BYTES;
    (classes.iter().map(of_class).sum::<usize>() + LIST_BYTES) as u64
}

const LIST_BYTES: usize = 40;

impl<const W: usize> DescentState<W> {
    fn new() -> Self {
        let (level, next) = (ColumnBitsMap::default(), ColumnBitsMap::default());
        Self { level, candidates: Vec::new(), next, bytes: [0, 0], done: false }
    }
}

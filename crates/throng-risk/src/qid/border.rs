//! Both sides of the border at once, judged by witnesses first. The default.
//!
//! 1. *Descent*: level by level, every set whose subsets are all tentative non-QIDs is judged by the witnesses of those
//!    subsets ([`witnesses`](super::witnesses)): proved a QID, or tentative. The table itself is read for single columns, and where no class is
//!    small enough to be a witness.
//! 2. *Verification*, from the top: the maximal tentative sets are judged on the table. What is proved a non-QID settles
//!    all its subsets. What fails is a QID; the sets right below it that nothing else covers are judged next.
//!
//! Exact, because a tentative set becomes a non-QID only below a verified one, and a QID only by one of its classes.
//! Every minimal QID is met: its subsets are non-QIDs, so they are tentative, so it was a candidate of the descent.

use super::bits::{Bits, BitsMap, BitsSet, by_columns, joined};
use super::classes::TableClasses;
use super::question::{Borders, MOST_SETS, Progress, Run};
use super::witnesses::{Class, Scratch, Sight, Witnesses};
use crate::counting::cpu::in_threads;
use crate::counting::{AttributeSet, ComputeError};
use crate::multigrid::Attributes;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Candidates of the descent that one thread takes at once.
const SHARE: usize = 64;

/// On the coarse table of `attributes`, whose kept columns `witnesses` are about; `classes` gives them their rows.
pub(super) fn search(
    run: &Run<'_>,
    attributes: &Attributes,
    mut witnesses: Witnesses,
    classes: &TableClasses<'_>,
) -> Result<Borders, ComputeError> {
    let witnesses = &mut witnesses;
    match attributes.kept().len() {
        0..=64 => Search::<1>::new(run, attributes, classes).borders(witnesses),
        65..=128 => Search::<2>::new(run, attributes, classes).borders(witnesses),
        _ => Search::<16>::new(run, attributes, classes).borders(witnesses),
    }
}

/// Up to when the first descent goes, where there is a budget, since the search began.
const FIRST: Duration = Duration::from_millis(250);

/// Sets that are judged between two looks at the clock, where there is a budget.
const JUDGED: usize = 2048;

/// Bytes of a proved set: itself, in the answer, and its names in a report.
const PROVED_BYTES: u64 = 512;

/// Bytes of a set that waits to be judged.
const JUDGED_BYTES: u64 = 512;

/// One search over the kept columns of the coarse table.
struct Search<'a, const W: usize> {
    run: &'a Run<'a>,
    attributes: &'a Attributes,
    classes: &'a TableClasses<'a>,
    /// What the table has said about candidates.
    looked_at: BitsMap<W, Sight>,
    implied: Vec<Bits<W>>,
    /// Tentative and verified non-QIDs, without columns that others in the set imply. With a set it holds all its subsets.
    alive: BitsSet<W>,
    /// Proved, minimal or not.
    qids: Vec<Bits<W>>,
    verified: BitsSet<W>,
    complete: bool,
    out_of_memory: bool,
    evaluated: u64,
    pruned: u64,
}

/// How far the descent is.
struct Descent<const W: usize> {
    /// The tentative sets of one size with their witnesses.
    level: BitsMap<W, Vec<Class>>,
    /// Sets one larger that are not looked at yet.
    candidates: Vec<Bits<W>>,
    /// The tentative ones of those that are.
    next: BitsMap<W, Vec<Class>>,
    /// Memory of the witnesses of both.
    bytes: [u64; 2],
    done: bool,
}

/// What a look at candidates gave.
struct Sighted<const W: usize> {
    tentative: BitsMap<W, Vec<Class>>,
    qids: Vec<Bits<W>>,
    /// Candidates looked at: the first ones.
    taken: usize,
    /// Memory of the witnesses.
    bytes: u64,
}

impl<'a, const W: usize> Search<'a, W> {
    fn new(run: &'a Run<'a>, attributes: &'a Attributes, classes: &'a TableClasses<'a>) -> Self {
        let implied = |number| Bits::of(attributes.implied(number).iter().copied());
        Self {
            run,
            attributes,
            classes,
            looked_at: BitsMap::default(),
            implied: (0..attributes.kept().len()).map(implied).collect(),
            alive: BitsSet::default(),
            qids: Vec::new(),
            verified: BitsSet::default(),
            complete: true,
            out_of_memory: false,
            evaluated: 0,
            pruned: 0,
        }
    }

    /// Without a budget the descent goes to its end first. With one, descent and verification take turns, at times that
    /// double: whatever the budget is, the same is done in the same order up to its end, so a longer one proves no less.
    fn borders(mut self, witnesses: &mut Witnesses) -> Result<Borders, ComputeError> {
        let mut descent = self.begin(witnesses)?;
        let mut until = self.run.question.budget.map(|_| FIRST);
        loop {
            self.descend(&mut descent, witnesses, until)?;
            if descent.done {
                descent = Descent { done: true, ..Descent::new() };
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
            self.forget_failed(&mut descent);
            until = until.map(|until| until * 2);
        }
        self.pruned += self.alive.len().saturating_sub(self.verified.len()) as u64;
        Ok(self.found())
    }

    fn report(&self, open: usize) {
        let Self { evaluated, pruned, .. } = *self;
        (self.run.progress)(Progress { evaluated, pruned, found: self.qids.len(), open });
    }

    /// Bytes held, witnesses aside.
    fn bytes(&self) -> u64 {
        let proved = (self.qids.len() + self.verified.len()) as u64;
        proved * PROVED_BYTES + (self.alive.len() * 2 * size_of::<Bits<W>>()) as u64
    }

    /// Bytes that may still be taken.
    fn room(&self, descent: &Descent<W>) -> u64 {
        let candidates = (descent.candidates.len() * size_of::<Bits<W>>()) as u64;
        let held = self.bytes() + candidates + descent.bytes[0] + descent.bytes[1];
        self.run.question.memory.map_or(u64::MAX, |most| most.saturating_sub(held))
    }

    /// Single columns.
    fn begin(&mut self, witnesses: &mut Witnesses) -> Result<Descent<W>, ComputeError> {
        self.alive.insert(Bits::EMPTY);
        let singles: Vec<Bits<W>> = (0..self.attributes.kept().len()).map(|c| Bits::of([c])).collect();
        let sights = self.classes.of_columns(self.attributes.kept(), witnesses)?;
        let of_column = |set: Bits<W>, _: &mut Scratch| sights[set.last().expect("a column")].clone();
        let clock = self.run.clock;
        let sighted = self.sighted(&singles, 1, &of_column, &|_| clock.is_over());
        let mut descent = Descent::new();
        self.evaluated = sighted.taken as u64;
        if sighted.taken < singles.len() {
            self.complete = false;
            descent.done = true;
        }
        self.learn(&mut descent, sighted);
        Ok(descent)
    }

    /// Looks at the table for the candidates about which no class of a part says anything.
    fn look_where_nothing_is_seen(
        &mut self,
        descent: &Descent<W>,
        witnesses: &mut Witnesses,
    ) -> Result<(), ComputeError> {
        let unseen = |set: &&Bits<W>| set.iter().all(|c| descent.level[&set.without(c)].is_empty());
        let sets: Vec<Bits<W>> = descent.candidates.iter().filter(unseen).copied().collect();
        let originals: Vec<AttributeSet> = sets.iter().map(|set| self.attributes.original(set.iter())).collect();
        let clock = self.run.clock;
        let sights = self.classes.of_sets(&originals, witnesses, &|| clock.is_over())?;
        self.looked_at = sets.into_iter().zip(sights).collect();
        Ok(())
    }

    fn learn(&mut self, descent: &mut Descent<W>, sighted: Sighted<W>) {
        self.alive.extend(sighted.tentative.keys());
        self.qids.extend(sighted.qids);
        descent.next.extend(sighted.tentative);
        descent.bytes[1] += sighted.bytes;
        descent.candidates.drain(..sighted.taken.min(descent.candidates.len()));
    }

    /// Level by level, up to a time or the end.
    fn descend(
        &mut self,
        descent: &mut Descent<W>,
        witnesses: &mut Witnesses,
        until: Option<Duration>,
    ) -> Result<(), ComputeError> {
        let (clock, k) = (self.run.clock, self.run.question.k);
        while !descent.done && !clock.has_reached(until) && !clock.is_over() {
            if descent.candidates.is_empty() {
                self.next_level(descent);
                self.look_where_nothing_is_seen(descent, witnesses)?;
                continue;
            }
            let (level, witnesses, looked_at) = (&descent.level, &*witnesses, &self.looked_at);
            let of_parents = |set: Bits<W>, scratch: &mut Scratch| {
                if let Some(sight) = looked_at.get(&set) {
                    return sight.clone();
                }
                let classes = |c| level[&set.without(c)].iter().map(move |class| (class, c));
                let parents: Vec<(&Class, usize)> = set.iter().flat_map(classes).collect();
                witnesses.of_parents(&parents, k, scratch)
            };
            let room = self.room(descent);
            let stop = |bytes: u64| bytes > room || clock.has_reached(until) || clock.is_over();
            let sighted = self.sighted(&descent.candidates, SHARE, &of_parents, &stop);
            let is_full = sighted.bytes > room;
            self.pruned += sighted.qids.len() as u64;
            self.learn(descent, sighted);
            if is_full {
                self.cut_short(descent);
            }
        }
        Ok(())
    }

    /// Memory is used up: what is tentative so far is verified, and no more.
    fn cut_short(&mut self, descent: &mut Descent<W>) {
        (self.complete, self.out_of_memory, descent.done) = (false, true, true);
    }

    fn next_level(&mut self, descent: &mut Descent<W>) {
        descent.level = std::mem::take(&mut descent.next);
        descent.bytes = [descent.bytes[1], 0];
        let mut sets: Vec<Bits<W>> = descent.level.keys().copied().collect();
        by_columns(&mut sets);
        // Beside the candidates, the level's sets are held in a list and as keys.
        let bytes = size_of::<Bits<W>>() as u64;
        let room = (self.room(descent) / bytes).saturating_sub(3 * sets.len() as u64);
        let most = usize::try_from(room).unwrap_or(usize::MAX).min(MOST_SETS);
        let clock = self.run.clock;
        match joined(&sets, most, &|| clock.is_over()) {
            Some(candidates) => descent.candidates = candidates,
            // The time: the verification sees it too.
            None if clock.is_over() => (self.complete, descent.done) = (false, true),
            None => self.cut_short(descent),
        }
        if sets.first().is_some_and(|set| set.len() == 1) {
            descent.candidates.retain(|set| set.iter().all(|a| self.implied[a].minus(set) == self.implied[a]));
        }
        self.report(descent.candidates.len());
        descent.done |= descent.candidates.is_empty();
    }

    /// What the verification has proved to be QIDs since is no part of larger sets.
    fn forget_failed(&self, descent: &mut Descent<W>) {
        descent.level.retain(|set, _| self.alive.contains(set));
        descent.next.retain(|set, _| self.alive.contains(set));
        descent.candidates.retain(|set| self.has_alive_parts(*set));
    }

    fn has_alive_parts(&self, set: Bits<W>) -> bool {
        set.iter().all(|c| self.alive.contains(&set.without(c)))
    }

    /// The tentative ones of some candidates with their witnesses, and the QIDs. `stop` is told the bytes of the former.
    fn sighted(
        &self,
        candidates: &[Bits<W>],
        share: usize,
        sight: &(impl Fn(Bits<W>, &mut Scratch) -> Sight + Sync),
        stop: &(impl Fn(u64) -> bool + Sync),
    ) -> Sighted<W> {
        let found = Mutex::new((BitsMap::default(), Vec::new()));
        let (next, bytes) = (AtomicUsize::new(0), AtomicU64::new(0));
        let shares: Vec<&[Bits<W>]> = candidates.chunks(share).collect();
        let work = || {
            let mut scratch = Scratch::default();
            while !stop(bytes.load(Ordering::Relaxed)) {
                let Some(share) = shares.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let sights: Vec<Sight> = share.iter().map(|set| sight(*set, &mut scratch)).collect();
                let mut found = found.lock().expect("no search panics with the lock");
                for (set, sight) in share.iter().zip(sights) {
                    match sight {
                        Sight::Qid => {
                            bytes.fetch_add(PROVED_BYTES, Ordering::Relaxed);
                            found.1.push(*set);
                        }
                        Sight::Tentative(classes) => {
                            bytes.fetch_add(bytes_of(&classes) + 4 * size_of::<Bits<W>>() as u64, Ordering::Relaxed);
                            found.0.insert(*set, classes);
                        }
                    }
                }
            }
        };
        in_threads(self.run.question.threads.clamp(1, shares.len().max(1)), &work);
        let (tentative, qids) = found.into_inner().expect("no search panicked");
        let taken = (next.into_inner() * share).min(candidates.len());
        Sighted { tentative, qids, taken, bytes: bytes.into_inner() }
    }

    /// Judges the maximal tentative sets, and what is right below those that fail. False where time was up before.
    fn verify(&mut self, until: Option<Duration>) -> Result<bool, ComputeError> {
        let Run { counter, question, clock, .. } = *self.run;
        let mut pending = Vec::new();
        for (at, set) in self.alive.iter().enumerate() {
            if at % 1024 == 1023 && clock.is_over() {
                return Ok(false);
            }
            if !self.verified.contains(set) && self.is_maximal(*set) {
                pending.push(*set);
            }
        }
        by_columns(&mut pending);
        while !pending.is_empty() {
            if clock.is_over() || clock.has_reached(until) {
                return Ok(false);
            }
            self.report(pending.len());
            let room = self.run.question.memory.map_or(u64::MAX, |most| most.saturating_sub(self.bytes()));
            let room = usize::try_from(room / JUDGED_BYTES).unwrap_or(usize::MAX).max(JUDGED);
            let at_once = if question.budget.is_some() { JUDGED.max(counter.at_once()) } else { room };
            let rest = pending.split_off(at_once.min(pending.len()));
            let sets: Vec<AttributeSet> = pending.iter().map(|set| self.attributes.original(set.iter())).collect();
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
            let below: BitsSet<W> = failed.iter().flat_map(|set| self.right_below(*set)).collect();
            self.qids.extend(failed);
            if stopped {
                return Ok(false);
            }
            // A set becomes maximal with the last set above it that fails, so it is met once.
            let mut below: Vec<Bits<W>> = below.into_iter().filter(|set| self.waits(set)).collect();
            by_columns(&mut below);
            pending = rest;
            pending.extend(below);
        }
        Ok(true)
    }

    fn waits(&self, set: &Bits<W>) -> bool {
        self.alive.contains(set) && !self.verified.contains(set) && self.is_maximal(*set)
    }

    /// A set with all the columns that it implies.
    fn closed(&self, set: Bits<W>) -> Bits<W> {
        set.iter().fold(set, |closed, c| closed.union(&self.implied[c]))
    }

    /// A set without the columns that others in it imply.
    fn generator(&self, set: Bits<W>) -> Bits<W> {
        set.iter().fold(set, |left, c| left.minus(&self.implied[c]))
    }

    /// Is no larger set alive?
    fn is_maximal(&self, set: Bits<W>) -> bool {
        let closed = self.closed(set);
        let grown = |c: usize| self.alive.contains(&set.minus(&self.implied[c]).with(c));
        (0..self.implied.len()).all(|c| closed.contains(c) || !grown(c))
    }

    /// The largest sets below one.
    fn right_below(&self, set: Bits<W>) -> Vec<Bits<W>> {
        let closed = self.closed(set);
        set.iter().map(|c| self.generator(closed.without(c))).collect()
    }

    /// A set that lacks a part among the living is above a proved QID, and the others are above none: with a set, `alive`
    /// holds all that is below it.
    fn found(mut self) -> Borders {
        let mut borders = Borders::settled(vec![], vec![]);
        (borders.complete, borders.out_of_memory) = (self.complete, self.out_of_memory);
        (borders.evaluated, borders.pruned) = (self.evaluated, self.pruned);
        let qids = std::mem::take(&mut self.qids);
        let minimal = qids.into_iter().filter(|set| self.has_alive_parts(*set));
        borders.minimal_qids = minimal.flat_map(|set| self.attributes.minimal(set.iter())).collect();
        let below = self.below_verified();
        let largest = self.verified.iter().filter(|set| !below.contains(*set));
        borders.maximal_non_qids = largest.map(|set| self.attributes.maximal(set.iter())).collect();
        borders.minimal_qids.sort_unstable();
        borders.maximal_non_qids.sort_unstable();
        borders
    }

    /// What lies below verified sets, as far as others that were verified before may lie there.
    fn below_verified(&self) -> BitsSet<W> {
        let mut below = BitsSet::default();
        let earlier = self.verified.iter().filter(|set| !self.is_maximal(**set));
        let columns = |set: &Bits<W>| self.closed(*set).len();
        let Some(smallest) = earlier.map(columns).min() else { return below };
        let mut open: Vec<Bits<W>> = self.verified.iter().copied().collect();
        while let Some(set) = open.pop() {
            let parts = self.right_below(set).into_iter().filter(|part| columns(part) >= smallest);
            open.extend(parts.filter(|part| below.insert(*part)));
        }
        below
    }
}

/// Memory of witnesses, with what their lists take.
fn bytes_of(classes: &[Class]) -> u64 {
    let of_class = |class: &Class| 4 * class.rows.capacity() + size_of::<Class>() + LIST_BYTES;
    (classes.iter().map(of_class).sum::<usize>() + LIST_BYTES) as u64
}

/// What a list takes beside its elements.
const LIST_BYTES: usize = 40;

impl<const W: usize> Descent<W> {
    fn new() -> Self {
        let (level, next) = (BitsMap::default(), BitsMap::default());
        Self { level, candidates: Vec::new(), next, bytes: [0, 0], done: false }
    }
}

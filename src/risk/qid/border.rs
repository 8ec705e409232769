//! Both sides of the border at once, judged by witnesses first. The default.
//!
//! 1. *Descent*: level by level, every set whose subsets are all tentative non-QIDs is judged by the witnesses of those
//!    subsets ([`witnesses`](super::witnesses)): proved a QID, or tentative. The table itself is read for single columns only.
//! 2. *Verification*, from the top: the maximal tentative sets are judged on the table. What is proved a non-QID settles
//!    all its subsets. What fails is a QID; the sets right below it that nothing else covers are judged next.
//!
//! Exact, because a tentative set becomes a non-QID only below a verified one, and a QID only by one of its classes.
//! Every minimal QID is met: its subsets are non-QIDs, so they are tentative, so it was a candidate of the descent.

use super::bits::{Bits, BitsMap, BitsSet, by_columns, joined};
use super::witnesses::{Class, Scratch, Sight, Witnesses};
use super::{Borders, Progress, Run};
use crate::risk::compute::cpu::{Matrix, in_threads};
use crate::risk::compute::{AttributeSet, ComputeError};
use crate::risk::multigrid::Attributes;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Candidates of the descent that one thread takes at once.
const SHARE: usize = 64;

/// `aggregate`: on the coarse table.
pub(super) fn search(run: &Run<'_>, matrix: &Matrix, aggregate: bool) -> Result<Borders, ComputeError> {
    let wanted = &run.question.columns;
    let attributes = if aggregate { Attributes::of(run.table, wanted) } else { Attributes::apart(run.table, wanted) };
    match attributes.kept().len() {
        0..=64 => Search::<1>::new(run, matrix, &attributes).borders(),
        65..=128 => Search::<2>::new(run, matrix, &attributes).borders(),
        _ => Search::<16>::new(run, matrix, &attributes).borders(),
    }
}

/// One search over the kept columns of the coarse table.
struct Search<'a, const W: usize> {
    run: &'a Run<'a>,
    matrix: &'a Matrix,
    attributes: &'a Attributes,
    implied: Vec<Bits<W>>,
    /// Tentative and verified non-QIDs, without columns that others in the set imply.
    alive: BitsSet<W>,
    /// Proved, minimal or not.
    qids: Vec<Bits<W>>,
    verified: Vec<Bits<W>>,
    complete: bool,
    evaluated: u64,
    pruned: u64,
}

impl<'a, const W: usize> Search<'a, W> {
    fn new(run: &'a Run<'a>, matrix: &'a Matrix, attributes: &'a Attributes) -> Self {
        let implied = |number| Bits::of(attributes.implied(number).iter().copied());
        Self {
            run,
            matrix,
            attributes,
            implied: (0..attributes.kept().len()).map(implied).collect(),
            alive: BitsSet::default(),
            qids: Vec::new(),
            verified: Vec::new(),
            complete: true,
            evaluated: 0,
            pruned: 0,
        }
    }

    fn borders(mut self) -> Result<Borders, ComputeError> {
        self.descend();
        self.verify()?;
        Ok(self.found())
    }

    fn report(&self, open: usize) {
        let Self { evaluated, pruned, .. } = *self;
        (self.run.progress)(Progress { evaluated, pruned, found: self.qids.len(), open });
    }

    fn descend(&mut self) {
        let witnesses = Witnesses::new(self.matrix, self.attributes.kept());
        let k = self.run.question.k;
        self.alive.insert(Bits::EMPTY);
        let singles: Vec<Bits<W>> = (0..self.attributes.kept().len()).map(|c| Bits::of([c])).collect();
        let of_column =
            |set: Bits<W>, scratch: &mut Scratch| witnesses.of_column(set.last().expect("a column"), k, scratch);
        let (mut level, qids) = self.sighted(&singles, 1, &of_column);
        (self.evaluated, self.qids) = (singles.len() as u64, qids);
        if self.run.clock.is_half_over() {
            self.complete = false;
            self.alive.extend(level.keys());
            return;
        }
        while !level.is_empty() {
            let mut sets: Vec<Bits<W>> = level.keys().copied().collect();
            by_columns(&mut sets);
            self.alive.extend(&sets);
            let Some(mut candidates) = joined(&sets) else {
                self.complete = false;
                break;
            };
            if sets[0].len() == 1 {
                candidates.retain(|set| set.iter().all(|a| self.implied[a].minus(set) == self.implied[a]));
            }
            self.report(candidates.len());
            let of_parents = |set: Bits<W>, scratch: &mut Scratch| {
                let classes = |c| level[&set.without(c)].iter().map(move |class| (class, c));
                let parents: Vec<(&Class, usize)> = set.iter().flat_map(classes).collect();
                witnesses.of_parents(&parents, k, scratch)
            };
            let (next, qids) = self.sighted(&candidates, SHARE, &of_parents);
            self.pruned += qids.len() as u64;
            self.qids.extend(qids);
            if self.run.clock.is_half_over() {
                self.complete = false;
                self.alive.extend(next.keys());
                break;
            }
            level = next;
        }
    }

    /// The tentative ones of some candidates with their witnesses, and the QIDs.
    fn sighted(
        &self,
        candidates: &[Bits<W>],
        share: usize,
        sight: &(impl Fn(Bits<W>, &mut Scratch) -> Sight + Sync),
    ) -> (BitsMap<W, Vec<Class>>, Vec<Bits<W>>) {
        let found = Mutex::new((BitsMap::default(), Vec::new()));
        let next = AtomicUsize::new(0);
        let shares: Vec<&[Bits<W>]> = candidates.chunks(share).collect();
        let clock = self.run.clock;
        let work = || {
            let mut scratch = Scratch::default();
            while let Some(share) = shares.get(next.fetch_add(1, Ordering::Relaxed)) {
                if clock.is_half_over() {
                    break;
                }
                let sights: Vec<Sight> = share.iter().map(|set| sight(*set, &mut scratch)).collect();
                let mut found = found.lock().expect("no search panics with the lock");
                for (set, sight) in share.iter().zip(sights) {
                    match sight {
                        Sight::Qid => found.1.push(*set),
                        Sight::Tentative(classes) => {
                            found.0.insert(*set, classes);
                        }
                    }
                }
            }
        };
        in_threads(self.run.question.threads.clamp(1, shares.len().max(1)), &work);
        found.into_inner().expect("no search panicked")
    }

    fn verify(&mut self) -> Result<(), ComputeError> {
        let Run { counter, question, clock, .. } = *self.run;
        let mut pending: Vec<Bits<W>> = self.alive.iter().copied().filter(|set| self.is_maximal(*set)).collect();
        while !pending.is_empty() {
            self.report(pending.len());
            by_columns(&mut pending);
            let sets: Vec<AttributeSet> = pending.iter().map(|set| self.attributes.original(set.iter())).collect();
            let verdicts = counter.judge(&sets, question.k, &|| clock.is_over())?;
            let (mut failed, mut stopped) = (Vec::new(), false);
            for (set, verdict) in pending.iter().zip(verdicts) {
                self.evaluated += u64::from(verdict.is_some());
                match verdict {
                    None => stopped = true,
                    Some(false) => self.verified.push(*set),
                    Some(true) => {
                        self.alive.remove(set);
                        failed.push(*set);
                    }
                }
            }
            let below: BitsSet<W> = failed.iter().flat_map(|set| self.right_below(*set)).collect();
            self.qids.extend(failed);
            if stopped {
                self.complete = false;
                break;
            }
            pending = below.into_iter().filter(|set| self.alive.contains(set) && self.is_maximal(*set)).collect();
        }
        self.pruned += (self.alive.len() - self.verified.len().min(self.alive.len())) as u64;
        Ok(())
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

    fn found(mut self) -> Borders {
        let mut borders = Borders::settled(vec![], vec![]);
        (borders.complete, borders.evaluated, borders.pruned) = (self.complete, self.evaluated, self.pruned);
        let qids = std::mem::take(&mut self.qids);
        let minimal: Vec<Bits<W>> = if self.complete {
            qids.into_iter().filter(|set| set.iter().all(|c| self.alive.contains(&set.without(c)))).collect()
        } else {
            let proved: BitsSet<W> = qids.iter().copied().collect();
            qids.into_iter().filter(|set| !has_smaller(*set, &proved)).collect()
        };
        let Self { attributes, verified, .. } = &self;
        borders.minimal_qids = minimal.into_iter().flat_map(|set| attributes.minimal(set.iter())).collect();
        borders.maximal_non_qids = verified.iter().map(|set| attributes.maximal(set.iter())).collect();
        borders.minimal_qids.sort_unstable();
        borders.maximal_non_qids.sort_unstable();
        borders
    }
}

/// Does a proper subset of the set belong to `proved`? Sets are small where a search was cut short early.
fn has_smaller<const W: usize>(set: Bits<W>, proved: &BitsSet<W>) -> bool {
    proved.iter().any(|other| *other != set && other.is_subset(&set))
}

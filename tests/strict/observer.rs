//! An observer who excludes raw tuples, written from the definition (docs/methods.md §11.4) with sets and loops, and
//! sharing nothing with the treatment. He knows the rule, every ladder, every fragment that leaves, and the raw tuples
//! of what left in earlier batches; of a batch itself he knows only what it publishes.

use std::collections::{BTreeMap, BTreeSet};

pub type Tuple = Vec<String>;

/// A fragment as the custodian knows it.
#[derive(Clone, Debug)]
pub struct Fragment {
    pub class: Tuple,
    pub raw: Tuple,
    pub subject: u64,
}

/// What one batch publishes in one group.
#[derive(Clone, Debug)]
pub struct Published {
    /// Batch clock in seconds.
    pub time: u64,
    pub ladder: Vec<Vec<u8>>,
    pub fragments: Vec<Fragment>,
}

/// The rule that the daemon is known to follow: when does a class take one more record, of somebody new?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// When k subjects have been released in it.
    Ladder,
    /// When k subjects of the batch itself are in it, as those are who leave in it: what was released before is no matter.
    Batch,
    /// When k subjects, the new one counted, have been released in it from raw tuples that cannot be excluded.
    Strict,
}

/// What he found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub fragments: usize,
    pub generalized: usize,
    /// Generalized fragments of which only one raw tuple is left.
    pub pinned: usize,
    /// Fragments whose remaining raw tuples have fewer than k subjects.
    pub below_k: usize,
    /// Both.
    pub pinned_below_k: usize,
    /// Those of them where the raw tuple that is left is the true one.
    pub found_out: usize,
}

impl Findings {
    pub fn add(&mut self, other: Self) {
        self.fragments += other.fragments;
        self.generalized += other.generalized;
        self.pinned += other.pinned;
        self.below_k += other.below_k;
        self.pinned_below_k += other.pinned_below_k;
        self.found_out += other.found_out;
    }
}

pub struct Observer<'a> {
    pub k: usize,
    pub rule: Rule,
    /// Seconds for which a release supports others.
    pub window: u64,
    /// The hierarchies: a raw tuple at some levels.
    pub generalize: &'a dyn Fn(&[String], &[u8]) -> Tuple,
    /// Whether a class may leave for the people who are registered.
    pub registered: &'a dyn Fn(&Tuple) -> bool,
}

impl Observer<'_> {
    /// Watches a stream. Batches for which `judged` says no are history only.
    pub fn watch(&self, stream: &[Published], judged: impl Fn(usize) -> bool) -> Findings {
        let mut findings = Findings::default();
        let mut past: Vec<(u64, &Fragment)> = Vec::new();
        for (number, batch) in stream.iter().enumerate() {
            past.retain(|(time, _)| batch.time + 1 - time <= self.window);
            if judged(number) {
                findings.add(self.judge(batch, &past));
            }
            past.extend(batch.fragments.iter().map(|f| (batch.time, f)));
        }
        findings
    }

    fn judge(&self, batch: &Published, past: &[(u64, &Fragment)]) -> Findings {
        let published: BTreeSet<&Tuple> = batch.fragments.iter().map(|f| &f.class).collect();
        let mut history: BTreeMap<&Tuple, Vec<&Fragment>> = BTreeMap::new();
        for (_, fragment) in past {
            history.entry(&fragment.class).or_default().push(fragment);
        }
        let candidates: BTreeSet<&Tuple> =
            past.iter().map(|(_, f)| &f.raw).chain(batch.fragments.iter().map(|f| &f.raw)).collect();
        let exits = self.exits(batch, &candidates, &published, &history);

        let mut findings = Findings::default();
        let mut answers: BTreeMap<(&Tuple, usize), (BTreeSet<&Tuple>, usize)> = BTreeMap::new();
        for fragment in &batch.fragments {
            let node = batch
                .ladder
                .iter()
                .position(|levels| (self.generalize)(&fragment.raw, levels) == fragment.class)
                .expect("a fragment is at some node");
            let (possible, subjects) = answers.entry((&fragment.class, node)).or_insert_with(|| {
                let possible: BTreeSet<&Tuple> = candidates
                    .iter()
                    .copied()
                    .filter(|raw| (self.generalize)(raw, &batch.ladder[node]) == fragment.class)
                    .filter(|raw| exits.get(raw).is_none_or(|&exit| exit >= node))
                    .collect();
                let here = batch.fragments.iter().filter(|f| f.class == fragment.class);
                let before = history.get(&fragment.class).filter(|_| self.rule != Rule::Batch);
                let before = before.into_iter().flatten().copied();
                let crowd: BTreeSet<u64> =
                    here.chain(before).filter(|f| possible.contains(&f.raw)).map(|f| f.subject).collect();
                (possible, crowd.len())
            });
            let generalized = fragment.class != fragment.raw;
            let (pinned, below_k) = (generalized && possible.len() == 1, *subjects < self.k);
            findings.fragments += 1;
            findings.generalized += usize::from(generalized);
            findings.pinned += usize::from(pinned);
            findings.below_k += usize::from(below_k);
            findings.pinned_below_k += usize::from(pinned && below_k);
            findings.found_out += usize::from(pinned && below_k && possible.contains(&fragment.raw));
        }
        findings
    }

    /// The node at which a record with each raw tuple would have left, for those that would have.
    fn exits<'t>(
        &self,
        batch: &Published,
        candidates: &BTreeSet<&'t Tuple>,
        published: &BTreeSet<&Tuple>,
        history: &BTreeMap<&Tuple, Vec<&Fragment>>,
    ) -> BTreeMap<&'t Tuple, usize> {
        let mut exits: BTreeMap<&Tuple, usize> = BTreeMap::new();
        for (node, levels) in batch.ladder.iter().enumerate() {
            let staying: BTreeSet<&Tuple> = candidates.iter().copied().filter(|raw| !exits.contains_key(raw)).collect();
            let mut takes: BTreeMap<Tuple, bool> = BTreeMap::new();
            for &raw in &staying {
                let class = (self.generalize)(raw, levels);
                let taken = *takes.entry(class).or_insert_with_key(|class| {
                    if class.iter().all(|cell| cell == "\"*\"") || !(self.registered)(class) {
                        return false;
                    }
                    let before = || history.get(class).into_iter().flatten();
                    let known: BTreeSet<u64> = match self.rule {
                        Rule::Batch => BTreeSet::new(),
                        Rule::Ladder => before().map(|f| f.subject).collect(),
                        Rule::Strict => before().filter(|f| staying.contains(&f.raw)).map(|f| f.subject).collect(),
                    };
                    let enough = if self.rule == Rule::Ladder { self.k } else { self.k - 1 };
                    published.contains(class) || known.len() >= enough
                });
                if taken {
                    exits.insert(raw, node);
                }
            }
        }
        exits
    }
}

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
    pub ladder: Vec<Vec<u8>>,
    pub fragments: Vec<Fragment>,
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

/// He knows that a class takes one more record when k subjects of the batch itself are in it, as those are who leave in it.
pub struct Observer<'a> {
    pub k: usize,
    /// The hierarchies: a raw tuple at some levels.
    pub generalize: &'a dyn Fn(&[String], &[u8]) -> Tuple,
}

impl Observer<'_> {
    /// Watches a stream. Batches for which `judged` says no are history only.
    pub fn watch(&self, stream: &[Published], judged: impl Fn(usize) -> bool) -> Findings {
        let mut findings = Findings::default();
        let mut past: Vec<&Fragment> = Vec::new();
        for (number, batch) in stream.iter().enumerate() {
            if judged(number) {
                findings.add(self.judge(batch, &past));
            }
            past.extend(&batch.fragments);
        }
        findings
    }

    fn judge(&self, batch: &Published, past: &[&Fragment]) -> Findings {
        let published: BTreeSet<&Tuple> = batch.fragments.iter().map(|f| &f.class).collect();
        let candidates: BTreeSet<&Tuple> =
            past.iter().map(|f| &f.raw).chain(batch.fragments.iter().map(|f| &f.raw)).collect();
        let exits = self.exits(batch, &candidates, &published);

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
                let crowd: BTreeSet<u64> = here.filter(|f| possible.contains(&f.raw)).map(|f| f.subject).collect();
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
    ) -> BTreeMap<&'t Tuple, usize> {
        let mut exits: BTreeMap<&Tuple, usize> = BTreeMap::new();
        for (node, levels) in batch.ladder.iter().enumerate() {
            for &raw in candidates {
                let class = (self.generalize)(raw, levels);
                let says_nothing = class.iter().all(|cell| cell == "\"*\"");
                if !says_nothing && published.contains(&class) {
                    exits.entry(raw).or_insert(node);
                }
            }
        }
        exits
    }
}

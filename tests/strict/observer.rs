//! Reference observer that excludes raw tuples by definition (docs/internals/methods.md §11.4). It knows the rule,
//! every ladder, all released fragments and the raw tuples of earlier batches.

use std::collections::{BTreeMap, BTreeSet};

pub type Tuple = Vec<String>;

#[derive(Clone, Debug)]
pub struct Fragment {
    pub class: Tuple,
    pub raw: Tuple,
    pub subject: u64,
}

#[derive(Clone, Debug)]
pub struct Published {
    pub ladder: Vec<Vec<u8>>,
    pub fragments: Vec<Fragment>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub fragments: usize,
    pub generalized: usize,
    /// Generalized fragments with only one possible raw tuple.
    pub pinned: usize,
    /// Fragments with fewer than k subjects among their possible raw tuples.
    pub below_k: usize,
    pub pinned_below_k: usize,
    /// Fragments of `pinned_below_k` with the correct raw tuple.
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

/// A class admits a record if it contains k released subjects of the batch.
pub struct Observer<'a> {
    pub k: usize,
    pub generalize: &'a dyn Fn(&[String], &[u8]) -> Tuple,
}

impl Observer<'_> {
    /// Batches for which `judged` returns false are only history.
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

    /// Returns the node at which a record with each raw tuple would be released.
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

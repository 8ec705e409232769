//! Ladders of generalization nodes: the complete lattice where it is small, a best-first choice where it is not.

use super::sample::{PlannerSettings, Sample};
use super::scorer::Scorer;
use crate::anonymity::plan::Node;
use ordered_float::OrderedFloat;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use throng_core::values::codebook::{ABSENT, Codebook, NULL};

/// Rows that candidates are scored on, and how many candidates may be scored: together the cost of a plan.
const SCORING_ROWS: usize = 1500;
const EVALUATIONS: usize = 3000;

/// The lattice of one group as the sample sees it: the levels of each attribute, and mean loss by attribute and level.
struct Lattice {
    /// By attribute the levels at which it may leave, ascending: all, unless it is an identifier or its treatment knows fewer.
    levels: Vec<Vec<u8>>,
    /// Everything suppressed: no node of a ladder.
    nothing: Vec<u8>,
    mean: Vec<Vec<f32>>,
}

impl Lattice {
    fn new(attributes: &[usize], identifiers: &[usize], sample: &Sample, books: &[Codebook]) -> Self {
        let nothing: Vec<u8> =
            attributes.iter().map(|&a| u8::try_from(books[a].levels() - 1).expect("hierarchies are low")).collect();
        let levels = attributes.iter().zip(&nothing).map(|(a, &top)| {
            let treatment = books[*a].attribute().treatment;
            let may_be = |level: &u8| treatment.allows(usize::from(*level), usize::from(top));
            if identifiers.contains(a) { vec![top] } else { (0..=top).filter(may_be).collect() }
        });
        let mean = attributes
            .iter()
            .zip(&nothing)
            .map(|(&a, &top)| {
                let expected = books[a].attribute().hierarchy.expected_losses();
                (0..=top)
                    .map(|level| {
                        let losses = books[a].losses(level as usize);
                        let codes = sample.column(a).iter().filter(|c| !matches!(**c, ABSENT | NULL));
                        let (sum, n) =
                            codes.fold((0.0f64, 0u32), |(s, n), c| (s + f64::from(losses[*c as usize]), n + 1));
                        if n == 0 { expected[level as usize] as f32 } else { (sum / f64::from(n)) as f32 }
                    })
                    .collect()
            })
            .collect();
        Self { levels: levels.collect(), nothing, mean }
    }

    /// Number of nodes, or `None` beyond `limit`.
    fn size(&self, limit: usize) -> Option<usize> {
        let mut levels = self.levels.iter();
        levels.try_fold(1usize, |size, levels| size.checked_mul(levels.len()).filter(|s| *s <= limit))
    }

    fn node(&self, levels: Vec<u8>) -> Node {
        let sum: f32 = levels.iter().zip(&self.mean).map(|(&l, mean)| mean[l as usize]).sum();
        Node { loss: sum / levels.len() as f32, levels }
    }

    /// The finest node.
    fn lowest(&self) -> Vec<u8> {
        self.levels.iter().map(|levels| levels[0]).collect()
    }

    /// The coarsest node.
    fn highest(&self) -> Vec<u8> {
        self.levels.iter().map(|levels| levels[levels.len() - 1]).collect()
    }

    fn all_nodes(&self) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut at = vec![0; self.levels.len()];
        loop {
            let levels: Vec<u8> = self.levels.iter().zip(&at).map(|(levels, &at)| levels[at]).collect();
            if levels != self.nothing {
                nodes.push(self.node(levels));
            }
            let Some(next) = (0..at.len()).rev().find(|&i| at[i] + 1 < self.levels[i].len()) else {
                return nodes;
            };
            at[next] += 1;
            at[next + 1..].fill(0);
        }
    }

    /// One attribute at one level, all others as coarse as they may be: the last resort before nothing leaves.
    fn single_attribute_nodes(&self) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for (i, own) in self.levels.iter().enumerate() {
            for &level in &own[..own.len() - 1] {
                let mut levels = self.highest();
                levels[i] = level;
                out.push(levels);
            }
        }
        out
    }

    /// Nodes that differ by one step of one attribute.
    fn neighbours(&self, levels: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for (i, own) in self.levels.iter().enumerate() {
            let Some(at) = own.iter().position(|&level| level == levels[i]) else { continue };
            for at in [at.checked_sub(1), at.checked_add(1)].into_iter().flatten() {
                if let Some(&level) = own.get(at) {
                    let mut next = levels.to_vec();
                    next[i] = level;
                    if next != self.nothing {
                        out.push(next);
                    }
                }
            }
        }
        out
    }
}

/// The ladder of the quasi attributes `attributes`: nodes by rising mean loss, without the node that suppresses all.
pub fn build_ladder(
    attributes: &[usize],
    identifiers: &[usize],
    sample: &Sample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> Vec<Node> {
    if attributes.is_empty() {
        return Vec::new();
    }
    let lattice = Lattice::new(attributes, identifiers, sample, books);
    let mut nodes = if lattice.size(settings.ladder.complete).is_some() {
        lattice.all_nodes()
    } else {
        choose(&lattice, attributes, sample, books, settings)
    };
    nodes.sort_by(|a, b| a.loss.total_cmp(&b.loss).then_with(|| a.levels.cmp(&b.levels)));
    nodes
}

/// A candidate node by its gain, which may be out of date, but never too small; and the number of nodes chosen when the gain was
/// computed.
type Candidate = (OrderedFloat<f64>, Reverse<Vec<u8>>, usize);

/// Greedy choice of nodes (a submodular cover, evaluated lazily) by expected loss per supported record: a row is worth one
/// minus its loss at the best chosen node where its class has support in the sample; the next node is the one that adds
/// most. How rare a class may be is not known when the plan is made: what a young ledger or a small batch does not support
/// yet, an old one does. So worth is summed over several thresholds, each with a best node of its own. Neighbours of
/// chosen nodes become candidates, so the search starts from single attributes and grows where rows have crowds.
fn choose(
    lattice: &Lattice,
    attributes: &[usize],
    sample: &Sample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> Vec<Node> {
    let mut scorer = Scorer::new(attributes, sample, books, settings, SCORING_ROWS);
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let mut heap: BinaryHeap<Candidate> = BinaryHeap::new();
    let mut chosen: Vec<Vec<u8>> = Vec::new();
    let mut evaluations = 0;
    let mut last_resort = lattice.single_attribute_nodes();
    last_resort.push(lattice.lowest());
    let mut starts = last_resort.clone();
    // A diagonal through the lattice: the only shape there is when no data has been seen.
    for step in 1..8 {
        starts.push(lattice.levels.iter().map(|levels| levels[(levels.len() - 1) * step / 8]).collect());
    }
    if sample.rows() == 0 {
        starts.sort();
        starts.dedup();
        return starts.into_iter().filter(|l| *l != lattice.nothing).map(|l| lattice.node(l)).collect();
    }
    for levels in starts {
        if levels != lattice.nothing && seen.insert(levels.clone()) {
            evaluations += 1;
            heap.push((OrderedFloat(scorer.gain(&levels)), Reverse(levels), 0));
        }
    }
    while chosen.len() < settings.ladder.chosen {
        let Some((mut gain, Reverse(best), at)) = heap.pop() else { break };
        if at != chosen.len() {
            if evaluations >= EVALUATIONS {
                break;
            }
            evaluations += 1;
            gain = OrderedFloat(scorer.gain(&best));
            if heap.peek().is_some_and(|next| next.0 > gain) {
                heap.push((gain, Reverse(best), chosen.len()));
                continue;
            }
        }
        if gain.0 <= 0.0 {
            break;
        }
        scorer.choose(&best);
        let neighbours = lattice.neighbours(&best);
        chosen.push(best);
        for levels in neighbours {
            if evaluations < EVALUATIONS && seen.insert(levels.clone()) {
                evaluations += 1;
                heap.push((OrderedFloat(scorer.gain(&levels)), Reverse(levels), chosen.len()));
            }
        }
    }
    chosen.extend(last_resort);
    chosen.sort();
    chosen.dedup();
    chosen.into_iter().filter(|l| *l != lattice.nothing).map(|l| lattice.node(l)).collect()
}

/// The mean loss of a cell that the sample expects: each row takes the first node of the ladder at which its class has
/// support, and loses all where there is none. The ledger, which remembers more than a sample, makes the true loss smaller.
pub fn expected_loss(
    attributes: &[usize],
    ladder: &[Node],
    sample: &Sample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> f64 {
    if attributes.is_empty() || sample.rows() == 0 {
        return 0.0;
    }
    let mut scorer = Scorer::new(attributes, sample, books, settings, sample.rows());
    let rows = scorer.rows();
    let mut open: Vec<u32> = (0..).take(rows).collect();
    let mut loss = 0.0;
    for node in ladder {
        if open.is_empty() {
            break;
        }
        loss += scorer.settle(&node.levels, &mut open);
    }
    (loss + open.len() as f64) / rows as f64
}

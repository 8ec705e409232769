//! Ladders: small lattices, otherwise a best-first selection.

use super::node_scorer::NodeScorer;
use super::planner_sample::{PlannerSample, PlannerSettings};
use ordered_float::OrderedFloat;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use throng_core::plan::LadderNode;
use throng_core::values::codebook::{ABSENT, Codebook, NULL};

/// Together the cost of a plan.
const SCORING_ROWS: usize = 1500;
const MAX_LADDER_EVALUATIONS: usize = 3000;

struct LadderLattice {
    /// Only the top for identifiers.
    levels: Vec<Vec<u8>>,
    suppress_all_levels: Vec<u8>,
    mean_losses: Vec<Vec<f32>>,
}

impl LadderLattice {
    fn new(attributes: &[usize], identifiers: &[usize], sample: &PlannerSample, books: &[Codebook]) -> Self {
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
        Self { levels: levels.collect(), suppress_all_levels: nothing, mean_losses: mean }
    }

    /// `None` above `limit`.
    fn size(&self, limit: usize) -> Option<usize> {
        let mut levels = self.levels.iter();
        levels.try_fold(1usize, |size, levels| size.checked_mul(levels.len()).filter(|s| *s <= limit))
    }

    fn node(&self, levels: Vec<u8>) -> LadderNode {
        let sum: f32 = levels.iter().zip(&self.mean_losses).map(|(&l, mean)| mean[l as usize]).sum();
        LadderNode { loss: sum / levels.len() as f32, levels }
    }

    fn finest_node_levels(&self) -> Vec<u8> {
        self.levels.iter().map(|levels| levels[0]).collect()
    }

    fn coarsest_node_levels(&self) -> Vec<u8> {
        self.levels.iter().map(|levels| levels[levels.len() - 1]).collect()
    }

    fn all_nodes(&self) -> Vec<LadderNode> {
        let mut nodes = Vec::new();
        let mut at = vec![0; self.levels.len()];
        loop {
            let levels: Vec<u8> = self.levels.iter().zip(&at).map(|(levels, &at)| levels[at]).collect();
            if levels != self.suppress_all_levels {
                nodes.push(self.node(levels));
            }
            let Some(next) = (0..at.len()).rev().find(|&i| at[i] + 1 < self.levels[i].len()) else {
                return nodes;
            };
            at[next] += 1;
            at[next + 1..].fill(0);
        }
    }

    fn last_resort_levels(&self) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for (i, own) in self.levels.iter().enumerate() {
            for &level in &own[..own.len() - 1] {
                let mut levels = self.coarsest_node_levels();
                levels[i] = level;
                out.push(levels);
            }
        }
        out
    }

    fn neighbor_levels(&self, levels: &[u8]) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        for (i, own) in self.levels.iter().enumerate() {
            let Some(at) = own.iter().position(|&level| level == levels[i]) else { continue };
            for at in [at.checked_sub(1), at.checked_add(1)].into_iter().flatten() {
                if let Some(&level) = own.get(at) {
                    let mut next = levels.to_vec();
                    next[i] = level;
                    if next != self.suppress_all_levels {
                        out.push(next);
                    }
                }
            }
        }
        out
    }
}

/// Builds the ladder of `attributes` by mean loss.
pub fn build_ladder(
    attributes: &[usize],
    identifiers: &[usize],
    sample: &PlannerSample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> Vec<LadderNode> {
    if attributes.is_empty() {
        return Vec::new();
    }
    let lattice = LadderLattice::new(attributes, identifiers, sample, books);
    let mut nodes = if lattice.size(settings.ladder.max_complete_nodes).is_some() {
        lattice.all_nodes()
    } else {
        select_ladder_nodes(&lattice, attributes, sample, books, settings)
    };
    nodes.sort_by(|a, b| a.loss.total_cmp(&b.loss).then_with(|| a.levels.cmp(&b.levels)));
    nodes
}

/// Gain bound, node, and selected nodes at that time.
type LadderCandidate = (OrderedFloat<f64>, Reverse<Vec<u8>>, usize);

/// Greedy lazy submodular cover by expected loss. A row's worth is one minus its least loss, summed over thresholds,
/// because an older ledger supports more classes. The search grows from single attributes to neighbors.
fn select_ladder_nodes(
    lattice: &LadderLattice,
    attributes: &[usize],
    sample: &PlannerSample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> Vec<LadderNode> {
    let mut scorer = NodeScorer::new(attributes, sample, books, settings, SCORING_ROWS);
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let mut heap: BinaryHeap<LadderCandidate> = BinaryHeap::new();
    let mut chosen: Vec<Vec<u8>> = Vec::new();
    let mut evaluations = 0;
    let mut last_resort = lattice.last_resort_levels();
    last_resort.push(lattice.finest_node_levels());
    let mut starts = last_resort.clone();
    // Diagonal: the only choice without data.
    for step in 1..8 {
        starts.push(lattice.levels.iter().map(|levels| levels[(levels.len() - 1) * step / 8]).collect());
    }
    if sample.rows() == 0 {
        starts.sort();
        starts.dedup();
        return starts.into_iter().filter(|l| *l != lattice.suppress_all_levels).map(|l| lattice.node(l)).collect();
    }
    for levels in starts {
        if levels != lattice.suppress_all_levels && seen.insert(levels.clone()) {
            evaluations += 1;
            heap.push((OrderedFloat(scorer.score_gain(&levels)), Reverse(levels), 0));
        }
    }
    while chosen.len() < settings.ladder.max_selected_nodes {
        let Some((mut gain, Reverse(best), at)) = heap.pop() else { break };
        if at != chosen.len() {
            if evaluations >= MAX_LADDER_EVALUATIONS {
                break;
            }
            evaluations += 1;
            gain = OrderedFloat(scorer.score_gain(&best));
            if heap.peek().is_some_and(|next| next.0 > gain) {
                heap.push((gain, Reverse(best), chosen.len()));
                continue;
            }
        }
        if gain.0 <= 0.0 {
            break;
        }
        scorer.select_scored_node(&best);
        let neighbours = lattice.neighbor_levels(&best);
        chosen.push(best);
        for levels in neighbours {
            if evaluations < MAX_LADDER_EVALUATIONS && seen.insert(levels.clone()) {
                evaluations += 1;
                heap.push((OrderedFloat(scorer.score_gain(&levels)), Reverse(levels), chosen.len()));
            }
        }
    }
    chosen.extend(last_resort);
    chosen.sort();
    chosen.dedup();
    chosen.into_iter().filter(|l| *l != lattice.suppress_all_levels).map(|l| lattice.node(l)).collect()
}

/// Returns the mean cell loss at each row's first supported node, an upper bound because the ledger exceeds the sample.
pub fn expected_loss(
    attributes: &[usize],
    ladder: &[LadderNode],
    sample: &PlannerSample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> f64 {
    if attributes.is_empty() || sample.rows() == 0 {
        return 0.0;
    }
    let mut scorer = NodeScorer::new(attributes, sample, books, settings, sample.rows());
    let rows = scorer.rows();
    let mut open: Vec<u32> = (0..).take(rows).collect();
    let mut loss = 0.0;
    for node in ladder {
        if open.is_empty() {
            break;
        }
        loss += scorer.remove_supported_rows(&node.levels, &mut open);
    }
    (loss + open.len() as f64) / rows as f64
}

//! Adjacency of a sliding window with an edge limit, coarse from the first batch, compared with counting every
//! attribute.

use super::tables::Health;
use super::{less, timed};
use throng_risk::adjacency::AdjacencyLimits;
use throng_risk::multigrid::{CoarseAdjacency, MergePolicy};

/// Defaults of the daemon.
const STEP: usize = 10_000;
const MAX_EDGES: u64 = 2_000_000;

struct Followed {
    model: CoarseAdjacency,
    first: f64,
    filling: f64,
    step: f64,
    looking: f64,
    broken: usize,
}

fn follow(columns: &[Vec<u32>], window: usize, merging: Option<MergePolicy>) -> Followed {
    let rows = columns[0].len();
    let part = |from: usize| columns.iter().map(|column| &column[from..from + STEP]).collect::<Vec<&[u32]>>();
    let attributes: Vec<usize> = (0..columns.len()).collect();
    let limits = AdjacencyLimits { max_edges: MAX_EDGES };
    let mut model = CoarseAdjacency::new(&attributes, limits).expect("attributes ascend");
    let (mut broken, mut filling, mut step, mut looking) = (0, 0.0, f64::INFINITY, 0.0);
    let ((), first) = timed(|| {
        if let Some(merging) = merging {
            model.coarsen(&part(0), merging).expect("a window to be");
        }
        broken += model.add(&part(0)).expect("a batch").len();
    });
    for from in (STEP..rows).step_by(STEP) {
        let ((), seconds) = timed(|| {
            if from >= window {
                model.subtract(&part(from - window)).expect("counted");
            }
            broken += model.add(&part(from)).expect("a batch").len();
        });
        if from >= window {
            step = step.min(seconds);
        } else {
            filling += seconds;
        }
        if let Some(merging) = merging.filter(|_| from + STEP == window) {
            let full: Vec<&[u32]> = columns.iter().map(|column| &column[..window]).collect();
            let mut merged = model.clone();
            looking = timed(|| merged.coarsen(&full, merging).expect("the window")).1;
            if model.unknown_pair_count() == 0 {
                model = merged;
            }
        }
    }
    Followed { model, first, filling: first + filling, step, looking, broken }
}

pub fn window(table: &Health) {
    let columns = &table.columns;
    let window = columns[0].len() / 2 / STEP * STEP;
    let fine = follow(columns, window, None);
    for (how, merging) in
        [("all", None), ("identical", Some(MergePolicy::Identical)), ("determined", Some(MergePolicy::Determined))]
    {
        let coarse = follow(columns, window, merging);
        for (u, v, both) in fine.model.counted().edges().step_by(97) {
            let known = coarse.model.n_both(u, v);
            assert!(known.is_none_or(|n| n == both), "{u:?} {v:?}: {known:?} instead of {both}");
        }
        println!(
            "| {} | {how} | {} | {} | {} | {:.2} | {:.2} | {:.1} | {:.1} | {:.2} | {} |",
            table.name,
            coarse.model.counted().attributes().len(),
            coarse.model.unknown_pair_count(),
            coarse.model.bytes() >> 20,
            coarse.first,
            coarse.filling,
            1e3 * coarse.step,
            less(fine.step, coarse.step),
            coarse.looking,
            coarse.broken,
        );
    }
}

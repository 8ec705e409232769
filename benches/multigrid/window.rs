//! The adjacency of a sliding window as the daemon keeps it: at most so many edges, coarse from the first batch on, against every
//! attribute counted.

use super::tables::Health;
use super::{less, timed};
use throng::risk::adjacency::Limits;
use throng::risk::multigrid::CoarseAdjacency;

/// As the daemon's defaults are.
const STEP: usize = 10_000;
const MAX_EDGES: u64 = 2_000_000;

struct Followed {
    model: CoarseAdjacency,
    first: f64,
    filling: f64,
    /// A batch through the full window: comes and leaves; the best of them.
    step: f64,
    /// Looking for what is certain in the full window.
    looking: f64,
    broken: usize,
}

fn follow(columns: &[Vec<u32>], window: usize, coarse: bool) -> Followed {
    let rows = columns[0].len();
    let part = |from: usize| columns.iter().map(|column| &column[from..from + STEP]).collect::<Vec<&[u32]>>();
    let attributes: Vec<usize> = (0..columns.len()).collect();
    let limits = Limits { max_edges: MAX_EDGES, half_lives: 0 };
    let mut model = CoarseAdjacency::new(&attributes, limits).expect("attributes ascend");
    let (mut broken, mut filling, mut step, mut looking) = (0, 0.0, f64::INFINITY, 0.0);
    let ((), first) = timed(|| {
        if coarse {
            model.coarsen(&part(0)).expect("a window to be");
        }
        broken += model.add(&part(0)).expect("a batch").len();
    });
    for from in (STEP..rows).step_by(STEP) {
        let ((), seconds) = timed(|| {
            if from >= window {
                model.subtract(&part(from - window), 0).expect("counted");
            }
            broken += model.add(&part(from)).expect("a batch").len();
        });
        if from >= window {
            step = step.min(seconds);
        } else {
            filling += seconds;
        }
        if coarse && from + STEP == window && model.left_out() == 0 {
            let full: Vec<&[u32]> = columns.iter().map(|column| &column[..window]).collect();
            looking = timed(|| model.coarsen(&full).expect("the window")).1;
        }
    }
    Followed { model, first, filling: first + filling, step, looking, broken }
}

/// One table; what is known of a pair on both sides is the same.
pub fn window(table: &Health) {
    let columns = &table.columns;
    let window = columns[0].len() / 2 / STEP * STEP;
    let (fine, coarse) = (follow(columns, window, false), follow(columns, window, true));
    for (u, v, both) in fine.model.counted().edges().step_by(97) {
        let known = coarse.model.n_both(u, v);
        assert!(known.is_none_or(|n| n == both), "{u:?} {v:?}: {known:?} instead of {both}");
    }
    println!(
        "| {} | {} | {} | {} | {} | {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.1} | {:.2} |",
        table.name,
        columns.len(),
        coarse.model.counted().attributes().len(),
        fine.model.left_out(),
        coarse.model.left_out(),
        fine.model.bytes() >> 20,
        coarse.model.bytes() >> 20,
        fine.first,
        coarse.first,
        fine.filling,
        coarse.filling,
        1e3 * fine.step,
        1e3 * coarse.step,
        less(fine.step, coarse.step),
        coarse.looking,
    );
    eprintln!("{}: {} attributes were split", table.name, coarse.broken);
}

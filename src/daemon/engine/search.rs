//! A plan that is sought on a thread of its own, beside the release.

use crate::anonymity::plan::Plan;
use crate::anonymity::planner::sample::Sample;
use crate::anonymity::planner::{GroupShape, PlannerSettings, make_plan};
use crate::daemon::state::records::SearchRequest;
use crate::faults::crash_point;
use crate::records::codebook::Codebook;
use crossbeam_channel::{Receiver, bounded};
use std::time::{Duration, Instant};

/// A search under way.
pub(super) struct Search {
    pub asked: SearchRequest,
    pub started: Instant,
    /// The oldest row that it learns from.
    pub first_row: Option<u64>,
    answer: Receiver<Plan>,
}

impl Search {
    /// Begins on copies of what it learns from. A search that cannot begin or that panics gives no answer.
    pub fn begin(
        asked: SearchRequest,
        version: u64,
        shapes: &[GroupShape],
        sample: Sample,
        books: &[Codebook],
        settings: PlannerSettings,
    ) -> Self {
        let first_row = (sample.rows() > 0).then(|| sample.ordinal(0));
        let (shapes, books) = (shapes.to_vec(), books.iter().map(Codebook::without_spellings).collect::<Vec<_>>());
        let (found, answer) = bounded(1);
        let search = move || {
            crash_point("planning");
            // One thread of its own: the treatment of the batches beside it has the others.
            let plan = || make_plan(version, &shapes, &sample, &books, &settings);
            match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
                Ok(pool) => {
                    if found.send(pool.install(plan)).is_err() {
                        tracing::debug!("a plan came too late and nobody waits for it");
                    }
                }
                Err(error) => tracing::warn!(%error, "the planner has no thread"),
            }
        };
        if let Err(error) = std::thread::Builder::new().name("planner".to_owned()).spawn(search) {
            tracing::warn!(%error, "the planner has no thread");
        }
        Self { asked, started: Instant::now(), first_row, answer }
    }

    /// The plan, waiting until `budget` after the beginning. `None` when it is late or the search has failed.
    pub fn wait(self, budget: Duration) -> Option<Plan> {
        self.answer.recv_timeout(budget.saturating_sub(self.started.elapsed())).ok()
    }
}

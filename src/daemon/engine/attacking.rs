//! The engine's side of attacks on what it has just released: of which batch they get a copy.
//!
//! They need the records before their treatment, which are in memory only for as long as their batch is: so a copy of one batch is taken
//! now and then, and forgotten with the answer. What they find decides nothing; it is a metric and an alert.

use super::attack::Target;
use super::fields::Engine;
use super::gathered::Gathered;
use crate::anonymity::planner::GroupShape;
use crate::anonymity::treatment::proposal::Proposal;
use crate::evaluation::original::Original;
use crate::evaluation::released::{Origin, ReleasedGroup};
use crate::records::codebook::{Codebook, SUPPRESSED};
use crate::release::verified::Verified;
use std::sync::Arc;

/// Lines of a batch below which it is passed over: a figure of few people would tell of them.
const FEWEST_LINES: usize = 500;

impl Engine {
    /// A copy of the batch where it is time to try attacks on one. Takes the cells of the proposal.
    pub(super) fn target(
        &mut self,
        gathered: &Gathered<'_>,
        proposal: &mut Proposal,
        verified: &Verified,
    ) -> Option<Target> {
        let interval_ms = self.settings.attack_interval_ms;
        if interval_ms == 0 || self.settings.monitor || !self.attacks.are_due(gathered.age_ms, interval_ms) {
            return None;
        }
        let lines = |group: usize| verified.lines(group).map(|line| line.row);
        let most = (0..self.shapes.len()).map(|group| lines(group).count()).max().unwrap_or(0);
        if most < FEWEST_LINES {
            return None;
        }
        let cells = std::mem::take(&mut proposal.cells);
        let plan = &self.in_force.plan;
        let shows = |group: usize, attribute: usize| plan.shows(group, attribute);
        let batch_of = self.durable.progress.sequence + 1;
        let group = |(number, shape): (usize, &GroupShape)| {
            let attributes = shape.without_ladder().attributes();
            let rows: Vec<u32> = lines(number).collect();
            ReleasedGroup {
                name: shape.name.clone(),
                cells: attributes
                    .iter()
                    .map(|&a| {
                        let shown = shows(number, a);
                        let cell = |&row: &u32| if shown { cells[a][row as usize] } else { SUPPRESSED };
                        rows.iter().map(cell).collect()
                    })
                    .collect(),
                attributes,
                lines: rows.len(),
                places: None,
                origin: Some(rows.into_iter().map(|row| Origin { row, batch: batch_of }).collect()),
            }
        };
        let groups = self.shapes.iter().enumerate().map(group).collect();
        // Fresh records as they came: what was altered before the treatment is known to nobody outside. Of held ones nothing else is left.
        let (mut batch, fresh) = (gathered.batch.clone(), &gathered.fresh);
        let waiting = batch.rows() - fresh.rows();
        for (column, raw) in batch.columns.iter_mut().zip(&fresh.columns) {
            column[waiting..].copy_from_slice(raw);
        }
        Some(Target {
            original: Original {
                schema: Arc::clone(&self.schema),
                books: self.coding.books.iter().map(Codebook::without_spellings).collect(),
                batch,
                rejected: 0,
            },
            shapes: self.shapes.clone(),
            groups,
            promises: self.settings.promises,
        })
    }

    /// Tries attacks on a batch that has left at `age_ms`.
    pub(super) fn attack(&mut self, target: Target, age_ms: i64) {
        let next_ms = age_ms.saturating_add(self.settings.attack_interval_ms);
        self.attacks.begin(target, next_ms, &self.telemetry);
    }
}

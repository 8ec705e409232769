//! Builds the proposal.

use super::{ReleasedCells, TreatmentContext, has_enough_subjects};
use crate::line_encoder::LineLayout;
use crate::plan::PlanGroup;
use crate::treatment::proposal::{LineRun, Proposal, ProposedGroup, UnreleasedReason};
use crate::values::codebook::{ABSENT, CellId, Codebook, NULL, SUPPRESSED, is_range};
use crate::values::digest::BuildClassKeyHash;
use rayon::prelude::*;
use std::borrow::Cow;

/// Computes the digest of each range once.
#[derive(Clone, Default)]
struct RangeDigests(hashbrown::HashMap<CellId, u128>);

impl RangeDigests {
    fn digest(&mut self, book: &Codebook, cell: CellId) -> u128 {
        if is_range(cell) { *self.0.entry(cell).or_insert_with(|| book.digest(cell)) } else { book.digest(cell) }
    }
}

impl TreatmentContext<'_> {
    pub(super) fn rows_with_fragment(&self, cells: &ReleasedCells) -> Vec<bool> {
        let mut leaves = vec![false; self.rows()];
        for group in &self.plan.groups {
            leaves.iter_mut().zip(self.fragment_rows(group, cells)).for_each(|(leaves, here)| *leaves |= here);
        }
        leaves
    }

    pub(super) fn empty_proposal(&self, reason: UnreleasedReason) -> Proposal {
        let cells = vec![vec![SUPPRESSED; self.rows()]; self.books.len()];
        let mut proposal = self.build_proposal(cells, Vec::new(), &[], 0);
        proposal.unreleased = vec![Some(reason); self.rows()];
        proposal
    }

    /// `before` marks the rows with a fragment before the guard.
    ///
    /// Releases nothing if fewer than k distinct subjects remain.
    pub(super) fn build_proposal(
        &self,
        mut cells: ReleasedCells,
        held: Vec<u32>,
        before: &[bool],
        guarded_fragments: u64,
    ) -> Proposal {
        let mut is_held = vec![false; self.rows()];
        for &row in &held {
            is_held[row as usize] = true;
        }
        for column in &mut cells {
            column.resize(self.rows(), SUPPRESSED);
        }
        let mut leaves = self.rows_with_fragment(&cells);
        let leaving: Vec<u32> = (0u32..).zip(&leaves).filter(|(_, l)| **l).map(|(row, _)| row).collect();
        let quiet = !leaving.is_empty() && !has_enough_subjects(self.batch, &leaving, self.policy.k);
        if quiet {
            for column in &mut cells {
                column.fill(SUPPRESSED);
            }
            leaves.fill(false);
        }
        let unreleased = (0..self.rows())
            .map(|row| match (leaves[row] || is_held[row], quiet) {
                (true, _) => None,
                (false, true) => Some(UnreleasedReason::TooFewSubjects),
                (false, false) if before.get(row).copied().unwrap_or(false) => Some(UnreleasedReason::CountingGuard),
                (false, false) => Some(UnreleasedReason::NoSupport),
            })
            .collect();
        let groups = self.plan.groups.par_iter().zip(&self.names.layouts).enumerate();
        let groups = groups.map(|(at, (group, layout))| self.encode_group(at, group, layout, &cells)).collect();
        self.suppress_unshown(&mut cells);
        let (loss, exact_cells) = self.measure_utility(&cells, &is_held);
        let withheld_cells = self.count_withheld(&cells);
        Proposal { groups, cells, unreleased, held, guarded_fragments, withheld_cells, loss, exact_cells }
    }

    /// Encodes one line per distinct tuple, sorted by bytes.
    fn encode_group(
        &self,
        number: usize,
        group: &PlanGroup,
        layout: &LineLayout,
        cells: &ReleasedCells,
    ) -> ProposedGroup {
        let leaves = self.fragment_rows(group, cells);
        let attributes = group.attributes().into_iter();
        let columns: Vec<_> = attributes.map(|a| (a, self.shown_column(number, a, cells, &leaves))).collect();
        // The map's order does not matter: runs are sorted below.
        let mut digests: Vec<RangeDigests> = vec![RangeDigests::default(); columns.len()];
        let mut runs: hashbrown::HashMap<u128, Vec<u32>, BuildClassKeyHash> = hashbrown::HashMap::default();
        for row in (0..self.rows()).filter(|row| leaves[*row]) {
            let digest = |((a, column), known): (&(usize, Cow<'_, [CellId]>), &mut RangeDigests)| {
                known.digest(&self.books[*a], column[row])
            };
            let key = columns.iter().zip(&mut digests).map(digest).fold(0u128, u128::wrapping_add);
            runs.entry(key).or_default().push(u32::try_from(row).expect("a batch is bounded"));
        }
        let (mut arena, mut texts) = (Vec::new(), Vec::new());
        let mut lines: Vec<(std::ops::Range<usize>, Vec<u32>)> = Vec::with_capacity(runs.len());
        for rows in runs.into_values() {
            let start = arena.len();
            let row = rows[0] as usize;
            texts.clear();
            texts.extend(columns.iter().map(|(a, column)| self.books[*a].printed_text(column[row])));
            let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
            layout.write(&texts, &mut arena);
            lines.push((start..arena.len(), rows));
        }
        lines.sort_unstable_by(|(a, _), (b, _)| arena[a.clone()].cmp(&arena[b.clone()]));
        let mut proposed = ProposedGroup { arena, ..ProposedGroup::default() };
        for (line, rows) in lines {
            let start = proposed.rows.len();
            proposed.rows.extend(rows);
            proposed.runs.push(LineRun { line, rows: start..proposed.rows.len() });
        }
        proposed
    }

    fn count_withheld(&self, cells: &ReleasedCells) -> u64 {
        let mut withheld = 0;
        for group in &self.plan.groups {
            let leaves = self.fragment_rows(group, cells);
            for protected in self.protected.iter().filter(|p| group.sensitive.contains(&p.attribute)) {
                let column = cells[protected.attribute].iter().zip(&leaves);
                withheld += column.filter(|(cell, leaves)| **cell == SUPPRESSED && **leaves).count() as u64;
            }
        }
        withheld
    }

    /// Returns [`Proposal::loss`] and [`Proposal::exact_cells`].
    fn measure_utility(&self, cells: &ReleasedCells, held: &[bool]) -> ((f64, u64), u64) {
        let (mut sum, mut present, mut exact) = (0.0, 0u64, 0u64);
        let groups = || self.plan.groups.iter().enumerate();
        let own = groups().flat_map(|(n, g)| g.quasi.iter().map(move |&a| (vec![n], a)));
        let own = own.filter(|(_, a)| !self.shared.has(*a));
        // Shared attributes count once.
        let of_several = |(a, _)| (groups().filter(|(_, g)| g.quasi.contains(&a)).map(|(n, _)| n).collect(), a);
        for (groups, a) in own.chain(self.shared.levels().map(of_several)) {
            let takes_part = |row: usize| groups.iter().any(|&group| self.mask.takes_part(group, row));
            let (book, codes) = (&self.books[a], &self.batch.columns[a]);
            for (row, &cell) in cells[a].iter().enumerate() {
                if held[row] || matches!(codes[row], ABSENT | NULL) || !takes_part(row) {
                    continue;
                }
                sum += f64::from(book.loss(cell));
                present += 1;
                exact += u64::from(book.is_exact(cell));
            }
        }
        ((sum, present), exact)
    }
}

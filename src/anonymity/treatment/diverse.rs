//! Local recoding where models protect sensitive attributes: a class whose values do not satisfy them is not joined.
//!
//! Its rows go on to coarser nodes, whose classes show more values, but only as long as that is worth it: showing the
//! protected cells of a row at a node may cost at most what suppressing them at its cheapest node would, all cells of the
//! fragment counted alike. Rows that no class takes within that bound join any class that has support, and their
//! protected cells stay suppressed. What this finds is only a proposal of classes: which cells are shown in them is
//! decided once more when it is known who leaves ([`super::sensitive`]).

use super::crowd::NO_SUBJECT;
use super::recode::{Assignment, AtNode, QuasiColumns, UNRELEASED};
use super::sensitive::{ModelCheck, Protected, SensitiveCells};
use crate::anonymity::plan::{Group, Node};
use crate::ledger::at::LedgerAt;
use crate::records::codebook::SUPPRESSED;
use std::collections::HashSet;

/// Recodes the rows that `plain`, the assignment without models, releases. `protected` are the attributes of the group
/// that models protect.
///
/// Time: that of two recodings, and what the classes met have shown and show, once a node.
pub(super) fn recode_diversely(
    plain: Assignment,
    columns: &QuasiColumns<'_>,
    group: &Group,
    protected: &[&Protected],
    cells: &SensitiveCells<'_>,
    ledger: &LedgerAt<'_>,
) -> Assignment {
    let mut left: Vec<u32> = (0u32..).zip(&plain.node).filter(|(_, n)| **n != UNRELEASED).map(|(row, _)| row).collect();
    let mut protected_columns: Vec<ProtectedColumn<'_>> =
        protected.iter().filter_map(|of| ProtectedColumn::new(of, &left, cells, *ledger)).collect();
    if protected_columns.is_empty() {
        return plain;
    }
    let reach = reach(&plain, group, &protected_columns);
    let mut assignment = Assignment::nothing(columns.rows());
    let mut silent = Vec::new();
    let mut at_node = AtNode::new(cells.floor, left.len());
    let mut showings = Vec::new();
    for (index, node) in (0u32..).zip(&group.ladder) {
        left.retain(|&row| {
            let goes_on = node.loss <= reach[row as usize];
            if !goes_on {
                silent.push(row);
            }
            goes_on
        });
        if left.is_empty() {
            break;
        }
        at_node.gather_with(columns, node, &left, ledger);
        let classes = (0u32..).take(at_node.crowds.classes());
        let mut taken: Vec<bool> = classes.map(|class| at_node.may_leave(class)).collect();
        for column in &mut protected_columns {
            showings.clear();
            for ((&row, &key), &class) in left.iter().zip(&at_node.keys).zip(&at_node.classes) {
                if taken[class as usize] && column.shows[row as usize] {
                    let (_, value, subject) = cells.showing(column.attribute, key, row);
                    showings.push((key, value, subject, class));
                }
            }
            column.withdraw_refused(&mut showings, &mut taken);
        }
        let mut at = 0;
        left.retain(|&row| {
            let here = at;
            at += 1;
            if at_node.keys[here] == columns.suppressed_key() || !taken[at_node.classes[here] as usize] {
                return true;
            }
            assignment.node[row as usize] = index;
            assignment.class[row as usize] = at_node.keys[here];
            false
        });
    }
    silent.extend(left);
    silent.sort_unstable();
    settle_silently(&mut assignment, silent, columns, &group.ladder, &mut at_node, ledger);
    assignment
}

/// Rows of which nothing protected is shown take the cheapest node at which their class has support among themselves, or
/// was joined there by others already: the two are one class then, to whoever holds rows back too.
fn settle_silently(
    assignment: &mut Assignment,
    silent: Vec<u32>,
    columns: &QuasiColumns<'_>,
    ladder: &[Node],
    at_node: &mut AtNode,
    ledger: &LedgerAt<'_>,
) {
    let classes = assignment.node.iter().copied().zip(assignment.class.iter().copied());
    let joined: HashSet<(u32, u128)> = classes.filter(|(node, _)| *node != UNRELEASED).collect();
    assignment.silent = vec![false; columns.rows()];
    for &row in &silent {
        assignment.silent[row as usize] = true;
    }
    let mut left = silent;
    for (index, node) in (0u32..).zip(ladder) {
        if left.is_empty() {
            break;
        }
        at_node.gather_with(columns, node, &left, ledger);
        let mut at = 0;
        left.retain(|&row| {
            let (key, class) = (at_node.keys[at], at_node.classes[at]);
            at += 1;
            let takes = at_node.may_leave(class) || joined.contains(&(index, key));
            if key == columns.suppressed_key() || !takes {
                return true;
            }
            assignment.node[row as usize] = index;
            assignment.class[row as usize] = key;
            false
        });
    }
}

/// The greatest loss of a node at which each row's protected cells are worth being shown.
fn reach(plain: &Assignment, group: &Group, protected_columns: &[ProtectedColumn<'_>]) -> Vec<f32> {
    let width = group.quasi.len().max(1) as f32;
    let of_row = |(row, &node): (usize, &u32)| {
        let shown = protected_columns.iter().filter(|column| column.shows[row]).count();
        group.ladder.get(node as usize).map_or(0.0, |node| node.loss + shown as f32 / width)
    };
    plain.node.iter().enumerate().map(of_row).collect()
}

/// One protected attribute of the group.
struct ProtectedColumn<'a> {
    attribute: usize,
    /// Whether a row's value has support of its own, by row.
    shows: Vec<bool>,
    models: ModelCheck<'a>,
}

impl<'a> ProtectedColumn<'a> {
    /// None where nothing of the attribute can be shown now.
    fn new(
        protected: &'a Protected,
        rows: &[u32],
        sensitive: &SensitiveCells<'_>,
        ledger: LedgerAt<'a>,
    ) -> Option<Self> {
        let attribute = protected.attribute;
        let open = ledger.shown().is_none_or(|shown| shown.is_open(attribute, sensitive.batch.rows()));
        let judge = protected.judge.as_ref().filter(|_| open)?;
        let named: Vec<u32> =
            rows.iter().copied().filter(|&row| sensitive.batch.subjects[row as usize] != NO_SUBJECT).collect();
        let cells = sensitive.supported(attribute, 1, &named, &ledger);
        let shows = cells.into_iter().map(|cell| cell != SUPPRESSED).collect();
        Some(Self { attribute, shows, models: ModelCheck::new(judge, sensitive.floor, ledger) })
    }

    /// Takes the classes (numbers beside class, value and subject) that may not show their values out of `taken`.
    fn withdraw_refused(&mut self, showings: &mut [(u128, u64, u64, u32)], taken: &mut [bool]) {
        showings.sort_unstable();
        let mut of_class = Vec::new();
        for shown in showings.chunk_by(|a, b| a.0 == b.0) {
            of_class.clear();
            of_class.extend(shown.iter().map(|&(class, value, subject, _)| (class, value, subject)));
            taken[shown[0].3 as usize] &= self.models.accepts(&of_class);
        }
    }
}

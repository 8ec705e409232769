//! Restricts the subjects that count toward classes (docs/internals/methods.md §12.5): invented subjects could
//! otherwise complete every class.

use super::local_recoding::{ClassAssignment, UNRELEASED_NODE};
use super::subject_counting::NO_SUBJECT;
use crate::ledger::subject_ledger::{LedgerView, SupporterView};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the subject that each row counts for, if a minimum tenure is configured.
pub(super) fn tenured_subjects(subjects: &[u64], ledger: &LedgerView<'_>) -> Option<Vec<u64>> {
    let supporters = ledger.supporters().filter(|supporters| supporters.limits().min_tenure > 0)?;
    let counts = |subject: u64| if supporters.has_tenure(subject) { subject } else { NO_SUBJECT };
    Some(subjects.iter().map(|&subject| counts(subject)).collect())
}

/// Recodes a group within the class budgets; `recode` receives the subject that each row counts for.
pub(super) fn recode_within_budget(
    group: u128,
    subjects: &[u64],
    budget: Option<SupporterView<'_>>,
    room: usize,
    recode: impl Fn(&[u64]) -> ClassAssignment,
) -> ClassAssignment {
    let Some(budget) = budget else { return recode(subjects) };
    let most = if budget.has_room(room) { budget.limits().max_classes } else { 0 };
    let mut counting = subjects.to_vec();
    let mut muted = vec![false; subjects.len()];
    loop {
        let assignment = recode(&counting);
        let beyond = rows_beyond_budget(group, &assignment, &counting, budget, most);
        if beyond.is_empty() {
            return ClassAssignment { muted_rows: muted, ..assignment };
        }
        for row in beyond {
            counting[row] = NO_SUBJECT;
            muted[row] = true;
        }
    }
}

/// Keeps known classes and the first new ones by keyed digest.
fn rows_beyond_budget(
    group: u128,
    assignment: &ClassAssignment,
    counting: &[u64],
    budget: SupporterView<'_>,
    most: usize,
) -> Vec<usize> {
    let mut classes: BTreeMap<u64, BTreeMap<u128, Vec<usize>>> = BTreeMap::new();
    for (row, &subject) in counting.iter().enumerate() {
        if assignment.node[row] != UNRELEASED_NODE && subject != NO_SUBJECT {
            classes.entry(subject).or_default().entry(assignment.class[row]).or_default().push(row);
        }
    }
    let (mut rows, mut known) = (Vec::new(), Vec::new());
    for (subject, mut of_subject) in classes {
        budget.supported_classes(group, subject, &mut known);
        let left = most.saturating_sub(known.len());
        let known: BTreeSet<u128> = known.iter().copied().collect();
        of_subject.retain(|class, _| !known.contains(class));
        rows.extend(of_subject.into_values().skip(left).flatten());
    }
    rows
}

//! Who counts toward classes: people who have been seen for long enough, each for a bounded number of classes.
//!
//! Invented people cost their inventor little, and a few of them who walk through all values complete the crowds of
//! everybody. A budget bounds how many classes each can complete; whoever has spent it still leaves, and supports nobody.

use super::crowd::NO_SUBJECT;
use super::recode::{Assignment, UNRELEASED};
use std::collections::{BTreeMap, BTreeSet};
use throng_core::ledger::per_subject::{LedgerAt, SupportersAt};

/// Whom the rows of a batch count for: nobody who has not been seen for long enough. None where all count.
pub(super) fn settled(subjects: &[u64], ledger: &LedgerAt<'_>) -> Option<Vec<u64>> {
    let supporters = ledger.supporters().filter(|supporters| supporters.limits().min_tenure > 0)?;
    let counts = |subject: u64| if supporters.is_settled(subject) { subject } else { NO_SUBJECT };
    Some(subjects.iter().map(|&subject| counts(subject)).collect())
}

/// Recodes a group until nobody supports more classes than the budget allows. `recode` is told whom each row counts for; rows
/// beyond the budget are `muted`: they count for nobody. Every turn mutes more rows, so it ends.
pub(super) fn within_budget(
    group: u128,
    subjects: &[u64],
    budget: Option<SupportersAt<'_>>,
    room: usize,
    recode: impl Fn(&[u64]) -> Assignment,
) -> Assignment {
    let Some(budget) = budget else { return recode(subjects) };
    let most = if budget.has_room(room) { budget.limits().max_classes } else { 0 };
    let mut counting = subjects.to_vec();
    let mut muted = vec![false; subjects.len()];
    loop {
        let assignment = recode(&counting);
        let beyond = beyond(group, &assignment, &counting, budget, most);
        if beyond.is_empty() {
            return Assignment { muted, ..assignment };
        }
        for row in beyond {
            counting[row] = NO_SUBJECT;
            muted[row] = true;
        }
    }
}

/// The rows whose subjects support more classes than they may: of the classes that are new to somebody the first few by their
/// keyed digests stay.
fn beyond(group: u128, assignment: &Assignment, counting: &[u64], budget: SupportersAt<'_>, most: usize) -> Vec<usize> {
    let mut classes: BTreeMap<u64, BTreeMap<u128, Vec<usize>>> = BTreeMap::new();
    for (row, &subject) in counting.iter().enumerate() {
        if assignment.node[row] != UNRELEASED && subject != NO_SUBJECT {
            classes.entry(subject).or_default().entry(assignment.class[row]).or_default().push(row);
        }
    }
    let (mut rows, mut known) = (Vec::new(), Vec::new());
    for (subject, mut of_subject) in classes {
        budget.supported(group, subject, &mut known);
        let left = most.saturating_sub(known.len());
        let known: BTreeSet<u128> = known.iter().copied().collect();
        of_subject.retain(|class, _| !known.contains(class));
        rows.extend(of_subject.into_values().skip(left).flatten());
    }
    rows
}

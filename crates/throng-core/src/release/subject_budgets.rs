//! Verification of tenure and class budgets.
//!
//! Claim. A subject with fewer than `min_tenure` earlier batches does not count. If [`check_budgets`] returns `Ok`, no
//! subject supports more than `max_classes` classes of a group in the release window, this batch included.

use super::verifier_input::VerifierInput;
use super::violation::Violation;
use crate::ledger::subject_ledger::LedgerView;
use crate::ledger::supporters::SupportDelta;
use crate::treatment::subject_counting::NO_SUBJECT;
use std::collections::{BTreeMap, BTreeSet};

/// None without a minimum tenure.
pub(super) fn subjects_with_tenure(subjects: &[u64], ledger: LedgerView<'_>) -> Option<Vec<u64>> {
    let supporters = ledger.supporters().filter(|supporters| supporters.limits().min_tenure > 0)?;
    let mut counting = subjects.to_vec();
    counting.iter_mut().filter(|subject| !supporters.has_tenure(**subject)).for_each(|s| *s = NO_SUBJECT);
    Some(counting)
}

/// `rows` is the most entries that such a batch can add.
pub(super) fn check_budgets<'a>(
    group: u128,
    classes: impl Iterator<Item = (u128, &'a [u64])>,
    rows: usize,
    ledger: LedgerView<'_>,
) -> Result<Vec<(u128, u64, u128)>, Violation> {
    let asked = ledger.supporters().filter(|supporters| supporters.limits().max_classes > 0);
    let Some(supporters) = asked else { return Ok(Vec::new()) };
    let mut counted: BTreeMap<u64, BTreeSet<u128>> = BTreeMap::new();
    for (class, subjects) in classes {
        subjects.iter().for_each(|subject| {
            counted.entry(*subject).or_default().insert(class);
        });
    }
    let (mut known, mut pairs) = (Vec::new(), Vec::new());
    for (subject, classes) in counted {
        supporters.supported_classes(group, subject, &mut known);
        let new = classes.iter().filter(|class| !known.contains(class)).count();
        if new > 0 && (known.len() + new > supporters.limits().max_classes || !supporters.has_room(rows)) {
            return Err(Violation::Budget);
        }
        pairs.extend(classes.into_iter().map(|class| (group, subject, class)));
    }
    Ok(pairs)
}

pub(super) fn support_delta(
    given: &VerifierInput<'_>,
    mut pairs: Vec<(u128, u64, u128)>,
    ledger: LedgerView<'_>,
) -> SupportDelta {
    let Some(supporters) = ledger.supporters() else { return SupportDelta::default() };
    let mut people: Vec<u64> = if supporters.limits().min_tenure > 0 {
        given.subjects.iter().skip(given.waiting).copied().filter(|subject| *subject != NO_SUBJECT).collect()
    } else {
        Vec::new()
    };
    people.sort_unstable();
    people.dedup();
    pairs.sort_unstable();
    SupportDelta { sequence: given.sequence, time_ms: given.age_ms, people, pairs }
}

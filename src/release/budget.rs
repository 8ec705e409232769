//! Verification of what people may support: since when they have been seen, and for how many classes they count.
//!
//! Claim. Nobody counts who has not been seen in `min_tenure` batches before, and if [`judge`] returns `Ok`, nobody supports
//! more than `max_classes` classes of a group inside the release window, those that this batch counts him in included. Rows
//! that the treatment says count for nobody count for nobody here as well; whether that is enough of them is counted anew.

use super::given::Given;
use super::violation::Violation;
use crate::anonymity::treatment::crowd::NO_SUBJECT;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::ledger::per_subject::LedgerAt;
use throng_core::ledger::supporters::SupportDelta;

/// Whom each row counts for, where tenure is asked for; none where all count.
pub(super) fn settled(subjects: &[u64], ledger: LedgerAt<'_>) -> Option<Vec<u64>> {
    let supporters = ledger.supporters().filter(|supporters| supporters.limits().min_tenure > 0)?;
    let mut counting = subjects.to_vec();
    counting.iter_mut().filter(|subject| !supporters.is_settled(**subject)).for_each(|s| *s = NO_SUBJECT);
    Some(counting)
}

/// Judges the classes of a group by the subjects that they count; `rows` is what a batch of as many groups could add. Returns
/// the pairs that must be remembered.
pub(super) fn judge<'a>(
    group: u128,
    classes: impl Iterator<Item = (u128, &'a [u64])>,
    rows: usize,
    ledger: LedgerAt<'_>,
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
        supporters.supported(group, subject, &mut known);
        let new = classes.iter().filter(|class| !known.contains(class)).count();
        if new > 0 && (known.len() + new > supporters.limits().max_classes || !supporters.has_room(rows)) {
            return Err(Violation::Budget);
        }
        pairs.extend(classes.into_iter().map(|class| (group, subject, class)));
    }
    Ok(pairs)
}

/// What the memory of supporters must learn of a batch.
pub(super) fn delta(given: &Given<'_>, mut pairs: Vec<(u128, u64, u128)>, ledger: LedgerAt<'_>) -> SupportDelta {
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

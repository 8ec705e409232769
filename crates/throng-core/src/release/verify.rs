//! Verification of the release invariant R(k) (docs/internals/methods.md §11.1) from the encoded bytes, in O(bytes +
//! rows). One unreadable line refuses the batch.
//!
//! Claim. If [`verify`] returns `Ok`:
//!
//! 1. Every tuple of quasi cells has k distinct subjects among the lines of this batch.
//! 2. So has every sensitive cell that is not suppressed.
//! 3. Lines are sorted by their bytes.
//! 4. No row has two lines in one group.
//! 5. The batch has k subjects.
//! 6. Counting forces no pair of label sets of two groups below k.
//! 7. Every class that shows a protected attribute satisfies its models ([`super::protected_attributes`]).
//! 8. Where the ladder is known, exclusion narrows no class below k ([`super::narrowing`]).
//! 9. Every inexact sensitive cell hides among k subjects of its class and reveals no rare value (`hidden_cells`).
//! 10. No subject exceeds [`GroupTerms::lines`], in this batch or its release window.
//! 11. No cell has the form of a direct identifier (`identifier_forms`).
//! 12. No subject counts without tenure or beyond its class budget (`subject_budgets`).
//! 13. All lines of a row show the same shared cells, at one level per batch. (5) and (6) hold within each shared value
//!     (`shared_attributes`).
//!
//! The treatment supplies only the bytes, the row of each line, and the rows that count as no subject.

use super::forced_pairs::{GroupFragments, RecordCountBound, check_forced_pairs};
use super::group_recount::{GroupTally, recount};
use super::invariants::highest_multiplicity;
use super::line_limits::{CountingUnits, LineLimit};
use super::shared_attributes::{self, SharedValueParts, has_distinct_subjects, require_free};
use super::subject_budgets;
use super::verified_batch::{ReleasableBatch, ReleaseCounts};
use super::verifier_input::{GroupTerms, RecountContext, VerifierInput};
pub use super::violation::{BatchRefusal, DataSetRefusal, Violation};
use crate::ledger::ledger_delta::LedgerDelta;
use crate::ledger::subject_ledger::LedgerView;
use crate::treatment::proposal::ProposedGroup;
use crate::values::codebook::Codebook;
use rayon::prelude::*;

/// Verifies the `proposed` groups for classes of `k` subjects.
///
/// # Errors
/// The first [`BatchRefusal`].
pub fn verify(
    proposed: Vec<ProposedGroup>,
    given: &VerifierInput<'_>,
    terms: &[GroupTerms],
    books: &[Codebook],
    ledger: LedgerView<'_>,
    k: usize,
) -> Result<ReleasableBatch, BatchRefusal> {
    if proposed.len() != terms.len() {
        return Err(BatchRefusal { group: None, violation: Violation::WrongGroups });
    }
    // Without tenure, a subject counts as none.
    let settled = subject_budgets::subjects_with_tenure(given.subjects, ledger);
    let subjects = settled.as_deref().unwrap_or(given.subjects);
    let counting = VerifierInput { subjects, ..*given };
    let limits: Vec<LineLimit> = terms.iter().map(|terms| terms.lines).collect();
    let carriers = CountingUnits::of(given.subjects, &limits).replace_subjects(subjects);
    let room = subjects.len() * terms.len();
    let shared = shared_attributes::attributes(terms);
    let basis = RecountContext { given: &counting, books, ledger, k, shared: &shared };
    let mut counts: Vec<GroupTally> = proposed
        .par_iter()
        .zip(terms)
        .enumerate()
        .map(|(index, (group, terms))| {
            let refuse = |violation| BatchRefusal { group: Some(index), violation };
            let said =
                terms.lines.check_lines(group, given.subjects, ledger.release_log(), given.age_ms).map_err(refuse)?;
            let count = recount(group, terms, basis, &carriers, room).map_err(refuse)?;
            Ok::<_, BatchRefusal>(GroupTally { window_keys: said, ..count })
        })
        .collect::<Result<_, _>>()?;
    let batch_wide = |violation| BatchRefusal { group: None, violation };
    let leaving = proposed.iter().flat_map(|g| &g.rows).map(|&row| subjects[row as usize]);
    if proposed.iter().any(|g| !g.rows.is_empty()) && !has_distinct_subjects(leaving, k) {
        return Err(batch_wide(Violation::FewSubjects));
    }
    let parts = counts.iter_mut().map(|count| std::mem::take(&mut count.parts)).collect();
    let parts = SharedValueParts::of(parts, subjects, k).map_err(batch_wide)?;
    let (release, fragments) = combine_counts(counts, given, ledger);
    let records = if carriers.scattered { RecordCountBound::OfBoth } else { parts.records() };
    require_free(check_forced_pairs(&fragments, &carriers.subjects, k, records, 1)).map_err(batch_wide)?;
    parts.judge(&carriers, k).map_err(batch_wide)?;
    debug_assert!(
        counts_are_complete(&proposed, given, terms, &release),
        "the verified release is not the counted one"
    );
    let joined = terms.iter().any(|terms| terms.layout.is_joined());
    Ok(ReleasableBatch::new(proposed, joined, release))
}

fn combine_counts(
    counts: Vec<GroupTally>,
    given: &VerifierInput<'_>,
    ledger: LedgerView<'_>,
) -> (ReleaseCounts, Vec<GroupFragments>) {
    let (mut release, mut fragments) = (ReleaseCounts::default(), Vec::with_capacity(counts.len()));
    let (mut pairs, mut said) = (Vec::new(), Vec::new());
    for count in counts {
        said.extend(count.window_keys);
        pairs.extend(count.pairs);
        release.risk.add(count.risk);
        release.crowd.add(count.crowd);
        release.smallest_crowds.push(count.crowd.smallest);
        fragments.push(count.fragments);
    }
    let support = subject_budgets::support_delta(given, pairs, ledger);
    let said = ledger.release_log().map(|known| known.delta(&said, given.age_ms)).unwrap_or_default();
    release.delta = LedgerDelta { support, said };
    (release, fragments)
}

fn counts_are_complete(
    proposed: &[ProposedGroup],
    given: &VerifierInput<'_>,
    terms: &[GroupTerms],
    release: &ReleaseCounts,
) -> bool {
    let lines: usize = proposed.iter().map(|group| group.rows.len()).sum();
    release.risk.lines == lines as u64
        && proposed.iter().zip(terms).all(|(group, terms)| {
            let subjects = group.rows.iter().map(|&row| given.subjects[row as usize]);
            let most = match terms.lines {
                LineLimit::None => usize::MAX,
                LineLimit::PerBatch(most) => most,
                LineLimit::OncePerWindow(_) => 1,
            };
            highest_multiplicity(&group.rows) <= 1 && highest_multiplicity(subjects) <= most
        })
}

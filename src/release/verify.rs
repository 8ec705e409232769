//! Verification of the release invariant R(k) (docs/methods.md §11.1), from the encoded bytes.
//!
//! Claim. If [`verify`] returns `Ok`, then for every line of every group: (1) the tuple of its quasi cells, read back
//! from the bytes, has at least k distinct subjects among this batch's lines; (2) so has every sensitive cell that is not
//! suppressed, by itself; (3) the lines leave sorted by their bytes; (4) no row has two lines in one group; (5) at least k
//! subjects are in the batch; (6) no pair of label sets of two groups is forced by counting below k; (7) every class that
//! shows a value of a protected attribute satisfies its models ([`super::protected`]); (8) where verification knows the
//! ladder, no class can be narrowed below k by exclusion ([`super::narrowing`]); (9) every sensitive cell that is not exact
//! hides among k people of its class, and names no rare value ([`super::hidden`]); (10) no subject has more lines in a group
//! than [`GroupTerms::lines`] allows, in this batch or in its release window; (11) no cell names somebody by its form
//! ([`super::identifying`]); (12) nobody who must have been seen before counts earlier, nor for more classes than his budget
//! allows ([`super::budget`]); (13) all lines of a row show the same of the attributes that stand in several
//! groups, at one level for the whole batch, and (5) and (6) hold within each shared value as in a batch ([`super::shared`]). Nothing is taken from the treatment but the bytes and which row
//! each line stands for.
//!
//! Time: O(bytes + rows); it fails closed: any line that cannot be read back refuses the whole batch.

use super::budget;
use super::forced_pairs::{Fragments, Records, judge};
use super::given::{Basis, Given, GroupTerms};
use super::invariants::most_of_one;
use super::recount::{GroupCount, recount};
use super::repetition::{Carriers, LineLimit};
use super::shared::{self, Parts, free, reach};
use super::verified::{Release, Verified};
pub use super::violation::{DataSetRefusal, Refusal, Violation};
use crate::anonymity::treatment::proposal::ProposedGroup;
use rayon::prelude::*;
use throng_core::ledger::delta::LedgerDelta;
use throng_core::ledger::per_subject::LedgerAt;
use throng_core::values::codebook::Codebook;

/// Verifies the `proposed` groups over the rows that are `given`, for crowds of `k`. `ledger` is what is remembered of each
/// subject: its lines, its tenure and its budget. No class counts anybody from it.
///
/// # Errors
/// The first [`Refusal`] found; nothing may leave then.
pub fn verify(
    proposed: Vec<ProposedGroup>,
    given: &Given<'_>,
    terms: &[GroupTerms],
    books: &[Codebook],
    ledger: LedgerAt<'_>,
    k: usize,
) -> Result<Verified, Refusal> {
    if proposed.len() != terms.len() {
        return Err(Refusal { group: None, violation: Violation::WrongGroups });
    }
    // Who has not been seen for long enough is nobody to everything below.
    let settled = budget::settled(given.subjects, ledger);
    let subjects = settled.as_deref().unwrap_or(given.subjects);
    let counting = Given { subjects, ..*given };
    let limits: Vec<LineLimit> = terms.iter().map(|terms| terms.lines).collect();
    let carriers = Carriers::of(given.subjects, &limits).counting(subjects);
    let room = subjects.len() * terms.len();
    let shared = shared::attributes(terms);
    let basis = Basis { given: &counting, books, ledger, k, shared: &shared };
    let mut counts: Vec<GroupCount> = proposed
        .par_iter()
        .zip(terms)
        .enumerate()
        .map(|(index, (group, terms))| {
            let refuse = |violation| Refusal { group: Some(index), violation };
            let said = terms.lines.judge(group, given.subjects, ledger.said(), given.age_ms).map_err(refuse)?;
            let count = recount(group, terms, basis, &carriers, room).map_err(refuse)?;
            Ok::<_, Refusal>(GroupCount { said, ..count })
        })
        .collect::<Result<_, _>>()?;
    let batch_wide = |violation| Refusal { group: None, violation };
    let leaving = proposed.iter().flat_map(|g| &g.rows).map(|&row| subjects[row as usize]);
    if proposed.iter().any(|g| !g.rows.is_empty()) && !reach(leaving, k) {
        return Err(batch_wide(Violation::FewSubjects));
    }
    let parts = counts.iter_mut().map(|count| std::mem::take(&mut count.parts)).collect();
    let parts = Parts::of(parts, subjects, k).map_err(batch_wide)?;
    let (release, fragments) = released(counts, given, ledger);
    let records = if carriers.scattered { Records::OfBoth } else { parts.records() };
    free(judge(&fragments, &carriers.subjects, k, records, 1)).map_err(batch_wide)?;
    parts.judge(&carriers, k).map_err(batch_wide)?;
    debug_assert!(is_whole(&proposed, given, terms, &release), "what is verified is not what was counted");
    let joined = terms.iter().any(|terms| terms.layout.is_joined());
    Ok(Verified::new(proposed, joined, release))
}

/// The counts of all groups together, and their fragments.
fn released(counts: Vec<GroupCount>, given: &Given<'_>, ledger: LedgerAt<'_>) -> (Release, Vec<Fragments>) {
    let (mut release, mut fragments) = (Release::default(), Vec::with_capacity(counts.len()));
    let (mut pairs, mut said) = (Vec::new(), Vec::new());
    for count in counts {
        said.extend(count.said);
        pairs.extend(count.pairs);
        release.risk.add(count.risk);
        release.crowd.add(count.crowd);
        release.smallest_crowds.push(count.crowd.smallest);
        fragments.push(count.fragments);
    }
    let support = budget::delta(given, pairs, ledger);
    let said = ledger.said().map(|known| known.delta(&said, given.age_ms)).unwrap_or_default();
    release.delta = LedgerDelta { support, said };
    (release, fragments)
}

/// For debug builds: every line was counted, no row has two in a group, and no subject more than may leave.
fn is_whole(proposed: &[ProposedGroup], given: &Given<'_>, terms: &[GroupTerms], release: &Release) -> bool {
    let lines: usize = proposed.iter().map(|group| group.rows.len()).sum();
    release.risk.lines == lines as u64
        && proposed.iter().zip(terms).all(|(group, terms)| {
            let subjects = group.rows.iter().map(|&row| given.subjects[row as usize]);
            let most = match terms.lines {
                LineLimit::None => usize::MAX,
                LineLimit::PerBatch(most) => most,
                LineLimit::OncePerWindow(_) => 1,
            };
            most_of_one(&group.rows) <= 1 && most_of_one(subjects) <= most
        })
}

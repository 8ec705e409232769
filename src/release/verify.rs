//! Verification of the release invariant R(k) (docs/methods.md §11.1), from the encoded bytes.
//!
//! Claim. If [`verify`] returns `Ok`, then for every line of every group: (1) the tuple of its quasi cells, read back
//! from the bytes, has at least k distinct subjects among this batch's lines and the ledger's fresh entries, and
//! `batch_crowd` among this batch's lines alone; (2) so has every sensitive cell that is not suppressed, by itself; (3) the
//! lines leave sorted by their bytes; (4) no row has two lines in one group; (5) at least k subjects are in the batch; (6)
//! no pair of label sets of two groups is forced
//! by counting below k; (7) every class that shows a value of a protected attribute satisfies its models
//! ([`super::protected`]); (8) every class has its people in every list that it needs ([`super::listed`]); (9) where
//! recoding is strict, no class can be narrowed below k by exclusion ([`super::narrowing`]); (10) every sensitive cell that
//! is not exact hides among k people of its class in this batch, and names no rare value ([`super::hidden`]); (11) no
//! subject has more lines in a group than [`GroupTerms::lines`] allows, in this batch or in this window of its; (12) no cell
//! names somebody by its form ([`super::identifying`]); (13) all lines of a row show the same of the attributes that stand in several
//! groups, at one level for the whole batch, and (5) and (6) hold within each shared value as in a batch ([`super::shared`]). Nothing is taken from the treatment but the bytes and which row
//! each line stands for.
//!
//! Time: O(bytes + rows); it fails closed: any line that cannot be read back refuses the whole batch.

use super::budget;
use super::forced_pairs::{Fragments, Records, judge};
use super::given::{Basis, Given, GroupTerms, Needs};
use super::invariants::most_of_one;
use super::recount::{GroupCount, recount};
use super::repetition::{Carriers, LineLimit};
use super::shared::{self, Parts, free};
use super::verified::{Crowds, Risk, Verified};
pub use super::violation::{Refusal, Violation};
use crate::anonymity::treatment::proposal::ProposedGroup;
use crate::ledger::at::LedgerAt;
use crate::ledger::delta::LedgerDelta;
use crate::records::codebook::Codebook;
use crate::records::subject::NO_SUBJECT;
use rayon::prelude::*;
use std::collections::HashSet;

/// Verifies the `proposed` groups over the rows that are `given`.
///
/// # Errors
/// The first [`Refusal`] found; nothing may leave then.
pub fn verify(
    proposed: Vec<ProposedGroup>,
    given: &Given<'_>,
    terms: &[GroupTerms],
    books: &[Codebook],
    ledger: LedgerAt<'_>,
    needs: Needs,
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
    let basis = Basis { given: &counting, books, ledger, needs, shared: &shared };
    let mut counts: Vec<GroupCount> = proposed
        .par_iter()
        .zip(terms)
        .enumerate()
        .map(|(index, (group, terms))| {
            let refuse = |violation| Refusal { group: Some(index), violation };
            let judged = terms.lines.judge(group, given.subjects, ledger.said(), given.age_ms);
            let said = judged.map_err(|_| refuse(Violation::Repeated))?;
            let count = recount(group, terms, basis, &carriers, room).map_err(refuse)?;
            Ok::<_, Refusal>(GroupCount { said, ..count })
        })
        .collect::<Result<_, _>>()?;
    let batch_wide = |violation| Refusal { group: None, violation };
    let leaving = proposed.iter().flat_map(|g| &g.rows).map(|&row| subjects[row as usize]);
    if proposed.iter().any(|g| !g.rows.is_empty()) && !reach(leaving, needs.k) {
        return Err(batch_wide(Violation::FewSubjects));
    }
    let parts = counts.iter_mut().map(|count| std::mem::take(&mut count.parts)).collect();
    let parts = Parts::of(parts, subjects, needs.k).map_err(batch_wide)?;
    let release = Release::of(counts, given, ledger);
    let records = if carriers.scattered { Records::OfBoth } else { parts.records() };
    free(judge(&release.fragments, &carriers.subjects, needs.k, records)).map_err(batch_wide)?;
    parts.judge(&carriers, needs.k).map_err(batch_wide)?;
    debug_assert!(is_whole(&proposed, given, terms, &release), "what is verified is not what was counted");
    let joined = terms.iter().any(|terms| terms.layout.is_joined());
    let verified = Verified::new(proposed, release.delta, release.risk, release.crowds);
    Ok(verified.with_smallest_crowds(release.smallest_crowds).leaving_as_one(joined))
}

/// The counts of all groups together.
struct Release {
    delta: LedgerDelta,
    fragments: Vec<Fragments>,
    risk: Risk,
    crowds: Crowds,
    smallest_crowds: Vec<u64>,
}

impl Release {
    fn of(counts: Vec<GroupCount>, given: &Given<'_>, ledger: LedgerAt<'_>) -> Self {
        let age_ms = given.age_ms;
        let mut delta = LedgerDelta {
            time: u32::try_from(age_ms.div_euclid(1000).max(0)).unwrap_or(u32::MAX),
            ..LedgerDelta::default()
        };
        let (mut risk, mut crowds) = (Risk::default(), Crowds::default());
        let mut smallest_crowds = Vec::with_capacity(counts.len());
        let mut fragments = Vec::with_capacity(counts.len());
        let (mut showings, mut pairs, mut said) = (Vec::new(), Vec::new(), Vec::new());
        for count in counts {
            said.extend(count.said);
            showings.extend(count.showings);
            pairs.extend(count.pairs);
            risk.add(count.risk);
            crowds.add(count.crowds);
            smallest_crowds.push(count.crowds.batch.smallest);
            for (class, subjects) in count.delta {
                delta.classes.push((class, u32::try_from(subjects.len()).expect("bounded by the batch")));
                delta.subjects.extend(subjects);
            }
            fragments.push(count.fragments);
        }
        delta.support = budget::delta(given, pairs, ledger);
        delta.said = ledger.said().map(|known| known.delta(&said, age_ms)).unwrap_or_default();
        showings.sort_unstable();
        delta.tally =
            ledger.shown().map(|shown| shown.tally().delta(&showings, given.sequence, age_ms)).unwrap_or_default();
        Self { delta, fragments, risk, crowds, smallest_crowds }
    }
}

/// For debug builds: every line was counted, no row has two in a group, no subject more than may leave, and no class is
/// below k.
fn is_whole(proposed: &[ProposedGroup], given: &Given<'_>, terms: &[GroupTerms], release: &Release) -> bool {
    let lines: usize = proposed.iter().map(|group| group.rows.len()).sum();
    let learned: usize = release.delta.classes.iter().map(|(_, subjects)| *subjects as usize).sum();
    release.risk.lines == lines as u64
        && release.crowds.batch.lines == release.crowds.window.lines
        && release.crowds.window.below_k == 0
        && learned == release.delta.subjects.len()
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

/// Whether `k` distinct subjects are among `subjects`.
fn reach(subjects: impl Iterator<Item = u64>, k: usize) -> bool {
    let mut seen = HashSet::new();
    for subject in subjects.filter(|s| *s != NO_SUBJECT) {
        seen.insert(subject);
        if seen.len() >= k {
            return true;
        }
    }
    false
}

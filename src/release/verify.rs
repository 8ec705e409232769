//! Verification of the release invariant R(k) (METHODS §11), from the encoded bytes.
//!
//! Claim. If [`verify`] returns `Ok`, then for every line of every group: (1) the tuple of its quasi cells, read back
//! from the bytes, has at least k distinct subjects among this batch's lines and the ledger's fresh entries; (2) so has
//! every sensitive cell that is not suppressed, by itself; (3) the lines leave sorted by their bytes; (4) no row has
//! two lines in one group; (5) at least k subjects are in the batch; (6) no pair of cell sets of two groups is forced
//! by counting below k; (7) every class that shows a value of a protected attribute satisfies its models
//! ([`super::protected`]); (8) every class has its people in every list that it needs ([`super::listed`]); (9) no
//! subject has more lines in a group than [`GroupTerms::lines`] allows, in this batch or in this window of its. Nothing is
//! taken from the treatment but the bytes and which row each line stands for.
//!
//! Time: O(bytes + rows); it fails closed: any line that cannot be read back refuses the whole batch.

use super::forced_pairs::{Fragments, forced_pair_among};
use super::ledger::{LedgerAt, LedgerDelta};
use super::listed::{ListedTerms, Printed};
use super::protected::{self, ProtectedTerms};
use super::repetition::{Carriers, LineLimit};
use super::tally::{Showing, Tally};
use super::verified::{Risk, Verified};
use crate::anonymity::treatment::crowd::{NO_SUBJECT, Released};
use crate::anonymity::treatment::proposal::ProposedGroup;
use crate::records::codebook::Codebook;
use crate::records::digest::{BuildClassKeyHash, value_number};
use crate::records::line::LineLayout;
use hashbrown::HashMap;
use rayon::prelude::*;
use std::collections::HashSet;

/// What the verifier knows of a group.
pub struct GroupTerms {
    /// Attributes in the order of the line.
    pub attributes: Vec<usize>,
    /// Which of `attributes` form the class.
    pub quasi: Vec<bool>,
    /// Which of `attributes` need support by themselves.
    pub sensitive: Vec<bool>,
    pub layout: LineLayout,
    /// Digest that names the quasi attribute set in the ledger.
    pub base: u128,
    /// Digest that names each attribute standing beside a class, by position in the schema.
    pub beside: Vec<u128>,
    /// Sensitive attributes whose classes must satisfy models.
    pub protected: Vec<ProtectedTerms>,
    /// Lists of people of whom each class needs enough.
    pub listed: Vec<ListedTerms>,
    pub lines: LineLimit,
}

/// Why a batch may not leave. None of these happens unless the treatment is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("a class has fewer than k subjects")]
    ClassBelowK,
    #[error("a sensitive value has fewer than k subjects of its own")]
    SensitiveBelowK,
    #[error("a class does not satisfy the models of a sensitive attribute")]
    Model,
    #[error("a class has fewer people of a population than its k-map asks for")]
    Listed,
    #[error("a protected sensitive cell is generalized, or of a record that names nobody")]
    ProtectedCell,
    #[error("a line is not what its group's layout writes")]
    UnreadableLine,
    #[error("a cell is no text of its attribute")]
    UnknownCell,
    #[error("a line has nothing but suppressed cells in its class")]
    EmptyClass,
    #[error("a subject has more lines in a group than may leave")]
    Repeated,
    #[error("the lines are not sorted")]
    Unsorted,
    #[error("a row has two lines in one group, or is no row of the batch")]
    WrongRow,
    #[error("the batch has fewer than k subjects")]
    FewSubjects,
    #[error("counting joins two groups below k")]
    ForcedPair,
    #[error("the proposal has another number of groups than the plan")]
    WrongGroups,
}

/// A refusal: the group by position, where one is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("verification refused the batch (group {group:?}): {violation}")]
pub struct Refusal {
    pub group: Option<usize>,
    pub violation: Violation,
}

struct GroupCount {
    delta: Vec<(u128, Vec<u64>)>,
    fragments: Fragments,
    risk: Risk,
    showings: Vec<Showing>,
    said: Vec<u128>,
}

/// Verifies the `proposed` groups over the rows whose subjects are `subjects`.
///
/// # Errors
/// The first [`Refusal`] found; nothing may leave then.
pub fn verify(
    proposed: Vec<ProposedGroup>,
    subjects: &[u64],
    terms: &[GroupTerms],
    books: &[Codebook],
    ledger: LedgerAt<'_>,
    k: usize,
    clock_ms: i64,
) -> Result<Verified, Refusal> {
    if proposed.len() != terms.len() {
        return Err(Refusal { group: None, violation: Violation::WrongGroups });
    }
    let limits: Vec<LineLimit> = terms.iter().map(|terms| terms.lines).collect();
    let carriers = Carriers::of(&proposed, subjects, &limits);
    let counts: Vec<GroupCount> = proposed
        .par_iter()
        .zip(terms)
        .enumerate()
        .map(|(index, (group, terms))| {
            let refuse = |violation| Refusal { group: Some(index), violation };
            let judged = terms.lines.judge(group, subjects, ledger.said(), clock_ms);
            let said = judged.map_err(|_| refuse(Violation::Repeated))?;
            let count = count_group(group, subjects, &carriers, terms, books, ledger, k).map_err(refuse)?;
            Ok::<_, Refusal>(GroupCount { said, ..count })
        })
        .collect::<Result<_, _>>()?;
    let batch_wide = |violation| Refusal { group: None, violation };
    let leaving = proposed.iter().flat_map(|g| &g.rows).map(|&row| subjects[row as usize]);
    if proposed.iter().any(|g| !g.rows.is_empty()) && !reach(leaving, k) {
        return Err(batch_wide(Violation::FewSubjects));
    }
    let mut risk = Risk::default();
    let mut delta = LedgerDelta {
        time: u32::try_from(clock_ms.div_euclid(1000).max(0)).unwrap_or(u32::MAX),
        ..LedgerDelta::default()
    };
    let mut fragments = Vec::with_capacity(counts.len());
    let (mut showings, mut said) = (Vec::new(), Vec::new());
    for count in counts {
        said.extend(count.said);
        showings.extend(count.showings);
        risk.add(count.risk);
        for (class, subjects) in count.delta {
            delta.classes.push((class, u32::try_from(subjects.len()).expect("bounded by the batch")));
            delta.subjects.extend(subjects);
        }
        fragments.push(count.fragments);
    }
    if forced_pair_among(&fragments, &carriers.subjects, k, carriers.leaving) {
        return Err(batch_wide(Violation::ForcedPair));
    }
    delta.said = ledger.said().map(|known| known.delta(&said, clock_ms)).unwrap_or_default();
    showings.sort_unstable();
    delta.tally = ledger.tally().map(|tally: &Tally| tally.delta(&showings, clock_ms)).unwrap_or_default();
    Ok(Verified::new(proposed, delta, risk))
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

/// Subjects of a class, in the order of their first line.
#[derive(Default)]
struct Class {
    lines: u64,
    subjects: Vec<u64>,
    /// The subjects once more, when there are many.
    seen: Option<HashSet<u64>>,
}

/// Classes up to this many subjects are searched by eye.
const FEW: usize = 16;

impl Class {
    fn add(&mut self, subject: u64) {
        self.lines += 1;
        if subject == NO_SUBJECT {
            return;
        }
        if self.subjects.len() <= FEW {
            if self.subjects.contains(&subject) {
                return;
            }
            self.subjects.push(subject);
        } else if self.seen.get_or_insert_with(|| self.subjects.iter().copied().collect()).insert(subject) {
            self.subjects.push(subject);
        }
    }

    /// Distinct subjects here and, up to k, in the ledger: a lower bound of the truth.
    fn support(&self, key: u128, ledger: LedgerAt<'_>, k: usize) -> usize {
        let mut known = vec![0u64; k];
        let count = ledger.fresh_subjects(key, &mut known);
        let old = known[..count].iter().filter(|s| !self.contains(**s)).count();
        self.subjects.len() + old
    }

    fn contains(&self, subject: u64) -> bool {
        self.seen.as_ref().map_or_else(|| self.subjects.contains(&subject), |seen| seen.contains(&subject))
    }
}

fn count_group(
    group: &ProposedGroup,
    subjects: &[u64],
    carriers: &Carriers,
    terms: &GroupTerms,
    books: &[Codebook],
    ledger: LedgerAt<'_>,
    k: usize,
) -> Result<GroupCount, Violation> {
    let mut classes: HashMap<u128, Class, BuildClassKeyHash> = HashMap::default();
    let mut beside: HashMap<u128, Class, BuildClassKeyHash> = HashMap::default();
    let mut fragments = Fragments::new(terms.quasi.iter().zip(&terms.sensitive).filter(|(q, s)| **q || **s).count());
    let mut taken = vec![false; subjects.len()];
    let mut shown: Vec<Vec<(u128, u64, u64)>> = vec![Vec::new(); terms.protected.len()];
    let mut printed: Vec<Printed> = terms.listed.iter().map(|_| Printed::default()).collect();
    let mut cells = Vec::new();
    let mut previous: Option<&[u8]> = None;
    for run in &group.runs {
        let line = group.arena.get(run.line.clone()).ok_or(Violation::UnreadableLine)?;
        if previous.is_some_and(|p| p >= line) {
            return Err(Violation::Unsorted);
        }
        previous = Some(line);
        terms.layout.read(line, &mut cells).ok_or(Violation::UnreadableLine)?;
        if cells.len() != terms.attributes.len() {
            return Err(Violation::UnreadableLine);
        }
        let mut key = terms.base;
        let mut says_something = !terms.quasi.contains(&true);
        let mut singles: Vec<u128> = Vec::new();
        let mut guarded: Vec<Option<u128>> = Vec::new();
        for (i, text) in cells.iter().enumerate() {
            let attribute = terms.attributes[i];
            let coverage = books[attribute].coverage_of(text).ok_or(Violation::UnknownCell)?;
            let suppressed = text == r#""*""#;
            if terms.quasi[i] {
                key = key.wrapping_add(coverage);
                says_something |= !suppressed;
            } else if terms.sensitive[i] && !suppressed {
                singles.push(terms.beside[attribute].wrapping_add(coverage));
            }
            if terms.quasi[i] || terms.sensitive[i] {
                guarded.push((!suppressed).then_some(coverage));
            }
        }
        if !says_something {
            return Err(Violation::EmptyClass);
        }
        for (term, printed) in terms.listed.iter().zip(&mut printed) {
            term.note(&cells, printed);
        }
        let mut values: Vec<Option<u64>> = Vec::with_capacity(terms.protected.len());
        for term in &terms.protected {
            let text = cells.get(term.column).ok_or(Violation::UnreadableLine)?;
            let exact = books[term.attribute].exact_coverage_of(text).map(value_number);
            if text != r#""*""# && exact.is_none() {
                return Err(Violation::ProtectedCell);
            }
            values.push(exact);
        }
        let rows = group.rows.get(run.rows.clone()).ok_or(Violation::WrongRow)?;
        if rows.is_empty() {
            return Err(Violation::WrongRow);
        }
        let class = classes.entry(key).or_default();
        for &row in rows {
            let subject = *subjects.get(row as usize).ok_or(Violation::WrongRow)?;
            if std::mem::replace(&mut taken[row as usize], true) {
                return Err(Violation::WrongRow);
            }
            class.add(subject);
            for single in &singles {
                beside.entry(*single).or_default().add(subject);
            }
            for (shown, value) in shown.iter_mut().zip(&values) {
                if let Some(value) = value {
                    if subject == NO_SUBJECT {
                        return Err(Violation::ProtectedCell);
                    }
                    shown.push((key, *value, subject));
                }
            }
        }
        fragments.add(&guarded, &carriers.rows(rows));
    }
    if group.runs.iter().map(|r| r.rows.len()).sum::<usize>() != group.rows.len() {
        return Err(Violation::WrongRow);
    }
    let mut risk = Risk::default();
    for (key, class) in &classes {
        let support = class.support(*key, ledger, k);
        risk.add(Risk::of_class(support, class.lines, k));
        if support < k && terms.quasi.contains(&true) {
            return Err(Violation::ClassBelowK);
        }
    }
    if beside.iter().any(|(key, class)| class.support(*key, ledger, k) < k) {
        return Err(Violation::SensitiveBelowK);
    }
    for (term, printed) in terms.listed.iter().zip(&printed) {
        term.judge(printed).map_err(|_| Violation::Listed)?;
    }
    let showings = protected::judge(&terms.protected, shown, subjects.len(), ledger).map_err(|_| Violation::Model)?;
    let mut delta: Vec<(u128, Vec<u64>)> = classes
        .into_iter()
        .chain(beside)
        .filter(|(key, class)| !class.subjects.is_empty() && !ledger.well_supported(*key))
        // The ledger keeps the k latest of a class, all of one batch are equally late: the k greatest digests stay.
        .map(|(key, mut class)| {
            class.subjects.sort_unstable_by(|a, b| b.cmp(a));
            class.subjects.truncate(k);
            (key, class.subjects)
        })
        .collect();
    // A fixed order, so that the delta's bytes are a function of the batch.
    delta.sort_unstable();
    Ok(GroupCount { delta, fragments, risk, showings, said: Vec::new() })
}

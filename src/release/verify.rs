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
//! names somebody by its form ([`super::identifying`]). Nothing is taken from the treatment but the bytes and which row
//! each line stands for.
//!
//! Time: O(bytes + rows); it fails closed: any line that cannot be read back refuses the whole batch.

use super::budget;
use super::forced_pairs::{Counting, Fragments, judge};
use super::given::{Given, GroupTerms, Needs};
use super::hidden;
use super::identifying::names_somebody;
use super::listed::Printed;
use super::narrowing;
use super::protected;
use super::repetition::{Carriers, LineLimit};
use super::verified::{Crowd, Crowds, Risk, Verified};
use crate::anonymity::treatment::proposal::ProposedGroup;
use crate::ledger::at::LedgerAt;
use crate::ledger::delta::LedgerDelta;
use crate::ledger::tally::Showing;
use crate::records::codebook::Codebook;
use crate::records::digest::{BuildClassKeyHash, value_number};
use crate::records::subject::NO_SUBJECT;
use hashbrown::HashMap;
use rayon::prelude::*;
use std::collections::HashSet;

/// Why a batch may not leave. None of these but one happens unless the treatment is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("a class has fewer than k subjects")]
    ClassBelowK,
    #[error("a class has fewer subjects in its batch than it needs there")]
    BatchCrowd,
    #[error("a class has fewer than k subjects whose raw values cannot be excluded")]
    Narrowed,
    #[error("a sensitive value has fewer than k subjects of its own, or fewer in its batch than it needs there")]
    SensitiveBelowK,
    #[error("a class does not satisfy the models of a sensitive attribute")]
    Model,
    #[error("a class has fewer people of a population than its k-map asks for")]
    Listed,
    #[error("a sensitive cell that is not exact says who, or what")]
    TellingCell,
    #[error("a protected sensitive cell is generalized, or of a record that names nobody")]
    ProtectedCell,
    #[error("somebody supports more classes than he may")]
    Budget,
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
    /// The one that a treatment without fault can meet: it leaves one of these two groups out then.
    #[error("there was no time to tell whether counting joins the groups {0:?} below k")]
    Unjudged([usize; 2]),
    #[error("a cell names somebody by its form")]
    Identifier,
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
    crowds: Crowds,
    showings: Vec<Showing>,
    pairs: Vec<(u128, u64, u128)>,
    said: Vec<u128>,
}

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
    let (age_ms, k) = (given.age_ms, needs.k);
    // Who has not been seen for long enough is nobody to everything below.
    let settled = budget::settled(given.subjects, ledger);
    let subjects = settled.as_deref().unwrap_or(given.subjects);
    let counting = Given { subjects, ..*given };
    let room = subjects.len() * terms.len();
    if proposed.len() != terms.len() {
        return Err(Refusal { group: None, violation: Violation::WrongGroups });
    }
    let limits: Vec<LineLimit> = terms.iter().map(|terms| terms.lines).collect();
    let carriers = Carriers::of(given.subjects, &limits).counting(subjects);
    let counts: Vec<GroupCount> = proposed
        .par_iter()
        .zip(terms)
        .enumerate()
        .map(|(index, (group, terms))| {
            let refuse = |violation| Refusal { group: Some(index), violation };
            let judged = terms.lines.judge(group, given.subjects, ledger.said(), age_ms);
            let said = judged.map_err(|_| refuse(Violation::Repeated))?;
            let count = count_group(group, &counting, &carriers, terms, books, ledger, needs, room).map_err(refuse)?;
            Ok::<_, Refusal>(GroupCount { said, ..count })
        })
        .collect::<Result<_, _>>()?;
    let batch_wide = |violation| Refusal { group: None, violation };
    let leaving = proposed.iter().flat_map(|g| &g.rows).map(|&row| subjects[row as usize]);
    if proposed.iter().any(|g| !g.rows.is_empty()) && !reach(leaving, k) {
        return Err(batch_wide(Violation::FewSubjects));
    }
    let (mut risk, mut crowds) = (Risk::default(), Crowds::default());
    let mut delta = LedgerDelta {
        time: u32::try_from(age_ms.div_euclid(1000).max(0)).unwrap_or(u32::MAX),
        ..LedgerDelta::default()
    };
    let mut fragments = Vec::with_capacity(counts.len());
    let (mut showings, mut pairs, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for count in counts {
        said.extend(count.said);
        showings.extend(count.showings);
        pairs.extend(count.pairs);
        risk.add(count.risk);
        crowds.add(count.crowds);
        for (class, subjects) in count.delta {
            delta.classes.push((class, u32::try_from(subjects.len()).expect("bounded by the batch")));
            delta.subjects.extend(subjects);
        }
        fragments.push(count.fragments);
    }
    match judge(&fragments, &carriers.subjects, k, carriers.scattered) {
        Counting::Free => {}
        Counting::Forced => return Err(batch_wide(Violation::ForcedPair)),
        Counting::Unjudged(groups) => return Err(batch_wide(Violation::Unjudged(groups))),
    }
    delta.support = budget::delta(given, pairs, ledger);
    delta.said = ledger.said().map(|known| known.delta(&said, age_ms)).unwrap_or_default();
    showings.sort_unstable();
    delta.tally =
        ledger.shown().map(|shown| shown.tally().delta(&showings, given.sequence, age_ms)).unwrap_or_default();
    Ok(Verified::new(proposed, delta, risk, crowds))
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
    given: &Given<'_>,
    carriers: &Carriers,
    terms: &GroupTerms,
    books: &[Codebook],
    ledger: LedgerAt<'_>,
    needs: Needs,
    room: usize,
) -> Result<GroupCount, Violation> {
    let (Needs { k, batch_crowd }, subjects) = (needs, given.subjects);
    let is_muted = |row: u32| group.muted.get(row as usize).copied().unwrap_or(false);
    let mut class_of: Vec<(u128, u32)> = Vec::new();
    let mut hidings: Vec<hidden::Run<'_>> = Vec::with_capacity(group.runs.len());
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
        let mut hiding: Vec<Option<u128>> = Vec::new();
        let mut printed_in: Vec<usize> = Vec::new();
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
            if terms.sensitive[i] {
                hiding.push(books[attribute].exact_coverage_of(text).is_none().then_some(coverage));
            }
            if terms.quasi[i] || terms.sensitive[i] {
                // A label of a hierarchy is the schema's own word.
                if names_somebody(text) && books[attribute].exact_coverage_of(text).is_some() {
                    return Err(Violation::Identifier);
                }
                guarded.push((!suppressed).then_some(coverage));
                printed_in.push(i);
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
            class.add(if is_muted(row) { NO_SUBJECT } else { subject });
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
        if terms.narrowing.is_some() {
            class_of.extend(rows.iter().map(|&row| (key, row)));
        }
        if !hiding.is_empty() {
            hidings.push(hidden::Run { class: key, hidden: hiding, rows });
        }
        let above = |column: usize| {
            let i = printed_in[column];
            books[terms.attributes[i]].coverages_above(&cells[i])
        };
        fragments.add(&guarded, &carriers.rows(rows), above);
    }
    if group.runs.iter().map(|r| r.rows.len()).sum::<usize>() != group.rows.len() {
        return Err(Violation::WrongRow);
    }
    let (mut risk, mut crowds) = (Risk::default(), Crowds::default());
    for (key, class) in &classes {
        let support = class.support(*key, ledger, k);
        risk.add(Risk::of_class(support, class.lines, k));
        if terms.quasi.contains(&true) {
            if support < k {
                return Err(Violation::ClassBelowK);
            }
            if class.subjects.len() < batch_crowd {
                return Err(Violation::BatchCrowd);
            }
            crowds.batch.add(Crowd::of_class(class.subjects.len(), class.lines, k));
            crowds.window.add(Crowd::of_class(support, class.lines, k));
        }
    }
    if beside.iter().any(|(key, class)| class.subjects.len() < batch_crowd || class.support(*key, ledger, k) < k) {
        return Err(Violation::SensitiveBelowK);
    }
    if let Some(narrowing) = &terms.narrowing {
        let counting: Vec<u64> =
            (0..).zip(subjects).map(|(row, &subject)| if is_muted(row) { NO_SUBJECT } else { subject }).collect();
        let given = Given { subjects: &counting, ..*given };
        narrowing::judge(narrowing, terms.base, &terms.listed, class_of, &given, books, ledger, needs)
            .map_err(|_| Violation::Narrowed)?;
    }
    hidden::judge(&hidings, given, terms, books, ledger, needs).map_err(|_| Violation::TellingCell)?;
    for (term, printed) in terms.listed.iter().zip(&printed) {
        term.judge(printed).map_err(|_| Violation::Listed)?;
    }
    let showings = protected::judge(&terms.protected, shown, subjects.len(), batch_crowd > 0, ledger)
        .map_err(|_| Violation::Model)?;
    let of_group = classes.iter().filter(|_| terms.quasi.contains(&true));
    let counted = of_group.map(|(key, class)| (*key, class.subjects.as_slice()));
    let pairs = budget::judge(terms.base, counted, room, ledger).map_err(|_| Violation::Budget)?;
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
    Ok(GroupCount { delta, fragments, risk, crowds, showings, pairs, said: Vec::new() })
}

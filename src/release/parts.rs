//! Verification of a release that is too large for one batch: part by part, each a batch of its own to [`verify`].
//!
//! Claim. If [`Parts::part`] returned `Ok` for every part and then [`Parts::whole`] does, all their lines together are as [`verify`] would
//! have them, were they one batch without a ledger and with the same terms:
//!
//! - *Lines and rows.* No number of a row is in two parts, or twice in one.
//! - *Classes.* No class is in two parts, so what is said of a class of a part (its people, its hidden cells, its models) is said of it in the
//!   whole release.
//! - *Single values.* Every sensitive value that some line shows is shown by lines of k people, counted over all parts from their bytes.
//! - *Hidden values.* What a part is [`Told`] of the others decides nothing that is not seen: each person who is said to have a value has it in
//!   a line of some part, and an attribute that is said to be shown nowhere is `*` in every line of every part.
//!
//! Nothing of a part may leave before [`Parts::whole`] has said so. Nothing here is the treatment's word: what it tells is counted again.
//!
//! Memory: 17 bytes a class, k people a sensitive value, a bit a row; and what [`verify`] needs for one part.

use super::given::{Given, GroupTerms};
use super::verified::{Risk, Verified};
use super::verify::{Refusal, Violation, verify};
use crate::anonymity::treatment::proposal::ProposedGroup;
use hashbrown::{HashMap, HashSet};
use throng_core::ledger::per_subject::Ledger;
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::BuildClassKeyHash;
use throng_core::values::holders::Holders;
use throng_core::values::subject::NO_SUBJECT;

/// What is said of all lines together before any of them is seen.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// By position of a sensitive attribute in the schema and code: people of lines that leave who have the value, k of them at the most.
    pub holders: Vec<(usize, Vec<Vec<u64>>)>,
    /// The sensitive attributes of which some line shows a value, by position in the schema.
    pub shown: Vec<usize>,
}

/// Why a release in parts may not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the message of each says it")]
pub enum PartRefusal {
    #[error(transparent)]
    Part(#[from] Refusal),
    #[error("verification refused the release: a class is in two parts of it")]
    DividedClass,
    #[error("verification refused the release: a sensitive value has fewer than k people who show it in all parts")]
    SensitiveBelowK,
    #[error("verification refused the release: what a part was told of the others is not what they show")]
    Untrue,
}

/// Leave to write the lines of all parts: only [`Parts::whole`] gives it.
#[derive(Debug)]
pub struct Whole {
    risk: Risk,
}

impl Whole {
    /// Risk of what leaves.
    #[must_use]
    pub fn risk(&self) -> Risk {
        self.risk
    }
}

/// The parts that have been verified so far.
pub struct Parts<'a> {
    terms: [GroupTerms; 1],
    books: &'a [Codebook],
    k: usize,
    /// Of those, by value: whom no line has shown to have it so far.
    unseen: HashMap<u128, Vec<u64>, BuildClassKeyHash>,
    /// By value that lines show: the people of these lines, up to k.
    showing: HashMap<u128, Vec<u64>, BuildClassKeyHash>,
    classes: HashSet<u128, BuildClassKeyHash>,
    /// A bit a row of the input.
    taken: Vec<u64>,
    risk: Risk,
}

impl<'a> Parts<'a> {
    /// For parts of an input of so many `rows`, all under the same `terms`.
    ///
    /// # Errors
    /// When more is told than there are values.
    pub fn new(
        rows: usize,
        told: Told,
        terms: GroupTerms,
        books: &'a [Codebook],
        k: usize,
    ) -> Result<Self, PartRefusal> {
        let mut unseen: HashMap<u128, Vec<u64>, BuildClassKeyHash> = HashMap::default();
        let mut holders = Holders::default();
        for (attribute, by_code) in told.holders {
            let digests = books[attribute].digests(0);
            for (code, people) in by_code.into_iter().enumerate().filter(|(_, people)| !people.is_empty()) {
                let value = digests.get(code).ok_or(PartRefusal::Untrue)?;
                let key = terms.sensitive_bases[attribute].wrapping_add(*value);
                holders.add(key, &people);
                unseen.entry(key).or_default().extend(people);
            }
        }
        Ok(Self {
            terms: [GroupTerms { shown_beside: told.shown, holders_beside: holders, ..terms }],
            books,
            k,
            unseen,
            showing: HashMap::default(),
            classes: HashSet::default(),
            taken: vec![0; rows.div_ceil(64)],
            risk: Risk::default(),
        })
    }

    /// The terms of every part.
    #[must_use]
    pub fn terms(&self) -> &GroupTerms {
        &self.terms[0]
    }

    /// Verifies one part, whose rows have these `numbers` in the input.
    ///
    /// # Errors
    /// See [`PartRefusal`]; nothing of any part may leave then.
    pub fn part(
        &mut self,
        proposed: ProposedGroup,
        given: &Given<'_>,
        numbers: &[u32],
    ) -> Result<Verified, PartRefusal> {
        let verified = verify(vec![proposed], given, &self.terms, self.books, Ledger::default().at(0), self.k)?;
        self.note(&verified, given, numbers)?;
        self.risk.add(verified.risk());
        Ok(verified)
    }

    /// Takes in what the lines of a part say, from their bytes, and what their rows have.
    fn note(&mut self, verified: &Verified, given: &Given<'_>, numbers: &[u32]) -> Result<(), PartRefusal> {
        let Self { terms: [terms], books, k, unseen, showing, taken, .. } = self;
        let refuse = |violation| PartRefusal::Part(Refusal { group: Some(0), violation });
        let sensitive: Vec<usize> = (0..terms.attributes.len()).filter(|&at| terms.sensitive[at]).collect();
        let mut cells = Vec::new();
        let mut here: HashSet<u128, BuildClassKeyHash> = HashSet::default();
        let mut shown: Vec<u128> = Vec::new();
        let mut before: Option<&[u8]> = None;
        for line in verified.lines(0) {
            // Lines that are alike follow each other.
            if before.replace(line.bytes) != Some(line.bytes) {
                terms.layout.read(line.bytes, &mut cells).ok_or(refuse(Violation::UnreadableLine))?;
                let mut class = terms.base;
                shown.clear();
                for (at, text) in cells.iter().enumerate() {
                    let attribute = *terms.attributes.get(at).ok_or(refuse(Violation::UnreadableLine))?;
                    let coverage = || books[attribute].coverage_of(text).ok_or(refuse(Violation::UnknownCell));
                    if terms.quasi[at] {
                        class = class.wrapping_add(coverage()?);
                    } else if terms.sensitive[at] && text != r#""*""# {
                        if !terms.shown_beside.contains(&attribute) {
                            return Err(PartRefusal::Untrue);
                        }
                        shown.push(terms.sensitive_bases[attribute].wrapping_add(coverage()?));
                    }
                }
                here.insert(class);
            }
            let (row, wrong) = (line.row as usize, refuse(Violation::WrongRow));
            let number = *numbers.get(row).ok_or(wrong)? as usize;
            let word = taken.get_mut(number / 64).ok_or(wrong)?;
            let bit = 1 << (number % 64);
            if *word & bit != 0 {
                return Err(wrong);
            }
            *word |= bit;
            let person = *given.subjects.get(row).ok_or(wrong)?;
            if person == NO_SUBJECT {
                // Nobody shows nothing of anybody; a value that nobody else shows lacks its people all the same.
                for value in &shown {
                    showing.entry(*value).or_default();
                }
                continue;
            }
            for value in &shown {
                let people = showing.entry(*value).or_default();
                if people.len() < *k && !people.contains(&person) {
                    people.push(person);
                }
            }
            for &at in &sensitive {
                let attribute = terms.attributes[at];
                let code = *given.columns[attribute].get(row).ok_or(wrong)? as usize;
                let value = *books[attribute].digests(0).get(code).ok_or(wrong)?;
                let key = terms.sensitive_bases[attribute].wrapping_add(value);
                if let Some(people) = unseen.get_mut(&key) {
                    people.retain(|unseen| *unseen != person);
                    if people.is_empty() {
                        unseen.remove(&key);
                    }
                }
            }
        }
        let classes = self.classes.len() + here.len();
        self.classes.extend(here);
        if self.classes.len() == classes { Ok(()) } else { Err(PartRefusal::DividedClass) }
    }

    /// All parts have been verified: whether they may leave together.
    ///
    /// # Errors
    /// See [`PartRefusal`]; nothing of any part may leave then.
    pub fn whole(self) -> Result<Whole, PartRefusal> {
        if self.showing.values().any(|people| people.len() < self.k) {
            return Err(PartRefusal::SensitiveBelowK);
        }
        if !self.unseen.is_empty() {
            return Err(PartRefusal::Untrue);
        }
        Ok(Whole { risk: self.risk })
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;

//! Verification of a release in parts; each part is one batch for [`verify`].
//!
//! Claim. If [`PartVerifier::verify_part`] returns `Ok` for every part, and then [`PartVerifier::finish_release`], all
//! lines satisfy [`verify`] as one batch without ledger:
//!
//! - No row number occurs twice.
//! - No class is in two parts, so results for classes hold in the whole release.
//! - Every shown sensitive value has lines of k subjects over all parts.
//! - [`PartPremises`] about other parts hold: each listed subject has its value in a line of some part, and an
//!   attribute not listed as shown is `*` everywhere.
//!
//! Memory beyond one part: 17 bytes per class, k subjects per sensitive value, one bit per row.

use super::verified_batch::{ReidentificationRisk, ReleasableBatch};
use super::verifier_input::{GroupTerms, VerifierInput};
use super::verify::{BatchRefusal, Violation, verify};
use crate::ledger::subject_ledger::SubjectLedger;
use crate::treatment::proposal::ProposedGroup;
use crate::values::codebook::Codebook;
use crate::values::digest::BuildClassKeyHash;
use crate::values::subject_digest::NO_SUBJECT;
use crate::values::subjects_by_value::SubjectsByValue;
use hashbrown::{HashMap, HashSet};

/// Premises about all lines together.
#[derive(Clone, Debug, Default)]
pub struct PartPremises {
    /// At most k subjects of lines with a value, by sensitive attribute (schema position) and code.
    pub holders: Vec<(usize, Vec<Vec<u64>>)>,
    /// Schema positions of sensitive attributes with a shown value.
    pub shown: Vec<usize>,
}

/// Reason for a refused release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages document the cases")]
pub enum PartRefusal {
    #[error(transparent)]
    Part(#[from] BatchRefusal),
    #[error("verification refused the release: a class is in two parts")]
    DividedClass,
    #[error("verification refused the release: fewer than k people show a sensitive value over all parts")]
    SensitiveBelowK,
    #[error("verification refused the release: the assumptions of a part about the other parts are wrong")]
    FalsePremise,
}

/// Permission to write all parts, made by [`PartVerifier::finish_release`] only.
#[derive(Debug)]
pub struct ReleasePermit {
    risk: ReidentificationRisk,
}

impl ReleasePermit {
    /// Risk of the released lines.
    #[must_use]
    pub fn risk(&self) -> ReidentificationRisk {
        self.risk
    }
}

/// Verifier of a release in parts.
pub struct PartVerifier<'a> {
    terms: [GroupTerms; 1],
    books: &'a [Codebook],
    k: usize,
    /// Unconfirmed subjects of the premises, by value.
    unconfirmed: HashMap<u128, Vec<u64>, BuildClassKeyHash>,
    /// Up to k subjects of lines, by shown value.
    showing: HashMap<u128, Vec<u64>, BuildClassKeyHash>,
    classes: HashSet<u128, BuildClassKeyHash>,
    /// One bit per row of the input.
    taken: Vec<u64>,
    risk: ReidentificationRisk,
}

impl<'a> PartVerifier<'a> {
    /// Starts with an input of `rows` rows.
    ///
    /// # Errors
    /// [`PartRefusal::FalsePremise`] if a listed value does not exist.
    pub fn new(
        rows: usize,
        told: PartPremises,
        terms: GroupTerms,
        books: &'a [Codebook],
        k: usize,
    ) -> Result<Self, PartRefusal> {
        let mut unseen: HashMap<u128, Vec<u64>, BuildClassKeyHash> = HashMap::default();
        let mut holders = SubjectsByValue::default();
        for (attribute, by_code) in told.holders {
            let digests = books[attribute].digests(0);
            for (code, people) in by_code.into_iter().enumerate().filter(|(_, people)| !people.is_empty()) {
                let value = digests.get(code).ok_or(PartRefusal::FalsePremise)?;
                let key = terms.sensitive_bases[attribute].wrapping_add(*value);
                holders.add(key, &people);
                unseen.entry(key).or_default().extend(people);
            }
        }
        Ok(Self {
            terms: [GroupTerms { shown_elsewhere: told.shown, holders_elsewhere: holders, ..terms }],
            books,
            k,
            unconfirmed: unseen,
            showing: HashMap::default(),
            classes: HashSet::default(),
            taken: vec![0; rows.div_ceil(64)],
            risk: ReidentificationRisk::default(),
        })
    }

    /// Terms of every part.
    #[must_use]
    pub fn terms(&self) -> &GroupTerms {
        &self.terms[0]
    }

    /// Verifies one part; `numbers` are its row numbers.
    ///
    /// # Errors
    /// See [`PartRefusal`].
    pub fn verify_part(
        &mut self,
        proposed: ProposedGroup,
        given: &VerifierInput<'_>,
        numbers: &[u32],
    ) -> Result<ReleasableBatch, PartRefusal> {
        let verified = verify(vec![proposed], given, &self.terms, self.books, SubjectLedger::default().at(0), self.k)?;
        self.record_lines(&verified, given, numbers)?;
        self.risk.add(verified.risk());
        Ok(verified)
    }

    fn record_lines(
        &mut self,
        verified: &ReleasableBatch,
        given: &VerifierInput<'_>,
        numbers: &[u32],
    ) -> Result<(), PartRefusal> {
        let Self { terms: [terms], books, k, unconfirmed: unseen, showing, taken, .. } = self;
        let refuse = |violation| PartRefusal::Part(BatchRefusal { group: Some(0), violation });
        let sensitive: Vec<usize> = (0..terms.attributes.len()).filter(|&at| terms.sensitive[at]).collect();
        let mut cells = Vec::new();
        let mut here: HashSet<u128, BuildClassKeyHash> = HashSet::default();
        let mut shown: Vec<u128> = Vec::new();
        let mut before: Option<&[u8]> = None;
        for line in verified.lines(0) {
            // Equal lines are consecutive.
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
                        if !terms.shown_elsewhere.contains(&attribute) {
                            return Err(PartRefusal::FalsePremise);
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
                // Values shown by rows without a subject need k subjects too.
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

    /// Permits the release after all parts.
    ///
    /// # Errors
    /// See [`PartRefusal`].
    pub fn finish_release(self) -> Result<ReleasePermit, PartRefusal> {
        if self.showing.values().any(|people| people.len() < self.k) {
            return Err(PartRefusal::SensitiveBelowK);
        }
        if !self.unconfirmed.is_empty() {
            return Err(PartRefusal::FalsePremise);
        }
        Ok(ReleasePermit { risk: self.risk })
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;

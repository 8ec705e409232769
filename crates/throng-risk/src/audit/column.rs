//! Columns: as they were read, and judged.

use crate::identifiers::{Judgement, Profile, Reason, Rule};
use std::collections::BTreeMap;
use throng_core::values::dictionary::{Dictionary, FIRST_VALUE};
use throng_core::values::schema::Role;

/// A column of the table to judge.
#[derive(Clone, Debug)]
pub struct AuditColumn {
    /// Its name in the input.
    pub name: String,
    /// The role that a schema gives it; none without a schema.
    pub role: Option<Role>,
    /// It has a generalization hierarchy: recoded and not removed, however many values it has.
    pub recodable: bool,
    /// A code of the dictionary a row.
    pub codes: Vec<u32>,
    /// The values behind the codes.
    pub dictionary: Dictionary,
}

/// What was counted of a column until it had more different values than can be held.
#[derive(Clone, Debug)]
pub struct GivenUp {
    /// Its profile, over the records until then.
    pub profile: Profile,
    /// How many values had so many records.
    pub sizes: BTreeMap<u64, u64>,
}

impl GivenUp {
    /// From the rows of each code of a dictionary so far; `described`: its texts are canonical.
    pub fn of(counts: &[u64], dictionary: &Dictionary, described: bool) -> Self {
        let mut sizes = BTreeMap::new();
        for count in counts.iter().filter(|count| **count > 0) {
            *sizes.entry(*count).or_default() += 1;
        }
        Self { profile: with_texts(Profile::of_counts(counts, is_missing), dictionary, described), sizes }
    }

    pub(super) fn judged(self, column: &AuditColumn, rule: Rule) -> Outgrown {
        let judgement = judgement(column, &self.profile, rule);
        let (name, role, profile) = (column.name.clone(), column.role, self.profile);
        Outgrown { judged: Judged { name, role, profile, judgement }, sizes: self.sizes }
    }
}

/// A column that has been judged.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub name: String,
    pub role: Option<Role>,
    pub profile: Profile,
    pub judgement: Judgement,
}

impl Judged {
    /// Is it part of the search?
    pub fn is_searched(&self) -> bool {
        !self.judgement.identifies() && self.role != Some(Role::Insensitive)
    }
}

/// Does a code say that there is no value?
pub(super) fn is_missing(code: u32) -> bool {
    code < FIRST_VALUE
}

/// A profile with the shape of a column's values. With a schema, these are canonical texts: numbers of eight digits are not
/// telephones. Without one, everything is a text.
pub(super) fn with_texts(profile: Profile, dictionary: &Dictionary, described: bool) -> Profile {
    let texts = dictionary.texts();
    if described { profile.with_texts(texts.filter(|text| text.starts_with('"'))) } else { profile.with_texts(texts) }
}

/// What follows from a profile and from what a schema declares.
pub(super) fn judgement(column: &AuditColumn, profile: &Profile, rule: Rule) -> Judgement {
    let mut judgement = rule.judge(profile, column.recodable, Some(&column.name));
    if column.role == Some(Role::Identifier) {
        judgement.reasons.insert(0, Reason::Declared);
    }
    judgement
}

/// A column that was given up while it was read, judged by what had been read of it.
#[derive(Clone, Debug)]
pub(super) struct Outgrown {
    pub judged: Judged,
    /// How many values have so many records.
    pub sizes: BTreeMap<u64, u64>,
}

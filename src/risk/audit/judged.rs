//! A column, and whether it identifies by itself.

use super::column::AuditColumn;
use crate::records::dictionary::{Dictionary, FIRST_VALUE};
use crate::records::schema::Role;
use crate::risk::identifiers::{Judgement, Profile, Reason, Rule};

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

/// Different codes that say that there is no value; the table's dense codes begin with them.
pub(super) fn missing_codes(codes: &[u32]) -> u32 {
    (0..FIRST_VALUE).map(|missing| u32::from(codes.contains(&missing))).sum()
}

/// Counts a column, beside the people behind its rows, and judges it.
pub(super) fn judge(column: &AuditColumn, people: Option<&[u32]>, rule: Rule) -> (Profile, Judgement) {
    let codes = FIRST_VALUE as usize + column.dictionary.values();
    let mut profile = Profile::of_codes(&column.codes, codes, is_missing);
    profile = with_texts(profile, &column.dictionary, column.role.is_some());
    if let Some(people) = people {
        profile = profile.with_people(&column.codes, people, is_missing);
    }
    let judgement = judgement(column, &profile, rule);
    (profile, judgement)
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

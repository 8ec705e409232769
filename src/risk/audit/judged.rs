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

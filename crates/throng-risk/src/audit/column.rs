//! Columns of an audit, as read and after their judgement.

use crate::identifiers::{ColumnProfile, IdentifierJudgement, IdentifierReason, IdentifierRule};
use std::collections::BTreeMap;
use throng_core::values::dictionary::{Dictionary, FIRST_VALUE};
use throng_core::values::schema::Role;

/// Column of the table to judge.
#[derive(Clone, Debug)]
pub struct AuditColumn {
    /// Name in the input.
    pub name: String,
    /// Role from the schema; `None` without a schema.
    pub role: Option<Role>,
    /// True if it has a generalization hierarchy. It is then recoded and not removed, even with many values.
    pub recodable: bool,
    /// Dictionary code per row.
    pub codes: Vec<u32>,
    /// Values of the codes.
    pub dictionary: Dictionary,
}

/// Counts of a column until it exceeded the number of distinct values that fit into memory.
#[derive(Clone, Debug)]
pub struct PartialColumnCounts {
    /// Profile of the records up to that point.
    pub profile: ColumnProfile,
    /// Number of values per number of records.
    pub sizes: BTreeMap<u64, u64>,
}

impl PartialColumnCounts {
    /// Creates the counts from the rows per dictionary code. `described` means that the texts are canonical.
    pub fn of(counts: &[u64], dictionary: &Dictionary, described: bool) -> Self {
        let mut sizes = BTreeMap::new();
        for count in counts.iter().filter(|count| **count > 0) {
            *sizes.entry(*count).or_default() += 1;
        }
        Self { profile: with_texts(ColumnProfile::of_counts(counts, is_missing), dictionary, described), sizes }
    }

    pub(super) fn judge_truncated(self, column: &AuditColumn, rule: IdentifierRule) -> TruncatedColumn {
        let judgement = judgement(column, &self.profile, rule);
        let (name, role, profile) = (column.name.clone(), column.role, self.profile);
        TruncatedColumn { judged: JudgedColumn { name, role, profile, judgement }, sizes: self.sizes }
    }
}

#[derive(Clone, Debug)]
pub(super) struct JudgedColumn {
    pub name: String,
    pub role: Option<Role>,
    pub profile: ColumnProfile,
    pub judgement: IdentifierJudgement,
}

impl JudgedColumn {
    /// Returns true if the column is part of the search.
    pub fn is_searched(&self) -> bool {
        !self.judgement.identifies() && self.role != Some(Role::Insensitive)
    }
}

pub(super) fn is_missing(code: u32) -> bool {
    code < FIRST_VALUE
}

/// Adds the shape of a column's values to a profile.
///
/// With a schema, values are canonical texts, and only strings are used: a number of eight digits is not a telephone
/// number. Without a schema, every value is a text.
pub(super) fn with_texts(profile: ColumnProfile, dictionary: &Dictionary, described: bool) -> ColumnProfile {
    let texts = dictionary.texts();
    if described { profile.with_texts(texts.filter(|text| text.starts_with('"'))) } else { profile.with_texts(texts) }
}

/// Judges a column by its profile and by its declared role.
pub(super) fn judgement(column: &AuditColumn, profile: &ColumnProfile, rule: IdentifierRule) -> IdentifierJudgement {
    let mut judgement = rule.judge(profile, column.recodable, Some(&column.name));
    if column.role == Some(Role::Identifier) {
        judgement.reasons.insert(0, IdentifierReason::Declared);
    }
    judgement
}

/// Column with too many values to be read completely, judged by the records read until then.
#[derive(Clone, Debug)]
pub(super) struct TruncatedColumn {
    pub judged: JudgedColumn,
    /// Number of values per number of records.
    pub sizes: BTreeMap<u64, u64>,
}

//! Columns of an audit.

use crate::identifiers::{ColumnProfile, IdentifierJudgement, IdentifierReason, IdentifierRule};
use std::collections::BTreeMap;
use throng_core::values::dictionary::{Dictionary, FIRST_VALUE};
use throng_core::values::schema::Role;

/// Column to judge.
#[derive(Clone, Debug)]
pub struct AuditColumn {
    /// Name in the input.
    pub name: String,
    /// Role from the schema, if there is one.
    pub role: Option<Role>,
    /// True if it has a hierarchy, so that it is recoded and not removed.
    pub recodable: bool,
    /// Dictionary code per row.
    pub codes: Vec<u32>,
    /// Values by code.
    pub dictionary: Dictionary,
}

/// Counts of a column with too many values.
#[derive(Clone, Debug)]
pub struct PartialColumnCounts {
    /// Profile of its first records.
    pub profile: ColumnProfile,
    /// Number of values per number of records.
    pub sizes: BTreeMap<u64, u64>,
}

impl PartialColumnCounts {
    /// Creates the counts from the rows per code. `described` means canonical texts.
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
    pub fn is_searched(&self) -> bool {
        !self.judgement.identifies() && self.role != Some(Role::Insensitive)
    }
}

pub(super) fn is_missing(code: u32) -> bool {
    code < FIRST_VALUE
}

/// With a schema, only strings have shapes: a number of eight digits is no telephone number.
pub(super) fn with_texts(profile: ColumnProfile, dictionary: &Dictionary, described: bool) -> ColumnProfile {
    let texts = dictionary.texts();
    if described { profile.with_texts(texts.filter(|text| text.starts_with('"'))) } else { profile.with_texts(texts) }
}

pub(super) fn judgement(column: &AuditColumn, profile: &ColumnProfile, rule: IdentifierRule) -> IdentifierJudgement {
    let mut judgement = rule.judge(profile, column.recodable, Some(&column.name));
    if column.role == Some(Role::Identifier) {
        judgement.reasons.insert(0, IdentifierReason::Declared);
    }
    judgement
}

/// Column judged by its first records.
#[derive(Clone, Debug)]
pub(super) struct TruncatedColumn {
    pub judged: JudgedColumn,
    pub sizes: BTreeMap<u64, u64>,
}

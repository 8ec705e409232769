//! Giving up a column, and judging it by what was counted.

use super::column::{AuditColumn, GivenUp};
use super::judged::{Judged, is_missing, judgement, with_texts};
use super::outgrown::Outgrown;
use crate::records::dictionary::Dictionary;
use crate::risk::identifiers::{Profile, Rule};
use std::collections::BTreeMap;

impl GivenUp {
    /// From the rows of each code of a dictionary so far; `described`: its texts are canonical.
    #[must_use]
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

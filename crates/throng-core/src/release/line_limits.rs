//! Verification of repetition, and the units of counting.
//!
//! Claim. If `LineLimit::check_lines` returns `Ok` for every group, no subject exceeds the line limit in this batch. In
//! a group released once per window, no subject has another line in the current window.

use super::violation::Violation;
use crate::ledger::release_log::{ReleaseLog, release_log_key};
use crate::treatment::proposal::ProposedGroup;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Line limit per subject and group. All rows without a subject count as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineLimit {
    /// No limit.
    #[default]
    None,
    /// Limit per batch.
    PerBatch(usize),
    /// One line per window; the digest identifies the group in the release log.
    OncePerWindow(u128),
}

impl LineLimit {
    /// Returns the keys to record in the release log.
    pub(super) fn check_lines(
        self,
        group: &ProposedGroup,
        subjects: &[u64],
        said: Option<&ReleaseLog>,
        age_ms: i64,
    ) -> Result<Vec<u128>, Violation> {
        let (most, name) = match self {
            Self::None => return Ok(Vec::new()),
            Self::PerBatch(most) => (most, None),
            Self::OncePerWindow(name) => (1, Some(name)),
        };
        let mut owners: Vec<u64> = group.rows.iter().filter_map(|&row| subjects.get(row as usize)).copied().collect();
        owners.sort_unstable();
        if owners.chunk_by(|a, b| a == b).any(|lines| lines.len() > most) {
            return Err(Violation::TooManyLines);
        }
        let Some(name) = name else { return Ok(Vec::new()) };
        // Unknown earlier releases refuse every line.
        let said = said.filter(|_| !owners.is_empty());
        let keys: Vec<u128> = owners.iter().map(|&subject| release_log_key(name, subject)).collect();
        match said {
            Some(said) if keys.iter().any(|&key| said.has_current_entry(key, age_ms)) => Err(Violation::TooManyLines),
            None if !keys.is_empty() => Err(Violation::TooManyLines),
            _ => Ok(keys),
        }
    }
}

/// Units of counting: rows, or subjects if a group is released once per window and all groups have one line per
/// subject.
pub(super) struct CountingUnits {
    of_row: Option<Vec<u32>>,
    pub subjects: Vec<u64>,
    /// Set if units are subjects.
    pub scattered: bool,
}

impl CountingUnits {
    pub(super) fn of(subjects: &[u64], limits: &[LineLimit]) -> Self {
        let once = |limit: &LineLimit| matches!(limit, LineLimit::OncePerWindow(_) | LineLimit::PerBatch(1));
        let some_once = limits.iter().any(|limit| matches!(limit, LineLimit::OncePerWindow(_)));
        let scattered = some_once && limits.iter().all(once);
        let mut carriers = Self { of_row: None, subjects: subjects.to_vec(), scattered };
        if scattered {
            let mut first: BTreeMap<u64, u32> = BTreeMap::new();
            let of = |(row, subject): (u32, &u64)| *first.entry(*subject).or_insert(row);
            carriers.of_row = Some((0u32..).zip(subjects).map(of).collect());
        }
        carriers
    }

    pub(super) fn replace_subjects(self, subjects: &[u64]) -> Self {
        Self { subjects: subjects.to_vec(), ..self }
    }

    pub(super) fn rows<'a>(&self, rows: &'a [u32]) -> Cow<'a, [u32]> {
        match &self.of_row {
            None => Cow::Borrowed(rows),
            Some(of_row) => rows.iter().map(|&row| of_row.get(row as usize).copied().unwrap_or(row)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(rows: &[u32]) -> ProposedGroup {
        ProposedGroup { rows: rows.to_vec(), ..ProposedGroup::default() }
    }

    #[test]
    fn line_limit_counts_by_subject_and_window() {
        let subjects = [7, 8, 7, 0, 0, 9];
        let judge = |limit: LineLimit, rows: &[u32], said: Option<&ReleaseLog>| {
            limit.check_lines(&group(rows), &subjects, said, 50)
        };
        assert_eq!(judge(LineLimit::None, &[0, 2, 3, 4], None), Ok(vec![]));
        assert_eq!(judge(LineLimit::PerBatch(1), &[0, 1, 3], None), Ok(vec![]));
        assert_eq!(judge(LineLimit::PerBatch(1), &[0, 1, 2], None), Err(Violation::TooManyLines));
        assert_eq!(judge(LineLimit::PerBatch(1), &[3, 4], None), Err(Violation::TooManyLines), "nobody is one subject");
        assert_eq!(judge(LineLimit::PerBatch(2), &[0, 1, 2], None), Ok(vec![]));
        let mut said = ReleaseLog::new(1_000, 10);
        let once = LineLimit::OncePerWindow(77);
        let keys = judge(once, &[0, 1], Some(&said)).expect("nothing has been said");
        assert_eq!(keys, [release_log_key(77, 7), release_log_key(77, 8)]);
        assert_eq!(judge(once, &[0, 2], Some(&said)), Err(Violation::TooManyLines), "twice in the batch");
        assert_eq!(judge(once, &[0], None), Err(Violation::TooManyLines), "nothing is remembered");
        said.apply(&said.delta(&keys, 50));
        assert_eq!(judge(once, &[1], Some(&said)), Err(Violation::TooManyLines), "said already");
        assert_eq!(judge(once, &[5], Some(&said)), Ok(vec![release_log_key(77, 9)]));
        assert_eq!(judge(LineLimit::OncePerWindow(78), &[1], Some(&said)).map(|keys| keys.len()), Ok(1));
    }

    #[test]
    fn counting_units_join_lines_of_subject_with_one_line_per_group() {
        let subjects = [7, 8, 7, 9];
        let of = |limits: &[LineLimit]| CountingUnits::of(&subjects, limits);
        let once = LineLimit::OncePerWindow(1);
        let joined = of(&[LineLimit::PerBatch(1), once]);
        assert_eq!((joined.rows(&[2, 3]).into_owned(), joined.scattered), (vec![0, 3], true));
        let apart = of(&[LineLimit::None, once]);
        assert_eq!((apart.rows(&[2, 3]).into_owned(), apart.scattered), (vec![2, 3], false), "the strictest reading");
        assert!(!of(&[LineLimit::PerBatch(1), LineLimit::None]).scattered);
    }
}

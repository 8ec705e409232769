//! Verification of repetition: how many lines of one subject leave in a group, and whose lines counting could join.
//!
//! Claim. If [`LineLimit::judge`] returns `Ok` for every group, no subject has more lines in this batch than the limit of
//! the group says, and none has a line in a group that says things once a window while the window of its last line
//! there lasts. Written from the definition, apart from the treatment: by the lines that are about to leave.

use super::violation::Violation;
use crate::anonymity::treatment::proposal::ProposedGroup;
use std::borrow::Cow;
use std::collections::BTreeMap;
use throng_core::ledger::said::{Said, said_key};

/// How many lines of one subject may leave in a group. Who names nobody counts as one subject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineLimit {
    /// Any number.
    #[default]
    None,
    /// In a batch.
    PerBatch(usize),
    /// One in each window of the subject; the digest names the group among what has been said.
    OncePerWindow(u128),
}

impl LineLimit {
    /// The keys of what the group says now, to be remembered; none where nothing is.
    pub(super) fn judge(
        self,
        group: &ProposedGroup,
        subjects: &[u64],
        said: Option<&Said>,
        age_ms: i64,
    ) -> Result<Vec<u128>, Violation> {
        let (most, name) = match self {
            Self::None => return Ok(Vec::new()),
            Self::PerBatch(most) => (most, None),
            Self::OncePerWindow(name) => (1, Some(name)),
        };
        // Rows beyond the batch are refused where the lines are read.
        let mut owners: Vec<u64> = group.rows.iter().filter_map(|&row| subjects.get(row as usize)).copied().collect();
        owners.sort_unstable();
        if owners.chunk_by(|a, b| a == b).any(|lines| lines.len() > most) {
            return Err(Violation::Repeated);
        }
        let Some(name) = name else { return Ok(Vec::new()) };
        // Where nothing is remembered nobody can say that it has not been said.
        let said = said.filter(|_| !owners.is_empty());
        let keys: Vec<u128> = owners.iter().map(|&subject| said_key(name, subject)).collect();
        match said {
            Some(said) if keys.iter().any(|&key| said.is_said(key, age_ms)) => Err(Violation::Repeated),
            None if !keys.is_empty() => Err(Violation::Repeated),
            _ => Ok(keys),
        }
    }
}

/// Whose lines counting could join. Where a group says things once a window, its lines are of other rows than those of the
/// other groups; a subject that has one line a group at most is then one row to whoever counts.
pub(super) struct Carriers {
    /// By row; `None`: every row stands for itself.
    of_row: Option<Vec<u32>>,
    /// By carrier.
    pub subjects: Vec<u64>,
    /// The lines of one subject are of different rows: of two groups no more is known than the carriers of both.
    pub scattered: bool,
}

impl Carriers {
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

    /// The same, where the rows count for `subjects`.
    pub(super) fn counting(self, subjects: &[u64]) -> Self {
        Self { subjects: subjects.to_vec(), ..self }
    }

    /// `rows` as those who carry them.
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
    fn lines_are_counted_by_subject_and_window() {
        let subjects = [7, 8, 7, 0, 0, 9];
        let judge =
            |limit: LineLimit, rows: &[u32], said: Option<&Said>| limit.judge(&group(rows), &subjects, said, 50);
        assert_eq!(judge(LineLimit::None, &[0, 2, 3, 4], None), Ok(vec![]));
        assert_eq!(judge(LineLimit::PerBatch(1), &[0, 1, 3], None), Ok(vec![]));
        assert_eq!(judge(LineLimit::PerBatch(1), &[0, 1, 2], None), Err(Violation::Repeated));
        assert_eq!(judge(LineLimit::PerBatch(1), &[3, 4], None), Err(Violation::Repeated), "nobody is one subject");
        assert_eq!(judge(LineLimit::PerBatch(2), &[0, 1, 2], None), Ok(vec![]));
        let mut said = Said::new(1_000, 10);
        let once = LineLimit::OncePerWindow(77);
        let keys = judge(once, &[0, 1], Some(&said)).expect("nothing has been said");
        assert_eq!(keys, [said_key(77, 7), said_key(77, 8)]);
        assert_eq!(judge(once, &[0, 2], Some(&said)), Err(Violation::Repeated), "twice in the batch");
        assert_eq!(judge(once, &[0], None), Err(Violation::Repeated), "nothing is remembered");
        said.apply(&said.delta(&keys, 50));
        assert_eq!(judge(once, &[1], Some(&said)), Err(Violation::Repeated), "said already");
        assert_eq!(judge(once, &[5], Some(&said)), Ok(vec![said_key(77, 9)]));
        assert_eq!(judge(LineLimit::OncePerWindow(78), &[1], Some(&said)).map(|keys| keys.len()), Ok(1));
    }

    #[test]
    fn the_lines_of_a_subject_are_carried_together_where_there_is_one_a_group() {
        let subjects = [7, 8, 7, 9];
        let of = |limits: &[LineLimit]| Carriers::of(&subjects, limits);
        let once = LineLimit::OncePerWindow(1);
        let joined = of(&[LineLimit::PerBatch(1), once]);
        assert_eq!((joined.rows(&[2, 3]).into_owned(), joined.scattered), (vec![0, 3], true));
        let apart = of(&[LineLimit::None, once]);
        assert_eq!((apart.rows(&[2, 3]).into_owned(), apart.scattered), (vec![2, 3], false), "the strictest reading");
        assert!(!of(&[LineLimit::PerBatch(1), LineLimit::None]).scattered);
    }
}

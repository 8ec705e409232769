//! Attribute combinations of a release that single subjects out, by the audit's search per group. A result includes an
//! insensitive or sensitive attribute, because k protects quasi-identifiers.

use super::original::OriginalData;
use crate::released_lines::{LineOrigin, ReleasedGroup};
use std::collections::HashMap;
use std::time::Duration;
use throng_core::values::subject_digest::NO_SUBJECT;
use throng_risk::counting::{AttributeSet, ColumnsError, CountedTable};
use throng_risk::qid::{QidSearchRequest, QidStrategy, search};

/// Result of the search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SinglingOutResult {
    /// Minimal attribute combinations, sorted and distinct.
    pub minimal_qids: Vec<Vec<String>>,
    /// True if all searches finished within the budget.
    pub complete: bool,
}

/// Finds minimal combinations with values of fewer than `k` subjects (or lines); `budget` is per group.
///
/// # Errors
///
/// When a group exceeds one search.
pub fn search_singling_out(
    original: &OriginalData,
    groups: &[ReleasedGroup],
    k: usize,
    budget: Duration,
) -> Result<SinglingOutResult, ColumnsError> {
    let mut found = SinglingOutResult { minimal_qids: Vec::new(), complete: true };
    for group in groups.iter().filter(|group| group.lines > 0) {
        let people = group.origin.as_ref().map(|origins| line_subjects(original, origins));
        // Lines without a subject do not count.
        let kept: Vec<usize> = match &people {
            Some(people) => (0..group.lines).filter(|line| people[*line].is_some()).collect(),
            None => (0..group.lines).collect(),
        };
        let column = |cells: &Vec<u32>| kept.iter().map(|line| cells[*line]).collect();
        let subjects = people.map(|people| kept.iter().filter_map(|line| people[*line]).collect());
        let table = CountedTable::new(group.cells.iter().map(column).collect(), subjects)?;
        let question = QidSearchRequest {
            k: u32::try_from(k).unwrap_or(u32::MAX),
            strategy: QidStrategy::Border,
            threads: rayon::current_num_threads(),
            budget: Some(budget),
            memory: None,
            columns: (0..table.width()).collect::<AttributeSet>(),
        };
        let borders = search(&table, &question, &|_| {});
        found.complete &= borders.complete;
        let names = |set: &AttributeSet| {
            let mut names: Vec<String> =
                set.iter().map(|at| original.schema.attributes[group.attributes[at]].name.clone()).collect();
            names.sort_unstable();
            names
        };
        // Fewer than k subjects in all: list every attribute.
        let all = || (0..table.width()).map(|at| names(&AttributeSet::from_iter([at]))).collect::<Vec<_>>();
        let sets = &borders.minimal_qids;
        let is_all = sets.iter().any(AttributeSet::is_empty);
        found.minimal_qids.extend(if is_all { all() } else { sets.iter().map(names).collect() });
    }
    found.minimal_qids.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    found.minimal_qids.dedup();
    Ok(found)
}

fn line_subjects(original: &OriginalData, origins: &[LineOrigin]) -> Vec<Option<u32>> {
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let mut number = |origin: &LineOrigin| {
        let subject = original.batch.subjects[origin.row as usize];
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        (subject != NO_SUBJECT).then(|| *numbers.entry(subject).or_insert(next))
    };
    origins.iter().map(&mut number).collect()
}

//! Which combinations of what has left single somebody out: the audit's search, on the lines of each group.
//!
//! Quasi attributes of a group leave in crowds, whichever of them one looks at. So what is found has an attribute that leaves as it is,
//! or that no crowd was asked for: insensitive ones, and sensitive ones.

use super::original::Original;
use super::released::{Origin, ReleasedGroup};
use std::collections::HashMap;
use std::time::Duration;
use throng_core::values::subject::NO_SUBJECT;
use throng_risk::counting::{AttributeSet, ColumnsError, CountedTable};
use throng_risk::qid::{Question, Strategy, search};

/// What a search has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SingledOut {
    /// The minimal combinations, each by names of attributes, sorted; each once, whatever groups it leaves in.
    pub minimal_qids: Vec<Vec<String>>,
    /// The searches came to their end.
    pub complete: bool,
}

/// The minimal combinations of attributes in `groups` of which some values are shown by fewer than `k` people, or lines where nobody
/// has told whose they are. `budget` is for each group.
///
/// # Errors
/// When a group has more attributes or lines than are searched together.
pub fn singled_out(
    original: &Original,
    groups: &[ReleasedGroup],
    k: usize,
    budget: Duration,
) -> Result<SingledOut, ColumnsError> {
    let mut found = SingledOut { minimal_qids: Vec::new(), complete: true };
    for group in groups.iter().filter(|group| group.lines > 0) {
        let people = group.origin.as_ref().map(|origins| people(original, origins));
        // A line of nobody supports nobody, and says nothing of anybody.
        let kept: Vec<usize> = match &people {
            Some(people) => (0..group.lines).filter(|line| people[*line].is_some()).collect(),
            None => (0..group.lines).collect(),
        };
        let column = |cells: &Vec<u32>| kept.iter().map(|line| cells[*line]).collect();
        let subjects = people.map(|people| kept.iter().filter_map(|line| people[*line]).collect());
        let table = CountedTable::new(group.cells.iter().map(column).collect(), subjects)?;
        let question = Question {
            k: u32::try_from(k).unwrap_or(u32::MAX),
            strategy: Strategy::Border,
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
        // Where all of them together are too few, the empty set is one: every attribute is.
        let all = || (0..table.width()).map(|at| names(&AttributeSet::from_iter([at]))).collect::<Vec<_>>();
        let sets = &borders.minimal_qids;
        let is_all = sets.iter().any(AttributeSet::is_empty);
        found.minimal_qids.extend(if is_all { all() } else { sets.iter().map(names).collect() });
    }
    found.minimal_qids.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    found.minimal_qids.dedup();
    Ok(found)
}

/// By line a number of its person; none where it has none.
fn people(original: &Original, origins: &[Origin]) -> Vec<Option<u32>> {
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    let mut number = |origin: &Origin| {
        let subject = original.batch.subjects[origin.row as usize];
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        (subject != NO_SUBJECT).then(|| *numbers.entry(subject).or_insert(next))
    };
    origins.iter().map(&mut number).collect()
}

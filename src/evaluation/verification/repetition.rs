//! Lines of a person in a group that does not change, counted over the batches.
//!
//! The windows of a person begin at a moment that only the secret tells; but whenever they begin, no interval as long as the window has more than
//! two lines.

use super::finding::Findings;
use super::lines::Group;
use super::told::Told;
use crate::anonymity::planner::GroupShape;
use std::collections::BTreeMap;
use throng_core::values::schema::{Changes, Schema};

const PROMISE: &str = "what does not change leaves at most twice in any interval as long as `static_window`";
/// One line in each of the two windows that an interval meets.
const MOST: usize = 2;

/// Returns true when the schema declares that nothing of a group changes within a person; `shared` attributes belong to other groups.
/// Undeclared quasi attributes may have been measured as changing; undeclared sensitive ones never are.
pub(super) fn is_declared_static(schema: &Schema, shape: &GroupShape, shared: &[usize]) -> bool {
    let mut quasi = shape.quasi.iter().filter(|a| !shared.contains(a)).peekable();
    let mut sensitive = shape.sensitive.iter().peekable();
    if quasi.peek().is_none() && sensitive.peek().is_none() {
        return false;
    }
    let changes = |a: &usize| schema.attributes[*a].changes;
    quasi.all(|a| matches!(changes(a), Some(Changes::Never | Changes::Slowly)))
        && sensitive.all(|a| changes(a) != Some(Changes::Always))
}

/// Judges a group that does not change; `told` is by line.
pub(super) fn judge(group: &Group, told: &[Told], window_ms: i64, findings: &mut Findings) {
    let mut of_person: BTreeMap<u32, Vec<(i64, usize)>> = BTreeMap::new();
    for (line, told) in told.iter().enumerate() {
        if let (Some(person), Some(time)) = (told.person, told.time) {
            of_person.entry(person).or_default().push((time, line));
        }
    }
    for lines in of_person.values_mut() {
        lines.sort_unstable();
        let met = lines.windows(MOST + 1).find(|lines| lines[MOST].0 - lines[0].0 < window_ms);
        if let Some(met) = met {
            findings.note(PROMISE, &group.file, group.place(met[MOST].1), None, Some([met.len(), MOST]));
        }
    }
}

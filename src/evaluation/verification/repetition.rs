//! Count of a subject's lines in a static group. Window starts are secret, but any interval of one window length has at
//! most two lines.

use super::group_reader::GroupLines;
use super::line_lineage::LineLineage;
use super::violation_log::ViolationLog;
use std::collections::BTreeMap;
use throng_core::plan::GroupShape;
use throng_core::values::schema::{ChangeFrequency, Schema};

const REPETITION_RULE: &str = "a person has at most two static lines in any interval of length `static_window`";
/// One per overlapping window.
const MAX_LINES_PER_INTERVAL: usize = 2;

/// Undeclared quasi-identifiers may be measured as changing; undeclared sensitive attributes never are.
pub(super) fn is_declared_static(schema: &Schema, shape: &GroupShape, shared: &[usize]) -> bool {
    let mut quasi = shape.quasi.iter().filter(|a| !shared.contains(a)).peekable();
    let mut sensitive = shape.sensitive.iter().peekable();
    if quasi.peek().is_none() && sensitive.peek().is_none() {
        return false;
    }
    let changes = |a: &usize| schema.attributes[*a].changes;
    quasi.all(|a| matches!(changes(a), Some(ChangeFrequency::Never | ChangeFrequency::Slowly)))
        && sensitive.all(|a| changes(a) != Some(ChangeFrequency::Always))
}

/// `told` is indexed by line.
pub(super) fn check_static_group(
    group: &GroupLines,
    told: &[LineLineage],
    window_ms: i64,
    findings: &mut ViolationLog,
) {
    let mut of_person: BTreeMap<u32, Vec<(i64, usize)>> = BTreeMap::new();
    for (line, told) in told.iter().enumerate() {
        if let (Some(person), Some(time)) = (told.person, told.time) {
            of_person.entry(person).or_default().push((time, line));
        }
    }
    for lines in of_person.values_mut() {
        lines.sort_unstable();
        let met = lines
            .windows(MAX_LINES_PER_INTERVAL + 1)
            .find(|lines| lines[MAX_LINES_PER_INTERVAL].0 - lines[0].0 < window_ms);
        if let Some(met) = met {
            findings.add_violation(
                REPETITION_RULE,
                &group.file,
                group.line_number(met[MAX_LINES_PER_INTERVAL].1),
                None,
                Some([met.len(), MAX_LINES_PER_INTERVAL]),
            );
        }
    }
}

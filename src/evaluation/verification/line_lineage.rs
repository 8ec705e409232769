//! Lineage entries of released lines.

use super::group_reader::GroupLines;
use std::collections::BTreeMap;
use std::path::Path;
use throng_core::plan::GroupShape;
use throng_eval::error::EvaluationError;
use throng_eval::lineage::{complete_lineage, fragment_entries, lineage_entry_error};

#[derive(Clone, Debug)]
pub(super) struct LineLineage {
    /// Sequence number of the batch.
    pub batch: u64,
    /// By first appearance.
    pub record: u32,
    /// By first appearance; none without a subject.
    pub person: Option<u32>,
    /// Batch time, milliseconds since 1970.
    pub time: Option<i64>,
}

fn number_by_appearance<K: Ord>(known: &mut BTreeMap<K, u32>, key: K) -> u32 {
    let next = known.len() as u32;
    *known.entry(key).or_insert(next)
}

/// For a single output.
pub(super) fn groups_by_row(path: &Path, shapes: &[GroupShape]) -> Result<BTreeMap<u64, usize>, EvaluationError> {
    let mut groups = BTreeMap::new();
    for entry in fragment_entries(path)? {
        let (_, entry) = entry?;
        // `read_line_lineage` refuses unknown groups.
        groups.extend(shapes.iter().position(|shape| shape.name == entry.group).map(|group| (entry.line, group)));
    }
    Ok(groups)
}

pub(super) fn read_line_lineage(path: &Path, groups: &[GroupLines]) -> Result<Vec<Vec<LineLineage>>, EvaluationError> {
    let mut told: Vec<Vec<Option<LineLineage>>> = groups.iter().map(|group| vec![None; group.lines.len()]).collect();
    let mut counts = vec![0_u64; groups.len()];
    let (mut records, mut people) = (BTreeMap::new(), BTreeMap::new());
    for entry in fragment_entries(path)? {
        let (at, entry) = entry?;
        let refused = |why: &str| lineage_entry_error(path, at, why);
        let group = groups.iter().position(|group| group.name == entry.group);
        let group = group.ok_or_else(|| refused("its group is not in the configuration"))?;
        let place = groups[group].line_at(entry.line).and_then(|line| told[group].get_mut(line));
        let place = place.ok_or_else(|| refused("its line is not in the release, or is of another group"))?;
        let record = number_by_appearance(&mut records, (entry.source, entry.element));
        let person = entry.subject.map(|subject| number_by_appearance(&mut people, subject));
        *place = Some(LineLineage { batch: entry.batch, record, person, time: entry.time });
        counts[group] += 1;
    }
    let told = told.into_iter().zip(groups).zip(counts);
    told.map(|((told, group), count)| complete_lineage(path, &group.name, told, count)).collect()
}

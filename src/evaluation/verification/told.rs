//! What a lineage tells of lines whose records are not at hand: the batch, the record, whom it names.

use super::lines::Group;
use crate::anonymity::planner::GroupShape;
use crate::evaluation::error::EvaluationError;
use crate::evaluation::lineage::{complete, entries, refused};
use std::collections::BTreeMap;
use std::path::Path;

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// Sequence of its batch.
    pub batch: u64,
    /// Its record, numbered by first sight.
    pub record: u32,
    /// Its person, numbered by first sight; none for nobody.
    pub person: Option<u32>,
    /// Stamp of its batch, milliseconds since 1970; none where the lineage has none.
    pub time: Option<i64>,
}

/// Numbers by first sight.
fn number<K: Ord>(known: &mut BTreeMap<K, u32>, key: K) -> u32 {
    let next = known.len() as u32;
    *known.entry(key).or_insert(next)
}

/// Which group each row is of, where all groups leave as one output.
pub(super) fn groups(path: &Path, shapes: &[GroupShape]) -> Result<BTreeMap<u64, usize>, EvaluationError> {
    let mut groups = BTreeMap::new();
    for entry in entries(path)? {
        let (_, entry) = entry?;
        // A group that the configuration has not is refused when all is read.
        groups.extend(shapes.iter().position(|shape| shape.name == entry.group).map(|group| (entry.line, group)));
    }
    Ok(groups)
}

/// By group and line.
pub(super) fn read(path: &Path, groups: &[Group]) -> Result<Vec<Vec<Told>>, EvaluationError> {
    let mut told: Vec<Vec<Option<Told>>> = groups.iter().map(|group| vec![None; group.lines.len()]).collect();
    let mut counts = vec![0_u64; groups.len()];
    let (mut records, mut people) = (BTreeMap::new(), BTreeMap::new());
    for entry in entries(path)? {
        let (at, entry) = entry?;
        let refused = |why: &str| refused(path, at, why);
        let group = groups.iter().position(|group| group.name == entry.group);
        let group = group.ok_or_else(|| refused("a group that the configuration has not"))?;
        let place = groups[group].line_at(entry.line).and_then(|line| told[group].get_mut(line));
        let place = place.ok_or_else(|| refused("a line that the release has not, or that is another group's"))?;
        let record = number(&mut records, (entry.source, entry.element));
        let person = entry.subject.map(|subject| number(&mut people, subject));
        *place = Some(Told { batch: entry.batch, record, person, time: entry.time });
        counts[group] += 1;
    }
    let told = told.into_iter().zip(groups).zip(counts);
    told.map(|((told, group), count)| complete(path, &group.name, told, count)).collect()
}

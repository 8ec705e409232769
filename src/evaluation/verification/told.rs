//! What a lineage tells of lines whose records are not at hand: the batch, the record, whom it names.

use super::lines::Group;
use crate::evaluation::error::EvaluationError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

#[derive(Deserialize)]
struct Entry {
    source: (String, i32, i64),
    batch: u64,
    group: String,
    line: u64,
    subject: Option<String>,
}

/// One line.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// Sequence of its batch.
    pub batch: u64,
    /// Its record, numbered by first sight.
    pub record: u32,
    /// Its person, numbered by first sight; none for nobody.
    pub person: Option<u32>,
}

/// Numbers by first sight.
fn number<K: Ord>(known: &mut BTreeMap<K, u32>, key: K) -> u32 {
    let next = known.len() as u32;
    *known.entry(key).or_insert(next)
}

/// By group and line.
pub(super) fn read(path: &Path, groups: &[Group]) -> Result<Vec<Vec<Told>>, EvaluationError> {
    let lineage = |source| EvaluationError::Lineage { path: path.to_owned(), source };
    let mut told: Vec<Vec<Option<Told>>> = groups.iter().map(|group| vec![None; group.lines.len()]).collect();
    let mut entries = vec![0_u64; groups.len()];
    let (mut records, mut people) = (BTreeMap::new(), BTreeMap::new());
    for (at, line) in (1..).zip(BufReader::new(File::open(path).map_err(lineage)?).lines()) {
        let refused = |why: &str| EvaluationError::LineageEntry { path: path.to_owned(), line: at, why: why.into() };
        let entry: Entry =
            serde_json::from_str(&line.map_err(lineage)?).map_err(|_| refused("it is not spelled like one"))?;
        let group = groups.iter().position(|group| group.name == entry.group);
        let group = group.ok_or_else(|| refused("a group that the configuration has not"))?;
        let place = usize::try_from(entry.line).ok().and_then(|line| told[group].get_mut(line));
        let place = place.ok_or_else(|| refused("a line that the release has not"))?;
        let record = number(&mut records, entry.source);
        let person = entry.subject.map(|subject| number(&mut people, subject));
        *place = Some(Told { batch: entry.batch, record, person });
        entries[group] += 1;
    }
    let complete = |((told, group), entries): ((Vec<Option<Told>>, &Group), u64)| {
        let lines = told.len() as u64;
        let all: Option<Vec<Told>> = told.into_iter().collect();
        all.filter(|_| entries == lines).ok_or_else(|| EvaluationError::OtherLineage {
            path: path.to_owned(),
            group: group.name.clone(),
            entries,
            lines,
        })
    };
    told.into_iter().zip(groups).zip(entries).map(complete).collect()
}

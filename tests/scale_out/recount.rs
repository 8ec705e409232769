//! Recount of the union of all releases, without code of the product. Lines of one batch have one timestamp and are
//! sorted.

use crate::scale_out::people::{Stream, Visit};
use crate::scale_out::seen::{Batches, Seen};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// Minimum number of subjects per class and per sensitive value in each batch.
    pub k: usize,
    /// Maximum number of lines per subject in a batch.
    pub lines: usize,
}

/// Counts of checked items, so that an empty recount does not pass as a success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub lines: usize,
    pub batches: usize,
    pub classes: usize,
    pub values: usize,
    /// Batches that share a timestamp with batches of other instances.
    pub unclear: usize,
}

#[derive(Clone, Debug)]
struct Line {
    offset: i64,
    city: String,
    value: Option<String>,
    person: u64,
    by: Option<usize>,
}

/// Returns whether two different values can be assigned to two different subjects.
fn is_diverse<'a>(pairs: &(impl Iterator<Item = (&'a str, u64)> + Clone)) -> bool {
    let mut others = pairs.clone();
    others.any(|(value, person)| pairs.clone().any(|(v, p)| v != value && p != person))
}

pub struct Recount {
    stream: Stream,
    promise: Promise,
    next: usize,
    open: BTreeMap<Batch, Vec<Line>>,
    /// Offset and timestamp of the line of each record.
    numbers: BTreeMap<usize, (i64, i64)>,
    instances: Vec<String>,
    pub found: Found,
}

/// Timestamp, and number of the batch with that timestamp.
type Batch = (i64, usize);

/// Consecutive batches of one instance can share a timestamp; a new batch begins where the order of the lines does.
/// Batches of two instances with the same timestamp count as one.
fn batches_of(seen: &[Seen], batches: &Batches) -> Vec<Batch> {
    let mut last: BTreeMap<i64, (&str, usize)> = BTreeMap::new();
    let mut found = Vec::with_capacity(seen.len());
    for line in seen {
        let by = batches.get(&line.stamp).map(Vec::as_slice).unwrap_or_default();
        let several = by.len() > 1 && by.iter().all(|one| *one == by[0]);
        let before = last.entry(line.stamp).or_insert(("", 0));
        before.1 += usize::from(several && line.text.as_str() < before.0);
        before.0 = &line.text;
        found.push((line.stamp, before.1));
    }
    found
}

impl Recount {
    pub fn new(stream: Stream, promise: Promise) -> Self {
        Self {
            stream,
            promise,
            next: 0,
            open: BTreeMap::new(),
            numbers: BTreeMap::new(),
            instances: Vec::new(),
            found: Found::default(),
        }
    }

    /// Checks the lines of `seen` before `until` that are not yet checked. The caller must pass an earlier end offset,
    /// so that all batches before it are complete.
    ///
    /// # Errors
    /// A description of the violated guarantee.
    pub fn go_on(&mut self, seen: &[Seen], until: i64, batches: &Batches) -> Result<(), String> {
        let of = batches_of(seen, batches);
        let ends: BTreeMap<Batch, usize> = of.iter().enumerate().map(|(at, batch)| (*batch, at)).collect();
        while let Some(line) = seen.get(self.next).filter(|line| line.offset < until) {
            let (at, batch) = (self.next, of[self.next]);
            let by = batches.get(&line.stamp).ok_or_else(|| format!("{line:?} is of no batch that was committed"))?;
            let line = self.read(line, by)?;
            self.open.entry(batch).or_default().push(line);
            self.next += 1;
            if ends[&batch] == at {
                let lines = self.open.remove(&batch).unwrap_or_default();
                self.judge(&lines, by.len())
                    .map_err(|why| format!("batch {batch:?} at {at}, by {by:?}: {why}: {lines:?}"))?;
            }
        }
        Ok(())
    }

    fn read(&mut self, seen: &Seen, by: &[String]) -> Result<Line, String> {
        let cells: serde_json::Value = serde_json::from_str(&seen.text).map_err(|why| format!("{seen:?}: {why}"))?;
        let text = |name: &str| cells[name].as_str().map(str::to_owned).ok_or_else(|| format!("{seen:?}: no {name}"));
        let number = cells["n"].as_u64().ok_or_else(|| format!("{seen:?}: no number"))?;
        let number = usize::try_from(number).expect("a number of a record");
        if let Some(first) = self.numbers.insert(number, (seen.offset, seen.stamp)) {
            return Err(format!(
                "record {number} has left twice: first at {first:?} (offset and stamp), then {seen:?}"
            ));
        }
        let Some(visit) = self.stream.visit(number) else { return Err(format!("there is no record of {seen:?}")) };
        let (city, illness) = (text("city")?, text("illness")?);
        let value = Some(illness).filter(|illness| illness != "*");
        let Visit { person, .. } = visit;
        let is_true = [visit.city.clone(), visit.region(), "*".to_owned()].contains(&city);
        if !is_true || value.as_ref().is_some_and(|value| value != visit.illness) || (&*city, &value) == ("*", &None) {
            return Err(format!("{seen:?} is not what {visit:?} may say"));
        }
        self.found.lines += 1;
        let by = self.instance(by);
        self.found.values += usize::from(value.is_some());
        Ok(Line { offset: seen.offset, city, value, person, by })
    }

    /// Returns the only instance that committed with a timestamp, or `None` if there are several.
    fn instance(&mut self, by: &[String]) -> Option<usize> {
        let name = by.first().filter(|name| by.iter().all(|one| one == *name))?;
        let known = self.instances.iter().position(|known| known == name);
        Some(known.unwrap_or_else(|| {
            self.instances.push(name.clone());
            self.instances.len() - 1
        }))
    }

    /// If `several` batches have its timestamp, the line limit is multiplied accordingly.
    fn judge(&mut self, lines: &[Line], several: usize) -> Result<(), String> {
        let Promise { k, lines: most } = self.promise;
        let gaps = lines.windows(2).filter(|pair| pair[0].offset + 1 < pair[1].offset).count();
        let most = if lines[0].by.is_none() { most * several } else { most * several.min(gaps + 1) };
        self.found.batches += 1;
        self.found.unclear += usize::from(lines[0].by.is_none());
        let mut of_person: BTreeMap<u64, usize> = BTreeMap::new();
        lines.iter().for_each(|line| *of_person.entry(line.person).or_default() += 1);
        if let Some((person, many)) = of_person.iter().find(|(_, many)| **many > most) {
            return Err(format!("{many} lines of person {person}"));
        }
        let mut classes: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
        let mut values: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for line in lines {
            classes.entry(&line.city).or_default().push(line);
            if let Some(value) = &line.value {
                values.entry(value).or_default().insert(line.person);
            }
        }
        for (class, lines) in classes {
            let own = lines.iter().map(|line| line.person).collect::<BTreeSet<u64>>().len();
            if own < k {
                return Err(format!("class {class} has {own} people in the batch"));
            }
            self.found.classes += 1;
            let shown = lines.iter().filter_map(|line| Some((line.value.as_deref()?, line.person)));
            if shown.clone().next().is_none() {
                continue;
            }
            if !is_diverse(&shown) {
                return Err(format!("class {class} is not diverse"));
            }
        }
        for (value, people) in values {
            if people.len() < k {
                return Err(format!("{value} has {} people in the batch", people.len()));
            }
        }
        Ok(())
    }
}

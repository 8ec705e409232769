//! Recounts the release invariant R(k) from the printed texts, their subjects and times.
//!
//! Shares with the product only the order of the lines, and how distinct subjects are counted (decision 0029). Every
//! violation found here is a release below k.

use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub batch: u64,
    /// Clock of the batch, milliseconds.
    pub clock_ms: i64,
    pub group: usize,
    pub text: String,
    /// `None` for a record without a subject.
    pub subject: Option<String>,
    pub source: (u16, i32, i64),
}

#[derive(Clone, Debug, Default)]
pub struct GroupNames {
    pub all: Vec<String>,
    pub quasi: Vec<String>,
    pub sensitive: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Promise {
    pub k: usize,
    pub groups: Vec<GroupNames>,
}

/// Batch number, group, kind of cells, cells.
pub type Shown = (u64, usize, String, Vec<Option<String>>);

const SUPPRESSED: &str = "\"*\"";

/// An absent cell has no entry.
pub fn cells(line: &Line) -> Result<Vec<(String, String)>, String> {
    struct InOrder(Vec<(String, String)>);
    impl<'de> serde::Deserialize<'de> for InOrder {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Visit;
            impl<'de> serde::de::Visitor<'de> for Visit {
                type Value = InOrder;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<M: serde::de::MapAccess<'de>>(self, mut map: M) -> Result<InOrder, M::Error> {
                    let mut cells = Vec::new();
                    while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                        cells.push((name, value.get().to_owned()));
                    }
                    Ok(InOrder(cells))
                }
            }
            from.deserialize_map(Visit)
        }
    }
    serde_json::from_str::<InOrder>(&line.text).map(|c| c.0).map_err(|e| format!("not an object ({e}): {line:?}"))
}

/// An absent cell differs from every text.
pub fn tuple(cells: &[(String, String)], names: &[String]) -> Vec<Option<String>> {
    names.iter().map(|name| cells.iter().find(|(n, _)| n == name).map(|(_, text)| text.clone())).collect()
}

impl Promise {
    /// `lines` are in output order.
    pub fn check_all(&self, lines: &[Line]) -> Result<(), String> {
        let batches: BTreeSet<u64> = lines.iter().map(|l| l.batch).collect();
        batches.into_iter().try_for_each(|batch| self.check_batch(lines, batch))
    }

    /// R(k), sorted lines, no row twice, no pair forced by counting.
    pub fn check_batch(&self, lines: &[Line], batch: u64) -> Result<(), String> {
        self.check_release(lines, batch)?;
        self.check_counting(&lines.iter().filter(|l| l.batch == batch).collect::<Vec<_>>())
    }

    pub fn check_release(&self, lines: &[Line], batch: u64) -> Result<(), String> {
        let now: Vec<&Line> = lines.iter().filter(|l| l.batch == batch).collect();
        if now.is_empty() {
            return Ok(());
        }
        let people: BTreeSet<&String> = now.iter().filter_map(|l| l.subject.as_ref()).collect();
        if people.len() < self.k {
            return Err(format!("batch {batch} was released with {} subjects", people.len()));
        }
        for (group, names) in self.groups.iter().enumerate() {
            let mut classes: BTreeMap<Vec<Option<String>>, BTreeSet<&String>> = BTreeMap::new();
            let mut beside: BTreeMap<(&String, Option<String>), BTreeSet<&String>> = BTreeMap::new();
            for line in now.iter().filter(|l| l.group == group) {
                let cells = cells(line)?;
                let class = classes.entry(tuple(&cells, &names.quasi)).or_default();
                class.extend(&line.subject);
                for name in &names.sensitive {
                    let text = tuple(&cells, std::slice::from_ref(name)).remove(0);
                    beside.entry((name, text)).or_default().extend(&line.subject);
                }
            }
            let mut before: Option<&str> = None;
            let mut taken = BTreeSet::new();
            for line in now.iter().filter(|l| l.group == group) {
                if before.is_some_and(|b| b > line.text.as_str()) {
                    return Err(format!("batch {batch}, group {group}: the lines are not sorted"));
                }
                before = Some(&line.text);
                if !taken.insert(line.source) {
                    return Err(format!("batch {batch}, group {group}: a record has two lines"));
                }
                self.check_line(line, names, &classes, &beside)?;
            }
        }
        Ok(())
    }

    /// Every class, and every unsuppressed sensitive value, has `crowd` subjects among the lines of its batch.
    pub fn check_batch_crowds(&self, lines: &[Line], crowd: usize) -> Result<(), String> {
        for (class, subjects) in self.batch_crowds(lines)? {
            if subjects < crowd {
                return Err(format!("{subjects} subjects in their own batch: {class:?}"));
            }
        }
        Ok(())
    }

    pub fn batch_crowds(&self, lines: &[Line]) -> Result<BTreeMap<Shown, usize>, String> {
        let mut crowds: BTreeMap<Shown, BTreeSet<&String>> = BTreeMap::new();
        for (shown, subject) in self.shown(lines)? {
            crowds.entry(shown).or_default().extend(subject);
        }
        Ok(crowds.into_iter().map(|(shown, subjects)| (shown, subjects.len())).collect())
    }

    /// Returns the quasi cells of each line's class, and each sensitive cell under its name, with the subject.
    fn shown<'a>(&self, lines: &'a [Line]) -> Result<Vec<(Shown, Option<&'a String>)>, String> {
        let mut shown = Vec::new();
        for line in lines {
            let names = &self.groups[line.group];
            let cells = cells(line)?;
            let mut join = |what: &str, texts| {
                shown.push(((line.batch, line.group, what.to_owned(), texts), line.subject.as_ref()));
            };
            if !names.quasi.is_empty() {
                join("", tuple(&cells, &names.quasi));
            }
            for name in &names.sensitive {
                let text = tuple(&cells, std::slice::from_ref(name));
                if text[0].as_deref() != Some(SUPPRESSED) {
                    join(name, text);
                }
            }
        }
        Ok(shown)
    }

    fn check_line(
        &self,
        line: &Line,
        names: &GroupNames,
        classes: &BTreeMap<Vec<Option<String>>, BTreeSet<&String>>,
        beside: &BTreeMap<(&String, Option<String>), BTreeSet<&String>>,
    ) -> Result<(), String> {
        let cells = cells(line)?;
        let mut order = names.all.iter();
        if !cells.iter().all(|(name, _)| order.any(|n| n == name)) {
            return Err(format!("not the attributes of its group, in their order: {line:?}"));
        }
        let quasi = tuple(&cells, &names.quasi);
        if !quasi.is_empty() {
            if quasi.iter().all(|text| text.as_deref() == Some(SUPPRESSED)) {
                return Err(format!("a line that says nothing: {line:?}"));
            }
            let support = classes.get(&quasi).map_or(0, BTreeSet::len);
            if support < self.k {
                return Err(format!("a class with {support} subjects: {line:?}"));
            }
        }
        for name in &names.sensitive {
            let text = tuple(&cells, std::slice::from_ref(name)).remove(0);
            if text.as_deref() == Some(SUPPRESSED) {
                continue;
            }
            let support = beside.get(&(name, text)).map_or(0, BTreeSet::len);
            if support < self.k {
                return Err(format!("a sensitive value with {support} subjects: {line:?}"));
            }
        }
        Ok(())
    }

    /// Checks the counting guard (docs/internals/methods.md §10.3) over all pairs of cell sets.
    fn check_counting(&self, now: &[&Line]) -> Result<(), String> {
        type Cells = Vec<(String, String)>;
        let mut by_group: Vec<Vec<(Cells, &Line)>> = vec![Vec::new(); self.groups.len()];
        for line in now {
            let names = &self.groups[line.group];
            let guarded = [names.quasi.clone(), names.sensitive.clone()].concat();
            let mut said: Cells = Vec::new();
            for (name, text) in guarded.iter().zip(tuple(&cells(line)?, &guarded)) {
                let text = text.unwrap_or_else(|| "absent".to_owned());
                if text != SUPPRESSED {
                    said.push((name.clone(), text));
                }
            }
            by_group[line.group].push((said, line));
        }
        // The guard must hold within each value of the shared attributes, because its records can be counted.
        let shared = self.shared();
        let mut parts: BTreeMap<Vec<Option<String>>, Vec<Vec<(Cells, &Line)>>> = BTreeMap::new();
        for (group, lines) in by_group.iter().enumerate() {
            if shared.is_empty() || !shared.iter().all(|name| self.groups[group].quasi.contains(name)) {
                continue;
            }
            for (said, line) in lines {
                let own = said.iter().filter(|(name, _)| !shared.contains(name)).cloned().collect();
                let part =
                    parts.entry(tuple(&cells(line)?, &shared)).or_insert_with(|| vec![Vec::new(); by_group.len()]);
                part[group].push((own, line));
            }
        }
        let most = |groups: &[Vec<(Cells, &Line)>]| groups.iter().map(Vec::len).max().unwrap_or(0);
        for part in parts.values() {
            let people: BTreeSet<&String> =
                part.iter().flatten().filter_map(|(_, line)| line.subject.as_ref()).collect();
            if people.len() < self.k {
                return Err(format!("a shared value has {} subjects", people.len()));
            }
            self.check_pairs(part, most(part))?;
        }
        // Suppressed values may belong to the same records.
        let is_shown = |shown: &[Option<String>]| shown.iter().any(|cell| cell.as_deref() != Some(SUPPRESSED));
        let known = parts.iter().filter(|(shown, _)| is_shown(shown)).map(|(_, part)| most(part)).sum::<usize>();
        self.check_pairs(&by_group, most(&by_group).max(known))?;
        self.check_shared_cells(now, &shared)
    }

    fn shared(&self) -> Vec<String> {
        let of = |name: &String| self.groups.iter().filter(|group| group.all.contains(name)).count() > 1;
        let names: BTreeSet<&String> =
            self.groups.iter().flat_map(|group| &group.all).filter(|name| of(name)).collect();
        names.into_iter().cloned().collect()
    }

    /// The lines of a record show equal shared cells or none, and all shared cells have one level.
    fn check_shared_cells(&self, now: &[&Line], shared: &[String]) -> Result<(), String> {
        let mut of_record = BTreeMap::new();
        for line in now.iter().filter(|line| shared.iter().all(|name| self.groups[line.group].all.contains(name))) {
            let shown = tuple(&cells(line)?, shared);
            if !shown.is_empty() && shown.iter().any(|cell| cell.as_deref() != Some(SUPPRESSED)) {
                let known = of_record.entry(line.source).or_insert_with(|| shown.clone());
                if *known != shown {
                    return Err(format!("the fragments of a record show {known:?} and {shown:?}"));
                }
            }
        }
        Ok(())
    }

    fn check_pairs(&self, by_group: &[Vec<(Vec<(String, String)>, &Line)>], most: usize) -> Result<(), String> {
        type Cells = Vec<(String, String)>;
        type Carriers = BTreeMap<(u16, i32, i64), Option<String>>;
        // Sets of cells that occur together, with the records that contain them.
        let carried = |lines: &[(Cells, &Line)]| {
            let mut carried: BTreeMap<Cells, Carriers> = BTreeMap::new();
            for (said, line) in lines {
                for mask in 1..1u32 << said.len() {
                    let set = (0..said.len()).filter(|i| mask >> i & 1 == 1).map(|i| said[i].clone()).collect();
                    carried.entry(set).or_default().insert(line.source, line.subject.clone());
                }
            }
            carried
        };
        let sets: Vec<_> = by_group.iter().map(|lines| carried(lines)).collect();
        for (a, b) in (0..sets.len()).flat_map(|a| (a + 1..sets.len()).map(move |b| (a, b))) {
            for (x, of_x) in &sets[a] {
                for (y, of_y) in sets[b].iter().filter(|(_, of_y)| of_x.len() + of_y.len() > most) {
                    let both: BTreeSet<&String> =
                        of_x.iter().filter(|(row, _)| of_y.contains_key(row)).filter_map(|(_, s)| s.as_ref()).collect();
                    if both.len() < self.k {
                        return Err(format!("counting forces {x:?} and {y:?} together for {} subjects", both.len()));
                    }
                }
            }
        }
        Ok(())
    }
}

/// All fragments of a record are released in one batch.
pub fn check_once(lines: &[Line]) -> Result<(), String> {
    let mut batch_of = BTreeMap::new();
    for line in lines {
        if *batch_of.entry(line.source).or_insert(line.batch) != line.batch {
            return Err(format!("a record left twice: {line:?}"));
        }
    }
    Ok(())
}

pub fn records_released(lines: &[Line]) -> u64 {
    lines.iter().map(|l| l.source).collect::<BTreeSet<_>>().len() as u64
}

/// Removes the release times of the batches.
pub fn timeless(lineage: &str) -> String {
    let mut parts = lineage.split("\"time\":");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(',').expect("an entry goes on behind its time").1)
}

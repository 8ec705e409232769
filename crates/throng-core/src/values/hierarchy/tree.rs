//! Hierarchy of listed values.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest, Sha256};

use super::{HierarchyFlaw, ValueCover};
use crate::values::json::quoted;

/// Value with its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HierarchyRow {
    /// Row or key path for messages.
    pub place: String,
    /// Labels from value to root.
    pub labels: Vec<String>,
}

const MAX_NAMED_GROUPS: usize = 3;

#[derive(Clone, Debug)]
struct TreeGroup {
    text: String,
    set: String,
    leaves: usize,
}

/// Checked hierarchy of listed values.
#[derive(Clone, Debug)]
pub struct ListedTree {
    leaves: HashMap<String, usize>,
    /// Group of every row on each inner level; none for the root.
    levels: Vec<Vec<Option<usize>>>,
    groups: Vec<TreeGroup>,
    repeated: Vec<String>,
}

impl ListedTree {
    /// Checks rows with one root of any name; `canonical` returns the text of a value, or an error.
    ///
    /// # Errors
    /// Lists all mistakes, such as repeated values, or labels with two parents.
    pub fn build(
        rows: &[HierarchyRow],
        canonical: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Self, Vec<HierarchyFlaw>> {
        let mut seen: HashMap<&[String], &str> = HashMap::new();
        let mut repeated = Vec::new();
        let mut once = Vec::with_capacity(rows.len());
        for row in rows {
            match seen.get(row.labels.as_slice()) {
                Some(earlier) => repeated.push(format!("{} is the same as {earlier} and is ignored", row.place)),
                None => {
                    seen.insert(&row.labels, &row.place);
                    once.push(row.clone());
                }
            }
        }
        Ok(Self { repeated, ..Self::build_distinct(&once, canonical)? })
    }

    fn build_distinct(
        rows: &[HierarchyRow],
        canonical: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Self, Vec<HierarchyFlaw>> {
        let Some(first) = rows.first() else {
            return Err(vec![HierarchyFlaw::new("rows", "the hierarchy is empty: list at least one value")]);
        };
        let mut flaws = shape_flaws(rows, first);
        let mut leaves = HashMap::new();
        let mut texts = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            match canonical(row.labels.first().map_or("", String::as_str)) {
                Ok(text) => {
                    if let Some(&earlier) = leaves.get(&text) {
                        let there: &HierarchyRow = &rows[earlier];
                        let message = format!("this value is already in {}, after rounding: remove one", there.place);
                        flaws.push(HierarchyFlaw::new(&row.place, message));
                    } else {
                        leaves.insert(text.clone(), index);
                    }
                    texts.push(text);
                }
                Err(why) => {
                    flaws.push(HierarchyFlaw::new(&row.place, format!("the value is {why}: correct or remove it")));
                }
            }
        }
        // Later code requires valid rows.
        if !flaws.is_empty() {
            return Err(flaws);
        }
        let root = first.labels.last().map_or("", String::as_str);
        let mut tree = Self { leaves, levels: Vec::new(), groups: Vec::new(), repeated: Vec::new() };
        let mut named = LabelRegistry::new(&texts);
        // Smallest group of each row, for one text per set.
        let mut inner: Vec<Option<usize>> = vec![None; rows.len()];
        for level in 1..first.labels.len() - 1 {
            parent_flaws(rows, level, root, &mut flaws);
            let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            for (index, row) in rows.iter().enumerate() {
                if row.labels[level] != root {
                    members.entry(&row.labels[level]).or_default().push(index);
                }
            }
            let mut of_row = vec![None; rows.len()];
            for (label, members) in members {
                let mut sorted: Vec<&str> = members.iter().map(|&i| texts[i].as_str()).collect();
                sorted.sort_unstable();
                let set = set_digest(&sorted);
                let text = quoted(label);
                if let Some(earlier) = named.register(&text, &set, members[0]) {
                    let message = format!(
                        "\"{label}\" (column {level}) covers different values than the same label in {}: rename one of them",
                        rows[earlier].place
                    );
                    flaws.push(HierarchyFlaw::new(&rows[members[0]].place, message));
                }
                let group = match inner[members[0]] {
                    Some(group) if tree.groups[group].leaves == members.len() => group,
                    None if members.len() == 1 => tree.push(texts[members[0]].clone(), set, 1),
                    _ => tree.push(text, set, members.len()),
                };
                for index in members {
                    of_row[index] = Some(group);
                }
            }
            inner.clone_from(&of_row);
            tree.levels.push(of_row);
        }
        if flaws.is_empty() { Ok(tree) } else { Err(flaws) }
    }

    fn push(&mut self, text: String, set: String, leaves: usize) -> usize {
        self.groups.push(TreeGroup { text, set, leaves });
        self.groups.len() - 1
    }

    /// Returns messages about repeated rows.
    pub fn repeated_rows(&self) -> &[String] {
        &self.repeated
    }

    /// Returns the number of values.
    pub fn values(&self) -> usize {
        self.leaves.len()
    }

    /// Returns the sorted canonical texts.
    #[expect(clippy::disallowed_methods, reason = "the texts are sorted before anyone sees them")]
    pub fn listed_values(&self) -> Vec<&str> {
        let mut listed: Vec<&str> = self.leaves.keys().map(String::as_str).collect();
        listed.sort_unstable();
        listed
    }

    pub(super) fn inner_levels(&self) -> usize {
        self.levels.len()
    }

    pub(super) fn label(&self, index: usize) -> String {
        let groups: BTreeSet<Option<usize>> = self.levels[index].iter().copied().collect();
        let names: Vec<&str> =
            groups.iter().map(|group| group.map_or("*", |group| self.groups[group].text.as_str())).collect();
        match names.len() {
            1..=MAX_NAMED_GROUPS => names.join(", "),
            many => format!("{many} groups"),
        }
    }

    pub(super) fn covers(&self, canonical: &str) -> Option<Vec<ValueCover>> {
        self.leaves.get(canonical).map(|&row| self.covers_of(row))
    }

    pub(super) fn examples(&self) -> Vec<Vec<ValueCover>> {
        (0..self.leaves.len()).map(|row| self.covers_of(row)).collect()
    }

    fn covers_of(&self, row: usize) -> Vec<ValueCover> {
        self.levels.iter().map(|level| level[row].map_or(ValueCover::Root, |group| self.cover(group))).collect()
    }

    fn cover(&self, group: usize) -> ValueCover {
        let group = &self.groups[group];
        if group.leaves == 1 {
            return ValueCover::Value;
        }
        let loss = (group.leaves - 1) as f64 / (self.leaves.len() - 1) as f64;
        ValueCover::Set { text: group.text.clone(), set: group.set.clone(), loss: Some(loss) }
    }

    #[expect(clippy::disallowed_methods, reason = "the lines are sorted before anyone sees them")]
    pub(super) fn description(&self) -> String {
        let mut lines: Vec<String> = self
            .leaves
            .iter()
            .map(|(text, &row)| {
                let labels = self.levels.iter().map(|level| level[row].map_or("*", |group| &self.groups[group].text));
                format!("{text};{}", labels.collect::<Vec<_>>().join(";"))
            })
            .collect();
        lines.sort_unstable();
        format!("tree\n{}", lines.join("\n"))
    }
}

fn set_digest(sorted: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in sorted {
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    format!("leaves {:x}", hash.finalize())
}

struct LabelRegistry {
    sets: HashMap<String, (String, usize)>,
}

impl LabelRegistry {
    fn new(texts: &[String]) -> Self {
        let sets = texts.iter().enumerate().map(|(row, text)| (text.clone(), (set_digest(&[text]), row))).collect();
        Self { sets }
    }

    /// Returns the row of a different set with this text.
    fn register(&mut self, text: &str, set: &str, row: usize) -> Option<usize> {
        let (known, earlier) = self.sets.entry(text.to_owned()).or_insert_with(|| (set.to_owned(), row));
        (known != set).then_some(*earlier)
    }
}

fn shape_flaws(rows: &[HierarchyRow], first: &HierarchyRow) -> Vec<HierarchyFlaw> {
    let mut flaws = Vec::new();
    let width = first.labels.len();
    if width < 2 {
        flaws.push(HierarchyFlaw::new(
            &first.place,
            "a row needs at least a value and the root: add the missing columns",
        ));
        return flaws;
    }
    for row in rows {
        let found = row.labels.len();
        if found != width {
            let message = format!("{found} columns, but {} has {width}: give every row the same levels", first.place);
            flaws.push(HierarchyFlaw::new(&row.place, message));
            continue;
        }
        if row.labels[width - 1] != first.labels[width - 1] {
            let message =
                format!("the root differs from that of {}: the last column must be the same everywhere", first.place);
            flaws.push(HierarchyFlaw::new(&row.place, message));
        }
        if let Some(column) = row.labels.iter().skip(1).position(String::is_empty) {
            flaws.push(HierarchyFlaw::new(&row.place, format!("column {} is empty: name the group", column + 1)));
        }
    }
    flaws
}

fn parent_flaws(rows: &[HierarchyRow], level: usize, root: &str, flaws: &mut Vec<HierarchyFlaw>) {
    let mut parents: HashMap<&str, (&str, &HierarchyRow)> = HashMap::new();
    for row in rows {
        let (label, parent) = (row.labels[level].as_str(), row.labels[level + 1].as_str());
        if label == root && parent != root {
            let message =
                format!("column {level} is the root, but column {} is not: the root must come last", level + 1);
            flaws.push(HierarchyFlaw::new(&row.place, message));
            continue;
        }
        let &mut (known, earlier) = parents.entry(label).or_insert((parent, row));
        if known != parent {
            let message = format!(
                "\"{label}\" (column {level}) belongs to \"{parent}\" here and to \"{known}\" in {}: give it one parent",
                earlier.place
            );
            flaws.push(HierarchyFlaw::new(&row.place, message));
        }
    }
}

#[cfg(test)]
mod tests;

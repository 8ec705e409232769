//! Listed values: a table with one row a value, its label on every level, and the root last.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest, Sha256};

use super::{Cover, Flaw};
use crate::values::json::quoted;

/// One value and its labels, from the value (first) to the root (last).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it is written, for messages: `row 3`, or a key path.
    pub place: String,
    /// From the value to its coarsest label.
    pub labels: Vec<String>,
}

/// Groups that a label names one by one, at most.
const FEW: usize = 3;

#[derive(Clone, Debug)]
struct Group {
    text: String,
    set: String,
    leaves: usize,
}

/// A checked hierarchy of listed values.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Canonical values to row numbers.
    leaves: HashMap<String, usize>,
    /// For each level between the values and the root: the group of every row (none: the root already).
    levels: Vec<Vec<Option<usize>>>,
    groups: Vec<Group>,
    /// Rows that say again what another has said, and were left out.
    repeated: Vec<String>,
}

impl Tree {
    /// Checks the rows; `canonical` gives a value's canonical text, or says why it has none.
    ///
    /// The root may be called anything, as long as it is the same in every row; it leaves as `*`, also where it
    /// appears on a lower level.
    ///
    /// # Errors
    /// Every flaw, each with the place of its row: ragged rows, different roots, a value twice, a label with two
    /// parents, a label that covers different values on different levels.
    pub fn build(rows: &[Row], canonical: impl Fn(&str) -> Result<String, String>) -> Result<Self, Vec<Flaw>> {
        let mut seen: HashMap<&[String], &str> = HashMap::new();
        let mut repeated = Vec::new();
        let mut once = Vec::with_capacity(rows.len());
        for row in rows {
            match seen.get(row.labels.as_slice()) {
                Some(earlier) => repeated.push(format!("{} is the same as {earlier}, and left out", row.place)),
                None => {
                    seen.insert(&row.labels, &row.place);
                    once.push(row.clone());
                }
            }
        }
        Ok(Self { repeated, ..Self::of_different(&once, canonical)? })
    }

    fn of_different(rows: &[Row], canonical: impl Fn(&str) -> Result<String, String>) -> Result<Self, Vec<Flaw>> {
        let Some(first) = rows.first() else {
            return Err(vec![Flaw::new("rows", "the hierarchy is empty: list at least one value")]);
        };
        let mut flaws = shape_flaws(rows, first);
        let mut leaves = HashMap::new();
        let mut texts = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            match canonical(row.labels.first().map_or("", String::as_str)) {
                Ok(text) => {
                    if let Some(&earlier) = leaves.get(&text) {
                        let there: &Row = &rows[earlier];
                        let message = format!("this value is already in {}, after rounding: remove one", there.place);
                        flaws.push(Flaw::new(&row.place, message));
                    } else {
                        leaves.insert(text.clone(), index);
                    }
                    texts.push(text);
                }
                Err(why) => flaws.push(Flaw::new(&row.place, format!("the value is {why}: correct or remove it"))),
            }
        }
        // What follows reads every row at every level, so the rows must be sound.
        if !flaws.is_empty() {
            return Err(flaws);
        }
        let root = first.labels.last().map_or("", String::as_str);
        let mut tree = Self { leaves, levels: Vec::new(), groups: Vec::new(), repeated: Vec::new() };
        let mut named = Named::new(&texts);
        // The smallest group known of each row, to give equal sets one text.
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
                let set = set_of(&sorted);
                let text = quoted(label);
                if let Some(earlier) = named.register(&text, &set, members[0]) {
                    let message = format!(
                        "\"{label}\" (column {level}) covers other values than the same label in {}: rename one of them",
                        rows[earlier].place
                    );
                    flaws.push(Flaw::new(&rows[members[0]].place, message));
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
        self.groups.push(Group { text, set, leaves });
        self.groups.len() - 1
    }

    /// What was written twice, row by row.
    pub fn repeated(&self) -> &[String] {
        &self.repeated
    }

    /// Number of listed values.
    pub fn values(&self) -> usize {
        self.leaves.len()
    }

    /// The listed values by their canonical texts, ascending.
    #[expect(clippy::disallowed_methods, reason = "the texts are sorted before anyone sees them")]
    pub fn listed(&self) -> Vec<&str> {
        let mut listed: Vec<&str> = self.leaves.keys().map(String::as_str).collect();
        listed.sort_unstable();
        listed
    }

    pub(super) fn between(&self) -> usize {
        self.levels.len()
    }

    /// The groups of a level: by their number, and by their names where they are few.
    pub(super) fn label(&self, index: usize) -> String {
        let groups: BTreeSet<Option<usize>> = self.levels[index].iter().copied().collect();
        let names: Vec<&str> =
            groups.iter().map(|group| group.map_or("*", |group| self.groups[group].text.as_str())).collect();
        match names.len() {
            1..=FEW => names.join(", "),
            many => format!("{many} groups"),
        }
    }

    pub(super) fn covers(&self, canonical: &str) -> Option<Vec<Cover>> {
        self.leaves.get(canonical).map(|&row| self.covers_of(row))
    }

    /// What the listed values become, row by row.
    pub(super) fn examples(&self) -> Vec<Vec<Cover>> {
        (0..self.leaves.len()).map(|row| self.covers_of(row)).collect()
    }

    fn covers_of(&self, row: usize) -> Vec<Cover> {
        self.levels.iter().map(|level| level[row].map_or(Cover::Root, |group| self.cover(group))).collect()
    }

    fn cover(&self, group: usize) -> Cover {
        let group = &self.groups[group];
        if group.leaves == 1 {
            return Cover::Value;
        }
        let loss = (group.leaves - 1) as f64 / (self.leaves.len() - 1) as f64;
        Cover::Set { text: group.text.clone(), set: group.set.clone(), loss: Some(loss) }
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

/// The sorted values of a group, hashed: a group of ten thousand ZIP codes is described in 64 bytes.
fn set_of(sorted: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in sorted {
        hash.update(text.as_bytes());
        hash.update([0]);
    }
    format!("leaves {:x}", hash.finalize())
}

/// Every text in use, with the set it stands for and a row that has it.
struct Named {
    sets: HashMap<String, (String, usize)>,
}

impl Named {
    fn new(texts: &[String]) -> Self {
        let sets = texts.iter().enumerate().map(|(row, text)| (text.clone(), (set_of(&[text]), row))).collect();
        Self { sets }
    }

    /// The row of an earlier, different set of the same text.
    fn register(&mut self, text: &str, set: &str, row: usize) -> Option<usize> {
        let (known, earlier) = self.sets.entry(text.to_owned()).or_insert_with(|| (set.to_owned(), row));
        (known != set).then_some(*earlier)
    }
}

fn shape_flaws(rows: &[Row], first: &Row) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    let width = first.labels.len();
    if width < 2 {
        flaws.push(Flaw::new(&first.place, "a row needs a value and the root at least: add the missing columns"));
        return flaws;
    }
    for row in rows {
        let found = row.labels.len();
        if found != width {
            let message = format!("{found} columns, but {} has {width}: give every row the same levels", first.place);
            flaws.push(Flaw::new(&row.place, message));
            continue;
        }
        if row.labels[width - 1] != first.labels[width - 1] {
            let message =
                format!("the root differs from that of {}: the last column must be the same everywhere", first.place);
            flaws.push(Flaw::new(&row.place, message));
        }
        if let Some(column) = row.labels.iter().skip(1).position(String::is_empty) {
            flaws.push(Flaw::new(&row.place, format!("column {} is empty: name the group", column + 1)));
        }
    }
    flaws
}

fn parent_flaws(rows: &[Row], level: usize, root: &str, flaws: &mut Vec<Flaw>) {
    let mut parents: HashMap<&str, (&str, &Row)> = HashMap::new();
    for row in rows {
        let (label, parent) = (row.labels[level].as_str(), row.labels[level + 1].as_str());
        if label == root && parent != root {
            let message =
                format!("column {level} is the root, but column {} is not: nothing lies above the root", level + 1);
            flaws.push(Flaw::new(&row.place, message));
            continue;
        }
        let &mut (known, earlier) = parents.entry(label).or_insert((parent, row));
        if known != parent {
            let message = format!(
                "\"{label}\" (column {level}) belongs to \"{parent}\" here and to \"{known}\" in {}: give it one parent",
                earlier.place
            );
            flaws.push(Flaw::new(&row.place, message));
        }
    }
}

#[cfg(test)]
mod tests;

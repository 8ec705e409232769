//! Verification of counterfeits and of their catalog, from the bytes of what is about to leave (docs/methods.md §15.6).
//!
//! Claim. If [`verify_ceiling`] returns `Ok`, then of the lines that leave, true ones (verified before, counted without any
//! counterfeit) and counterfeits together, and of the catalog read back from its bytes: (1) every class has `lines` of them at
//! least; (2) no line is generalized by more than h; (3) the catalog says of its groups how many counterfeits show which value,
//! says nothing of others, and every counterfeit is in one; (4) no class is in two groups, all exist, and all have exactly `lines` lines, so that
//! size tells nothing; (5) Lemma 1 of [HCE] holds: for each class and value the true lines of the other classes of the
//! group are as many as its counterfeits, or more; (6) all counterfeits of a class at once could be true lines of the others,
//! with no class left fewer than `people` true lines: so nobody can show that a class has any; (7) a counterfeit shows a cell that is not
//! exact only where a true line of its class does; (8) lines leave sorted by their bytes. Written from the definitions; it knows
//! nothing of how classes were filled or grouped, and takes from there only which lines are invented.

use super::verified::Verified;
use super::violation::DataSetRefusal;
use std::collections::{BTreeMap, BTreeSet};
use throng_formats::{CatalogGroup, LineLayout};

/// What the verifier knows.
pub struct CeilingTerms<'a> {
    /// Which cells of a line form its class; all others but `sensitive` are refused.
    pub quasi: &'a [bool],
    /// Position of the sensitive cell in a line.
    pub sensitive: usize,
    /// Lines of a class at least.
    pub lines: usize,
    /// True lines of a class at least.
    pub people: usize,
    /// How far a line may be generalized at most.
    pub h: f64,
    /// The Loss of a cell by its position and text, in [0, 1]; none for a text that no hierarchy prints.
    pub loss: &'a dyn Fn(usize, &str) -> Option<f64>,
    /// Whether a sensitive text stands for one value.
    pub is_exact: &'a dyn Fn(&str) -> bool,
}

/// Lines that may leave, counterfeits among them, and the catalog. Only [`verify_ceiling`] makes one.
#[derive(Debug)]
pub struct Mixed {
    lines: Vec<Vec<u8>>,
    catalog: Vec<u8>,
}

impl Mixed {
    /// The lines, sorted by their bytes, without line breaks.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().map(Vec::as_slice)
    }

    /// The catalog, each line with its line break.
    #[must_use]
    pub fn catalog(&self) -> &[u8] {
        &self.catalog
    }
}

/// What degrees may differ by where losses are kept in 32 bits.
const SLACK: f64 = 1e-6;

/// By value: how many.
type Counts<'a> = BTreeMap<&'a str, u64>;

/// What a class has.
#[derive(Default)]
struct Counted {
    shown: BTreeMap<String, u64>,
    counterfeits: BTreeMap<String, u64>,
}

impl Counted {
    fn invented(&self) -> u64 {
        self.counterfeits.values().sum()
    }

    fn lines(&self) -> u64 {
        self.shown.values().sum::<u64>() + self.invented()
    }

    fn true_lines(&self, value: &str) -> u64 {
        self.shown.get(value).copied().unwrap_or(0)
    }
}

/// Verifies `counterfeits` among the lines of `group`, and their `catalog`.
///
/// # Errors
/// The first thing found that does not agree; nothing may leave then.
pub fn verify_ceiling(
    verified: &Verified,
    group: usize,
    layout: &LineLayout,
    counterfeits: &[Vec<u8>],
    catalog: Vec<u8>,
    terms: &CeilingTerms<'_>,
) -> Result<Mixed, DataSetRefusal> {
    let refused = DataSetRefusal::Counterfeit;
    let mut classes: BTreeMap<Vec<String>, Counted> = BTreeMap::new();
    let mut cells = Vec::new();
    let mut lines: Vec<Vec<u8>> = Vec::with_capacity(verified.len(group) + counterfeits.len());
    let genuine = verified.lines(group).map(|line| (line.bytes, true));
    for (bytes, is_true) in genuine.chain(counterfeits.iter().map(|bytes| (bytes.as_slice(), false))) {
        layout.read(bytes, &mut cells).ok_or(refused("a line is not what the layout writes"))?;
        let class = terms.class_of(&cells).map_err(refused)?;
        let counted = classes.entry(class).or_default();
        let counts = if is_true { &mut counted.shown } else { &mut counted.counterfeits };
        *counts.entry(std::mem::take(&mut cells[terms.sensitive])).or_default() += 1;
        lines.push(bytes.to_vec());
    }
    lines.sort_unstable();
    let text = std::str::from_utf8(&catalog).map_err(|_| refused("the catalog is no text"))?;
    judge(&classes, text, terms).map_err(refused)?;
    Ok(Mixed { lines, catalog })
}

impl CeilingTerms<'_> {
    /// The class of a line, whose degree is judged.
    fn class_of(&self, cells: &[String]) -> Result<Vec<String>, &'static str> {
        let (mut sum, mut attributes) = (0.0, 0);
        let mut class = Vec::with_capacity(cells.len());
        for (at, cell) in cells.iter().enumerate().filter(|(at, _)| *at != self.sensitive) {
            if !self.quasi[at] {
                return Err("a cell is neither of the class nor sensitive");
            }
            sum += (self.loss)(at, cell).ok_or("a cell is of no hierarchy")?;
            attributes += 1;
            class.push(cell.clone());
        }
        if sum > (self.h + SLACK) * f64::from(attributes) {
            return Err("a line is generalized above the ceiling");
        }
        Ok(class)
    }
}

fn judge(
    classes: &BTreeMap<Vec<String>, Counted>,
    catalog: &str,
    terms: &CeilingTerms<'_>,
) -> Result<(), &'static str> {
    for counted in classes.values() {
        if counted.lines() < terms.lines as u64 {
            return Err("a class has fewer lines than anonymize.ceiling.lines");
        }
        if counted.lines() - counted.invented() < terms.people as u64 {
            return Err("a class has fewer true lines than people are promised");
        }
        let told = |value: &String| !(terms.is_exact)(value) && counted.true_lines(value) == 0;
        if counted.counterfeits.keys().any(told) {
            return Err("a counterfeit hides its value where no record of its class does");
        }
    }
    let mut in_groups: BTreeSet<&Vec<String>> = BTreeSet::new();
    let groups: Option<Vec<CatalogGroup>> = catalog.lines().map(CatalogGroup::read).collect();
    let groups = groups.ok_or("a line of the catalog does not read back")?;
    for group in &groups {
        let mut members: Vec<&Counted> = Vec::with_capacity(group.classes.len());
        for cells in &group.classes {
            let Some((class, counted)) = classes.get_key_value(cells) else {
                return Err("the catalog names a class that does not leave");
            };
            if !in_groups.insert(class) {
                return Err("the catalog names a class twice");
            }
            if counted.lines() != terms.lines as u64 {
                return Err("a class of the catalog tells by its size that it has no counterfeit");
            }
            members.push(counted);
        }
        of_group(group, &members, terms)?;
    }
    let outside = |(class, counted): (&Vec<String>, &Counted)| counted.invented() > 0 && !in_groups.contains(class);
    if classes.iter().any(outside) {
        return Err("a counterfeit is in no group of the catalog");
    }
    Ok(())
}

/// Judges one group of the catalog by what its classes have.
fn of_group(group: &CatalogGroup, members: &[&Counted], terms: &CeilingTerms<'_>) -> Result<(), &'static str> {
    let mut all = Counts::new();
    for (value, count) in members.iter().flat_map(|member| &member.counterfeits) {
        *all.entry(value).or_default() += count;
    }
    let said: Counts<'_> = group.counterfeits.iter().map(|(value, count)| (value.as_str(), *count)).collect();
    if said != all || said.len() != group.counterfeits.len() || all.is_empty() {
        return Err("the catalog does not say what was inserted");
    }
    for (at, member) in members.iter().enumerate() {
        let others: Vec<&Counted> =
            members.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, m)| *m).collect();
        for (value, &count) in &member.counterfeits {
            if others.iter().map(|other| other.true_lines(value)).sum::<u64>() < count {
                return Err("Lemma 1 does not hold in a group of the catalog");
            }
        }
        if !could_all_be_true(member, &others, terms) {
            return Err("a class of the catalog could be shown to have a counterfeit");
        }
    }
    Ok(())
}

/// Whether the counterfeits of a class could be true lines of the others, which keep their `people`: a flow from its
/// counterfeits over lines of the others that show the same, no more into a class than it has room for.
fn could_all_be_true(class: &Counted, others: &[&Counted], terms: &CeilingTerms<'_>) -> bool {
    let most = terms.lines.saturating_sub(terms.people) as u64;
    let counterfeits: Vec<(&str, u64)> =
        class.counterfeits.iter().map(|(value, &count)| (value.as_str(), count)).collect();
    let room: Vec<u64> = others.iter().map(|other| most.saturating_sub(other.invented())).collect();
    // By value and class: lines that are taken.
    let mut taken = vec![vec![0u64; others.len()]; counterfeits.len()];
    for at in 0..counterfeits.len() {
        for _ in 0..counterfeits[at].1 {
            let mut seen = vec![false; others.len()];
            if !one_more(at, &counterfeits, others, &room, (&mut taken, &mut seen)) {
                return false;
            }
        }
    }
    true
}

/// Finds a line for one more counterfeit of a value, moving others of another value where that makes room.
fn one_more(
    at: usize,
    counterfeits: &[(&str, u64)],
    others: &[&Counted],
    room: &[u64],
    (taken, seen): (&mut Vec<Vec<u64>>, &mut Vec<bool>),
) -> bool {
    for other in 0..others.len() {
        if seen[other] || taken[at][other] >= others[other].true_lines(counterfeits[at].0) {
            continue;
        }
        seen[other] = true;
        if taken.iter().map(|of| of[other]).sum::<u64>() < room[other] {
            taken[at][other] += 1;
            return true;
        }
        for moved in 0..counterfeits.len() {
            if taken[moved][other] > 0 && one_more(moved, counterfeits, others, room, (taken, seen)) {
                taken[moved][other] -= 1;
                taken[at][other] += 1;
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
#[path = "ceiling_tests.rs"]
mod tests;

//! Verification of counterfeits and their catalog (docs/internals/methods.md §15.6).
//!
//! Claim. The true lines are verified before. If [`verify_ceiling`] returns `Ok`:
//!
//! 1. Every class has `lines` lines or more.
//! 2. No line is generalized by more than h.
//! 3. Each catalog group lists exactly its counterfeits per value, and every counterfeit is in one group.
//! 4. Groups are disjoint, and their classes have exactly `lines` lines, so size reveals nothing.
//! 5. Lemma 1 of \[HCE]: per class and value, the other classes of the group have at least as many true lines as the
//!    class has counterfeits.
//! 6. All counterfeits of a class could be true lines of the others, with `people` true lines left in each. No observer
//!    can prove that a class has any.
//! 7. A counterfeit shows an inexact cell only if a true line of its class does.
//! 8. Lines are sorted by their bytes.

use super::verified_batch::ReleasableBatch;
use super::violation::DataSetRefusal;
use crate::counterfeit_catalog::CatalogGroup;
use crate::line_encoder::LineLayout;
use std::collections::{BTreeMap, BTreeSet};

/// Terms that the verifier checks.
pub struct CeilingTerms<'a> {
    /// Marks the class cells: all but `sensitive`.
    pub quasi: &'a [bool],
    /// Position of the sensitive cell.
    pub sensitive: usize,
    /// Minimum lines of a class.
    pub lines: usize,
    /// Minimum true lines of a class.
    pub people: usize,
    /// Maximum generalization of a line.
    pub h: f64,
    /// Loss by position and text, in [0, 1]; none outside all hierarchies.
    pub loss: &'a dyn Fn(usize, &str) -> Option<f64>,
    /// Checks that a sensitive text has exactly one value.
    pub is_exact: &'a dyn Fn(&str) -> bool,
}

/// Lines and catalog, made by [`verify_ceiling`] only.
#[derive(Debug)]
pub struct MixedLines {
    lines: Vec<Vec<u8>>,
    catalog: Vec<u8>,
}

impl MixedLines {
    /// Sorted lines without line breaks.
    pub fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines.iter().map(Vec::as_slice)
    }

    /// Catalog with line breaks.
    #[must_use]
    pub fn catalog(&self) -> &[u8] {
        &self.catalog
    }
}

/// Losses are stored in 32 bits.
const VERIFIED_LOSS_TOLERANCE: f64 = 1e-6;

type ValueCountMap<'a> = BTreeMap<&'a str, u64>;

#[derive(Default)]
struct ClassLineCounts {
    shown: BTreeMap<String, u64>,
    counterfeits: BTreeMap<String, u64>,
}

impl ClassLineCounts {
    fn counterfeit_lines(&self) -> u64 {
        self.counterfeits.values().sum()
    }

    fn lines(&self) -> u64 {
        self.shown.values().sum::<u64>() + self.counterfeit_lines()
    }

    fn true_lines(&self, value: &str) -> u64 {
        self.shown.get(value).copied().unwrap_or(0)
    }
}

/// Verifies `counterfeits` and their `catalog`.
///
/// # Errors
/// The first violated claim.
pub fn verify_ceiling(
    verified: &ReleasableBatch,
    group: usize,
    layout: &LineLayout,
    counterfeits: &[Vec<u8>],
    catalog: Vec<u8>,
    terms: &CeilingTerms<'_>,
) -> Result<MixedLines, DataSetRefusal> {
    let refused = DataSetRefusal::Counterfeit;
    let mut classes: BTreeMap<Vec<String>, ClassLineCounts> = BTreeMap::new();
    let mut cells = Vec::new();
    let mut lines: Vec<Vec<u8>> = Vec::with_capacity(verified.len(group) + counterfeits.len());
    let genuine = verified.lines(group).map(|line| (line.bytes, true));
    for (bytes, is_true) in genuine.chain(counterfeits.iter().map(|bytes| (bytes.as_slice(), false))) {
        layout.read(bytes, &mut cells).ok_or(refused("a line does not match the layout"))?;
        let class = terms.class_of(&cells).map_err(refused)?;
        let counted = classes.entry(class).or_default();
        let counts = if is_true { &mut counted.shown } else { &mut counted.counterfeits };
        *counts.entry(std::mem::take(&mut cells[terms.sensitive])).or_default() += 1;
        lines.push(bytes.to_vec());
    }
    lines.sort_unstable();
    let text = std::str::from_utf8(&catalog).map_err(|_| refused("the catalog is not text"))?;
    check_catalog(&classes, text, terms).map_err(refused)?;
    Ok(MixedLines { lines, catalog })
}

impl CeilingTerms<'_> {
    /// Also checks the generalization of the line.
    fn class_of(&self, cells: &[String]) -> Result<Vec<String>, &'static str> {
        let (mut sum, mut attributes) = (0.0, 0);
        let mut class = Vec::with_capacity(cells.len());
        for (at, cell) in cells.iter().enumerate().filter(|(at, _)| *at != self.sensitive) {
            if !self.quasi[at] {
                return Err("a cell is neither a class cell nor a sensitive one");
            }
            sum += (self.loss)(at, cell).ok_or("a cell is in no hierarchy")?;
            attributes += 1;
            class.push(cell.clone());
        }
        if sum > (self.h + VERIFIED_LOSS_TOLERANCE) * f64::from(attributes) {
            return Err("a line is generalized above the ceiling");
        }
        Ok(class)
    }
}

fn check_catalog(
    classes: &BTreeMap<Vec<String>, ClassLineCounts>,
    catalog: &str,
    terms: &CeilingTerms<'_>,
) -> Result<(), &'static str> {
    for counted in classes.values() {
        if counted.lines() < terms.lines as u64 {
            return Err("a class has fewer lines than anonymize.ceiling.lines");
        }
        if counted.lines() - counted.counterfeit_lines() < terms.people as u64 {
            return Err("a class has fewer true lines than the required number of people");
        }
        let told = |value: &String| !(terms.is_exact)(value) && counted.true_lines(value) == 0;
        if counted.counterfeits.keys().any(told) {
            return Err("a counterfeit hides its value where no record of its class does");
        }
    }
    let mut in_groups: BTreeSet<&Vec<String>> = BTreeSet::new();
    let groups: Option<Vec<CatalogGroup>> = catalog.lines().map(CatalogGroup::parse_catalog_line).collect();
    let groups = groups.ok_or("a line of the catalog cannot be parsed")?;
    for group in &groups {
        let mut members: Vec<&ClassLineCounts> = Vec::with_capacity(group.classes.len());
        for cells in &group.classes {
            let Some((class, counted)) = classes.get_key_value(cells) else {
                return Err("the catalog names a class that is not released");
            };
            if !in_groups.insert(class) {
                return Err("the catalog names a class twice");
            }
            if counted.lines() != terms.lines as u64 {
                return Err("a class of the catalog reveals by its size that it has no counterfeit");
            }
            members.push(counted);
        }
        check_group(group, &members, terms)?;
    }
    let outside = |(class, counted): (&Vec<String>, &ClassLineCounts)| {
        counted.counterfeit_lines() > 0 && !in_groups.contains(class)
    };
    if classes.iter().any(outside) {
        return Err("a counterfeit is in no group of the catalog");
    }
    Ok(())
}

fn check_group(
    group: &CatalogGroup,
    members: &[&ClassLineCounts],
    terms: &CeilingTerms<'_>,
) -> Result<(), &'static str> {
    let mut all = ValueCountMap::new();
    for (value, count) in members.iter().flat_map(|member| &member.counterfeits) {
        *all.entry(value).or_default() += count;
    }
    let said: ValueCountMap<'_> = group.counterfeits.iter().map(|(value, count)| (value.as_str(), *count)).collect();
    if said != all || said.len() != group.counterfeits.len() || all.is_empty() {
        return Err("the catalog does not match the inserted counterfeits");
    }
    for (at, member) in members.iter().enumerate() {
        let others: Vec<&ClassLineCounts> =
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

/// Claim (6): a flow to lines with the same value, limited by the room per class.
fn could_all_be_true(class: &ClassLineCounts, others: &[&ClassLineCounts], terms: &CeilingTerms<'_>) -> bool {
    let most = terms.lines.saturating_sub(terms.people) as u64;
    let counterfeits: Vec<(&str, u64)> =
        class.counterfeits.iter().map(|(value, &count)| (value.as_str(), count)).collect();
    let room: Vec<u64> = others.iter().map(|other| most.saturating_sub(other.counterfeit_lines())).collect();
    // Lines taken, by value and class.
    let mut taken = vec![vec![0u64; others.len()]; counterfeits.len()];
    for at in 0..counterfeits.len() {
        for _ in 0..counterfeits[at].1 {
            let mut seen = vec![false; others.len()];
            if !place_counterfeit(at, &counterfeits, others, &room, (&mut taken, &mut seen)) {
                return false;
            }
        }
    }
    true
}

/// Moves lines of other values for room.
fn place_counterfeit(
    at: usize,
    counterfeits: &[(&str, u64)],
    others: &[&ClassLineCounts],
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
            if taken[moved][other] > 0 && place_counterfeit(moved, counterfeits, others, room, (taken, seen)) {
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

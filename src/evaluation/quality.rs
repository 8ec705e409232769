//! What a release is worth: the measures of docs/methods.md §9 and §14, over all groups.
//!
//! Every measure says in its name or here what becomes of a record without a line: the ones that end in `_of_all` count it
//! as lost, the others look at lines only.

use super::facts::{AttributeFacts, is_present};
use super::information::{Pair, pairs, weighted};
use super::original::Original;
use super::released::{ReleasedGroup, is_foreign};
use crate::anonymity::planner::GroupShape;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::{CellId, Code, MISSING, OMITTED, SUPPRESSED};

/// One attribute.
#[derive(Clone, Debug, Serialize)]
pub struct AttributeQuality {
    /// The attribute.
    pub attribute: String,
    /// The group that it leaves in; all of them, where several.
    pub group: String,
    /// Mean Loss of the cells that left, missing ones aside. [0, 1], lower is better.
    pub loss: f64,
    /// The same over all present cells of the original: one that did not leave counts 1.
    pub loss_of_all: f64,
    /// Share of the cells that left that are exact. [0, 1].
    pub exact: f64,
    /// Mean precision: 1 − level / highest level [SWE]. [0, 1], higher is better.
    pub precision: f64,
    /// Mean bits that a cell hides, given the distribution of the original: non-uniform entropy a cell. [0, ∞).
    pub bits_hidden: f64,
    /// Mean reconstruction error of a cell that left: 1 − 1 / values that it stands for ([HCE], without counterfeits). [0, 1), lower
    /// is better.
    pub reconstruction_error: f64,
    /// Kullback–Leibler divergence, in bits, of the original's values from those that the cells are spread over evenly. [0, ∞).
    pub kl_divergence: f64,
    /// Cells that no generalization of the original prints, or (with a lineage) not of their own record: falsified values.
    pub falsified: u64,
}

/// One group.
#[derive(Clone, Debug, Serialize)]
pub struct GroupQuality {
    /// The group.
    pub group: String,
    /// Its attributes.
    pub attributes: Vec<String>,
    /// Lines that left.
    pub lines: u64,
    /// Equivalence classes among them, by their quasi attributes.
    pub classes: u64,
    /// Average equivalence class size: lines / classes.
    pub aecs: f64,
    /// Discernibility [BAY]: Σ|E|² + records without a line · records.
    pub discernibility: f64,
}

/// Two attributes that say much of each other.
#[derive(Clone, Debug, Serialize)]
pub struct PairQuality {
    /// The attributes.
    pub attributes: [String; 2],
    /// What they say of each other in the original, in bits.
    pub bits: f64,
    /// How much of it lines say, in [0, 1].
    pub kept: f64,
}

/// A release.
#[derive(Clone, Debug, Serialize)]
pub struct Quality {
    /// Records of the original.
    pub records: u64,
    /// Lines that left, over all groups.
    pub lines: u64,
    /// Share of the records of which nothing left; none without a lineage where a record may leave in several groups.
    pub nothing_released: Option<f64>,
    /// Mean Loss of the quasi cells that left. [0, 1].
    pub loss: f64,
    /// The same over all present quasi cells of the original.
    pub loss_of_all: f64,
    /// Share of the quasi cells that left that are exact.
    pub exact: f64,
    /// Pairwise information that lines keep. [0, 1], higher is better.
    pub pairwise_information: f64,
    /// The same over all records.
    pub pairwise_information_of_all: f64,
    /// Data score of the release ([POD] Table 6.1), over that of the original.
    pub data_score: f64,
    /// Share of the cells that left that are altered: generalized, suppressed or falsified ([POD] §6.1). [0, 1].
    pub distortion: f64,
    /// The attributes, in the order of the schema.
    pub attributes: Vec<AttributeQuality>,
    /// The groups, in the order of the configuration.
    pub groups: Vec<GroupQuality>,
    /// The pairs that say most of each other.
    pub pairs: Vec<PairQuality>,
}

/// Pairs that are listed.
const LISTED_PAIRS: usize = 12;

/// Measures a release. `facts` are those of every attribute.
pub fn quality(
    original: &Original,
    facts: &[AttributeFacts],
    shapes: &[GroupShape],
    groups: &[ReleasedGroup],
) -> Quality {
    let quasi: BTreeSet<usize> = shapes.iter().flat_map(|shape| shape.quasi.iter().copied()).collect();
    let quasi: Vec<usize> = quasi.into_iter().collect();
    let name = |a: usize| original.schema.attributes[a].name.clone();
    let records = original.rows();
    let mut sums: Vec<CellSums> = Vec::new();
    let mut attributes = Vec::new();
    let mut told_in: BTreeMap<usize, usize> = BTreeMap::new();
    for (attribute, said) in by_attribute(original, facts, groups) {
        let falsified = said.iter().map(|(_, cells)| cells.falsified).sum();
        let names: Vec<&str> = said.iter().map(|(number, _)| groups[*number].name.as_str()).collect();
        // What stands in several groups is counted once: where most is told of it.
        let told = |cells: &CellSums| cells.left as f64 - cells.loss;
        let most = said.into_iter().reduce(|best, next| if told(&next.1) > told(&best.1) { next } else { best });
        let Some((number, cells)) = most else { continue };
        told_in.insert(attribute, number);
        attributes.push(AttributeQuality { falsified, ..cells.quality(name(attribute), &names.join(", ")) });
        if quasi.contains(&attribute) {
            sums.push(cells);
        }
    }
    let of = |value: &dyn Fn(&CellSums) -> f64| sums.iter().map(value).sum::<f64>();
    let left = of(&|sum| sum.left as f64).max(1.0);
    let present = of(&|sum| sum.present as f64).max(1.0);
    let pairs = pairs(original, facts, groups, &quasi);
    let (score, raw_score) = scores(original, facts, groups, &told_in);
    let altered: u64 = attributes.iter().map(|quality| quality.falsified).sum::<u64>()
        + groups.iter().map(|group| altered(facts, group)).sum::<u64>();
    let cells: usize = groups.iter().map(|group| group.lines * group.attributes.len()).sum();
    Quality {
        records: records as u64,
        lines: groups.iter().map(|group| group.lines as u64).sum(),
        nothing_released: nothing_released(records, groups),
        loss: of(&|sum| sum.loss) / left,
        loss_of_all: (of(&|sum| sum.loss) + (present - left).max(0.0)) / present,
        exact: of(&|sum| sum.exact as f64) / left,
        pairwise_information: weighted(&pairs, |pair| pair.kept),
        pairwise_information_of_all: weighted(&pairs, |pair| pair.kept_of_all.min(1.0)),
        data_score: if raw_score > 0.0 { score / raw_score } else { 1.0 },
        distortion: altered as f64 / cells.max(1) as f64,
        attributes,
        groups: groups.iter().zip(shapes).map(|(group, shape)| group_quality(original, group, shape)).collect(),
        pairs: listed(pairs, &name),
    }
}

/// Sums by attribute, ascending, and group that has it.
fn by_attribute(
    original: &Original,
    facts: &[AttributeFacts],
    groups: &[ReleasedGroup],
) -> BTreeMap<usize, Vec<(usize, CellSums)>> {
    let mut sums: BTreeMap<usize, Vec<(usize, CellSums)>> = BTreeMap::new();
    for (number, group) in groups.iter().enumerate() {
        for (at, &attribute) in group.attributes.iter().enumerate() {
            let cells = CellSums::of(original, &facts[attribute], attribute, group, &group.cells[at]);
            sums.entry(attribute).or_default().push((number, cells));
        }
    }
    sums
}

fn listed(mut pairs: Vec<Pair>, name: &dyn Fn(usize) -> String) -> Vec<PairQuality> {
    pairs.sort_by(|a, b| b.bits.total_cmp(&a.bits).then(a.attributes.cmp(&b.attributes)));
    let shown = pairs.into_iter().take(LISTED_PAIRS);
    shown.map(|p| PairQuality { attributes: p.attributes.map(name), bits: p.bits, kept: p.kept }).collect()
}

/// Share of the records without a line. One group says it by its number of lines.
fn nothing_released(records: usize, groups: &[ReleasedGroup]) -> Option<f64> {
    let share = |released: usize| 1.0 - released.min(records) as f64 / records.max(1) as f64;
    if let [group] = groups {
        return Some(share(group.lines));
    }
    let mut left = vec![false; records];
    for group in groups {
        group.origin.as_ref()?.iter().for_each(|origin| left[origin.row as usize] = true);
    }
    Some(share(left.iter().filter(|left| **left).count()))
}

/// Sums over the cells of one attribute.
struct CellSums {
    /// Present cells of the original.
    present: u64,
    /// Cells that left and say or hide a value.
    left: u64,
    loss: f64,
    exact: u64,
    precision: f64,
    bits: f64,
    reconstruction: f64,
    /// In bits.
    divergence: f64,
    falsified: u64,
}

impl CellSums {
    fn of(
        original: &Original,
        facts: &AttributeFacts,
        attribute: usize,
        group: &ReleasedGroup,
        cells: &[CellId],
    ) -> Self {
        let column = &original.batch.columns[attribute];
        let present = column.iter().filter(|code| is_present(**code)).count() as u64;
        let mut sums = Self {
            present,
            left: 0,
            loss: 0.0,
            exact: 0,
            precision: 0.0,
            bits: 0.0,
            reconstruction: 0.0,
            divergence: 0.0,
            falsified: 0,
        };
        let mut times: BTreeMap<CellId, u64> = BTreeMap::new();
        for (line, &cell) in cells.iter().enumerate() {
            let own = group.origin.as_ref().map(|origins| column[origins[line].row as usize]);
            if is_foreign(cell) || own.is_some_and(|code| !facts.holds(cell, code)) {
                sums.falsified += 1;
            }
            // A missing value that is suppressed has lost nothing that was there; nobody can tell without a lineage.
            if matches!(cell, MISSING | OMITTED) || own.is_some_and(|code| !is_present(code)) {
                continue;
            }
            let fact = facts.get(cell);
            sums.left += 1;
            sums.loss += fact.loss;
            sums.exact += u64::from(fact.exact);
            sums.precision += 1.0 - fact.height;
            sums.bits += fact.bits;
            sums.reconstruction += 1.0 - 1.0 / fact.codes.len().max(1) as f64;
            *times.entry(cell).or_default() += 1;
        }
        sums.divergence = divergence(facts, &times);
        sums
    }

    fn quality(&self, attribute: String, group: &str) -> AttributeQuality {
        let left = self.left.max(1) as f64;
        let present = self.present.max(1) as f64;
        AttributeQuality {
            attribute,
            group: group.to_owned(),
            loss: self.loss / left,
            loss_of_all: (self.loss + (present - self.left as f64).max(0.0)) / present,
            exact: self.exact as f64 / left,
            precision: self.precision / left,
            bits_hidden: self.bits / left,
            reconstruction_error: self.reconstruction / left,
            kl_divergence: self.divergence,
            falsified: self.falsified,
        }
    }
}

/// Added to the count of every value that left, so that one that nothing stands for is unlikely and not impossible.
const REST: f64 = 0.5;

/// Σ p log₂(p/q): p the shares of the present values in the original, q those that the cells, each as often as `times` says, have where
/// each is spread evenly over its present values. 0 where the attribute has no value.
fn divergence(facts: &AttributeFacts, times: &BTreeMap<CellId, u64>) -> f64 {
    let counts = &facts.counts;
    let codes: Vec<usize> = (0..counts.len()).filter(|code| is_present(*code as Code) && counts[*code] > 0).collect();
    let mut shown = vec![REST; counts.len()];
    for (cell, times) in times {
        let of: Vec<usize> =
            facts.get(*cell).codes.iter().map(|code| *code as usize).filter(|code| is_present(*code as Code)).collect();
        of.iter().for_each(|&code| shown[code] += *times as f64 / of.len() as f64);
    }
    let all: f64 = codes.iter().map(|&code| counts[code] as f64).sum();
    let all_shown: f64 = codes.iter().map(|&code| shown[code]).sum();
    let of = |&code: &usize| {
        let (p, q) = (counts[code] as f64 / all, shown[code] / all_shown);
        p * (p / q).log2()
    };
    codes.iter().map(of).sum::<f64>().max(0.0)
}

/// Cells of a group that are generalized or suppressed.
fn altered(facts: &[AttributeFacts], group: &ReleasedGroup) -> u64 {
    let of = |(&attribute, cells): (&usize, &Vec<CellId>)| {
        let facts = &facts[attribute];
        let coarse = |cell: &&CellId| **cell == SUPPRESSED || !is_foreign(**cell) && !facts.get(**cell).exact;
        cells.iter().filter(coarse).count() as u64
    };
    group.attributes.iter().zip(&group.cells).map(of).sum()
}

fn group_quality(original: &Original, group: &ReleasedGroup, shape: &GroupShape) -> GroupQuality {
    let sizes = class_sizes(group, &shape.quasi);
    let missing = original.rows().saturating_sub(group.lines) as f64;
    let squares: f64 = sizes.iter().map(|size| (*size as f64).powi(2)).sum();
    GroupQuality {
        group: group.name.clone(),
        attributes: group.attributes.iter().map(|&a| original.schema.attributes[a].name.clone()).collect(),
        lines: group.lines as u64,
        classes: sizes.len() as u64,
        aecs: group.lines as f64 / sizes.len().max(1) as f64,
        discernibility: squares + missing * original.rows() as f64,
    }
}

/// Lines of each equivalence class of a group, by the cells of `quasi`.
pub fn class_sizes(group: &ReleasedGroup, quasi: &[usize]) -> Vec<u64> {
    let columns: Vec<&[CellId]> = quasi.iter().filter_map(|&attribute| group.column(attribute)).collect();
    let mut sizes: BTreeMap<Vec<CellId>, u64> = BTreeMap::new();
    for line in 0..group.lines {
        *sizes.entry(columns.iter().map(|column| column[line]).collect()).or_default() += 1;
    }
    sizes.into_values().collect()
}

/// The data score of the release and of the original ([POD] Table 6.1): 1 for a value that occurs once, tanh(1/x) for each
/// cell of a value that occurs x times; what is suppressed, missing or falsified scores nothing, and what stands in several groups scores in
/// that of `told_in`.
fn scores(
    original: &Original,
    facts: &[AttributeFacts],
    groups: &[ReleasedGroup],
    told_in: &BTreeMap<usize, usize>,
) -> (f64, f64) {
    let score = |times: u64| if times == 1 { 1.0 } else { times as f64 * (1.0 / times as f64).tanh() };
    let (mut released, mut raw) = (0.0, 0.0);
    for (number, group) in groups.iter().enumerate() {
        let told = |(attribute, _): &(&usize, _)| told_in.get(*attribute) == Some(&number);
        for (&attribute, cells) in group.attributes.iter().zip(&group.cells).filter(told) {
            let mut times: BTreeMap<CellId, u64> = BTreeMap::new();
            let says = |cell: &&CellId| !matches!(**cell, SUPPRESSED | MISSING | OMITTED) && !is_foreign(**cell);
            cells.iter().filter(says).for_each(|cell| *times.entry(*cell).or_default() += 1);
            released += times.into_values().map(score).sum::<f64>();
            let counts = &facts[attribute].counts;
            let present = (0..counts.len()).filter(|&code| is_present(code as u32) && counts[code] > 0);
            raw += present.map(|code| score(counts[code])).sum::<f64>();
        }
    }
    debug_assert!(raw <= (original.rows() * original.schema.attributes.len()) as f64 + 1.0);
    (released, raw)
}

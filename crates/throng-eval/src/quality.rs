//! Utility of a release (docs/internals/methods.md §9, §14.1).
//!
//! Only measures named `…_of_all` count records without a line, as lost.

use super::facts::{AttributeFacts, is_present};
use super::information::{PairInformation, measure_pairs, weighted_share};
use super::original::OriginalData;
use crate::released_lines::{ReleasedGroup, is_foreign};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::plan::GroupShape;
use throng_core::values::codebook::{CellId, Code, MISSING, OMITTED, SUPPRESSED};

/// Quality of one attribute.
#[derive(Clone, Debug, Serialize)]
pub struct AttributeQuality {
    /// Attribute name.
    pub attribute: String,
    /// Groups that release the attribute.
    pub group: String,
    /// Mean loss of present released cells, in [0, 1].
    pub loss: f64,
    /// Mean loss of all present cells; an unreleased one counts 1.
    pub loss_of_all: f64,
    /// Share of exact released cells.
    pub exact: f64,
    /// Mean precision: 1 − level / highest level \[SWE].
    pub precision: f64,
    /// Mean non-uniform entropy per cell, in bits.
    pub bits_hidden: f64,
    /// Mean reconstruction error: 1 − 1 / number of covered values (\[HCE], without counterfeits).
    pub reconstruction_error: f64,
    /// Kullback–Leibler divergence of original values from evenly spread cells, in bits.
    pub kl_divergence: f64,
    /// Cells that no generalization or, with a lineage, none of their record prints.
    pub falsified: u64,
}

/// Quality of one group.
#[derive(Clone, Debug, Serialize)]
pub struct GroupQuality {
    /// Group name.
    pub group: String,
    /// Attribute names.
    pub attributes: Vec<String>,
    /// Released lines.
    pub lines: u64,
    /// Equivalence classes.
    pub classes: u64,
    /// Average equivalence class size: lines / classes.
    pub aecs: f64,
    /// Discernibility \[BAY]: Σ|E|² + records without a line · records.
    pub discernibility: f64,
}

/// Attribute pair with high mutual information.
#[derive(Clone, Debug, Serialize)]
pub struct PairQuality {
    /// Attribute names.
    pub attributes: [String; 2],
    /// Mutual information in the original, in bits.
    pub bits: f64,
    /// Share that lines keep.
    pub kept: f64,
}

/// Quality of a release.
#[derive(Clone, Debug, Serialize)]
pub struct ReleaseQuality {
    /// Original records.
    pub records: u64,
    /// Released lines of all groups.
    pub lines: u64,
    /// Share of records without a line; none for several groups without a lineage.
    pub nothing_released: Option<f64>,
    /// Mean loss of released quasi-identifier cells.
    pub loss: f64,
    /// Mean loss of all present quasi-identifier cells.
    pub loss_of_all: f64,
    /// Share of exact released quasi-identifier cells.
    pub exact: f64,
    /// Pairwise information that lines keep, in [0, 1].
    pub pairwise_information: f64,
    /// Pairwise information over all records.
    pub pairwise_information_of_all: f64,
    /// Data score (\[POD] Table 6.1) relative to the original.
    pub data_score: f64,
    /// Altered share of released cells: generalized, suppressed or falsified (\[POD] §6.1).
    pub distortion: f64,
    /// Attributes in schema order.
    pub attributes: Vec<AttributeQuality>,
    /// Groups in configuration order.
    pub groups: Vec<GroupQuality>,
    /// Pairs with the highest mutual information.
    pub pairs: Vec<PairQuality>,
}

const MAX_LISTED_PAIRS: usize = 12;

/// Measures a release; `facts` covers every attribute.
pub fn quality(
    original: &OriginalData,
    facts: &[AttributeFacts],
    shapes: &[GroupShape],
    groups: &[ReleasedGroup],
) -> ReleaseQuality {
    let quasi: BTreeSet<usize> = shapes.iter().flat_map(|shape| shape.quasi.iter().copied()).collect();
    let quasi: Vec<usize> = quasi.into_iter().collect();
    let name = |a: usize| original.schema.attributes[a].name.clone();
    let records = original.rows();
    let mut sums: Vec<CellSums> = Vec::new();
    let mut attributes = Vec::new();
    let mut told_in: BTreeMap<usize, usize> = BTreeMap::new();
    for (attribute, said) in sums_by_attribute(original, facts, groups) {
        let falsified = said.iter().map(|(_, cells)| cells.falsified).sum();
        let names: Vec<&str> = said.iter().map(|(number, _)| groups[*number].name.as_str()).collect();
        // Count a shared attribute where most is released.
        let told = |cells: &CellSums| cells.left as f64 - cells.loss;
        let most = said.into_iter().reduce(|best, next| if told(&next.1) > told(&best.1) { next } else { best });
        let Some((number, cells)) = most else { continue };
        told_in.insert(attribute, number);
        attributes.push(AttributeQuality { falsified, ..cells.attribute_quality(name(attribute), &names.join(", ")) });
        if quasi.contains(&attribute) {
            sums.push(cells);
        }
    }
    let of = |value: &dyn Fn(&CellSums) -> f64| sums.iter().map(value).sum::<f64>();
    let left = of(&|sum| sum.left as f64).max(1.0);
    let present = of(&|sum| sum.present as f64).max(1.0);
    let pairs = measure_pairs(original, facts, groups, &quasi);
    let (score, raw_score) = data_scores(original, facts, groups, &told_in);
    let altered: u64 = attributes.iter().map(|quality| quality.falsified).sum::<u64>()
        + groups.iter().map(|group| count_altered(facts, group)).sum::<u64>();
    let cells: usize = groups.iter().map(|group| group.lines * group.attributes.len()).sum();
    ReleaseQuality {
        records: records as u64,
        lines: groups.iter().map(|group| group.lines as u64).sum(),
        nothing_released: unreleased_share(records, groups),
        loss: of(&|sum| sum.loss) / left,
        loss_of_all: (of(&|sum| sum.loss) + (present - left).max(0.0)) / present,
        exact: of(&|sum| sum.exact as f64) / left,
        pairwise_information: weighted_share(&pairs, |pair| pair.kept),
        pairwise_information_of_all: weighted_share(&pairs, |pair| pair.kept_of_all.min(1.0)),
        data_score: if raw_score > 0.0 { score / raw_score } else { 1.0 },
        distortion: altered as f64 / cells.max(1) as f64,
        attributes,
        groups: groups.iter().zip(shapes).map(|(group, shape)| group_quality(original, group, shape)).collect(),
        pairs: top_pairs(pairs, &name),
    }
}

fn sums_by_attribute(
    original: &OriginalData,
    facts: &[AttributeFacts],
    groups: &[ReleasedGroup],
) -> BTreeMap<usize, Vec<(usize, CellSums)>> {
    let mut sums: BTreeMap<usize, Vec<(usize, CellSums)>> = BTreeMap::new();
    for (number, group) in groups.iter().enumerate() {
        for (at, &attribute) in group.attributes.iter().enumerate() {
            let cells = CellSums::from_cells(original, &facts[attribute], attribute, group, &group.cells[at]);
            sums.entry(attribute).or_default().push((number, cells));
        }
    }
    sums
}

fn top_pairs(mut pairs: Vec<PairInformation>, name: &dyn Fn(usize) -> String) -> Vec<PairQuality> {
    pairs.sort_by(|a, b| b.bits.total_cmp(&a.bits).then(a.attributes.cmp(&b.attributes)));
    let shown = pairs.into_iter().take(MAX_LISTED_PAIRS);
    shown.map(|p| PairQuality { attributes: p.attributes.map(name), bits: p.bits, kept: p.kept }).collect()
}

/// A single group needs no lineage.
fn unreleased_share(records: usize, groups: &[ReleasedGroup]) -> Option<f64> {
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

struct CellSums {
    present: u64,
    /// Cells that show or hide a value.
    left: u64,
    loss: f64,
    exact: u64,
    precision: f64,
    bits: f64,
    reconstruction: f64,
    divergence: f64,
    falsified: u64,
}

impl CellSums {
    fn from_cells(
        original: &OriginalData,
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
            // Suppressing a missing value loses nothing.
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

    fn attribute_quality(&self, attribute: String, group: &str) -> AttributeQuality {
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

/// Avoids an infinite divergence for an uncovered value.
const PSEUDO_COUNT: f64 = 0.5;

/// Σ p log₂(p/q) of original values p and evenly spread cells q.
fn divergence(facts: &AttributeFacts, times: &BTreeMap<CellId, u64>) -> f64 {
    let counts = &facts.counts;
    let codes: Vec<usize> = (0..counts.len()).filter(|code| is_present(*code as Code) && counts[*code] > 0).collect();
    let mut shown = vec![PSEUDO_COUNT; counts.len()];
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

fn count_altered(facts: &[AttributeFacts], group: &ReleasedGroup) -> u64 {
    let of = |(&attribute, cells): (&usize, &Vec<CellId>)| {
        let facts = &facts[attribute];
        let coarse = |cell: &&CellId| **cell == SUPPRESSED || !is_foreign(**cell) && !facts.get(**cell).exact;
        cells.iter().filter(coarse).count() as u64
    };
    group.attributes.iter().zip(&group.cells).map(of).sum()
}

fn group_quality(original: &OriginalData, group: &ReleasedGroup, shape: &GroupShape) -> GroupQuality {
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

/// Returns the sizes of equivalence classes by `quasi`.
pub fn class_sizes(group: &ReleasedGroup, quasi: &[usize]) -> Vec<u64> {
    let columns: Vec<&[CellId]> = quasi.iter().filter_map(|&attribute| group.column(attribute)).collect();
    let mut sizes: BTreeMap<Vec<CellId>, u64> = BTreeMap::new();
    for line in 0..group.lines {
        *sizes.entry(columns.iter().map(|column| column[line]).collect()).or_default() += 1;
    }
    sizes.into_values().collect()
}

/// Data scores of release and original (\[POD] Table 6.1). A cell of a value that occurs x times scores tanh(1/x), or 1
/// for x = 1; a suppressed, missing or falsified one 0.
fn data_scores(
    original: &OriginalData,
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

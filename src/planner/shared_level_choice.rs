//! Selects one level per shared attribute: the least expected loss among levels with large parts.

use super::ladder::{build_ladder, expected_loss};
use super::planner_sample::{LadderLimits, PlannerSample, PlannerSettings};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::plan::LadderNode;
use throng_core::values::codebook::Codebook;
use throng_core::values::subject_digest::NO_SUBJECT;

/// In multiples of k.
const MIN_PART_CROWDS: usize = 40;
const MIN_LARGE_PART_SHARE: f64 = 0.9;

/// Levels of shared attributes, and part size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLevelChoice {
    /// Schema position and level.
    pub levels: Vec<(usize, u8)>,
    /// Mean part size over records; none without data.
    pub records: Option<usize>,
}

impl SharedLevelChoice {
    /// Returns the settings with a part as batch.
    pub fn settings_within_parts(&self, settings: PlannerSettings) -> PlannerSettings {
        let most = settings.batch_records;
        PlannerSettings { batch_records: self.records.map_or(most, |records| records.clamp(1, most)), ..settings }
    }

    /// Inserts the shared levels into a `ladder` of other `quasi` attributes.
    pub fn insert_shared_levels(&self, quasi: &[usize], ladder: Vec<LadderNode>) -> Vec<LadderNode> {
        let fixed: Vec<Option<u8>> =
            quasi.iter().map(|a| self.levels.iter().find(|(of, _)| of == a).map(|(_, level)| *level)).collect();
        let beside = |node: LadderNode| {
            let mut own = node.levels.into_iter();
            let levels = fixed.iter().filter_map(|fixed| fixed.or_else(|| own.next())).collect();
            LadderNode { levels, loss: node.loss }
        };
        ladder.into_iter().map(beside).collect()
    }
}

const TRIAL_LEVEL_LADDER: LadderLimits = LadderLimits { max_complete_nodes: 300, max_selected_nodes: 40 };
/// Per coarser level.
const MIN_PART_GROWTH: f64 = 1.05;

/// Selects levels with the least expected loss, including other `groups`. Without records: the coarsest below `*`;
/// identifiers are always `*`.
pub fn choose_shared_levels(
    attributes: &[usize],
    identifiers: &[usize],
    groups: &[Vec<usize>],
    sample: &PlannerSample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> SharedLevelChoice {
    let top = |a: usize| u8::try_from(books[a].levels() - 1).expect("hierarchies are low");
    let may_be = |a: usize| -> Vec<u8> {
        let lowest = if identifiers.contains(&a) { top(a) } else { 0 };
        (lowest..=top(a)).collect()
    };
    let named =
        |levels: &[u8]| -> Vec<(usize, u8)> { attributes.iter().copied().zip(levels.iter().copied()).collect() };
    if sample.rows() == 0 || attributes.is_empty() {
        let coarse: Vec<u8> =
            attributes.iter().map(|&a| if may_be(a).len() > 2 { top(a) - 1 } else { top(a) }).collect();
        return SharedLevelChoice { levels: named(&coarse), records: None };
    }
    let mut choices: Vec<Vec<u8>> = vec![Vec::new()];
    for levels in attributes.iter().map(|&a| may_be(a)) {
        let with = |before: &Vec<u8>| levels.iter().map(|&level| [&before[..], &[level]].concat()).collect::<Vec<_>>();
        choices = choices.iter().flat_map(with).collect();
    }
    let lost = |levels: &[u8]| -> f64 {
        let of = |(a, level): (usize, u8)| -> f64 {
            let losses = books[a].losses(usize::from(level));
            sample.column(a).iter().map(|code| f64::from(losses[*code as usize])).sum()
        };
        named(levels).into_iter().map(of).sum::<f64>() / sample.rows() as f64
    };
    let beside = |within: &PlannerSettings| -> f64 {
        let tried = PlannerSettings { ladder: TRIAL_LEVEL_LADDER, ..*within };
        let of = |group: &Vec<usize>| {
            let ladder = build_ladder(group, identifiers, sample, books, &tried);
            expected_loss(group, &ladder, sample, books, &tried) * group.len() as f64
        };
        groups.par_iter().map(of).collect::<Vec<f64>>().into_iter().sum()
    };
    let mut choices: Vec<(f64, Vec<u8>)> = choices.into_iter().map(|levels| (lost(&levels), levels)).collect();
    choices.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    let (mut best, mut largest) = (None::<(f64, SharedLevelChoice)>, 0.0);
    let last = choices.len() - 1;
    for (at, (lost, levels)) in choices.into_iter().enumerate() {
        let parts = split_batches_by_shared(&named(&levels), sample, books, settings);
        let records = mean_part_records(&parts, sample);
        let roomy = has_large_parts(&parts, sample, settings) && records as f64 > MIN_PART_GROWTH * largest;
        // The last choice, `*` for all, makes one part.
        if !(roomy || at == last && best.is_none()) {
            continue;
        }
        largest = records as f64;
        let shared = SharedLevelChoice { levels: named(&levels), records: Some(records) };
        let cost = lost + beside(&shared.settings_within_parts(*settings));
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, shared));
        }
    }
    best.expect("the last choice at least").1
}

type SharedBatchParts = BTreeMap<(u64, Vec<u128>), (u64, BTreeSet<u64>)>;

fn split_batches_by_shared(
    levels: &[(usize, u8)],
    sample: &PlannerSample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> SharedBatchParts {
    let records = settings.batch_records.max(1) as u64;
    let mut parts = SharedBatchParts::new();
    for row in 0..sample.rows() {
        let cell = |&(a, level): &(usize, u8)| books[a].digests(usize::from(level))[sample.column(a)[row] as usize];
        let key = (sample.ordinal(row) / records, levels.iter().map(cell).collect());
        let (rows, people) = parts.entry(key).or_default();
        *rows += 1;
        people.extend(Some(sample.subjects()[row]).filter(|subject| *subject != NO_SUBJECT));
    }
    parts
}

/// Scaled by the stride.
fn mean_part_records(parts: &SharedBatchParts, sample: &PlannerSample) -> usize {
    let squares: u64 = parts.values().map(|(rows, _)| rows * rows).sum();
    usize::try_from(squares * sample.stride() / (sample.rows() as u64).max(1)).unwrap_or(usize::MAX)
}

fn has_large_parts(parts: &SharedBatchParts, sample: &PlannerSample, settings: &PlannerSettings) -> bool {
    let least = (MIN_PART_CROWDS * settings.k) as u64;
    let roomy = parts.values().filter(|(_, people)| people.len() as u64 * sample.stride() >= least);
    roomy.map(|(rows, _)| *rows).sum::<u64>() as f64 >= MIN_LARGE_PART_SHARE * sample.rows() as f64
}

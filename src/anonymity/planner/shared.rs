//! At which level attributes are shown that stand in several groups: one for all groups of a plan.
//!
//! Within each shared value the classes of every group need crowds of their own, and counting must join nothing, as in a batch. A
//! finer level makes smaller parts, and coarser cells beside it. So of the levels at which nearly all records of a batch are in
//! parts with a comfortable crowd that one is taken at which a record is expected to lose least, all its cells together.

use super::ladder::{build_ladder, expected_loss};
use super::sample::{LadderLimits, PlannerSettings, Sample};
use crate::anonymity::plan::Node;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::Codebook;
use throng_core::values::subject::NO_SUBJECT;

/// People of a part, in crowds.
const COMFORT: usize = 40;
/// Share of the records in parts of so many.
const NEARLY_ALL: f64 = 0.9;

/// At which level each shared attribute is shown, and how large that makes the parts of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Attribute, by its position in the schema, and level.
    pub levels: Vec<(usize, u8)>,
    /// Records of the part of a record, in the mean; none where nothing was seen.
    pub records: Option<usize>,
}

impl Shared {
    /// The settings for groups that show what is shared: each part is a batch to them.
    pub fn within(&self, settings: PlannerSettings) -> PlannerSettings {
        let most = settings.batch_records;
        PlannerSettings { batch_records: self.records.map_or(most, |records| records.clamp(1, most)), ..settings }
    }

    /// A `ladder` of the other attributes among `quasi`, with what is shared at its level in every node.
    pub fn beside(&self, quasi: &[usize], ladder: Vec<Node>) -> Vec<Node> {
        let fixed: Vec<Option<u8>> =
            quasi.iter().map(|a| self.levels.iter().find(|(of, _)| of == a).map(|(_, level)| *level)).collect();
        let beside = |node: Node| {
            let mut own = node.levels.into_iter();
            let levels = fixed.iter().filter_map(|fixed| fixed.or_else(|| own.next())).collect();
            Node { levels, loss: node.loss }
        };
        ladder.into_iter().map(beside).collect()
    }
}

/// Ladders are short where levels are only tried.
const TRIED: LadderLimits = LadderLimits { complete: 300, chosen: 40 };
/// A coarser level is tried where it makes parts larger by this.
const LARGER: f64 = 1.05;

/// The levels of the `attributes` beside `groups` of others: those that a record is expected to lose least by, in cells, if the records
/// of `sample` come in batches as they did. Without records the coarsest level short of `*`. An identifier is `*` here too.
pub fn choose(
    attributes: &[usize],
    identifiers: &[usize],
    groups: &[Vec<usize>],
    sample: &Sample,
    books: &[Codebook],
    settings: &PlannerSettings,
) -> Shared {
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
        return Shared { levels: named(&coarse), records: None };
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
        let tried = PlannerSettings { ladder: TRIED, ..*within };
        let of = |group: &Vec<usize>| {
            let ladder = build_ladder(group, identifiers, sample, books, &tried);
            expected_loss(group, &ladder, sample, books, &tried) * group.len() as f64
        };
        groups.par_iter().map(of).collect::<Vec<f64>>().into_iter().sum()
    };
    let mut choices: Vec<(f64, Vec<u8>)> = choices.into_iter().map(|levels| (lost(&levels), levels)).collect();
    choices.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    let (mut best, mut largest) = (None::<(f64, Shared)>, 0.0);
    let last = choices.len() - 1;
    for (at, (lost, levels)) in choices.into_iter().enumerate() {
        let parts = parts(&named(&levels), sample, books, settings);
        let records = mean_records(&parts, sample);
        let roomy = is_comfortable(&parts, sample, settings) && records as f64 > LARGER * largest;
        // The last choice is `*` for all, in which a batch is one part.
        if !(roomy || at == last && best.is_none()) {
            continue;
        }
        largest = records as f64;
        let shared = Shared { levels: named(&levels), records: Some(records) };
        let cost = lost + beside(&shared.within(*settings));
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, shared));
        }
    }
    best.expect("the last choice at least").1
}

/// The records of the sample by the batch that they would be of and by what they show, and the people among them.
type Parts = BTreeMap<(u64, Vec<u128>), (u64, BTreeSet<u64>)>;

fn parts(levels: &[(usize, u8)], sample: &Sample, books: &[Codebook], settings: &PlannerSettings) -> Parts {
    let records = settings.batch_records.max(1) as u64;
    let mut parts = Parts::new();
    for row in 0..sample.rows() {
        let cell = |&(a, level): &(usize, u8)| books[a].digests(usize::from(level))[sample.column(a)[row] as usize];
        let key = (sample.ordinal(row) / records, levels.iter().map(cell).collect());
        let (rows, people) = parts.entry(key).or_default();
        *rows += 1;
        people.extend(Some(sample.subjects()[row]).filter(|subject| *subject != NO_SUBJECT));
    }
    parts
}

/// Records of the part of a record, in the mean: each record of the sample stands for as many as it is taken of.
fn mean_records(parts: &Parts, sample: &Sample) -> usize {
    let squares: u64 = parts.values().map(|(rows, _)| rows * rows).sum();
    usize::try_from(squares * sample.stride() / (sample.rows() as u64).max(1)).unwrap_or(usize::MAX)
}

/// Whether nearly all records are in parts of a comfortable crowd.
fn is_comfortable(parts: &Parts, sample: &Sample, settings: &PlannerSettings) -> bool {
    let least = (COMFORT * settings.k) as u64;
    let roomy = parts.values().filter(|(_, people)| people.len() as u64 * sample.stride() >= least);
    roomy.map(|(rows, _)| *rows).sum::<u64>() as f64 >= NEARLY_ALL * sample.rows() as f64
}

//! Risk of a partition into classes.

use crate::counting::{AttributeSet, ComputeError, CpuCounter};

/// Risk over one set of attributes.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct ClassRiskSummary {
    /// Number of equivalence classes.
    pub classes: u64,
    /// Support of the smallest class.
    pub smallest_class: u64,
    /// Highest risk of a record, 1 / [`smallest_class`](Self::smallest_class), in (0, 1].
    pub highest: f64,
    /// Mean risk over the records, in (0, 1].
    pub average: f64,
    /// Records in classes of support 1.
    pub records_unique: u64,
    /// Records in classes with support below k.
    pub records_below_k: u64,
    /// Share of these records, in [0, 1].
    pub share_below_k: f64,
    /// Subjects with such a record.
    pub people_below_k: u64,
    /// Share of these subjects, in [0, 1].
    pub share_people_below_k: f64,
    /// Records by support of their class: 1, 2–3, 4–7 … k − 1, then k to 2k − 1 ….
    pub distribution: Vec<SupportBin>,
}

/// Classes with support from `from` to `to`, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SupportBin {
    /// Smallest support.
    pub from: u64,
    /// Largest support.
    pub to: u64,
    /// Number of these classes.
    pub classes: u64,
    /// Records in these classes.
    pub records: u64,
}

/// Number of bins from k on; the last is open.
const BINS_FROM_K: usize = 8;

impl ClassRiskSummary {
    /// Computes the risk at `k` ≥ 1 over the attributes of `set`.
    pub fn of(counter: &CpuCounter<'_>, set: &AttributeSet, k: u32) -> Result<Self, ComputeError> {
        let (sizes, people_below) = counter.class_sizes(set, k)?;
        let sizes: Vec<((u32, u32), u64)> =
            sizes.into_iter().map(|(size, classes)| ((size.support, size.records), classes)).collect();
        Ok(Self::of_sizes(&sizes, people_below, counter.table().support() as u64, k))
    }

    /// Takes the number of classes per support and size, ascending.
    fn of_sizes(sizes: &[((u32, u32), u64)], people_below: Option<u64>, people: u64, k: u32) -> Self {
        let smallest = sizes.first().map_or(0, |((support, _), _)| *support);
        let records_of = |((_, records), classes): &((u32, u32), u64)| u64::from(*records) * classes;
        let rows = sizes.iter().map(records_of).sum();
        let records_where = |wanted: &dyn Fn(u32) -> bool| -> u64 {
            sizes.iter().filter(|((support, _), _)| wanted(*support)).map(records_of).sum()
        };
        let records_below = records_where(&|support| support < k);
        let people_below = people_below.unwrap_or(records_below);
        // Rounding does not depend on the order of rows.
        let weighted: f64 =
            sizes.iter().map(|((s, r), classes)| *classes as f64 * (f64::from(*r) / f64::from(*s))).sum();
        Self {
            classes: sizes.iter().map(|(_, classes)| classes).sum(),
            smallest_class: u64::from(smallest),
            highest: if smallest == 0 { 0.0 } else { 1.0 / f64::from(smallest) },
            average: share_of(weighted, rows),
            records_unique: records_where(&|support| support == 1),
            records_below_k: records_below,
            share_below_k: share_of(records_below as f64, rows),
            people_below_k: people_below,
            share_people_below_k: share_of(people_below as f64, people),
            distribution: distribution(sizes, k),
        }
    }
}

fn share_of(part: f64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part / whole as f64 }
}

fn distribution(sizes: &[((u32, u32), u64)], k: u32) -> Vec<SupportBin> {
    let largest = sizes.last().map_or(0, |((support, _), _)| u64::from(*support));
    let mut bins = Vec::new();
    let mut doubling = |from: u64, until: u64, at_most: usize| {
        let mut from = from;
        while from <= until {
            let last = bins.len() + 1 >= at_most;
            let to = if last { until } else { (2 * from - 1).min(until) };
            bins.push(SupportBin { from, to, classes: 0, records: 0 });
            from = to + 1;
        }
        bins.len()
    };
    let below = doubling(1, u64::from(k).saturating_sub(1), usize::MAX);
    doubling(u64::from(k.max(1)), largest, below + BINS_FROM_K);
    for &((support, records), classes) in sizes {
        let index = bins.partition_point(|bin| bin.to < u64::from(support));
        if let Some(bin) = bins.get_mut(index) {
            bin.classes += classes;
            bin.records += classes * u64::from(records);
        }
    }
    bins
}

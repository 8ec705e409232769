//! Merges attributes into groups by loss per bit, cheapest first (docs/internals/methods.md §10.2). Static and changing
//! attributes stay apart (§12.4).

use super::ladder::{build_ladder, expected_loss};
use super::planner_sample::{LadderLimits, PlannerSample, PlannerSettings};
use super::sample_identifiers;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::attribute_dependence::AttributeDependence;
use throng_core::values::codebook::Codebook;

/// Maximum group width (docs/internals/methods.md §11.6).
pub const MAX_GROUP_WIDTH: usize = 8;

/// A sample hides some relations.
const MIN_PAIR_BITS: f64 = 0.02;

/// Trying all pairs is quadratic.
const MAX_ATTRIBUTES_FOR_ALL_PAIRS: usize = 128;

const PARTNERS_PER_ATTRIBUTE: usize = 8;

/// Thousands of trial ladders are built.
const TRIAL_GROUP_LADDER: LadderLimits = LadderLimits { max_complete_nodes: 300, max_selected_nodes: 40 };

/// Attributes to be released together.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupingWish {
    /// Schema positions, ascending.
    pub attributes: Vec<usize>,
    /// Additional bits per pair, above 0.
    pub weight: f64,
}

/// Result of a wish.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WishResult {
    /// Largest grouped part, ascending.
    pub grouped_attributes_of_wish: Vec<usize>,
    /// Added loss of a record, in cells.
    pub loss: f64,
    /// Other attributes, with reasons.
    pub separated_attributes: Vec<(usize, SeparationReason)>,
}

/// Reason for a separation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SeparationReason {
    /// Identifiers are never released.
    Identifier,
    /// Only one is static.
    ChangeRate,
    /// Too many attributes.
    Width,
    /// Other attributes depend on it more.
    StrongerDependence,
    /// Kept apart by a rule.
    Compartment,
    /// More loss than benefit.
    Price {
        /// Added loss of a record, in cells.
        loss: f64,
    },
}

impl SeparationReason {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identifier => "identifier",
            Self::ChangeRate => "pace",
            Self::Width => "width",
            Self::StrongerDependence => "elsewhere",
            Self::Compartment => "compartment",
            Self::Price { .. } => "price",
        }
    }
}

/// Returns the additional bits of a pair.
pub fn wish_bonus(wishes: &[GroupingWish], a: usize, b: usize) -> f64 {
    let both = |wish: &&GroupingWish| wish.attributes.contains(&a) && wish.attributes.contains(&b);
    wishes.iter().filter(both).map(|wish| wish.weight).sum()
}

/// Group and its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedGroup {
    /// Attributes, ascending.
    pub attributes: Vec<usize>,
    /// Expected loss of a cell.
    pub loss: f64,
    /// Mutual information over all pairs, in bits.
    pub bits: f64,
}

/// Input for grouping.
pub struct GroupMergerInput<'a> {
    /// Quasi attributes.
    pub attributes: &'a [usize],
    /// Returns true for static attributes.
    pub is_static: &'a (dyn Fn(usize) -> bool + Sync),
    /// Dependence of the attributes.
    pub dependence: &'a AttributeDependence,
    /// Records for trial groups.
    pub sample: &'a PlannerSample,
    /// Codebooks by attribute.
    pub books: &'a [Codebook],
    /// Planner settings.
    pub settings: &'a PlannerSettings,
    /// Maximum loss (cells of a record) per bit.
    pub price: f64,
}

/// Groups that grow by merging.
pub struct GroupMerger<'a> {
    merger_input: &'a GroupMergerInput<'a>,
    wishes: &'a [GroupingWish],
    identifiers: Vec<usize>,
    /// Attributes with loss in cells.
    groups: Vec<(Vec<usize>, f64)>,
    merge_costs: BTreeMap<(usize, usize), MergeCost>,
    /// None: all.
    candidate_pairs: Option<BTreeSet<(usize, usize)>>,
}

#[derive(Clone, Copy, Debug)]
struct MergeCost {
    loss: f64,
    cost: f64,
}

impl<'a> GroupMerger<'a> {
    /// Starts with one group per attribute.
    pub fn new(ground: &'a GroupMergerInput<'a>, wishes: &'a [GroupingWish]) -> Self {
        let GroupMergerInput { attributes, sample, books, settings, .. } = ground;
        let identifiers =
            sample_identifiers::find_sample_identifiers(sample, attributes, books, settings.identifier_cardinality);
        let partners = (attributes.len() > MAX_ATTRIBUTES_FOR_ALL_PAIRS).then(|| find_candidate_pairs(ground, wishes));
        let mut growth = Self {
            merger_input: ground,
            wishes,
            identifiers,
            groups: Vec::new(),
            merge_costs: BTreeMap::new(),
            candidate_pairs: partners,
        };
        growth.groups = attributes.par_iter().map(|&a| (vec![a], growth.group_loss(&[a]))).collect();
        growth.groups.sort_by(|a, b| a.0.cmp(&b.0));
        growth
    }

    /// Loss of a record, in cells.
    fn group_loss(&self, group: &[usize]) -> f64 {
        let GroupMergerInput { sample, books, settings, .. } = self.merger_input;
        let tried = PlannerSettings { ladder: TRIAL_GROUP_LADDER, ..**settings };
        let ladder = build_ladder(group, &self.identifiers, sample, books, &tried);
        expected_loss(group, &ladder, sample, books, &tried) * group.len() as f64
    }

    fn merge_obstacle(&self, one: &[usize], other: &[usize]) -> Option<SeparationReason> {
        let is_static = self.merger_input.is_static;
        if [one, other].concat().iter().any(|a| self.identifiers.contains(a)) {
            Some(SeparationReason::Identifier)
        } else if is_static(one[0]) != is_static(other[0]) {
            Some(SeparationReason::ChangeRate)
        } else {
            (one.len() + other.len() > MAX_GROUP_WIDTH).then_some(SeparationReason::Width)
        }
    }

    fn is_candidate_merge(&self, one: &[usize], other: &[usize]) -> bool {
        let Some(partners) = &self.candidate_pairs else { return true };
        one.iter().any(|&a| other.iter().any(|&b| partners.contains(&(a, b))))
    }

    /// In bits.
    fn merge_value(&self, one: &[usize], other: &[usize]) -> f64 {
        let pair =
            |a, b| self.merger_input.dependence.pair_information(a, b) + MIN_PAIR_BITS + wish_bonus(self.wishes, a, b);
        one.iter().flat_map(|&a| other.iter().map(move |&b| pair(a, b))).sum()
    }

    fn compute_merge_cost(&self, one: &(Vec<usize>, f64), other: &(Vec<usize>, f64)) -> MergeCost {
        let loss = self.group_loss(&union_of_groups(&one.0, &other.0));
        MergeCost { loss, cost: (loss - one.1 - other.1).max(0.0) / self.merge_value(&one.0, &other.0) }
    }

    /// Returns the added loss of a record, in cells.
    fn merge_admitted_groups(&mut self, admits: &(dyn Fn(&[usize]) -> bool + Sync)) -> f64 {
        let mut added = 0.0;
        // First attribute of the new group; none when all are new.
        let mut fresh = None;
        loop {
            let admitted: Vec<&(Vec<usize>, f64)> = self.groups.iter().filter(|group| admits(&group.0)).collect();
            let mut open = Vec::new();
            for (at, one) in admitted.iter().copied().enumerate() {
                let is_fresh = |group: &(Vec<usize>, f64)| fresh.is_none_or(|first| group.0[0] == first);
                let others = admitted[at + 1..].iter().copied();
                for other in others.filter(|other| is_fresh(one) || is_fresh(other)) {
                    let known = self.merge_costs.contains_key(&(one.0[0], other.0[0]));
                    if !known
                        && self.is_candidate_merge(&one.0, &other.0)
                        && self.merge_obstacle(&one.0, &other.0).is_none()
                    {
                        open.push((one, other));
                    }
                }
            }
            let tried = |(one, other): &(&(Vec<usize>, f64), &(Vec<usize>, f64))| {
                ((one.0[0], other.0[0]), self.compute_merge_cost(one, other))
            };
            let found: Vec<((usize, usize), MergeCost)> = open.par_iter().map(tried).collect();
            let firsts: BTreeSet<usize> = admitted.iter().map(|group| group.0[0]).collect();
            self.merge_costs.extend(found);
            let price = self.merger_input.price;
            let below = self.merge_costs.iter().filter(|(_, merger)| merger.cost < price);
            let below = below.filter(|((one, other), _)| firsts.contains(one) && firsts.contains(other));
            let Some((&pair, &merger)) = below.min_by(|a, b| a.1.cost.total_cmp(&b.1.cost)) else { break added };
            added += self.merge_pair(pair, merger.loss);
            fresh = Some(pair.0.min(pair.1));
        }
    }

    fn merge_pair(&mut self, (one, other): (usize, usize), loss: f64) -> f64 {
        let is_part = |group: &(Vec<usize>, f64)| group.0[0] == one || group.0[0] == other;
        let parts: Vec<(Vec<usize>, f64)> = self.groups.extract_if(.., |group| is_part(group)).collect();
        let mut both: Vec<usize> = parts.iter().flat_map(|part| part.0.iter().copied()).collect();
        both.sort_unstable();
        self.merge_costs.retain(|(a, b), _| ![*a, *b].iter().any(|first| *first == one || *first == other));
        self.groups.push((both, loss));
        self.groups.sort_by(|a, b| a.0.cmp(&b.0));
        loss - parts.iter().map(|part| part.1).sum::<f64>()
    }

    /// Serves wishes by descending weight; returns results in order.
    pub fn serve_wishes(&mut self) -> Vec<WishResult> {
        let mut order: Vec<usize> = (0..self.wishes.len()).collect();
        order.sort_by(|&a, &b| self.wishes[b].weight.total_cmp(&self.wishes[a].weight).then(a.cmp(&b)));
        let mut answers = vec![WishResult::default(); order.len()];
        for at in order {
            let wish = &self.wishes[at];
            let added = self.merge_admitted_groups(&|group| group.iter().any(|a| wish.attributes.contains(a)));
            answers[at] = self.wish_result(wish, added);
        }
        answers
    }

    fn wish_result(&self, wish: &GroupingWish, loss: f64) -> WishResult {
        let part = |group: &(Vec<usize>, f64)| {
            let wished = group.0.iter().filter(|a| wish.attributes.contains(a)).count();
            (if group.0.iter().any(|a| self.identifiers.contains(a)) { 0 } else { wished }, wished)
        };
        // On ties the first.
        let largest = self.groups.iter().reduce(|best, next| if part(next) > part(best) { next } else { best });
        let Some(largest) = largest else { return WishResult::default() };
        let (together, mut apart) =
            (largest.0.iter().copied().filter(|a| wish.attributes.contains(a)).collect(), vec![]);
        for group in self.groups.iter().filter(|group| group.0[0] != largest.0[0]) {
            let why = self.merge_obstacle(&largest.0, &group.0).unwrap_or_else(|| {
                let both = self.group_loss(&union_of_groups(&largest.0, &group.0));
                SeparationReason::Price { loss: (both - largest.1 - group.1).max(0.0) }
            });
            apart.extend(group.0.iter().filter(|a| wish.attributes.contains(a)).map(|&a| (a, why)));
        }
        WishResult { grouped_attributes_of_wish: together, loss: loss.max(0.0), separated_attributes: apart }
    }

    /// Makes all merges below the price.
    pub fn merge_all_below_price(&mut self) {
        self.merge_admitted_groups(&|_| true);
    }

    /// Removes and returns groups of several attributes.
    pub fn take_merged_groups(&mut self) -> Vec<Vec<usize>> {
        self.groups.extract_if(.., |group| group.0.len() > 1).map(|group| group.0).collect()
    }

    /// Removes and returns all groups.
    pub fn take_all_groups(&mut self) -> Vec<Vec<usize>> {
        std::mem::take(&mut self.groups).into_iter().map(|group| group.0).collect()
    }

    /// Returns groups by first attribute.
    pub fn groups(self) -> Vec<MergedGroup> {
        let grown = |(attributes, loss): (Vec<usize>, f64)| MergedGroup {
            loss: loss / attributes.len() as f64,
            bits: self.merger_input.dependence.group_information(&attributes),
            attributes,
        };
        self.groups.into_iter().map(grown).collect()
    }

    /// Replaces the groups.
    pub fn replace_groups(&mut self, groups: Vec<Vec<usize>>) {
        self.groups = groups.into_par_iter().map(|group| (group.clone(), self.group_loss(&group))).collect();
        self.groups.sort_by(|a, b| a.0.cmp(&b.0));
        self.merge_costs.clear();
    }
}

fn find_candidate_pairs(ground: &GroupMergerInput<'_>, wishes: &[GroupingWish]) -> BTreeSet<(usize, usize)> {
    let nearest = |&a: &usize| -> Vec<(usize, usize)> {
        let others = ground.attributes.iter().copied().filter(|&b| b != a);
        let mut worth: Vec<(f64, usize)> = others.map(|b| (ground.dependence.pair_information(a, b), b)).collect();
        // On ties the first.
        worth.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
        worth.into_iter().take(PARTNERS_PER_ATTRIBUTE).flat_map(|(_, b)| [(a, b), (b, a)]).collect()
    };
    let wanted = wishes.iter().flat_map(|wish| {
        let pairs = |&a: &usize| wish.attributes.iter().map(move |&b| (a, b));
        wish.attributes.iter().flat_map(pairs)
    });
    let mut partners: BTreeSet<(usize, usize)> = wanted.collect();
    partners.par_extend(ground.attributes.par_iter().flat_map_iter(nearest));
    partners
}

fn union_of_groups(one: &[usize], other: &[usize]) -> Vec<usize> {
    let mut both = [one, other].concat();
    both.sort_unstable();
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::values::code_batch::CodeBatch;
    use throng_core::values::codebook::test_codebooks;

    const SCHEMA: &str = "name = \"t\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n\
        [[attribute]]\nname = \"a\"\ntype = \"integer\"\n[[attribute]]\nname = \"b\"\ntype = \"integer\"\n\
        [[attribute]]\nname = \"c\"\ntype = \"integer\"\n[[attribute]]\nname = \"d\"\ntype = \"integer\"\n";

    const SETTINGS: PlannerSettings = PlannerSettings {
        k: 3,
        ladder: LadderLimits { max_complete_nodes: 5000, max_selected_nodes: 100 },
        identifier_cardinality: 0.8,
        window_records: 1000,
        batch_records: 1000,
    };

    /// `a` and `b` are equal.
    fn sample() -> (Vec<Codebook>, PlannerSample) {
        let mut books = test_codebooks(SCHEMA, 1000);
        let mut batch = CodeBatch::new(5);
        for row in 0..1000_u64 {
            let mixed = row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let cells = [mixed >> 61, mixed >> 61, mixed >> 40 & 63, mixed >> 20 & 63];
            batch.columns[0].push(0);
            for (at, cell) in cells.iter().enumerate() {
                batch.columns[at + 1].push(books[at + 1].encode_canonical(&cell.to_string()));
            }
            batch.subjects.push(row + 1);
        }
        let mut sample = PlannerSample::new(5, 1000, 1000);
        sample.add(&batch, 0);
        (books, sample)
    }

    fn groups_and_wish_results(
        is_static: &(dyn Fn(usize) -> bool + Sync),
        price: f64,
        wishes: &[GroupingWish],
    ) -> (Vec<Vec<usize>>, Vec<WishResult>) {
        let (books, sample) = sample();
        let attributes = &[1, 2, 3, 4];
        let dependence = &AttributeDependence::of(attributes, sample.subjects(), |a| sample.column(a), &books);
        let ground = GroupMergerInput {
            attributes,
            is_static,
            dependence,
            sample: &sample,
            books: &books,
            settings: &SETTINGS,
            price,
        };
        let mut growth = GroupMerger::new(&ground, wishes);
        let answers = growth.serve_wishes();
        growth.merge_all_below_price();
        (growth.groups().into_iter().map(|group| group.attributes).collect(), answers)
    }

    fn groups(is_static: &(dyn Fn(usize) -> bool + Sync), price: f64) -> Vec<Vec<usize>> {
        groups_and_wish_results(is_static, price, &[]).0
    }

    fn wish(attributes: &[usize], weight: f64) -> GroupingWish {
        GroupingWish { attributes: attributes.to_vec(), weight }
    }

    #[test]
    fn wish_is_served_up_to_the_price_and_reports_its_loss() {
        let (groups, answers) = groups_and_wish_results(&|_| false, 0.01, &[wish(&[1, 3], 1000.0)]);
        assert_eq!(groups, [vec![1, 2, 3], vec![4]]);
        assert_eq!(
            (&answers[0].grouped_attributes_of_wish[..], &answers[0].separated_attributes[..]),
            (&[1, 3][..], &[][..])
        );
        assert!(answers[0].loss > 0.1, "{answers:?}");
        let (groups, answers) = groups_and_wish_results(&|_| false, 1e-6, &[wish(&[1, 3], 0.001)]);
        assert_eq!(groups, [vec![1, 2], vec![3], vec![4]]);
        assert!(
            matches!(answers[0].separated_attributes[..], [(3, SeparationReason::Price { loss })] if loss > 0.1),
            "{answers:?}"
        );
        assert!(answers[0].loss.abs() < 1e-9, "{answers:?}");
    }

    #[test]
    fn wish_never_joins_static_and_changing_attributes() {
        let (groups, answers) = groups_and_wish_results(&|attribute| attribute == 2, 1e9, &[wish(&[1, 2], 1e9)]);
        assert_eq!(groups, [vec![1, 3, 4], vec![2]]);
        assert_eq!(answers[0].separated_attributes, [(2, SeparationReason::ChangeRate)]);
    }

    #[test]
    fn dependent_attributes_are_grouped() {
        // Only merging equal attributes is free.
        assert_eq!(groups(&|_| false, 1e-6), [vec![1, 2], vec![3], vec![4]]);
    }

    #[test]
    fn wide_schema_tries_only_most_dependent_pairs() {
        const PAIRS: usize = 80;
        let attribute = |n| format!("[[attribute]]\nname = \"a{n}\"\ntype = \"integer\"\n");
        let schema: String = (0..2 * PAIRS).map(attribute).collect();
        let mut books = test_codebooks(&format!("name = \"t\"\n{schema}"), 1000);
        let mut batch = CodeBatch::new(2 * PAIRS);
        for row in 0..200_u64 {
            for pair in 0..PAIRS {
                let mixed = (row * 1009 + pair as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
                let value = (mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 61).to_string();
                for a in [pair, pair + PAIRS] {
                    batch.columns[a].push(books[a].encode_canonical(&value));
                }
            }
            batch.subjects.push(row + 1);
        }
        let mut sample = PlannerSample::new(2 * PAIRS, 200, 200);
        sample.add(&batch, 0);
        let attributes: Vec<usize> = (0..2 * PAIRS).collect();
        let dependence = &AttributeDependence::of(&attributes, sample.subjects(), |a| sample.column(a), &books);
        let settings = &PlannerSettings { window_records: 200, batch_records: 200, ..SETTINGS };
        let ground = GroupMergerInput {
            attributes: &attributes,
            is_static: &|_| false,
            dependence,
            sample: &sample,
            books: &books,
            settings,
            price: 1e-6,
        };
        let mut growth = GroupMerger::new(&ground, &[]);
        growth.merge_all_below_price();
        assert!(
            growth.merge_costs.len() <= 2 * PAIRS * PARTNERS_PER_ATTRIBUTE * 2,
            "{} of {}",
            growth.merge_costs.len(),
            80 * 159
        );
        let groups: Vec<Vec<usize>> = growth.groups().into_iter().map(|group| group.attributes).collect();
        assert_eq!(groups, (0..PAIRS).map(|pair| vec![pair, pair + PAIRS]).collect::<Vec<_>>());
    }

    #[test]
    fn high_price_merges_all_and_low_price_keeps_every_attribute() {
        assert_eq!(groups(&|_| false, 1e9), [vec![1, 2, 3, 4]]);
        assert_eq!(groups(&|_| false, f64::MIN_POSITIVE).concat().len(), 4, "every attribute is in one group");
    }

    #[test]
    fn static_and_changing_attributes_are_not_grouped() {
        assert_eq!(groups(&|attribute| attribute == 2, 1e9), [vec![1, 3, 4], vec![2]]);
    }
}

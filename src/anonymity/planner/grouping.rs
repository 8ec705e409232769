//! Which attributes leave together: groups that grow while a merger costs less than it is worth (docs/methods.md §10.2).
//!
//! Loss alone would leave every attribute to itself, and with it every relation between attributes. So two groups become one where
//! the loss that this adds, for each bit that the attributes of the one say of those of the other, is below a price. The cheapest
//! merger comes first; a wish makes its attributes worth more to each other, and is served before the rest.
//!
//! What does not change within a person never leaves beside what does: it would be said again with every record
//! (docs/methods.md §12.4).

use super::dependence::Dependence;
use super::identifiers;
use super::ladder::{build_ladder, expected_loss};
use super::sample::{LadderLimits, PlannerSettings, Sample};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use throng_core::values::codebook::Codebook;

/// Attributes of a group at most: more, and most cells are lost (docs/methods.md §11.6).
pub const WIDEST: usize = 8;

/// Bits that every pair of attributes is worth besides what they say of each other in the sample: a sample shows no more than
/// it shows.
const EVERY_PAIR: f64 = 0.02;

/// Attributes from which on not every pair of groups is tried: their number grows with the square.
const WIDE: usize = 128;

/// Other attributes that each of so many is tried with: those that say most of it.
const PARTNERS: usize = 8;

/// Ladders of groups that are only tried are short: thousands of them are made.
const TRIED: LadderLimits = LadderLimits { complete: 300, chosen: 40 };

/// Attributes that should leave together.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// Positions in the schema, ascending.
    pub attributes: Vec<usize>,
    /// Bits that each pair of them is worth more, above 0.
    pub weight: f64,
}

/// What a wish has come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WishAnswer {
    /// The largest part of it that leaves as one, ascending.
    pub together: Vec<usize>,
    /// Loss that this adds to a record, in cells: the price of the wish.
    pub loss: f64,
    /// The others, each with the reason.
    pub apart: Vec<(usize, Apart)>,
}

/// Why an attribute does not leave with others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Apart {
    /// One of them identifies by itself and never leaves.
    Identifier,
    /// One changes within a person and the other does not.
    Pace,
    /// Their group would be too wide.
    Width,
    /// It stands beside attributes that say more of it.
    Elsewhere,
    /// A rule keeps it in a compartment.
    Compartment,
    /// It would cost more than the price.
    Price {
        /// Loss that it would add to a record, in cells.
        loss: f64,
    },
}

impl Apart {
    /// The reason in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identifier => "identifier",
            Self::Pace => "pace",
            Self::Width => "width",
            Self::Elsewhere => "elsewhere",
            Self::Compartment => "compartment",
            Self::Price { .. } => "price",
        }
    }
}

/// What wishes for both of two attributes add to the worth of the pair, in bits.
pub fn wished(wishes: &[Wish], a: usize, b: usize) -> f64 {
    let both = |wish: &&Wish| wish.attributes.contains(&a) && wish.attributes.contains(&b);
    wishes.iter().filter(both).map(|wish| wish.weight).sum()
}

/// A group that the planner chose, and what speaks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct GrownGroup {
    /// Its attributes, ascending.
    pub attributes: Vec<usize>,
    /// The loss that the sample expects of a cell, in [0, 1].
    pub loss: f64,
    /// What its attributes say of each other, in bits, over all pairs.
    pub bits: f64,
}

/// What groups are chosen from.
pub struct Ground<'a> {
    /// The quasi attributes to be divided.
    pub attributes: &'a [usize],
    /// Which attributes do not change within a person.
    pub is_static: &'a (dyn Fn(usize) -> bool + Sync),
    /// What the attributes say of each other.
    pub dependence: &'a Dependence,
    /// Records to try groups on.
    pub sample: &'a Sample,
    /// From codes to values, by attribute.
    pub books: &'a [Codebook],
    /// As for the plans to come.
    pub settings: &'a PlannerSettings,
    /// The most loss (cells of a record) that a bit may cost.
    pub price: f64,
}

/// Groups that grow by merging.
pub struct Growth<'a> {
    ground: &'a Ground<'a>,
    wishes: &'a [Wish],
    /// Attributes that leave as `*`: they say nothing of anything.
    identifiers: Vec<usize>,
    /// Ascending attributes, and the loss of a record's cells in the group.
    groups: Vec<(Vec<usize>, f64)>,
    /// By the first attributes of two groups: the loss of both as one, and what a bit of it costs.
    mergers: BTreeMap<(usize, usize), Merger>,
    /// Pairs of attributes that bring their groups together, each both ways; none where every pair does.
    partners: Option<BTreeSet<(usize, usize)>>,
}

#[derive(Clone, Copy, Debug)]
struct Merger {
    loss: f64,
    cost: f64,
}

impl<'a> Growth<'a> {
    /// Every attribute by itself.
    pub fn new(ground: &'a Ground<'a>, wishes: &'a [Wish]) -> Self {
        let Ground { attributes, sample, books, settings, .. } = ground;
        let identifiers = identifiers::found_in(sample, attributes, books, settings.identifier_cardinality);
        let partners = (attributes.len() > WIDE).then(|| partners(ground, wishes));
        let mut growth = Self { ground, wishes, identifiers, groups: Vec::new(), mergers: BTreeMap::new(), partners };
        growth.groups = attributes.par_iter().map(|&a| (vec![a], growth.loss(&[a]))).collect();
        growth.groups.sort_by(|a, b| a.0.cmp(&b.0));
        growth
    }

    /// The loss of a record's cells in a group, in cells.
    fn loss(&self, group: &[usize]) -> f64 {
        let Ground { sample, books, settings, .. } = self.ground;
        let tried = PlannerSettings { ladder: TRIED, ..**settings };
        let ladder = build_ladder(group, &self.identifiers, sample, books, &tried);
        expected_loss(group, &ladder, sample, books, &tried) * group.len() as f64
    }

    /// Why two groups can never be one.
    fn bar(&self, one: &[usize], other: &[usize]) -> Option<Apart> {
        let is_static = self.ground.is_static;
        if [one, other].concat().iter().any(|a| self.identifiers.contains(a)) {
            Some(Apart::Identifier)
        } else if is_static(one[0]) != is_static(other[0]) {
            Some(Apart::Pace)
        } else {
            (one.len() + other.len() > WIDEST).then_some(Apart::Width)
        }
    }

    /// Whether two groups are tried as one.
    fn may_meet(&self, one: &[usize], other: &[usize]) -> bool {
        let Some(partners) = &self.partners else { return true };
        one.iter().any(|&a| other.iter().any(|&b| partners.contains(&(a, b))))
    }

    /// What a merger of two groups is worth, in bits.
    fn worth(&self, one: &[usize], other: &[usize]) -> f64 {
        let pair = |a, b| self.ground.dependence.bits(a, b) + EVERY_PAIR + wished(self.wishes, a, b);
        one.iter().flat_map(|&a| other.iter().map(move |&b| pair(a, b))).sum()
    }

    fn merger(&self, one: &(Vec<usize>, f64), other: &(Vec<usize>, f64)) -> Merger {
        let loss = self.loss(&merged(&one.0, &other.0));
        Merger { loss, cost: (loss - one.1 - other.1).max(0.0) / self.worth(&one.0, &other.0) }
    }

    /// Makes the cheapest merger that `admits` as long as there is one below the price; gives the loss that was added, in cells of
    /// a record.
    fn grow(&mut self, admits: &(dyn Fn(&[usize]) -> bool + Sync)) -> f64 {
        let mut added = 0.0;
        // The group that is new, by its first attribute; at the beginning all may be.
        let mut fresh = None;
        loop {
            let admitted: Vec<&(Vec<usize>, f64)> = self.groups.iter().filter(|group| admits(&group.0)).collect();
            let mut open = Vec::new();
            for (at, one) in admitted.iter().copied().enumerate() {
                let is_fresh = |group: &(Vec<usize>, f64)| fresh.is_none_or(|first| group.0[0] == first);
                let others = admitted[at + 1..].iter().copied();
                for other in others.filter(|other| is_fresh(one) || is_fresh(other)) {
                    let known = self.mergers.contains_key(&(one.0[0], other.0[0]));
                    if !known && self.may_meet(&one.0, &other.0) && self.bar(&one.0, &other.0).is_none() {
                        open.push((one, other));
                    }
                }
            }
            let tried = |(one, other): &(&(Vec<usize>, f64), &(Vec<usize>, f64))| {
                ((one.0[0], other.0[0]), self.merger(one, other))
            };
            let found: Vec<((usize, usize), Merger)> = open.par_iter().map(tried).collect();
            let firsts: BTreeSet<usize> = admitted.iter().map(|group| group.0[0]).collect();
            self.mergers.extend(found);
            let price = self.ground.price;
            let below = self.mergers.iter().filter(|(_, merger)| merger.cost < price);
            let below = below.filter(|((one, other), _)| firsts.contains(one) && firsts.contains(other));
            let Some((&pair, &merger)) = below.min_by(|a, b| a.1.cost.total_cmp(&b.1.cost)) else { break added };
            added += self.merge(pair, merger.loss);
            fresh = Some(pair.0.min(pair.1));
        }
    }

    /// Makes one of two groups, by their first attributes; gives the loss that this adds.
    fn merge(&mut self, (one, other): (usize, usize), loss: f64) -> f64 {
        let is_part = |group: &(Vec<usize>, f64)| group.0[0] == one || group.0[0] == other;
        let parts: Vec<(Vec<usize>, f64)> = self.groups.extract_if(.., |group| is_part(group)).collect();
        let mut both: Vec<usize> = parts.iter().flat_map(|part| part.0.iter().copied()).collect();
        both.sort_unstable();
        self.mergers.retain(|(a, b), _| ![*a, *b].iter().any(|first| *first == one || *first == other));
        self.groups.push((both, loss));
        self.groups.sort_by(|a, b| a.0.cmp(&b.0));
        loss - parts.iter().map(|part| part.1).sum::<f64>()
    }

    /// Serves the wishes, the weightiest first, as far as the price allows; one answer a wish, in their order.
    pub fn serve_wishes(&mut self) -> Vec<WishAnswer> {
        let mut order: Vec<usize> = (0..self.wishes.len()).collect();
        order.sort_by(|&a, &b| self.wishes[b].weight.total_cmp(&self.wishes[a].weight).then(a.cmp(&b)));
        let mut answers = vec![WishAnswer::default(); order.len()];
        for at in order {
            let wish = &self.wishes[at];
            let added = self.grow(&|group| group.iter().any(|a| wish.attributes.contains(a)));
            answers[at] = self.answer(wish, added);
        }
        answers
    }

    /// What a wish has come to: its largest part, and why the others are not in it.
    fn answer(&self, wish: &Wish, loss: f64) -> WishAnswer {
        let part = |group: &(Vec<usize>, f64)| {
            let wished = group.0.iter().filter(|a| wish.attributes.contains(a)).count();
            // An identifier is no part that anything could have joined.
            (if group.0.iter().any(|a| self.identifiers.contains(a)) { 0 } else { wished }, wished)
        };
        // Of equals the first.
        let largest = self.groups.iter().reduce(|best, next| if part(next) > part(best) { next } else { best });
        let Some(largest) = largest else { return WishAnswer::default() };
        let (together, mut apart) =
            (largest.0.iter().copied().filter(|a| wish.attributes.contains(a)).collect(), vec![]);
        for group in self.groups.iter().filter(|group| group.0[0] != largest.0[0]) {
            let why = self.bar(&largest.0, &group.0).unwrap_or_else(|| {
                let both = self.loss(&merged(&largest.0, &group.0));
                Apart::Price { loss: (both - largest.1 - group.1).max(0.0) }
            });
            apart.extend(group.0.iter().filter(|a| wish.attributes.contains(a)).map(|&a| (a, why)));
        }
        WishAnswer { together, loss: loss.max(0.0), apart }
    }

    /// Merges whatever is below the price.
    pub fn grow_all(&mut self) {
        self.grow(&|_| true);
    }

    /// The groups of more than one attribute, as wishes have made them, taken out; what is left is to be divided otherwise.
    pub fn take_wished(&mut self) -> Vec<Vec<usize>> {
        self.groups.extract_if(.., |group| group.0.len() > 1).map(|group| group.0).collect()
    }

    /// All groups, taken out, to be [put](Self::put) back with others.
    pub fn take(&mut self) -> Vec<Vec<usize>> {
        std::mem::take(&mut self.groups).into_iter().map(|group| group.0).collect()
    }

    /// The groups, the first attributes first.
    pub fn groups(self) -> Vec<GrownGroup> {
        let grown = |(attributes, loss): (Vec<usize>, f64)| GrownGroup {
            loss: loss / attributes.len() as f64,
            bits: self.ground.dependence.inside(&attributes),
            attributes,
        };
        self.groups.into_iter().map(grown).collect()
    }

    /// These groups instead of those that have grown: they are measured and not judged.
    pub fn put(&mut self, groups: Vec<Vec<usize>>) {
        self.groups = groups.into_par_iter().map(|group| (group.clone(), self.loss(&group))).collect();
        self.groups.sort_by(|a, b| a.0.cmp(&b.0));
        self.mergers.clear();
    }
}

/// Of each attribute those that say most of it, and those that a wish wants beside it.
fn partners(ground: &Ground<'_>, wishes: &[Wish]) -> BTreeSet<(usize, usize)> {
    let nearest = |&a: &usize| -> Vec<(usize, usize)> {
        let others = ground.attributes.iter().copied().filter(|&b| b != a);
        let mut worth: Vec<(f64, usize)> = others.map(|b| (ground.dependence.bits(a, b), b)).collect();
        // Of equals the first.
        worth.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
        worth.into_iter().take(PARTNERS).flat_map(|(_, b)| [(a, b), (b, a)]).collect()
    };
    let wanted = wishes.iter().flat_map(|wish| {
        let pairs = |&a: &usize| wish.attributes.iter().map(move |&b| (a, b));
        wish.attributes.iter().flat_map(pairs)
    });
    let mut partners: BTreeSet<(usize, usize)> = wanted.collect();
    partners.par_extend(ground.attributes.par_iter().flat_map_iter(nearest));
    partners
}

fn merged(one: &[usize], other: &[usize]) -> Vec<usize> {
    let mut both = [one, other].concat();
    both.sort_unstable();
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_core::values::codebook::books_of;
    use throng_core::values::table::Batch;

    const SCHEMA: &str = "name = \"t\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n\
        [[attribute]]\nname = \"a\"\ntype = \"integer\"\n[[attribute]]\nname = \"b\"\ntype = \"integer\"\n\
        [[attribute]]\nname = \"c\"\ntype = \"integer\"\n[[attribute]]\nname = \"d\"\ntype = \"integer\"\n";

    const SETTINGS: PlannerSettings = PlannerSettings {
        k: 3,
        ladder: LadderLimits { complete: 5000, chosen: 100 },
        identifier_cardinality: 0.8,
        window_records: 1000,
        batch_records: 1000,
    };

    /// `a` and `b` are equal, `c` and `d` are unrelated to everything.
    fn sample() -> (Vec<Codebook>, Sample) {
        let mut books = books_of(SCHEMA, 1000);
        let mut batch = Batch::new(5);
        for row in 0..1000_u64 {
            let mixed = row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let cells = [mixed >> 61, mixed >> 61, mixed >> 40 & 63, mixed >> 20 & 63];
            batch.columns[0].push(0);
            for (at, cell) in cells.iter().enumerate() {
                batch.columns[at + 1].push(books[at + 1].encode_canonical(&cell.to_string()));
            }
            batch.subjects.push(row + 1);
        }
        let mut sample = Sample::new(5, 1000, 1000);
        sample.add(&batch, 0);
        (books, sample)
    }

    fn grown(
        is_static: &(dyn Fn(usize) -> bool + Sync),
        price: f64,
        wishes: &[Wish],
    ) -> (Vec<Vec<usize>>, Vec<WishAnswer>) {
        let (books, sample) = sample();
        let attributes = &[1, 2, 3, 4];
        let dependence = &Dependence::of(attributes, &sample, &books);
        let ground =
            Ground { attributes, is_static, dependence, sample: &sample, books: &books, settings: &SETTINGS, price };
        let mut growth = Growth::new(&ground, wishes);
        let answers = growth.serve_wishes();
        growth.grow_all();
        (growth.groups().into_iter().map(|group| group.attributes).collect(), answers)
    }

    fn groups(is_static: &(dyn Fn(usize) -> bool + Sync), price: f64) -> Vec<Vec<usize>> {
        grown(is_static, price, &[]).0
    }

    fn wish(attributes: &[usize], weight: f64) -> Wish {
        Wish { attributes: attributes.to_vec(), weight }
    }

    #[test]
    fn a_wish_is_granted_as_far_as_the_price_allows_and_says_what_it_costs() {
        let (groups, answers) = grown(&|_| false, 0.01, &[wish(&[1, 3], 1000.0)]);
        assert_eq!(groups, [vec![1, 2, 3], vec![4]]);
        assert_eq!((&answers[0].together[..], &answers[0].apart[..]), (&[1, 3][..], &[][..]));
        assert!(answers[0].loss > 0.1, "{answers:?}");
        let (groups, answers) = grown(&|_| false, 1e-6, &[wish(&[1, 3], 0.001)]);
        assert_eq!(groups, [vec![1, 2], vec![3], vec![4]]);
        assert!(matches!(answers[0].apart[..], [(3, Apart::Price { loss })] if loss > 0.1), "{answers:?}");
        assert!(answers[0].loss.abs() < 1e-9, "{answers:?}");
    }

    #[test]
    fn no_wish_joins_what_never_changes_with_what_does() {
        let (groups, answers) = grown(&|attribute| attribute == 2, 1e9, &[wish(&[1, 2], 1e9)]);
        assert_eq!(groups, [vec![1, 3, 4], vec![2]]);
        assert_eq!(answers[0].apart, [(2, Apart::Pace)]);
    }

    #[test]
    fn what_depends_on_each_other_leaves_together() {
        // A thousand people: two equal attributes cost nothing, unrelated ones of many values cost loss and are worth no bits.
        assert_eq!(groups(&|_| false, 1e-6), [vec![1, 2], vec![3], vec![4]]);
    }

    /// Pairs of equal attributes among many: each is tried with few others, and its twin is one of them.
    #[test]
    fn of_many_attributes_those_that_say_most_of_each_other_are_tried() {
        const PAIRS: usize = 80;
        let attribute = |n| format!("[[attribute]]\nname = \"a{n}\"\ntype = \"integer\"\n");
        let schema: String = (0..2 * PAIRS).map(attribute).collect();
        let mut books = books_of(&format!("name = \"t\"\n{schema}"), 1000);
        let mut batch = Batch::new(2 * PAIRS);
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
        let mut sample = Sample::new(2 * PAIRS, 200, 200);
        sample.add(&batch, 0);
        let attributes: Vec<usize> = (0..2 * PAIRS).collect();
        let dependence = &Dependence::of(&attributes, &sample, &books);
        let settings = &PlannerSettings { window_records: 200, batch_records: 200, ..SETTINGS };
        let ground = Ground {
            attributes: &attributes,
            is_static: &|_| false,
            dependence,
            sample: &sample,
            books: &books,
            settings,
            price: 1e-6,
        };
        let mut growth = Growth::new(&ground, &[]);
        growth.grow_all();
        assert!(growth.mergers.len() <= 2 * PAIRS * PARTNERS * 2, "{} of {}", growth.mergers.len(), 80 * 159);
        let groups: Vec<Vec<usize>> = growth.groups().into_iter().map(|group| group.attributes).collect();
        assert_eq!(groups, (0..PAIRS).map(|pair| vec![pair, pair + PAIRS]).collect::<Vec<_>>());
    }

    #[test]
    fn any_price_is_paid_up_to_the_widest_group_and_none_below_it() {
        assert_eq!(groups(&|_| false, 1e9), [vec![1, 2, 3, 4]]);
        assert_eq!(groups(&|_| false, f64::MIN_POSITIVE).concat().len(), 4, "every attribute is in one group");
    }

    #[test]
    fn what_never_changes_stays_apart_from_what_does() {
        assert_eq!(groups(&|attribute| attribute == 2, 1e9), [vec![1, 3, 4], vec![2]]);
    }
}

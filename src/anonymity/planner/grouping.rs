//! Which attributes leave together: groups that grow while a merger costs less than it is worth (docs/methods.md §10.2).
//!
//! Loss alone would leave every attribute to itself, and with it every relation between attributes. So two groups become one where
//! the loss that this adds, for each bit that the attributes of the one say of those of the other, is below a price. The cheapest
//! merger comes first.
//!
//! What does not change within a person never leaves beside what does: it would be said again with every record
//! (docs/methods.md §12.4).

use super::dependence::Dependence;
use super::identifiers;
use super::ladder::{build_ladder, expected_loss};
use super::sample::Sample;
use super::settings::{LadderLimits, PlannerSettings};
use crate::records::codebook::Codebook;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Attributes of a group at most: more, and most cells are lost (docs/methods.md §11.6).
pub const WIDEST: usize = 8;

/// Bits that every pair of attributes is worth besides what they say of each other in the sample: a sample shows no more than
/// it shows.
const EVERY_PAIR: f64 = 0.02;

/// Ladders of groups that are only tried are short: thousands of them are made.
const TRIED: LadderLimits = LadderLimits { complete: 300, chosen: 40 };

/// A group that was grown, and what speaks for it.
#[derive(Clone, Debug, PartialEq)]
pub struct GrownGroup {
    /// Its attributes, ascending.
    pub attributes: Vec<usize>,
    /// The loss that the sample expects of a cell, in [0, 1].
    pub loss: f64,
    /// What its attributes say of each other, in bits, over all pairs.
    pub bits: f64,
}

/// Groups of `attributes`, the first attributes first. `is_static` says of an attribute that it does not change within a
/// person; `price` is the most loss (cells of a record) that a bit may cost.
///
/// Time: some thousand short ladders over the sample. The same sample gives the same groups.
#[must_use]
pub fn by_price(
    attributes: &[usize],
    is_static: &dyn Fn(usize) -> bool,
    dependence: &Dependence,
    sample: &Sample,
    books: &[Codebook],
    settings: &PlannerSettings,
    price: f64,
) -> Vec<GrownGroup> {
    let identifiers = identifiers::found_in(sample, attributes, books, settings.identifier_cardinality);
    let tried = PlannerSettings { ladder: TRIED, ..*settings };
    // The loss of a record's cells in a group.
    let loss = |group: &[usize]| {
        let ladder = build_ladder(group, &identifiers, sample, books, &tried);
        expected_loss(group, &ladder, sample, books, &tried) * group.len() as f64
    };
    let mut groups: Vec<(Vec<usize>, f64)> = attributes.par_iter().map(|&a| (vec![a], loss(&[a]))).collect();
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    // By the first attributes of two groups: the loss of both as one, and what its bits cost.
    let mut mergers: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
    loop {
        let mut open = Vec::new();
        for (at, one) in groups.iter().enumerate() {
            for other in &groups[at + 1..] {
                let narrow = one.0.len() + other.0.len() <= WIDEST;
                // An identifier leaves as `*`: it says nothing of anything.
                let says = |group: &[usize]| group.iter().all(|a| !identifiers.contains(a));
                let alike = is_static(one.0[0]) == is_static(other.0[0]);
                if narrow && alike && says(&one.0) && says(&other.0) && !mergers.contains_key(&(one.0[0], other.0[0])) {
                    open.push((one, other));
                }
            }
        }
        let found: Vec<((usize, usize), (f64, f64))> = open
            .par_iter()
            .map(|(one, other)| {
                let both = loss(&merged(&one.0, &other.0));
                let cost = (both - one.1 - other.1).max(0.0) / worth(dependence, &one.0, &other.0);
                ((one.0[0], other.0[0]), (both, cost))
            })
            .collect();
        mergers.extend(found);
        let cheapest = mergers.iter().filter(|(_, (_, cost))| *cost < price).min_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let Some((&(one, other), &(both, _))) = cheapest else { break };
        let part = |first: usize, groups: &mut Vec<(Vec<usize>, f64)>| {
            let at = groups.iter().position(|group| group.0[0] == first);
            at.map(|at| groups.remove(at).0).unwrap_or_default()
        };
        let (left, right) = (part(one, &mut groups), part(other, &mut groups));
        mergers.retain(|(a, b), _| ![*a, *b].iter().any(|first| *first == one || *first == other));
        groups.push((merged(&left, &right), both));
        groups.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let grown = |(attributes, loss): (Vec<usize>, f64)| GrownGroup {
        loss: loss / attributes.len() as f64,
        bits: dependence.inside(&attributes),
        attributes,
    };
    groups.into_iter().map(grown).collect()
}

/// What a merger of two groups is worth, in bits.
fn worth(dependence: &Dependence, one: &[usize], other: &[usize]) -> f64 {
    one.iter().flat_map(|&a| other.iter().map(move |&b| dependence.bits(a, b) + EVERY_PAIR)).sum()
}

fn merged(one: &[usize], other: &[usize]) -> Vec<usize> {
    let mut both = [one, other].concat();
    both.sort_unstable();
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::digest::DigestKey;
    use crate::records::raw::Coordinate;
    use crate::records::schema::Schema;
    use crate::records::table::Batch;
    use std::sync::Arc;

    const SCHEMA: &str = "name = \"t\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n\
        [[attribute]]\nname = \"a\"\ntype = \"integer\"\n[[attribute]]\nname = \"b\"\ntype = \"integer\"\n\
        [[attribute]]\nname = \"c\"\ntype = \"integer\"\n[[attribute]]\nname = \"d\"\ntype = \"integer\"\n";

    const SETTINGS: PlannerSettings = PlannerSettings {
        k: 3,
        ladder: LadderLimits { complete: 5000, chosen: 100 },
        identifier_cardinality: 0.8,
        window_records: 1000,
        batch: None,
    };

    /// `a` and `b` are equal, `c` and `d` are unrelated to everything.
    fn sample() -> (Vec<Codebook>, Sample) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("schema.toml");
        std::fs::write(&path, SCHEMA).expect("a file");
        let schema = Schema::load(&path).expect("a schema");
        let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &DigestKey([7; 32]), 1000).expect("a book");
        let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect();
        let mut batch = Batch::new(5);
        for row in 0..1000_u64 {
            let mixed = row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let cells = [mixed >> 61, mixed >> 61, mixed >> 40 & 63, mixed >> 20 & 63];
            batch.columns[0].push(0);
            for (at, cell) in cells.iter().enumerate() {
                batch.columns[at + 1].push(books[at + 1].encode_canonical(&cell.to_string()));
            }
            batch.subjects.push(row + 1);
            batch.coordinates.push(Coordinate { topic: 0, partition: 0, offset: row as i64 });
        }
        let mut sample = Sample::new(5, 1000, 1000);
        sample.add(&batch, 0);
        (books, sample)
    }

    fn groups(is_static: &dyn Fn(usize) -> bool, price: f64) -> Vec<Vec<usize>> {
        let (books, sample) = sample();
        let all = [1, 2, 3, 4];
        let dependence = Dependence::of(&all, &sample, &books);
        let grown = by_price(&all, is_static, &dependence, &sample, &books, &SETTINGS, price);
        grown.into_iter().map(|group| group.attributes).collect()
    }

    #[test]
    fn what_depends_on_each_other_leaves_together() {
        // A thousand people: two equal attributes cost nothing, unrelated ones of many values cost loss and are worth no bits.
        assert_eq!(groups(&|_| false, 1e-6), [vec![1, 2], vec![3], vec![4]]);
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

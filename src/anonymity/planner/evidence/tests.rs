use super::*;
use crate::anonymity::planner::ladder::LadderLimits;
use crate::anonymity::planner::{GroupShape, make_plan};
use crate::records::digest::DigestKey;
use crate::records::raw::{Coordinate, Token};
use crate::records::schema::Schema;
use crate::records::table::Batch;
use crate::risk::adjacency::Limits;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

const WIDTH: usize = 4;
const K: usize = 3;

fn witnessed(rows: &[[u8; WIDTH]], with_subjects: bool) -> (Witnessed, PlannerSettings) {
    let attribute = |name: &str| format!("[[attribute]]\nname = \"{name}\"\ntype = \"string\"\n");
    let text = format!("name = \"t\"\n{}", ["a", "b", "c", "d"].map(attribute).concat());
    let schema = Schema::parse(&text, "t.toml", Path::new("")).expect("a schema");
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &DigestKey([3; 32]), 1000).expect("a codebook");
    let mut books: Vec<Codebook> = schema.attributes.iter().map(book).collect();
    let mut batch = Batch::new(WIDTH);
    for (number, row) in rows.iter().enumerate() {
        for ((column, book), value) in batch.columns.iter_mut().zip(&mut books).zip(row) {
            column.push(book.encode(Token::Text(&format!("v{value}"))).expect("a text"));
        }
        batch.subjects.push(number as u64 / 2 + 1);
        batch.coordinates.push(Coordinate { topic: 0, partition: 0, offset: number as i64 });
    }
    let mut sample = Sample::new(WIDTH, 100, 100);
    sample.add(&batch, 0);
    let mut model = CoarseAdjacency::new(&[0, 1, 2, 3], Limits::default()).expect("in order");
    model.add(&batch.columns).expect("room");
    let settings = PlannerSettings {
        k: K,
        ladder: LadderLimits { complete: 100, chosen: 10 },
        identifier_cardinality: 1.0,
        window_records: 100,
    };
    let shape = GroupShape { name: "all".to_owned(), quasi: vec![0, 1, 2, 3], sensitive: vec![], insensitive: vec![] };
    let plan = make_plan(7, &[shape], &sample, &books, &settings);
    let subjects = with_subjects.then(|| (0..rows.len() as u32).map(|row| row / 2).collect());
    (Witnessed { plan, sample, books, columns: batch.columns, subjects, model }, settings)
}

/// All attribute sets by definition: masked cells, then some tuple with a support below k.
fn qids(rows: &[[u8; WIDTH]], with_subjects: bool) -> Vec<Vec<usize>> {
    use std::collections::{BTreeMap, BTreeSet};
    let person = |row: usize| if with_subjects { row / 2 } else { row };
    let support = |of: &dyn Fn(usize) -> Vec<Option<u8>>| {
        let mut classes: BTreeMap<Vec<Option<u8>>, BTreeSet<usize>> = BTreeMap::new();
        (0..rows.len()).for_each(|row| {
            classes.entry(of(row)).or_default().insert(person(row));
        });
        classes
    };
    let masked: Vec<[Option<u8>; WIDTH]> = (0..rows.len())
        .map(|row| {
            std::array::from_fn(|a| {
                let alone = support(&|row| vec![Some(rows[row][a])]);
                (alone[&vec![Some(rows[row][a])]].len() >= K).then_some(rows[row][a])
            })
        })
        .collect();
    let is_qid = |set: &[usize]| {
        let classes = support(&|row| set.iter().map(|&a| masked[row][a]).collect());
        classes.values().any(|people| people.len() < K)
    };
    let sets = (1..1_usize << WIDTH).map(|mask| (0..WIDTH).filter(|a| mask >> a & 1 == 1).collect::<Vec<_>>());
    let all: Vec<Vec<usize>> = sets.filter(|set| is_qid(set)).collect();
    let has_smaller =
        |set: &Vec<usize>| all.iter().any(|other| other.len() < set.len() && other.iter().all(|a| set.contains(a)));
    let mut minimal: Vec<Vec<usize>> = all.iter().filter(|set| !has_smaller(set)).cloned().collect();
    minimal.sort_by_key(|set| (set.len(), set.clone()));
    minimal
}

/// The strongest inference from `a` to `b` by definition: probability, people, records.
fn inference(rows: &[[u8; WIDTH]], with_subjects: bool, a: usize, b: usize) -> Option<(f64, u64, u64)> {
    use std::collections::BTreeSet;
    let mut best: Option<(f64, u64, u64)> = None;
    for row in rows {
        let holds = |place: usize, at: usize| rows[place][at] == row[at];
        let of = |wanted: &dyn Fn(usize) -> bool| (0..rows.len()).filter(|place| wanted(*place)).collect::<Vec<_>>();
        let both = of(&|place| holds(place, a) && holds(place, b));
        let (given, told) = (of(&|place| holds(place, a)).len(), of(&|place| holds(place, b)).len());
        let people = both.iter().map(|place| if with_subjects { place / 2 } else { *place }).collect::<BTreeSet<_>>();
        if people.len() >= K && both.len() * rows.len() > given * told {
            let found = (both.len() as f64 / given as f64, people.len() as u64, both.len() as u64);
            best = Some(best.map_or(found, |best| if found > best { found } else { best }));
        }
    }
    best
}

proptest! {
    #[test]
    fn the_evidence_is_what_the_window_shows(
        rows in proptest::collection::vec([0_u8..4, 0_u8..3, 0_u8..6, 0_u8..2], 8..60),
        with_subjects in any::<bool>(),
    ) {
        let (from, settings) = witnessed(&rows, with_subjects);
        let searched: Vec<usize> = (0..WIDTH).filter(|a| !from.plan.identifiers.contains(a)).collect();
        let found = gather(from, &settings, Wanted::Cpu, Duration::from_secs(60)).expect("a table");
        prop_assert!(found.complete && found.plan == 7 && found.computed_by == "cpu");
        prop_assert_eq!(&found.attributes, &searched);
        if searched.len() == WIDTH {
            let expected = qids(&rows, with_subjects);
            prop_assert_eq!(found.qids_by_size.iter().sum::<u64>(), expected.len() as u64);
            let mut listed = found.minimal_qids.clone();
            listed.sort_by_key(|set| (set.len(), set.clone()));
            prop_assert_eq!(listed, expected);
        }
        if searched.len() == WIDTH {
            // The triage is compared with the quasi-identifiers of people, where there are people.
            let minimal = qids(&rows, with_subjects);
            for size in &found.triage.as_ref().expect("a complete search").sizes {
                let sets = (1..1_usize << WIDTH).map(|mask| (0..WIDTH).filter(|a| mask >> a & 1 == 1).collect::<Vec<_>>());
                let is_qid = |set: &Vec<usize>| minimal.iter().any(|qid| qid.iter().all(|a| set.contains(a)));
                let expected = sets.filter(|set| set.len() == size.size && is_qid(set)).count();
                prop_assert_eq!(size.qids, expected as u64);
            }
        }
        for &from in &searched {
            for &to in searched.iter().filter(|to| **to != from) {
                let ours = found.strongest.iter().find(|i| (i.from, i.to) == (from, to));
                let ours = ours.map(|i| (i.probability, i.support, i.records));
                prop_assert_eq!(ours, inference(&rows, with_subjects, from, to));
            }
        }
        prop_assert!(found.strongest.windows(2).all(|two| two[0].probability >= two[1].probability));
        prop_assert_eq!(found.records, rows.len() as u64);
        prop_assert_eq!(found.support, if with_subjects { rows.len().div_ceil(2) as u64 } else { rows.len() as u64 });
        prop_assert!((0.0..=1.0).contains(&found.expected_loss), "{}", found.expected_loss);
        prop_assert!(found.inferences.iter().all(|i| i.from != i.to && i.mean > 0.0 && i.mean <= 1.0 + 1e-9));
        let aggregation = found.aggregation.expect("a small model");
        prop_assert!(aggregation.coarse_nodes <= aggregation.nodes && aggregation.coarse_edges <= aggregation.edges);
    }
}

//! Exchanges, judged one by one by what may be exchanged.

use super::{Exchange, RiskyInference, Value, dampen};
use crate::anonymity::treatment::crowd::NO_SUBJECT;
use crate::records::codebook::{Code, FIRST_VALUE, NULL};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
struct Case {
    columns: Vec<Vec<Code>>,
    subjects: Vec<u64>,
    risky: Vec<RiskyInference>,
    most_altered: f64,
    seed: u8,
}

impl Case {
    fn run(&self) -> (Vec<Vec<Code>>, Vec<Exchange>) {
        let mut columns = self.columns.clone();
        let exchanges = dampen(&mut columns, &self.subjects, &self.risky, self.most_altered, [self.seed; 32]);
        (columns, exchanges)
    }
}

fn cases(most_risky: usize) -> impl Strategy<Value = Case> {
    (2_usize..=4, 0_usize..40).prop_flat_map(move |(width, rows)| {
        let code = prop_oneof![1 => Just(NULL), 8 => FIRST_VALUE..FIRST_VALUE + 4];
        let value = (0..width, FIRST_VALUE..FIRST_VALUE + 4).prop_map(|(attribute, code)| Value { attribute, code });
        let risky = (value.clone(), value, 0.0_f64..1.0).prop_map(|(given, inferred, target)| RiskyInference {
            given,
            inferred,
            target,
        });
        (
            proptest::collection::vec(proptest::collection::vec(code, rows), width),
            proptest::collection::vec(prop_oneof![9 => 0_u64..6, 1 => Just(NO_SUBJECT)], rows),
            proptest::collection::vec(risky, 1..=most_risky),
            prop_oneof![Just(1.0), 0.0_f64..1.0],
            any::<u8>(),
        )
            .prop_map(|(columns, subjects, risky, most_altered, seed)| Case {
                columns,
                subjects,
                risky,
                most_altered,
                seed,
            })
    })
}

fn joint(columns: &[Vec<Code>], r: &RiskyInference) -> usize {
    let rows = 0..columns[0].len();
    let has = |row: usize, value: Value| columns[value.attribute][row] == value.code;
    rows.filter(|row| has(*row, r.given) && has(*row, r.inferred)).count()
}

fn multiset(column: &[Code]) -> BTreeMap<Code, usize> {
    column.iter().fold(BTreeMap::new(), |mut counts, code| {
        *counts.entry(*code).or_default() += 1;
        counts
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn every_exchange_is_one_that_may_be_made(case in cases(5)) {
        let (columns, exchanges) = case.run();
        let mut replayed = case.columns.clone();
        let mut altered = BTreeSet::new();
        let within: Vec<&RiskyInference> =
            case.risky.iter().filter(|r| r.given.attribute != r.inferred.attribute).collect();
        for exchange in &exchanges {
            let (row, partner) = (exchange.rows.0 as usize, exchange.rows.1 as usize);
            for at in [row, partner] {
                prop_assert!(altered.insert((exchange.attribute, at)), "a cell moves once");
                prop_assert!(replayed[exchange.attribute][at] >= FIRST_VALUE, "missing values stay");
                prop_assert_ne!(case.subjects[at], NO_SUBJECT);
            }
            prop_assert_ne!(case.subjects[row], case.subjects[partner]);
            let before: Vec<usize> = within.iter().map(|r| joint(&replayed, r)).collect();
            replayed[exchange.attribute].swap(row, partner);
            let after: Vec<usize> = within.iter().map(|r| joint(&replayed, r)).collect();
            prop_assert!(before.iter().zip(&after).all(|(b, a)| a <= b), "{:?} {:?}", before, after);
            prop_assert_ne!(before, after, "each exchange lowers one");
        }
        prop_assert_eq!(&replayed, &columns);
        for (attribute, column) in columns.iter().enumerate() {
            prop_assert_eq!(multiset(column), multiset(&case.columns[attribute]));
            let moved = altered.iter().filter(|(a, _)| *a == attribute).count();
            prop_assert!(moved as f64 <= case.most_altered * column.len() as f64);
        }
        prop_assert_eq!(case.run(), (columns, exchanges));
    }

    #[test]
    fn a_lone_inference_comes_down_as_far_as_it_can(mut case in cases(1)) {
        case.most_altered = 1.0;
        case.risky[0].inferred.attribute = (case.risky[0].given.attribute + 1) % case.columns.len();
        let r = case.risky[0];
        let (columns, exchanges) = case.run();
        let having = columns[r.given.attribute].iter().filter(|code| **code == r.given.code).count();
        let left = joint(&columns, &r);
        if left > (r.target * having as f64) as usize {
            // Then no pair is left that could be exchanged.
            let moved: BTreeSet<u32> = exchanges.iter().flat_map(|e| [e.rows.0, e.rows.1]).collect();
            let column = &columns[r.inferred.attribute];
            let given = &columns[r.given.attribute];
            let free = |row: &usize| !moved.contains(&(*row as u32)) && case.subjects[*row] != NO_SUBJECT;
            for row in (0..column.len()).filter(free).filter(|x| given[*x] == r.given.code && column[*x] == r.inferred.code) {
                let partner = (0..column.len()).filter(free).find(|x| {
                    given[*x] != r.given.code
                        && column[*x] != r.inferred.code
                        && column[*x] >= FIRST_VALUE
                        && case.subjects[*x] != case.subjects[row]
                });
                prop_assert_eq!(partner, None, "row {} has a partner", row);
            }
        }
    }
}

#[test]
fn example_5_takes_her_zip_from_the_woman() {
    // [POD] Table 3.1, gender and ZIP: m 10001, f 64123, m 60617, m 60617.
    let (male, female) = (FIRST_VALUE, FIRST_VALUE + 1);
    let zips = [FIRST_VALUE, FIRST_VALUE + 1, FIRST_VALUE + 2, FIRST_VALUE + 2];
    let mut columns = vec![vec![male, female, male, male], zips.to_vec()];
    let risky = RiskyInference {
        given: Value { attribute: 0, code: female },
        inferred: Value { attribute: 1, code: zips[1] },
        target: 0.5,
    };
    let exchanges = dampen(&mut columns, &[1, 2, 3, 4], &[risky], 1.0, [7; 32]);
    assert_eq!(exchanges.len(), 1);
    assert_eq!((exchanges[0].attribute, exchanges[0].rows.0), (1, 1));
    assert_ne!(columns[1][1], zips[1]);
    assert_eq!(columns[0], [male, female, male, male]);
    assert_eq!(multiset(&columns[1]), multiset(&zips));
}

#[test]
fn nothing_is_exchanged_where_no_cell_may_change() {
    let mut columns = vec![vec![3, 3, 4, 4], vec![5, 5, 6, 6]];
    let [given, inferred] = [Value { attribute: 0, code: 3 }, Value { attribute: 1, code: 5 }];
    let risky = [RiskyInference { given, inferred, target: 0.0 }];
    assert_eq!(dampen(&mut columns, &[1, 2, 3, 4], &risky, 0.49, [0; 32]), []);
    assert_eq!(dampen(&mut columns, &[1, 2, 3, 4], &risky, 0.5, [0; 32]).len(), 1);
}

#[test]
fn the_seed_decides_who_exchanges() {
    let rows = 60;
    let first = |row: u32| if row < 20 { FIRST_VALUE } else { FIRST_VALUE + 1 };
    let columns: Vec<Vec<Code>> = vec![(0..rows).map(first).collect(), (0..rows).map(first).collect()];
    let subjects: Vec<u64> = (0..u64::from(rows)).collect();
    let value = |attribute| Value { attribute, code: FIRST_VALUE };
    let risky = [RiskyInference { given: value(0), inferred: value(1), target: 0.5 }];
    let run = |seed| dampen(&mut columns.clone(), &subjects, &risky, 1.0, [seed; 32]);
    assert_eq!(run(1).len(), 10);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

use super::*;
use crate::counting::CountedTable;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
struct InferenceCase {
    rows: Vec<Vec<u32>>,
    people: Option<Vec<u32>>,
    missing: Vec<u32>,
    k: u32,
}

fn cases() -> impl Strategy<Value = InferenceCase> {
    (2_usize..5, 1_usize..60).prop_flat_map(|(width, rows)| {
        let column = proptest::collection::vec(0_u32..30, width).prop_map(|cells| {
            // Covers dense tables and maps.
            cells.iter().enumerate().map(|(c, cell)| cell % [2, 4, 9, 30][c]).collect::<Vec<u32>>()
        });
        let table = proptest::collection::vec(column, rows);
        let people = proptest::option::of(proptest::collection::vec(0_u32..12, rows));
        (table, people, proptest::collection::vec(0_u32..3, width), 1_u32..5)
            .prop_map(|(rows, people, missing, k)| InferenceCase { rows, people, missing, k })
    })
}

fn by_definition(case: &InferenceCase, a: usize, b: usize) -> Option<(f64, usize, usize)> {
    let rows = &case.rows;
    let person = |row: usize| case.people.as_ref().map_or(row as u32, |people| people[row]);
    let dense = |column: usize, value: u32| {
        rows.iter().map(|row| row[column]).filter(|other| *other < value).collect::<BTreeSet<_>>().len() as u32
    };
    let mut best: Option<(f64, usize, usize)> = None;
    for row in rows {
        let (u, v) = (row[a], row[b]);
        if dense(a, u) < case.missing[a] || dense(b, v) < case.missing[b] {
            continue;
        }
        let both: Vec<usize> = (0..rows.len()).filter(|&r| rows[r][a] == u && rows[r][b] == v).collect();
        let people = both.iter().map(|&r| person(r)).collect::<BTreeSet<_>>().len();
        let (given, told) = (rows.iter().filter(|r| r[a] == u).count(), rows.iter().filter(|r| r[b] == v).count());
        if people < case.k as usize || both.len() * rows.len() <= given * told {
            continue;
        }
        let found = (both.len() as f64 / given as f64, people, both.len());
        if best.is_none_or(|best| found > best) {
            best = Some(found);
        }
    }
    best
}

fn table(case: &InferenceCase) -> CountedTable {
    let width = case.missing.len();
    let columns = (0..width).map(|c| case.rows.iter().map(|row| row[c]).collect()).collect();
    CountedTable::new(columns, case.people.clone()).expect("a table")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn strongest_inference_equals_definition_per_pair(case in cases(), threads in 1_usize..3) {
        let table = table(&case);
        let width = table.width();
        let pairs: Vec<(usize, usize)> = (0..width).flat_map(|a| (a + 1..width).map(move |b| (a, b))).collect();
        let asked = InferenceRequest { k: case.k, missing: &case.missing, pairs: &pairs, threads };
        let found = find_strongest_inferences(&CpuCounter::new(&table, 1), &asked);
        for a in 0..width {
            for b in (0..width).filter(|b| *b != a) {
                let ours: Vec<&ValueInference> = found.iter().filter(|i| (i.from, i.to) == (a, b)).collect();
                prop_assert!(ours.len() <= 1);
                let ours = ours.first().map(|i| (i.probability(), i.people as usize, i.records as usize));
                prop_assert_eq!(ours, by_definition(&case, a, b), "{} → {}", a, b);
            }
        }
        for inference in &found {
            let rows = || 0..table.rows();
            let given = |row: &usize| table.column(inference.from)[*row] == inference.given;
            let told = |row: &usize| table.column(inference.to)[*row] == inference.inferred_code;
            prop_assert_eq!(rows().filter(given).count() as u64, inference.of_given);
            prop_assert_eq!(rows().filter(told).count() as u64, inference.of_inferred_code);
            prop_assert_eq!(rows().filter(|row| given(row) && told(row)).count() as u64, inference.records);
            prop_assert!(inference.people >= u64::from(case.k) && inference.people <= inference.records);
            prop_assert!(inference.probability() > inference.expected());
        }
    }
}

#[test]
fn zip_predicts_city_and_no_value_predicts_a_constant() {
    // Three subjects each in 8001 and 8002, all in Zürich; three in 3011, Bern; two in 1200, Genf.
    let zips = [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4];
    let cities = [1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3];
    let table = CountedTable::new(vec![zips.to_vec(), cities.to_vec(), vec![7; 11]], None).expect("a table");
    let pairs = [(0, 1), (0, 2), (1, 2)];
    let asked = InferenceRequest { k: 3, missing: &[0; 3], pairs: &pairs, threads: 1 };
    let found = find_strongest_inferences(&CpuCounter::new(&table, 1), &asked);
    let forth = ValueInference {
        from: 0,
        to: 1,
        given: 0,
        inferred_code: 0,
        records: 3,
        people: 3,
        of_given: 3,
        of_inferred_code: 6,
        of_all: 11,
    };
    // Genf also has one ZIP code, but only two subjects.
    let back = ValueInference { from: 1, to: 0, given: 1, inferred_code: 2, of_inferred_code: 3, ..forth };
    assert_eq!(found, [forth, back]);
    assert_eq!(find_strongest_inferences(&CpuCounter::new(&table, 1), &InferenceRequest { k: 4, ..asked }), []);
    assert_eq!(affordable_pairs(&pairs, 11, 25), &pairs[..2]);
    assert_eq!((affordable_pairs(&pairs, 11, 0), affordable_pairs(&pairs, 0, 2)), (&pairs[..1], &pairs[..2]));
}

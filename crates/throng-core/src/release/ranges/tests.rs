use super::*;
use crate::treatment::ranges::{RangeColumns, divide_into_ranges};
use crate::values::canonical::Rounding;
use crate::values::codebook::test_codebooks;
use crate::values::raw_batch::RawToken;
use proptest::prelude::*;

#[test]
fn range_bounds_off_grid_are_refused() {
    let integers = Ruler::from_widths(true, Rounding::None, (-10.0, 101.0), 0.0, &[5.0, 10.0]).unwrap();
    let tick = 1_000_000_000;
    let bounds = |low: i128, high: i128| Some((low * tick, high * tick));
    assert_eq!(interval("\"-10--1\"", &integers), bounds(-10, -1));
    assert_eq!(interval("\"30-44\"", &integers), bounds(30, 44));
    assert_eq!(interval("\"95-101\"", &integers), bounds(95, 101));
    assert_eq!(interval("37", &integers), bounds(37, 37));
    for stranger in ["\"31-44\"", "\"30-45\"", "\"44-30\"", "\"-11--1\"", "\"30-109\"", "\"x\"", "\"\"", "x"] {
        assert_eq!(interval(stranger, &integers), None, "{stranger}");
    }
    let floats = Ruler::from_bounds(false, Rounding::None, (0.0, 8.0), &[vec![0.5, 2.0, 4.0]]).unwrap();
    assert_eq!(interval("\"[0.5,4)\"", &floats), Some((tick / 2, 4 * tick - 1)));
    assert_eq!(interval("\"[2,8]\"", &floats), bounds(2, 8));
    for stranger in ["\"[0.4,4)\"", "\"[0.5,3)\"", "\"[0.5,4]\"", "\"[4,0.5)\"", "\"[0.5,4\""] {
        assert_eq!(interval(stranger, &floats), None, "{stranger}");
    }
}

const SCHEMA: &str = r#"
name = "t"
subject = "record"
[[attribute]]
name = "age"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 39
widths = [5, 20]
[[attribute]]
name = "device"
type = "string"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"watch" = ["W1", "W2"]
"band" = ["B1", "B2"]
"#;

/// Ages -1, -2, -3 are null, absent and uncovered.
fn coded(rows: &[(i64, usize)]) -> (Vec<Vec<Code>>, Vec<Codebook>) {
    let mut books = test_codebooks(SCHEMA, 100);
    let special = |number: i64| [NULL, ABSENT, UNCOVERED][usize::try_from(-number - 1).unwrap() % 3];
    let age = |(age, _): &(i64, usize)| match age {
        0.. => books[0].encode(RawToken::Number(&age.to_string())).unwrap(),
        _ => special(*age),
    };
    let ages = rows.iter().map(age).collect();
    let device = |(_, device): &(i64, usize)| match ["W1", "W2", "B1", "B2"].get(*device) {
        Some(text) => books[1].encode(RawToken::Text(text)).unwrap(),
        None => special(3 - i64::try_from(*device).unwrap()),
    };
    let devices = rows.iter().map(device).collect();
    (vec![ages, devices], books)
}

fn judged(rows: &[(i64, usize)], classes: &[([&str; 2], &[u32])]) -> Result<(), Violation> {
    let (columns, books) = coded(rows);
    let line = |(class, (cells, rows)): (u128, &([&str; 2], &'static [u32]))| RangeLine {
        class,
        cells: cells.iter().map(|text| (*text).to_owned()).collect(),
        rows,
    };
    let classes: Vec<([&str; 2], &'static [u32])> =
        classes.iter().map(|(cells, rows)| (*cells, &*rows.to_vec().leak())).collect();
    let lines: Vec<RangeLine<'_>> = (0..).zip(&classes).map(line).collect();
    check_ranges(&lines, &[0, 1], &columns, &books)
}

#[test]
fn overlapping_range_classes_are_refused() {
    const W: &str = r#""W1""#;
    let rows = [(3, 0), (17, 0), (17, 0), (22, 0), (-1, 0), (-1, 0)];
    let judged = |classes: &[([&str; 2], &[u32])]| judged(&rows, classes);
    let fine: &[([&str; 2], &[u32])] = &[([r#""0-19""#, W], &[0, 1]), ([r#""15-24""#, W], &[2, 3])];
    assert_eq!(judged(fine), Err(Overlap), "both cover 17");
    assert_eq!(judged(&[([r#""0-19""#, W], &[0, 1, 2]), ([r#""20-24""#, W], &[3])]), Ok(()));
    assert_eq!(judged(&[([r#""0-19""#, W], &[0, 1, 2]), ([r#""20-23""#, W], &[3])]), Err(UnknownCell));
    assert_eq!(judged(&[([r#""0-14""#, W], &[0, 1, 2])]), Err(NotInRange), "17 is no 0-14");
    // A row of the wider class must not be 17.
    assert_eq!(judged(&[(["17", W], &[1, 2]), ([r#""0-24""#, W], &[0, 3])]), Ok(()));
    assert_eq!(judged(&[(["17", W], &[1]), ([r#""0-24""#, W], &[0, 2, 3])]), Err(Overlap));
    assert_eq!(judged(&[(["null", W], &[4, 5]), ([r#""0-24""#, W], &[0, 1, 2, 3])]), Ok(()));
    assert_eq!(judged(&[(["null", W], &[4]), ([r#""*""#, W], &[0, 1, 2, 3, 5])]), Err(Overlap));
    assert_eq!(judged(&[(["null", W], &[4, 5]), ([r#""*""#, W], &[0, 1, 2, 3])]), Ok(()), "nobody of `*` is null");
}

type PrintedClasses = BTreeMap<u128, (Vec<u32>, Vec<String>)>;

fn divided(columns: &[Vec<Code>], books: &[Codebook], subjects: &[u64], k: usize) -> PrintedClasses {
    let columns = RangeColumns { base: 1, attributes: &[0, 1], identifiers: &[], columns, subjects, books };
    let rows: Vec<u32> = (0u32..).take(subjects.len()).collect();
    let assignment = divide_into_ranges(&columns, &rows, k);
    let mut classes = PrintedClasses::new();
    for row in rows.iter().filter(|&&row| assignment.node[row as usize] == 0) {
        let shown = assignment.range_cells.as_ref().unwrap();
        let text = |a: usize| books[a].printed_text(shown[a][*row as usize]).into_owned();
        let class =
            classes.entry(assignment.class[*row as usize]).or_insert_with(|| (Vec::new(), vec![text(0), text(1)]));
        class.0.push(*row);
    }
    classes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn treatment_divisions_are_accepted(
        rows in prop::collection::vec((-3i64..40, 0usize..7), 0..24), k in 1usize..4, rare in 0u8..3, moved in 0usize..24,
    ) {
        let plain = |(age, device): (i64, usize)| if rare == 0 { (age, device) } else { (age.max(0) / 4 * 4, device % 4) };
        let rows: Vec<(i64, usize)> = rows.into_iter().map(plain).collect();
        let (columns, books) = coded(&rows);
        let subjects: Vec<u64> = (1u64..).take(rows.len()).collect();
        let mut classes = divided(&columns, &books, &subjects, k);
        prop_assert_eq!(verdict(&classes, &columns, &books), Ok(()));
        prop_assert!(nobody_is_finer(&classes, &columns, &books));
        let keys: Vec<u128> = classes.keys().copied().collect();
        if keys.len() > 1 {
            let (from, to) = (keys[moved % keys.len()], keys[(moved + 1) % keys.len()]);
            let row = classes.get_mut(&from).and_then(|(rows, _)| rows.pop());
            if let Some((rows, _)) = classes.get_mut(&to) {
                rows.extend(row);
            }
            classes.retain(|_, (rows, _)| !rows.is_empty());
            let verdict = verdict(&classes, &columns, &books);
            prop_assert!(verdict.is_err() || nobody_is_finer(&classes, &columns, &books), "{classes:?}");
        }
    }
}

fn verdict(classes: &PrintedClasses, columns: &[Vec<Code>], books: &[Codebook]) -> Result<(), Violation> {
    let line = |(class, (rows, cells)): (&u128, &'_ (Vec<u32>, Vec<String>))| (*class, rows.clone(), cells.clone());
    let lines: Vec<(u128, Vec<u32>, Vec<String>)> = classes.iter().map(line).collect();
    let lines: Vec<RangeLine<'_>> =
        lines.iter().map(|(class, rows, cells)| RangeLine { class: *class, cells: cells.clone(), rows }).collect();
    check_ranges(&lines, &[0, 1], columns, books)
}

/// No class covers a row of a coarser class.
fn nobody_is_finer(classes: &PrintedClasses, columns: &[Vec<Code>], books: &[Codebook]) -> bool {
    let covered = |attribute: usize, text: &str| -> BTreeSet<Code> {
        let cell = books[attribute].find_cell(text).or_else(|| books[attribute].find_range(text)).unwrap();
        let codes = 0..books[attribute].codes() as Code;
        codes.filter(|&code| text == r#""*""# || books[attribute].covers(cell, code)).collect()
    };
    let sets: BTreeMap<u128, Vec<BTreeSet<Code>>> =
        classes.iter().map(|(class, (_, cells))| (*class, (0..2).map(|a| covered(a, &cells[a])).collect())).collect();
    classes.iter().all(|(class, (rows, _))| {
        let finer = |(other, of_other): &(&u128, &Vec<BTreeSet<Code>>)| {
            *other != class && of_other.iter().zip(&sets[class]).all(|(fine, wide)| fine.is_subset(wide))
        };
        sets.iter()
            .filter(finer)
            .all(|(_, fine)| rows.iter().all(|&row| !(0..2).all(|a| fine[a].contains(&columns[a][row as usize]))))
    })
}

/// Tries every bound.
fn divides(boxes: &[Vec<CellExtent>]) -> bool {
    boxes.len() < 2
        || (0..2).any(|at| {
            (0..9).any(|bound| {
                let (below, above): (Vec<Vec<CellExtent>>, Vec<Vec<CellExtent>>) =
                    boxes.iter().cloned().partition(|extents| extents[at].1 < bound);
                let clean = above.iter().all(|extents| extents[at].0 >= bound);
                clean && !below.is_empty() && !above.is_empty() && divides(&below) && divides(&above)
            })
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn separable_matches_brute_force_cuts(
        boxes in prop::collection::vec(prop::collection::vec((0i128..6, 0i128..3), 2), 1..6),
    ) {
        let boxes: Vec<Vec<CellExtent>> =
            boxes.into_iter().map(|sides| sides.into_iter().map(|(low, wide)| (low, low + wide)).collect()).collect();
        let classes: Vec<RangeClass> = boxes.iter().map(|extents| RangeClass { extents: extents.clone(), rows: Vec::new() }).collect();
        let views = [RangeAttribute { column: &[], keys: Vec::new() }, RangeAttribute { column: &[], keys: Vec::new() }];
        prop_assert_eq!(separable(&classes, &views), divides(&boxes));
    }
}

#[test]
fn pinwheel_of_boxes_is_refused() {
    let boxes: [[CellExtent; 2]; 5] =
        [[(0, 1), (0, 0)], [(2, 2), (0, 1)], [(1, 2), (2, 2)], [(0, 0), (1, 2)], [(1, 1), (1, 1)]];
    let classes = |boxes: &[[CellExtent; 2]]| -> Vec<RangeClass> {
        boxes.iter().map(|extents| RangeClass { extents: extents.to_vec(), rows: Vec::new() }).collect()
    };
    let views = [RangeAttribute { column: &[], keys: Vec::new() }, RangeAttribute { column: &[], keys: Vec::new() }];
    assert!(!separable(&classes(&boxes), &views), "no cut makes a pinwheel");
    assert!(separable(&classes(&boxes[..3]), &views));
}

use super::*;
use crate::evaluation::attack::stage::{SCHEMA, Stage, promised, record};
use proptest::prelude::*;
use rand::SeedableRng;

/// Ten people in one batch whose lines leave sorted: by `a` in one group and by `b` in the other, at these levels.
fn found(values: &[(usize, usize)], levels: &'static [usize]) -> Vec<Yield> {
    let records: String = (0..).zip(values).map(|(row, &(a, b))| record(row, a, b, 30, "flu")).collect();
    let sorted = |key: &dyn Fn(usize) -> usize| -> Vec<(u32, u64, &'static [usize])> {
        let mut rows: Vec<usize> = (0..values.len()).collect();
        rows.sort_by_key(|&row| if levels == [0] { key(row) } else { 0 });
        rows.into_iter().map(|row| (row as u32, 1, levels)).collect()
    };
    let stage = Stage::new(SCHEMA, &records).group(&[1], &[], &sorted(&|row| values[row].0)).group(
        &[2],
        &[],
        &sorted(&|row| values[row].1),
    );
    let (release, effort) = (stage.release(promised(5)), Effort { targets: 10, known: 1, seed: 0 });
    let known = release.known();
    let meetings = meetings(&known, effort, &mut ChaCha8Rng::seed_from_u64(0));
    run(&release, &meetings)
}

#[test]
fn values_in_the_same_order_are_joined_and_lines_that_say_the_same_are_not() {
    let alike: Vec<(usize, usize)> = (0..10).map(|n| (n, n)).collect();
    assert_eq!(found(&alike, &[0])[0].rate, 1.0);
    // All stars: whatever order the lineage tells them in, a reader of the files sees none.
    let starred = &found(&alike, &[9])[0];
    assert!((starred.rate - 0.1).abs() < 1e-12 && (starred.chance - 0.1).abs() < 1e-12 && !starred.is_above());
}

/// Every order of `rows` in which those of equal value stay together, ascending.
fn orders(rows: &[usize], value: &dyn Fn(usize) -> usize) -> Vec<Vec<usize>> {
    let Some(&first) = rows.iter().min_by_key(|&&row| value(row)) else { return vec![Vec::new()] };
    let next = rows.iter().filter(|&&row| value(row) == value(first));
    next.flat_map(|&row| {
        let rest: Vec<usize> = rows.iter().copied().filter(|other| *other != row).collect();
        orders(&rest, value).into_iter().map(move |order| [vec![row], order].concat())
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// The mean over every order that a reader of the files cannot tell from another.
    #[test]
    fn joining_by_order_is_the_mean_over_what_nobody_sees(values in prop::collection::vec((0usize..3, 0usize..3), 1..6)) {
        let rows: Vec<usize> = (0..values.len()).collect();
        let (left, right) = (orders(&rows, &|row| values[row].0), orders(&rows, &|row| values[row].1));
        let hits = left.iter().flat_map(|l| right.iter().map(move |r| l.iter().zip(r).filter(|(a, b)| a == b).count()));
        let mean = hits.sum::<usize>() as f64 / (left.len() * right.len() * rows.len()) as f64;
        prop_assert!((found(&values, &[0])[0].rate - mean).abs() < 1e-9);
    }
}

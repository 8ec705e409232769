use super::*;
use crate::evaluation::attack::stage::{SCHEMA, Stage, promised, record};
use rand::SeedableRng;

#[test]
fn a_batch_shows_less_than_all_of_them_and_invented_people_are_taken_out() {
    let records: String = (0..6).map(|person| record(person, 0, 0, 30, "flu")).collect();
    let lines: Vec<(u32, u64, &[usize])> = (0..6).map(|row| (row, u64::from(row / 2), &[0][..])).collect();
    let stage = Stage::new(SCHEMA, &records).group(&[1], &[], &lines);
    let mut promises = promised(5);
    promises.colluders = 2;
    let effort = Effort { targets: 100, known: 1, seed: 0 };
    let found = run(&stage.release(promises), effort, &mut ChaCha8Rng::seed_from_u64(0));
    assert_eq!(found[0].rate, 0.5, "two a batch");
    // 2, 4 and 6 people by then, two of them invented.
    assert!((found[1].rate - (1.0 + 0.5 + 0.25) / 3.0).abs() < 1e-12, "{found:?}");
    let none = run(&stage.release(promised(2)), effort, &mut ChaCha8Rng::seed_from_u64(0));
    assert!(none.len() == 1 && !none[0].is_above());
}

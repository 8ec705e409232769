use super::*;
use crate::evaluation::attack::stage::{SCHEMA, Stage, promised, record};
use rand::SeedableRng;

#[test]
fn a_batch_shows_less_than_all_of_them_and_invented_people_are_taken_out() {
    let records: String = (0..6).map(|person| record(person, 0, 0, 30, "flu")).collect();
    let lines: Vec<(u32, u64, &[usize])> = (0..6).map(|row| (row, u64::from(row / 3), &[0][..])).collect();
    let stage = Stage::new(SCHEMA, &records).group(&[1], &[], &lines);
    let mut promises = promised(5);
    promises.colluders = 2;
    let effort = Effort { targets: 100, known: 1, seed: 0 };
    let found = run(&stage.release(promises), effort, &mut ChaCha8Rng::seed_from_u64(0));
    assert!((found[0].rate - 1.0 / 3.0).abs() < 1e-12, "three a batch: {found:?}");
    assert_eq!(found[1].rate, 1.0, "two of them invented");
    let none = run(&stage.release(promised(3)), effort, &mut ChaCha8Rng::seed_from_u64(0));
    assert!(none.len() == 1 && !none[0].is_above());
}

use super::*;
use crate::evaluation::attack::joining::meetings;
use crate::evaluation::attack::stage::{SCHEMA, Stage, promised, record};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Twenty batches of eight people whose two values say each other, at the given levels.
fn found(levels: &'static [usize]) -> Yield {
    let (mut records, mut lines) = (String::new(), Vec::new());
    for row in 0..160_u32 {
        let value = row as usize % 8;
        records += &record(row as usize, value, (value * 3) % 8, 30, "flu");
        lines.push((row, u64::from(row / 8), levels));
    }
    let stage = Stage::new(SCHEMA, &records).group(&[1], &[], &lines).group(&[2], &[], &lines);
    let (release, effort) = (stage.release(promised(5)), Effort { targets: 200, known: 1, seed: 0 });
    let known = release.known();
    let meetings = meetings(&known, effort, &mut ChaCha8Rng::seed_from_u64(0));
    run(&release, &meetings, effort).remove(0)
}

#[test]
fn values_that_say_each_other_are_joined_and_stars_are_not() {
    let naive = found(&[0]);
    assert_eq!((naive.rate, naive.chance), (1.0, 0.125));
    assert!(naive.is_above());
    let hidden = found(&[9]);
    assert_eq!((hidden.rate, hidden.is_above()), (0.125, false));
}

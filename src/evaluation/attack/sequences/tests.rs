use super::*;
use crate::evaluation::attack::stage::{SCHEMA, Stage, promised, record};
use rand::SeedableRng;

/// Ten people at eight moments, with ages that name the person and the moment, at a level.
fn found(level: &'static [usize]) -> Vec<Yield> {
    let (mut records, mut lines) = (String::new(), Vec::new());
    for row in 0..80_u32 {
        let (person, batch) = (row % 10, row / 10);
        records += &record(person as usize, 0, 0, 30 + (person * 3 + batch) as usize % 10, "flu");
        lines.push((row, u64::from(batch), level));
    }
    let stage = Stage::new(SCHEMA, &records).group(&[3], &[], &lines);
    run(&stage.release(promised(5)), Effort { targets: 100, known: 1, seed: 0 }, &mut ChaCha8Rng::seed_from_u64(0))
}

#[test]
fn exact_values_are_followed_and_crowds_are_not() {
    let naive = found(&[0]);
    assert_eq!((naive[0].rate, naive[1].rate, naive[0].trials), (1.0, 1.0, 10));
    assert!(naive[0].is_above());
    let coarse = found(&[1]);
    assert!((coarse[0].rate - 1e-4).abs() < 1e-12 && (coarse[1].rate - 0.1).abs() < 1e-12, "{coarse:?}");
    assert!(!coarse[0].is_above());
}

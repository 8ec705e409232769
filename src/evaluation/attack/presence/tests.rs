use super::*;
use crate::evaluation::attack::stage::{SCHEMA, Stage, promised, record};
use rand::{Rng, SeedableRng};

/// 100 people with a class of their own who send in one batch of ten; what leaves, leaves then, or with `delayed` any time later.
fn found(delayed: bool) -> Yield {
    let mut dice = ChaCha8Rng::seed_from_u64(3);
    let (mut records, mut lines, mut now) = (String::new(), Vec::new(), Vec::new());
    let mut row = 0;
    for batch in 0..200_u64 {
        for person in (0..100).filter(|_| dice.random_bool(0.1)).collect::<Vec<_>>() {
            records += &record(person, person, row as usize % 5, 30, "flu");
            lines.push((row, if delayed { dice.random_range(0..200) } else { batch }, &[0][..]));
            now.push((row, batch, &[0][..]));
            row += 1;
        }
    }
    let stage = Stage::new(SCHEMA, &records).group(&[1], &[], &lines).group(&[2], &[], &now);
    run(&stage.release(promised(5)), 100, &mut dice).remove(0)
}

#[test]
fn known_moments_find_a_class_unless_lines_wait() {
    let yielded = found(false);
    assert!(yielded.rate > 0.9 && yielded.chance < 0.1 && yielded.is_above(), "{yielded:?}");
    let yielded = found(true);
    assert!(yielded.rate < 0.2 && !yielded.is_above(), "{yielded:?}");
}

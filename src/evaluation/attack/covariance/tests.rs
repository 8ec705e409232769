use super::*;
use crate::evaluation::attack::stage::{SCHEMA, Stage, promised, record};
use rand::{Rng, SeedableRng};

/// 150 people with a label of their own in each of two groups, who send in one batch of ten. With `delayed`, what leaves of the second
/// group leaves in some other batch.
fn rate(delayed: bool) -> Yield {
    let mut dice = ChaCha8Rng::seed_from_u64(7);
    let (mut records, mut one, mut other) = (String::new(), Vec::new(), Vec::new());
    let mut row = 0;
    for batch in 0..120_u64 {
        for person in (0..150).filter(|_| dice.random_bool(0.1)).collect::<Vec<_>>() {
            records += &record(person, person, (person * 7 + 3) % 150, 30, "flu");
            one.push((row, batch, &[0][..]));
            other.push((row, if delayed { dice.random_range(0..120) } else { batch }, &[0][..]));
            row += 1;
        }
    }
    let stage = Stage::new(SCHEMA, &records).group(&[1], &[], &one).group(&[2], &[], &other);
    run(&stage.release(promised(5)), &mut dice).remove(0)
}

#[test]
fn labels_that_come_together_are_joined_and_delayed_ones_are_not() {
    let found = rate(false);
    assert!(found.rate > 0.9 && found.chance < 0.2 && found.is_above(), "{found:?}");
    let found = rate(true);
    assert!(found.rate < 0.2 && !found.is_above(), "{found:?}");
}

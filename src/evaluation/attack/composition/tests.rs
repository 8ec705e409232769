use super::*;
use crate::evaluation::attack::stage::{SCHEMA, Stage, promised, record};
use rand::SeedableRng;

/// Sixty people with one of ten illnesses that stay; in each batch six of them, drawn, are one class.
fn found() -> Vec<Yield> {
    let mut dice = ChaCha8Rng::seed_from_u64(5);
    let (mut records, mut lines, mut row) = (String::new(), Vec::new(), 0);
    let mut people: Vec<usize> = (0..60).collect();
    for batch in 0..120_u64 {
        people.shuffle(&mut dice);
        for &person in &people[..6] {
            records += &record(person, 0, 0, 30, &format!("i{}", person % 10));
            lines.push((row, batch, &[0, 0][..]));
            row += 1;
        }
    }
    let stage = Stage::new(SCHEMA, &records).group(&[1], &[4], &lines);
    run(&stage.release(promised(5)), Effort { targets: 60, known: 1, seed: 0 }, &mut dice)
}

#[test]
fn several_releases_leave_one_value_where_one_leaves_many() {
    let found = found();
    let (single, all) = (&found[0], &found[1]);
    assert!(single.rate < 0.5 && all.rate > 0.9 && all.chance < 0.3, "{found:?}");
    assert!(!all.is_above(), "measured only");
}

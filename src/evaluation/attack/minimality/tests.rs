use super::*;
use crate::evaluation::attack::stage::{SCHEMA, Stage, promised, record};
use rand::SeedableRng;

/// Forty people with the flu, of whom `covered` hide, and four with a rare illness who do.
fn found(covered: u32) -> Vec<Yield> {
    let mut records = String::new();
    let mut lines: Vec<(u32, u64, &[usize])> = Vec::new();
    for row in 0..44 {
        let rare = row >= 40;
        records += &record(row as usize, 0, 0, 30, if rare { "rare" } else { "flu" });
        lines.push((row, 1, if rare || row < covered { &[0, 9] } else { &[0, 0] }));
    }
    let stage = Stage::new(SCHEMA, &records).group(&[1], &[4], &lines);
    run(&stage.release(promised(5)), Effort { targets: 100, known: 1, seed: 0 }, &mut ChaCha8Rng::seed_from_u64(0))
}

#[test]
fn stars_for_rare_values_name_them_unless_others_show_them_too() {
    let naive = found(0);
    assert_eq!((naive[0].rate, naive[1].rate), (1.0, 0.25));
    assert!(naive[0].is_above(), "{:?}", naive[0]);
    let covers = found(6);
    assert!((covers[0].rate - 0.4).abs() < 1e-12 && (covers[1].rate - 0.1).abs() < 1e-12, "{covers:?}");
    assert!(!covers[0].is_above() && !covers[1].is_above());
}

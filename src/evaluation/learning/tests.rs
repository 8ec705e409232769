use super::*;
use crate::evaluation::attack::stage::{SCHEMA, Stage, record};

/// 400 people whose illness is told by their age, and lines with the age at a level.
fn learned(level: usize) -> Learning {
    let records: String = (0..400_usize)
        .map(|row| record(row, row % 3, 0, row * 37 % 100, if row * 37 % 100 < 50 { "young" } else { "old" }))
        .collect();
    let levels = [level, 0];
    let lines: Vec<(u32, u64, &[usize])> = (0..400).map(|row| (row, 0, &levels[..])).collect();
    let stage = Stage::new(SCHEMA, &records).group(&[3], &[4], &lines).group(&[1], &[], &[]);
    let (original, facts, groups) = stage.parts();
    assert!(learn(original, facts, groups, 0, 1).is_none(), "the person never leaves");
    learn(original, facts, groups, 4, 1).unwrap()
}

#[test]
fn what_a_line_tells_is_learned_and_what_it_hides_is_not() {
    for level in [0, 1, 2] {
        let found = learned(level);
        let (before, after) = (found.before.unwrap(), found.after.unwrap());
        assert!(before.accuracy > 0.97 && before.auc > 0.99, "{before:?}");
        assert!(after.accuracy > 0.9 && after.auc > 0.98, "{level}: {after:?}");
        assert_eq!((found.tested, after.rows, before.rows), (120, 280, 280), "nobody is on both sides");
        assert_eq!((found.features, found.classes, found.leaks), (vec!["age".to_owned()], 2, false));
    }
    let hidden = learned(9).after.unwrap();
    assert!((hidden.auc - 0.5).abs() < 0.1 || hidden.accuracy < 0.7, "{hidden:?}");
}

#[test]
fn the_same_seed_tells_the_same() {
    let text = |of: Learning| serde_json::to_string(&of).unwrap();
    assert_eq!(text(learned(1)), text(learned(1)));
}

use super::*;
use crate::attack::test_release::{SCHEMA, TestRelease, guarantees_for, record_line};

/// Releases five subjects of ages 30 and 31 as a decade; then ten exactly, and ages `last` and 31 as a decade.
fn stage(last: usize) -> TestRelease {
    let mut records = String::new();
    let mut lines: Vec<(u32, u64, &[usize])> = Vec::new();
    let ages = [30, 30, 30, 31, 31, 30, 30, 30, 30, 30, 31, 31, 31, 31, 31, last, 31];
    for (row, age) in ages.into_iter().enumerate() {
        records += &record_line(row, 0, 0, age, "flu");
        let (batch, level): (u64, &[usize]) = match row {
            0..5 => (0, &[1]),
            5..15 => (1, &[0]),
            _ => (1, &[1]),
        };
        lines.push((row as u32, batch, level));
    }
    TestRelease::new(SCHEMA, &records).with_group(&[3], &[], &lines)
}

#[test]
fn exclusion_removes_subjects_of_finer_class() {
    let stage = stage(32);
    let release = stage.release(guarantees_for(5));
    let known = release.linked_groups();
    let view = GroupClasses::from_group(&release, &known[0]);
    assert_eq!(
        view.narrowed_probabilities(&[0, 1, 2, 3, 4]),
        vec![(0.2, 0.2); 5],
        "nothing left exactly in this batch"
    );
    assert_eq!(
        view.narrowed_probabilities(&[15, 16]),
        [(1.0, 0.5), (0.0, 0.5)],
        "the other is struck out, and is not found"
    );
    let yielded = run(&release).remove(0);
    assert_eq!(yielded.trials, 7);
    assert!((yielded.rate - (5.0 * 0.2 + 1.0) / 7.0).abs() < 1e-12 && yielded.is_above(), "{yielded:?}");
}

/// The mean over a class equals chance for any exclusion.
#[test]
fn exclusion_finds_single_remaining_subject() {
    let mut records = String::new();
    let mut lines: Vec<(u32, u64, &[usize])> = Vec::new();
    for row in 0..1_000 {
        // Per batch: ten exact, ten as a decade.
        let age = if row % 20 < 10 { 30 } else { 31 + usize::from(row > 15) };
        records += &record_line(row, 0, 0, age, "flu");
        let level: &[usize] = if row % 20 < 10 { &[0] } else { &[1] };
        lines.push((row as u32, row as u64 / 20, level));
    }
    let sound = TestRelease::new(SCHEMA, &records).with_group(&[3], &[], &lines);
    let found = run(&sound.release(guarantees_for(5))).remove(0);
    assert!(!found.is_above(), "{found:?}");
    // Six of a decade would be released exactly.
    let spoiled = records.replacen("\"age\":31", "\"age\":30", 6);
    let found =
        run(&TestRelease::new(SCHEMA, &spoiled).with_group(&[3], &[], &lines).release(guarantees_for(5))).remove(0);
    assert!(found.is_above() && (found.rate - found.chance).abs() < 1e-3, "{found:?}");
}

#[test]
fn finer_class_search_matches_full_scan() {
    for last in [29, 32, 30, 55] {
        let stage = stage(last);
        let release = stage.release(guarantees_for(5));
        let known = release.linked_groups();
        let view = GroupClasses::from_group(&release, &known[0]);
        for line in 0..17 {
            let class = known[0].class(line);
            for member in 0..17 {
                let codes = view.codes(member);
                let facts = &release.facts[3];
                if !facts.holds(class[0], codes[0]) {
                    continue;
                }
                let finer = |shown: &Vec<CellId>| {
                    let (fine, coarse) = (&facts.get(shown[0]).codes, &facts.get(class[0]).codes);
                    *shown != class && facts.holds(shown[0], codes[0]) && fine.iter().all(|code| coarse.contains(code))
                };
                let twin = view.shown.iter().any(|(shown, batches)| finer(shown) && batches.contains(&1));
                assert_eq!(view.fits_finer_class(&codes, &class, 1), twin, "{line} {member}");
            }
        }
    }
}

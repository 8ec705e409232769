use super::attack_input::AttackEffort;
use super::test_release::{SCHEMA, TestRelease, guarantees_for, record_line};
use super::trials::AttackYield;
use super::{
    attendance, batch_classes, composition, covariance, downcoding, joining, minimality, presence, sequences, values,
};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn effort(targets: usize) -> AttackEffort {
    AttackEffort { targets, known_attributes: 1, seed: 0 }
}

fn dice(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Sixty subjects, ten illnesses; six random subjects form a class per batch.
fn composition() -> Vec<AttackYield> {
    let mut dice = dice(5);
    let (mut records, mut lines, mut row) = (String::new(), Vec::new(), 0);
    let mut people: Vec<usize> = (0..60).collect();
    for batch in 0..120_u64 {
        people.shuffle(&mut dice);
        for &person in &people[..6] {
            records += &record_line(person, 0, 0, 30, &format!("i{}", person % 10));
            lines.push((row, batch, &[0, 0][..]));
            row += 1;
        }
    }
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[1], &[4], &lines);
    composition::run(&stage.release(guarantees_for(5)), effort(60), &mut dice)
}

#[test]
fn composition_of_releases_reveals_constant_value() {
    let found = composition();
    let (single, all) = (&found[0], &found[1]);
    assert!(single.rate < 0.5 && all.rate > 0.9 && all.chance < 0.3, "{found:?}");
    assert!(!all.is_above(), "measured only");
}

/// 150 subjects with a unique label per group send in one of ten batches; `delayed` moves lines of the second group.
fn covariance(delayed: bool) -> AttackYield {
    let mut dice = dice(7);
    let (mut records, mut one, mut other) = (String::new(), Vec::new(), Vec::new());
    let mut row = 0;
    for batch in 0..120_u64 {
        for person in (0..150).filter(|_| dice.random_bool(0.1)).collect::<Vec<_>>() {
            records += &record_line(person, person, (person * 7 + 3) % 150, 30, "flu");
            one.push((row, batch, &[0][..]));
            other.push((row, if delayed { dice.random_range(0..120) } else { batch }, &[0][..]));
            row += 1;
        }
    }
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[1], &[], &one).with_group(&[2], &[], &other);
    covariance::run(&stage.release(guarantees_for(5)), &mut dice).remove(0)
}

#[test]
fn covariance_joins_labels_unless_release_is_delayed() {
    let found = covariance(false);
    assert!(found.rate > 0.9 && found.chance < 0.2 && found.is_above(), "{found:?}");
    let found = covariance(true);
    assert!(found.rate < 0.2 && !found.is_above(), "{found:?}");
}

#[test]
fn class_sizes_exclude_other_batches_and_invented_subjects() {
    let records: String = (0..6).map(|person| record_line(person, 0, 0, 30, "flu")).collect();
    let lines: Vec<(u32, u64, &[usize])> = (0..6).map(|row| (row, u64::from(row / 3), &[0][..])).collect();
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[1], &[], &lines);
    let mut promises = guarantees_for(5);
    promises.colluders = 2;
    let found = batch_classes::run(&stage.release(promises));
    assert!((found[0].rate - 1.0 / 3.0).abs() < 1e-12, "three a batch: {found:?}");
    assert_eq!(found[1].rate, 1.0, "two of them invented");
    let none = batch_classes::run(&stage.release(guarantees_for(3)));
    assert!(none.len() == 1 && !none[0].is_above());
}

/// Five subjects each of age 31 and 32 are released exactly, then `each` of both as a decade.
fn downcoding(each: usize) -> f64 {
    let mut records = String::new();
    let mut lines: Vec<(u32, u64, &[usize])> = Vec::new();
    for row in 0..10 + 2 * each {
        records += &record_line(row, 0, 0, 31 + row % 2, "flu");
        lines.push((row as u32, u64::from(row >= 10), if row < 10 { &[0] } else { &[1] }));
    }
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[3], &[], &lines);
    downcoding::run(&stage.release(guarantees_for(5))).remove(0).rate
}

#[test]
fn downcoding_splits_class_near_twice_the_crowd() {
    // At most four per age: four of each.
    assert!((downcoding(4) - 8.0 / 18.0).abs() < 1e-12, "{}", downcoding(4));
    // Six subjects: at least two of each.
    assert!((downcoding(3) - 4.0 / 16.0).abs() < 1e-12, "{}", downcoding(3));
    // Four subjects can share an age.
    assert_eq!(downcoding(2), 0.0);
}

/// Lines are sorted by `a` in one group and by `b` in the other.
fn joining(values: &[(usize, usize)], levels: &'static [usize]) -> Vec<AttackYield> {
    let records: String = (0..).zip(values).map(|(row, &(a, b))| record_line(row, a, b, 30, "flu")).collect();
    let sorted = |key: &dyn Fn(usize) -> usize| -> Vec<(u32, u64, &'static [usize])> {
        let mut rows: Vec<usize> = (0..values.len()).collect();
        rows.sort_by_key(|&row| if levels == [0] { key(row) } else { 0 });
        rows.into_iter().map(|row| (row as u32, 1, levels)).collect()
    };
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[1], &[], &sorted(&|row| values[row].0)).with_group(
        &[2],
        &[],
        &sorted(&|row| values[row].1),
    );
    let (release, effort) = (stage.release(guarantees_for(5)), effort(10));
    let known = release.linked_groups();
    let meetings = joining::draw_group_pairs(&known, effort, &mut dice(0));
    joining::run(&release, &meetings)
}

#[test]
fn joining_by_order_needs_distinct_lines() {
    let alike: Vec<(usize, usize)> = (0..10).map(|n| (n, n)).collect();
    assert_eq!(joining(&alike, &[0])[0].rate, 1.0);
    // Lineage order is not visible.
    let starred = &joining(&alike, &[9])[0];
    assert!((starred.rate - 0.1).abs() < 1e-12 && (starred.chance - 0.1).abs() < 1e-12 && !starred.is_above());
}

/// Ascending by value.
fn orders(rows: &[usize], value: &dyn Fn(usize) -> usize) -> Vec<Vec<usize>> {
    let Some(&first) = rows.iter().min_by_key(|&&row| value(row)) else { return vec![Vec::new()] };
    let next = rows.iter().filter(|&&row| value(row) == value(first));
    next.flat_map(|&row| {
        let rest: Vec<usize> = rows.iter().copied().filter(|other| *other != row).collect();
        orders(&rest, value).into_iter().map(move |order| [vec![row], order].concat())
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn joining_by_order_averages_over_equal_lines(values in prop::collection::vec((0usize..3, 0usize..3), 1..6)) {
        let rows: Vec<usize> = (0..values.len()).collect();
        let (left, right) = (orders(&rows, &|row| values[row].0), orders(&rows, &|row| values[row].1));
        let hits = left.iter().flat_map(|l| right.iter().map(move |r| l.iter().zip(r).filter(|(a, b)| a == b).count()));
        let mean = hits.sum::<usize>() as f64 / (left.len() * right.len() * rows.len()) as f64;
        prop_assert!((joining(&values, &[0])[0].rate - mean).abs() < 1e-9);
    }
}

/// Forty subjects have flu, `covered` of them suppressed; four have a suppressed illness.
fn minimality(covered: u32) -> Vec<AttackYield> {
    let mut records = String::new();
    let mut lines: Vec<(u32, u64, &[usize])> = Vec::new();
    for row in 0..44 {
        let rare = row >= 40;
        records += &record_line(row as usize, 0, 0, 30, if rare { "rare" } else { "flu" });
        lines.push((row, 1, if rare || row < covered { &[0, 9] } else { &[0, 0] }));
    }
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[1], &[4], &lines);
    minimality::run(&stage.release(guarantees_for(5)), effort(100), &mut dice(0))
}

#[test]
fn minimality_finds_suppressed_rare_values_without_cover() {
    let naive = minimality(0);
    assert_eq!((naive[0].rate, naive[2].rate), (1.0, 0.25));
    assert!(naive[0].is_above(), "{:?}", naive[0]);
    let covers = minimality(6);
    assert!((covers[0].rate - 0.4).abs() < 1e-12 && (covers[2].rate - 0.1).abs() < 1e-12, "{covers:?}");
    assert!(covers.iter().all(|found| !found.is_above()));
}

/// 100 subjects with unique classes send in one of ten batches.
fn presence(delayed: bool) -> AttackYield {
    let mut dice = dice(3);
    let (mut records, mut lines, mut now) = (String::new(), Vec::new(), Vec::new());
    let mut row = 0;
    for batch in 0..200_u64 {
        for person in (0..100).filter(|_| dice.random_bool(0.1)).collect::<Vec<_>>() {
            records += &record_line(person, person, row as usize % 5, 30, "flu");
            lines.push((row, if delayed { dice.random_range(0..200) } else { batch }, &[0][..]));
            now.push((row, batch, &[0][..]));
            row += 1;
        }
    }
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[1], &[], &lines).with_group(&[2], &[], &now);
    presence::run(&stage.release(guarantees_for(5)), 100, &mut dice).remove(0)
}

#[test]
fn presence_finds_class_unless_release_is_delayed() {
    let yielded = presence(false);
    assert!(yielded.rate > 0.9 && yielded.chance < 0.1 && yielded.is_above(), "{yielded:?}");
    let yielded = presence(true);
    assert!(yielded.rate < 0.2 && !yielded.is_above(), "{yielded:?}");
}

/// Ages identify subject and moment.
fn sequences(level: &'static [usize]) -> Vec<AttackYield> {
    let (mut records, mut lines) = (String::new(), Vec::new());
    for row in 0..80_u32 {
        let (person, batch) = (row % 10, row / 10);
        records += &record_line(person as usize, 0, 0, 30 + (person * 3 + batch) as usize % 10, "flu");
        lines.push((row, u64::from(batch), level));
    }
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[3], &[], &lines);
    sequences::run(&stage.release(guarantees_for(5)), effort(100), &mut dice(0))
}

#[test]
fn sequences_follow_exact_values_only() {
    let naive = sequences(&[0]);
    assert_eq!((naive[0].rate, naive[1].rate, naive[0].trials), (1.0, 1.0, 10));
    assert!(naive[0].is_above());
    let coarse = sequences(&[1]);
    assert!((coarse[0].rate - 1e-4).abs() < 1e-12 && (coarse[1].rate - 0.1).abs() < 1e-12, "{coarse:?}");
    assert!(!coarse[0].is_above());
}

/// Twenty batches of eight subjects with equivalent values.
fn values(levels: &'static [usize]) -> AttackYield {
    let (mut records, mut lines) = (String::new(), Vec::new());
    for row in 0..160_u32 {
        let value = row as usize % 8;
        records += &record_line(row as usize, value, (value * 3) % 8, 30, "flu");
        lines.push((row, u64::from(row / 8), levels));
    }
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[1], &[], &lines).with_group(&[2], &[], &lines);
    let (release, effort) = (stage.release(guarantees_for(5)), effort(200));
    let known = release.linked_groups();
    let meetings = joining::draw_group_pairs(&known, effort, &mut dice(0));
    values::run(&release, &meetings, effort).remove(0)
}

#[test]
fn joining_by_values_needs_visible_values() {
    let naive = values(&[0]);
    assert_eq!((naive.rate, naive.chance), (1.0, 0.125));
    assert!(naive.is_above());
    let hidden = values(&[9]);
    assert_eq!((hidden.rate, hidden.is_above()), (0.125, false));
}

/// The second batch suppresses only the common value.
#[test]
fn minimality_finds_lone_suppressed_common_value() {
    let mut records = String::new();
    let mut lines: Vec<(u32, u64, &[usize])> = Vec::new();
    for row in 0..120_u32 {
        let is_common = row % 2 == 0;
        records += &record_line(row as usize, 0, 0, 30, if is_common { "flu" } else { "cold" });
        lines.push((row, u64::from(row / 60), if row >= 60 && is_common { &[0, 9] } else { &[0, 0] }));
    }
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[1], &[4], &lines);
    let found = minimality::run(&stage.release(guarantees_for(5)), effort(100), &mut dice(0));
    assert_eq!((found[0].rate, found[1].rate), (0.0, 1.0), "{found:?}");
    assert!(!found[0].is_above() && found[1].is_above());
}

/// `place` maps positions to the second group.
fn join_moved(place: &dyn Fn(usize) -> usize) -> Vec<AttackYield> {
    let records: String = (0..300).map(|row| record_line(row, row % 10, row % 10, 30, "flu")).collect();
    let lines = |place: &dyn Fn(usize) -> usize| -> Vec<(u32, u64, &'static [usize])> {
        (0..300).map(|at| ((at / 10 * 10 + place(at % 10)) as u32, at as u64 / 10, &[0][..])).collect()
    };
    let stage =
        TestRelease::new(SCHEMA, &records).with_group(&[1], &[], &lines(&|at| at)).with_group(&[2], &[], &lines(place));
    let (release, effort) = (stage.release(guarantees_for(5)), effort(100));
    let known = release.linked_groups();
    let meetings = joining::draw_group_pairs(&known, effort, &mut dice(0));
    joining::run(&release, &meetings)
}

#[test]
fn joining_by_order_finds_reversed_and_rotated_files() {
    for place in [&(|at: usize| 9 - at) as &dyn Fn(usize) -> usize, &|at| (at + 3) % 10, &|at| (at + 5) % 10, &|at| {
        (12 - at) % 10
    }] {
        let found = join_moved(place);
        assert!(found[0].rate < 0.3 && found[1].rate == 1.0 && found[1].is_above(), "{found:?}");
    }
    // Outside the tried modes.
    let found = join_moved(&|at| at * 3 % 10);
    assert!(found[1].rate < 0.4, "{found:?}");
}

/// Sixty subjects, four illnesses; a third sends per batch.
fn attendance(delayed: bool) -> AttackYield {
    let mut dice = dice(11);
    let (mut records, mut lines, mut now, mut row) = (String::new(), Vec::new(), Vec::new(), 0);
    for batch in 0..150_u64 {
        for person in (0..60).filter(|_| dice.random_bool(0.33)).collect::<Vec<_>>() {
            records += &record_line(person, row as usize % 5, 0, 30, &format!("i{}", person * 7 % 4));
            lines.push((row, if delayed { dice.random_range(0..150) } else { batch }, &[0][..]));
            now.push((row, batch, &[0][..]));
            row += 1;
        }
    }
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[], &[4], &lines).with_group(&[1], &[], &now);
    attendance::run(&stage.release(guarantees_for(5)), 100, &mut dice).remove(0)
}

#[test]
fn attendance_finds_cells_unless_release_is_delayed() {
    let of_group = |found: &AttackYield| found.worst_group.clone().expect("a group");
    let found = attendance(false);
    let worst = of_group(&found);
    assert!(worst.group.contains("illness") && worst.rate > 0.9 && worst.chance < 0.5 && found.is_above(), "{found:?}");
    let found = attendance(true);
    assert!(!found.is_above(), "{found:?}");
}

#[test]
fn yield_shows_raw_group_among_sound_groups() {
    let records: String = (0..100).map(|row| record_line(row, row, 0, 30, "flu")).collect();
    let sound: Vec<(u32, u64, &[usize])> = (0..100).map(|row| (row, 1, &[0][..])).collect();
    let raw: Vec<(u32, u64, &[usize])> = (0..20).map(|row| (row, 1, &[0][..])).collect();
    let mut stage = TestRelease::new(SCHEMA, &records);
    for _ in 0..9 {
        stage = stage.with_group(&[2], &[], &sound);
    }
    let stage = stage.with_group(&[1], &[], &raw);
    let found = batch_classes::run(&stage.release(guarantees_for(5))).remove(0);
    assert!(found.rate < 0.2 && found.is_above() && (found.share_above - 20.0 / 920.0).abs() < 1e-12, "{found:?}");
    assert_eq!(found.worst_group.map(|group| (group.group, group.rate)), Some(("g9".to_owned(), 1.0)));
}

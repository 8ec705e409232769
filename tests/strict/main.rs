//! Strict recoding leaves an observer, who excludes what would have left finer, a crowd of k (docs/threats.md row 11).
#![allow(clippy::unwrap_used, reason = "a test that cannot write its files has failed")]

#[path = "../support/copies.rs"]
#[allow(dead_code, reason = "a part of it is enough here")]
mod copies;
mod observer;
mod restart;
mod stream;

use observer::{Findings, Observer, Rule, Tuple};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::path::Path;
use stream::{Outcome, Register, Settings, Table};
use throng::anonymity::planner::GroupShape;

fn shape(name: &str, quasi: &[usize], sensitive: &[usize]) -> GroupShape {
    GroupShape { name: name.into(), quasi: quasi.to_vec(), sensitive: sensitive.to_vec(), insensitive: vec![] }
}

/// What the observer finds in all spaces, in the batches that the guard between groups did not touch.
fn findings(table: &Table, spaces: &[Vec<usize>], outcome: &Outcome, settings: Settings) -> Findings {
    let rule = match settings {
        Settings { batch_crowd, k, .. } if batch_crowd == k => Rule::Batch,
        Settings { strict: true, .. } => Rule::Strict,
        Settings { strict: false, .. } => Rule::Ladder,
    };
    findings_by(rule, table, spaces, outcome, settings)
}

fn findings_by(rule: Rule, table: &Table, spaces: &[Vec<usize>], outcome: &Outcome, settings: Settings) -> Findings {
    let mut all = Findings::default();
    for (attributes, published) in spaces.iter().zip(&outcome.spaces) {
        let generalize = |raw: &[String], levels: &[u8]| table.generalize(attributes, raw, levels);
        let registered = |class: &Tuple| table.has_candidates(attributes, class);
        let window = u64::from(settings.window);
        let observer = Observer { k: settings.k, rule, window, generalize: &generalize, registered: &registered };
        all.add(observer.watch(published, |batch| !outcome.guarded[batch]));
    }
    all
}

/// Three quasi attributes with flat, shallow and deep hierarchies, and one that stands beside a class.
const SMALL: &str = r#"
    name = "small"
    [[attribute]]
    name = "deep"
    type = "integer"
    hierarchy = { kind = "intervals", min = 0, max = 11, origin = 0, widths = [2, 4] }
    [[attribute]]
    name = "shallow"
    type = "string"
    hierarchy = { kind = "tree", tree = { ab = ["a", "b"], cde = ["c", "d", "e"] } }
    [[attribute]]
    name = "flat"
    type = "string"
    hierarchy = { kind = "tree", tree = ["x", "y", "z"] }
    [[attribute]]
    name = "beside"
    type = "integer"
    role = "sensitive"
    hierarchy = { kind = "intervals", min = 0, max = 7, origin = 0, widths = [2, 4] }
"#;

/// A few batches of a few skewed records; every third stream has few subjects that send much.
fn small_stream(seed: u64, step: u64) -> Vec<(u64, Vec<(u64, Tuple)>)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let people = if seed.is_multiple_of(3) { 8 } else { 1_000_000 };
    let batches = random.random_range(2..9);
    let mut skewed = |n: u32| {
        let draw: f64 = random.random();
        (draw * draw * f64::from(n)) as u32
    };
    let mut stream = Vec::new();
    for batch in 0..batches {
        let rows = 3 + skewed(25);
        let mut row = || {
            let subject = 1 + u64::from(skewed(people));
            let shallow = ["a", "b", "c", "d", "e"][skewed(5) as usize];
            let flat = ["x", "y", "z"][skewed(3) as usize];
            let text = |t: &str| format!("\"{t}\"");
            (subject, vec![skewed(12).to_string(), text(shallow), text(flat), skewed(8).to_string()])
        };
        stream.push((1000 + batch * step, (0..rows).map(|_| row()).collect()));
    }
    stream
}

/// Runs `streams` small streams and adds up what the observer finds.
fn small_streams(shapes: &[GroupShape], spaces: &[Vec<usize>], window: u32, step: u64, strict: bool) -> Findings {
    let mut all = Findings::default();
    for seed in 0..1500 {
        let settings = Settings { k: 2 + (seed % 3) as usize, window, strict, max_hold_batches: 0, batch_crowd: 0 };
        let mut table = Table::new(SMALL);
        let outcome = table.run(shapes, &small_stream(seed, step), settings);
        let found = findings(&table, spaces, &outcome, settings);
        assert!(!strict || found.below_k == 0, "seed {seed}: {found:?}");
        all.add(found);
    }
    all
}

/// Where every class has its crowd in its own batch, nothing released before completes one: the ladder alone leaves nothing to
/// exclude, and verification, which recounts that, lets it pass. In between strict recoding is still asked for.
#[test]
fn a_crowd_in_every_batch_leaves_nothing_to_exclude() {
    let one = (vec![shape("all", &[0, 1, 2], &[3])], vec![vec![0, 1, 2], vec![3]]);
    let two = (vec![shape("one", &[0, 1], &[3]), shape("two", &[2], &[])], vec![vec![0, 1], vec![2], vec![3]]);
    let bare = (vec![shape("all", &[0, 1, 2], &[])], vec![vec![0, 1, 2]]);
    for (shapes, spaces) in [one, two, bare] {
        for (whole, hold) in [(true, 0), (true, 2), (false, 0), (false, 2)] {
            let (mut all, mut ladder) = (Findings::default(), Findings::default());
            for seed in 0..500 {
                let k = 2 + (seed % 3) as usize;
                let batch_crowd = if whole { k } else { k - 1 };
                let settings = Settings { k, window: 1_000_000, strict: true, max_hold_batches: hold, batch_crowd };
                let stream = small_stream(seed, 10);
                let mut table = Table::new(SMALL);
                let outcome = table.run(&shapes, &stream, settings);
                let found = findings(&table, &spaces, &outcome, settings);
                assert_eq!(found.below_k, 0, "seed {seed}: {found:?}");
                all.add(found);
                // The same by the ladder: the same bytes where the batch has the whole crowd, and no class goes on to a
                // coarser one to hide a sensitive cell, as strict recoding does not let it.
                let same = whole && shapes.iter().all(|shape| shape.sensitive.is_empty());
                let settings = Settings { strict: false, ..settings };
                let mut table = Table::new(SMALL);
                let plain = table.run(&shapes, &stream, settings);
                assert!(!same || plain.released == outcome.released, "seed {seed}");
                ladder.add(findings(&table, &spaces, &plain, settings));
            }
            println!("whole {whole}, hold {hold}: {all:?}, ladder {ladder:?}");
            assert!(all.generalized > 500, "much still leaves: {all:?}");
            // The ladder lets a class that cannot hide a sensitive cell go on to a coarser one, which tells of its raw tuples.
            let bare = shapes.iter().all(|shape| shape.sensitive.is_empty());
            assert!(!(whole && bare) || ladder.below_k == 0, "{ladder:?}");
            assert!(whole || ladder.below_k > 0, "the observer finds what there is to find: {ladder:?}");
        }
    }
}

/// A window that never ends, and one that lets go of what is three batches old (longer steps than an eighth of it, so
/// that every release is remembered).
const WINDOWS: [(u32, u64); 2] = [(1_000_000, 200_000), (50, 15)];

#[test]
fn an_observer_of_one_group_is_left_a_crowd() {
    let (shapes, spaces) = ([shape("all", &[0, 1, 2], &[3])], [vec![0, 1, 2], vec![3]]);
    for (window, step) in WINDOWS {
        let ladder = small_streams(&shapes, &spaces, window, step, false);
        let strict = small_streams(&shapes, &spaces, window, step, true);
        println!("window {window}: ladder {ladder:?}, strict {strict:?}");
        assert!(ladder.below_k > ladder.fragments / 200, "the observer finds what there is to find: {ladder:?}");
        assert!(strict.generalized > 10_000, "strict recoding still releases: {strict:?}");
        assert_eq!(strict.below_k, 0);
    }
}

#[test]
fn an_observer_of_several_groups_is_left_a_crowd_in_each() {
    let shapes = [shape("one", &[0, 1], &[3]), shape("two", &[2], &[])];
    let spaces = [vec![0, 1], vec![2], vec![3]];
    let (window, step) = WINDOWS[0];
    let ladder = small_streams(&shapes, &spaces, window, step, false);
    let strict = small_streams(&shapes, &spaces, window, step, true);
    println!("ladder {ladder:?}, strict {strict:?}");
    assert!(ladder.below_k > 100, "the observer finds what there is to find: {ladder:?}");
    assert!(strict.generalized > 5_000, "strict recoding still releases: {strict:?}");
    assert_eq!(strict.below_k, 0);
}

/// What is not released for want of registered people is not excluded either: an observer who knows the register as
/// well is left a crowd, and every class that leaves has its people.
#[test]
fn an_observer_with_a_register_is_left_a_crowd() {
    let (shapes, spaces) = ([shape("all", &[0, 1, 2], &[3])], [vec![0, 1, 2], vec![3]]);
    let run = |with_register: bool, strict: bool| {
        let (mut all, mut poor) = (Findings::default(), 0);
        for seed in 0..1500 {
            let settings =
                Settings { k: 2 + (seed % 3) as usize, window: 1_000_000, strict, max_hold_batches: 0, batch_crowd: 0 };
            let mut table = Table::new(SMALL);
            // Another stream of the same town: some of its people are registered, by two of the attributes.
            let people = small_stream(seed + 5_000, 10).into_iter().flat_map(|(_, rows)| rows).map(|(_, cells)| cells);
            let people: Vec<Tuple> = people.take(25).collect();
            let register = Some(Register { k: 4.min(people.len()), known: vec![0, 1], people });
            if with_register {
                table.register = register;
                let outcome = table.run(&shapes, &small_stream(seed, 10), settings);
                poor += poor_classes(&table, &spaces[0], &outcome);
                all.add(findings(&table, &spaces, &outcome, settings));
            } else {
                let outcome = table.run(&shapes, &small_stream(seed, 10), settings);
                all.add(findings(&table, &spaces, &outcome, settings));
                table.encode(&register.iter().flat_map(|r| &r.people).map(|p| (1, p.clone())).collect::<Vec<_>>());
                table.register = register;
                poor += poor_classes(&table, &spaces[0], &outcome);
            }
        }
        (all, poor)
    };
    let (without, with, strict) = (run(false, true), run(true, false), run(true, true));
    println!("without {without:?}, ladder {with:?}, strict {strict:?}");
    assert!(without.1 > 1_000, "without it classes leave that are too few in the register: {}", without.1);
    assert_eq!((with.1, strict.1), (0, 0));
    assert!(with.0.below_k > with.0.fragments / 200, "the observer finds what there is to find: {with:?}");
    assert!(strict.0.generalized > 5_000, "strict recoding still releases: {strict:?}");
    assert_eq!(strict.0.below_k, 0);
}

/// Fragments of a group that leave in a class of fewer registered people than asked for.
fn poor_classes(table: &Table, space: &[usize], outcome: &Outcome) -> usize {
    let fragments = outcome.spaces[0].iter().flat_map(|batch| &batch.fragments);
    fragments.filter(|fragment| !table.has_candidates(space, &fragment.class)).count()
}

/// Holding takes nobody's crowd away, by either count: what is proposed can be verified (the stream asserts it), and the
/// observer is left a crowd.
#[test]
fn held_records_take_no_crowd_away() {
    let (shapes, spaces) = ([shape("all", &[0, 1, 2], &[3])], [vec![0, 1, 2], vec![3]]);
    let (mut all, mut held) = (Findings::default(), 0);
    for seed in 0..1500 {
        let settings = Settings {
            k: 2 + (seed % 3) as usize,
            window: 1_000_000,
            strict: true,
            max_hold_batches: 2,
            batch_crowd: 0,
        };
        let mut table = Table::new(SMALL);
        let outcome = table.run(&shapes, &small_stream(seed, 10), settings);
        held += outcome.held;
        all.add(findings(&table, &spaces, &outcome, settings));
    }
    println!("held {held}, {all:?}");
    assert!(held > 10_000, "records wait: {held}");
    assert!(all.generalized > 10_000, "and strict recoding still releases: {all:?}");
    assert_eq!(all.below_k, 0);
}

/// The example of docs/methods.md §11.4: where 30 and 31 have support, [30–32] means 32.
#[test]
fn a_class_of_which_only_one_value_is_left_needs_a_crowd_of_that_value() {
    let schema = r#"
        name = "ages"
        [[attribute]]
        name = "age"
        type = "integer"
        hierarchy = { kind = "intervals", min = 0, max = 59, origin = 0, widths = [3, 15] }
    "#;
    let ages = |from: u64, ages: &[u32]| -> Vec<(u64, Tuple)> {
        (from..).zip(ages).map(|(subject, age)| (subject, vec![age.to_string()])).collect()
    };
    let batches =
        vec![(10, ages(1, &[30, 30, 30, 31, 31, 32])), (20, ages(11, &[31, 31, 31])), (30, ages(21, &[30, 31, 32]))];
    let shapes = [shape("all", &[0], &[])];
    let run = |strict: bool| {
        let settings = Settings { k: 3, window: 1000, strict, max_hold_batches: 0, batch_crowd: 0 };
        let mut table = Table::new(schema);
        let outcome = table.run(&shapes, &batches, settings);
        let classes = |batch: usize, age: &str| -> Vec<String> {
            let fragments = &outcome.spaces[0][batch].fragments;
            fragments.iter().filter(|f| f.raw[0] == age).map(|f| f.class[0].clone()).collect()
        };
        (classes(2, "32"), findings(&table, &[vec![0]], &outcome, settings))
    };
    let (ladder, found) = run(false);
    assert_eq!(ladder.len(), 1, "the ladder releases the lone 32 in a class of three");
    assert_eq!(found.pinned_below_k, 1, "and it can only be 32: {found:?}");
    let (strict, found) = run(true);
    assert_eq!((strict.len(), found.below_k), (0, 0), "strict recoding suppresses it");
}

/// ADULT: age × education in batches of 1,000, the example of docs/methods.md §11.4.
#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names"]
fn real_data_nobody_of_adult_is_pinned() {
    let data = std::env::var_os("THRONG_TEST_DATA").expect("THRONG_TEST_DATA is set");
    let text = std::fs::read_to_string(Path::new(&data).join("adult/adult.csv")).unwrap();
    let shipped = include_str!("../../schemas/adult.toml");
    let wanted = |part: &&str| part.contains("name = \"age\"") || part.contains("name = \"education\"");
    let parts: Vec<&str> = shipped.split("[[attribute]]").filter(wanted).collect();
    assert_eq!(parts.len(), 2);
    let schema = format!("name = \"two\"\n[[attribute]]{}[[attribute]]{}", parts[0], parts[1]);
    let rows: Vec<(u64, Tuple)> = text
        .lines()
        .skip(1)
        .zip(1..)
        .map(|(line, subject)| {
            let cells: Vec<&str> = line.split(';').collect();
            (subject, vec![cells[1].to_owned(), format!("\"{}\"", cells[4])])
        })
        .collect();
    let batches: Vec<(u64, Vec<(u64, Tuple)>)> =
        rows.chunks(1000).zip(1..).map(|(chunk, time)| (time, chunk.to_vec())).collect();
    let run = |strict: bool| {
        let settings = Settings { k: 5, window: 86_400, strict, max_hold_batches: 0, batch_crowd: 0 };
        let mut table = Table::new(&schema);
        let outcome = table.run(&[shape("all", &[0, 1], &[])], &batches, settings);
        let found = findings(&table, &[vec![0, 1]], &outcome, settings);
        println!("strict {strict}: {found:?}, released {}, mean loss {:.4}", outcome.released, outcome.loss);
        if strict {
            let mistaken = findings_by(Rule::Ladder, &table, &[vec![0, 1]], &outcome, settings);
            println!("strict, seen by one who takes it for the ladder: {mistaken:?}");
        }
        (found, outcome)
    };
    let (ladder, _) = run(false);
    let (strict, outcome) = run(true);
    // A prototype of the ladder pinned 140 of 9,144. Pinned to a tuple that k subjects share says no more than that tuple
    // released exactly; below k is what strict recoding rules out.
    assert!(ladder.pinned > 100, "the ladder alone pins records: {ladder:?}");
    assert!(ladder.below_k > 0 && ladder.pinned_below_k > 0, "some of them below k: {ladder:?}");
    assert_eq!(strict.below_k, 0);
    assert!(outcome.released > 30_000, "strict recoding still releases");
}

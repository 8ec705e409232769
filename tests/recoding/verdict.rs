//! Property test over random data sets: releases keep every guarantee, and failed runs report a valid reason.

use crate::recoding::cases::{Case, Extra, HIERARCHY, ILLNESSES, case};
use crate::recoding::output::{Line, lines};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use throng::config;
use throng::dataset::{AnonymizationReport, AnonymizeError, DatasetSource, RunCallbacks, anonymize};
use throng_core::release::verify::DataSetRefusal;

fn run(case: &Case) -> (Result<AnonymizationReport, AnonymizeError>, Option<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("schema.toml", &case.schema());
    write("places.csv", HIERARCHY);
    write("in.csv", &case.csv());
    write("config.toml", &case.config());
    let at = |name: &str| folder.path().join(name).display().to_string();
    let variables =
        [("SOURCE__PATH", at("in.csv")), ("SINK__PATH", at("out.csv")), ("SCHEMA__FILE", at("schema.toml"))];
    let variables = variables.into_iter().map(|(key, value)| (format!("THRONG__{key}"), value));
    let config = config::load(&folder.path().join("config.toml"), variables).expect("a sound configuration");
    let attended = RunCallbacks { watch: &|_| {}, stop: &AtomicBool::new(false), note: &|_| {}, step: &|_| Ok(()) };
    let done = anonymize(&config, "config.toml", &DatasetSource::in_memory(), attended);
    (done, std::fs::read_to_string(folder.path().join("out.csv")).ok())
}

fn classes(lines: &[Line]) -> BTreeMap<(&str, &str), Vec<&Line>> {
    let mut classes: BTreeMap<(&str, &str), Vec<&Line>> = BTreeMap::new();
    for line in lines {
        classes.entry((&line.age, &line.place)).or_default().push(line);
    }
    classes
}

fn people(case: &Case, rows: impl Iterator<Item = usize>) -> usize {
    rows.map(|row| case.person(row)).collect::<BTreeSet<_>>().len()
}

fn shown(class: &[&Line]) -> Vec<f64> {
    ILLNESSES.iter().map(|illness| class.iter().filter(|line| line.illness == *illness).count() as f64).collect()
}

fn class_holds(case: &Case, class: &[&Line]) -> Result<(), TestCaseError> {
    prop_assert!(people(case, class.iter().map(|line| line.row)) >= case.k, "a class below k: {:?}", class);
    // A class without shown values of the attribute reveals none of it.
    let silent = shown(class).iter().sum::<f64>() == 0.0;
    let covered = (0..case.records.len()).filter(|&row| class[0].covers(case, row));
    match case.extra {
        Extra::None => {}
        Extra::Distinct { .. } | Extra::Closeness { .. } if silent => {}
        Extra::Distinct { l } => {
            prop_assert!(shown(class).iter().filter(|&&count| count > 0.0).count() >= l, "{:?}", class);
        }
        Extra::Closeness { tenths } => {
            let all: Vec<usize> = (0..case.records.len()).filter(|&row| case.leaves(row)).collect();
            let n: f64 = shown(class).iter().sum();
            let distance = |(illness, count): (usize, f64)| {
                let whole = all.iter().filter(|&&row| case.records[row].illness == illness).count() as f64;
                (count / n - whole / all.len() as f64).abs() / 2.0
            };
            let distance: f64 = shown(class).into_iter().enumerate().map(distance).sum();
            prop_assert!(n == 0.0 || distance <= f64::from(tenths) / 10.0 + 1e-9, "{} in {:?}", distance, class);
        }
        Extra::Map { k } => prop_assert!(people(case, covered) >= k, "{:?}", class),
        Extra::Presence { min, max } => {
            let share = class.len() as f64 / covered.count() as f64 * 10.0;
            let (min, max) = (f64::from(min) - 1e-9, f64::from(max) + 1e-9);
            prop_assert!(min <= share && share <= max, "{} in {:?}", share, class);
        }
    }
    if !case.aggregate {
        return Ok(());
    }
    let ages: Vec<i64> = class.iter().filter_map(|line| case.records[line.row].age).collect();
    match class[0].age.as_str() {
        "*" => {}
        "" => prop_assert!(ages.is_empty()),
        text => {
            let with_age = class.iter().map(|line| line.row).filter(|&row| case.records[row].age.is_some());
            prop_assert!(people(case, with_age) >= case.k, "an aggregate of few: {:?}", class);
            let expected = (ages.iter().sum::<i64>() as f64 / ages.len() as f64).round() as i64;
            prop_assert_eq!(text, expected.to_string(), "of {:?}", ages);
        }
    }
    Ok(())
}

fn release_holds(case: &Case, done: &AnonymizationReport, text: &str) -> Result<(), TestCaseError> {
    let header = text.lines().next().expect("a header");
    prop_assert_eq!(header.contains("mark"), !case.marked, "the marks leave where they mark nothing");
    let lines = lines(text);
    let rows: BTreeSet<usize> = lines.iter().map(|line| line.row).collect();
    prop_assert_eq!(rows.len(), lines.len(), "a record leaves twice");
    let to_release = (0..case.records.len()).filter(|&row| case.leaves(row)).count();
    prop_assert_eq!(done.to_release as usize, to_release);
    prop_assert_eq!(done.recoded.overall_figures.suppressed as usize, to_release - lines.len(), "nothing is lost");
    prop_assert!(to_release - lines.len() <= case.limit_tenths as usize * to_release / 10, "too many suppressed");
    prop_assert!(case.local || done.recoded.passes.len() == 1);
    prop_assert!(done.recoded.passes.iter().map(|pass| pass.released).sum::<u64>() >= lines.len() as u64);
    for line in &lines {
        prop_assert!(case.leaves(line.row) && line.covers(case, line.row), "{:?}", line);
        prop_assert!(line.age != "*" || line.place != "*", "it says nothing");
        let own = ILLNESSES[case.records[line.row].illness];
        prop_assert!(line.illness == own || line.illness == "*");
    }
    let classes = classes(&lines);
    for class in classes.values() {
        class_holds(case, class)?;
    }
    let formed = done.recoded.overall_figures.classes as usize;
    // Aggregates can coincide, and `Ee` is `*` on two levels.
    if !case.aggregate && !lines.iter().any(|line| line.place == "*") {
        prop_assert_eq!(formed, classes.len());
    }
    prop_assert!(formed >= classes.len());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn anonymized_random_data_sets_keep_all_guarantees(case in case()) {
        let (done, written) = run(&case);
        match (done, written) {
            (Ok(done), Some(text)) => release_holds(&case, &done, &text)?,
            (Err(error), None) => {
                let expected = match &error {
                    AnonymizeError::Impossible { .. } | AnonymizeError::SaysNothing => true,
                    AnonymizeError::LeftTooMany { suppressed, limit, .. } => suppressed > limit,
                    // Rare illnesses are suppressed after the search.
                    AnonymizeError::DataSetRefused(DataSetRefusal::Model(_)) => matches!(case.extra, Extra::Distinct { .. } | Extra::Closeness { .. }),
                    // For an observer without the policy, `*` covers everyone.
                    AnonymizeError::DataSetRefused(DataSetRefusal::Population(_)) => {
                        matches!(case.extra, Extra::Presence { .. }) && case.records.iter().any(|r| r.place == 4)
                    }
                    AnonymizeError::Configuration(_) => !(0..case.records.len()).any(|row| case.leaves(row)),
                    _ => false,
                };
                prop_assert!(expected, "{}", error);
            }
            (done, written) => prop_assert!(false, "{:?} with {:?}", done.is_ok(), written),
        }
    }
}

use super::*;
use proptest::prelude::*;

fn group(classes: &[&str], counterfeits: &[(&str, u64)]) -> CatalogGroup {
    CatalogGroup {
        attributes: vec!["c".into(), "s".into()],
        sensitive: "s".into(),
        classes: classes.iter().map(|class| vec![format!("\"{class}\"")]).collect(),
        counterfeits: counterfeits.iter().map(|(value, count)| (format!("\"{value}\""), *count)).collect(),
    }
}

/// \[HCE] Table 5, 8 and 9: four lines with diabetes in two classes, one a counterfeit.
#[test]
fn reconstruction_of_paper_example_matches_table_9() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let catalog = group(&["1", "2"], &[("Diabetes", 1)]).line() + "\n";
    std::fs::write(at("catalog"), catalog).unwrap();
    let lines = |of: &[(&str, &str)]| -> String { of.iter().map(|(c, s)| format!("\"{c}\";\"{s}\"\n")).collect() };
    let release = [
        ("1", "Anemia"),
        ("1", "Diabetes"),
        ("1", "Diabetes"),
        ("1", "Flu"),
        ("2", "Cancer"),
        ("2", "Diabetes"),
        ("2", "Diabetes"),
        ("2", "Flu"),
    ];
    std::fs::write(at("release"), format!("c;s\n{}", lines(&release))).unwrap();
    let applied = apply_catalog(&at("release"), &at("catalog"), &at("out")).unwrap();
    assert_eq!(applied, ReconstructionReport { lines: 8, dropped: 1, coarsened: 1 });
    let truthful = [
        ("*", "Diabetes"),
        ("1", "Anemia"),
        ("1", "Diabetes"),
        ("1", "Flu"),
        ("2", "Cancer"),
        ("2", "Diabetes"),
        ("2", "Flu"),
    ];
    assert_eq!(std::fs::read_to_string(at("out")).unwrap(), format!("c;s\n{}", lines(&truthful)));
    // The release lacks such a class, or lines of it.
    std::fs::write(at("release"), "c;s\n\"1\";\"Flu\"\n").unwrap();
    let error = apply_catalog(&at("release"), &at("catalog"), &at("out")).unwrap_err();
    assert!(error.to_string().contains("classes") && error.is_usage(), "{error}");
    std::fs::write(at("release"), "c;s\n\"1\";\"Flu\"\n\"2\";\"Flu\"\n").unwrap();
    let error = apply_catalog(&at("release"), &at("catalog"), &at("out")).unwrap_err();
    assert!(error.to_string().contains("lines"), "{error}");
    std::fs::write(at("release"), "c;x\n\"1\";\"Flu\"\n").unwrap();
    assert!(matches!(
        apply_catalog(&at("release"), &at("catalog"), &at("out")),
        Err(CatalogApplyError::Line { line: 1, .. })
    ));
    std::fs::write(at("catalog"), "").unwrap();
    assert_eq!(apply_catalog(&at("release"), &at("catalog"), &at("out")).unwrap().dropped, 0);
}

/// Two lines with an escaped quote remain two.
#[test]
fn json_value_with_escaped_quote_keeps_lines_apart() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("catalog"), group(&["a\\\"b", "2"], &[("flu", 1)]).line() + "\n").unwrap();
    let line = |class: &str| format!("{{\"c\":\"{class}\",\"s\":\"flu\"}}\n");
    std::fs::write(at("release"), line("2") + &line("2") + &line("a\\\"b") + &line("a\\\"b")).unwrap();
    let applied = apply_catalog(&at("release"), &at("catalog"), &at("out")).unwrap();
    assert_eq!(applied, ReconstructionReport { lines: 4, dropped: 1, coarsened: 1 });
    let truthful = line("*") + &line("2") + &line("a\\\"b");
    assert_eq!(std::fs::read_to_string(at("out")).unwrap(), truthful);
}

#[test]
fn csv_cell_with_line_break_stays_in_one_row() {
    assert_eq!(text_rows("a,b\n\"x\ny\",1\n", false).collect::<Vec<_>>(), ["a,b", "\"x\ny\",1", ""]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    /// Each line is true of a different record, shown by a matching.
    #[test]
    fn reconstruction_of_any_insertion_matches_true_records(
        records in prop::collection::vec((0..4usize, 0..3usize), 0..14),
        inserted in prop::collection::vec((0..3usize, 0..3usize), 0..6),
        grouped in 1..=3usize,
    ) {
        let (names, values) = (["a", "b", "c", "d"], ["x", "y", "z"]);
        let inserted: Vec<(usize, usize)> = inserted.into_iter().filter(|(class, _)| *class < grouped).collect();
        let mut classes: BTreeMap<Vec<String>, BTreeMap<String, u64>> = BTreeMap::new();
        for &(class, value) in records.iter().chain(&inserted) {
            *classes.entry(vec![format!("\"{}\"", names[class])]).or_default().entry(format!("\"{}\"", values[value])).or_default() += 1;
        }
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        inserted.iter().for_each(|&(_, value)| *counts.entry(values[value]).or_default() += 1);
        let counts: Vec<(&str, u64)> = counts.into_iter().collect();
        let present: Vec<&str> = (0..grouped).filter(|at| classes.contains_key(&vec![format!("\"{}\"", names[*at])])).map(|at| names[at]).collect();
        let catalog = if counts.is_empty() { vec![] } else { vec![group(&present, &counts)] };
        let release = ReleaseLineCounts { classes, sensitive: 1 };
        let (tuples, applied) = release.reconstruct_release(&catalog, (records.len() + inserted.len()) as u64).unwrap();
        prop_assert_eq!(tuples.values().sum::<u64>(), records.len() as u64);
        prop_assert_eq!(applied.dropped, inserted.len() as u64);
        // Exact tuples first; the rest must fit the coarser lines.
        let mut left: BTreeMap<(String, String), u64> = BTreeMap::new();
        for &(class, value) in &records {
            *left.entry((format!("\"{}\"", names[class]), format!("\"{}\"", values[value]))).or_default() += 1;
        }
        for (tuple, count) in tuples.iter().filter(|(tuple, _)| tuple[0] != "\"*\"") {
            let known = left.entry((tuple[0].clone(), tuple[1].clone())).or_default();
            prop_assert!(*known >= *count, "{tuple:?} is invented");
            *known -= count;
        }
        for (tuple, count) in tuples.iter().filter(|(tuple, _)| tuple[0] == "\"*\"") {
            let of_group: u64 = left.iter().filter(|((class, value), _)| *value == tuple[1] && present.contains(&class.trim_matches('"'))).map(|(_, count)| count).sum();
            prop_assert_eq!(of_group, *count, "{:?}", tuple);
        }
    }
}

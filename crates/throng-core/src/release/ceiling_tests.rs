use super::*;
use proptest::prelude::*;

fn terms() -> CeilingTerms<'static> {
    CeilingTerms {
        quasi: &[true, false],
        sensitive: 1,
        lines: 4,
        people: 1,
        h: 0.5,
        loss: &|_, text| match text {
            "\"*\"" => Some(1.0),
            "\"?\"" => None,
            _ => Some(0.0),
        },
        is_exact: &|text| text != "\"*\"",
    }
}

/// Class, true values and counterfeit values, one letter each.
type CeilingTable<'a> = [(&'a str, &'a str, &'a str)];

fn counted(table: &CeilingTable<'_>) -> BTreeMap<Vec<String>, ClassLineCounts> {
    let counts = |values: &str| {
        let mut counts = BTreeMap::new();
        values.chars().for_each(|v| *counts.entry(format!("\"{v}\"")).or_default() += 1);
        counts
    };
    let of = |&(class, shown, invented): &(&str, &str, &str)| {
        (vec![format!("\"{class}\"")], ClassLineCounts { shown: counts(shown), counterfeits: counts(invented) })
    };
    table.iter().map(of).collect()
}

fn line(classes: &[&str], counts: &[(&str, u64)]) -> String {
    CatalogGroup {
        attributes: vec!["c".into(), "s".into()],
        sensitive: "s".into(),
        classes: classes.iter().map(|class| vec![format!("\"{class}\"")]).collect(),
        counterfeits: counts.iter().map(|(value, count)| (format!("\"{value}\""), *count)).collect(),
    }
    .line()
}

fn verdict(table: &CeilingTable<'_>, catalog: &str) -> Result<(), &'static str> {
    check_catalog(&counted(table), catalog, &terms())
}

/// \[HCE] Table 5 with the catalogs of Table 8 (safe) and Table 7 (not safe).
#[test]
fn catalogs_of_paper_tables_are_judged_correctly() {
    let table = [("1", "abd", "d"), ("2", "abcd", "")];
    assert_eq!(verdict(&table, &line(&["1", "2"], &[("d", 1)])), Ok(()));
    assert!(verdict(&table, &line(&["1"], &[("d", 1)])).unwrap_err().contains("Lemma 1"));
}

#[test]
fn catalog_flaw_is_named_in_refusal() {
    let safe = [("1", "abd", "d"), ("2", "abcd", ""), ("3", "aaaaa", "")];
    let ok = line(&["1", "2"], &[("d", 1)]);
    assert_eq!(verdict(&safe, &ok), Ok(()));
    for (table, catalog, flaw) in [
        (&safe[..], "", "in no group"),
        (&safe, "{}", "cannot be parsed"),
        (&safe, &line(&["1", "2"], &[("d", 2)]), "does not match the inserted counterfeits"),
        (&safe, &line(&["1", "2"], &[("d", 1), ("a", 0)]), "does not match the inserted counterfeits"),
        (&safe, &line(&["1", "2", "3"], &[("d", 1)]), "by its size"),
        (&safe, &line(&["1", "2", "2"], &[("d", 1)]), "twice"),
        (&safe, &line(&["1", "2", "4"], &[("d", 1)]), "is not released"),
        (&[("1", "ab", "d"), ("2", "abcd", "")], &ok, "fewer lines"),
        (&[("1", "", "dddd"), ("2", "dddd", "")], &line(&["1", "2"], &[("d", 4)]), "fewer true lines"),
        (&[("1", "abd", "*"), ("2", "abc*", "")], &line(&["1", "2"], &[("*", 1)]), "hides its value"),
        (&[("1", "abd", "d"), ("2", "abcc", "")], &ok, "Lemma 1"),
        // Class 2 must keep one true line, and class 1 has room for only one of the others.
        (
            &[("1", "xx", "de"), ("2", "d", "xxx"), ("3", "ebbx", "")],
            &line(&["1", "2", "3"], &[("d", 1), ("e", 1), ("x", 3)]),
            "could be shown",
        ),
        (&[("1", "abd", "d"), ("2", "abcd", ""), ("4", "abd", "d")], &ok, "in no group"),
    ] {
        let said = verdict(table, catalog);
        assert!(said.is_err_and(|said| said.contains(flaw)), "{table:?} {catalog}: {said:?}, not {flaw}");
    }
}

#[test]
fn line_above_ceiling_is_refused() {
    let class = |cells: &[&str], quasi: &'static [bool]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("\"{cell}\"")).collect();
        let terms = CeilingTerms { quasi, sensitive: quasi.len() - 1, ..terms() };
        terms.class_of(&cells)
    };
    assert_eq!(class(&["*", "b", "x"], &[true, true, false]), Ok(vec!["\"*\"".into(), "\"b\"".into()]));
    assert!(class(&["*", "*", "x"], &[true, true, false]).unwrap_err().contains("above the ceiling"));
    assert!(class(&["?", "b", "x"], &[true, true, false]).unwrap_err().contains("no hierarchy"));
    assert!(class(&["a", "b", "x"], &[true, false, false]).unwrap_err().contains("neither"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn flow_matches_brute_force_placement(
        own in prop::collection::vec(0..3u8, 0..4),
        others in prop::collection::vec((prop::collection::vec(0..3u8, 0..4), 0..4u64), 0..4),
        people in 1..4usize,
    ) {
        let text = |value: u8| format!("\"{value}\"");
        let mut class = ClassLineCounts::default();
        own.iter().for_each(|&value| *class.counterfeits.entry(text(value)).or_default() += 1);
        let others: Vec<ClassLineCounts> = others.iter().map(|(shown, invented)| {
            let mut other = ClassLineCounts::default();
            shown.iter().for_each(|&value| *other.shown.entry(text(value)).or_default() += 1);
            if *invented > 0 { other.counterfeits.insert("\"z\"".into(), *invented); }
            other
        }).collect();
        let terms = CeilingTerms { people, ..terms() };
        let refs: Vec<&ClassLineCounts> = others.iter().collect();
        fn place(own: &[u8], shown: &mut [BTreeMap<String, u64>], room: &mut [u64]) -> bool {
            let Some((value, rest)) = own.split_first() else { return true };
            (0..shown.len()).any(|at| {
                let has = shown[at].get(&format!("\"{value}\"")).copied().unwrap_or(0);
                if has == 0 || room[at] == 0 { return false }
                shown[at].insert(format!("\"{value}\""), has - 1);
                room[at] -= 1;
                let placed = place(rest, shown, room);
                shown[at].insert(format!("\"{value}\""), has);
                room[at] += 1;
                placed
            })
        }
        let mut shown: Vec<BTreeMap<String, u64>> = others.iter().map(|other| other.shown.clone()).collect();
        let mut room: Vec<u64> = others.iter().map(|other| 4u64.saturating_sub(people as u64).saturating_sub(other.counterfeit_lines())).collect();
        prop_assert_eq!(could_all_be_true(&class, &refs, &terms), place(&own, &mut shown, &mut room));
    }
}

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn rows(lines: &[&str]) -> Vec<Row> {
    lines
        .iter()
        .enumerate()
        .map(|(i, line)| Row { place: format!("row {}", i + 1), labels: line.split(';').map(str::to_owned).collect() })
        .collect()
}

fn build(lines: &[&str]) -> Result<Tree, Vec<Flaw>> {
    Tree::build(&rows(lines), |text| Ok(quoted(text)))
}

fn flaw(lines: &[&str]) -> String {
    let flaws = build(lines).unwrap_err();
    assert_eq!(flaws.len(), 1, "{flaws:?}");
    format!("{}: {}", flaws[0].place, flaws[0].message)
}

#[test]
fn equal_sets_print_one_text() {
    let tree = build(&["a;g;G;*", "b;g;G;*", "c;h;H;*"]).unwrap();
    let covers = tree.covers("\"a\"").unwrap();
    assert_eq!(covers[0], covers[1]);
    let Cover::Set { text, loss, .. } = &covers[0] else { panic!("a set") };
    assert_eq!((text.as_str(), *loss), ("\"g\"", Some(0.5)));
    assert_eq!(tree.covers("\"c\"").unwrap(), [Cover::Value, Cover::Value]);
    assert_eq!(tree.covers("\"d\""), None);
}

#[test]
fn the_root_may_come_early() {
    let tree = build(&["a;a;*", "b;*;*", "c;*;*"]).unwrap();
    assert_eq!(tree.covers("\"a\"").unwrap(), [Cover::Value]);
    assert_eq!(tree.covers("\"b\"").unwrap(), [Cover::Root]);
}

#[test]
fn a_row_that_is_repeated_exactly_is_a_warning() {
    let (once, twice) = (build(&["a;g;*", "b;g;*"]).unwrap(), build(&["a;g;*", "b;g;*", "a;g;*"]).unwrap());
    assert_eq!(once.description(), twice.description());
    assert_eq!((once.repeated(), twice.values()), (&[][..], 2));
    assert_eq!(twice.repeated(), ["row 3 is the same as row 1, and left out"]);
}

#[test]
fn contradictions_name_their_rows() {
    assert!(flaw(&["a;g;*", "b;g;h;*"]).starts_with("row 2: 4 columns, but row 1 has 3"));
    assert!(flaw(&["a;g;*", "b;g;all"]).starts_with("row 2: the root differs"));
    assert!(flaw(&["a;g;*", "b;g;*", "a;h;*"]).starts_with("row 3: this value is already in row 1"));
    assert!(
        flaw(&["a;g;G;*", "b;g;H;*"]).contains("row 2: \"g\" (column 1) belongs to \"H\" here and to \"G\" in row 1")
    );
    assert!(flaw(&["a;g;*", "b;;*"]).starts_with("row 2: column 1 is empty"));
    // "a" is the value and a group of two.
    assert!(flaw(&["b;a;*", "a;a;*"]).contains("\"a\" (column 1) covers other values than the same label in row 2"));
    // "g" on level 1 is {a}, on level 2 {b, c}.
    assert!(flaw(&["a;g;x;*", "b;h;g;*", "c;i;g;*"]).contains("row 2: \"g\" (column 2)"));
    assert!(flaw(&["a;*;x;*"]).contains("nothing lies above the root"));
    assert!(flaw(&["a"]).contains("at least"));
    assert!(flaw(&[]).contains("empty"));
    let refused =
        Tree::build(&rows(&["1;*", "x;*"]), |t| if t == "x" { Err("no number".into()) } else { Ok(t.into()) });
    assert!(refused.unwrap_err()[0].message.contains("no number"));
}

/// The groups by the definition: for every value and level, the values that share its label.
fn twin(rows: &[Row]) -> Vec<Vec<BTreeSet<usize>>> {
    (0..rows.len())
        .map(|i| {
            (1..rows[i].labels.len() - 1)
                .map(|level| (0..rows.len()).filter(|&j| rows[j].labels[level] == rows[i].labels[level]).collect())
                .collect()
        })
        .collect()
}

proptest! {
    /// Random nested partitions: group of a value on a level = its number divided by the level's size.
    #[test]
    fn agrees_with_the_definition(values in 1_usize..40, sizes in proptest::collection::vec(1_usize..5, 0..4)) {
        let rows: Vec<Row> = (0..values)
            .map(|i| {
                let mut labels = vec![format!("v{i}")];
                let mut size = 1;
                for (level, factor) in sizes.iter().enumerate() {
                    size *= factor;
                    labels.push(format!("l{level}-{}", i / size));
                }
                labels.push("*".into());
                Row { place: format!("row {i}"), labels }
            })
            .collect();
        let tree = Tree::build(&rows, |t| Ok(quoted(t))).unwrap();
        let expected = twin(&rows);
        let covers: Vec<Vec<Cover>> = (0..values).map(|i| tree.covers(&format!("\"v{i}\"")).unwrap()).collect();
        for i in 0..values {
            for level in 0..sizes.len() {
                let set = &expected[i][level];
                match &covers[i][level] {
                    Cover::Value => prop_assert_eq!(set.len(), 1),
                    Cover::Set { loss, text, .. } => {
                        prop_assert_eq!(loss.unwrap(), (set.len() - 1) as f64 / (values - 1) as f64);
                        for j in 0..values {
                            for other in 0..sizes.len() {
                                let same_set = expected[j][other] == *set;
                                prop_assert_eq!(covers[j][other] == covers[i][level], same_set);
                                if let Cover::Set { text: theirs, .. } = &covers[j][other] {
                                    prop_assert_eq!(theirs == text, same_set);
                                }
                            }
                        }
                    }
                    Cover::Root => prop_assert!(false, "no early root here"),
                }
            }
        }
    }
}

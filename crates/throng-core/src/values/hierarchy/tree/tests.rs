use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn rows(lines: &[&str]) -> Vec<HierarchyRow> {
    lines
        .iter()
        .enumerate()
        .map(|(i, line)| HierarchyRow {
            place: format!("row {}", i + 1),
            labels: line.split(';').map(str::to_owned).collect(),
        })
        .collect()
}

fn build(lines: &[&str]) -> Result<ListedTree, Vec<HierarchyFlaw>> {
    ListedTree::build(&rows(lines), |text| Ok(quoted(text)))
}

fn flaw(lines: &[&str]) -> String {
    let flaws = build(lines).unwrap_err();
    assert_eq!(flaws.len(), 1, "{flaws:?}");
    format!("{}: {}", flaws[0].place, flaws[0].message)
}

#[test]
fn equal_sets_of_values_have_one_text() {
    let tree = build(&["a;g;G;*", "b;g;G;*", "c;h;H;*"]).unwrap();
    let covers = tree.covers("\"a\"").unwrap();
    assert_eq!(covers[0], covers[1]);
    let ValueCover::Set { text, loss, .. } = &covers[0] else { panic!("a set") };
    assert_eq!((text.as_str(), *loss), ("\"g\"", Some(0.5)));
    assert_eq!(tree.covers("\"c\"").unwrap(), [ValueCover::Value, ValueCover::Value]);
    assert_eq!(tree.covers("\"d\""), None);
}

#[test]
fn root_on_a_lower_level_is_suppression() {
    let tree = build(&["a;a;*", "b;*;*", "c;*;*"]).unwrap();
    assert_eq!(tree.covers("\"a\"").unwrap(), [ValueCover::Value]);
    assert_eq!(tree.covers("\"b\"").unwrap(), [ValueCover::Root]);
}

#[test]
fn repeated_hierarchy_row_is_a_warning() {
    let (once, twice) = (build(&["a;g;*", "b;g;*"]).unwrap(), build(&["a;g;*", "b;g;*", "a;g;*"]).unwrap());
    assert_eq!(once.description(), twice.description());
    assert_eq!((once.repeated_rows(), twice.values()), (&[][..], 2));
    assert_eq!(twice.repeated_rows(), ["row 3 is the same as row 1 and is ignored"]);
}

#[test]
fn hierarchy_mistakes_name_their_rows() {
    assert!(flaw(&["a;g;*", "b;g;h;*"]).starts_with("row 2: 4 columns, but row 1 has 3"));
    assert!(flaw(&["a;g;*", "b;g;all"]).starts_with("row 2: the root differs"));
    assert!(flaw(&["a;g;*", "b;g;*", "a;h;*"]).starts_with("row 3: this value is already in row 1"));
    assert!(
        flaw(&["a;g;G;*", "b;g;H;*"]).contains("row 2: \"g\" (column 1) belongs to \"H\" here and to \"G\" in row 1")
    );
    assert!(flaw(&["a;g;*", "b;;*"]).starts_with("row 2: column 1 is empty"));
    // "a" is a value and a group.
    assert!(
        flaw(&["b;a;*", "a;a;*"]).contains("\"a\" (column 1) covers different values than the same label in row 2")
    );
    // "g" is {a} on level 1 and {b, c} on level 2.
    assert!(flaw(&["a;g;x;*", "b;h;g;*", "c;i;g;*"]).contains("row 2: \"g\" (column 2)"));
    assert!(flaw(&["a;*;x;*"]).contains("the root must come last"));
    assert!(flaw(&["a"]).contains("at least"));
    assert!(flaw(&[]).contains("empty"));
    let refused =
        ListedTree::build(&rows(&["1;*", "x;*"]), |t| if t == "x" { Err("no number".into()) } else { Ok(t.into()) });
    assert!(refused.unwrap_err()[0].message.contains("no number"));
}

/// Values with the same label.
fn twin(rows: &[HierarchyRow]) -> Vec<Vec<BTreeSet<usize>>> {
    (0..rows.len())
        .map(|i| {
            (1..rows[i].labels.len() - 1)
                .map(|level| (0..rows.len()).filter(|&j| rows[j].labels[level] == rows[i].labels[level]).collect())
                .collect()
        })
        .collect()
}

proptest! {
    /// Nested groups by division.
    #[test]
    fn tree_groups_and_losses_match_the_definition(values in 1_usize..40, sizes in proptest::collection::vec(1_usize..5, 0..4)) {
        let rows: Vec<HierarchyRow> = (0..values)
            .map(|i| {
                let mut labels = vec![format!("v{i}")];
                let mut size = 1;
                for (level, factor) in sizes.iter().enumerate() {
                    size *= factor;
                    labels.push(format!("l{level}-{}", i / size));
                }
                labels.push("*".into());
                HierarchyRow { place: format!("row {i}"), labels }
            })
            .collect();
        let tree = ListedTree::build(&rows, |t| Ok(quoted(t))).unwrap();
        let expected = twin(&rows);
        let covers: Vec<Vec<ValueCover>> = (0..values).map(|i| tree.covers(&format!("\"v{i}\"")).unwrap()).collect();
        for i in 0..values {
            for level in 0..sizes.len() {
                let set = &expected[i][level];
                match &covers[i][level] {
                    ValueCover::Value => prop_assert_eq!(set.len(), 1),
                    ValueCover::Set { loss, text, .. } => {
                        prop_assert_eq!(loss.unwrap(), (set.len() - 1) as f64 / (values - 1) as f64);
                        for j in 0..values {
                            for other in 0..sizes.len() {
                                let same_set = expected[j][other] == *set;
                                prop_assert_eq!(covers[j][other] == covers[i][level], same_set);
                                if let ValueCover::Set { text: theirs, .. } = &covers[j][other] {
                                    prop_assert_eq!(theirs == text, same_set);
                                }
                            }
                        }
                    }
                    ValueCover::Root => prop_assert!(false, "no early root here"),
                }
            }
        }
    }
}

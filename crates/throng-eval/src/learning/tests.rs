use super::*;
use crate::attack::test_release::{SCHEMA, TestRelease, record_line};

/// 400 subjects with an illness determined by age.
fn learn_from_level(level: usize) -> LearningScores {
    let records: String = (0..400_usize)
        .map(|row| record_line(row, row % 3, 0, row * 37 % 100, if row * 37 % 100 < 50 { "young" } else { "old" }))
        .collect();
    let levels = [level, 0];
    let lines: Vec<(u32, u64, &[usize])> = (0..400).map(|row| (row, 0, &levels[..])).collect();
    let stage = TestRelease::new(SCHEMA, &records).with_group(&[3], &[4], &lines).with_group(&[1], &[], &[]);
    let (original, facts, groups) = stage.parts();
    let leaves = |a: usize| groups.iter().any(|group| group.attributes.contains(&a));
    let target = |a: usize| LearningTarget::parse(&original.schema.attributes[a].name, original, leaves);
    assert!(target(0).is_err(), "the person never leaves");
    learn_target(original, facts, groups, &target(4).unwrap(), |_| true, 1).unwrap()
}

#[test]
fn model_learns_only_released_values() {
    for level in [0, 1, 2] {
        let found = learn_from_level(level);
        let (before, after) = (found.before.unwrap(), found.after.unwrap());
        assert!(before.accuracy > 0.97 && before.auc > 0.99, "{before:?}");
        assert!(after.accuracy > 0.9 && after.auc > 0.98, "{level}: {after:?}");
        assert_eq!((found.tested, after.rows, before.rows), (120, 280, 280), "nobody is on both sides");
        assert_eq!((found.features, found.classes, found.leaks), (vec!["age".to_owned()], 2, false));
    }
    let hidden = learn_from_level(9).after.unwrap();
    assert!((hidden.auc - 0.5).abs() < 0.1 || hidden.accuracy < 0.7, "{hidden:?}");
}

#[test]
fn learning_with_same_seed_is_deterministic() {
    let text = |of: LearningScores| serde_json::to_string(&of).unwrap();
    assert_eq!(text(learn_from_level(1)), text(learn_from_level(1)));
}

const DISEASES: &str = r#"
name = "ill"
[[attribute]]
name = "person"
type = "string"
role = "subject"
[[attribute]]
name = "age"
type = "integer"
[[attribute]]
name = "disease_0"
type = "string"
[[attribute]]
name = "disease_1"
type = "string"
"#;

#[test]
fn target_of_several_columns_is_learned() {
    // Cases: ages over 70 and every fortieth record.
    let of = |row: usize| {
        let age = 20 + row * 37 % 80;
        let (sick, second) = (age > 70 || row.is_multiple_of(40), row.is_multiple_of(2));
        let disease = |is: bool| if is { "\"D1\"" } else { "\"D2\"" };
        format!(
            "{{\"person\":\"p{row}\",\"age\":{age},\"disease_0\":{},\"disease_1\":{}}}\n",
            disease(sick && !second),
            disease(sick && second)
        )
    };
    let records: String = (0..800_usize).map(of).collect();
    let exact = [0_usize, 0, 0];
    let lines: Vec<(u32, u64, &[usize])> = (0..800).map(|row| (row, 0, &exact[..])).collect();
    let stage = TestRelease::new(DISEASES, &records).with_group(&[1, 2, 3], &[], &lines);
    let (original, facts, groups) = stage.parts();
    let target = |text: &str| LearningTarget::parse(text, original, |a| a != 0);
    let learned = learn_target(original, facts, groups, &target("any(disease_*) = D1").unwrap(), |_| true, 1).unwrap();
    assert_eq!(
        (learned.features, learned.classes),
        (vec!["age".to_owned()], 2),
        "the columns themselves predict nothing"
    );
    let (before, after) = (learned.before.unwrap(), learned.after.unwrap());
    for scores in [&before, &after] {
        let errors = scores.errors.unwrap();
        assert!(scores.auc > 0.95 && errors.false_positives < 0.25 && errors.false_negatives < 0.1, "{scores:?}");
    }
    assert!((before.auc - after.auc).abs() < 0.01, "the lines are the records");
    let weights = &learned.coefficients[0];
    let rounded = |weight: Option<f64>| weight.map(f64::round);
    assert_eq!(
        (weights.attribute.as_str(), rounded(weights.before), rounded(weights.after)),
        ("age", Some(100.0), Some(100.0))
    );
    // One column shows half of the cases.
    let one = learn_target(original, facts, groups, &target("any(disease_0) = D1").unwrap(), |a| a == 1, 1).unwrap();
    assert!(one.majority > learned.majority, "{} and {}", one.majority, learned.majority);
    for (text, error) in [
        ("any(disease_*) = D9", TargetError::UnknownValue("any(disease_*) = D9".into(), "D9".into())),
        ("any(person) = p1", TargetError::NotReleased("any(person) = p1".into())),
        ("any(disease_*) D1", TargetError::InvalidExpression("any(disease_*) D1".into())),
        ("illness", TargetError::NotReleased("illness".into())),
    ] {
        assert_eq!(target(text).unwrap_err(), error);
    }
}

//! Command line scenarios: reports and refusals.

use crate::recoding::cases::{HIERARCHY, ILLNESSES, PERSON, PLACES, SCHEMA};
use crate::recoding::output::{Line, lines};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;

/// 400 people: few are older than 29, three are in `Ee`, and all southerners have gout.
fn csv() -> String {
    let mut text = "row,mark,age,place,illness,person\n".to_owned();
    for row in 0..400 {
        let place = if row % 180 == 0 { 4 } else { [0, 0, 0, 1, 1, 0, 2, 3, 0, 1][row * 7 % 10] };
        let age = match row % 11 {
            0 => String::new(),
            1 if row % 3 == 0 => (30 + row % 10).to_string(),
            _ => ((row * 37) % 30).to_string(),
        };
        let illness = if matches!(place, 2 | 3) { "gout" } else { ILLNESSES[row % 5 % 3] };
        writeln!(text, "{row},{},{age},{},{illness},{row}", row % 3 > 0, PLACES[place]).expect("room");
    }
    text
}

fn folder(schema: &str, anonymize: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("schema.toml", schema);
    write("places.csv", HIERARCHY);
    write("in.csv", &csv());
    write("config.toml", &format!("[schema]\nfile = \"schema.toml\"\n[privacy]\nk = 8\n[anonymize]\n{anonymize}"));
    folder
}

fn run(folder: &Path, args: &[&str]) -> (Output, String) {
    let output = crate::support::binary::throng()
        .current_dir(folder)
        .args(["anonymize", "in.csv", "-c", "config.toml"])
        .args(args)
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

fn done(anonymize: &str) -> (Value, Vec<Line>) {
    let folder = folder(SCHEMA, anonymize);
    let (output, said) = run(folder.path(), &["-o", "out.csv", "--report", "r.json"]);
    assert!(output.status.success(), "{said}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a file");
    (serde_json::from_str(&read("r.json")).expect("JSON"), lines(&read("out.csv")))
}

fn loss(measures: &Value) -> f64 {
    measures["loss"].as_f64().expect("a loss")
}

#[test]
fn local_recoding_passes_add_up_and_reduce_loss() {
    let (full, _) = done("suppression_limit = 0.3\n");
    let (report, lines) = done("suppression_limit = 0.3\ntransformation = \"local\"\npass_limit = 0.3\n");
    let passes = report["passes"].as_array().expect("passes");
    assert!(passes.len() > 1, "{report:#}");
    let sum = |key: &str| passes.iter().map(|pass| pass[key].as_u64().expect("a count")).sum::<u64>();
    assert_eq!(sum("released_records"), lines.len() as u64);
    assert_eq!(report["released_records"], lines.len());
    assert_eq!(report["suppressed_records"], 400 - lines.len());
    assert_eq!(sum("classes"), report["classes"].as_u64().expect("a count"));
    for pair in passes.windows(2) {
        let left = |key: &str| pair[0][key].as_u64().expect("a count");
        let next = left("records") - left("released_records") - left("suppressed_for_good");
        assert_eq!(pair[1]["records"], next);
    }
    assert_eq!((&report["policy"], &passes[0]["policy"]), (&full["policy"], &full["policy"]));
    // The first pass has the same limit, so it equals the full-domain optimum.
    assert_eq!(report["measures_first_pass"], full["measures"]);
    assert!(loss(&report["measures"]) < loss(&full["measures"]));
    assert_eq!((&report["optimal"], &full["optimal"]), (&Value::Bool(false), &Value::Bool(true)));
    assert_eq!(full.get("passes"), None);
}

#[test]
fn record_refused_by_model_is_in_no_later_pass() {
    let model = "suppression_limit = 1.0\ntransformation = \"local\"\n\
                 [[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\n";
    let (report, lines) = done(model);
    let passes = report["passes"].as_array().expect("passes");
    let refused: usize =
        passes.iter().map(|pass| pass["suppressed_for_good"].as_u64().expect("a count") as usize).sum();
    assert!(refused > 0 && passes.len() > 1, "{report:#}");
    // Only classes of southerners lack diversity.
    let southern = |line: &&str| line.contains(",Cc,") || line.contains(",Dd,");
    let (all, released) = (csv(), lines.iter().map(|line| line.row).collect::<Vec<_>>());
    let southerners: Vec<usize> = all
        .lines()
        .skip(1)
        .filter(southern)
        .map(|line| line[..line.find(',').expect("a row")].parse().expect("a number"))
        .collect();
    let left = southerners.iter().filter(|row| released.contains(row)).count();
    assert!(left + refused <= southerners.len(), "{left} and {refused} of {}", southerners.len());
}

#[test]
fn microaggregation_is_reported_and_shows_one_number_per_class() {
    let (report, lines) = done("microaggregation = [\"age\"]\n");
    assert_eq!(report["untruthful"], serde_json::json!(["age"]));
    let of = &report["microaggregation"][0];
    assert_eq!((&of["attribute"], &of["aggregate"]), (&"age".into(), &"mean".into()));
    let lost = of["variance_lost"].as_f64().expect("a share");
    assert!((0.0..1.0).contains(&lost), "{lost}");
    assert!(lines.iter().all(|line| line.age.parse::<i64>().is_ok() || line.age.is_empty() || line.age == "*"));
    let mut classes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in &lines {
        *classes.entry((&line.age, &line.place)).or_default() += 1;
    }
    assert!(classes.values().all(|&size| size >= 8), "{classes:?}");
    let (report, _) = done("");
    assert_eq!((&report["untruthful"], report.get("microaggregation")), (&serde_json::json!([]), None));
}

#[test]
fn unsound_or_impossible_anonymize_settings_are_refused_with_key() {
    let aggregate = |attribute: &str| format!("microaggregation = [\"{attribute}\"]\n");
    let presence = |min: &str| format!("[[privacy.model]]\nkind = \"delta_presence\"\nmin = {min}\nmax = 0.9\n");
    let quasi = SCHEMA.replacen("type = \"boolean\"\nrole = \"insensitive\"", "type = \"boolean\"", 1);
    let with_person = format!("{SCHEMA}{PERSON}");
    for (schema, config, code, words) in [
        (SCHEMA, format!("transformation = \"local\"\n{}", presence("0.1")), 2, "anonymize.transformation"),
        (SCHEMA, aggregate("age") + &presence("0.1"), 2, "anonymize.microaggregation"),
        (SCHEMA, aggregate("place"), 2, "rounding step"),
        (SCHEMA, aggregate("illness"), 2, "has the role sensitive"),
        (SCHEMA, aggregate("nothing"), 2, "anonymize.microaggregation"),
        (SCHEMA, aggregate("age\", \"age"), 2, "is named twice"),
        (SCHEMA, "pass_limit = 1.01\n".into(), 2, "anonymize.pass_limit"),
        (SCHEMA, "transformation = \"best\"\n".into(), 2, "anonymize.transformation"),
        (SCHEMA, "released = \"nothing\"\n".into(), 2, "no attribute"),
        (&quasi, "released = \"mark\"\n".into(), 2, "give it the role insensitive"),
        (SCHEMA, "released = \"row\"\n".into(), 1, "no policy satisfies"),
        (&with_person, format!("released = \"mark\"\n{}", presence("0.1")), 2, "names a subject"),
        (SCHEMA, "suppression_limit = 0.0\ntransformation = \"local\"\n".into(), 1, "lower anonymize.pass_limit"),
        // The marked records are two thirds of the population.
        (
            SCHEMA,
            format!("suppression_limit = 0.0\nreleased = \"mark\"\n{}", presence("0.7")),
            1,
            "the nearest policy (",
        ),
    ] {
        let folder = folder(schema, &config);
        let (output, said) = run(folder.path(), &["-o", "out.csv"]);
        assert_eq!(output.status.code(), Some(code), "{config}: {said}");
        assert!(said.contains(words), "{config}: {said}");
        assert!(!folder.path().join("out.csv").exists(), "nothing is written");
    }
}

#[test]
fn anonymize_overwrites_no_input_under_any_path() {
    let folder = folder(SCHEMA, "");
    std::fs::create_dir(folder.path().join("sub")).expect("a folder");
    for args in [
        ["-o", "./in.csv", "--report", "r.json"],
        ["-o", "sub/../in.csv", "--report", "r.json"],
        ["-o", "out.csv", "--report", "./in.csv"],
        ["-o", "out.csv", "--report", "sub/../out.csv"],
        ["-o", "out.csv", "--report", "./config.toml"],
    ] {
        let (output, said) = run(folder.path(), &args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("would overwrite"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("in.csv")).expect("the input"), csv());
    assert!(!folder.path().join("out.csv").exists());
}

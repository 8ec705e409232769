//! Tests treatment rules through the binary.

use crate::support;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use support::binary::{Outcome, Place, Process};
use support::schemas::schema;

const SCHEMA: &str = schema!("visits"; person, hundred "age", text "city");

const K: usize = 3;

/// In each batch of fifty subjects most ages are 30 or 40, some are unique, and two are missing.
fn records() -> String {
    let mut text = String::new();
    for n in 0..200 {
        let age = match n % 50 {
            0 => "33".to_owned(),
            1 => "36".to_owned(),
            2 => "47".to_owned(),
            3 | 4 => "null".to_owned(),
            n if n % 2 == 0 => "30".to_owned(),
            _ => "40".to_owned(),
        };
        let city = ["Bern", "Zug"][usize::from(n % 50 >= 25)];
        writeln!(text, r#"{{"person":"p{n}","age":{age},"city":"{city}"}}"#).expect("a string");
    }
    text
}

fn treated(treat: &str) -> Place {
    let groups =
        "[[group]]\nname = \"age\"\nattributes = [\"age\"]\n[[group]]\nname = \"city\"\nattributes = [\"city\"]\n";
    let rule = if treat.is_empty() {
        String::new()
    } else {
        format!("[[treatment.rule]]\nattributes = [\"age\"]\ntreat = \"{treat}\"\n")
    };
    let place = Place::new(SCHEMA, &format!("{groups}{rule}"));
    place.write("in.ndjson", records());
    place
}

fn ages(place: &Place) -> BTreeMap<String, usize> {
    let mut ages = BTreeMap::new();
    for line in place.lines("out.age.ndjson") {
        let line: Value = serde_json::from_str(&line).expect("a line");
        *ages.entry(line["age"].to_string()).or_default() += 1;
    }
    ages
}

fn released(treat: &str) -> (Place, BTreeMap<String, usize>) {
    let place = treated(treat);
    place.run(&[]).expect(0);
    let ages = ages(&place);
    (place, ages)
}

fn marks(place: &Place) -> Vec<String> {
    let names =
        place.files(".").into_iter().map(|(path, _)| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    names.flatten().filter(|name| name.ends_with(".untruthful")).collect()
}

fn counts(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
    of.iter().map(|(age, count)| ((*age).to_owned(), *count)).collect()
}

fn throng(place: &Place, arguments: &[&str]) -> Outcome {
    let mut command = crate::support::binary::throng();
    command.args(arguments);
    place.surround(&mut command, &[]);
    Process::spawn(command, place.port).wait()
}

#[test]
fn treatment_default_generalizes_and_is_truthful() {
    let (place, ages) = released("");
    assert!(ages.keys().any(|age| age.contains('-')), "{ages:?}");
    assert_eq!(marks(&place), Vec::<String>::new());
}

#[test]
fn treatment_suppress_cell_gives_exact_or_suppressed_cells() {
    // Two of fifty have no age.
    let (_place, ages) = released("suppress_cell");
    assert_eq!(ages, counts(&[("30", 4 * 22), ("40", 4 * 23)]));
}

#[test]
fn treatment_suppress_record_gives_exact_or_no_lines() {
    let (_place, alone) = released("suppress_record");
    assert_eq!(alone, counts(&[("30", 4 * 22), ("40", 4 * 23)]));
    // The line is suppressed instead of the cell.
    let both = |treat: &str| {
        let text = format!("[[treatment.rule]]\nattributes = [\"age\"]\ntreat = \"{treat}\"\n");
        let place = Place::new(SCHEMA, &text);
        place.write("in.ndjson", records());
        place.run(&[]).expect(0);
        place.lines("out.ndjson")
    };
    let (cells, lines) = (both("suppress_cell"), both("suppress_record"));
    assert!(cells.iter().any(|line| line.contains("\"age\":\"*\"")));
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("\"age\":30") || line.contains("\"age\":40")));
}

#[test]
fn treatment_perturb_gives_the_closest_frequent_number() {
    let (place, ages) = released("perturb");
    // 33 becomes 30, and 36 and 47 become 40.
    assert_eq!(ages, counts(&[("30", 4 * 23), ("40", 4 * 25)]));
    let mark = String::from_utf8(place.read("out.age.ndjson.untruthful")).expect("text");
    assert!(mark.contains("numbers replaced by others or by means"), "{mark}");
    assert_eq!(marks(&place), ["out.age.ndjson.untruthful"], "all cities are true");
}

#[test]
fn treatment_aggregate_gives_means_of_crowds() {
    let (place, ages) = released("aggregate");
    // The mean of 33, 36, 47 and twenty-three times 40 is 40.
    assert_eq!(ages, counts(&[("30", 4 * 22), ("40", 4 * 26)]));
    assert!(ages.values().all(|count| *count >= 4 * K), "{ages:?}");
    assert_eq!(marks(&place), ["out.age.ndjson.untruthful"]);
}

#[test]
fn treatment_aggregate_discloses_no_original_number() {
    const SALARIES: &str = schema!("pay"; person, number "salary", text "city");
    let rule = "[[treatment.rule]]\nattributes = [\"salary\"]\ntreat = \"aggregate\"\n";
    let place = Place::new(SALARIES, rule);
    place.write("throng.tuning", "identifier_cardinality = 1.0");
    // Ten of forty have a shared salary, so it is no identifier.
    let salary = |n: u64| if n.is_multiple_of(4) { 50_000 } else { 1_000 + n * n * 7 };
    let mut text = String::new();
    for n in 0..400 {
        writeln!(text, r#"{{"person":"p{n}","salary":{},"city":"Bern"}}"#, salary(n)).expect("a string");
    }
    place.write("in.ndjson", text);
    place.run(&[]).expect(0);
    let own: BTreeSet<u64> = (0..400_u64).filter(|n| !n.is_multiple_of(4)).map(salary).collect();
    let shown: Vec<Value> =
        place.lines("out.ndjson").iter().map(|line| serde_json::from_str(line).expect("a line")).collect();
    let numbers: Vec<u64> = shown.iter().filter_map(|line| line["salary"].as_u64()).collect();
    assert!(numbers.len() > 200, "{} numbers", numbers.len());
    // A mean may equal a number by chance.
    let met = numbers.iter().filter(|number| own.contains(number)).count();
    assert!(met * 20 < numbers.len(), "{met} of {} are somebody's own", numbers.len());
}

/// Altered values remain in the output or are held.
#[test]
fn untruthful_mark_remains_after_the_rule_is_removed() {
    let place = treated("perturb");
    place.run(&[]).expect(0);
    let text = String::from_utf8(place.read("throng.toml")).expect("text");
    let plain = text.split("[[treatment.rule]]").next().expect("the beginning").to_owned();
    place.write("throng.toml", &plain);
    place.write("in.ndjson", [records(), records().replace(":\"p", ":\"q")].concat());
    place.run(&[]).expect(0);
    assert!(String::from_utf8(place.read("out.age.ndjson.untruthful")).expect("text").contains("numbers replaced"));
}

#[test]
fn state_continues_with_another_treatment() {
    let place = treated("");
    place.run(&[]).expect(0);
    let more: String = records().replace(":\"p", ":\"q");
    place.write("in.ndjson", [records(), more].concat());
    let text = String::from_utf8(place.read("throng.toml")).expect("text");
    place.write("throng.toml", text + "[[treatment.rule]]\nattributes = [\"age\"]\ntreat = \"suppress_cell\"\n");
    place.run(&[]).expect(0);
    let after = place.lines("out.age.ndjson");
    assert!(after.len() > 150, "{}", after.len());
    assert!(!after.iter().any(|line| line.contains('-')), "no interval: {after:?}");
}

#[test]
fn check_explain_describes_treatments() {
    let place = treated("perturb");
    let told = throng(&place, &["check", "-c", "throng.toml", "--explain"]).expect(0);
    let text = String::from_utf8(told.stdout).expect("text");
    assert!(text.contains("perturb          treatment.rule[0] matches it"), "{text}");
    assert!(text.contains("the closest number of its batch"), "{text}");
    let schemas = throng(&place, &["check", "-c", "throng.toml", "--output-schema"]).expect(0);
    let schemas: Value = serde_json::from_slice(&schemas.stdout).expect("JSON");
    assert_eq!(schemas["age"]["x-throng-truthful"], false);
    let cells = treated("suppress_cell");
    let schemas = throng(&cells, &["check", "-c", "throng.toml", "--output-schema"]).expect(0);
    let schemas: Value = serde_json::from_slice(&schemas.stdout).expect("JSON");
    assert_eq!(schemas["age"]["x-throng-truthful"], true);
    assert_eq!(schemas["age"]["properties"]["age"]["x-throng-levels"], serde_json::json!(["exact", "not shown"]));
}

#[test]
fn treatment_configuration_errors_name_the_key() {
    let refused = |more: &str, key: &str| {
        let place = Place::new(SCHEMA, more);
        place.write("in.ndjson", records());
        let told = throng(&place, &["check", "-c", "throng.toml"]).expect(2);
        assert!(told.stderr.contains(key), "{key}: {}", told.stderr);
    };
    let rule = |text: &str| format!("[[treatment.rule]]\n{text}\n");
    let groups = "[[group]]\nname = \"all\"\nattributes = [\"age\", \"city\"]\n";
    refused(&rule("attributes = [\"city\"]\ntreat = \"perturb\""), "treatment.rule[0].attributes");
    refused(&rule("attributes = [\"person\"]\ntreat = \"suppress_cell\""), "treatment.rule[0].attributes");
    refused(&rule("treat = \"guess\""), "treatment.rule[0].treat");
    refused(&(groups.to_owned() + &rule("treat = \"compartment\"")), "treatment.rule");
    refused(&("[treatment]\npreset = \"a\"\n".to_owned() + groups), "treatment.preset");
    refused("[treatment]\npreset = \"d\"\n", "treatment.preset");
    refused(&("[plan]\ngroups = \"cliques\"\n".to_owned() + &rule("treat = \"compartment\"")), "plan.groups");
    refused("[plan]\ngroups = \"border\"\n[treatment]\npreset = \"coverage\"\n", "plan.groups");
    let place = treated("suppress_cell");
    let told = throng(&place, &["anonymize", "in.ndjson", "-c", "throng.toml", "-o", "released.ndjson"]).expect(2);
    assert!(told.stderr.contains("treatment.rule"), "{}", told.stderr);
    assert!(!place.path("released.ndjson").exists());
}

#[test]
fn treatment_presets_release_verified_output() {
    const WIDE: &str = schema!("visits"; person, hundred "age", text "city", text "street", text "job", number "steps");
    let mut text = String::new();
    for n in 0..600_u64 {
        // Streets and jobs are common separately, and few subjects share both.
        let (street, job) = (n * 7 % 20, n * n % 19 % 15);
        let (age, steps) = (20 + n % 9, 100 * (n % 37));
        writeln!(
            text,
            r#"{{"person":"p{n}","age":{age},"city":"c{}","street":"s{street}","job":"j{job}","steps":{steps}}}"#,
            n % 2
        )
        .expect("a string");
    }
    for (preset, true_of_all) in [("k-anonymous", true), ("coverage", false), ("a", false), ("b", false), ("c", false)]
    {
        let place = Place::new(WIDE, &format!("[treatment]\npreset = \"{preset}\"\n"));
        place.write("in.ndjson", &text);
        place.run(&[("BATCH__MAX_RECORDS", "200")]).expect(0);
        let told = throng(&place, &["check", "-c", "throng.toml"]).expect(0);
        let told = String::from_utf8(told.stdout).expect("text");
        let marks: Vec<_> =
            place.files(".").into_iter().filter(|(path, _)| path.to_string_lossy().contains("untruthful")).collect();
        assert_eq!(marks.is_empty(), true_of_all || !told.contains("perturb"), "{preset}: {told}");
        let released = place.path("out.ndjson");
        let recounted = throng(&place, &["verify-release", &released.to_string_lossy(), "-c", "throng.toml"]);
        assert_eq!(recounted.code, Some(0), "{preset}: {}", recounted.stderr);
        if preset == "coverage" {
            assert!(told.contains("street") && told.contains("compartment"), "{told}");
            let groups: BTreeSet<String> =
                told.lines().filter(|line| line.contains("attributes = [")).map(str::to_owned).collect();
            assert!(groups.iter().all(|group| !(group.contains("\"street\"") && group.contains("\"job\""))), "{told}");
        }
    }
}

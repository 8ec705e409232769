//! Files of people that cannot be used are named at the start, by `throng check` and `throng run` alike: file, place,
//! remedy.

use crate::register::QUASI;
use crate::support::binary::Place;
use crate::{ILLNESS, PERSON};
use std::process::Command;

const GOOD: &str = "person,age,city,name\na,31,Zug,Ann\na,32,Zug,Ann\nb,33,Bern,Bob\nc,34,nowhere,Cy\n";

fn place(models: &str) -> Place {
    let place = Place::new(&format!("name = \"refusals\"\n{PERSON}{QUASI}{ILLNESS}"), models);
    place.write("in.ndjson", "");
    place
}

fn model(rest: &str) -> String {
    format!("[[privacy.model]]\nkind = \"k_map\"\n{rest}")
}

#[test]
fn populations_that_cannot_be_used_are_named() {
    let three = model("k = 3\npopulation = \"people.csv\"\n");
    let named = |file: &str| model(&format!("k = 3\npopulation = \"{file}\"\n"));
    for (models, file, content, says) in [
        (three.clone(), "", "", &["privacy.model[0].population", "people.csv", "cannot open"][..]),
        (three.clone(), "people.csv", "", &["people.csv", "header"]),
        (three.clone(), "people.csv", "age,city\n", &["people.csv", "0 records"]),
        (
            three.clone(),
            "people.csv",
            "name,street\nAnn,1\nBob,2\n",
            &["people.csv", "in the schema", "source.separator"],
        ),
        (three.clone(), "people.csv", "illness,street\nflu,1\n", &["people.csv", "none of the schema's quasi"]),
        (three.clone(), "people.csv", "age;city\n31;Zug\n", &["people.csv", "source.separator"]),
        (three.clone(), "people.csv", "age,city\n31,Zug\nold,Zug\n", &["people.csv", "record 2", "\"age\"", "correct"]),
        (three.clone(), "people.csv", "age,city\n31,Zug\n31\n", &["people.csv", "record 2", "cannot be read"]),
        (three.clone(), "people.csv", "person,age\na,31\na,32\nb,33\n,34\n", &["has 2 people", "needs 3"]),
        (three.clone(), "people.csv", "age\n31\n32\n", &["has 2 people", "needs 3", "lower k"]),
        (named("people.json"), "people.json", "{\"age\":31}\n[1]\n", &["people.json", "record 2"]),
        (named("people.json"), "people.json", "{\"age\":31}\n{\"age\":{}}\n", &["people.json", "record 2", "\"age\""]),
        (named("people.json"), "people.json", "{\"name\":\"Ann\"}\n", &["none of the schema's quasi"]),
        (named("people.parquet"), "people.parquet", "age", &["people.parquet", "Parquet"]),
        (named(""), "", "", &["no file is named"]),
        (named("-"), "", "", &["standard input"]),
        (model("k = 0\npopulation = \"people.csv\"\n"), "people.csv", GOOD, &["privacy.model[0].k", "1 or more"]),
        (model("population = \"people.csv\"\n"), "people.csv", GOOD, &["privacy.model[0].k", "needs the key"]),
        (model("k = 4\n"), "", "", &["privacy.model[0].k", "no population but its own subjects", "`population`"]),
        (
            "[[privacy.model]]\nkind = \"k_anonymity\"\nk = 3\npopulation = \"people.csv\"\n".to_owned(),
            "people.csv",
            GOOD,
            &["privacy.model[0].population", "only k_map"],
        ),
    ] {
        let place = place(&models);
        if !file.is_empty() {
            place.write(file, content);
        }
        let run = place.run(&[]).expect(2);
        let check = check(&place);
        assert_eq!(check.0, Some(2), "{models}: {}", check.1);
        for text in says {
            assert!(run.stderr.contains(text), "{models}, {content:?}: {text:?} is not in {}", run.stderr);
            assert!(check.1.contains(text), "{models}, {content:?}: {text:?} is not in {}", check.1);
        }
        assert!(!run.stderr.contains("Ann"), "no value of a person is said: {}", run.stderr);
        assert!(!place.path("state").exists(), "nothing was begun");
    }
}

#[test]
fn a_check_says_who_is_known_by_what() {
    let place = place(&model("k = 3\npopulation = \"people.csv\"\n"));
    place.write("people.csv", GOOD);
    let (code, said) = check(&place);
    assert_eq!(code, Some(0), "{said}");
    let line = "people.csv: 3 people in 4 record(s), known by age, city; every class needs 3 of them; 1 cell(s)";
    assert!(said.contains(line) && !said.contains("Ann"), "{said}");
}

#[test]
fn a_start_with_another_population_says_so() {
    let place = place(&model("k = 3\npopulation = \"people.csv\"\n"));
    place.write("people.csv", GOOD);
    let first = place.run(&[]).expect(0).stderr;
    assert!(first.contains("populations read") && !first.contains("others than before"), "{first}");
    let again = place.run(&[]).expect(0).stderr;
    assert!(again.contains("populations read") && !again.contains("others than before"), "{again}");
    // The same people, spelled otherwise.
    place.write("people.csv", GOOD.replace("31", "31.0").replace("name", "nickname"));
    let spelled = place.run(&[]).expect(0).stderr;
    assert!(!spelled.contains("others than before"), "{spelled}");
    place.write("people.csv", format!("{GOOD}d,35,Zug,Dee\n"));
    let other = place.run(&[]).expect(0).stderr;
    assert!(other.contains("others than before") && !other.contains("Dee"), "{other}");
}

#[test]
fn a_data_set_at_once_is_its_own_population() {
    let place = place(&model("k = 3\npopulation = \"people.csv\"\n"));
    place.write("people.csv", GOOD);
    place.write("in.ndjson", "{\"person\":\"a\",\"age\":31,\"city\":\"Zug\",\"mood\":\"calm\",\"illness\":\"flu\"}\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.args(["anonymize", "in.ndjson", "-c", "throng.toml", "-o", "at-once.ndjson"]);
    place.surround(&mut command, &[]);
    let output = command.output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("privacy.model[0].population") && said.contains("its own population"), "{said}");
    assert!(!place.path("at-once.ndjson").exists());
}

/// The exit code of `throng check`, and what it said.
fn check(place: &Place) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.args(["check", "-c", "throng.toml"]);
    place.surround(&mut command, &[]);
    let output = command.output().expect("runs");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

//! Tests policies with embedded tests, and the comparison of two policies.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::support;

use support::schemas::schema;

const SCHEMA: &str = schema!("visits"; person, text "lot", hundred "age", more r#"
[[attribute]]
name = "ward"
type = "string"
[attribute.hierarchy]
kind = "tree"
[attribute.hierarchy.tree]
"beds" = ["north", "south"]
"day" = ["east", "west", "tent"]
"#);

const CONFIG: &str = r#"
[source]
kind = "file"
path = "@/canary-in.ndjson"
[sink]
kind = "file"
path = "@/canary-out.ndjson"
[schema]
file = "@/visits.toml"
[privacy]
k = 3
[state]
path = "@/state"
[[group]]
name = "trace"
attributes = ["lot"]
[[group]]
name = "visit"
attributes = ["age", "ward"]
"#;

const TESTS: &str = r#"
[[test]]
name = "a crowd that is alike leaves exactly"
input = ['{"person": "anna", "lot": "L1", "age": 34, "ward": "north"}']
people = 12
expect = ['{"age": "34", "ward": "north"}', '{"lot": "L1"}']
never = ["person 1", '{"ward": "south"}']
released = 12
[[test]]
name = "one person does not leave"
input = ['{"person": "anna", "lot": "L1", "age": 34, "ward": "north"}', '{"person": "cut sho']
never = ["34", "north", "anna", "sho"]
released = 0
"#;

struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().expect("a directory"));
        desk.write("visits.toml", SCHEMA);
        desk
    }

    fn write(&self, name: &str, text: &str) {
        let text = text.replace('@', &self.0.path().to_string_lossy());
        fs::write(self.0.path().join(name), text).expect("a file");
    }

    fn throng(&self, arguments: &[&str]) -> Output {
        let mut command = crate::support::binary::throng();
        command.current_dir(self.0.path()).args(arguments).output().expect("the program runs")
    }

    fn check(&self, config: &str) -> (Option<i32>, String, String) {
        self.write("throng.toml", config);
        said(&self.throng(&["check", "-c", "throng.toml"]))
    }
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn is_tidy(directory: &Path) {
    let names: Vec<String> = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!names.iter().any(|name| name.starts_with("canary-out") || name == "state"), "a trial kept {names:?}");
}

#[test]
fn policy_tests_that_hold_pass_the_check() {
    let desk = Desk::new();
    // A truncated record is not valid JSON, so it is read from a file.
    let tests = TESTS.replace(
        r#"input = ['{"person": "anna", "lot": "L1", "age": 34, "ward": "north"}', '{"person": "cut sho']"#,
        "file = \"@/alone.ndjson\"",
    );
    desk.write(
        "alone.ndjson",
        "{\"person\": \"anna\", \"lot\": \"L1\", \"age\": 34, \"ward\": \"north\"}\n{\"person\": \"cut sho\n",
    );
    let (code, out, err) = desk.check(&(CONFIG.to_owned() + &tests));
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("test \"a crowd that is alike leaves exactly\": passed (12 of 12 records released)"), "{out}");
    assert!(out.contains("test \"one person does not leave\": passed"), "{out}");
    is_tidy(desk.0.path());
}

#[test]
fn policy_tests_that_fail_show_the_differences() {
    let desk = Desk::new();
    let config = CONFIG.replace("k = 3", "k = 13")
        + TESTS.split("[[test]]").nth(1).map(|t| format!("[[test]]{t}")).as_deref().unwrap_or_default();
    let (code, out, err) = desk.check(&config);
    assert_eq!(code, Some(2), "{out}{err}");
    assert!(out.contains("FAILED (0 of 12 records released)"), "{out}");
    assert!(
        out.contains("expected: {\"age\": \"34\", \"ward\": \"north\"}") && out.contains("nothing was released"),
        "{out}"
    );
    assert!(out.contains("released: expected 12, got 0"), "{out}");
    assert!(err.contains("1 of 1 tests failed"), "{err}");
    let wrong = |from: &str, to: &str| {
        assert!(TESTS.contains(from), "{from}");
        let first = TESTS.split("[[test]]").nth(1).expect("a test");
        let (code, out, err) = desk.check(&format!("{CONFIG}[[test]]{}", first.replace(from, to)));
        assert_eq!(code, Some(2), "{out}{err}");
        out
    };
    let out = wrong(r#""ward": "north"}', '{"lot""#, r#""ward": "south"}', '{"lot""#);
    assert!(out.contains("nearest: group visit, line 1: {\"age\":34,\"ward\":\"north\"}"), "{out}");
    assert!(out.contains("differs: ward"), "{out}");
    let out = wrong(r#"{"ward": "south"}"#, r#"{"ward": "north"}"#);
    assert!(out.contains("never: {\"ward\": \"north\"}") && out.contains("got: group visit, line 1"), "{out}");
    let out = wrong("\"person 1\"", "\"orth\"");
    assert!(out.contains("never: orth"), "a part of a text is found: {out}");
    is_tidy(desk.0.path());
}

#[test]
fn policy_tests_that_can_not_fail_are_refused() {
    let desk = Desk::new();
    let record = r#"['{"person": "a", "lot": "L1", "age": 3, "ward": "north"}']"#;
    let named = record.replace("\"person\": \"a\"", "\"person\": \"canary\"");
    let cases = [
        (format!("name = \"x\"\ninput = {record}"), "test[0]: the test has no expectation"),
        ("name = \"x\"\nreleased = 1".to_owned(), "test[0].input: records come from input or from file"),
        (format!("input = {record}\nreleased = 1"), "test[0].name: invalid test name"),
        ("name = \"x\"\ninput = ['[1]']\nreleased = 1".to_owned(), "test[0].input: not a JSON object"),
        (format!("name = \"x\"\ninput = {record}\nexpect = ['canary']"), "test[0].expect: not a JSON object"),
        (format!("name = \"x\"\ninput = {record}\nnever = ['']"), "test[0].never: no text and no cells are given"),
        (
            format!("name = \"x\"\ninput = {record}\nexpect = ['{{\"wart\": \"canary\"}}']"),
            "test[0].expect: the schema has no attribute \"wart\"",
        ),
        (
            format!("name = \"x\"\ninput = {record}\nnever = ['{{\"person\": \"canary\"}}']"),
            "test[0].never: \"person\" has the role subject, which is never released",
        ),
        (
            format!("name = \"x\"\ninput = {record}\nexpect = ['{{\"age\": \"3\", \"lot\": \"L1\"}}']"),
            "test[0].expect: no group has all of the attributes [\"age\", \"lot\"]",
        ),
        (format!("name = \"x\"\ninput = {record}\npeople = 10001\nreleased = 1"), "test[0].people: too many people"),
        ("name = \"x\"\nfile = \"@/no.ndjson\"\nreleased = 1".to_owned(), "test[0].file"),
        (format!("name = \"x\"\ninput = {record}\nexpects = []"), "test[0].expects: unknown key"),
        (
            format!("name = \"x\"\ninput = {record}\nnever = ['{{\"ward\": \"canary\"']"),
            "test[0].never: starts like cells and is not a JSON object",
        ),
        (
            format!("name = \"x\"\ninput = {record}\nnever = [' {{']"),
            "test[0].never: starts like cells and is not a JSON object",
        ),
        (
            format!("name = \"x\"\ninput = {named}\npeople = 12\nnever = [\"canary\"]"),
            "test[0].never: a text is only in the subject, which is replaced by invented people",
        ),
    ];
    for (test, told) in cases {
        let (code, out, err) = desk.check(&format!("{CONFIG}[[test]]\n{test}\n"));
        assert_eq!(code, Some(2), "{test}: {out}{err}");
        assert!(err.contains(told), "{test}: {err}");
        assert!(!err.contains("canary\""), "a problem names places, no values: {err}");
    }
    let elsewhere = record.replace("\"person\": \"a\"", "\"person\": \"north\"");
    for never in ["[\"north\"]", "[\"person 1\"]", "['{\"ward\": \"north\"}']"] {
        let test =
            format!("[[test]]\nname = \"x\"\ninput = {elsewhere}\npeople = 12\nnever = {never}\nreleased = 12\n");
        let (_, out, err) = desk.check(&format!("{CONFIG}{test}"));
        assert!(!err.contains("test[0]") && out.contains("test \"x\": "), "{never}: {out}{err}");
    }
}

#[test]
fn policy_diff_is_a_table_of_figures() {
    let desk = Desk::new();
    let records: String = (0..600)
        .map(|n| {
            let (age, ward) = ([31, 32, 45, 71, 72, 88][n % 6], ["north", "south", "east", "tent"][n / 6 % 4]);
            format!("{{\"person\": \"canary{n}\", \"lot\": \"L{}\", \"age\": {age}, \"ward\": \"{ward}\"}}\n", n / 50)
        })
        .collect();
    desk.write("sample.ndjson", &records);
    desk.write("old.toml", &CONFIG.replace("k = 3", "k = 20"));
    desk.write("new.toml", CONFIG);
    let (code, out, err) = said(&desk.throng(&["diff", "old.toml", "new.toml", "--replay", "sample.ndjson"]));
    assert_eq!(code, Some(0), "{out}{err}");
    for told in [
        "| k | 20 | 3 | −17 |",
        "| records | 600 | 600 | = |",
        "| smallest class |",
        "| loss of `age` |",
        "Keys that differ: `privacy.k`.",
    ] {
        assert!(out.contains(told), "{told}: {out}");
    }
    assert!(!out.contains("canary"), "no value and no path: {out}");
    let (code, out, err) = said(&desk.throng(&[
        "diff",
        "old.toml",
        "new.toml",
        "--replay",
        "sample.ndjson",
        "--json",
        "--fail-if-riskier",
    ]));
    let json: Value = serde_json::from_str(&out).expect("JSON");
    assert!(json["old"]["smallest_crowd"].as_u64() >= Some(20), "{out}");
    assert!(json["new"]["smallest_crowd"].as_u64() >= Some(3), "{out}");
    assert!(json["new"]["loss"].as_f64() <= json["old"]["loss"].as_f64(), "{out}");
    // A weaker guarantee counts as riskier, independent of the records.
    assert_eq!(code, Some(4), "{out}{err}");
    assert!(json["riskier"].as_array().is_some_and(|all| all.contains(&"a smaller k".into())), "{out}");
    let (code, out, err) =
        said(&desk.throng(&["diff", "new.toml", "old.toml", "--replay", "sample.ndjson", "--fail-if-riskier"]));
    assert_eq!(code, Some(0), "{out}{err}");
    let (code, out, err) = said(&desk.throng(&["diff", "new.toml", "new.toml", "--replay", "sample.ndjson"]));
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains("No key differs.")
            && out.lines().filter(|l| l.starts_with("| ")).skip(1).all(|l| l.ends_with("| = |")),
        "{out}"
    );
    is_tidy(desk.0.path());
}

#[test]
fn policy_diff_names_identifying_combinations() {
    let desk = Desk::new();
    let records: String = (0..120)
        .map(|n| {
            let (age, ward) = ([31, 32][n % 2], ["north", "south"][n / 2 % 2]);
            // Twelve subjects per mark; three with each mark, age and ward.
            let mark = n / 12;
            format!("{{\"person\": \"canary{n}\", \"lot\": \"L1\", \"age\": {age}, \"ward\": \"{ward}\", \"mark\": \"m{mark}\"}}\n")
        })
        .collect();
    desk.write("sample.ndjson", &records);
    let with = |role: &str| format!("{SCHEMA}[[attribute]]\nname = \"mark\"\ntype = \"string\"\nrole = \"{role}\"\n");
    desk.write("old-visits.toml", &with("identifier"));
    desk.write("new-visits.toml", &with("insensitive"));
    let config = CONFIG.replace("k = 3", "k = 5");
    desk.write("old.toml", &config.replace("visits.toml", "old-visits.toml"));
    let new = config.replace("visits.toml", "new-visits.toml");
    desk.write("new.toml", &new.replace("[\"age\", \"ward\"]", "[\"age\", \"ward\", \"mark\"]"));
    let run = |old: &str, new: &str, more: &[&str]| {
        said(&desk.throng(&[&["diff", old, new, "--replay", "sample.ndjson"], more].concat()))
    };
    let (code, out, err) = run("old.toml", "new.toml", &[]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("| combinations that single people out | 0 | 1 | +1 |"), "{out}");
    let named = "New: in the release, fewer than k people share values of `age` + `mark` + `ward`.";
    assert!(out.contains(named) && out.contains("a combination that singles people out"), "{out}");
    assert!(!out.contains("canary") && !out.contains("m1"), "no value: {out}");
    let (code, out, _) = run("new.toml", "old.toml", &["--json"]);
    assert_eq!(code, Some(0));
    let json: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["old"]["singled_out_by"], serde_json::json!([["age", "mark", "ward"]]), "{out}");
    assert_eq!(
        (&json["new"]["singled_out_by"], &json["new"]["singled_out_complete"]),
        (&serde_json::json!([]), &true.into())
    );
}

#[test]
fn policy_diff_names_keys_that_need_a_restart() {
    let desk = Desk::new();
    let records: String = (0..60)
        .map(|n| format!("{{\"person\": \"p{n}\", \"lot\": \"L1\", \"age\": 31, \"ward\": \"north\"}}\n"))
        .collect();
    desk.write("sample.ndjson", &records);
    desk.write("old.toml", CONFIG);
    desk.write(
        "new.toml",
        &CONFIG
            .replace("[state]", "release_window = \"1h\"\n[telemetry]\nlog_level = \"warn\"\n[state]")
            .replace("@/state", "@/canary-state"),
    );
    let (code, out, err) = said(&desk.throng(&["diff", "old.toml", "new.toml", "--replay", "sample.ndjson"]));
    assert_eq!(code, Some(0), "{out}{err}");
    let differ = "Keys that differ: `privacy.release_window`, `state.path`, `telemetry.log_level`.";
    assert!(out.contains(differ), "{out}");
    assert!(out.contains("A running daemon needs a restart for `state.path`, `telemetry.log_level`."), "{out}");
    assert!(!out.contains("1h") && !out.contains("canary"), "no value of a key: {out}");
}

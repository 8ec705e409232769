//! Tests data loss that looks like success: the run reports it, and fails if all records are lost.

use crate::support;

use support::binary::{Outcome, Place};

const SCHEMA: &str = r#"
name = "visits"
[[attribute]]
name = "person"
pointer = "/who/person"
type = "string"
role = "subject"
[[attribute]]
name = "day"
type = "date"
[[attribute]]
name = "ward"
type = "string"
"#;

fn visits(people: usize, times: usize, day: &str) -> String {
    let record = |n: usize| {
        let person = n % people;
        format!("{{\"who\":{{\"person\":\"p{person}\"}},\"day\":\"{day}\",\"ward\":\"north\"}}\n")
    };
    (0..people * times).map(record).collect()
}

fn run(place: &Place, arguments: &[&str]) -> Outcome {
    support::binary::Process::spawn(place.command(&[], arguments), place.port).wait()
}

fn notes(outcome: &Outcome) -> Vec<&str> {
    outcome.stderr.lines().filter_map(|line| line.strip_prefix("note: ")).collect()
}

#[test]
fn unreadable_dates_are_named_and_counted() {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", visits(5, 4, "the fifth of May"));
    let outcome = place.run(&[]).expect(1);
    assert_eq!(outcome.account().dead_lettered, 20);
    let notes = notes(&outcome);
    assert!(notes.iter().any(|n| n.contains("\"day\": 20 of 20 records could not be read as date")), "{notes:?}");
    assert!(outcome.stderr.contains("error: every record was lost"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("fifth of May"), "the value itself stays unsaid");
}

#[test]
fn subject_missing_in_all_records_is_reported() {
    let place = Place::new(&SCHEMA.replace("/who/person", "/who/pesron"), "");
    place.write("in.ndjson", visits(5, 4, "2024-05-12"));
    let outcome = place.run(&[]).expect(1);
    assert_eq!(outcome.account().suppressed, 20);
    let notes = notes(&outcome);
    assert!(
        notes.iter().any(|n| n.contains("none of 20 records has a subject") && n.contains("/who/pesron")),
        "{notes:?}"
    );
}

#[test]
fn attribute_missing_in_all_records_is_reported() {
    let place = Place::new(&SCHEMA.replace("name = \"ward\"", "name = \"ward\"\npointer = \"/station/ward\""), "");
    place.write("in.ndjson", visits(5, 4, "2024-05-12"));
    let outcome = place.run(&[]).expect(0);
    assert_eq!(outcome.account().released, 20);
    let notes = notes(&outcome);
    assert!(
        notes.iter().any(|n| n.contains("\"ward\" had no value in any of 20") && n.contains("/station/ward")),
        "{notes:?}"
    );
}

#[test]
fn too_few_subjects_are_reported() {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", visits(2, 10, "2024-05-12"));
    let outcome = place.run(&[]).expect(1);
    let notes = notes(&outcome);
    assert!(notes.iter().any(|n| n.contains("only 2 people were found and a class needs 3")), "{notes:?}");
}

#[test]
fn open_quote_is_reported_with_its_record() {
    let place = Place::new(&SCHEMA.replace("pointer = \"/who/person\"", "column = \"person\""), "");
    let mut csv = String::from("person,day,ward\n");
    for n in 0..500 {
        let ward = if n == 99 { "\"north" } else { "north" };
        csv.push_str(&format!("p{},2024-05-12,{ward}\n", n % 5));
    }
    place.write("in.csv", csv);
    let outcome = place.run(&[("SOURCE__PATH", "in.csv"), ("SOURCE__FORMAT", "csv")]).expect(0);
    assert_eq!(outcome.account().consumed, 100, "the rest of the file is one record");
    let notes = notes(&outcome);
    assert!(
        notes.iter().any(|n| n.contains("span 401 lines, the first is record 100") && n.contains("a quote is likely")),
        "{notes:?}"
    );
}

#[test]
fn open_quote_lines_count_for_fail_above() {
    for last_break in [true, false] {
        let place = Place::new(&SCHEMA.replace("pointer = \"/who/person\"", "column = \"person\""), "");
        let mut csv = String::from("person,day,ward\n");
        for n in 0..100 {
            let ward = if n == 30 { "\"north" } else { "north" };
            csv.push_str(&format!("p{},2024-05-12,{ward}\n", n % 5));
        }
        csv.truncate(csv.len() - usize::from(!last_break));
        place.write("in.csv", csv);
        let overrides = [("SOURCE__PATH", "in.csv"), ("SOURCE__FORMAT", "csv")];
        let command = place.command(&overrides, &["--fail-above", "0.5"]);
        let outcome = support::binary::Process::spawn(command, place.port).wait().expect(1);
        let account = outcome.account();
        assert_eq!((account.consumed, account.released, account.dead_lettered), (31, 30, 1));
        // One unreadable record swallows 69 lines.
        let says = "70.0 % of the records were lost, including 69 line(s) inside an unclosed quote";
        assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
    }
}

#[test]
fn second_stateless_run_gives_the_same_result() {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", visits(12, 2, "2024-05-12"));
    let stateless = [("STATE__PATH", "")];
    let first = place.run(&stateless).expect(0);
    let before = place.read("out.ndjson");
    assert!(!before.is_empty() && !place.path("state").exists());
    place.write("out.ndjson", "of somebody else\n");
    assert_eq!(place.run(&stateless).expect(0).account(), first.account());
    assert_eq!(place.read("out.ndjson"), before);
    let account = place.run(&[("STATE__PATH", ""), ("PRIVACY__K", "20")]).expect(1).account();
    assert_eq!((account.consumed, account.released), (24, 0));
    assert_eq!(place.read("out.ndjson"), before, "what is there is not replaced by nothing");
}

#[test]
fn loss_above_fail_above_is_refused() {
    let place = Place::new(SCHEMA, "");
    let mut records = visits(5, 4, "2024-05-12");
    records.push_str(&visits(5, 1, "tomorrow"));
    place.write("in.ndjson", records);
    let outcome = run(&place, &["--fail-above", "0.1"]).expect(1);
    assert!(
        outcome.stderr.contains("20.0 % of the records were lost, but --fail-above allows 10.0 %"),
        "{}",
        outcome.stderr
    );
    let place_of_more = Place::new(SCHEMA, "");
    place_of_more.write("in.ndjson", visits(5, 4, "2024-05-12") + &visits(5, 1, "tomorrow"));
    run(&place_of_more, &["--fail-above", "0.5"]).expect(0);
    let refused = run(&place_of_more, &["--fail-above", "2"]).expect(2);
    assert!(refused.stderr.contains("between 0 and 1"), "{}", refused.stderr);
}

#[test]
fn job_refused_for_its_loss_changes_no_file() {
    let place = Place::new(SCHEMA, "");
    let memory = [("PRIVACY__MAX_LINES_PER_SUBJECT", "1"), ("PRIVACY__MAX_DELAY", "1s")];
    let run =
        |arguments: &[&str]| support::binary::Process::spawn(place.command(&memory, arguments), place.port).wait();
    for name in ["out.ndjson", "dead.ndjson"] {
        place.write(name, "of yesterday\n");
    }
    let is_as_before =
        || place.read("out.ndjson") == b"of yesterday\n" && place.read("dead.ndjson") == b"of yesterday\n";
    place.write("in.ndjson", visits(5, 1, "2024-05-12") + &visits(5, 9, "tomorrow"));
    let refused = run(&["--fail-above", "0.05"]).expect(1);
    assert!(refused.stderr.contains("90.0 % of the records were lost"), "{}", refused.stderr);
    assert!(refused.stderr.contains("no output was replaced"), "{}", refused.stderr);
    assert!(is_as_before(), "a share is lost");
    place.write("other.ndjson", visits(5, 4, "tomorrow"));
    let all = [("SOURCE__PATH", "other.ndjson"), ("STATE__PATH", "")];
    assert!(place.run(&all).expect(1).stderr.contains("every record was lost"));
    assert!(is_as_before(), "everything is lost");
    assert_eq!(run(&[]).expect(0).account().released, 5);
    assert!(!is_as_before());
    // Only now the state contains that input.
    std::fs::rename(place.path("in.ndjson"), place.path("renamed.ndjson")).expect("a file");
    place.write("in.ndjson", place.read("renamed.ndjson"));
    let written = place.read("out.ndjson");
    let again = run(&[]).expect(2);
    assert!(again.stderr.contains("already has this input"), "{}", again.stderr);
    assert_eq!(place.read("out.ndjson"), written);
}

#[cfg(feature = "failpoints")]
fn killed(place: &Place, arguments: &[&str], faults: &str) {
    let mut command = place.command(&[], arguments);
    command.env("FAILPOINTS", faults);
    assert_eq!(support::binary::Process::spawn(command, place.port).wait().code, None, "{faults}");
}

/// The loss is measured over the file and not over one process.
#[test]
#[cfg(feature = "failpoints")]
fn file_loss_after_a_kill_is_reported_identically() {
    let input = "broken\n".repeat(50) + &visits(10, 5, "never") + &visits(30, 4, "2024-05-12");
    let gate: &[&str] = &["--fail-above", "0.3"];
    let told = |outcome: &Outcome| {
        let told = |line: &&str| line.starts_with("note: ") || line.starts_with("error: ");
        outcome.stderr.lines().filter(told).map(str::to_owned).collect::<Vec<_>>()
    };
    let calm = Place::new(SCHEMA, "");
    calm.write("in.ndjson", &input);
    let wanted = told(&run(&calm, gate).expect(1));
    assert!(wanted.iter().any(|line| line.contains("50 of 170 records could not be read as date")), "{wanted:?}");
    assert!(wanted.iter().any(|line| line.contains("45.5 % of the records were lost")), "{wanted:?}");
    for batch in 0..4 {
        let place = Place::new(SCHEMA, "");
        place.write("in.ndjson", &input);
        killed(&place, gate, &format!("intent-flushed={batch}*off->return"));
        assert_eq!(told(&run(&place, gate).expect(1)), wanted, "killed in batch {}", batch + 1);
    }
    let again = told(&run(&calm, gate).expect(1));
    assert!(again.iter().any(|line| line.contains("45.5 % of the records were lost")), "{again:?}");
    run(&calm, &["--fail-above", "0.5"]).expect(0);
}

/// The last batch of a file has few subjects and releases none.
#[test]
#[cfg(feature = "failpoints")]
fn small_last_batch_gives_no_loss_note() {
    let rest: String =
        ["z1", "z2"].map(|who| format!("{{\"who\":{{\"person\":\"{who}\"}},\"ward\":\"{who}\"}}\n")).concat();
    let input = visits(25, 4, "2024-05-12") + &rest;
    let calm = Place::new(SCHEMA, "");
    calm.write("in.ndjson", &input);
    let undisturbed = calm.run(&[]).expect(0);
    assert!(notes(&undisturbed).is_empty(), "{:?}", notes(&undisturbed));
    for faults in ["intent-flushed=2*off->return", "applied=2*off->return", "rows-laid=1*off->return"] {
        let place = Place::new(SCHEMA, "");
        place.write("in.ndjson", &input);
        killed(&place, &[], faults);
        let outcome = place.run(&[]).expect(0);
        assert!(notes(&outcome).is_empty(), "{faults}: {:?}", notes(&outcome));
        assert_eq!(outcome.account(), undisturbed.account());
    }
    calm.write("in.ndjson", input + &rest);
    assert!(notes(&calm.run(&[]).expect(0)).is_empty());
}

/// Records that were only measured are not lost.
#[test]
fn rerun_of_a_lost_file_reports_the_same_error() {
    let place = Place::new(SCHEMA, "");
    place.write("in.ndjson", visits(5, 4, "the fifth of May"));
    for _ in 0..2 {
        let outcome = place.run(&[]).expect(1);
        let notes = notes(&outcome);
        assert!(notes.iter().any(|n| n.contains("20 of 20 records could not be read as date")), "{notes:?}");
        assert!(outcome.stderr.contains("error: every record was lost"), "{}", outcome.stderr);
    }
    let measured = Place::new(SCHEMA, "");
    measured.write("in.ndjson", visits(5, 4, "2024-05-12"));
    for _ in 0..2 {
        measured.run(&[("SINK__KIND", "none")]).expect(0);
    }
    measured.write("in.ndjson", visits(5, 8, "2024-05-12"));
    assert_eq!(run(&measured, &["--fail-above", "0.1"]).expect(0).account().released, 40);
}

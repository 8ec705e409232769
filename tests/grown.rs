//! Tests groups chosen by the planner (`plan.groups = "price"`).

use crate::support;

use std::fmt::Write as _;
use support::binary::{Outcome, Place, Process};
use support::schemas::schema;

const SCHEMA: &str =
    schema!("grown"; person, hundred "age", hundred "pulse", hundred "steps", text "city", sensitive "illness");

/// Pulse and steps depend on each other and change; age and city are constant per subject.
fn records(people: u64, each: u64) -> String {
    let mut text = String::new();
    for record in 0..people * each {
        let (person, turn) = (record % people, record / people);
        let mixed = (person + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let moving = (record + 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let (age, city) = (20 + mixed % 8 * 10, ["Bern", "Zug", "Chur"][(mixed / 64 % 3) as usize]);
        let (pulse, steps) = (50 + moving % 5 * 10, moving % 5 * 20);
        let illness = ["flu", "cold", "none"][((moving / 512 + turn) % 3) as usize];
        let record = format!(
            r#"{{"person":"p{person}","age":{age},"pulse":{pulse},"steps":{steps},"city":"{city}","illness":"{illness}"}}"#
        );
        writeln!(text, "{record}").expect("a string");
    }
    text
}

/// A state accepts an input only once.
fn of_others(records: &str) -> String {
    records.replace("\"person\":\"p", "\"person\":\"q")
}

const PRICE: &str = "[plan]\ngroups = \"price\"\nprice = 0.5\n";

const MOVING: [(&str, &str); 2] = [("PRIVACY__MAX_DELAY", "1m"), ("PRIVACY__MAX_LINES_PER_SUBJECT", "1")];

fn throng(place: &Place, overrides: &[(&str, &str)], arguments: &str) -> Outcome {
    let mut command = crate::support::binary::throng();
    command.args(arguments.split_whitespace());
    place.surround(&mut command, overrides);
    Process::spawn(command, place.port).wait()
}

fn printed(outcome: &Outcome) -> String {
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    String::from_utf8(outcome.stdout.clone()).expect("text")
}

fn place() -> Place {
    let place = Place::new(SCHEMA, PRICE);
    place.write("in.ndjson", records(150, 4));
    place
}

#[test]
fn planned_groups_join_dependent_and_separate_changing_attributes() {
    let place = place();
    let said = printed(&throng(&place, &MOVING, "check -c throng.toml"));
    assert!(said.contains("groups chosen from 600 records"), "{said}");
    let group = |attribute: &str| {
        let named =
            |line: &&str| line.trim_start().starts_with("attributes") && line.contains(&format!("{attribute:?}"));
        said.lines().find(named).unwrap_or_else(|| panic!("{attribute} is in no group: {said}")).to_owned()
    };
    assert_eq!(group("pulse"), group("steps"), "{said}");
    for still in ["age", "city"] {
        assert_ne!(group(still), group("pulse"), "{said}");
    }
    assert_eq!(said, printed(&throng(&place, &MOVING, "check -c throng.toml")), "the same records, the same groups");
    assert!(!said.contains("Bern") && !said.contains("flu"), "no value: {said}");
}

#[test]
fn planned_groups_keep_the_guarantee_over_a_restart() {
    let place = place();
    for run in 0..2 {
        if run > 0 {
            place.write("in.ndjson", of_others(&records(150, 4)));
        }
        let outcome = Process::spawn(place.command(&MOVING, &["--lineage", "lineage.ndjson"]), place.port).wait();
        assert_eq!(outcome.code, Some(0), "run {run}: {}", outcome.stderr);
    }
    let report = printed(&throng(
        &place,
        &MOVING,
        "evaluate in.ndjson out.ndjson -c throng.toml --lineage lineage.ndjson --json --queries 5",
    ));
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert!(report["quality"]["lines"].as_u64().is_some_and(|lines| lines > 300), "{report:#}");
    for risk in report["risk"].as_array().expect("groups") {
        assert!(risk["smallest_class_in_batch"].as_u64().is_some_and(|smallest| smallest >= 3), "{risk}");
    }
}

#[test]
fn planned_groups_without_records_are_refused_with_a_remedy() {
    let refused = |place: &Place, overrides: &[(&str, &str)], says: &[&str]| {
        let outcome = throng(place, overrides, "check -c throng.toml");
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        for what in says {
            assert!(outcome.stderr.contains(what), "{what:?} is not in {}", outcome.stderr);
        }
    };
    let place = place();
    refused(&place, &[("SOURCE__PATH", "-"), ("SOURCE__FORMAT", "json")], &["plan.groups", "plan.prime"]);
    place.write("empty.ndjson", "");
    refused(&place, &[("PLAN__PRIME", "empty.ndjson")], &["empty.ndjson", "plan.prime"]);
    refused(&place, &[("PLAN__PRIME", "missing.ndjson")], &["missing.ndjson"]);
    refused(&place, &[("PLAN__PRICE", "0")], &["PLAN__PRICE", "above 0"]);
    let both = Place::new(SCHEMA, &format!("{PRICE}[[group]]\nname = \"a\"\nattributes = [\"age\"]\n"));
    both.write("in.ndjson", records(50, 1));
    refused(&both, &[], &["plan.groups", "remove the [[group]]s"]);
}

fn groups(said: &str) -> Vec<Vec<String>> {
    let line = |line: &str| {
        let list = line.trim().strip_prefix("attributes = [")?.split_once(']')?.0;
        Some(list.split(", ").map(|name| name.trim_matches('"').to_owned()).collect())
    };
    said.lines().filter_map(line).collect()
}

#[test]
fn planned_groups_of_every_method_keep_the_guarantee() {
    let wish = "[[keep]]\nattributes = [\"age\", \"city\", \"illness\"]\nweight = 5\n";
    for how in ["price", "cliques", "border"] {
        let place = Place::new(SCHEMA, &format!("[plan]\ngroups = \"{how}\"\nprice = 0.5\n{wish}"));
        place.write("in.ndjson", records(150, 4));
        let said = printed(&throng(&place, &MOVING, "check -c throng.toml"));
        let mut covered = groups(&said).concat();
        covered.sort_unstable();
        assert_eq!(covered, ["age", "city", "illness", "pulse", "steps"], "{how}: {said}");
        let outcome = Process::spawn(place.command(&MOVING, &["--lineage", "lineage.ndjson"]), place.port).wait();
        assert_eq!(outcome.code, Some(0), "{how}: {}", outcome.stderr);
        let evaluate = "evaluate in.ndjson out.ndjson -c throng.toml --lineage lineage.ndjson --json --queries 5";
        let report: serde_json::Value =
            serde_json::from_str(&printed(&throng(&place, &MOVING, evaluate))).expect("JSON");
        assert!(report["quality"]["lines"].as_u64().is_some_and(|lines| lines > 200), "{how}: {report:#}");
        for risk in report["risk"].as_array().expect("groups") {
            assert!(risk["smallest_class_in_batch"].as_u64().is_some_and(|smallest| smallest >= 3), "{how}: {risk}");
        }
    }
}

#[test]
fn keep_rules_are_followed_and_their_price_is_shown() {
    let wishes = "[[keep]]\nattributes = [\"age\", \"city\"]\nweight = 50\n\
        [[keep]]\nattributes = [\"pulse\", \"city\"]\nweight = 0.5\n";
    let place = Place::new(SCHEMA, &format!("[plan]\ngroups = \"border\"\nprice = 0.5\n{wishes}"));
    place.write("in.ndjson", records(150, 4));
    let said = printed(&throng(&place, &MOVING, "check -c throng.toml"));
    let together =
        |a: &str, b: &str| groups(&said).iter().any(|g| g.iter().any(|n| n == a) && g.iter().any(|n| n == b));
    assert!(together("age", "city") && !together("pulse", "city"), "{said}");
    assert!(said.contains("\"age\", \"city\" (weight 50): are released together, for 0."), "{said}");
    assert!(said.contains("one of them changes within a person and the other does not"), "{said}");

    let refused = |more: &str, says: &str| {
        let place = Place::new(SCHEMA, more);
        place.write("in.ndjson", records(50, 1));
        let outcome = throng(&place, &[], "check -c throng.toml");
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{says:?} is not in {}", outcome.stderr);
    };
    refused("[[keep]]\nattributes = [\"age\", \"city\"]\n", "keep: a [[keep]] requires groups chosen by the planner");
    refused("[plan]\ngroups = \"price\"\n[[keep]]\nattributes = [\"age\"]\n", "keep[0].attributes");
    refused("[plan]\ngroups = \"price\"\n[[keep]]\nattributes = [\"age\", \"person\"]\n", "which is never released");
    refused("[plan]\ngroups = \"price\"\n[[keep]]\nattributes = [\"age\", \"zip\"]\n", "no attribute \"zip\"");
    refused(
        "[plan]\ngroups = \"price\"\n[[keep]]\nattributes = [\"age\", \"city\"]\nweight = -1.0\n",
        "keep[0].weight",
    );
}

/// The release log has entries under the attributes of the old groups.
#[test]
fn state_with_other_groups_is_refused_with_its_groups() {
    let place = Place::new(SCHEMA, "[plan]\ngroups = \"price\"\nprice = 0.000000001\n");
    place.write("in.ndjson", records(150, 4));
    assert_eq!(Process::spawn(place.command(&MOVING, &[]), place.port).wait().code, Some(0));
    // A high price merges more attributes.
    let other = [&MOVING[..], &[("PLAN__PRICE", "1000")]].concat();
    let refused = Process::spawn(place.command(&other, &[]), place.port).wait();
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("has released other groups"), "{}", refused.stderr);
    let groups = refused.stderr.split_once("[[group]]").expect("groups").1;
    let groups: String = format!("[[group]]{groups}").lines().take_while(|line| !line.is_empty()).fold(
        String::new(),
        |mut text, line| {
            writeln!(text, "{line}").expect("a string");
            text
        },
    );
    let given = Place::new(SCHEMA, &groups);
    place.write("throng.toml", given.read("throng.toml"));
    place.write("in.ndjson", of_others(&records(150, 4)));
    let outcome = Process::spawn(place.command(&MOVING, &[]), place.port).wait();
    assert_eq!(outcome.code, Some(0), "{groups}\n{}", outcome.stderr);
}

#[test]
fn insensitive_attribute_joins_a_planned_group() {
    let schema = format!("{SCHEMA}[[attribute]]\nname = \"firmware\"\ntype = \"string\"\nrole = \"insensitive\"\n");
    let place = Place::new(&schema, PRICE);
    place.write("in.ndjson", records(150, 4).replace("}\n", ",\"firmware\":\"1\"}\n"));
    assert!(
        groups(&printed(&throng(&place, &MOVING, "check -c throng.toml"))).concat().contains(&"firmware".to_owned())
    );
}

//! Profiles in `throng anonymize` and in other commands that read one file.

use crate::profiles::{SCHEMA, classes, line};
use crate::support::binary::Place;

const JOIN: &str = "[[join]]\nname = \"profiles\"\npath = \"profiles.csv\"\n";
const ANONYMIZE: [&str; 6] = ["anonymize", "in.ndjson", "-c", "throng.toml", "-o", "at-once.ndjson"];

fn place(join: &str, profiles: &str) -> Place {
    let place = Place::new(SCHEMA, join);
    let visit = |p| format!("{{\"person\":\"p{p}\",\"ward\":\"east\",\"age\":\"none\",\"sex\":\"q\"}}\n");
    place.write("in.ndjson", (0..9).map(visit).collect::<String>());
    place.write("profiles.csv", profiles);
    place
}

fn profiles(people: std::ops::Range<usize>) -> String {
    people.fold("person,age,sex\n".to_owned(), |text, p| text + &format!("p{p},34,f\n"))
}

fn throng(place: &Place, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = crate::support::binary::throng();
    command.args(arguments);
    place.surround(&mut command, &[]);
    let out = command.output().expect("it runs");
    (out.status.code(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

#[test]
fn anonymize_joins_profiles_like_daemon() {
    let place = place(JOIN, &profiles(0..6));
    let (code, said) = throng(&place, &ANONYMIZE);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("3 of 9 records have no profile"), "{said}");
    let known = classes(&place.lines("at-once.ndjson"));
    assert_eq!((known[&line("34", "\"f\"")], known[&line("null", "null")]), (6, 3), "{known:?}");
    place.run(&[]).expect(0);
    assert_eq!(known, classes(&place.lines("out.ndjson")), "as the daemon");
}

#[test]
fn anonymize_refuses_invalid_profiles() {
    let refused = |join: &str, profiles: &str, wanted: &str| {
        let place = place(join, profiles);
        let (code, said) = throng(&place, &ANONYMIZE);
        assert!(code == Some(2) && said.contains(wanted), "{code:?} {wanted}: {said}");
        assert!(place.read("at-once.ndjson").is_empty(), "nothing has left");
    };
    let broken = profiles(0..9) + "p3,canary,f\np4\n";
    refused(JOIN, &broken, "2 row(s) of profiles.csv cannot be read, the first is number 10");
    refused(
        &format!("{JOIN}max_people = 8\n"),
        &profiles(0..9),
        "join[0].max_people: profiles.csv has profiles of more",
    );
    refused(JOIN, "person,sex\np1,f\n", "no column for attribute \"age\"");
    refused(JOIN, &profiles(0..9).replace("p4,34", "p4,900"), "the hierarchy does not cover the values of 1 cell(s)");
    refused("[[join]]\nname = \"profiles\"\ntopic = \"p\"\n", "", "join[0].topic");
    refused("", "", "is from the join \"profiles\", which is missing");
}

#[test]
fn audit_reports_attributes_missing_without_profiles() {
    let place = place(JOIN, &profiles(0..9));
    let bare = |p| format!("{{\"person\":\"p{p}\",\"ward\":\"east\"}}\n");
    place.write("bare.ndjson", (0..9).map(bare).collect::<String>());
    let (code, said) = throng(&place, &["audit", "bare.ndjson", "--schema", "schema.toml", "--k", "3", "--json"]);
    assert!(code == Some(0) && said.contains("age, sex: from profiles ([[join]])"), "{code:?} {said}");
    let whole = |p| format!("{{\"person\":\"p{p}\",\"ward\":\"east\",\"born\":{{\"age\":34}},\"sex\":\"f\"}}\n");
    place.write("whole.ndjson", (0..9).map(whole).collect::<String>());
    let (code, said) = throng(&place, &["audit", "whole.ndjson", "--schema", "schema.toml", "--k", "3", "--json"]);
    assert!(code == Some(0) && !said.contains("from profiles"), "they are in the file: {code:?} {said}");
    place.run(&[]).expect(0);
}

#[test]
fn evaluate_and_diff_join_profiles_to_records() {
    let place = place(JOIN, &profiles(0..6));
    place.run(&[]).expect(0);
    let (code, said) = throng(&place, &["evaluate", "in.ndjson", "out.ndjson", "-c", "throng.toml", "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let text = String::from_utf8(place.read("throng.toml")).expect("text");
    place.write("new.toml", text.replace("k = 3", "k = 4"));
    let (code, said) = throng(&place, &["diff", "throng.toml", "new.toml", "--replay", "in.ndjson"]);
    assert_eq!(code, Some(0), "{said}");
    for told in ["| k | 3 | 4 | +1 |", "| records | 9 | 9 | = |", "| released | 9 |", "loss of `age`", "loss of `sex`"]
    {
        assert!(said.contains(told), "{told}: {said}");
    }
    place.write("profiles.csv", "person,sex\np1,f\n");
    let (code, said) = throng(&place, &["evaluate", "in.ndjson", "out.ndjson", "-c", "throng.toml"]);
    assert!(code == Some(2) && said.contains("no column for attribute \"age\""), "{code:?} {said}");
    place.write("throng.toml", text.replace("path = \"profiles.csv\"", "topic = \"profiles\""));
    let (code, said) = throng(&place, &["evaluate", "in.ndjson", "out.ndjson", "-c", "throng.toml"]);
    assert!(code == Some(2) && said.contains("join[0].topic"), "{code:?} {said}");
}

//! Tests `throng forget` without a running daemon.

use crate::forget::forget;
use crate::forget::opened::{Opened, databases, spellings};
use crate::forget::receipt;
use crate::support::binary::Place;
use crate::support::canaries::Canaries;
use crate::support::schemas::schema;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use throng::config;

pub const SCHEMA: &str = schema!("forgotten"; person, hundred "age", text "city");
pub const SECRET: &[u8] = b"a secret of the tests, and of nobody else";

pub fn line(person: &str, age: usize, city: &str) -> String {
    format!("{{\"person\":\"{person}\",\"age\":{age},\"city\":\"{city}\"}}\n")
}

fn input(canaries: &Canaries) -> (String, String) {
    let (person, city) = (canaries.text(), canaries.text());
    let mut text = String::new();
    for n in 0..300 {
        text += &line(&format!("p{}", n % 40), 30 + n % 4, ["Zug", "Bern"][n % 2]);
        if n % 10 == 3 {
            // The ledger keeps no more than k of each.
            text += &line(&person, 30 + n % 4, &city);
            ["t1", "t2", &person].iter().for_each(|person| text += &line(person, 77, "Chur"));
        }
    }
    (person, text)
}

pub fn spelled(place: &Place, person: &str) -> Vec<Vec<u8>> {
    let text = String::from_utf8(place.read("throng.toml")).expect("text");
    let text = ["schema.toml", "secret"]
        .iter()
        .fold(text, |text, name| text.replace(&format!("\"{name}\""), &format!("\"{}\"", place.path(name).display())));
    let config = config::parse(&text, "throng.toml", std::iter::empty()).unwrap_or_else(|p| panic!("{p:#?}"));
    spellings(&config, SECRET, person)
}

#[test]
fn threat_32_erasure_removes_all_bytes_from_the_state() {
    let canaries = Canaries::default();
    let place = Place::new(SCHEMA, "");
    let (person, text) = input(&canaries);
    place.write("in.ndjson", &text);
    place.run(&[]).expect(0);
    let names = spelled(&place, &person);
    let state = place.path("state");
    let before = Opened::read(&state, SECRET);
    assert!(before.with(&names).len() > 3, "{:?}", before.with(&names));
    let hers: Vec<Vec<u8>> = before.sealed(&names);
    let on_disk = |sealed: &Vec<Vec<u8>>| {
        let files = place.files("state");
        sealed.iter().filter(|s| files.iter().any(|(_, content)| content.windows(24).any(|w| w == &s[..24]))).count()
    };
    drop(before);
    assert!(on_disk(&hers) > 0, "what is looked for is found");
    let out = forget(&place, &[], &["--json", "--from", "-"], &format!("{person}\n\n"));
    let receipt = receipt(&out);
    for key in ["window_rows", "sample_rows"] {
        assert!(receipt["removed"][key].as_u64().is_some_and(|count| count > 0), "{key}: {receipt}");
    }
    assert_eq!((&receipt["subjects"], &receipt["dry_run"]), (&1.into(), &false.into()));
    canaries.absent_from("standard output", &out.stdout);
    canaries.absent_from("standard error", &out.stderr);
    assert!(out.stderr.contains("people were erased from the state people=1"), "the audit line: {}", out.stderr);
    assert_eq!(databases(&state), ["db.2"]);
    assert_eq!(on_disk(&hers), 0, "nothing that was sealed of her is on the disk");
    assert_eq!(Opened::read(&state, SECRET).with(&names), Vec::<String>::new());
    for (path, content) in place.files("state") {
        canaries.absent_from(&path.display().to_string(), content);
    }
    for who in [person.as_str(), "nobody-ever"] {
        let again = crate::forget::receipt(&forget(&place, &[], &["--json", who], ""));
        assert!(again["removed"].as_object().expect("counts").values().all(|count| count == 0), "{again}");
        assert!(again.as_object().expect("a receipt").keys().eq(receipt.as_object().expect("a receipt").keys()));
    }
    let mut more = text.clone();
    (0..60).for_each(|n| more += &line(&format!("q{}", n % 20), 30 + n % 4, "Zug"));
    place.write("in.ndjson", &more);
    let account = place.run(&[]).expect(0).account();
    assert_eq!(account.consumed, more.lines().count() as u64);
}

#[test]
fn erasure_of_an_unknown_subject_keeps_output_identical() {
    let canaries = Canaries::default();
    let (_, text) = input(&canaries);
    let first: String = text.split_inclusive('\n').take(200).collect();
    let released = |erase: bool| {
        let place = Place::new(SCHEMA, "");
        place.write("in.ndjson", &first);
        place.run(&[]).expect(0);
        if erase {
            let out = forget(&place, &[], &["nobody-ever"], "").expect(0);
            let words = String::from_utf8(out.stdout).expect("text");
            assert!(words.contains("1 subject erased") && words.contains("cannot be recalled"), "{words}");
        }
        place.write("in.ndjson", &text);
        place.run(&[]).expect(0);
        place.read("out.ndjson")
    };
    assert!(released(true) == released(false));
}

#[test]
fn erasure_errors_name_a_remedy_and_change_nothing() {
    let canaries = Canaries::default();
    let place = Place::new(SCHEMA, "");
    let refused = |arguments: &[&str], overrides: &[(&str, &str)], code: i32, says: &str| {
        let out = forget(&place, overrides, arguments, "");
        assert!(out.code == Some(code) && out.stderr.contains(says), "{says:?}: {:?} {}", out.code, out.stderr);
        canaries.absent_from("standard error", &out.stderr);
        assert!(out.stdout.is_empty());
    };
    let person = canaries.text();
    refused(&[&person], &[], 2, "there is no throng state");
    assert!(!place.path("state").exists(), "none is made");
    place.write("in.ndjson", (0..60).map(|n| line(&format!("p{n}"), 30, "Zug")).collect::<String>());
    place.run(&[]).expect(0);
    refused(&[], &[], 2, "no subject is named");
    refused(&["--from", "no-such-file"], &[], 2, "name a readable file");
    let open_to_all = [("STATE__SECRET_FILE", "throng.toml")];
    refused(&[&person], &open_to_all, 2, "all users of this machine may read or change the file");
    std::fs::set_permissions(place.path("throng.toml"), Permissions::from_mode(0o600)).expect("a file of ours");
    refused(&[&person], &open_to_all, 2, "the secret does not belong");
    refused(&[&person], &[("SOURCE__PATH", "-"), ("SOURCE__FORMAT", "json")], 2, "belongs to another stream");
    place.write("many", "x\n".repeat(10_001));
    refused(&["--from", "many"], &[], 2, "at most 10000");
    let dry = receipt(&forget(&place, &[], &["--dry-run", "--json", "p7"], ""));
    assert_eq!((&dry["removed"]["window_rows"], &dry["dry_run"]), (&1.into(), &true.into()));
    assert_eq!(databases(&place.path("state")), ["db.1"]);
}

#[test]
fn erasure_removes_the_profile() {
    const JOINED: &str = schema!("joined"; person, text "city", more
        "[[attribute]]\nname = \"sex\"\ntype = \"string\"\nfrom = \"join:profiles\"\n");
    const JOIN: &str = "[[join]]\nname = \"profiles\"\npath = \"profiles.csv\"\n";
    let place = Place::new(JOINED, JOIN);
    let profiles =
        |people: &[usize]| people.iter().fold("person,sex\n".to_owned(), |all, p| all + &format!("p{p},f\n"));
    place.write("in.ndjson", (0..60).map(|n| line(&format!("p{}", n % 6), 30, "Zug")).collect::<String>());
    place.write("profiles.csv", profiles(&[0, 1, 2, 3, 4, 5]));
    place.run(&[]).expect(0);
    let done = receipt(&forget(&place, &[], &["--json", "p3"], ""));
    assert_eq!(done["removed"]["profiles"], 1, "{done}");
    place.write("profiles.csv", profiles(&[0, 1, 2, 4, 5]));
    place.run(&[]).expect(0);
    assert_eq!(receipt(&forget(&place, &[], &["--json", "p3"], ""))["removed"]["profiles"], 0);
    place.write("profiles.csv", profiles(&[0, 1, 2, 3, 4, 5]));
    place.run(&[]).expect(0);
    assert_eq!(
        receipt(&forget(&place, &[], &["--json", "--dry-run", "p3"], ""))["removed"]["profiles"],
        1,
        "it was read again"
    );
}

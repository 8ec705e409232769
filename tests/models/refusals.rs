//! Models that a stream cannot satisfy are refused with the file, the key and a remedy.

use crate::models::{ILLNESS, QUASI};
use crate::support::binary::Place;
use crate::support::schemas::PERSON;
use std::process::Command;

fn place(models: &str) -> Place {
    let place = Place::new(&format!("name = \"refusals\"\n{PERSON}{QUASI}{ILLNESS}"), models);
    place.write("in.ndjson", "");
    place
}

#[test]
fn unsupported_stream_models_are_refused_with_key() {
    let diverse = |rest: &str| format!("kind = \"l_diversity\"\n{rest}");
    let of_illness = |rest: &str| diverse(&format!("attribute = \"illness\"\n{rest}"));
    for (model, key, says) in [
        (diverse("attribute = \"ilness\"\nl = 2\n"), "[0].attribute", "the schema has no attribute \"ilness\""),
        (diverse("attribute = \"city\"\nl = 2\n"), "[0].attribute", "has the role quasi"),
        (diverse("attribute = \"person\"\nl = 2\n"), "[0].attribute", "has the role subject"),
        (of_illness("l = 1\n"), "[0].l", "2 to 1000"),
        (of_illness("l = 2.5\n"), "[0].l", "is a number of values"),
        (of_illness("l = 1\ndiversity = \"entropy\"\n"), "[0].l", "above 1"),
        (of_illness("l = 2\nc = 0\ndiversity = \"recursive\"\n"), "[0].c", "above 0"),
        (of_illness("l = 2\ndiversity = \"recursive\"\n"), "[0].c", "requires this key"),
        ("kind = \"t_closeness\"\nattribute = \"illness\"\nt = 1.2\n".to_owned(), "[0].t", "at least 0 and below 1"),
        ("kind = \"k_anonymity\"\nk = 4\n".to_owned(), "[0].k", "set privacy.k"),
        ("kind = \"k_map\"\nk = 2\n".to_owned(), "[0].kind", "no population except its subjects"),
        ("kind = \"delta_presence\"\nmin = 0\nmax = 0.5\n".to_owned(), "[0].kind", "absent subjects are unknown"),
    ] {
        let place = place(&format!("[[privacy.model]]\n{model}"));
        let run = place.run(&[]).expect(2);
        assert!(run.stderr.contains(key) && run.stderr.contains(says), "{model}: {}", run.stderr);
        assert!(!place.path("state").exists(), "nothing was begun");
        let check = check(&place);
        assert!(check.0 == Some(2) && check.1.contains(key) && check.1.contains(says), "{model}: {}", check.1);
    }
}

#[test]
fn supported_stream_models_are_accepted_without_warning() {
    let none = check(&place(""));
    assert!(none.0 == Some(0) && none.1.contains("no diversity is required"), "{}", none.1);
    let models = "[[privacy.model]]\nkind = \"t_closeness\"\nattribute = \"illness\"\nt = 0.2\nground = \"hierarchical\"\n\
                  [[privacy.model]]\nkind = \"k_anonymity\"\nk = 3\n";
    let some = check(&place(models));
    assert!(some.0 == Some(0) && !some.1.contains("warning"), "{}", some.1);
}

fn check(place: &Place) -> (Option<i32>, String) {
    let run = place.command(&[], &[]);
    let mut command = Command::new(run.get_program());
    for (name, value) in run.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    if let Some(folder) = run.get_current_dir() {
        command.current_dir(folder);
    }
    let arguments: Vec<_> = run.get_args().map(|a| if a == "run" { "check".into() } else { a.to_owned() }).collect();
    let output = command.args(arguments).output().expect("runs");
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

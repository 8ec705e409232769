//! Inferences about a subject in a known class (`docs/internals/threats.md`, 9). Each stream reveals the value without
//! the model.

use crate::models::{ILLNESS, QUASI};
use crate::support::schemas::PERSON;
use crate::support::stand::{Fault, Stand, record};
use throng::daemon::state::records::Flush;

const NOW: i64 = 1_700_000_000_000;
const K3: &str = "[privacy]\nk = 3\n";

fn stand(models: &str) -> Stand {
    Stand::new(&format!("name = \"attack\"\n{PERSON}{QUASI}{ILLNESS}"), &format!("{K3}{models}"))
}

fn people(name: &str, city: &str, illnesses: &[&str]) -> Vec<Option<Vec<u8>>> {
    let one = |(number, illness): (usize, &&str)| {
        record(format!(r#"{{"person":"{name}{number}","age":40,"city":"{city}","illness":"{illness}"}}"#))
    };
    illnesses.iter().enumerate().map(one).collect()
}

fn shown(stand: &Stand, city: &str) -> (Vec<String>, usize) {
    let of_city = stand.sink.lines.iter().filter(|l| l.text.contains(city));
    let mut illnesses: Vec<String> = Vec::new();
    let mut withheld = 0;
    for line in of_city {
        let value: serde_json::Value = serde_json::from_str(&line.text).expect("a line");
        match value["illness"].as_str().expect("a text") {
            "*" => withheld += 1,
            illness => illnesses.push(illness.to_owned()),
        }
    }
    illnesses.sort();
    illnesses.dedup();
    (illnesses, withheld)
}

const DISTINCT: &str = "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\n";

#[test]
fn threat_09_value_of_homogeneous_class_is_withheld() {
    let mut records = people("z", "Zug", &["hiv"; 6]);
    records.extend(people("p", "Paris", &["hiv", "flu", "flu", "flu", "hiv", "hiv"]));
    let mut without = stand("");
    without.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    assert_eq!(shown(&without, "Zug"), (vec!["hiv".to_owned()], 0), "everybody of Zug is known to have it");
    let mut with = stand(DISTINCT);
    with.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    let (illnesses, withheld) = shown(&with, "Zug");
    assert!(illnesses.is_empty() && withheld <= 6, "{illnesses:?}, {withheld}");
    assert_eq!(shown(&with, "Paris"), (vec!["flu".to_owned(), "hiv".to_owned()], 0));
    assert_eq!(with.sink.lines.len(), 12, "the records leave all the same");
}

#[test]
fn threat_09_many_records_of_one_subject_do_not_add_diversity() {
    let mut records = people("z", "Zug", &["hiv"; 5]);
    for illness in ["flu", "cold", "ebola"] {
        records.push(record(format!(r#"{{"person":"z0","age":40,"city":"Zug","illness":"{illness}"}}"#)));
        records.extend(people(illness, "Paris", &[illness; 3]));
    }
    let three = DISTINCT.replace("l = 2", "l = 3");
    let mut with = stand(&three);
    with.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    // All but z0 have hiv.
    assert_eq!(shown(&with, "Zug").0, Vec::<String>::new());
    assert_eq!(shown(&with, "Paris").0.len(), 3);
    let mut with = stand(DISTINCT);
    with.offer(&records, Flush::EndOfStream, NOW, Fault::Nothing);
    assert_eq!(shown(&with, "Zug").0.len(), 4, "two values of two people are all that l = 2 asks for");
}

fn with_history(models: &str) -> Stand {
    let mut stand = stand(models);
    let mut history = vec!["flu"; 30];
    history.extend(["cold"; 6]);
    history.extend(["hiv", "hiv", "hiv", "ebola", "ebola", "ebola"]);
    stand.offer(&people("p", "Paris", &history), Flush::No, NOW, Fault::Nothing);
    stand
}

#[test]
fn threat_09_values_of_skewed_class_are_withheld() {
    let skewed = people("z", "Zug", &["hiv", "flu", "hiv", "flu", "hiv", "flu"]);
    let mut diverse = with_history(DISTINCT);
    diverse.offer(&skewed, Flush::EndOfStream, NOW + 1000, Fault::Nothing);
    assert_eq!(shown(&diverse, "Zug").0.len(), 2, "diverse, and half of Zug is known to have what one in fourteen has");
    let close = "[[privacy.model]]\nkind = \"t_closeness\"\nattribute = \"illness\"\nt = 0.35\n";
    let mut close = with_history(close);
    close.offer(&skewed, Flush::No, NOW + 1000, Fault::Nothing);
    assert_eq!(shown(&close, "Zug").0, Vec::<String>::new());
    let usual = people("l", "Lyon", &["flu", "flu", "flu", "flu", "flu", "cold"]);
    close.offer(&usual, Flush::EndOfStream, NOW + 2000, Fault::Nothing);
    assert!(!shown(&close, "Lyon").0.is_empty());
}

#[test]
fn threat_09_similar_values_do_not_count_as_diverse() {
    let grave = people("z", "Zug", &["hiv", "ebola", "hiv", "ebola", "hiv", "ebola"]);
    let mut diverse = with_history(DISTINCT);
    diverse.offer(&grave, Flush::EndOfStream, NOW + 1000, Fault::Nothing);
    assert_eq!(shown(&diverse, "Zug").0.len(), 2, "two values, and everybody of Zug is gravely ill");
    let similar =
        "[[privacy.model]]\nkind = \"t_closeness\"\nattribute = \"illness\"\nt = 0.5\nground = \"hierarchical\"\n";
    let mut close = with_history(similar);
    close.offer(&grave, Flush::No, NOW + 1000, Fault::Nothing);
    assert_eq!(shown(&close, "Zug").0, Vec::<String>::new());
    let mild = people("l", "Lyon", &["flu", "cold", "flu", "cold", "flu", "cold"]);
    close.offer(&mild, Flush::EndOfStream, NOW + 2000, Fault::Nothing);
    assert_eq!(shown(&close, "Lyon").0.len(), 2, "as far from everybody in values, and close in what they mean");
}

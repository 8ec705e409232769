//! What a reader with a register learns of somebody who stands in it (`docs/threats.md`, 23).

use crate::PERSON;
use crate::register::QUASI;
use crate::support::invariants::cells;
use crate::support::stand::{Fault, Stand, record};
use throng::daemon::engine::Settling;

const NOW: i64 = 1_700_000_000_000;

/// A register of Zug: one person of 97, and some who are younger.
const REGISTER: &str = "age;city\n97;Zug\n85;Zug\n83;Zug\n82;Zug\n61;Zug\n62;Zug\n";

fn stand(folder: &std::path::Path, model: bool) -> Stand {
    let path = folder.join("register.csv");
    std::fs::write(&path, REGISTER).expect("a file");
    let model = if model {
        format!("[[privacy.model]]\nkind = \"k_map\"\nk = 3\npopulation = \"{}\"\n", path.display())
    } else {
        String::new()
    };
    let settings = format!("[source]\nseparator = \";\"\n[privacy]\nk = 3\n{model}");
    Stand::new(&format!("name = \"register\"\n{PERSON}{QUASI}"), &settings)
}

/// Three watches of the same person of 97: three subjects to the stream.
fn watches() -> Vec<Option<Vec<u8>>> {
    (0..3).map(|n| record(format!(r#"{{"person":"watch {n}","age":97,"city":"Zug","mood":"calm"}}"#))).collect()
}

fn ages(stand: &Stand) -> Vec<String> {
    let of_line = |line| cells(line).expect("a line").into_iter().find(|(name, _)| name == "age").expect("an age").1;
    let mut ages: Vec<String> = stand.sink.lines.iter().map(of_line).collect();
    ages.dedup();
    ages
}

#[test]
fn threat_23_a_crowd_of_subjects_that_is_one_person_of_the_register_does_not_leave_as_such() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut without = stand(folder.path(), false);
    without.offer(&watches(), Settling::EndOfStream, NOW, Fault::Nothing);
    assert_eq!(ages(&without), ["97"], "three subjects, and the register knows one whom they can be");
    let mut with = stand(folder.path(), true);
    with.offer(&watches(), Settling::EndOfStream, NOW, Fault::Nothing);
    assert_eq!(ages(&with), ["\"80-100\""], "four of the register are as old");
    assert_eq!(with.sink.lines.len(), 3, "the records leave all the same");
}

/// The condition is of the batch: a register that was exchanged is asked from the next start on.
#[test]
fn another_register_counts_from_the_next_start_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut stand = stand(folder.path(), true);
    stand.offer(&watches(), Settling::No, NOW, Fault::Restart);
    let more = format!("{REGISTER}97;Zug\n97;Zug\n");
    std::fs::write(folder.path().join("register.csv"), more).expect("a file");
    stand.offer(&watches(), Settling::No, NOW + 1000, Fault::Restart);
    assert_eq!(ages(&stand), ["\"80-100\""], "this start had read the old one");
    stand.offer(&watches(), Settling::No, NOW + 2000, Fault::Nothing);
    assert_eq!(ages(&stand), ["\"80-100\"", "97"]);
}

//! Tests erasure with the state in a changelog.

use crate::support::stand::{Fault, Stand, record};
use std::collections::BTreeSet;
use throng::config::FixedSettings;
use throng::daemon::erasure::{ErasureReceipt, ErasureRequest, NamedSubjects};
use throng::daemon::state::records::Flush;
use throng_core::values::raw_batch::RawToken;

const NOW: i64 = 1_700_000_000_000;
const SCHEMA: &str = "name = \"moved\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n\
    [[attribute]]\nname = \"home\"\ntype = \"string\"\nchanges = \"never\"\n\
    [[attribute]]\nname = \"mood\"\ntype = \"string\"\nchanges = \"always\"\n";
const SETTINGS: &str = "[privacy]\nk = 3\nmin_tenure = 1\nmax_classes_per_subject = 6\nmax_hold_batches = 9\n\
    max_lines_per_subject = 1\nmax_delay = \"1h\"\nstatic_window = \"30d\"\n\
    [[group]]\nname = \"place\"\nattributes = [\"home\"]\n[[group]]\nname = \"now\"\nattributes = [\"mood\"]\n";

fn visits(people: std::ops::Range<usize>) -> Vec<Option<Vec<u8>>> {
    people.map(|p| record(format!(r#"{{"person":"p{p}","home":"h{}","mood":"m{}"}}"#, p % 2, p % 2))).collect()
}

fn lived() -> Stand {
    let mut stand = Stand::of_a_topic(SCHEMA, SETTINGS, FixedSettings::default());
    for batch in 0..4 {
        stand.offer(&visits(0..12), Flush::No, NOW + batch * 1_200_000, Fault::Nothing);
    }
    let restored = stand.in_the_changelog();
    assert!(
        !restored.release_entries.is_empty()
            && !restored.tenure_records.is_empty()
            && !restored.restored_classes.is_empty()
    );
    stand
}

fn erase(stand: &mut Stand, person: &str) -> ErasureReceipt {
    let request = ErasureRequest::Named(NamedSubjects { subjects: vec![person.to_owned()], dry_run: false });
    let (engine, sink) = stand.parts();
    let answer = engine.erase(request, sink, NOW + 5_000_000).expect("a state that can be read back");
    answer.unwrap_or_else(|error| panic!("{error}"))
}

fn digest(stand: &mut Stand, person: &str) -> u64 {
    stand.engine().subjects().expect("subjects").digest(RawToken::Text(person)).expect("a text")
}

fn entries(stand: &mut Stand) -> (usize, BTreeSet<u64>, Vec<u64>) {
    let restored = stand.in_the_changelog();
    let people = restored.tenure_records.iter().map(|(subject, _)| *subject).collect();
    (restored.release_entries.len(), people, restored.waiting.iter().map(|row| row.subject).collect())
}

#[test]
fn threat_32_erasure_removes_the_subject_from_the_changelog() {
    let mut stand = lived();
    let subject = digest(&mut stand, "p3");
    let (lines, people, waiting) = entries(&mut stand);
    assert!(people.contains(&subject));
    let receipt = erase(&mut stand, "p3");
    let (lines_after, people_after, waiting_after) = entries(&mut stand);
    assert_eq!(people_after.len(), people.len() - 1);
    assert!(!people_after.contains(&subject) && !waiting_after.contains(&subject));
    assert_eq!(lines - lines_after, receipt.removed.said_lines as usize);
    assert_eq!(waiting.len() - waiting_after.len(), receipt.removed.held_rows as usize);
    assert!(receipt.removed.said_lines + receipt.removed.held_rows > 0, "{receipt:?}");
    stand.check_conservation().expect("conservation");
    for fault in [Fault::Nothing, Fault::Move] {
        let homes = |stand: &Stand| stand.sink.lines.iter().filter(|line| line.group == 0).count();
        let before = homes(&stand);
        stand.offer(&visits(0..3), Flush::No, NOW + 6_000_000, fault);
        stand.offer(&visits(4..12), Flush::No, NOW + 10_000_000, Fault::Nothing);
        assert!(homes(&stand) - before <= 12 - lines_after, "a home is said once a window");
        stand.check_conservation().expect("conservation");
    }
    assert!(!entries(&mut stand).1.contains(&subject));
}

#[test]
fn threat_37_later_partition_does_not_restore_an_erased_subject() {
    let mut stand = lived();
    let subject = digest(&mut stand, "p3");
    let places: BTreeSet<(u16, i32)> = [(0, 0)].into();
    // Another instance has the partition and does not receive the erasure.
    stand.engine().drop_partitions(&places);
    erase(&mut stand, "p3");
    assert!(entries(&mut stand).1.contains(&subject), "nothing of it lies here");
    let restored = stand.in_the_changelog();
    stand.engine().adopt_partitions(restored, &places, NOW + 5_100_000).expect("a state of this stream");
    assert!(stand.engine().has_pending_changes());
    let (engine, sink) = stand.parts();
    engine.make_pending_changes(sink, NOW + 5_200_000).expect("the sink takes them");
    let (_, people, waiting) = entries(&mut stand);
    assert!(!people.contains(&subject) && !waiting.contains(&subject));
    assert!(!stand.engine().has_pending_changes());
    stand.check_conservation().expect("conservation");
}

#[test]
fn erasure_refused_by_brokers_can_be_repeated() {
    let mut stand = lived();
    let subject = digest(&mut stand, "p3");
    stand.sink.aborts = 1_000;
    let request = || ErasureRequest::Named(NamedSubjects { subjects: vec!["p3".to_owned()], dry_run: false });
    let (engine, sink) = stand.parts();
    let answer = engine.erase(request(), sink, NOW + 5_000_000).expect("the process goes on");
    let error = answer.expect_err("the brokers do not take it").to_string();
    assert!(error.contains("still has entries about these people (retry later)"), "{error}");
    assert!(entries(&mut stand).1.contains(&subject));
    stand.sink.aborts = 0;
    stand.sink.attempt = None;
    erase(&mut stand, "p3");
    assert!(!entries(&mut stand).1.contains(&subject));
    stand.check_conservation().expect("conservation");
}

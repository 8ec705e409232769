//! Tests an engine with every optional store: no data of an erased subject remain.

use crate::forget::opened::{Opened, databases, spellings};
use crate::support::copies;
use crate::support::schemas::schema;
use crate::support::stand::{Fault, SECRET, Stand, record};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use throng::daemon::erasure::{ErasureError, ErasureReceipt, ErasureRequest, NamedSubjects};
use throng::daemon::state::records::Flush;
use throng::daemon::state::state_keys::StateKeys;
use throng::daemon::state::store::{RecoveredState, StateStore};
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::Schema;

const NOW: i64 = 1_700_000_000_000;

const SCHEMA: &str = schema!("forgotten"; person,
    more "[[attribute]]\nname = \"age\"\ntype = \"integer\"\nchanges = \"always\"\n[attribute.hierarchy]\nkind = \"intervals\"\nmin = 0\nmax = 100\nwidths = [10, 50]\n",
    text "city", more "changes = \"always\"\n",
    text "birth", more "changes = \"never\"\n",
    sensitive "illness", more "changes = \"always\"\n",
    sensitive "mood", more "changes = \"always\"\n");

const EVERYTHING: &str = r#"
[privacy]
k = 3
max_lines_per_subject = 1
max_delay = "2h"
release_window = "24h"
static_window = "24h"
min_tenure = 1
max_classes_per_subject = 6
max_hold_batches = 1
[[privacy.model]]
kind = "l_diversity"
attribute = "illness"
l = 2
[[privacy.model]]
kind = "t_closeness"
attribute = "mood"
t = 0.9
ground = "equal"
[plan]
window_records = 400
[[group]]
name = "visit"
attributes = ["age", "city", "illness", "mood"]
[[group]]
name = "origin"
attributes = ["birth"]
"#;

/// Only the crowd decides whether a record is released or held.
const PLAIN: &str = r"
[privacy]
k = 3
max_hold_batches = 2
[plan]
window_records = 60
";

fn visit(person: &str, n: usize) -> Option<Vec<u8>> {
    let (age, city) = (30 + n % 3, ["Zug", "Bern"][n % 2]);
    let (birth, illness, mood) = (["1980", "1990"][n % 2], ["flu", "cold", "cough"][n % 3], ["calm", "tired"][n % 2]);
    record(format!(
        r#"{{"person":"{person}","age":{age},"city":"{city}","birth":"{birth}","illness":"{illness}","mood":"{mood}"}}"#
    ))
}

#[track_caller]
fn erased(stand: &mut Stand, people: &[&str], dry_run: bool) -> ErasureReceipt {
    match erase(stand, people, dry_run) {
        Ok(receipt) => receipt,
        Err(error) => panic!("{error}"),
    }
}

fn erase(stand: &mut Stand, people: &[&str], dry_run: bool) -> Result<ErasureReceipt, ErasureError> {
    let subjects = people.iter().map(|person| (*person).to_owned()).collect();
    let request = ErasureRequest::Named(NamedSubjects { subjects, dry_run });
    let (engine, sink) = stand.parts();
    engine.erase(request, sink, 0).unwrap_or_else(|error| panic!("{error}"))
}

fn opened(stand: &mut Stand, look: impl FnOnce(&Opened)) {
    stand.engine().flush().expect("a state");
    let copy = tempfile::tempdir().expect("a directory");
    let name = &databases(stand.state())[0];
    let (from, to) = (stand.state().join(name), copy.path().join(name));
    copies::tree(&from, &to);
    look(&Opened::read(copy.path(), SECRET.as_bytes()));
}

#[test]
fn threat_32_erasure_removes_the_subject_from_every_store() {
    let of = |receipt: &ErasureReceipt| {
        let removed = receipt.removed;
        vec![("held", removed.held_rows), ("supporters", removed.supporters)]
    };
    nothing_stays(EVERYTHING, &["throng/delta", "throng/held"], of);
}

fn nothing_stays(settings: &str, kept: &[&str], counts: impl Fn(&ErasureReceipt) -> Vec<(&'static str, u64)>) {
    let mut stand = Stand::new(SCHEMA, settings);
    let gone = "canary-person-one";
    let hers = r#"{"person":"canary-person-one","age":31,"city":"Canarytown","birth":"canary1955","illness":"flu","mood":"calm"}"#;
    for batch in 0..9 {
        let mut records: Vec<_> = (0..18).map(|n| visit(&format!("p{n}"), n + batch)).collect();
        match batch % 3 {
            // A class of three that includes the erased subject.
            0 => records.extend([("t1", 71), ("t2", 72), (gone, 77)].map(|(person, age)| {
                record(format!(r#"{{"person":"{person}","age":{age},"city":"Chur","birth":"1970"}}"#))
            })),
            1 => records.push(visit(gone, batch)),
            _ => records.push(record(hers)),
        }
        stand.offer(&records, Flush::No, NOW + batch as i64 * 60_000, Fault::Nothing);
    }
    let names = spellings(&stand.config, SECRET.as_bytes(), gone);
    let values = [b"Canarytown".to_vec(), b"canary1955".to_vec()];
    opened(&mut stand, |state| {
        let kinds = state.kinds(&names);
        println!("before: {kinds:?}");
        for kind in kept.iter().chain(&["throng/sample", "window/rows"]) {
            assert!(kinds.iter().any(|k| k == kind), "{kind} is not tried: {kinds:?}");
        }
        assert!(!state.with(&values).is_empty());
    });
    let files_before = files(&stand);
    let would = erased(&mut stand, &[gone], true);
    assert_eq!(files(&stand).len(), files_before.len(), "a dry run writes nothing");
    let done = erased(&mut stand, &[gone], false);
    assert_eq!(ErasureReceipt { dry_run: true, ..done.clone() }, would, "a dry run says what would go");
    let removed = done.removed;
    let all = [("window", removed.window_rows), ("sample", removed.sample_rows)];
    for (what, count) in all.into_iter().chain(counts(&done)) {
        assert!(count > 0, "{what}: {done:?}");
    }
    opened(&mut stand, |state| {
        assert_eq!(state.with(&names), Vec::<String>::new(), "no name");
        assert_eq!(state.with(&values), Vec::<String>::new(), "no value that only she had");
    });
    stand.check_conservation().expect("conservation");
    assert_eq!(databases(stand.state()), ["db.1"]);
    // Another spelling is the same subject.
    let again = erased(&mut stand, &["  canary-person-one "], false);
    assert_eq!((again.removed, again.dropped_records), Default::default());
    assert_eq!(databases(stand.state()), ["db.2"]);
    for batch in 9..15 {
        let records: Vec<_> = (0..18).map(|n| visit(&format!("p{n}"), n + batch)).collect();
        let fault = if batch == 11 { Fault::Restart } else { Fault::Nothing };
        stand.offer(&records, Flush::No, NOW + batch as i64 * 60_000, fault);
    }
    stand.settle(Flush::EndOfStream, NOW + 3_600_000);
    stand.check_conservation().expect("conservation");
    for batch in 1..=stand.sink.committed.0 {
        stand.promise.check_release(&stand.sink.lines, batch).expect("R(k)");
    }
    opened(&mut stand, |state| assert_eq!(state.with(&names), Vec::<String>::new()));
}

fn files(stand: &Stand) -> Vec<String> {
    databases(stand.state())
}

#[test]
fn erasure_of_invalid_subjects_is_refused_without_values() {
    let mut stand =
        Stand::new(&SCHEMA.replace("\"person\"\ntype = \"string\"", "\"person\"\ntype = \"integer\""), PLAIN);
    let said = |stand: &mut Stand, people: &[&str]| match erase(stand, people, false) {
        Ok(receipt) => panic!("{receipt:?}"),
        Err(error) => {
            assert!(error.is_usage());
            error.to_string()
        }
    };
    assert!(said(&mut stand, &[]).contains("no subject is named"));
    let wrong = said(&mut stand, &["7", "canary-nobody"]);
    assert!(wrong.contains("subject number 2") && wrong.contains("integer") && !wrong.contains("canary"), "{wrong}");
    assert!(said(&mut stand, &["", "7"]).contains("subject number 1"));
    assert_eq!(erased(&mut stand, &["7.0", "7", "+7"], false).subjects, 1, "spellings of one");
    let nobody = SCHEMA.replace("role = \"subject\"\n", "role = \"identifier\"\n");
    let mut stand = Stand::new(&nobody, PLAIN);
    assert!(said(&mut stand, &["7"]).contains("has no subject attribute"));
}

type Rows = Vec<(u64, Vec<String>)>;

fn learned(stand: &mut Stand, window: usize) -> (Rows, Rows, RecoveredState) {
    stand.engine().flush().expect("a state");
    let copy = tempfile::tempdir().expect("a directory");
    copies::tree(stand.state(), copy.path());
    let mut ledger = SubjectLedger::default();
    let (_, _, recovered) = StateStore::open(copy.path(), Some(SECRET.as_bytes()), &mut ledger).expect("a state");
    let schema = Schema::parse(SCHEMA, "s.toml", std::path::Path::new("")).expect("a schema");
    let key = DigestKey(StateKeys::derive(SECRET.as_bytes()).classes);
    let mut books: Vec<Codebook> =
        schema.attributes.iter().map(|a| Codebook::new(Arc::clone(a), &key, 10_000).expect("a codebook")).collect();
    let kept: Vec<usize> =
        (0..schema.attributes.len()).filter(|a| schema.attributes[*a].role.is_releasable()).collect();
    let mut rows: Rows = Vec::new();
    let mut next = None;
    for (_, block) in &recovered.rows {
        let batch = block.unpack(&kept, &mut books).expect("rows");
        let first = block.last + 1 - batch.rows() as u64;
        assert!(next.is_none_or(|next| next == first), "rows are numbered without a gap");
        next = Some(block.last + 1);
        for row in 0..batch.rows() {
            let cells = kept.iter().map(|&a| books[a].canonical(batch.columns[a][row]).to_owned()).collect();
            rows.push((batch.subjects[row], cells));
        }
    }
    assert!(next.is_none_or(|next| next == recovered.progress.rows), "up to the last one");
    let rows = rows.split_off(rows.len().saturating_sub(window));
    let sample = recovered.sample.iter().map(|row| (row.subject, row.cells.clone())).collect();
    (rows, sample, recovered)
}

#[test]
fn erasure_restores_the_learned_data_without_the_subject() {
    let settings = PLAIN.replace("window_records = 60", "window_records = 1000");
    let (mut saw, mut never) = (Stand::new(SCHEMA, &settings), Stand::new(SCHEMA, &settings));
    for batch in 0..5 {
        let others: Vec<_> = (0..20).map(|n| visit(&format!("p{n}"), n * 7 + batch)).collect();
        let mut all = others.clone();
        (0..3).for_each(|n| all.insert(n * 5, visit("she", n + batch)));
        saw.offer(&all, Flush::No, NOW + batch as i64, Fault::Nothing);
        never.offer(&others, Flush::No, NOW + batch as i64, Fault::Nothing);
    }
    let done = erased(&mut saw, &["she"], false);
    assert_eq!((done.removed.window_rows, done.removed.sample_rows), (15, 15));
    let ((rows, sample, _), (others, others_sample, _)) = (learned(&mut saw, 1000), learned(&mut never, 1000));
    assert_eq!(rows.len(), 100);
    assert!(rows == others, "the window");
    assert!(sample == others_sample, "the sample");
    let size = |stand: &mut Stand| {
        let report = stand.telemetry.exact_last_report().expect("a batch");
        (report.model_nodes, report.model_edges)
    };
    for stand in [&mut saw, &mut never] {
        stand.offer(&[visit("p1", 3)], Flush::No, NOW + 10, Fault::Nothing);
        stand.offer(&[visit("p2", 3)], Flush::No, NOW + 11, Fault::Nothing);
    }
    assert_eq!(size(&mut saw), size(&mut never), "the model");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn threat_33_erasures_between_batches_keep_the_guarantee(
        settings in 0usize..2,
        batches in prop::collection::vec((prop::collection::vec((0usize..12, 0usize..9), 1..16), prop::option::of(0usize..12), 0u8..6), 2..9),
    ) {
        let (everything, settings) = (settings == 0, [EVERYTHING, PLAIN][settings]);
        let mut stand = Stand::new(SCHEMA, settings);
        let mut rows_of: BTreeMap<usize, u64> = BTreeMap::new();
        let (mut window, mut gone) = (0_u64, 0_u64);
        for (number, (people, who, fault)) in (0..).zip(&batches) {
            let records: Vec<_> = people.iter().map(|(person, n)| visit(&format!("p{person}"), *n)).collect();
            people.iter().for_each(|(person, _)| *rows_of.entry(*person).or_default() += 1);
            window += records.len() as u64;
            let fault = [Fault::Nothing, Fault::Restart, Fault::Abort, Fault::AbortAndDie, Fault::LeaveAndDie, Fault::Nothing][usize::from(*fault)];
            stand.offer(&records, Flush::No, NOW + number * 600_000, fault);
            if let Some(who) = who {
                let done = erased(&mut stand, &[&format!("p{who}")], false);
                if everything {
                    // The window holds all records of the test.
                    prop_assert_eq!(done.removed.window_rows, rows_of.remove(who).unwrap_or(0));
                    gone += done.removed.window_rows;
                    let known = stand.telemetry.exact_last_report().map(|report| report.window_records);
                    prop_assert!(known.is_some() && gone <= window);
                }
                stand.check_conservation().map_err(TestCaseError::fail)?;
                let names = spellings(&stand.config, SECRET.as_bytes(), &format!("p{who}"));
                opened(&mut stand, |state| assert_eq!(state.with(&names), Vec::<String>::new()));
            }
        }
        stand.settle(Flush::EndOfStream, NOW + 90_000_000);
        stand.check_conservation().map_err(TestCaseError::fail)?;
        if !everything {
            stand.promise.check_all(&stand.sink.lines).map_err(TestCaseError::fail)?;
        }
        // Delayed lines are counted with those of other batches.
        let lines = &stand.sink.lines;
        let batches: std::collections::BTreeSet<u64> = lines.iter().map(|line| line.batch).collect();
        for batch in batches {
            stand.promise.check_release(lines, batch).map_err(TestCaseError::fail)?;
        }
    }
}

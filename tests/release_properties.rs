//! Runs random small streams through the engine, with restarts, crashes and aborts. Checks R(k) at every commit and
//! conservation at every restart with `support::invariants`.

use crate::support;
use crate::support::random_attributes;

use proptest::prelude::*;
use random_attributes::{ATTRIBUTES, Attribute};
use std::fmt::Write as _;
use support::binary::Place;
use support::invariants::{GroupNames, Line, Promise, check_once};
use support::schemas::{PERSON, schema};
use support::stand::{Fault, SECRET, Stand};
use throng::config::FixedSettings;
use throng::daemon::state::records::Flush;

#[derive(Clone, Debug)]
struct Draft {
    person: u8,
    cells: Vec<u8>,
    oddity: u8,
}

#[derive(Clone, Debug)]
struct Scenario {
    attributes: Vec<usize>,
    groups: Vec<u8>,
    group_count: u8,
    names_subjects: bool,
    k: usize,
    hold: u8,
    window_seconds: u32,
    little_room: bool,
    colluders: usize,
    /// Maximum classes per subject, and batches before a subject supports any.
    budget: usize,
    tenure: u32,
    treats: Vec<u8>,
    shared: Option<u8>,
    /// Records for `plan.prime`; empty without priming.
    prime: Vec<Vec<u8>>,
    batches: Vec<(Vec<Draft>, Fault, i64)>,
}

fn draft() -> impl Strategy<Value = Draft> {
    (0u8..14, prop::collection::vec(any::<u8>(), ATTRIBUTES.len()), 0u8..40).prop_map(|(person, cells, oddity)| Draft {
        person,
        cells,
        oddity,
    })
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => Just(Fault::Nothing),
        1 => Just(Fault::Restart),
        1 => Just(Fault::Abort),
        1 => Just(Fault::AbortAndDie),
        1 => Just(Fault::LeaveAndDie),
    ]
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let batch = (
        prop::collection::vec(draft(), 0..28),
        fault(),
        prop_oneof![4 => 0i64..1500, 1 => 3000i64..9000, 1 => -5000i64..0],
    );
    (
        prop::sample::subsequence((0..ATTRIBUTES.len()).collect::<Vec<_>>(), 1..=4),
        prop::collection::vec(0u8..3, ATTRIBUTES.len()),
        1u8..=3,
        any::<bool>(),
        2usize..=5,
        0u8..=3,
        prop_oneof![Just(1u32), Just(4), Just(86_400)],
        (
            prop::bool::weighted(0.15),
            (prop::bool::weighted(0.2), prop_oneof![4 => Just(0usize), 1 => 1usize..4], prop::bool::weighted(0.1)),
            (
                prop_oneof![Just(vec![0; ATTRIBUTES.len()]), prop::collection::vec(0u8..7, ATTRIBUTES.len())],
                prop::option::of(any::<u8>()),
            ),
            prop_oneof![
                Just(Vec::new()),
                prop::collection::vec(prop::collection::vec(any::<u8>(), ATTRIBUTES.len()), 1..60),
            ],
        ),
        prop::collection::vec(batch, 1..7),
    )
        .prop_map(
            |(
                attributes,
                groups,
                group_count,
                names_subjects,
                k,
                hold,
                window_seconds,
                (little_room, (colluders, budget, tenure), (treats, shared), prime),
                batches,
            )| {
                Scenario {
                    attributes,
                    groups,
                    group_count,
                    names_subjects,
                    k,
                    hold,
                    window_seconds,
                    little_room,
                    colluders: usize::from(colluders),
                    budget,
                    tenure: u32::from(tenure),
                    treats,
                    shared,
                    prime,
                    batches,
                }
            },
        )
}

fn sharing() -> impl Strategy<Value = Scenario> {
    let attributes = prop::sample::subsequence((0..ATTRIBUTES.len()).collect::<Vec<_>>(), 3..=5);
    let shares = |s: &Scenario| s.shared().is_some();
    let of = |(scenario, attributes, shared, groups): (Scenario, Vec<usize>, u8, u8)| Scenario {
        attributes,
        shared: Some(shared),
        group_count: groups,
        ..scenario
    };
    (scenario(), attributes, any::<u8>(), 2u8..=3).prop_map(of).prop_filter("two groups", shares)
}

impl Scenario {
    fn schema(&self) -> String {
        let mut text = "name = \"random\"\n".to_owned();
        if self.names_subjects {
            text.push_str(PERSON);
        }
        for &a in &self.attributes {
            let Attribute { name, table, .. } = ATTRIBUTES[a];
            let changes = match self.shared() {
                Some(_) if name == "device" => "",
                Some(shared) if shared == a || !self.groups[a].is_multiple_of(3) => "changes = \"always\"\n",
                _ => "",
            };
            write!(text, "[[attribute]]\nname = \"{name}\"\n{changes}{table}").expect("a string");
        }
        text
    }

    /// At least two groups must have another quasi-identifier.
    fn shared(&self) -> Option<usize> {
        let quasi: Vec<usize> =
            self.attributes.iter().copied().filter(|&a| !matches!(ATTRIBUTES[a].name, "illness" | "device")).collect();
        let shared = *quasi.get(usize::from(self.shared?) % quasi.len().max(1))?;
        let beside = quasi.iter().filter(|a| **a != shared).map(|&a| self.groups[a] % self.group_count);
        let groups: std::collections::BTreeSet<u8> = beside.collect();
        (groups.len() > 1).then_some(shared)
    }

    fn primed(&self) -> String {
        let mut text = String::new();
        for (number, cells) in self.prime.iter().enumerate() {
            let mut fields = if self.names_subjects { vec![format!("\"person\":\"q{}\"", number % 9)] } else { vec![] };
            for &a in &self.attributes {
                let fit = ATTRIBUTES[a].cells.iter().filter(|cell| !["\"old\"", "{\"a\":1}", "1e400"].contains(cell));
                let fit: Vec<&&str> = fit.collect();
                let cell = fit[usize::from(cells[a]) % fit.len()];
                if !cell.is_empty() {
                    fields.push(format!("\"{}\":{cell}", ATTRIBUTES[a].name));
                }
            }
            writeln!(text, "{{{}}}", fields.join(",")).expect("a string");
        }
        text
    }

    fn settings(&self, prime: &std::path::Path) -> String {
        let Self { k, hold, window_seconds, colluders, budget, tenure, .. } = self;
        let entries = if self.little_room { 3 } else { 1000 };
        let shared = self.shared();
        let of_several = shared.map_or(String::new(), |a| format!("shared = [\"{}\"]\n", ATTRIBUTES[a].name));
        let prime = if self.prime.is_empty() { String::new() } else { format!("prime = \"{}\"\n", prime.display()) };
        let mut text = format!(
            "[privacy]\nk = {k}\ncolluders = {colluders}\nmax_classes_per_subject = {budget}\nmin_tenure = {tenure}\nmax_hold_batches = {hold}\nrelease_window = \"{window_seconds}s\"\n\
             [plan]\ninterval = \"2s\"\nwindow_records = 100\n{of_several}{prime}[state]\nmax_budget_entries = {entries}\n"
        );
        for &a in &self.attributes {
            let is_number = matches!(ATTRIBUTES[a].name, "age" | "steps");
            let treat = match self.treats[a] {
                _ if shared == Some(a) => continue,
                3 => "suppress_cell",
                4 => "suppress_record",
                5 if is_number && shared.is_none() => "perturb",
                6 if is_number && shared.is_none() => "aggregate",
                _ => continue,
            };
            if !matches!(ATTRIBUTES[a].name, "illness" | "device") {
                let name = ATTRIBUTES[a].name;
                write!(text, "[[treatment.rule]]\nattributes = [\"{name}\"]\ntreat = \"{treat}\"\n").expect("a string");
            }
        }
        // An attribute that can not form a crowd alone joins the first group that can.
        let forms = |a: usize| ATTRIBUTES[a].name != "device";
        let group_of = |a: usize| self.groups[a] % self.group_count;
        let crowd: Vec<u8> =
            self.attributes.iter().filter(|&&a| forms(a) && Some(a) != shared).map(|&a| group_of(a)).collect();
        for group in 0..self.group_count {
            // The shared attribute joins groups that have another quasi-identifier.
            let is_own = |a: usize| group_of(a) == group && Some(a) != shared;
            let may_share =
                self.attributes.iter().any(|&a| !matches!(ATTRIBUTES[a].name, "illness" | "device") && is_own(a));
            let members: Vec<String> = self
                .attributes
                .iter()
                .filter(|&&a| match a {
                    _ if Some(a) == shared => may_share,
                    _ if forms(a) => is_own(a),
                    _ => crowd.iter().min() == Some(&group),
                })
                .map(|&a| format!("\"{}\"", ATTRIBUTES[a].name))
                .collect();
            if !members.is_empty() {
                write!(text, "[[group]]\nname = \"g{group}\"\nattributes = [{}]\n", members.join(", "))
                    .expect("a string");
            }
        }
        text
    }

    fn is_possible(&self) -> bool {
        self.attributes.iter().any(|&a| ATTRIBUTES[a].name != "device")
    }

    fn payload(&self, draft: &Draft, offset: i64) -> (Option<Vec<u8>>, Option<String>) {
        // Half of all records come from a few subjects.
        let person = match draft.person {
            0 => None,
            n => Some(format!("p{}", if n > 10 { n - 10 } else { n })),
        };
        let truth = if self.names_subjects { person.clone() } else { Some(format!("record {offset}")) };
        let mut fields = Vec::new();
        if self.names_subjects {
            match (&person, draft.oddity) {
                (Some(p), _) => fields.push(format!("\"person\":\"{p}\"")),
                (None, 0..20) => fields.push("\"person\":null".to_owned()),
                (None, _) => {}
            }
        }
        for &a in &self.attributes {
            let Attribute { name, cells, .. } = ATTRIBUTES[a];
            let cell = cells[usize::from(draft.cells[a]) % cells.len()];
            if !cell.is_empty() {
                fields.push(format!("\"{name}\":{cell}"));
            }
        }
        match draft.oddity {
            39 => return (None, truth),
            38 => fields.push("\"stranger\":1".to_owned()),
            37 => fields.push("\"age".to_owned()),
            36 => return (Some(b"[1]".to_vec()), truth),
            _ => {}
        }
        (Some(format!("{{{}}}", fields.join(",")).into_bytes()), truth)
    }
}

fn with_truth(lines: &[Line], truth: &[Option<String>]) -> Vec<Line> {
    let subject = |line: &Line| truth[usize::try_from(line.source.2).expect("an offset")].clone();
    lines.iter().map(|line| Line { subject: subject(line), ..line.clone() }).collect()
}

fn run(scenario: &Scenario) -> Result<Stand, TestCaseError> {
    run_with(scenario, |_| false)
}

/// Batches selected by `ahead` are announced while the previous one is released.
fn run_with(scenario: &Scenario, ahead: impl Fn(usize) -> bool) -> Result<Stand, TestCaseError> {
    let beside = tempfile::tempdir().expect("a temporary directory");
    let prime = beside.path().join("prime.ndjson");
    std::fs::write(&prime, scenario.primed()).expect("a file");
    let mut stand = Stand::new(&scenario.schema(), &scenario.settings(&prime));
    stand.promise.k += scenario.colluders;
    // After a restart a full memory has space for other values.
    stand.sink.another_attempt_may_differ = scenario.little_room;
    let mut truth = Vec::new();
    let mut now = 1_700_000_000_000;
    let fail = |what: String| TestCaseError::fail(what);
    let (mut batches, mut offsets) = (Vec::new(), 0..);
    for (drafts, fault, step) in &scenario.batches {
        now += step;
        let (records, people): (Vec<_>, Vec<_>) =
            drafts.iter().zip(&mut offsets).map(|(draft, offset)| scenario.payload(draft, offset)).unzip();
        truth.extend(people);
        if !records.is_empty() {
            batches.push((records, fault, now));
        }
    }
    for (number, (records, fault, now)) in batches.iter().enumerate() {
        if let Some((next, ..)) = batches.get(number + 1).filter(|_| ahead(number + 1)) {
            stand.announce(next);
        }
        stand.offer(records, Flush::No, *now, **fault);
        let lines = with_truth(&stand.sink.lines, &truth);
        stand.promise.check_batch(&lines, stand.sink.committed.0).map_err(fail)?;
        stand.check_conservation().map_err(fail)?;
    }
    stand.settle(Flush::EndOfStream, now);
    let lines = with_truth(&stand.sink.lines, &truth);
    stand.promise.check_all(&lines).map_err(fail)?;
    check_once(&lines).map_err(fail)?;
    stand.check_conservation().map_err(fail)?;
    prop_assert_eq!(stand.engine().unreleased_records(), 0, "the end settles everything");
    Ok(stand)
}

fn cases() -> u32 {
    if std::env::var_os("THRONG_LONG").is_some() { 10_000 } else { 400 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 2000, ..ProptestConfig::default() })]
    #[test]
    fn random_streams_satisfy_the_invariant_at_every_commit(scenario in scenario().prop_filter("a crowd", Scenario::is_possible)) {
        run(&scenario)?;
    }

    #[test]
    fn random_streams_with_shared_attributes_satisfy_the_invariant(scenario in sharing()) {
        run(&scenario)?;
    }

    #[test]
    fn batches_encoded_ahead_give_the_same_output(
        scenario in scenario().prop_filter("a crowd", Scenario::is_possible),
        ahead in any::<u64>(),
    ) {
        let with = run_with(&scenario, |number| ahead >> (number % 64) & 1 == 1)?;
        prop_assert_eq!(&with.sink.lines, &run(&scenario)?.sink.lines);
    }
}

#[test]
fn random_streams_release_all_kinds_of_cells() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut lines, mut suppressed, mut generalized, mut missing, mut held) = (0, 0, 0, 0, 0);
    for _ in 0..60 {
        let scenario =
            scenario().prop_filter("a crowd", Scenario::is_possible).new_tree(&mut runner).expect("a tree").current();
        let stand = run(&scenario).expect("the invariant");
        let status = stand.telemetry.status();
        lines += stand.sink.lines.len();
        held += status.suppressed.get(throng::telemetry::SuppressionReason::HeldOut);
        for line in &stand.sink.lines {
            suppressed += usize::from(line.text.contains(":\"*\""));
            missing += usize::from(line.text.contains(":null"));
            generalized +=
                usize::from(["30-34", "CH", "606**", "2021-05\"", "mild"].iter().any(|g| line.text.contains(g)));
        }
    }
    println!(
        "{lines} lines, {suppressed} with a suppressed cell, {missing} missing, {generalized} generalized, {held} held out"
    );
    assert!(lines > 1000 && suppressed > 50 && missing > 50 && generalized > 50 && held > 5);
}

#[test]
fn file_run_satisfies_the_invariant_by_its_lineage() {
    let groups = "[[group]]\nname = \"a\"\nattributes = [\"age\", \"city\"]\n[[group]]\nname = \"b\"\nattributes = [\"zip\"]\n\
                  [[group]]\nname = \"c\"\nattributes = [\"mood\", \"illness\"]\n";
    let mut schema = schema!("lineage"; person).to_owned();
    for name in ["age", "city", "zip", "mood", "illness"] {
        let Attribute { table, .. } = ATTRIBUTES.iter().find(|a| a.name == name).expect("known");
        write!(schema, "[[attribute]]\nname = \"{name}\"\n{table}").expect("a string");
    }
    let place = Place::new(&schema, groups);
    let mut state = 7_u64;
    let mut dice = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let (mut source, mut truth) = (String::new(), Vec::new());
    for _ in 0..4000 {
        // A few subjects send many records.
        let person = dice(60) * dice(60) / 30;
        let (age, city, zip) = (dice(70) + dice(30), dice(4), 60600 + dice(9) * dice(9));
        let (mood, illness) = (
            ["calm", "tired"][usize::from(dice(9) == 0)],
            ["flu", "cold", "hiv"][usize::try_from(dice(30) / 14).expect("small")],
        );
        let city = ["Zug", "Bern", "Paris", "Lyon"][usize::try_from(city).expect("small")];
        writeln!(source, r#"{{"person":"p{person}","age":{age},"city":"{city}","zip":"{zip}","mood":"{mood}","illness":"{illness}"}}"#)
            .expect("a string");
        truth.push(Some(format!("p{person}")));
    }
    place.write("in.ndjson", &source);
    let overrides = [("PRIVACY__MAX_HOLD_BATCHES", "2"), ("BATCH__MAX_RECORDS", "200")];
    let mut command = place.command(&overrides, &["--lineage", "lineage.ndjson"]);
    let outcome = command.output().expect("runs");
    let told = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(outcome.status.success(), "{told}");
    let names = ["a", "b", "c"];
    let texts = names.map(|group| place.lines(&format!("out.{group}.ndjson")));
    let lines: Vec<Line> = place
        .lines("lineage.ndjson")
        .iter()
        .map(|entry| {
            let entry: serde_json::Value = serde_json::from_str(entry).expect("an entry");
            let group = names.iter().position(|n| entry["group"] == *n).expect("a group");
            let line = usize::try_from(entry["line"].as_u64().expect("a line")).expect("small");
            Line {
                batch: entry["batch"].as_u64().expect("a batch"),
                clock_ms: 0,
                group,
                text: texts[group][line].clone(),
                subject: entry["subject"].as_str().map(str::to_owned),
                source: (0, 0, entry["source"][2].as_i64().expect("an offset")),
            }
        })
        .collect();
    assert_eq!(lines.len(), texts.iter().map(Vec::len).sum::<usize>(), "a lineage entry a line");
    let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
    let group = |quasi: &[&str], sensitive: &[&str]| GroupNames {
        all: owned(&[quasi, sensitive].concat()),
        quasi: owned(quasi),
        sensitive: owned(sensitive),
    };
    let groups = vec![group(&["age", "city"], &[]), group(&["zip"], &[]), group(&["mood"], &["illness"])];
    let promise = Promise { k: 3, groups };
    promise.check_all(&with_truth(&lines, &truth)).expect("the invariant");
    check_once(&lines).expect("once");
    let released = support::invariants::records_released(&lines);
    println!("{} lines of {released} records", lines.len());
    assert!(released > 3500 && told.contains(&format!("consumed 4000 = released {released} + ")), "{told}");
    // The recount must be able to fail.
    let promise = Promise { k: 4, ..promise };
    assert!(promise.check_all(&with_truth(&lines, &truth)).is_err(), "crowds are no larger than need be");
}

/// The next batch is encoded only after compaction.
#[test]
fn batches_encoded_ahead_fit_into_full_dictionaries() {
    let schema = schema!("visits"; person, more "[[attribute]]\nname = \"lot\"\ntype = \"string\"\nrole = \"quasi\"\n\
                  hierarchy = { kind = \"prefix\", keep = [3, 1] }\n");
    let settings = "[privacy]\nk = 3\n[batch]\nmax_records = 20\n[plan]\ninterval = \"2s\"\nwindow_records = 70\n";
    // Fifteen new values per batch: almost an identifier.
    let batch = |number: usize| -> Vec<Option<Vec<u8>>> {
        let visits = (number * 20)..(number * 20 + 20);
        let lot = |visit: usize| if visit % 4 == 3 { visit - 1 } else { visit };
        let record = |visit| format!(r#"{{"person":"p{}","lot":"{:03}-{}"}}"#, visit % 90, visit / 40 % 7, lot(visit));
        visits.map(|visit| Some(record(visit).into_bytes())).collect()
    };
    let stream = |room: usize, ahead: bool| {
        let tuning = FixedSettings { max_dictionary_values: room, ..FixedSettings::default() };
        let mut stand = Stand::tuned(schema, settings, SECRET, tuning);
        for number in 0..40 {
            if ahead {
                stand.announce(&batch(number + 1));
            }
            let now = 1_700_000_000_000 + i64::try_from(number).expect("small") * 700;
            stand.offer(&batch(number), Flush::No, now, Fault::Nothing);
        }
        stand.sink.lines
    };
    for room in [180, 184, 188, 192] {
        let lines = stream(room, true);
        assert!(lines.iter().filter(|line| !line.text.contains("\"*\"")).count() > 400, "too little left to tell");
        assert_eq!(lines, stream(room, false));
    }
}

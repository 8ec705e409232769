//! Random small streams under repetition limits, with restarts, crashes and aborts. Faults must not change the output.

use crate::support::invariants::{GroupNames, Line, cells};
use crate::support::stand::{Fault, RETRIED_AFTER_MS, SECRET, Stand};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use throng::config::FixedSettings;
use throng::daemon::state::records::Flush;

const NOW: i64 = 1_700_000_000_000;
const SCHEMA: &str = "name = \"moving\"\n[[attribute]]\nname = \"person\"\ntype = \"string\"\nrole = \"subject\"\n\
    [[attribute]]\nname = \"build\"\ntype = \"integer\"\nchanges = \"never\"\n[attribute.hierarchy]\nkind = \"intervals\"\n\
    min = 0\nmax = 100\nwidths = [10, 50]\n\
    [[attribute]]\nname = \"illness\"\ntype = \"string\"\nrole = \"sensitive\"\nchanges = \"slowly\"\n\
    [[attribute]]\nname = \"home\"\ntype = \"string\"\n\
    [[attribute]]\nname = \"mood\"\ntype = \"string\"\nchanges = \"always\"\n";

/// Person, difference from the person's last record, mood.
type Draft = (u8, u8, u8);

#[derive(Clone, Debug)]
struct Scenario {
    k: usize,
    most: usize,
    hold: u8,
    delay_ms: u32,
    window_seconds: u32,
    room: (usize, usize),
    batches: Vec<(Vec<Draft>, Fault, i64)>,
    end: bool,
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let fault = prop_oneof![
        3 => Just(Fault::Nothing),
        1 => Just(Fault::Restart),
        1 => Just(Fault::Abort),
        1 => Just(Fault::AbortAndDie),
        1 => Just(Fault::LeaveAndDie),
    ];
    let batch = (
        prop::collection::vec((0u8..14, 0u8..12, 0u8..4), 1..30),
        fault,
        prop_oneof![4 => 100i64..1500, 1 => 3000i64..9000],
    );
    (
        (2usize..=4, 0usize..=2, 0u8..=2),
        prop_oneof![Just((1500u32, 4u32)), Just((4000, 4)), Just((6000, 86_400)), Just((2000, 10))],
        prop_oneof![3 => Just((1000, 1000)), 1 => Just((3, 1000)), 1 => Just((1000, 6))],
        prop::collection::vec(batch, 1..9),
        any::<bool>(),
    )
        .prop_map(|((k, most, hold), (delay_ms, window_seconds), room, batches, end)| Scenario {
            k,
            most,
            hold,
            delay_ms,
            window_seconds,
            room,
            batches,
            end,
        })
}

impl Scenario {
    fn settings(&self) -> String {
        format!(
            "[privacy]\nk = {}\nmax_hold_batches = {}\n\
             static_window = \"{}s\"\nmax_lines_per_subject = {}\nmax_delay = \"{}ms\"\n\
             [plan]\ninterval = \"2s\"\nwindow_records = 100\n\
             [[group]]\nname = \"body\"\nattributes = [\"build\", \"illness\"]\n\
             [[group]]\nname = \"home\"\nattributes = [\"home\"]\n[[group]]\nname = \"now\"\nattributes = [\"mood\"]\n",
            self.k, self.hold, self.window_seconds, self.most, self.delay_ms
        )
    }

    fn tuning(&self) -> FixedSettings {
        FixedSettings { max_waiting_lines: self.room.0, max_said_lines: self.room.1, ..FixedSettings::default() }
    }

    /// Static detection or a full limit may differ in a retry or after a restart.
    fn is_exact(&self) -> bool {
        self.window_seconds != 4 && self.room == (1000, 1000)
    }
}

fn payload((person, change, mood): Draft) -> (Option<Vec<u8>>, Option<String>) {
    let mut fields = Vec::new();
    // A few people send many records; some records have no person.
    let person = if person > 9 { person - 9 } else { person };
    if person > 0 {
        fields.push(format!("\"person\":\"p{person}\""));
    }
    if change != 11 {
        let (build, illness) = (40 + person % 3, if change == 10 { 1 } else { person % 2 });
        fields.push(format!("\"build\":{build},\"illness\":\"i{illness}\""));
    }
    fields.push(format!("\"home\":\"h{}\"", if change == 9 { 7 } else { person % 2 }));
    fields.push(format!("\"mood\":\"m{}\"", mood / 2));
    (Some(format!("{{{}}}", fields.join(",")).into_bytes()), (person > 0).then(|| format!("p{person}")))
}

/// Three static lines of one subject must span more than this.
fn window_ms(scenario: &Scenario) -> i64 {
    i64::from(scenario.window_seconds) * 1000
}

fn check_limits(scenario: &Scenario, lines: &[Line], groups: &[GroupNames]) -> Result<(), String> {
    let mut in_batch: BTreeMap<(usize, u64, &Option<String>), usize> = BTreeMap::new();
    let mut said: BTreeMap<&Option<String>, Vec<i64>> = BTreeMap::new();
    let mut records = BTreeSet::new();
    for line in lines {
        if !records.insert((line.group, line.source)) {
            return Err(format!("a record has two lines in one group: {line:?}"));
        }
        let lines = in_batch.entry((line.group, line.batch, &line.subject)).or_default();
        *lines += 1;
        let is_static = line.group == 0;
        if (is_static && *lines > 1) || (scenario.most > 0 && *lines > scenario.most) {
            return Err(format!("{lines} lines of one subject in a batch: {line:?}"));
        }
        if is_static {
            let times = said.entry(&line.subject).or_default();
            times.push(line.clock_ms);
            if let [.., first, _, third] = times[..]
                && third - first <= window_ms(scenario)
            {
                return Err(format!("three lines inside {} ms: {line:?}", third - first));
            }
        }
    }
    check_counting(lines, groups, scenario)
}

/// All builds of these streams are between 40 and 49.
fn labels(name: &str, text: &str) -> Vec<String> {
    let all = if name == "build" { vec![text, "\"40-49\"", "\"0-49\""] } else { vec![text] };
    let own = all.iter().rposition(|label| *label == text).unwrap_or(0);
    all[own..].iter().map(|label| (*label).to_owned()).collect()
}

/// At most one label per attribute.
fn label_sets(line: &Line, names: &GroupNames) -> Result<Vec<Vec<String>>, String> {
    let printed = cells(line)?;
    let mut sets: Vec<Vec<String>> = vec![Vec::new()];
    for name in names.quasi.iter().chain(&names.sensitive) {
        let text = printed.iter().find(|(of, _)| of == name).map_or("absent", |(_, text)| text.as_str());
        if text == "\"*\"" {
            continue;
        }
        let labels = labels(name, text);
        let with = |(set, label): (&Vec<String>, &String)| [set.clone(), vec![format!("{name}={label}")]].concat();
        let more: Vec<Vec<String>> =
            sets.iter().flat_map(|set| labels.iter().map(move |l| (set, l))).map(with).collect();
        sets.extend(more);
    }
    sets.remove(0);
    Ok(sets)
}

/// Checks that counting joins no pair of label sets of two groups for fewer than k subjects. With at most one line per
/// subject and group, a row is a subject; otherwise a record.
fn check_counting(lines: &[Line], groups: &[GroupNames], scenario: &Scenario) -> Result<(), String> {
    let by_person = scenario.most == 1;
    let row = |line: &Line| if by_person { format!("{:?}", line.subject) } else { format!("{:?}", line.source) };
    let batches: BTreeSet<u64> = lines.iter().map(|line| line.batch).collect();
    for batch in batches {
        let now: Vec<&Line> = lines.iter().filter(|line| line.batch == batch).collect();
        let people: BTreeSet<&Option<String>> = now.iter().map(|line| &line.subject).collect();
        let of_group = |group: usize| now.iter().filter(|line| line.group == group).count();
        let largest = (0..groups.len()).map(of_group).max().unwrap_or(0);
        let all = if by_person { people.len() } else { largest };
        let mut by_set: BTreeMap<(usize, Vec<String>), BTreeMap<String, &Option<String>>> = BTreeMap::new();
        for line in &now {
            for set in label_sets(line, &groups[line.group])? {
                by_set.entry((line.group, set)).or_default().insert(row(line), &line.subject);
            }
        }
        for ((a, x), of_x) in &by_set {
            for ((_, y), of_y) in by_set.iter().filter(|((b, _), of_y)| b != a && of_x.len() + of_y.len() > all) {
                let both: BTreeSet<&String> = of_x
                    .iter()
                    .filter(|(row, _)| of_y.contains_key(*row))
                    .filter_map(|(_, who)| who.as_ref())
                    .collect();
                if both.len() < scenario.k {
                    return Err(format!("counting joins {x:?} and {y:?} for {} of {all}", both.len()));
                }
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Run {
    /// The state is in a directory.
    Directory { faults: bool },
    /// The state is in a changelog.
    Changelog { faults: bool },
    /// Each restart uses a new directory.
    Moves,
}

fn run(scenario: &Scenario, kind: Run) -> Result<Stand, TestCaseError> {
    let fail = |what: String| TestCaseError::fail(what);
    let mut stand = match kind {
        Run::Directory { .. } => Stand::tuned(SCHEMA, &scenario.settings(), SECRET, scenario.tuning()),
        Run::Changelog { .. } | Run::Moves => Stand::of_a_topic(SCHEMA, &scenario.settings(), scenario.tuning()),
    };
    // A store may be less full after a restart.
    stand.sink.another_attempt_may_differ = !scenario.is_exact();
    // A retried batch may use the later clock of the retry.
    let (mut truth, mut now, mut latest) = (Vec::new(), NOW, NOW);
    let with_truth = |lines: &[Line], truth: &[Option<String>]| -> Vec<Line> {
        let subject = |line: &Line| truth[usize::try_from(line.source.2).expect("an offset")].clone();
        lines.iter().map(|line| Line { subject: subject(line), ..line.clone() }).collect()
    };
    for (drafts, fault, step) in &scenario.batches {
        now += step;
        let (records, people): (Vec<_>, Vec<_>) = drafts.iter().copied().map(payload).unzip();
        truth.extend(people);
        let fault = match (kind, *fault) {
            (Run::Directory { faults: false } | Run::Changelog { faults: false }, _) => Fault::Nothing,
            (Run::Moves, Fault::Restart) => Fault::Move,
            (Run::Moves, Fault::LeaveAndDie) => Fault::LeaveAndMove,
            (_, fault) => fault,
        };
        stand.offer(&records, Flush::No, now, fault);
        latest = latest.max(now + RETRIED_AFTER_MS);
        let lines = with_truth(&stand.sink.lines, &truth);
        let last = stand.sink.lines.last().map_or(0, |line| line.batch);
        stand.promise.check_release(&lines, last).map_err(fail)?;
        stand.check_conservation().map_err(fail)?;
    }
    let now = latest;
    if scenario.end {
        stand.settle(Flush::EndOfStream, now);
        prop_assert_eq!(
            (stand.engine().unreleased_records(), stand.engine().waiting_lines()),
            (0, 0),
            "the end settles everything"
        );
    } else {
        stand.settle(Flush::Quiet, now);
        prop_assert!(!stand.engine().has_due(now));
        stand.settle(Flush::Quiet, now + i64::from(scenario.delay_ms));
        prop_assert!(
            !stand.engine().has_due(now + i64::from(scenario.delay_ms)),
            "a quiet stream does not ask for ever"
        );
        stand.settle(Flush::Quiet, now + window_ms(scenario));
        prop_assert_eq!(
            (stand.engine().unreleased_records(), stand.engine().waiting_lines()),
            (0, 0),
            "nothing waits beyond its window"
        );
    }
    let lines = with_truth(&stand.sink.lines, &truth);
    let batches: BTreeSet<u64> = lines.iter().map(|line| line.batch).collect();
    for batch in batches {
        // Joins by counting are checked by label in `check_limits`.
        stand.promise.check_release(&lines, batch).map_err(fail)?;
    }
    check_limits(scenario, &lines, &stand.promise.groups).map_err(fail)?;
    stand.check_conservation().map_err(fail)?;
    Ok(stand)
}

fn cases() -> u32 {
    if std::env::var_os("THRONG_LONG").is_some() { 5_000 } else { 200 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 1000, ..ProptestConfig::default() })]
    #[test]
    fn random_streams_keep_limits_and_bytes_under_faults(scenario in scenario()) {
        let stand = run(&scenario, Run::Directory { faults: true })?;
        if scenario.is_exact() {
            let undisturbed = run(&scenario, Run::Directory { faults: false })?;
            prop_assert_eq!(&stand.sink.lines, &undisturbed.sink.lines);
        }
    }

    #[test]
    fn random_streams_with_changelog_keep_limits_and_bytes_under_faults(scenario in scenario()) {
        let stand = run(&scenario, Run::Changelog { faults: true })?;
        if scenario.is_exact() {
            let undisturbed = run(&scenario, Run::Changelog { faults: false })?;
            prop_assert_eq!(&stand.sink.lines, &undisturbed.sink.lines);
        }
    }

    #[test]
    fn random_streams_keep_limits_after_state_moves(scenario in scenario()) {
        run(&scenario, Run::Moves)?;
    }
}

#[test]
fn random_streams_delay_and_thin_lines() {
    use proptest::strategy::ValueTree;
    use throng::telemetry::SuppressionReason;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut lines, mut late, mut thinned) = ([0; 3], 0, 0);
    for _ in 0..60 {
        let scenario = scenario().new_tree(&mut runner).expect("a tree").current();
        let stand = run(&scenario, Run::Directory { faults: true }).expect("the limits");
        thinned += stand.telemetry.status().suppressed.get(SuppressionReason::Thinned);
        let mut first: BTreeMap<(u16, i32, i64), u64> = BTreeMap::new();
        for line in &stand.sink.lines {
            lines[line.group] += 1;
            late += u64::from(*first.entry(line.source).or_insert(line.batch) != line.batch);
        }
    }
    println!(
        "{lines:?} lines by group, {late} in a later batch than others of their record, {thinned} records thinned"
    );
    assert!(lines.iter().all(|of| *of > 100) && late > 50 && thinned > 100);
}

#[test]
fn line_limits_have_no_effect_without_subject() {
    let schema = SCHEMA.replace("role = \"subject\"", "role = \"identifier\"");
    let stream = |limits: &str| {
        let mut stand = Stand::new(&schema, &format!("[privacy]\nk = 3\n{limits}"));
        for batch in 0..5 {
            let drafts = (0..40).map(|i| (i % 14, i % 12, (i + batch) % 4));
            let records: Vec<_> = drafts.map(|draft| payload(draft).0).collect();
            stand.offer(&records, Flush::No, NOW + i64::from(batch) * 1000, Fault::Nothing);
        }
        stand.check_conservation().expect("conservation");
        stand.sink.lines
    };
    let lines = stream("");
    assert!(lines.len() > 100, "{} lines", lines.len());
    assert_eq!(stream("max_lines_per_subject = 1\nmax_delay = \"1h\""), lines);
}

/// A waiting fragment is not a second record.
#[test]
fn record_with_delayed_lines_counts_once() {
    let settings = "[privacy]\nk = 3\nmax_lines_per_subject = 1\nmax_delay = \"1h\"\n\
        [[group]]\nname = \"body\"\nattributes = [\"build\", \"illness\"]\n[[group]]\nname = \"home\"\nattributes = [\"home\"]\n\
        [[group]]\nname = \"now\"\nattributes = [\"mood\"]\n";
    let mut stand = Stand::new(SCHEMA, settings);
    let burst: Vec<Draft> = (1..=5).chain(1..=5).map(|person| (person, 0, 0)).collect();
    let records: Vec<_> = burst.iter().map(|draft| payload(*draft).0).collect();
    stand.offer(&records, Flush::No, NOW, Fault::Nothing);
    let now = stand.telemetry.status();
    let of = |stand: &Stand, group: usize| stand.sink.lines.iter().filter(|l| l.group == group).count();
    assert_eq!((of(&stand, 2), of(&stand, 0), of(&stand, 1)), (5, 0, 0), "one mood of each, nothing else yet");
    assert_eq!(stand.engine().waiting_lines(), 10, "a body and a home of each");
    let (released, held, suppressed) = (now.totals.released, now.held, now.totals.suppressed);
    assert_eq!(released, 5);
    assert_eq!(released + held + suppressed, 10);
    stand.check_conservation().expect("conservation");
    stand.offer(&records, Flush::No, NOW + 1000, Fault::LeaveAndDie);
    assert_eq!(stand.engine().waiting_lines(), 10);
    stand.settle(Flush::Quiet, NOW + 3_600_000);
    // Two of the homes belong to two people each and keep waiting.
    assert_eq!((of(&stand, 0), of(&stand, 1), stand.engine().waiting_lines()), (5, 3, 2));
    stand.check_conservation().expect("conservation");
    stand.offer(&records, Flush::EndOfStream, NOW + 3_700_000, Fault::Nothing);
    assert_eq!((of(&stand, 0), of(&stand, 1)), (5, 3), "said once a window");
    stand.check_conservation().expect("conservation");
    // The first plan detects no change; declared frequencies are kept.
    let plan = stand.telemetry.status().plan;
    let changes: BTreeMap<&str, (&str, bool)> = plan["changes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|c| {
            (c["attribute"].as_str().expect("a name"), (c["changes"].as_str().expect("a word"), c["declared"] == true))
        })
        .collect();
    assert_eq!(changes["mood"], ("always", true));
    assert_eq!(changes["home"], ("never", false));
    assert_eq!(plan["groups"][1]["static"], true);
}

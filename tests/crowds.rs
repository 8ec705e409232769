//! Threats 24 and 27: who sees a crowd when, and who is invented. `docs/threats.md` is the table.

mod support;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use support::invariants::{Line, cells, tuple};
use support::stand::{Fault, Stand, record};
use throng::daemon::engine::Settling;

const NOW: i64 = 1_700_000_000_000;
const SCHEMA: &str = r#"
name = "crowds"
[[attribute]]
name = "person"
type = "string"
role = "subject"
[[attribute]]
name = "age"
type = "integer"
hierarchy = { kind = "intervals", min = 0, max = 79, origin = 0, widths = [5, 20] }
[[attribute]]
name = "city"
type = "string"
hierarchy = { kind = "tree", tree = { CH = ["Zug", "Bern", "Chur"], FR = ["Lyon", "Nice"] } }
[[attribute]]
name = "mood"
type = "string"
[[attribute]]
name = "illness"
type = "string"
role = "sensitive"
"#;

type Records = Vec<Option<Vec<u8>>>;

/// `count` records of skewed values; every person sends about two.
fn records(random: &mut ChaCha8Rng, count: usize) -> Records {
    let mut skewed = |n: usize| {
        let draw: f64 = random.random();
        (draw * draw * n as f64) as usize
    };
    let one = |_| {
        let (age, city) = (skewed(80), ["Zug", "Bern", "Chur", "Lyon", "Nice"][skewed(5)]);
        let (mood, illness) = (["calm", "tired", "glad"][skewed(3)], ["flu", "cold", "hiv", "gout"][skewed(4)]);
        let person = skewed(count / 2 * 40);
        record(format!(r#"{{"person":"p{person}","age":{age},"city":"{city}","mood":"{mood}","illness":"{illness}"}}"#))
    };
    (0..count).map(one).collect()
}

/// Runs 25 batches of 60 records under some settings.
fn run(settings: &str) -> Stand {
    let mut stand = Stand::new(SCHEMA, settings);
    let mut random = ChaCha8Rng::seed_from_u64(24);
    for batch in 0..25 {
        stand.offer(&records(&mut random, 60), Settling::No, NOW + batch * 1000, Fault::Nothing);
    }
    stand.settle(Settling::EndOfStream, NOW + 30_000);
    stand.check_conservation().expect("conservation");
    stand.promise.check_all(&stand.sink.lines).expect("R(k)");
    stand
}

const GROUPS: [&str; 2] = [
    "",
    "[[group]]\nname = \"where\"\nattributes = [\"age\", \"city\"]\n[[group]]\nname = \"how\"\nattributes = [\"mood\", \"illness\"]\n",
];

/// Yesterday's support is no crowd to somebody who saw the batch arrive: without a floor some are alone in theirs.
#[test]
fn threat_24_who_sees_a_batch_arrive_sees_a_crowd() {
    for groups in GROUPS {
        for more in ["", "max_hold_batches = 3\nhold_above_loss = 0.1\n", "recoding = \"strict\"\n"] {
            let with = |crowd: &str| run(&format!("[privacy]\nk = 4\n{more}{crowd}{groups}"));
            let (off, two, whole) = (with("batch_crowd = 0\n"), with("batch_crowd = 2\n"), with("batch_crowd = 4\n"));
            let alone = |stand: &Stand| {
                let crowds = stand.promise.batch_crowds(&stand.sink.lines).expect("lines");
                crowds.values().filter(|subjects| **subjects == 1).count()
            };
            assert!(alone(&off) > 10, "{more} {groups}: without a floor {} are alone", alone(&off));
            two.promise.check_batch_crowds(&two.sink.lines, 2).expect("two in every batch");
            whole.promise.check_batch_crowds(&whole.sink.lines, 4).expect("k in every batch");
            for stand in [&off, &two, &whole] {
                assert!(stand.telemetry.status().totals.released > 1000, "and the stream still leaves");
            }
        }
    }
}

/// Both crowds are reported as a reader would count them.
#[test]
fn both_crowds_are_reported() {
    for crowd in [0, 4] {
        let mut stand = Stand::new(SCHEMA, &format!("[privacy]\nk = 4\nbatch_crowd = {crowd}\n"));
        let mut random = ChaCha8Rng::seed_from_u64(25);
        for batch in 1..8 {
            stand.offer(&records(&mut random, 60), Settling::No, NOW + batch * 1000, Fault::Nothing);
            let lines: Vec<Line> =
                stand.sink.lines.iter().filter(|l| l.batch == batch.unsigned_abs()).cloned().collect();
            let quasi = &stand.promise.groups[0].quasi;
            let class = |line: &Line| tuple(&cells(line).expect("a line"), quasi);
            let mut classes: BTreeMap<Vec<Option<String>>, BTreeSet<&String>> = BTreeMap::new();
            for line in &lines {
                classes.entry(class(line)).or_default().extend(&line.subject);
            }
            let of: Vec<usize> = lines.iter().map(|line| classes[&class(line)].len()).collect();
            let report = stand.telemetry.status().last.expect("a batch");
            assert_eq!(report.crowd_in_batch.smallest, of.iter().copied().min().unwrap_or(0) as u64);
            let (count, average) = (of.len().max(1) as f64, of.iter().sum::<usize>() as f64);
            assert!((report.crowd_in_batch.average - average / count).abs() < 1e-9);
            let below = of.iter().filter(|subjects| **subjects < 4).count() as f64;
            assert!((report.crowd_in_batch.share_below_k - below / count).abs() < 1e-9);
            assert!(report.crowd_in_window.smallest >= 4 && report.crowd_in_window.share_below_k == 0.0);
            assert!(batch < 4 || (below > 0.0) == (crowd == 0), "batch {batch}: {below} lines below k");
            let text = stand.telemetry.render();
            assert!(text.contains("throng_crowd_subjects{scope=\"batch\",statistic=\"smallest\"}"));
            assert!(text.contains("throng_fragments_below_k_share{scope=\"window\"} 0"));
        }
    }
}

/// Models are asked of what a batch shows by itself, too.
#[test]
fn threat_24_a_class_is_diverse_in_its_own_batch() {
    let uniform = |crowd: usize| {
        let model = "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\n";
        let mut stand = Stand::new(SCHEMA, &format!("[privacy]\nk = 3\nbatch_crowd = {crowd}\n{model}"));
        let people = |from: usize, illnesses: &[&str]| -> Records {
            let of = |(i, illness): (usize, &&str)| {
                let person = from + i;
                record(format!(r#"{{"person":"p{person}","age":30,"city":"Zug","mood":"calm","illness":"{illness}"}}"#))
            };
            illnesses.iter().enumerate().map(of).collect()
        };
        stand.offer(&people(0, &["flu", "flu", "flu", "cold", "cold", "cold"]), Settling::No, NOW, Fault::Nothing);
        // Everybody of this batch has the flu; yesterday's colds make the window diverse, and this batch no less telling.
        stand.offer(&people(10, &["flu"; 5]), Settling::No, NOW + 1000, Fault::Nothing);
        stand.sink.lines.iter().filter(|l| l.batch == 2 && l.text.contains("flu")).count()
    };
    assert_eq!(uniform(0), 5, "the window is diverse");
    assert_eq!(uniform(3), 0, "the batch is not");
}

/// The same batches at any pace inside the support window: the same bytes. What is remembered is ordered by batches, and time
/// only says how long it counts.
#[test]
fn bytes_do_not_hang_on_the_pace_of_the_clock() {
    let schema = r#"
        name = "pace"
        [[attribute]]
        name = "person"
        type = "string"
        role = "subject"
        [[attribute]]
        name = "a"
        type = "integer"
        hierarchy = { kind = "intervals", min = 0, max = 59, origin = 0, widths = [10, 30] }
        [[attribute]]
        name = "ill"
        type = "string"
        role = "sensitive"
    "#;
    let model = "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"ill\"\nl = 2\n";
    for (settings, model) in [("recoding = \"strict\"", ""), ("recoding = \"strict\"", model), ("", model), ("", "")] {
        let run = |seed: u64, step: i64| {
            let plan = "[plan]\ninterval = \"1000h\"\n";
            let mut stand =
                Stand::new(schema, &format!("[privacy]\nk = 2\nbatch_crowd = 0\n{settings}\n{model}{plan}"));
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            for batch in 0..40 {
                let mut one = |_| {
                    let draw: f64 = random.random();
                    let (person, a) = (random.random_range(0..60), (draw * draw * 60.0) as u32);
                    let ill = random.random_range(0..8);
                    record(format!(r#"{{"person":"p{person}","a":{a},"ill":"i{ill}"}}"#))
                };
                let records: Records = (0..8).map(&mut one).collect();
                stand.offer(&records, Settling::No, NOW + batch * step, Fault::Nothing);
            }
            stand.sink.lines.into_iter().map(|l| (l.batch, l.group, l.text, l.source)).collect::<Vec<_>>()
        };
        for seed in 0..12 {
            let slow = run(seed, 1_700_000);
            for step in [0, 7, 900, 60_000] {
                let fast = run(seed, step);
                let differs = (0..slow.len().max(fast.len())).find(|&i| slow.get(i) != fast.get(i));
                assert_eq!(differs, None, "{settings} {model} seed {seed}, step {step} ms");
            }
        }
    }
}

/// A report of how many: one line a case, for the table of docs/threats.md.
fn told(yields: &[(&str, f64)]) -> String {
    yields.iter().fold(String::new(), |mut text, (case, share)| {
        writeln!(text, "{case}: {:.1} %", share * 100.0).expect("a string");
        text
    })
}

//! Threats 24 and 27: crowds per batch, and invented subjects (`docs/internals/threats.md`).

use crate::support;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use support::invariants::{Line, cells, tuple};
use support::schemas::schema;
use support::stand::{Fault, Stand, record};
use throng::daemon::state::records::Flush;
use throng::generate::{RecordStream, WearableSettings, WearableStream};
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::DigestKey;
use throng_core::values::schema::Schema;

const NOW: i64 = 1_700_000_000_000;
const SCHEMA: &str = schema!("crowds"; person, more r#"
[[attribute]]
name = "age"
type = "integer"
hierarchy = { kind = "intervals", min = 0, max = 79, origin = 0, widths = [5, 20] }
[[attribute]]
name = "city"
type = "string"
hierarchy = { kind = "tree", tree = { CH = ["Zug", "Bern", "Chur"], FR = ["Lyon", "Nice"] } }
"#, text "mood", sensitive "illness");

type Records = Vec<Option<Vec<u8>>>;

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

fn run(settings: &str) -> Stand {
    let mut stand = Stand::new(SCHEMA, settings);
    let mut random = ChaCha8Rng::seed_from_u64(24);
    for batch in 0..25 {
        stand.offer(&records(&mut random, 60), Flush::No, NOW + batch * 1000, Fault::Nothing);
    }
    stand.settle(Flush::EndOfStream, NOW + 30_000);
    stand.check_conservation().expect("conservation");
    stand.promise.check_all(&stand.sink.lines).expect("R(k)");
    stand
}

const GROUPS: [&str; 2] = [
    "",
    "[[group]]\nname = \"where\"\nattributes = [\"age\", \"city\"]\n[[group]]\nname = \"how\"\nattributes = [\"mood\", \"illness\"]\n",
];

#[test]
fn threat_24_every_class_has_k_subjects_in_its_batch() {
    for groups in GROUPS {
        for more in ["", "max_hold_batches = 3\n"] {
            let stand = run(&format!("[privacy]\nk = 4\n{more}{groups}"));
            stand.promise.check_batch_crowds(&stand.sink.lines, 4).expect("k in every batch");
            assert!(stand.telemetry.status().totals.released > 1000, "and the stream still leaves");
        }
    }
}

#[test]
fn crowd_size_is_reported_as_recounted() {
    let mut stand = Stand::new(SCHEMA, "[privacy]\nk = 4\n");
    let mut random = ChaCha8Rng::seed_from_u64(25);
    for batch in 1..8 {
        stand.offer(&records(&mut random, 60), Flush::No, NOW + batch * 1000, Fault::Nothing);
        let lines: Vec<Line> = stand.sink.lines.iter().filter(|l| l.batch == batch.unsigned_abs()).cloned().collect();
        let quasi = &stand.promise.groups[0].quasi;
        let class = |line: &Line| tuple(&cells(line).expect("a line"), quasi);
        let mut classes: BTreeMap<Vec<Option<String>>, BTreeSet<&String>> = BTreeMap::new();
        for line in &lines {
            classes.entry(class(line)).or_default().extend(&line.subject);
        }
        let of: Vec<usize> = lines.iter().map(|line| classes[&class(line)].len()).collect();
        let report = stand.telemetry.exact_last_report().expect("a batch");
        let smallest = of.iter().copied().min().unwrap_or(0);
        assert_eq!(report.crowd.smallest, smallest as u64);
        assert!(lines.is_empty() || smallest >= 4, "batch {batch}: {smallest}");
        let (count, average) = (of.len().max(1) as f64, of.iter().sum::<usize>() as f64);
        assert!((report.crowd.average - average / count).abs() < 1e-9);
        assert_eq!(report.crowd.share_below_k, 0.0);
        let text = stand.telemetry.render();
        assert!(text.contains("throng_crowd_subjects{statistic=\"smallest\"}"));
        assert!(text.contains("throng_fragments_below_k_share 0"));
    }
}

#[test]
fn threat_24_class_is_diverse_in_its_own_batch() {
    let shown = {
        let model = "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\n";
        let mut stand = Stand::new(SCHEMA, &format!("[privacy]\nk = 3\n{model}"));
        let people = |from: usize, illnesses: &[&str]| -> Records {
            let of = |(i, illness): (usize, &&str)| {
                let person = from + i;
                record(format!(r#"{{"person":"p{person}","age":30,"city":"Zug","mood":"calm","illness":"{illness}"}}"#))
            };
            illnesses.iter().enumerate().map(of).collect()
        };
        stand.offer(&people(0, &["flu", "flu", "flu", "cold", "cold", "cold"]), Flush::No, NOW, Fault::Nothing);
        // The colds of the earlier batch do not make this one diverse.
        stand.offer(&people(10, &["flu"; 5]), Flush::No, NOW + 1000, Fault::Nothing);
        stand.sink.lines.iter().filter(|l| l.batch == 2 && l.text.contains("flu")).count()
    };
    assert_eq!(shown, 0, "the batch is not diverse");
}

/// Within the release window, time does not change the bytes.
#[test]
fn output_bytes_do_not_depend_on_the_clock() {
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
    for (settings, model) in [("", ""), ("", model), ("min_tenure = 2", model), ("max_classes_per_subject = 2", "")] {
        let run = |seed: u64, step: i64| {
            let plan = "[plan]\ninterval = \"1000h\"\n";
            let mut stand = Stand::new(schema, &format!("[privacy]\nk = 2\n{settings}\n{model}{plan}"));
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            for batch in 0..40 {
                let mut one = |_| {
                    let draw: f64 = random.random();
                    let (person, a) = (random.random_range(0..60), (draw * draw * 60.0) as u32);
                    let ill = random.random_range(0..8);
                    record(format!(r#"{{"person":"p{person}","a":{a},"ill":"i{ill}"}}"#))
                };
                let records: Records = (0..8).map(&mut one).collect();
                stand.offer(&records, Flush::No, NOW + batch * step, Fault::Nothing);
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

const REGISTER: &str = r#"
    name = "register"
    [[attribute]]
    name = "person"
    type = "string"
    role = "subject"
    [[attribute]]
    name = "zip"
    type = "string"
    hierarchy = { kind = "prefix", keep = [2, 1] }
    [[attribute]]
    name = "age"
    type = "integer"
    hierarchy = { kind = "intervals", min = 0, max = 79, origin = 0, widths = [10, 40] }
"#;

fn register(person: usize) -> (String, usize) {
    (format!("{}{:02}", person % 6 + 1, person / 6), (person * 37) % 80)
}

type Sent = (String, usize, bool);

/// Returns, of the real subjects' records, the share in a class of fewer than `k` real subjects of their batch, the
/// share released exactly, and the mean loss.
fn real_crowds(settings: &str, k: usize, batches: &[Vec<Sent>]) -> (f64, f64, f64) {
    let mut stand = Stand::new(REGISTER, settings);
    for (number, batch) in (0i64..).zip(batches) {
        let one = |(name, person, _): &Sent| {
            let (zip, age) = register(*person);
            record(format!(r#"{{"person":"{name}","zip":"{zip}","age":{age}}}"#))
        };
        stand.offer(&batch.iter().map(one).collect::<Records>(), Flush::No, NOW + number * 1000, Fault::Nothing);
    }
    let sent: Vec<&Sent> = batches.iter().flatten().collect();
    let who = |line: &Line| sent[usize::try_from(line.source.2).expect("an offset")];
    let quasi = stand.promise.groups[0].quasi.clone();
    let class = |line: &Line| tuple(&cells(line).expect("a line"), &quasi);
    let (mut alone, mut exact) = (0u32, 0u32);
    for of_batch in stand.sink.lines.chunk_by(|a, b| a.batch == b.batch) {
        let honest: Vec<(&Line, Vec<Option<String>>)> =
            of_batch.iter().filter(|line| !who(line).2).map(|line| (line, class(line))).collect();
        let mut real: BTreeMap<Vec<Option<String>>, BTreeSet<&str>> = BTreeMap::new();
        for (line, class) in &honest {
            real.entry(class.clone()).or_default().insert(&who(line).0);
        }
        for (line, class) in &honest {
            let (zip, age) = register(who(line).1);
            alone += u32::from(real[class].len() < k);
            exact += u32::from(*class == [Some(format!("\"{zip}\"")), Some(age.to_string())]);
        }
    }
    let all = sent.iter().filter(|sent| !sent.2).count().max(1) as f64;
    (f64::from(alone) / all, f64::from(exact) / all, stand.telemetry.status().mean_loss.unwrap_or(1.0))
}

/// k − 1 invented records with the target's values, with new accounts per target or always the same four.
#[test]
fn threat_27_invented_subjects_with_the_values_of_a_target() {
    let attack = |fresh: bool| -> Vec<Vec<Sent>> {
        let of_batch = |batch: usize| {
            let mut sent: Vec<Sent> = Vec::new();
            for target in batch * 10..batch * 10 + 10 {
                sent.push((format!("p{target}"), target, false));
                let invented = |i: usize| if fresh { format!("x{target}-{i}") } else { format!("x{i}") };
                sent.extend((0..4).map(|i| (invented(i), target, true)));
            }
            sent
        };
        (0..30).map(of_batch).collect()
    };
    let run = |more: &str, fresh: bool| real_crowds(&format!("[privacy]\nk = 5\n{more}"), 5, &attack(fresh));
    let floor = run("", true);
    let few = run("colluders = 4\n", false);
    let many = run("colluders = 4\n", true);
    let tenure = run("min_tenure = 2\n", true);
    println!(
        "below k real people, exact, loss: k {floor:?}, colluders, the same four {few:?}, colluders, new ones {many:?}, tenure {tenure:?}"
    );
    assert!(floor.1 > 0.9, "k - 1 invented people let every target leave exactly");
    assert!(few.0 == 0.0 && few.1 == 0.0, "four people complete no crowd of five");
    assert!(many.1 < 0.05, "nor does a target leave exactly for four new ones");
    assert_eq!(tenure.1, 0.0, "who was never seen supports nobody");
}

/// Four invented subjects repeatedly send the tuples of the whole register.
#[test]
fn threat_27_invented_subjects_that_cover_a_register() {
    let mut random = ChaCha8Rng::seed_from_u64(27);
    let mut of_batch = |batch: usize| {
        let mut sent: Vec<Sent> = Vec::new();
        for _ in 0..60 {
            let person = random.random_range(0..300);
            sent.push((format!("p{person}"), person, false));
        }
        for person in (0..300).filter(|person| person % 4 == batch % 4) {
            sent.extend((0..4).map(|i| (format!("x{i}"), person, true)));
        }
        sent
    };
    let batches: Vec<Vec<Sent>> = (0..24).map(&mut of_batch).collect();
    let run = |more: &str| real_crowds(&format!("[privacy]\nk = 5\n{more}"), 5, &batches);
    let floor = run("");
    let colluders = run("colluders = 4\n");
    let budget = run("max_classes_per_subject = 20\n");
    let tenure = run("min_tenure = 2\n");
    println!(
        "below k real people, exact, loss: k {floor:?}, colluders {colluders:?}, a budget {budget:?}, tenure {tenure:?}"
    );
    assert!(floor.0 > 0.1, "many real people leave on crowds of invented ones: {floor:?}");
    assert_eq!(colluders.0, 0.0, "nobody does where every count asks for four more");
    assert!(budget.0 < floor.0 / 2.0, "a budget bounds it: {budget:?}");
    assert!(tenure.0 > 0.1, "who stays for long is believed: {tenure:?}");
}

fn adult() -> Records {
    let data = std::env::var_os("THRONG_TEST_DATA").expect("THRONG_TEST_DATA is set");
    let text = std::fs::read_to_string(std::path::Path::new(&data).join("adult/adult.csv")).expect("ADULT");
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(';').collect();
    let cell = |(name, cell): (&&str, &str)| {
        if cell.parse::<u32>().is_ok() { format!("\"{name}\":{cell}") } else { format!("\"{name}\":\"{cell}\"") }
    };
    let one = |line: &str| {
        record(format!("{{{}}}", names.iter().zip(line.split(';')).map(cell).collect::<Vec<_>>().join(",")))
    };
    lines.map(one).collect()
}

fn wearable() -> (Records, String) {
    let mut stream = WearableStream::new(WearableSettings::default()).expect("the default settings");
    let one = |_| {
        let mut line = Vec::new();
        stream.append(&mut line);
        Some(line)
    };
    let shipped = include_str!("../config/wearable.toml");
    let groups = shipped.find("[[group]]").map_or("", |at| &shipped[at..]);
    ((0..30_000).map(one).collect(), groups.to_owned())
}

fn told(schema: &str, all: &Records, records: usize, privacy: &str, more: &str) -> Stand {
    let settings = format!("[batch]\nmax_records = {records}\n[privacy]\nk = 5\n{privacy}\n{more}");
    let mut stand = Stand::new(schema, &settings);
    let start = std::time::Instant::now();
    for (number, batch) in (0i64..).zip(all.chunks(records)) {
        stand.offer(batch, Flush::No, NOW + number * 1000, Fault::Nothing);
    }
    stand.settle(Flush::EndOfStream, NOW + 1_000_000);
    let mut crowds: BTreeMap<(u64, usize, Vec<Option<String>>), (u32, BTreeSet<&String>)> = BTreeMap::new();
    for line in &stand.sink.lines {
        let quasi = &stand.promise.groups[line.group].quasi;
        let class = (line.batch, line.group, tuple(&cells(line).expect("a line"), quasi));
        let (lines, subjects) = crowds.entry(class).or_default();
        *lines += 1;
        subjects.extend(&line.subject);
    }
    let lines_below =
        |crowd: usize| f64::from(crowds.values().filter(|of| of.1.len() < crowd).map(|of| of.0).sum::<u32>());
    let left = stand.sink.lines.len().max(1) as f64;
    let totals = stand.telemetry.status().totals;
    println!(
        "{records} a batch, {}: loss {:.4}, {} of {} records left, below k in their batch {:.3}, alone {:.3}, {:.0} s",
        privacy.replace('\n', ", "),
        stand.telemetry.status().mean_loss.unwrap_or(1.0),
        totals.released,
        totals.consumed,
        lines_below(5) / left,
        lines_below(2) / left,
        start.elapsed().as_secs_f64(),
    );
    stand
}

/// Measures the cost of a crowd in every batch, and the remaining downcoding on ADULT (`docs/guarantees.md`).
/// `THRONG_CASES` sets other cases: `adult 1000 colluders = 4, max_hold_batches = 2; …`.
#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names, and minutes"]
fn real_data_cost_of_a_crowd_in_every_batch() {
    let cases = std::env::var("THRONG_CASES").unwrap_or_else(|_| {
        let of = |(stream, records): (&str, u32)| {
            ["", "max_hold_batches = 5"].map(|hold| format!("{stream} {records} {hold}")).join(";")
        };
        [("adult", 1000), ("adult", 5000), ("wearable", 1000)].map(of).join(";")
    });
    let (adult, (wearable, groups)) = (adult(), wearable());
    for case in cases.split(';') {
        let mut words = case.trim().splitn(3, ' ');
        let (stream, records) = (words.next().expect("a stream"), words.next().expect("records"));
        let records: usize = records.parse().expect("records");
        // Plan settings follow a bar.
        let settings = words.next().unwrap_or_default().replace(", ", "\n");
        let (privacy, plan) = settings.split_once('|').unwrap_or((&settings, ""));
        let plan = format!("[plan]\n{plan}\n");
        print!("{stream}, ");
        if stream == "adult" {
            let stand = told(include_str!("../schemas/adult.toml"), &adult, records, privacy, &plan);
            println!("    downcoded {:.4}", downcoded(&stand, 5));
        } else {
            told(include_str!("../schemas/wearable.toml"), &wearable, records, privacy, &(plan + &groups));
        }
    }
}

/// Returns the share of lines that an attacker can place below their printed cells, because k equal records would have
/// been released finer (downcoding, [COH]). With `n` lines and `m` children, each child of a class has at least n − (m
/// − 1)(k − 1) of them. The best attribute of each class counts. Every record must be its own subject.
fn downcoded(stand: &Stand, k: usize) -> f64 {
    let schema = Schema::load(&stand.config.schema.file).expect("a schema");
    let names = &stand.promise.groups[0].quasi;
    let mut classes: BTreeMap<(u64, Vec<Option<String>>), usize> = BTreeMap::new();
    let mut seen: Vec<BTreeSet<String>> = vec![BTreeSet::new(); names.len()];
    for line in &stand.sink.lines {
        let class = tuple(&cells(line).expect("a line"), names);
        seen.iter_mut().zip(&class).for_each(|(seen, cell)| seen.extend(cell.clone()));
        *classes.entry((line.batch, class)).or_default() += 1;
    }
    // By attribute and printed text: the number of printed texts one level below.
    let children: Vec<BTreeMap<String, usize>> = names
        .iter()
        .zip(&seen)
        .map(|(name, seen)| {
            let attribute = &schema.attributes[schema.position(name).expect("an attribute")];
            let mut book = Codebook::new(Arc::clone(attribute), &DigestKey([1; 32]), 100_000).expect("a codebook");
            let mut below: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for value in seen {
                let code = book.encode_canonical(value);
                for level in 1..book.levels() {
                    let text = |level| book.text(book.cell(code, level)).to_owned();
                    if book.is_exact(book.cell(code, 0)) && text(level) != text(level - 1) {
                        below.entry(text(level)).or_default().insert(text(level - 1));
                    }
                }
            }
            below.into_iter().map(|(text, below)| (text, below.len())).collect()
        })
        .collect();
    let placed = |(class, n): (&(u64, Vec<Option<String>>), &usize)| -> usize {
        let of = |(cell, children): (&Option<String>, &BTreeMap<String, usize>)| {
            let m = cell.as_ref().and_then(|cell| children.get(cell)).copied().unwrap_or(0);
            if m < 2 { 0 } else { (m * n.saturating_sub((m - 1) * (k - 1))).min(*n) }
        };
        class.1.iter().zip(&children).map(of).max().unwrap_or(0)
    };
    let placed: usize = classes.iter().map(placed).sum();
    placed as f64 / stand.sink.lines.len().max(1) as f64
}

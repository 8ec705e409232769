//! Tests manipulated releases of series: `throng verify-release` names the promise, the file and the line.

use crate::evidence::{Day, Run, SERIES, csv, days, run};
use crate::support;

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use support::daemon::scratch;

struct Release {
    rows: Vec<Value>,
    lineage: Vec<Value>,
    input: Vec<Day>,
}

fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a file of the run");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn write_lines(path: &Path, lines: &[Value]) {
    fs::write(path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).expect("a file of ours");
}

impl Release {
    fn write(&self, sound: &Run) {
        write_lines(&sound.sink, &self.rows);
        write_lines(&sound.lineage, &self.lineage);
        fs::write(&sound.original, csv(&self.input)).expect("a file of ours");
    }

    fn find(&self, from: usize, is_it: impl Fn(&Value) -> bool) -> usize {
        from + self.rows[from..].iter().position(is_it).expect("such a row")
    }

    fn of_cohort(&self) -> usize {
        self.find(self.rows.len() / 2, |row| {
            row["cohort"].is_string() && row["q25"].is_number() && row["signal"] == "steps"
        })
    }

    fn first_of_bucket(&self, row: usize) -> usize {
        self.find(0, |of| of["bucket"] == self.rows[row]["bucket"])
    }

    fn entry(&self, kind: &str) -> usize {
        self.lineage.iter().position(|entry| entry.get(kind).is_some()).expect("such an entry")
    }

    fn step(&self, row: usize) -> f64 {
        let number = |name: &str| self.rows[row][name].as_f64().expect("a number");
        let most = number("sd") / (2.0 * number("n").sqrt());
        let powers = (-9..9).map(|exponent| 10f64.powi(exponent));
        let steps = powers.flat_map(|power| [power, 2.0 * power, 5.0 * power]);
        steps.take_while(|step| *step <= most * (1.0 + 1e-9)).last().expect("a step")
    }

    fn add(&mut self, row: usize, name: &str, change: f64) -> Place {
        let value = self.rows[row][name].as_f64().expect("a number") + change;
        // Rounds to the nearest decimal possible with a step of 1, 2 or 5 times a power of ten.
        let value = (value * 1e6).round() / 1e6;
        self.rows[row][name] = if value.fract() == 0.0 { json!(value as i64) } else { json!(value) };
        Place::Row(row)
    }
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Row(usize),
    Entry(usize),
}

fn recount(sound: &Run, with_original: bool) -> (Option<i32>, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.arg("verify-release").arg(&sound.sink).arg("-c").arg(&sound.config).arg("--json");
    command.arg("--lineage").arg(&sound.lineage);
    if with_original {
        command.arg("--original").arg(&sound.original);
    }
    let output = command.output().expect("it runs");
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), report)
}

type Spoil = fn(&mut Release) -> Place;

/// Name, whether the original is needed for detection, the promise, and the change.
const SPOILED: [(&str, bool, &str, Spoil); 30] = [
    ("the second half is missing", false, "has the rows that the run has published", |release| {
        let first = release.first_of_bucket(release.rows.len() / 2);
        release.rows.truncate(first);
        Place::Row(first)
    }),
    ("a bucket of one signal is missing", false, "has the rows that the run has published", |release| {
        let bucket = release.rows[release.of_cohort()]["bucket"].clone();
        release.rows.retain(|row| row["bucket"] != bucket || row["signal"] != "steps");
        Place::Row(release.find(0, |row| row["bucket"] == bucket))
    }),
    ("all roll-ups are missing", false, "has the rows that the run has published", |release| {
        release.rows.retain(|row| row["cohort"].is_string());
        Place::Row(0)
    }),
    ("two rows are exchanged", false, "in their order", |release| {
        let first = release.first_of_bucket(release.rows.len() / 2);
        release.rows.swap(first, first + 1);
        Place::Row(first)
    }),
    ("a mean is one step higher", true, "a mean is that of the contributions", |release| {
        let row = release.of_cohort();
        let step = release.step(row);
        release.add(row, "mean", step)
    }),
    ("a mean is between two steps", false, "rounded to the step", |release| {
        let row = release.of_cohort();
        let step = release.step(row);
        release.add(row, "mean", step / 2.0)
    }),
    ("a deviation is two steps higher", true, "a deviation is that of the contributions", |release| {
        let row = release.of_cohort();
        let step = release.step(row);
        release.add(row, "sd", 2.0 * step)
    }),
    ("a deviation is zero", false, "not all equal", |release| {
        let row = release.of_cohort();
        release.rows[row]["sd"] = json!(0);
        Place::Row(row)
    }),
    ("a quartile is two steps lower", true, "a quartile is that of the contributions", |release| {
        let row = release.of_cohort();
        let step = release.step(row);
        release.add(row, "q25", -2.0 * step)
    }),
    ("quartiles descend", false, "quartiles ascend", |release| {
        let row = release.of_cohort();
        let step = release.step(row);
        let above = release.rows[row]["q75"].as_f64().expect("a quartile")
            - release.rows[row]["q25"].as_f64().expect("a quartile");
        release.add(row, "q25", above + step)
    }),
    ("quartiles are missing", false, "quartiles are published exactly for sets of twice", |release| {
        let row = release.of_cohort();
        for name in ["q25", "q50", "q75"] {
            release.rows[row].as_object_mut().expect("a row").shift_remove(name);
        }
        Place::Row(row)
    }),
    ("a set has one person more", false, "n is the number of people", |release| {
        let row = release.of_cohort();
        release.add(row, "n", 1.0)
    }),
    ("more people were present", true, "the filled share is that", |release| {
        let row = release.find(0, |row| row["cohort"].is_string() && row["filled"].as_f64() >= Some(0.2));
        release.add(row, "filled", -0.2)
    }),
    ("nobody was present", false, "the required number of members is present", |release| {
        let row = release.of_cohort();
        release.rows[row]["filled"] = json!(1);
        Place::Row(row)
    }),
    ("a filled share is no tenth", false, "in tenths", |release| {
        let row = release.of_cohort();
        release.rows[row]["filled"] = json!(0.25);
        Place::Row(row)
    }),
    ("a bucket is revised", false, "a bucket is published only once", |release| {
        let row = release.of_cohort();
        let mut revised = release.rows[row].clone();
        revised["mean"] = release.rows[release.find(row + 1, |row| row["signal"] == "steps")]["mean"].clone();
        release.rows.insert(row + 1, revised);
        Place::Row(row + 1)
    }),
    ("a row comes after later buckets", false, "after a later one", |release| {
        let row = release.of_cohort();
        let moved = release.rows.remove(row);
        release.rows.push(moved);
        Place::Row(release.rows.len() - 1)
    }),
    ("a row is of a bucket that is still open", false, "closed before it is published", |release| {
        let last = release.rows.len() - 1;
        release.rows[last]["bucket"] = json!("2027-01-01");
        Place::Row(last)
    }),
    ("a row is of a cohort that does not exist", false, "contributor set that is locked", |release| {
        let row = release.of_cohort();
        release.rows[row]["cohort"] = json!("0123456789abcdef");
        Place::Row(row)
    }),
    ("a row is of another stratum", false, "stratum of its cohort", |release| {
        let row = release.of_cohort();
        let other = if release.rows[row]["stratum"]["sex"] == "male" { "female" } else { "male" };
        release.rows[row]["stratum"]["sex"] = json!(other);
        Place::Row(row)
    }),
    ("a row of everybody is two steps higher", false, "follows from their rows", |release| {
        let row = release.find(0, |row| row["cohort"].is_null() && row["signal"] == "steps");
        let step = release.step(row);
        release.add(row, "mean", 2.0 * step)
    }),
    ("a row of a cohort is taken away", false, "the people of their rows", |release| {
        let row = release.of_cohort();
        let gone = release.rows.remove(row);
        Place::Row(release.find(row, |row| {
            row["cohort"].is_null()
                && (&row["bucket"], &row["signal"]) == (&gone["bucket"], &gone["signal"])
                && row["stratum"] == gone["stratum"]
        }))
    }),
    ("a row is not spelled as rows are", false, "the format of its series", |release| {
        let row = release.of_cohort();
        release.rows[row]["every"] = json!("24h");
        Place::Row(row)
    }),
    ("an atom is smaller than a crowd", false, "the required number of new members", |release| {
        let at = release.entry("cohort");
        let atom = release.lineage[at]["cohort"]["atoms"][0].as_array_mut().expect("an atom");
        atom.truncate(2);
        Place::Entry(at)
    }),
    ("an atom has members of an earlier cohort", false, "the required number of new members", |release| {
        let first = release.lineage[release.entry("cohort")]["cohort"]["atoms"][0].clone();
        let other = release.lineage.iter().rposition(|entry| entry.get("cohort").is_some()).expect("a cohort");
        release.lineage[other]["cohort"]["atoms"][0] = first;
        Place::Entry(other)
    }),
    ("a person is in two atoms", false, "a person is in a cohort only once", |release| {
        let at = release.entry("cohort");
        let member = release.lineage[at]["cohort"]["atoms"][0][0].clone();
        release.lineage[at]["cohort"]["atoms"][1].as_array_mut().expect("an atom").push(member);
        Place::Entry(at)
    }),
    ("a locked set changes", false, "a locked contributor set does not change", |release| {
        let at = release.entry("set");
        let mut other = release.lineage[at].clone();
        other["set"]["atoms"].as_array_mut().expect("atoms").remove(0);
        release.lineage.insert(at + 1, other);
        Place::Entry(at + 1)
    }),
    ("a cohort was retired before its rows", false, "a retired cohort publishes nothing", |release| {
        let closed = release.entry("closed");
        release.lineage.insert(closed, json!({"retired": {"cohort": 0}}));
        let token = release.lineage[release.entry("cohort")]["cohort"]["token"].clone();
        Place::Row(release.find(0, |row| row["cohort"] == token))
    }),
    ("one person dominates a sum", true, "dominate a sum", |release| {
        let row = release.find(release.rows.len() / 2, |row| row["cohort"].is_string() && row["signal"] == "pulse");
        let day = release.rows[row]["bucket"].as_str().expect("a day").to_owned();
        // For any cohort members, the largest value exceeds the sum of the others.
        for record in release.input.iter_mut().filter(|record| record.1 == day) {
            let number: i32 = record.0[1..].parse().expect("a number");
            record.3 = Some(4f64.powi(number));
        }
        Place::Row(row)
    }),
    ("too few people were present", true, "the required number of members is present", |release| {
        let row = release.of_cohort();
        let day = release.rows[row]["bucket"].as_str().expect("a day").to_owned();
        release.input.retain(|record| record.1 != day || record.0.as_str() < "p004");
        Place::Row(row)
    }),
];

#[test]
fn manipulated_series_are_refused_with_file_and_line() {
    let dir = scratch();
    let input = days(40, 20, 21);
    let sound = run(dir.path(), "one", "out.ndjson", "in.csv", &input, SERIES);
    for with_original in [false, true] {
        let (code, report) = recount(&sound, with_original);
        assert_eq!((code, &report["kept"]), (Some(0), &json!(true)), "{report}");
        let present = report["series"][0]["fewest_present"].as_u64();
        assert_eq!(present.is_some(), with_original);
        assert!(present.is_none_or(|present| present >= 3), "{report}");
    }
    let read = || Release { rows: json_lines(&sound.sink), lineage: json_lines(&sound.lineage), input: input.clone() };
    let whole = read();
    for (name, needs_original, promise, spoil) in SPOILED {
        let mut release = Release { rows: whole.rows.clone(), lineage: whole.lineage.clone(), input: input.clone() };
        let place = spoil(&mut release);
        release.write(&sound);
        let (file, line) = match place {
            Place::Row(row) => (&sound.sink, row + 1),
            Place::Entry(entry) => (&sound.lineage, entry + 1),
        };
        for with_original in [false, true] {
            let (code, report) = recount(&sound, with_original);
            if needs_original && !with_original {
                continue;
            }
            assert_eq!(code, Some(4), "{name}: {report}");
            let is_it = |broken: &Value| {
                broken["promise"].as_str().is_some_and(|text| text.contains(promise))
                    && broken["file"] == file.display().to_string().as_str()
                    && broken["line"] == line
            };
            let broken = report["broken"].as_array().expect("findings");
            assert!(broken.iter().any(is_it), "{name}: {file:?}:{line} is not among {broken:?}");
        }
        whole.write(&sound);
    }
}

/// Only the first run's values are checked.
#[test]
fn continued_series_run_is_verified_with_its_lineage() {
    let dir = scratch();
    let all = days(40, 30, 22);
    let (first, second) = all.split_at(all.iter().position(|(_, day, ..)| day == "2026-01-16").expect("the day"));
    let more = format!("path = \"{}/state\"\n{SERIES}", dir.path().display());
    let one = run(dir.path(), "one", "one.ndjson", "in.csv", first, &more);
    assert_eq!(recount(&one, true).0, Some(0));
    let two = run(dir.path(), "two", "two.ndjson", "in.csv", second, &more);
    let (code, report) = recount(&two, true);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["series"][0]["fewest_present"], Value::Null, "values of a later run are not judged");
    // A row of the first run is not valid in the second.
    let mut rows = json_lines(&two.sink);
    rows.insert(0, json_lines(&one.sink).into_iter().find(|row| row["cohort"].is_string()).expect("a row"));
    write_lines(&two.sink, &rows);
    let (code, report) = recount(&two, false);
    assert_eq!(code, Some(4));
    assert!(report.to_string().contains("that an earlier run has closed"), "{report}");
}

#[test]
fn stream_and_pooled_series_are_verified() {
    let dir = scratch();
    let mut input = days(40, 40, 23);
    // A late record, and subjects that stop sending: their cohort is retired.
    let late = input.iter().position(|(_, day, ..)| day == "2026-01-20").expect("a day");
    let record = input.remove(late);
    input.push(record);
    input.retain(|(who, day, ..)| who.as_str() > "p012" || day.as_str() < "2026-01-18");
    for (name, more) in [("one", SERIES.to_owned()), ("two", format!("{SERIES}pooled = true\n"))] {
        for source in ["-", "in.csv"] {
            let sound = run(dir.path(), name, "out.ndjson", source, &input, &more);
            let (code, report) = recount(&sound, true);
            assert_eq!(code, Some(0), "{name} {source}: {report}");
            assert!(report["series"][0]["rows"].as_u64() > Some(50), "{report}");
            fs::remove_file(&sound.sink).expect("a file of ours");
        }
    }
}

#[test]
fn manipulated_moments_are_refused() {
    let dir = scratch();
    let input = days(40, 40, 24);
    let moments = format!("{SERIES}signals = [\"steps\", \"pulse\"]\nmoments = \"7d\"\n");
    for (name, more) in [("one", moments.clone()), ("two", format!("{moments}pooled = true\n"))] {
        for source in ["-", "in.csv"] {
            let sound = run(dir.path(), name, "out.ndjson", source, &input, &more);
            let rows = json_lines(&sound.sink);
            assert!(rows.len() >= 3 * 3, "{name} {source}: three epochs at least");
            assert!(rows.iter().all(|row| row["with"].is_string()), "{name} {source}: rows of buckets leave");
            let (code, report) = recount(&sound, true);
            assert_eq!(code, Some(0), "{name} {source}: {report}");
            let count = &report["series"][0];
            assert_eq!(count["rows"], rows.len(), "{report}");
            assert!(count["buckets"].as_u64() >= Some(3) && count["fewest_present"].as_u64() >= Some(3), "{report}");
            fs::remove_file(&sound.sink).expect("a file of ours");
        }
    }
    let sound = run(dir.path(), "one", "out.ndjson", "in.csv", &input, &moments);
    let rows = json_lines(&sound.sink);
    let pair = rows.iter().position(|row| row["with"].is_string() && row["with"] != row["signal"]).expect("a pair");
    let variance =
        rows.iter().position(|row| row["with"].is_string() && row["with"] == row["signal"]).expect("a variance");
    type SpoilRows = fn(&mut Vec<Value>, usize);
    let twice: SpoilRows = |rows, at| {
        let value = rows[at]["covariance"].as_f64().expect("a number") * 2.0;
        // Whole numbers are written without a fraction.
        rows[at]["covariance"] = if value.fract() == 0.0 { json!(value as i64) } else { json!(value) };
    };
    let spoils: [(usize, bool, &str, SpoilRows); 7] = [
        (pair, true, "those of the contributions", twice),
        (variance, true, "those of the contributions", twice),
        (pair, false, "rounded to a thousandth", |rows, at| rows[at]["covariance"] = json!(0.000_123_4)),
        (variance, false, "with both variances", |rows, at| drop(rows.remove(at))),
        (pair, false, "of the same people", |rows, at| rows[at]["n"] = json!(99)),
        (pair, false, "published only once", |rows, at| rows.push(rows[at].clone())),
        (variance, false, "the format of its series", |rows, at| {
            let row = rows[at].as_object_mut().expect("a row");
            let deviation =
                row.shift_remove("covariance").and_then(|variance| variance.as_f64()).expect("a variance").sqrt();
            row.shift_remove("with");
            row.insert("sd".to_owned(), json!(deviation.round() as i64));
            row.insert("every".to_owned(), json!("1d"));
        }),
    ];
    for (at, needs_original, promise, spoil) in spoils {
        let mut spoiled = rows.clone();
        spoil(&mut spoiled, at);
        write_lines(&sound.sink, &spoiled);
        let (code, report) = recount(&sound, needs_original);
        assert_eq!(code, Some(4), "{promise}: {report}");
        assert!(report["broken"].to_string().contains(promise), "{promise}: {report}");
    }
    write_lines(&sound.sink, &rows);
    let lineage = json_lines(&sound.lineage);
    let closed = lineage.iter().position(|entry| entry.get("closed").is_some()).expect("closed buckets");
    let set = lineage.iter().position(|entry| entry.get("set").is_some()).expect("a set");
    type SpoilLineage = fn(&mut Vec<Value>, usize);
    let spoils: [(usize, &str, SpoilLineage); 4] = [
        (closed, "a retired cohort publishes nothing", |lines, at| lines.insert(at, json!({"retired": {"cohort": 0}}))),
        (closed, "closed before it is published", |lines, at| lines[at]["closed"]["until"] = json!(0)),
        (0, "that an earlier run has closed", |lines, at| {
            let closed = json!({"closed": {"series": "daily", "until": 1_800_000_000_000_i64, "is_older": true}});
            lines.insert(at, closed);
        }),
        (set, "contributor set that is locked", |lines, at| drop(lines.remove(at))),
    ];
    for (at, promise, spoil) in spoils {
        let mut spoiled = lineage.clone();
        spoil(&mut spoiled, at);
        write_lines(&sound.lineage, &spoiled);
        let (code, report) = recount(&sound, false);
        assert_eq!(code, Some(4), "{promise}: {report}");
        assert!(report["broken"].to_string().contains(promise), "{promise}: {report}");
    }
}

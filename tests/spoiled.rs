//! Tests manipulated releases: `throng verify-release`, `throng attack --fail-above promise` or both detect each
//! (docs/evaluation.md).

use crate::support;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use support::binary::{Outcome, Place, Process};

const SCHEMA: &str = r#"
name = "people"
[[attribute]]
name = "person"
type = "string"
role = "subject"
[[attribute]]
name = "age"
type = "integer"
changes = "always"
hierarchy = { kind = "intervals", min = 0, max = 100, widths = [10, 50] }
[[attribute]]
name = "city"
type = "string"
changes = "always"
[[attribute]]
name = "illness"
type = "string"
role = "sensitive"
changes = "always"
[[attribute]]
name = "blood"
type = "string"
changes = "never"
"#;

const GROUPS: &str = "[[group]]\nname = \"who\"\nattributes = [\"age\", \"illness\"]\n\
                      [[group]]\nname = \"where\"\nattributes = [\"city\"]\n\
                      [[group]]\nname = \"body\"\nattributes = [\"blood\"]\n";

const SETTINGS: [(&str, &str); 3] =
    [("PRIVACY__MAX_LINES_PER_SUBJECT", "1"), ("PRIVACY__MAX_DELAY", "1h"), ("BATCH__MAX_RECORDS", "40")];

/// A hundred batches, each with forty of 80 subjects. The blood group is constant per subject.
fn records() -> Vec<Value> {
    let mut dice = SmallRng::seed_from_u64(1);
    let mut records = Vec::new();
    for _ in 0..100 {
        for person in rand::seq::index::sample(&mut dice, 80, 40) {
            records.push(json!({
                "person": format!("p{person}"),
                "age": dice.random_range(20..60),
                "city": (["Bern", "Zug", "Chur"][dice.random_range(0..3)]),
                "illness": (["flu", "flu", "cold", "none"][dice.random_range(0..4)]),
                "blood": (["A", "B"][person * 7 / 3 % 2]),
            }));
        }
    }
    records
}

#[derive(Clone)]
struct Line {
    batch: u64,
    record: usize,
    time: Value,
    subject: Value,
    cells: Value,
    /// Text of the line, if it differs from that of its cells.
    text: Option<String>,
}

impl Line {
    fn text(&self) -> String {
        self.text.clone().unwrap_or_else(|| self.cells.to_string())
    }
}

struct Release {
    records: Vec<Value>,
    groups: BTreeMap<String, Vec<Line>>,
}

impl Release {
    fn read(place: &Place, records: Vec<Value>) -> Self {
        let mut groups: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        for entry in place.lines("lineage.ndjson") {
            let entry: Value = serde_json::from_str(&entry).expect("an entry");
            let group = entry["group"].as_str().expect("a group");
            groups.entry(group.to_owned()).or_default().push(Line {
                batch: entry["batch"].as_u64().expect("a batch"),
                record: entry["source"][2].as_u64().expect("a record") as usize,
                time: entry["time"].clone(),
                subject: entry["subject"].clone(),
                cells: Value::from(entry["line"].as_u64().expect("a line")),
                text: None,
            });
        }
        for (group, lines) in &mut groups {
            let texts = place.lines(&format!("out.{group}.ndjson"));
            lines.sort_by_key(|line| line.cells.as_u64());
            for line in lines {
                let number = line.cells.as_u64().expect("a number") as usize;
                line.cells = serde_json::from_str(&texts[number]).expect("a line");
            }
        }
        Self { records, groups }
    }

    fn write(&self, place: &Place) {
        let mut lineage = String::new();
        for (group, lines) in &self.groups {
            let texts: String = lines.iter().map(|line| line.text() + "\n").collect();
            place.write(&format!("out.{group}.ndjson"), texts);
            for (number, line) in lines.iter().enumerate() {
                let source = json!(["in.ndjson", 0, line.record]);
                let entry = json!({ "source": source, "batch": line.batch, "time": line.time, "group": group, "line": number, "subject": line.subject });
                writeln!(lineage, "{entry}").expect("a string");
            }
        }
        place.write("lineage.ndjson", lineage);
    }

    fn group(&mut self, name: &str) -> &mut Vec<Line> {
        self.groups.get_mut(name).expect("a group")
    }

    fn order<K: Ord>(&mut self, name: &str, key: impl Fn(&Line) -> K) {
        self.group(name).sort_by_cached_key(|line| (line.batch, key(line)));
    }

    fn sort(&mut self, name: &str) {
        self.order(name, Line::text);
    }

    fn rotate(&mut self, name: &str, by: usize) {
        let lines = std::mem::take(self.group(name));
        let batches = lines.chunk_by(|a, b| a.batch == b.batch);
        let rotated = batches.flat_map(|batch| {
            let by = by.min(batch.len());
            [&batch[by..], &batch[..by]].concat()
        });
        *self.group(name) = rotated.collect();
    }

    fn fullest(&mut self, name: &str) -> u64 {
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        self.group(name).iter().for_each(|line| *counts.entry(line.batch).or_default() += 1);
        counts.into_iter().max_by_key(|(batch, count)| (*count, u64::MAX - batch)).expect("a batch").0
    }

    fn line_of(&mut self, name: &str) -> &mut Line {
        let batch = self.fullest(name);
        self.group(name).iter_mut().find(|line| line.batch == batch).expect("a line")
    }
}

struct Spoiled {
    name: &'static str,
    spoil: fn(&mut Release),
    by_recount: bool,
    by_attack: bool,
}

const WAYS: [Spoiled; 15] = [
    Spoiled {
        name: "the subject leaves",
        spoil: |release| {
            let records = release.records.clone();
            for line in release.group("where") {
                line.cells = json!({ "person": records[line.record]["person"], "city": line.cells["city"] });
            }
        },
        by_recount: true,
        by_attack: false,
    },
    Spoiled {
        name: "one group leaves raw",
        spoil: |release| {
            let records = release.records.clone();
            for line in release.group("who") {
                line.cells["age"] = records[line.record]["age"].clone();
            }
            release.sort("who");
        },
        by_recount: true,
        by_attack: true,
    },
    Spoiled {
        name: "a label that no hierarchy has",
        spoil: |release| {
            release.line_of("who").cells["age"] = json!("30-38");
            release.sort("who");
        },
        by_recount: true,
        by_attack: true,
    },
    Spoiled {
        name: "a class of one person",
        spoil: |release| {
            release.line_of("where").cells["city"] = json!("Basel");
            release.sort("where");
        },
        by_recount: true,
        by_attack: true,
    },
    Spoiled {
        name: "the order of the records",
        spoil: |release| {
            release.order("who", |line| line.record);
            release.order("where", |line| line.record);
        },
        by_recount: true,
        by_attack: true,
    },
    Spoiled {
        name: "the order of the records, reversed in one group",
        spoil: |release| {
            release.order("who", |line| line.record);
            release.order("where", |line| usize::MAX - line.record);
        },
        by_recount: true,
        by_attack: true,
    },
    Spoiled {
        name: "the order of the records, rotated in one group",
        spoil: |release| {
            release.order("who", |line| line.record);
            release.order("where", |line| line.record);
            release.rotate("where", 5);
        },
        by_recount: true,
        by_attack: true,
    },
    Spoiled {
        name: "a sensitive value of one person",
        spoil: |release| {
            release.line_of("who").cells["illness"] = json!("rare");
            release.sort("who");
        },
        by_recount: true,
        by_attack: true,
    },
    Spoiled {
        name: "a star for one common value alone",
        spoil: |release| {
            let records = release.records.clone();
            for line in release.group("who") {
                let own = records[line.record]["illness"].clone();
                // A line without any visible cell would be found.
                let hides = own == "flu" && line.cells["age"] != "*";
                line.cells["illness"] = if hides { json!("*") } else { own };
            }
            release.sort("who");
        },
        by_recount: true,
        by_attack: true,
    },
    Spoiled {
        name: "a star for one person of a class",
        spoil: |release| {
            let mut classes: BTreeMap<(u64, String), Vec<usize>> = BTreeMap::new();
            for (at, line) in release.group("who").iter().enumerate() {
                classes.entry((line.batch, line.cells["age"].to_string())).or_default().push(at);
            }
            let who = release.group("who");
            let is_flu = |at: &usize| who[*at].cells["illness"] == "flu";
            let shows_all = |class: &&Vec<usize>| class.iter().all(|at| who[*at].cells["illness"] != "*");
            let at = classes.values().filter(shows_all).find_map(|class| class.iter().copied().find(is_flu));
            who[at.expect("a class")].cells["illness"] = json!("*");
            release.sort("who");
        },
        by_recount: true,
        by_attack: true,
    },
    Spoiled {
        name: "a class of whom all but one would have left finer",
        spoil: narrow,
        by_recount: false,
        by_attack: true,
    },
    Spoiled {
        name: "white space that tells the person",
        spoil: |release| {
            let records = release.records.clone();
            for line in release.group("where") {
                let person = records[line.record]["person"].as_str().expect("a name");
                let spaces = person[1..].parse().expect("a number");
                line.text = Some(format!("{{\"city\":{:spaces$}{}}}", "", line.cells["city"]));
            }
            release.sort("where");
        },
        by_recount: true,
        by_attack: false,
    },
    Spoiled {
        name: "what never changes, with the first three records",
        spoil: |release| {
            let records = release.records.clone();
            let mut sent: BTreeMap<String, usize> = BTreeMap::new();
            let mut first: Vec<Line> = release.group("where").clone();
            first.retain(|line| {
                let times = sent.entry(line.subject.to_string()).or_default();
                *times += 1;
                *times <= 3
            });
            let mut crowds: BTreeMap<(u64, String), usize> = BTreeMap::new();
            for line in &mut first {
                line.cells = json!({ "blood": records[line.record]["blood"] });
                *crowds.entry((line.batch, line.text())).or_default() += 1;
            }
            first.retain(|line| crowds[&(line.batch, line.text())] >= 3);
            *release.group("body") = first;
            release.sort("body");
        },
        by_recount: true,
        by_attack: false,
    },
    Spoiled {
        name: "a person with two lines in a batch",
        spoil: |release| {
            let twice = release.line_of("where").clone();
            release.group("where").push(twice);
            release.sort("where");
        },
        by_recount: true,
        by_attack: false,
    },
    Spoiled {
        name: "what never changes, with every record",
        spoil: |release| {
            let records = release.records.clone();
            let sent = release.group("where").clone();
            *release.group("body") = sent;
            for line in release.group("body") {
                line.cells = json!({ "blood": records[line.record]["blood"] });
            }
            release.sort("body");
        },
        by_recount: true,
        by_attack: true,
    },
];

/// An age of one subject is released as `*` next to two subjects of other ages that are released finer.
fn narrow(release: &mut Release) {
    let lines = std::mem::take(release.group("who"));
    let mut batches: BTreeMap<u64, BTreeMap<String, Vec<usize>>> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        batches.entry(line.batch).or_default().entry(line.cells["age"].to_string()).or_default().push(at);
    }
    let has_crowds = |rest: &[usize]| {
        let mut crowds: BTreeMap<String, usize> = BTreeMap::new();
        rest.iter().for_each(|at| *crowds.entry(lines[*at].cells["illness"].to_string()).or_default() += 1);
        !crowds.contains_key("\"*\"") && crowds.values().all(|crowd| *crowd >= 3)
    };
    let no_star = batches.values().filter(|classes| !classes.contains_key("\"*\""));
    let of_decades = no_star.flat_map(|classes| {
        let decades = classes.iter().filter(|(age, _)| age.contains('-'));
        decades.map(move |(age, alone)| (classes, age, alone))
    });
    let mut found = of_decades.filter_map(|(classes, age, alone)| {
        let rest: Vec<usize> = classes.values().flatten().filter(|at| !alone[1..].contains(at)).copied().collect();
        let fine = classes.iter().filter(|(other, class)| *other != age && class.len() > 3);
        let others: Vec<usize> = fine.map(|(_, class)| class[0]).take(2).collect();
        (others.len() == 2 && has_crowds(&rest)).then(|| (alone.clone(), others))
    });
    let (alone, others) = found.next().expect("a decade");
    let kept = lines.into_iter().enumerate().filter(|(at, _)| !alone[1..].contains(at)).map(|(at, mut line)| {
        if at == alone[0] || others.contains(&at) {
            line.cells["age"] = json!("*");
        }
        line
    });
    *release.group("who") = kept.collect();
    release.sort("who");
}

fn throng(place: &Place, arguments: &str) -> Outcome {
    let mut command = crate::support::binary::throng();
    command.args(arguments.split_whitespace());
    place.surround(&mut command, &SETTINGS);
    Process::spawn(command, place.port).wait()
}

const RECOUNT: &str = "verify-release out.ndjson -c throng.toml --lineage lineage.ndjson";
const ATTACK: &str =
    "attack out.ndjson --original in.ndjson -c throng.toml --lineage lineage.ndjson --targets 100 --fail-above promise";

#[test]
fn manipulated_releases_are_found() {
    let place = Place::new(SCHEMA, GROUPS);
    let records = records();
    place.write("in.ndjson", records.iter().map(|record| format!("{record}\n")).collect::<String>());
    let run = Process::spawn(place.command(&SETTINGS, &["--lineage", "lineage.ndjson"]), place.port).wait();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let files = ["lineage.ndjson", "out.who.ndjson", "out.where.ndjson", "out.body.ndjson"];
    let sound = files.map(|file| place.read(file));
    Release::read(&place, records.clone()).write(&place);
    for command in [RECOUNT, ATTACK] {
        let outcome = throng(&place, command);
        assert_eq!(outcome.code, Some(0), "{command}: {}{}", String::from_utf8_lossy(&outcome.stdout), outcome.stderr);
    }
    let mut others = Vec::new();
    for way in WAYS {
        files.iter().zip(&sound).for_each(|(file, bytes)| place.write(file, bytes));
        let mut release = Release::read(&place, records.clone());
        (way.spoil)(&mut release);
        release.write(&place);
        for (command, finds) in [(RECOUNT, way.by_recount), (ATTACK, way.by_attack)] {
            let outcome = throng(&place, command);
            if (outcome.code == Some(4)) != finds {
                let printed = String::from_utf8_lossy(&outcome.stdout).into_owned();
                others.push(format!("{}: {command}: {printed}{}", way.name, outcome.stderr));
            }
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

/// The configuration requires two sensitive values.
#[test]
fn manipulated_class_without_diversity_is_found() {
    let model = "[[privacy.model]]\nkind = \"l_diversity\"\nattribute = \"illness\"\nl = 2\n";
    let place = Place::new(SCHEMA, &format!("{GROUPS}{model}"));
    let records = records();
    place.write("in.ndjson", records.iter().map(|record| format!("{record}\n")).collect::<String>());
    let run = Process::spawn(place.command(&SETTINGS, &["--lineage", "lineage.ndjson"]), place.port).wait();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    throng(&place, RECOUNT).expect(0);
    let mut release = Release::read(&place, records);
    let (batch, age) = (release.line_of("who").batch, release.line_of("who").cells["age"].clone());
    for line in release.group("who").iter_mut().filter(|line| line.batch == batch && line.cells["age"] == age) {
        line.cells["illness"] = json!("flu");
    }
    release.sort("who");
    release.write(&place);
    let outcome = throng(&place, RECOUNT);
    let printed = String::from_utf8_lossy(&outcome.stdout).into_owned();
    assert!(outcome.code == Some(4) && printed.contains("as diverse as"), "{printed}{}", outcome.stderr);
}

#[test]
fn manipulated_row_order_is_found() {
    let groups = "[[group]]\nname = \"who\"\nattributes = [\"age\", \"illness\"]\n\
                  [[group]]\nname = \"where\"\nattributes = [\"city\", \"blood\"]\n";
    for rows in ["fragments", "joined"] {
        let place = Place::new(SCHEMA, groups);
        let records = records();
        place.write("in.ndjson", records.iter().map(|record| format!("{record}\n")).collect::<String>());
        let settings = [SETTINGS[0], SETTINGS[2], ("SINK__PATH", "out.csv"), ("SINK__ROWS", rows)];
        let run = Process::spawn(place.command(&settings, &["--lineage", "lineage.ndjson"]), place.port).wait();
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let recount = || {
            let mut command = crate::support::binary::throng();
            command.args(["verify-release", "out.csv", "-c", "throng.toml", "--lineage", "lineage.ndjson"]);
            place.surround(&mut command, &settings);
            Process::spawn(command, place.port).wait()
        };
        recount().expect(0);
        let file = if rows == "joined" { "out.csv" } else { "out.who.csv" };
        let mut lines = place.lines(file);
        let mut entries: Vec<Value> =
            place.lines("lineage.ndjson").iter().map(|entry| serde_json::from_str(entry).expect("an entry")).collect();
        let in_file = |entry: &Value| rows == "joined" || entry["group"] == "who";
        let last = entries.iter().filter(|entry| in_file(entry) && entry["batch"] == 1).count();
        let row = lines.remove(last);
        lines.insert(1, row);
        for entry in entries.iter_mut().filter(|entry| in_file(entry)) {
            let line = entry["line"].as_u64().expect("a line") as usize;
            if line < last {
                entry["line"] = json!((line + 1) % last);
            }
        }
        place.write(file, lines.join("\n") + "\n");
        place.write("lineage.ndjson", entries.iter().map(|entry| format!("{entry}\n")).collect::<String>());
        let outcome = recount();
        let printed = String::from_utf8_lossy(&outcome.stdout).into_owned();
        assert!(outcome.code == Some(4) && printed.contains("sorted by their bytes"), "{printed}{}", outcome.stderr);
    }
}

//! Tests joined rows: the same fragments as separate outputs, in an order that discloses nothing.

use crate::support;

use proptest::prelude::*;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use support::binary::{Outcome, Place, Process};
use support::kafka::TestCluster;
use support::schemas::schema;

const SCHEMA: &str = schema!("visits"; person, hundred "age", text "city", text "mood", sensitive "illness");

/// The names put the groups in another order than the schema.
const GROUPS: &str = "[[group]]\nname = \"place\"\nattributes = [\"city\"]\n\
    [[group]]\nname = \"body\"\nattributes = [\"age\", \"illness\"]\n\
    [[group]]\nname = \"mind\"\nattributes = [\"mood\"]\n";

const ATTRIBUTES: [&str; 4] = ["age", "city", "mood", "illness"];

const OF_GROUP: [(&str, &[&str]); 3] = [("place", &["city"]), ("body", &["age", "illness"]), ("mind", &["mood"])];

const JOINED: (&str, &str) = ("SINK__ROWS", "joined");

fn record(text: &mut String, n: usize, [age, city, mood, illness]: [usize; 4]) {
    let age = ["30", "31", "44", "71", "null"][age % 5];
    let city = ["\"Bern\"", "\"Zug\"", "null", "\"a,\\\"b\"", "\"null\""][city % 5];
    let mood = ["\"calm\"", "null", "\"\"", "\"*\""][mood % 4];
    let illness = ["\"flu\"", "\"flu\"", "\"cold\"", "null"][illness % 4];
    writeln!(text, r#"{{"person":"p{n}","age":{age},"city":{city},"mood":{mood},"illness":{illness}}}"#)
        .expect("a string");
}

/// 150 subjects, three batches. For some subjects every group is empty.
fn records() -> String {
    let mut text = String::new();
    for n in 0..150 {
        record(&mut text, n, [n % 7 / 2, n % 11 / 3, n % 4, n % 3 + usize::from(n % 7 > 4)]);
    }
    text
}

fn place(records: &str) -> Place {
    let place = Place::new(SCHEMA, GROUPS);
    place.write("in.ndjson", records);
    place
}

fn run(place: &Place, overrides: &[(&str, &str)]) -> Outcome {
    Process::spawn(place.command(overrides, &["--lineage", "lineage.ndjson"]), place.port).wait()
}

fn throng(place: &Place, overrides: &[(&str, &str)], arguments: &str) -> Outcome {
    let mut command = crate::support::binary::throng();
    command.args(arguments.split_whitespace());
    place.surround(&mut command, overrides);
    Process::spawn(command, place.port).wait()
}

fn json(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    serde_json::from_slice(&outcome.stdout).expect("nothing but JSON")
}

fn object(line: &str) -> Map<String, Value> {
    serde_json::from_str(line).expect("an object")
}

fn told(place: &Place) -> BTreeMap<(String, u64), (u64, String)> {
    let entries = place.lines("lineage.ndjson").into_iter().map(|line| {
        let entry = object(&line);
        let (group, line) = (entry["group"].as_str().expect("a group").to_owned(), entry["line"].as_u64());
        let batch = entry["batch"].as_u64().expect("a batch");
        ((group.clone(), line.expect("a line")), (batch, group))
    });
    entries.collect()
}

fn padded(place: &Place) -> BTreeMap<u64, Vec<String>> {
    let mut rows: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let told = told(place);
    for (group, _) in OF_GROUP {
        for (number, line) in (0..).zip(place.lines(&format!("out.{group}.ndjson"))) {
            let own = object(&line);
            let cells = ATTRIBUTES.map(|name| format!("\"{name}\":{}", own.get(name).unwrap_or(&Value::Null)));
            let (batch, _) = &told[&(group.to_owned(), number)];
            rows.entry(*batch).or_default().push(format!("{{{}}}", cells.join(",")));
        }
    }
    rows.values_mut().for_each(|rows| rows.sort());
    rows
}

fn are_the_fragments(records: &str) {
    let (fragments, joined) = (place(records), place(records));
    let (without, with) = (run(&fragments, &[]), run(&joined, &[JOINED]));
    assert_eq!((with.code, with.account()), (without.code, without.account()), "{}", with.stderr);
    // A stream of too few subjects loses every record.
    assert_eq!(with.code, Some(i32::from(with.account().released == 0)), "{}", with.stderr);
    let of_group: BTreeMap<u64, (u64, String)> =
        told(&joined).into_iter().map(|((_, line), told)| (line, told)).collect();
    let mut rows: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let lines = joined.lines("out.ndjson");
    assert_eq!(of_group.len(), lines.len(), "the lineage names every row once");
    for (number, line) in (0..).zip(lines) {
        let (batch, group) = &of_group[&number];
        let (_, own) = OF_GROUP.iter().find(|(name, _)| name == group).expect("a group");
        for (name, cell) in object(&line) {
            assert!(cell.is_null() || own.contains(&name.as_str()), "{line} is of {group}");
        }
        rows.entry(*batch).or_default().push(line);
    }
    assert_eq!(rows, padded(&fragments));
}

#[test]
fn joined_rows_are_the_sorted_fragments() {
    are_the_fragments(&records());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn joined_rows_of_random_streams_are_the_fragments(
        drafts in prop::collection::vec((0_usize..40, prop::array::uniform4(0_usize..5)), 1..160)
    ) {
        let mut text = String::new();
        drafts.iter().for_each(|(person, cells)| record(&mut text, *person, *cells));
        are_the_fragments(&text);
    }
}

/// Removes the parts of a report that depend on the output layout.
fn figures(mut report: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(map) => {
                ["file", "seconds"].iter().for_each(|key| {
                    map.remove(*key);
                });
                map.values_mut().for_each(strip);
            }
            Value::Array(all) => all.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut report);
    report
}

#[test]
fn joined_rows_give_equal_reports_in_each_format() {
    let two = GROUPS.replace("attributes = [\"city\"]", "attributes = [\"city\", \"mood\"]");
    let two = two.split("[[group]]\nname = \"mind\"").next().expect("two groups").to_owned();
    for (out, groups) in [("out.ndjson", GROUPS), ("out.csv", two.as_str()), ("out.parquet", GROUPS)] {
        let reports = [vec![("SINK__PATH", out)], vec![("SINK__PATH", out), JOINED]].map(|sink| {
            let place = Place::new(SCHEMA, groups);
            place.write("in.ndjson", records());
            run(&place, &sink).expect(0);
            [
                "evaluate in.ndjson OUT -c throng.toml --lineage lineage.ndjson --json",
                "verify-release OUT -c throng.toml --lineage lineage.ndjson --json",
            ]
            .map(|command| figures(json(&throng(&place, &sink, &command.replace("OUT", out)))))
        });
        let [fragments, joined] = reports;
        assert_eq!(joined[1]["kept"], true, "{out}: {:#}", joined[1]);
        assert_eq!(joined, fragments, "{out}");
        assert!(joined[1]["lines"].as_u64().is_some_and(|lines| lines > 200), "{out}: {:#}", joined[1]);
    }
}

/// The shared attribute does not disclose the group of the row.
#[test]
fn joined_rows_of_shared_groups_are_read_by_every_command() {
    let shared = "[plan]\nshared = [\"age\"]\n[[group]]\nname = \"place\"\nattributes = [\"city\", \"age\"]\n\
        [[group]]\nname = \"body\"\nattributes = [\"age\", \"mood\", \"illness\"]\n";
    for out in ["out.ndjson", "out.csv", "out.parquet"] {
        let sink = [("SINK__PATH", out), JOINED];
        let place = Place::new(&SCHEMA.replace("name = \"age\"\n", "name = \"age\"\nchanges = \"always\"\n"), shared);
        place.write("in.ndjson", records());
        run(&place, &sink).expect(0);
        for with in ["", "--lineage lineage.ndjson"] {
            let report = json(&throng(&place, &sink, &format!("verify-release {out} -c throng.toml --json {with}")));
            assert_eq!(report["kept"], true, "{out} {with}: {report:#}");
            json(&throng(&place, &sink, &format!("evaluate in.ndjson {out} -c throng.toml --json {with}")));
        }
        let attack =
            format!("attack {out} --original in.ndjson --lineage lineage.ndjson -c throng.toml --json --targets 20");
        json(&throng(&place, &sink, &attack));
        let schemas = json(&throng(&place, &sink, "check -c throng.toml --output-schema"));
        let required = schemas["joined"]["required"].as_array().expect("names").clone();
        let once: std::collections::BTreeSet<String> = required.iter().map(ToString::to_string).collect();
        assert_eq!(once.len(), required.len(), "{out}: {required:?}");
    }
}

#[test]
fn joined_rows_can_be_attacked() {
    let place = place(&records());
    run(&place, &[JOINED]).expect(0);
    let arguments =
        "attack out.ndjson --original in.ndjson --lineage lineage.ndjson -c throng.toml --json --targets 50";
    let report = json(&throng(&place, &[JOINED], arguments));
    let tried: Vec<&str> = report.as_array().expect("yields").iter().filter_map(|one| one["attack"].as_str()).collect();
    assert!(tried.contains(&"linkage") && tried.contains(&"joining by order"), "{report:#}");
}

/// The position of empty rows does not disclose the group.
#[test]
fn joined_empty_rows_are_assigned_only_by_the_lineage() {
    let mut text = String::new();
    for n in 0..40 {
        record(&mut text, n, [0, if n % 2 == 0 { 0 } else { 2 }, n % 2, 0]);
    }
    let place = place(&text);
    run(&place, &[JOINED]).expect(0);
    let lines = place.lines("out.ndjson");
    let silent = r#"{"age":null,"city":null,"mood":null,"illness":null}"#;
    let at: Vec<usize> = (0..lines.len()).filter(|at| lines[*at] == silent).collect();
    assert_eq!(at.len(), 40, "{lines:?}");
    assert!(at.windows(2).all(|pair| pair[0] + 1 == pair[1]), "all of them together: {at:?}");
    let counts = |arguments: &str| {
        let report = json(&throng(&place, &[JOINED], &format!("verify-release out.ndjson -c throng.toml {arguments}")));
        assert_eq!(report["kept"], true, "{report:#}");
        let of_group = report["groups"].as_array().expect("groups").iter();
        of_group.map(|group| group["lines"].as_u64().expect("a count")).collect::<Vec<_>>()
    };
    assert_eq!(counts("--json --lineage lineage.ndjson"), [40, 40, 40]);
    assert_eq!(counts("--json"), [20, 40, 20], "of no group without it");
    let report = json(&throng(&place, &[JOINED], "evaluate in.ndjson out.ndjson -c throng.toml --json"));
    let lines: Vec<u64> = report["quality"]["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .map(|group| group["lines"].as_u64().expect("a count"))
        .collect();
    assert_eq!(lines, [20, 40, 20]);
}

#[test]
fn joined_rows_that_are_manipulated_are_found() {
    let place = place(&records());
    run(&place, &[JOINED]).expect(0);
    let whole = place.lines("out.ndjson");
    let body = whole.iter().position(|line| line.contains("\"age\":30")).expect("a line of the body");
    let recount = |lines: &[String]| {
        place.write("out.ndjson", lines.join("\n") + "\n");
        let outcome = throng(&place, &[JOINED], "verify-release out.ndjson -c throng.toml --json");
        assert_eq!(outcome.code, Some(4), "{}", outcome.stderr);
        let report: Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
        let first = &report["broken"][0];
        (first["promise"].as_str().expect("a promise").to_owned(), first["line"].as_u64())
    };
    let line = Some(body as u64 + 1);
    let changed = |from: &str, to: &str| {
        let mut lines = whole.clone();
        assert!(lines[body].contains(from), "{}", lines[body]);
        lines[body] = lines[body].replace(from, to);
        recount(&lines)
    };
    let of_two = "a joined row shows attributes of one group only";
    assert_eq!(changed("\"city\":null", "\"city\":\"Bern\""), (of_two.to_owned(), line));
    assert_eq!(changed("\"city\":null", "\"city\":\"*\""), (of_two.to_owned(), line));
    let complete = "a joined row has every attribute, null where it has no value";
    assert_eq!(changed("\"city\":null,", ""), (complete.to_owned(), line));
    let outcome = throng(&place, &[JOINED], "evaluate in.ndjson out.ndjson -c throng.toml");
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains(complete), "{}", outcome.stderr);
    assert_eq!(
        changed("\"city\":null", "\"city\":null,\"person\":\"p1\"").0,
        "identifiers and subjects are not released"
    );
    let mut lines = whole.clone();
    let is_body = |line: &str| line.contains("\"city\":null,\"mood\":null,\"illness\":\"");
    let two = (1..lines.len())
        .find(|at| is_body(&lines[at - 1]) && is_body(&lines[*at]) && lines[at - 1] != lines[*at])
        .expect("two rows");
    lines.swap(two - 1, two);
    place.write("out.ndjson", lines.join("\n") + "\n");
    let sorted = throng(&place, &[JOINED], "verify-release out.ndjson -c throng.toml --lineage lineage.ndjson --json");
    assert_eq!(sorted.code, Some(4), "{}", sorted.stderr);
    let report: Value = serde_json::from_slice(&sorted.stdout).expect("JSON");
    let unsorted = "lines of a batch are sorted by their bytes";
    let found = report["broken"].as_array().expect("findings").iter().any(|one| one["promise"] == unsorted);
    assert!(found, "{report:#}");
    // An unreleased empty row discloses nothing, and is found nevertheless.
    let silent = r#"{"age":null,"city":null,"mood":null,"illness":null}"#;
    place.write("out.ndjson", format!("{}\n{silent}\n", whole.join("\n")));
    let more = throng(&place, &[JOINED], "verify-release out.ndjson -c throng.toml --lineage lineage.ndjson --json");
    assert_eq!(more.code, Some(4), "{}", more.stderr);
    let report: Value = serde_json::from_slice(&more.stdout).expect("JSON");
    assert_eq!(report["broken"][0]["promise"], "a joined row is named by the lineage");
    assert_eq!(report["broken"][0]["line"], whole.len() as u64 + 1);
    place.write("out.ndjson", whole.join("\n") + "\n");
    let lineage = String::from_utf8(place.read("lineage.ndjson")).expect("text");
    place.write("lineage.ndjson", lineage.replace("\"group\":\"body\"", "\"group\":\"mind\""));
    let other = throng(&place, &[JOINED], "evaluate in.ndjson out.ndjson -c throng.toml --lineage lineage.ndjson");
    assert_eq!(other.code, Some(1), "{}", other.stderr);
    assert!(other.stderr.contains("the group that the lineage names"), "{}", other.stderr);
}

#[test]
fn joined_rows_have_the_expected_bytes_in_each_format() {
    let mut text = String::new();
    (0..6).for_each(|n| record(&mut text, n, [0, 3, 3, 0]));
    let rows = [
        r#"{"age":30,"city":null,"mood":null,"illness":"flu"}"#,
        r#"{"age":null,"city":"a,\"b","mood":null,"illness":null}"#,
        r#"{"age":null,"city":null,"mood":"\\*","illness":null}"#,
    ];
    let ndjson: String = rows.iter().map(|row| format!("{row}\n").repeat(6)).collect();
    let file = place(&text);
    run(&file, &[JOINED]).expect(0);
    assert_eq!(String::from_utf8(file.read("out.ndjson")).expect("text"), ndjson);
    let printed = place(&text).run(&[JOINED, ("SINK__PATH", "-")]).expect(0);
    assert_eq!(String::from_utf8(printed.stdout).expect("text"), ndjson, "several groups, one stream");
    // CSV cannot represent a row of one missing attribute alone.
    let table = place(&text);
    run(&table, &[JOINED, ("SINK__PATH", "out.csv")]).expect(0);
    let csv = format!(
        "age,city,mood,illness\n{}{}{}",
        ",\"a,\"\"b\",,\n".repeat(6),
        ",,\"\\*\",\n".repeat(6),
        "30,,,\"flu\"\n".repeat(6)
    );
    assert_eq!(String::from_utf8(table.read("out.csv")).expect("text"), csv);
    let columns = place(&text);
    run(&columns, &[JOINED, ("SINK__PATH", "out.parquet")]).expect(0);
    let files = columns.files("out.parquet");
    assert!(files.len() == 1 && files[0].0.ends_with("out.parquet"), "one file: {:?}", files[0].0);
    let recount = json(&throng(
        &columns,
        &[JOINED, ("SINK__PATH", "out.parquet")],
        "verify-release out.parquet -c throng.toml --lineage lineage.ndjson --json",
    ));
    assert_eq!((&recount["kept"], &recount["lines"]), (&true.into(), &18.into()), "{recount:#}");
}

#[test]
fn joined_output_schema_requires_every_attribute() {
    let place = place(&records());
    let schema = json(&throng(&place, &[JOINED], "check -c throng.toml --output-schema"));
    let joined = &schema["joined"];
    assert_eq!(schema.as_object().map(Map::len), Some(1), "{schema:#}");
    assert_eq!(joined["required"], serde_json::json!(ATTRIBUTES));
    assert_eq!(joined["x-throng-groups"]["body"], serde_json::json!(["age", "illness"]));
    assert_eq!(joined["x-throng-destination"]["file"], "out.ndjson");
    for name in ATTRIBUTES {
        let types = joined["properties"][name]["type"].as_array().expect("types");
        assert!(types.contains(&"null".into()), "{name}: {types:?}");
    }
    let said = throng(&place, &[JOINED], "check -c throng.toml --explain").expect(0);
    let said = String::from_utf8(said.stdout).expect("text");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("is released as 3 rows, one per group of attributes"), "{said}");
}

#[test]
fn joined_rows_refuse_group_paths_and_a_changed_layout() {
    let place = place(&records());
    for (key, value) in [("SINK__PATH", "{group}.ndjson"), ("SINK__TOPIC", "wearable.{group}")] {
        let refused = place.run(&[JOINED, (key, value)]).expect(2);
        assert!(refused.stderr.contains("{group} requires one output per group"), "{}", refused.stderr);
    }
    let refused = place.run(&[("SINK__ROWS", "padded")]).expect(2);
    assert!(refused.stderr.contains("give \"fragments\" or \"joined\""), "{}", refused.stderr);
    // A reader could not separate lines of two layouts.
    place.run(&[JOINED]).expect(0);
    let refused = place.run(&[]);
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("has released to another topic or file"), "{}", refused.stderr);
    place.run(&[JOINED]).expect(0);
}

#[test]
fn joined_rows_of_all_groups_go_to_one_topic() {
    let Some(broker) = TestCluster::shared() else { return };
    let base = format!("joined-{}", std::process::id());
    let named = |part: &str| format!("{base}.{part}");
    for (part, partitions, compacted) in
        [("raw", 1, false), ("rows", 3, false), ("dead", 1, false), ("changelog", 2, true)]
    {
        broker.create_topic(&named(part), partitions, compacted);
    }
    let (servers, topic, dead, changelog) = (broker.bootstrap(), named("rows"), named("dead"), named("changelog"));
    let raw = named("raw");
    let sink = [
        JOINED,
        ("SOURCE__KIND", "kafka"),
        ("SOURCE__BROKERS", servers.as_str()),
        ("SOURCE__TOPICS", raw.as_str()),
        ("SOURCE__GROUP", raw.as_str()),
        ("BATCH__MAX_WAIT", "1h"),
        ("BATCH__MAX_AGE", "1h"),
        ("SINK__KIND", "kafka"),
        ("SOURCE__BROKERS", servers.as_str()),
        ("SINK__TOPIC", topic.as_str()),
        ("SINK__DEAD_LETTER_TOPIC", dead.as_str()),
        ("SINK__CHANGELOG_TOPIC", changelog.as_str()),
    ];
    let sink = [&sink[..], &[("BATCH__MAX_RECORDS", "150")]].concat();
    let texts = records();
    let payloads = texts.lines().map(|line| support::kafka::Record {
        partition: Some(0),
        payload: Some(line.as_bytes().to_vec()),
        ..support::kafka::Record::default()
    });
    let payloads: Vec<_> = payloads.collect();
    broker.produce_records(&raw, &payloads);
    // The directory must exist as long as the daemon runs.
    let running = place(&texts);
    let process = running.start(&sink);
    process.until("the one full batch has left", |status| status["totals"]["consumed"] == payloads.len());
    process.terminate();
    process.wait().expect(0);
    let file = place(&texts);
    run(&file, &[JOINED, ("BATCH__MAX_RECORDS", "150")]).expect(0);
    let mut partitions = vec![Vec::new(); 3];
    let mut stored = broker.read_committed(&topic);
    stored.sort_by_key(|row| row.offset);
    for row in stored {
        let text = String::from_utf8(row.payload.expect("a row")).expect("text");
        partitions[usize::try_from(row.partition).expect("a partition")].push(text);
    }
    // The partition of a row depends only on its rank in the batch.
    let wanted = file.lines("out.ndjson");
    let found: Vec<String> = (0..wanted.len()).map(|rank| partitions[rank % 3][rank / 3].clone()).collect();
    assert_eq!(found, wanted);
    assert_eq!(partitions.iter().map(Vec::len).sum::<usize>(), wanted.len());
}

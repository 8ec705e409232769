//! Tests exports of Apple Health as the input of commands.

use crate::support;

use std::fmt::Write as _;
use std::fs;

use support::binary::{Outcome, Place, Process, throng};

const PEOPLE: usize = 30;
/// Records of each kind and person.
const RECORDS: usize = 20;

const SCHEMA: &str = r#"
name = "heart-rates"
[[attribute]]
name = "person"
type = "string"
role = "subject"
[[attribute]]
name = "kind"
column = "type"
only = ["HKQuantityTypeIdentifierHeartRate"]
type = "string"
role = "identifier"
[[attribute]]
name = "time"
column = "startDate"
type = "timestamp"
format = "%Y-%m-%d %H:%M:%S %z"
role = "time"
round = "day"
[attribute.hierarchy]
kind = "truncate"
levels = ["month"]
[[attribute]]
name = "pulse"
column = "value"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 200
widths = [20, 100]
"#;

fn export(person: usize) -> String {
    let mut text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE HealthData [\n<!ELEMENT HealthData (Record*)>\n]>\n\
                    <HealthData locale=\"en_GB\">\n <ExportDate value=\"2026-03-31 21:00:00 +0100\"/>\n"
            .to_owned();
    for number in 0..RECORDS {
        let time = format!("2026-03-{:02} 08:12:33 +0100", number % 28 + 1);
        let record = |kind: &str, unit: &str, value: usize, end: &str| {
            format!(
                " <Record type=\"HKQuantityTypeIdentifier{kind}\" sourceName=\"Watch of SECRET{person}\" unit=\"{unit}\" \
                 creationDate=\"{time}\" startDate=\"{time}\" endDate=\"{time}\" value=\"{value}\"{end}\n"
            )
        };
        let rate = record(
            "HeartRate",
            "count/min",
            60 + (person + number) % 40,
            ">\n  <MetadataEntry key=\"k\" value=\"1\"/>\n </Record>",
        );
        write!(text, "{rate}{}", record("StepCount", "count", 100 * person, "/>")).expect("a string");
    }
    text + " <Workout workoutActivityType=\"HKWorkoutActivityTypeRunning\"/>\n</HealthData>\n"
}

fn exports(place: &Place, folder: &str) {
    fs::create_dir(place.path(folder)).expect("a folder");
    (0..PEOPLE).for_each(|person| place.write(&format!("{folder}/p{person}.xml"), export(person)));
}

fn command(place: &Place, arguments: &[&str]) -> Outcome {
    let mut command = throng();
    command.args(arguments);
    place.surround(&mut command, &EXPORTS);
    Process::spawn(command, place.port).wait()
}

/// Files are read one after the other: a batch of few records would have few people.
const EXPORTS: [(&str, &str); 3] =
    [("SOURCE__PATH", "exports"), ("SOURCE__FORMAT", "apple_health"), ("BATCH__MAX_RECORDS", "100000")];

#[test]
fn exports_of_several_people_are_released() {
    let place = Place::new(SCHEMA, "");
    exports(&place, "exports");
    let run = place.run(&EXPORTS).expect(0);
    let (account, half) = (run.account(), (PEOPLE * RECORDS) as u64);
    assert_eq!((account.consumed, account.dropped, account.dead_lettered), (2 * half, half, 0), "{}", run.stderr);
    assert!(account.released > half / 2, "{}", run.stderr);
    let released = String::from_utf8(place.read("out.ndjson")).expect("text");
    assert!(released.contains("\"pulse\"") && !released.contains("SECRET") && !released.contains("p1"), "{released}");
}

#[test]
fn file_commands_read_exports() {
    let place = Place::new(SCHEMA, "");
    exports(&place, "exports");
    let audit = command(&place, &["audit", "exports", "--k", "2", "--subject", "person"]).expect(0);
    let counted = String::from_utf8_lossy(&audit.stdout).into_owned();
    assert!(counted.contains("30"), "{counted}");
    command(&place, &["check", "-c", "throng.toml", "--sample", "exports"]).expect(0);
    command(&place, &["anonymize", "exports", "-c", "throng.toml", "-o", "all.ndjson"]).expect(0);
    assert!(place.lines("all.ndjson").len() > PEOPLE * RECORDS / 2);
    command(&place, &["schema", "infer", "exports", "--subject", "person"]).expect(0);
}

#[test]
fn ambiguous_and_damaged_exports_are_refused() {
    let place = Place::new(SCHEMA, "");
    for folder in ["exports", "exports/a", "exports/b"] {
        fs::create_dir(place.path(folder)).expect("a folder");
    }
    place.write("exports/a/export.xml", export(1));
    place.write("exports/b/export.xml", export(2));
    let same = place.run(&[("SOURCE__PATH", "exports/*/*.xml"), EXPORTS[1]]).expect(1);
    assert!(same.stderr.contains("have the same file name"), "{}", same.stderr);
    let whole = export(1);
    place.write("exports/ana.xml", &whole[..whole.len() / 2]);
    let cut = place.run(&[("SOURCE__PATH", "exports/ana.xml")]).expect(1);
    assert!(cut.stderr.contains("exports/ana.xml at byte"), "{}", cut.stderr);
    assert!(!cut.stderr.contains("SECRET") && place.read("out.ndjson").is_empty(), "{}", cut.stderr);
    let written = place.run(&[EXPORTS[0], EXPORTS[1], ("SINK__PATH", "out.xml")]).expect(2);
    assert!(written.stderr.contains("a file cannot be written in this format"), "{}", written.stderr);
}

/// The name of the only export is no ordinary value.
#[test]
fn init_takes_the_person_of_an_export_as_the_subject() {
    let place = Place::new(SCHEMA, "");
    fs::create_dir(place.path("one")).expect("a folder");
    place.write("one/anna-schmidt.xml", export(1));
    let init = ["init", "one/anna-schmidt.xml", "--k", "5", "--for", "rows", "--directory", "made"];
    let refused = command(&place, &init).expect(2);
    assert!(refused.stderr.contains("people are counted by \"person\""), "{}", refused.stderr);
    assert!(!place.path("made").exists());
    exports(&place, "exports");
    command(&place, &["init", "exports", "--k", "5", "--for", "rows", "--directory", "made"]).expect(0);
    let made: String =
        place.files("made").into_iter().map(|(_, text)| String::from_utf8_lossy(&text).into_owned()).collect();
    assert!(!made.contains("p17") && !made.contains("SECRET"), "{made}");
}

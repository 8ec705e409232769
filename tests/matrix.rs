//! Tests all combinations of the quick-start commands on one configuration.

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

const COLUMNS: [&str; 5] = ["user_id", "ward", "sex", "day", "steps"];

fn records() -> Vec<[String; 5]> {
    let record = |n: usize| {
        let p = n % 60;
        [
            format!("u-{p:03}"),
            ["north", "south", "east"][p % 3].to_owned(),
            ["m", "f"][p / 3 % 2].to_owned(),
            format!("{}/{}/2024", 1 + n / 60, 1 + p % 28),
            (n * 7919 % 8 * 1000).to_string(),
        ]
    };
    (0..180).map(record).collect()
}

fn write_records(path: &Path) {
    let records = records();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => {
            let rows = records.iter().map(|record| record.join(",") + "\n");
            fs::write(path, format!("{}\n{}", COLUMNS.join(","), rows.collect::<String>())).expect("records");
        }
        Some("ndjson") => {
            let object = |record: &[String; 5]| {
                let cells = COLUMNS.iter().zip(record).map(|(name, cell)| format!("{name:?}:{cell:?}"));
                format!("{{{}}}\n", cells.collect::<Vec<_>>().join(","))
            };
            fs::write(path, records.iter().map(object).collect::<String>()).expect("records");
        }
        _ => {
            let column =
                |at: usize| Arc::new(records.iter().map(|r| Some(r[at].as_str())).collect::<StringArray>()) as ArrayRef;
            let batch = RecordBatch::try_from_iter(COLUMNS.iter().enumerate().map(|(at, name)| (*name, column(at))));
            let batch = batch.expect("columns of one length");
            let mut writer =
                ArrowWriter::try_new(File::create(path).expect("a file"), batch.schema(), None).expect("a writer");
            writer.write(&batch).and_then(|()| writer.close().map(drop)).expect("records");
        }
    }
}

struct Place {
    directory: TempDir,
    input: String,
    output: String,
}

impl Place {
    fn new(input: &str, output: &str) -> Self {
        let place = Self {
            directory: tempfile::tempdir().expect("a directory"),
            input: format!("visits.{input}"),
            output: format!("safe.{output}"),
        };
        write_records(&place.path(&place.input));
        place.done(&["init", &place.input, "--subject", "user_id", "--output", &place.output]);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn throng(&self, arguments: &[&str]) -> Output {
        let mut command = crate::support::binary::throng();
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("THRONG_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.directory.path()).stdin(Stdio::null()).output().expect("it runs")
    }

    #[track_caller]
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.throng(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{} to {}: {arguments:?}: {said}", self.input, self.output);
        said
    }

    fn configure(&self, groups: Groups, joined: bool) {
        let mut text = fs::read_to_string(self.path("visits.toml")).expect("a configuration");
        let given = match groups {
            Groups::Planner => "",
            Groups::One => "",
            Groups::Many => {
                "[[group]]\nname = \"who\"\nattributes = [\"ward\", \"sex\"]\n[[group]]\nname = \"when\"\nattributes = [\"day\", \"steps\"]\n"
            }
        };
        if groups != Groups::Planner {
            text = text.replace("groups = \"price\"", "groups = \"given\"");
        }
        if joined {
            text = text.replace("[sink]\n", "[sink]\nrows = \"joined\"\n");
        }
        fs::write(self.path("visits.toml"), text + "\n" + given).expect("a configuration");
    }

    fn clear(&self) {
        for entry in fs::read_dir(self.directory.path()).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("safe")) {
                fs::remove_file(path).expect("removed");
            }
        }
    }

    fn read_all(&self, lineage: bool) {
        let (input, output) = (self.input.as_str(), self.output.as_str());
        let verified = self.done(&["verify-release", output, "-c", "visits.toml"]);
        assert!(verified.contains("no violations found"), "{verified}");
        self.done(&["evaluate", input, output, "-c", "visits.toml"]);
        if lineage {
            let with = ["-c", "visits.toml", "--lineage", "lineage.ndjson"];
            self.done(&[&["verify-release", output], &with[..]].concat());
            self.done(&[&["evaluate", input, output], &with[..]].concat());
            self.done(&[&["attack", output, "--original", input, "--targets", "20"], &with[..]].concat());
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Groups {
    One,
    Many,
    Planner,
}

fn every_way(input: &str, output: &str) {
    for groups in [Groups::One, Groups::Many, Groups::Planner] {
        for joined in [false, true] {
            let place = Place::new(input, output);
            place.configure(groups, joined);
            place.done(&["check", "-c", "visits.toml", "--sample", &place.input]);
            place.done(&["run", "-c", "visits.toml", "--lineage", "lineage.ndjson"]);
            place.read_all(true);
            place.clear();
            let anonymize = ["anonymize", &place.input, "-c", "visits.toml", "--output", &place.output];
            if joined {
                let refused = place.throng(&anonymize);
                assert_eq!(refused.status.code(), Some(2));
                assert!(String::from_utf8_lossy(&refused.stderr).contains("sink.rows"));
            } else {
                place.done(&anonymize);
                place.read_all(false);
            }
        }
    }
}

#[test]
fn every_command_reads_releases_from_csv() {
    every_way("csv", "csv");
    every_way("csv", "ndjson");
}

#[test]
fn every_command_reads_releases_from_ndjson() {
    every_way("ndjson", "ndjson");
    every_way("ndjson", "parquet");
}

#[test]
fn every_command_reads_releases_from_parquet() {
    every_way("parquet", "parquet");
    every_way("parquet", "csv");
}

/// Readers skip blank lines, so a row of one missing cell must not be blank.
#[test]
fn single_column_release_keeps_rows_without_a_value() {
    let place = Place::new("csv", "csv");
    let row = |n: usize| format!("u-{n},{}\n", if n.is_multiple_of(5) { String::new() } else { (n % 3).to_string() });
    fs::write(place.path("one.csv"), format!("user_id,visits\n{}", (0..60).map(row).collect::<String>()))
        .expect("rows");
    place.done(&["init", "one.csv", "--subject", "user_id", "--output", "one.out.csv"]);
    let rows = || fs::read_to_string(place.path("one.out.csv")).expect("a release");
    let with_lineage = ["one.out.csv", "-c", "one.toml", "--lineage", "one.lineage"];
    place.done(&["run", "-c", "one.toml", "--lineage", "one.lineage"]);
    place.done(&[&["verify-release"], &with_lineage[..]].concat());
    place.done(&[&["evaluate", "one.csv"], &with_lineage[..]].concat());
    fs::remove_file(place.path("one.out.csv")).expect("removed");
    place.done(&["anonymize", "one.csv", "-c", "one.toml", "--output", "one.out.csv"]);
    assert_eq!(rows().lines().filter(|line| line.is_empty()).count(), 0, "{}", rows());
    assert_eq!(rows().lines().filter(|line| *line == "null").count(), 12, "{}", rows());
    place.done(&["verify-release", "one.out.csv", "-c", "one.toml"]);
    let said = place.done(&["evaluate", "one.csv", "one.out.csv", "-c", "one.toml", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["quality"]["attributes"][0]["falsified"], 0, "{said}");
}

#[test]
fn text_null_is_not_a_missing_value() {
    let place = Place::new("csv", "csv");
    let row = |n: usize| {
        let value = ["\"null\"", "\"x\"", "null"][n % 3];
        format!("{{\"p\":\"u-{n}\",\"v\":{value},\"w\":\"{}\"}}\n", n % 2)
    };
    fs::write(place.path("texts.ndjson"), (0..120).map(row).collect::<String>()).expect("records");
    let schema = "name = \"t\"\n[[attribute]]\nname = \"p\"\ntype = \"string\"\nrole = \"subject\"\n\
                  [[attribute]]\nname = \"v\"\ntype = \"string\"\nmissing = [\"\"]\n[[attribute]]\nname = \"w\"\ntype = \"string\"\n";
    fs::write(place.path("texts.schema.toml"), schema).expect("a schema");
    for output in ["texts.csv", "texts.parquet"] {
        let config = format!(
            "[source]\nkind = \"file\"\npath = \"texts.ndjson\"\n[sink]\nkind = \"file\"\npath = {output:?}\n\
             [schema]\nfile = \"texts.schema.toml\"\n[privacy]\nk = 3\n[state]\nsecret_file = \"visits.secret\"\n"
        );
        fs::write(place.path("texts.toml"), config).expect("a configuration");
        place.done(&["run", "-c", "texts.toml", "--lineage", "texts.lineage"]);
        let with = ["texts.ndjson", output, "-c", "texts.toml", "--lineage", "texts.lineage", "--json"];
        let said = place.done(&[&["evaluate"], &with[..]].concat());
        let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
        for attribute in said["quality"]["attributes"].as_array().expect("attributes") {
            assert_eq!(attribute["falsified"], 0, "{output}: {attribute}");
        }
    }
}

#[test]
fn outputs_never_replace_required_files() {
    let place = Place::new("csv", "ndjson");
    place.configure(Groups::Many, false);
    place.done(&["run", "-c", "visits.toml", "--lineage", "lineage.ndjson"]);
    let needed = ["visits.secret", "visits.schema.toml", "visits.toml", "visits.csv"];
    let content = |name: &str| fs::read(place.path(name)).expect("a file");
    let before: Vec<Vec<u8>> = needed.iter().map(|name| content(name)).collect();
    for name in needed {
        let refused = |arguments: &[&str]| {
            let output = place.throng(arguments);
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        let evaluate = ["evaluate", "visits.csv", "safe.ndjson", "-c", "visits.toml"];
        refused(&["run", "-c", "visits.toml", "--lineage", name]);
        refused(&[&evaluate[..], &["--report", name]].concat());
        refused(&[&evaluate[..], &["--html", name]].concat());
        refused(&["anonymize", "visits.csv", "-c", "visits.toml", "--output", name]);
        let config = fs::read_to_string(place.path("visits.toml")).expect("a configuration");
        let output = if name == "visits.toml" { "over.toml" } else { name };
        let over = config.replace("path = \"safe.ndjson\"", &format!("path = {output:?}\nrows = \"joined\""));
        fs::write(place.path("over.toml"), over).expect("a configuration");
        refused(&["check", "-c", "over.toml"]);
        refused(&["run", "-c", "over.toml"]);
    }
    let evaluate = ["evaluate", "visits.csv", "safe.ndjson", "-c", "visits.toml", "--html", "safe.who.ndjson"];
    assert_eq!(place.throng(&evaluate).status.code(), Some(2), "a file of the release");
    assert_eq!(needed.iter().map(|name| content(name)).collect::<Vec<_>>(), before);
}

#[test]
fn two_releases_with_one_path_are_refused() {
    let place = Place::new("csv", "ndjson");
    place.configure(Groups::Many, false);
    place.done(&["run", "-c", "visits.toml", "--lineage", "lineage.ndjson"]);
    place.done(&["anonymize", "visits.csv", "-c", "visits.toml", "--output", "safe.ndjson"]);
    let refused = place.throng(&["verify-release", "safe.ndjson", "-c", "visits.toml"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("safe.who.ndjson") && said.contains("move one of them away"), "{said}");
    // The lineage identifies the release.
    place.done(&["verify-release", "safe.ndjson", "-c", "visits.toml", "--lineage", "lineage.ndjson"]);
}

#[test]
fn planned_groups_are_found_for_a_moved_release() {
    let place = Place::new("csv", "ndjson");
    place.done(&["run", "-c", "visits.toml"]);
    fs::create_dir(place.path("moved")).expect("a directory");
    for entry in fs::read_dir(place.directory.path()).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name.starts_with("safe") {
            fs::rename(&path, place.path("moved").join(name)).expect("moved");
        }
    }
    place.done(&["verify-release", "moved/safe.ndjson", "-c", "visits.toml"]);
    place.done(&["evaluate", "visits.csv", "moved/safe.ndjson", "-c", "visits.toml"]);
}

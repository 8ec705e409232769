//! Tests mistakes of first-time users: each message names the input, the position and the remedy, and no value.

use crate::support;

use std::os::unix::fs::PermissionsExt;
use support::binary::{Outcome, Place};
use support::schemas::schema;

const SCHEMA: &str = schema!("hints"; person, number "age", text "city");

fn run(name: &str, content: impl AsRef<[u8]>) -> Outcome {
    let place = Place::new(SCHEMA, "");
    place.write(name, content);
    place.run(&[("SOURCE__PATH", name)])
}

#[track_caller]
fn refused(name: &str, content: impl AsRef<[u8]>, says: &[&str]) {
    let outcome = run(name, content);
    assert_ne!(outcome.code, Some(0), "{}", outcome.stderr);
    for what in says.iter().chain(&[name]) {
        assert!(outcome.stderr.contains(what), "{what:?} is not in {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("Zug"), "no value: {}", outcome.stderr);
}

const RECORD: &str = "{\"person\":\"p1\",\"age\":41,\"city\":\"Zug\"}";

#[test]
fn wrong_file_formats_are_named() {
    refused("in.ndjson", b"\x1f\x8b\x08\0\0\0\0\0\0\x03Zug", &["gzip", "truncated", "gzip -t"]);
    refused("in.csv", b"\x1f\x8b\x08\0\0\0\0\0\0\x03Zug", &["gzip", "truncated", "gzip -t"]);
    refused("in.csv", b"BZh91AY&SYZug", &["bzip2", "bunzip2"]);
    refused("in.ndjson", b"PK\x03\x04\x14\0Zug", &["zip archive", "unzip"]);
    refused("in.csv", b"PAR1\x15\x04\x15Zug", &["Parquet", "parquet"]);
    let wide: Vec<u8> = RECORD.encode_utf16().flat_map(u16::to_le_bytes).collect();
    refused("in.ndjson", [b"\xff\xfe".as_slice(), &wide].concat(), &["UTF-16", "iconv"]);
    refused("in.ndjson", wide, &["UTF-16", "iconv"]);
    refused("in.ndjson", format!("[{RECORD},\n{RECORD}]\n"), &["one JSON array", "jq -c '.[]'"]);
    refused("in.ndjson", format!("[\n  {RECORD}\n]\n"), &["one JSON array", "jq -c '.[]'"]);
    refused("in.ndjson", "{\n  \"person\": \"p1\",\n  \"city\": \"Zug\"\n}\n", &["pretty-printed", "jq -c ."]);
    refused("in.csv", format!("{RECORD}\n"), &["JSON, not CSV", "ndjson"]);
    let place = Place::new(SCHEMA, "");
    std::fs::create_dir(place.path("folder.csv")).expect("a folder");
    let outcome = place.run(&[("SOURCE__PATH", "folder.csv")]);
    assert!(
        outcome.code != Some(0) && outcome.stderr.contains("folder.csv has no file that ends in"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn csv_header_mismatches_are_explained() {
    refused("in.csv", "person,Age,city\np1,41,Zug\n", &["column 2", "\"age\"", "only by case"]);
    refused("in.csv", "person, age,city\np1,41,Zug\n", &["column 2", "\"age\"", "white space"]);
    refused("in.csv", "person\tage\tcity\np1\t41\tZug\n", &["a tab", "separator"]);
    refused("in.csv", "person;age;city\np1;41;Zug\n", &["a semicolon", "separator"]);
    refused("in.csv", "p1,41,Zug\np2,41,Zug\n", &["none of the 3 columns", "first row is a header"]);
    refused("in.csv", "person,person,city\n1,2,Zug\n", &["columns 1 and 2 have the same header"]);
    refused("in.csv", "person,age\np1,41\n", &["no column for", "\"city\"", "`column` or `pointer`"]);
    refused("in.csv", "person\np1\n", &["no column for", "\"age\"", "\"city\""]);
    refused("in.csv", "", &["is empty", "header row"]);
}

#[test]
fn unusual_but_valid_files_are_read() {
    let rows = "person,age,city\r\np1,41,Zug\r\np2,41,Zug\r\np3,41,Zug\r\n";
    assert_eq!(run("in.csv", format!("\u{feff}{rows}")).expect(0).account().released, 3);
    let lines: String = (0..3).map(|i| RECORD.replace("p1", &format!("p{i}")) + "\r\n").collect();
    assert_eq!(run("in.ndjson", format!("\u{feff}{lines}")).expect(0).account().released, 3);
    // Column names may begin like the signatures of compressed files.
    for name in ["PAR1", "PAR10", "BZh", "BZh9x"] {
        let place = Place::new(&SCHEMA.replace("\"person\"", &format!("\"{name}\"")), "");
        place.write("in.csv", rows.replace("person", name));
        assert_eq!(place.run(&[("SOURCE__PATH", "in.csv")]).expect(0).account().released, 3, "{name}");
    }
    let place = Place::new(SCHEMA, "");
    place.write("in.csv", "person,age,city,shoe size\np1,41,Zug,7\np2,41,Zug,7\np3,41,Zug,7\n");
    let outcome = place.run(&[("SOURCE__PATH", "in.csv")]).expect(0);
    assert!(outcome.stderr.contains("shoe size") && outcome.stderr.contains("dropped"), "{}", outcome.stderr);
}

#[test]
fn wrong_types_are_reported_with_attribute_and_record() {
    let lines: String = (0..3).map(|i| RECORD.replace("p1", &format!("p{i}")) + "\n").collect();
    let bad = "{\"person\":\"p9\",\"age\":\"canary\",\"city\":\"Zug\"}\n";
    let outcome = run("in.ndjson", format!("{lines}{bad}{bad}")).expect(0);
    assert_eq!(outcome.account().dead_lettered, 2);
    for what in ["do not match the type", "`format` or `epoch`", "age", "integer", "record 4", "records=2"] {
        assert!(outcome.stderr.contains(what), "{what:?} is not in {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains("canary"), "{}", outcome.stderr);
    let outcome = run("in.ndjson", format!("{lines}{RECORD}{RECORD}\n")).expect(0);
    assert_eq!(outcome.account().dead_lettered, 1);
    assert!(outcome.stderr.contains("one record per line"), "{}", outcome.stderr);
}

#[test]
fn partial_dates_become_dead_letters_with_a_rounding_hint() {
    let run = |round: &str| {
        let day = format!("[[attribute]]\nname = \"born\"\ntype = \"date\"\n{round}");
        let place = Place::new(&format!("{SCHEMA}{day}"), "");
        let dates = ["2024", "2024-05", "2024-05-03"];
        let line = |n: usize| {
            RECORD.replace("p1", &format!("p{n}")).replace('}', &format!(",\"born\":\"{}\"}}\n", dates[n % 3]))
        };
        place.write("in.ndjson", (0..9).map(line).collect::<String>());
        place.run(&[("SOURCE__PATH", "in.ndjson")]).expect(0)
    };
    let exact = run("");
    assert_eq!((exact.account().dead_lettered, exact.account().released), (6, 3));
    for what in ["born", "round = ", "month", "year"] {
        assert!(exact.stderr.contains(what), "{what:?} is not in {}", exact.stderr);
    }
    assert!(!exact.stderr.contains("2024-05-03"), "{}", exact.stderr);
    for (unit, dead, released) in [("month", 3, 6), ("year", 0, 9)] {
        let account = run(&format!("round = \"{unit}\"\n")).account();
        assert_eq!((account.dead_lettered, account.released), (dead, released), "{unit}");
    }
}

#[test]
fn date_formats_that_are_incomplete_or_too_many_are_refused() {
    let many: Vec<String> = (0..60).map(|n| format!("\"%d.%m.%Y{}\"", "x".repeat(n))).collect();
    for (format, says) in [
        ("\"%Y-%m-%d %p\"".to_owned(), "add %I"),
        ("\"%Y-%m-%d %H:%M %p\"".to_owned(), "add %I"),
        (format!("[{}]", many.join(",")), "60 formats, but at most 16"),
    ] {
        let day = format!("[[attribute]]\nname = \"day\"\ntype = \"timestamp\"\nformat = {format}\n");
        let place = Place::new(&format!("{SCHEMA}{day}"), "");
        place.write("in.ndjson", "");
        let outcome = place.run(&[]).expect(2);
        assert!(outcome.stderr.contains("\"day\"") && outcome.stderr.contains(says), "{}", outcome.stderr);
    }
}

#[test]
fn wrong_attribute_type_is_reported_without_hierarchy_errors() {
    let schema = format!(
        "{SCHEMA}[[attribute]]\nname = \"steps\"\ntype = \"number\"\n[attribute.hierarchy]\nkind = \"intervals\"\nmin = 0\nmax = 9\nwidths = [3]\n"
    );
    let place = Place::new(&schema, "");
    place.write("in.ndjson", "");
    let stderr = place.run(&[]).expect(2).stderr;
    assert!(stderr.contains("attribute[3] \"steps\".type"), "{stderr}");
    assert!(!stderr.contains("unknown key"), "the hierarchy is sound: {stderr}");
}

#[test]
fn secret_with_open_permissions_is_warned_about_or_refused() {
    for (mode, code, says) in [
        (0o600, 1, None),
        (0o640, 1, Some("others may read")),
        (0o660, 1, Some("others may write")),
        (0o604, 2, Some("all users of this machine may read or change")),
        (0o644, 2, Some("all users of this machine may read or change")),
        (0o666, 2, Some("all users of this machine may read or change")),
    ] {
        let place = Place::new(SCHEMA, "");
        // Without records the run ends with 1 after the secret is accepted.
        place.write("in.ndjson", "");
        std::fs::set_permissions(place.path("secret"), std::fs::Permissions::from_mode(mode)).expect("our file");
        let stderr = place.run(&[]).expect(code).stderr;
        assert!(says.is_none_or(|says| stderr.contains(says)), "{mode:o}: {stderr}");
        assert_eq!(
            says.is_some(),
            stderr.contains("others may") || stderr.contains("all users of this machine may"),
            "{mode:o}: {stderr}"
        );
    }
}

#[test]
fn lines_dropped_from_a_full_queue_are_reported_separately() {
    const STATIC: &str =
        schema!("hints"; person, more "[[attribute]]\nname = \"blood\"\ntype = \"string\"\nchanges = \"never\"\n");
    let records: String =
        (0..200).map(|n| format!("{{\"person\":\"p{n}\",\"blood\":\"{}\"}}\n", ["A", "B"][n % 2])).collect();
    let settings = [("PRIVACY__MAX_LINES_PER_SUBJECT", "1"), ("PRIVACY__MAX_DELAY", "1h")];
    for (room, is_told) in [(10, true), (1_000, false)] {
        let place = Place::new(STATIC, "");
        place.write("throng.tuning", format!("max_waiting_lines = {room}\n"));
        place.write("in.ndjson", &records);
        let outcome = place.run(&settings);
        assert_eq!(
            outcome.stderr.contains("thinned with no other line of their subject"),
            is_told,
            "{}",
            outcome.stderr
        );
    }
}

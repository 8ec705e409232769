//! Tests bad input and bad usage: refused, or evaluated by the definition.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::audit::place::{CENSUS, Place, sets};

#[test]
fn audit_of_empty_files_is_refused() {
    let place = Place::with("empty.csv", "");
    place.audit("empty.csv --k 2").refuses(1, &["empty.csv is empty", "header row"]);
    place.write("header.csv", "a,b\n");
    place.audit("header.csv --k 2").refuses(1, &["header.csv has no records"]);
    place.write("empty.ndjson", "");
    place.audit("empty.ndjson --k 2").refuses(1, &["empty.ndjson has no records"]);
    place.audit("missing.csv --k 2").refuses(1, &["cannot open missing.csv", "check the path"]);
    std::fs::create_dir(place.0.path().join("folder.csv")).expect("a folder");
    place.audit("folder.csv --k 2").refuses(1, &["folder.csv has no file that ends in .csv, .tsv"]);
}

#[test]
fn audit_handles_extreme_tables() {
    let place = Place::with("one.csv", "a,b\n1,2\n");
    let one = place.report("one.csv --k 2");
    assert_eq!((sets(&one, "minimal_qids"), sets(&one, "maximal_non_qids").len()), (vec!["a".into(), "b".into()], 0));
    place.write("same.csv", format!("a,b\n{}", "1,2\n".repeat(9)));
    let same = place.report("same.csv --k 9");
    assert_eq!((sets(&same, "minimal_qids").len(), sets(&same, "maximal_non_qids")), (0, vec!["a+b".into()]));
    assert_eq!(same["risk"]["records_below_k"], 0);
    let large = place.report("same.csv --k 10");
    assert_eq!(sets(&large, "minimal_qids"), ["a", "b"]);
    assert!(large["notes"].to_string().contains("k = 10 exceeds the 9 records"), "{}", large["notes"]);
    let rows: String = (0..50).map(|i| format!("{i},x{i}\n")).collect();
    place.write("unique.csv", format!("a,b\n{rows}"));
    let unique = place.report("unique.csv --k 2 --html page.html");
    assert_eq!(unique["standalone_identifiers"], serde_json::json!(["a", "b"]));
    assert_eq!((sets(&unique, "minimal_qids").len(), &unique["evaluated"]), (0, &0.into()));
    assert!(place.audit("unique.csv --k 2").stdout.contains("nothing was searched"));
    assert!(place.read("page.html").contains("No column to search"));
}

#[test]
fn audit_of_malformed_rows_is_refused_or_skips_them() {
    let place = Place::with("t.csv", b"a,b\n1,2\n1,2\n1\n1,2,3\n\xff,2\n1,\"2\n".as_slice());
    place.audit("t.csv --k 2").refuses(1, &["record 3 of t.csv", "ragged row", "--skip-unreadable"]);
    let report = place.report("t.csv --k 2 --skip-unreadable");
    assert_eq!(report["rows"], 2);
    assert_eq!(report["unreadable"], serde_json::json!({"malformed_row": 1, "not_utf8": 1, "ragged_row": 2}));
    assert!(report["notes"].to_string().contains("4 records could not be read"));
    let lines = "{\"a\":1}\n{\"a\":1,\"a\":2}\n[1]\n{\"a\":1\n{\"a\":1}\n";
    place.write("t.ndjson", lines);
    place.audit("t.ndjson --k 2").refuses(1, &["record 2 of t.ndjson", "duplicate key"]);
    let report = place.report("t.ndjson --k 2 --skip-unreadable");
    assert_eq!(report["unreadable"], serde_json::json!({"duplicate_key": 1, "not_an_object": 1, "truncated": 1}));
    place.write("bad.ndjson", "{\n");
    place.audit("bad.ndjson --k 2 --skip-unreadable").refuses(1, &["none of the 1 records"]);
}

#[test]
fn audit_counts_nul_mixed_and_nested_cells_as_values() {
    let place = Place::with("t.csv", "a,b\n\0,1\n\0,1\nx,1\nx,1\n");
    let report = place.report("t.csv --k 2");
    assert_eq!((sets(&report, "minimal_qids").len(), report["attributes"][0]["distinct"].as_u64()), (0, Some(2)));
    let lines = [
        r#"{"v":1,"n":{"x":true,"y":[1,2]}}"#,
        r#"{"v":"1","n":{"x":true,"y":[1,2]}}"#,
        r#"{"v":null,"n":{"x":true,"y":[1,2]}}"#,
        r#"{"n":{"x":false}}"#,
    ];
    place.write("t.ndjson", lines.join("\n"));
    let report = place.report("t.ndjson --k 2");
    let distinct = |name: &str| {
        report["attributes"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|a| a["name"] == name)
            .map(|a| a["distinct"].clone())
    };
    assert_eq!(distinct("v"), Some(3.into()), "1 and \"1\" are one value, null and absent are two");
    assert_eq!((distinct("n.x"), distinct("n.y")), (Some(2.into()), Some(2.into())));
}

#[test]
fn audit_with_unusable_header_is_refused() {
    let place = Place::with("twice.csv", "a,b,a\n1,2,3\n");
    place.audit("twice.csv --k 2").refuses(1, &["columns 1 and 3 of twice.csv"]);
    place.write("latin.csv", b"a,caf\xe9\n1,2\n".as_slice());
    place.audit("latin.csv --k 2").refuses(1, &["header of column 2", "UTF-8"]);
    place.write("none.csv", "30,anna@example.org\n31,beat@example.org\n");
    let refused = place.audit("none.csv --k 2");
    assert!(!refused.stderr.contains("anna"), "{}", refused.stderr);
    refused.refuses(1, &["header of column 2", "add a header row"]);
    place.write("other.csv", "a:b;c:d\n1;2\n");
    place.audit("other.csv --k 2 --separator ,").refuses(1, &["--separator"]);
}

#[test]
fn audit_of_too_many_columns_requires_a_selection() {
    let header: Vec<String> = (0..10_000).map(|i| format!("c{i}")).collect();
    let row = |i: usize| vec![(i % 2).to_string(); 10_000].join(",");
    let rows: String = (0..4).map(|i| row(i) + "\n").collect();
    let place = Place::with("wide.csv", format!("{}\n{rows}", header.join(",")));
    place.audit("wide.csv --k 2").refuses(2, &["more than 1024 columns", "--columns"]);
    let report = place.report("wide.csv --k 2 --columns c7,c9999");
    assert_eq!(sets(&report, "maximal_non_qids"), ["c7+c9999"]);
    let keys: Vec<String> = header.iter().map(|name| format!("\"{name}\":1")).collect();
    place.write("wide.ndjson", format!("{{{}}}\n", keys.join(",")));
    place.audit("wide.ndjson --k 2").refuses(2, &["more than 1024 columns", "--columns"]);
    place.audit("wide.csv --k 2 --columns c7,d8").refuses(2, &["wide.csv has no column \"d8\""]);
    place.audit("wide.ndjson --k 2 --columns c7,d8").refuses(2, &["wide.ndjson has no column \"d8\""]);
    place.audit("wide.csv --k 2 --columns c7,,c8").refuses(2, &["--columns"]);
    place.audit("wide.csv --k 2 --columns c7 --subject me").refuses(2, &["no column \"me\""]);
}

#[test]
fn audit_with_invalid_arguments_is_refused() {
    let place = Place::with("t.csv", "a,b\n1,2\n1,2\n");
    for (words, says) in [
        ("t.csv", "--k"),
        ("t.csv --k 1", "--k"),
        ("t.csv --k 0", "--k"),
        ("t.csv --k -3", "-3"),
        ("t.csv --k many", "--k"),
        ("--k 2", "INPUT"),
        ("t.csv --k 2 --subject c", "has no column \"c\""),
        ("t.csv --k 2 --strategy magic", "magic"),
        ("t.csv --k 2 --max-seconds 0", "--max-seconds"),
        ("t.csv --k 2 --max-seconds -1", "-1"),
        ("t.csv --k 2 --max-seconds NaN", "--max-seconds"),
        ("t.csv --k 2 --threads 0", "--threads"),
        ("t.csv --k 2 --identifier-cardinality 1.5", "--identifier-cardinality"),
        ("t.csv --k 2 --separator ;;", "--separator"),
        ("t.csv --k 2 --memory lots", "--memory"),
        ("t.csv --k 2 --schema none.toml", "none.toml"),
        ("- --k 2 --format parquet", "standard input"),
    ] {
        place.audit(words).refuses(2, &[says]);
    }
    place.write("schema.toml", "name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"strong\"\n");
    place.audit("t.csv --k 2 --schema schema.toml").refuses(2, &["schema.toml", "type"]);
    place.write("schema.toml", "name = \"t\"\n[[attribute]]\nname = \"a\"\ntype = \"string\"\n");
    place.audit("t.csv --k 2 --schema schema.toml --columns b").refuses(2, &["no attribute \"b\""]);
    place.audit("t.csv --k 2 --html no/such/folder/page.html").refuses(1, &["no/such/folder/page.html"]);
}

#[test]
fn audit_with_missing_gpu_is_refused() {
    let place = Place::with("t.csv", "a,b\n1,2\n1,2\n");
    place.audit("t.csv --k 2 --backend cuda").refuses(3, &["--backend cuda", "--backend cpu"]);
}

#[test]
fn audit_of_broken_parquet_is_refused() {
    let place = Place::with("t.parquet", "PAR1 and nothing more");
    place.audit("t.parquet --k 2").refuses(1, &["t.parquet cannot be read as Parquet"]);
    place.write("empty.parquet", "");
    place.audit("empty.parquet --k 2").refuses(1, &["empty.parquet cannot be read as Parquet"]);
    place.write("t.csv", "a,b\n1,2\n1,2\n");
    place.audit("t.csv --k 2 --format parquet").refuses(1, &["t.csv cannot be read as Parquet"]);
}

#[test]
fn audit_beyond_the_memory_limit_is_refused() {
    let rows: String = (0..200_000).map(|i| format!("{i},{}\n", i * 7)).collect();
    let place = Place::with("t.csv", format!("a,b\n{rows}"));
    place.audit("t.csv --k 2 --memory 1MiB").refuses(1, &["t.csv needs more than 1MiB after", "--columns", "--memory"]);
}

#[test]
fn audit_names_wrong_formats_and_types_with_position() {
    let place = Place::with("t.ndjson", "[{\"a\":1},{\"a\":2}]\n");
    place.audit("t.ndjson --k 2").refuses(1, &["t.ndjson is one JSON array", "jq -c '.[]'"]);
    place.write("t.ndjson", "{\n \"a\": 1\n}\n");
    place.audit("t.ndjson --k 2").refuses(1, &["t.ndjson is pretty-printed JSON", "jq -c ."]);
    place.write("t.ndjson", "{\"a\":1}{\"a\":2}\n");
    place.audit("t.ndjson --k 2").refuses(1, &["record 1 of t.ndjson", "trailing text", "one record per line"]);
    place.write("t.csv", b"\x1f\x8b\x08\0canary".as_slice());
    place.audit("t.csv --k 2").refuses(1, &["t.csv", "gzip", "gzip -t"]);
    place.write("schema.toml", "name = \"t\"\n[[attribute]]\nname = \"age\"\ntype = \"integer\"\n[[attribute]]\nname = \"day\"\ntype = \"date\"\n");
    place.write("t.csv", "age,day\n1,2024-05-12\n2,20240512\n");
    place.audit("t.csv --k 2 --schema schema.toml").refuses(1, &["record 2 of t.csv", "\"day\"", "date", "`format`"]);
    place.write("t.csv", "Age,day\n1,2024-05-12\n");
    place.audit("t.csv --k 2 --schema schema.toml").refuses(1, &["column 1", "\"age\"", "only by case"]);
}

#[test]
fn audit_time_limit_bounds_reading() {
    let place = Place::with("census.csv", CENSUS);
    let begun = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_throng"))
        .args(["audit", "-", "--format", "csv", "--k", "3", "--max-seconds", "1"])
        .current_dir(place.0.path())
        .env("CUDA_VISIBLE_DEVICES", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(b"age,city\n41,Zug\n42,Zu").expect("written");
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().expect("our child").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("our child");
            panic!("it waits for the pipe");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("it has ended");
    let said = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("standard input was not fully read within 1 s") && said.contains("--max-seconds"), "{said}");
    assert!(output.stdout.is_empty() && begun.elapsed() >= Duration::from_secs(1));
    drop(pipe);
    assert_eq!(place.audit("census.csv --k 3 --max-seconds 600").code, 0);
}

#[test]
fn audit_page_never_overwrites_an_input() {
    let schema = "name = \"t\"\n[[attribute]]\nname = \"age\"\ntype = \"integer\"\n\
        [[attribute]]\nname = \"race\"\ntype = \"string\"\n[attribute.hierarchy]\nkind = \"file\"\npath = \"races.csv\"\n";
    let place = Place::with("census.csv", CENSUS);
    place.write("schema.toml", schema);
    place.write("races.csv", "White;any\n");
    std::fs::hard_link(place.0.path().join("census.csv"), place.0.path().join("also.csv")).expect("a link");
    for (over, named) in [
        ("census.csv", "the input"),
        ("./also.csv", "census.csv"),
        ("schema.toml", "the schema"),
        ("races.csv", "a hierarchy of the schema"),
    ] {
        let words = format!("census.csv --separator ; --k 3 --schema schema.toml --html {over}");
        place.audit(&words).refuses(2, &["--html", over, "would overwrite", named]);
    }
    place.audit("census.csv --k 3 --html none/page.html").refuses(1, &["none/page.html", "name a writable file"]);
    assert_eq!(place.read("census.csv"), CENSUS);
    assert_eq!((place.read("schema.toml").as_str(), place.read("races.csv").as_str()), (schema, "White;any\n"));
}

#[test]
fn audit_reports_rows_in_an_open_quote() {
    let rows = |n: usize| format!("4{},Zug\n", n % 2);
    let text: String = (0..40).map(rows).chain(["40,\"Zug\n".to_owned()]).chain((0..80).map(rows)).collect();
    let place = Place::with("t.csv", format!("age,city\n{text}40,Zug\"\n"));
    let notes = place.report("t.csv --k 3")["notes"].to_string();
    assert!(notes.contains("span 82 lines, the first is record 41") && notes.contains("quote"), "{notes}");
}

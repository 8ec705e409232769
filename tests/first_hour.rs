//! Tests the first steps with the user's own records: infer a schema, configure, check and run.

use crate::support::desk::Desk;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// Identifying texts, which no release or proposal may contain.
const NAMES: [&str; 6] = ["Quirin", "Xaver", "example.org", "+41 79", "Zugerberg", "u-0"];

pub fn visits() -> String {
    let mut text = String::from("user_id,full_name,email,phone,remarks,day,ward,steps,pulse,diagnosis\n");
    for n in 0..1200 {
        let p = n % 40;
        text += &format!(
            "u-0{p:02},{} {p},p{p}@example.org,+41 79 555 {p:02} {p:02},went up the Zugerberg on day {n} and came back,{}/{}/2024,{},{},{}.{},{}\n",
            ["Quirin", "Xaver"][p % 2],
            1 + n % 12,
            1 + n / 40 % 28,
            ["north", "south", "east"][p % 3],
            (n * 7919) % 12000,
            55 + (n * 31) % 60,
            n % 10,
            ["flu", "flu", "cold", "asthma"][n % 4],
        );
    }
    text
}

#[track_caller]
fn names_nobody(text: &str) {
    for name in NAMES {
        assert!(!text.contains(name), "{name} stands in\n{}", text.chars().take(4000).collect::<String>());
    }
}

#[test]
fn file_is_inferred_configured_and_released() {
    let desk = Desk::new();
    desk.write("visits.csv", visits());
    let inferred = desk.done(&["schema", "infer", "visits.csv"]);
    names_nobody(&inferred.out);
    assert!(inferred.out.contains("A PROPOSAL") && inferred.err.contains("40 people"), "{}", inferred.err);
    let written = desk.done(&["init", "visits.csv", "--for", "rows", "--directory", "own", "--output", "safe.ndjson"]);
    assert!(written.out.contains("throng check -c own/visits.toml --sample visits.csv"), "{}", written.out);
    let mode = |name: &str| fs::metadata(desk.path(name)).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode("own/visits.secret"), 0o600);
    assert_eq!(desk.read("own/visits.secret").trim().len(), 64);
    desk.done(&["check", "-c", "own/visits.toml"]);
    let tried = desk.done(&["check", "-c", "own/visits.toml", "--sample", "visits.csv"]);
    assert!(tried.out.contains("1,200 records tried, nothing kept") && tried.out.contains("group "), "{}", tried.out);
    names_nobody(&tried.out);
    assert!(!desk.path("own/visits.state").exists() && !desk.path("safe.ndjson").exists(), "nothing is kept");
    desk.done(&["run", "-c", "own/visits.toml"]);
    let released = desk.released("safe");
    assert!(released.lines().count() > 40 && released.contains("\"ward\""), "{released}");
    names_nobody(&released);
}

#[test]
fn init_keeps_existing_files() {
    let desk = Desk::new();
    desk.write("visits.csv", visits());
    desk.write("visits.toml", "mine");
    assert!(desk.refused(&["init", "visits.csv"]).contains("visits.toml already exists"));
    assert!(
        !desk.path("visits.schema.toml").exists() && !desk.path("visits.secret").exists(),
        "nothing is half written"
    );
    assert!(desk.refused(&["schema", "infer", "visits.csv", "-o", "visits.toml"]).contains("--force"));
    assert!(desk.refused(&["schema", "infer", "visits.csv", "-o", "visits.csv", "--force"]).contains("the input"));
    assert_eq!(desk.read("visits.toml"), "mine");
    desk.done(&["init", "visits.csv", "--force"]);
    let secret = desk.read("visits.secret");
    desk.done(&["init", "visits.csv", "--force"]);
    assert_eq!(desk.read("visits.secret"), secret, "a state may depend on it");
}

#[test]
fn init_topic_is_described_by_a_sample() {
    let desk = Desk::new();
    let line = |n: usize| {
        format!(
            "{{\"user\":{{\"id\":\"u-0{:02}\"}},\"m\":{{\"pulse\":{},\"steps\":{}}}}}\n",
            n % 30,
            60 + n % 37,
            n * 13 % 900
        )
    };
    desk.write("sample.ndjson", (0..600).map(line).collect::<String>());
    let said = desk.done(&["init", "sample.ndjson", "--topic", "wearable.raw", "--k", "4"]).out;
    assert!(said.contains("\n  throng topics create -c wearable.toml "), "{said}");
    let config = desk.read("wearable.toml");
    for says in
        ["topics = [\"wearable.raw\"]", "topic = \"wearable.raw.sanitized\"", "k = 4", "prime = \"sample.ndjson\""]
    {
        assert!(config.contains(says), "{says} in\n{config}");
    }
    assert!(desk.read("wearable.schema.toml").contains("pointer = \"/m/pulse\""));
    desk.done(&["check", "-c", "wearable.toml"]);
    desk.done(&["check", "-c", "wearable.toml", "--sample", "sample.ndjson"]);
    // Two configurations share no group, state topic or state directory.
    let other = ["init", "sample.ndjson", "--topic", "wearable.raw", "--name", "Übung 2", "--for", "monitoring"];
    desk.done(&other);
    let names = |config: &str| {
        let keys = ["group = ", "changelog_topic = ", "dead_letter_topic = ", "path = "];
        let line = |key: &str| config.lines().find(|line| line.starts_with(key)).map(str::to_owned);
        keys.map(|key| line(key).unwrap_or_else(|| panic!("no {key}in\n{config}")))
    };
    assert_eq!(
        names(&config),
        [
            "group = \"throng-wearable\"",
            "changelog_topic = \"throng-wearable.changelog\"",
            "dead_letter_topic = \"throng-wearable.dead-letters\"",
            "path = \"wearable.state\""
        ]
    );
    assert_eq!(
        names(&desk.read("Übung 2.toml")),
        [
            "group = \"throng--bung-2\"",
            "changelog_topic = \"throng--bung-2.changelog\"",
            "dead_letter_topic = \"throng--bung-2.dead-letters\"",
            "path = \"Übung 2.state\""
        ]
    );
}

#[test]
fn check_sample_reports_mismatches_without_values() {
    let desk = Desk::new();
    desk.write("visits.csv", visits());
    desk.done(&["init", "visits.csv", "--for", "rows"]);
    let mut other = String::from("user_id,full_name,email,phone,remarks,day,ward,steps,pulse,diagnosis,extra_column\n");
    for n in 0..400 {
        let steps = if n % 100 == 3 { "Zugerberg".to_owned() } else { (n * 30).to_string() };
        let ward = if n % 50 == 7 { "Xaver" } else { ["north", "south"][n % 2] };
        other += &format!("u-0{},,,,,3/{}/2024,{ward},{steps},,flu,1\n", n % 40, 1 + n % 28);
    }
    desk.write("other.csv", &other);
    let said = desk.done(&["check", "-c", "visits.toml", "--sample", "other.csv", "--json"]);
    names_nobody(&said.out);
    let told: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(told["records"], 400);
    assert_eq!(told["never_met"], serde_json::json!(["pulse"]));
    assert_eq!(told["wrong_type"], serde_json::json!({ "steps": 4 }));
    assert_eq!(told["uncovered"], serde_json::json!({ "ward": 8 }));
    assert_eq!(told["unknown"], serde_json::json!(["extra_column"]));
    assert_eq!(told["dead_lettered"], 4);
    let text = desk.done(&["check", "-c", "visits.toml", "--sample", "other.csv"]).out;
    for says in ["pulse", "steps (4)", "ward (8)", "extra_column", "mean loss"] {
        assert!(text.contains(says), "{says} in\n{text}");
    }
    names_nobody(&text);
}

#[test]
fn check_sample_with_too_few_subjects_is_refused() {
    let desk = Desk::new();
    desk.write("visits.csv", visits());
    desk.done(&["init", "visits.csv"]);
    let few: Vec<String> = visits().lines().take(4).map(str::to_owned).collect();
    desk.write("few.csv", few.join("\n"));
    assert!(
        desk.refused(&["check", "-c", "visits.toml", "--sample", "few.csv"])
            .contains("nothing of few.csv could be released")
    );
    assert!(desk.refused(&["check", "-c", "visits.toml", "--sample", "absent.csv"]).contains("absent.csv"));
    assert!(desk.refused(&["check", "-c", "visits.toml", "--sample", "-"]).contains("name a file"));
}

#[test]
fn check_sample_uses_the_configured_format() {
    let desk = Desk::new();
    fs::create_dir(desk.path("days")).expect("a directory");
    desk.write("days/1.csv", visits());
    desk.done(&["init", "days", "--for", "rows", "--output", "safe.ndjson"]);
    let tried = desk.done(&["check", "-c", "days.toml", "--sample", "days"]);
    assert!(tried.out.contains("1,200 records tried"), "{}", tried.out);
    desk.write("visits.txt", visits());
    let tried = desk.done(&["check", "-c", "days.toml", "--sample", "visits.txt"]);
    assert!(tried.out.contains("1,200 records tried"), "CSV, as the configuration reads: {}", tried.out);
    let pipe = desk.path("pipe.csv");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("a shell").success());
    assert!(desk.refused(&["check", "-c", "days.toml", "--sample", "pipe.csv"]).contains("name a file"));
    assert!(desk.refused(&["init", "pipe.csv"]).contains("name a file"));
    let joined = format!("{}\n[sink]\nkind = \"file\"\npath = \"safe.ndjson\"\nrows = \"joined\"\n", {
        let text = desk.read("days.toml");
        let (before, after) = text.split_once("[sink]").expect("a sink");
        format!("{before}{}", after.split_once("\n\n").expect("a next table").1)
    });
    desk.write("joined.toml", joined);
    let tried = desk.done(&["check", "-c", "joined.toml", "--sample", "days"]);
    assert!(tried.out.contains("group joined: "), "what leaves is shown as it leaves: {}", tried.out);
}

#[test]
fn check_sample_hides_keys_of_a_single_subject() {
    let desk = Desk::new();
    let line = |n: usize| format!("{{\"user_id\":\"u{:02}\",\"pulse\":{}}}\n", n % 30, 60 + n % 7);
    desk.write("sample.ndjson", (0..600).map(line).collect::<String>());
    desk.done(&["init", "sample.ndjson"]);
    let mut other = (0..600).map(line).collect::<String>();
    for spelled in ["anna", "Anna", " anna", "ANNA", "anna ", "aNNA"] {
        other += &format!("{{\"user_id\":\"{spelled}\",\"pulse\":61,\"anna.mueller\":1}}\n");
    }
    desk.write("other.ndjson", &other);
    let said = desk.done(&["check", "-c", "sample.toml", "--sample", "other.ndjson"]).out;
    assert!(!said.contains("mueller") && said.contains("not named"), "{said}");
    desk.write("nobodys.ndjson", other.replace("user_id", "somebody"));
    let said = desk.throng(&["check", "-c", "sample.toml", "--sample", "nobodys.ndjson"]).out;
    assert!(!said.contains("mueller"), "of how many people they are nobody knows: {said}");
}

#[test]
fn failed_init_leaves_no_files() {
    let desk = Desk::new();
    desk.write("visits.csv", visits());
    let said = desk.refused(&["init", "."]);
    assert!(!said.is_empty());
    let left: Vec<_> =
        fs::read_dir(desk.path("")).expect("a directory").map(|e| e.expect("an entry").file_name()).collect();
    assert_eq!(left.len(), 2, "the file and the directory of temporary ones: {left:?}");
    desk.write("a\nb.csv", visits());
    assert!(desk.refused(&["init", "a\nb.csv"]).contains("rename it"));
    desk.done(&["init", "visits.csv"]);
    let files = ["visits.schema.toml", "visits.toml", "visits.secret"];
    let before = files.map(|file| desk.read(file));
    let output = ["init", "visits.csv", "--force", "--output", "visits.csv"];
    assert!(desk.refused(&output).contains("overwrite the source"));
    assert_eq!(files.map(|file| desk.read(file)), before);
    // Foreign directories and links are kept.
    std::os::unix::fs::symlink("nowhere.toml", desk.path("other.schema.toml")).expect("a link");
    let other = ["init", "visits.csv", "--force", "--name", "other"];
    assert_eq!(desk.throng(&other).code, Some(1));
    assert!(desk.path("other.schema.toml").is_symlink() && !desk.path("nowhere.toml").exists());
    assert!(!desk.path("other.secret").exists() && !desk.path("other.toml").exists());
    desk.refused(&["init", "visits.csv", "--directory", "one/two", "--output", "visits.csv"]);
    assert!(!desk.path("one").exists());
    desk.write("raw.secret", visits());
    let raw = ["init", "raw.secret", "--format", "csv", "--force"];
    assert!(desk.refused(&raw).contains("raw.secret is the input"));
}

#[test]
fn missing_subject_column_is_warned_about() {
    let desk = Desk::new();
    desk.write(
        "runs.csv",
        (0..400).fold("runner,pace\n".to_owned(), |text, n| text + &format!("{},{}\n", ["Ana", "Bo"][n % 2], n % 9)),
    );
    for arguments in [&["schema", "infer", "runs.csv"][..], &["init", "runs.csv"]] {
        let said = desk.done(arguments);
        assert!(said.err.contains("warning: no subject column"), "{}", said.err);
        assert!(!format!("{}{}", said.out, said.err).contains("400 people"), "{}{}", said.out, said.err);
    }
}

#[test]
fn init_with_repeated_codes_requires_a_subject() {
    let desk = Desk::new();
    let row = |n: usize| format!("B-{:03},{}\n", n % 40, ["north", "south"][n % 2]);
    desk.write("badges.txt", (0..600).fold("badge,zone\n".to_owned(), |text, n| text + &row(n)));
    let said = desk.refused(&["init", "badges.txt"]);
    assert!(said.contains("\"badge\"") && said.contains("--subject") && said.contains("--no-subject"), "{said}");
    assert!(!said.contains("B-0"), "no value is shown: {said}");
    let said = desk.done(&["init", "badges.txt", "--subject", "badge"]);
    assert!(said.out.contains("600 records of 40 people"), "{}", said.out);
    assert!(desk.read("badges.toml").contains("format = \"csv\""), "told by its content");
    let said = desk.done(&["init", "badges.txt", "--no-subject", "--force"]);
    assert!(said.out.contains("1 identifier") && !said.err.contains("warning"), "{}{}", said.out, said.err);
}

#[test]
fn anonymize_suppresses_rare_values_after_init() {
    let desk = Desk::new();
    let mut text = String::from("city,age\n");
    for n in 0..300 {
        text += &format!("{},{}\n", if n == 7 { "Zugerberg" } else { ["Bern", "Basel"][n % 2] }, 20 + n % 50);
    }
    desk.write("people.csv", text);
    desk.done(&["init", "people.csv"]);
    let schema = desk.read("people.schema.toml");
    assert!(schema.contains("uncovered = \"suppress\"") && !schema.contains("Zugerberg"), "{schema}");
    let said = desk.done(&["anonymize", "people.csv", "-c", "people.toml", "-o", "safe.ndjson"]);
    assert!(said.err.contains("\"city\": 1 cell(s)") && !said.err.contains("Zugerberg"), "{}", said.err);
    let released = desk.released("safe");
    assert!(released.contains("Bern") && !released.contains("Zugerberg"), "{released}");
}

#[test]
fn schema_infer_refuses_invalid_files_with_a_reason() {
    let desk = Desk::new();
    let refused = |name: &str, content: &[u8], says: &str| {
        desk.write(name, content);
        let said = desk.refused(&["schema", "infer", name]);
        assert!(said.contains(says) && !said.contains("Quirin"), "{says:?} in {said}");
    };
    refused("empty.csv", b"", "empty");
    refused("header.csv", b"a,b\n", "no records");
    refused("few.csv", b"a,b\nQuirin,2\nQuirin,3\n", "2 people");
    refused("twice.csv", b"a,b,a\n1,2,3\n", "same name");
    refused("latin.csv", b"a,b\xe9\n1,2\n", "header");
    refused("rows.csv", b"a,b\n\xe9,2\n\xe9,3\n", "none of the 2 records");
    refused("numbers.csv", b"17,3.5\n18,4.5\n19,5.5\n20,6.5\n21,7.5\n22,8.5\n", "header");
    refused("list.ndjson", b"[1,2,3]\n", "list.ndjson");
    refused("packed.csv", b"\x1f\x8b\x08\0\0\0\0\0\0\x03Quirin", "gzip");
    assert!(desk.refused(&["schema", "infer", "absent.csv"]).contains("absent.csv"));
    assert!(desk.refused(&["schema", "infer"]).contains("give a file"));
}

#[test]
fn schema_infer_on_unusual_files_gives_valid_schemas() {
    let desk = Desk::new();
    let rows = |row: &dyn Fn(usize) -> String| (0..200).map(|n| row(n) + "\n").collect::<String>();
    let files = [
        ("one.csv", format!("a\n{}", rows(&|n| (n % 9).to_string()))),
        ("gaps.csv", format!("a,b\n{}", rows(&|n| format!(",{}", n % 9)))),
        ("nan.csv", format!("a,b\n{}", rows(&|n| format!("{},{}", ["NaN", "1.5", "2.25"][n % 3], n % 9)))),
        ("huge.csv", format!("a,b\n{}", rows(&|n| format!("{}e{},{}", 1 + n % 9, 200 + n % 90, n % 9)))),
        (
            "dates.csv",
            format!(
                "day,b\n{}",
                rows(&|n| {
                    let day = 1 + n % 28;
                    if n % 2 == 0 { format!("2024-02-{day:02},x") } else { format!("{day}.3.2024,y") }
                })
            ),
        ),
        (
            "names.csv",
            format!(
                "\" a \",\"\",\"q\"\"\\\"\n{}",
                rows(&|n| format!("{},{},\"*\"", n % 5, ["\"\\\"", "é", "[]"][n % 3]))
            ),
        ),
    ];
    for (name, content) in files {
        desk.write(name, content);
        desk.done(&["init", name, "--force"]);
        let config = format!("{}.toml", name.trim_end_matches(".csv"));
        desk.done(&["check", "-c", &config]);
        let said = desk.throng(&["run", "-c", &config]);
        assert!(said.code == Some(0) || said.err.contains("every record was lost"), "{name}: {}", said.err);
    }
}

#[test]
fn demo_shows_records_before_and_after() {
    let desk = Desk::new();
    let shown = desk.done(&["demo", "--show", "--html", "demo.html"]).out;
    assert!(shown.contains("before") && shown.contains("after") && shown.contains("(never: subject)"), "{shown}");
    assert!(shown.lines().any(|line| line.contains("heart_rate")) && !shown.contains('\u{1b}'), "{shown}");
    assert_eq!(shown.lines().filter(|line| line.starts_with("record ")).count(), 3, "{shown}");
    // One subject before, all subjects after.
    for curve in ["one person before (never released)", "published mean of all cohorts"] {
        let line = shown.lines().find(|line| line.contains(curve)).unwrap_or_else(|| panic!("{shown}"));
        assert!(line.chars().filter(|c| ('▁'..='█').contains(c)).count() >= 20, "{line}");
    }
    let page = desk.read("demo.html");
    assert_eq!(page.matches("<svg class=\"series\"").count(), 11, "3 signals of the curve and 8 of the days");
    assert!(
        page.matches("class=\"person\"").count() >= 9 && page.matches("class=\"part\"").count() >= 11,
        "lines of both"
    );
}

#[test]
fn demo_runs_to_its_end() {
    let desk = Desk::new();
    let said = desk.done(&["demo", "--seconds", "20", "--rate", "1000", "--listen", "127.0.0.1:0"]);
    // More than the first batch, so that several commits follow each other.
    assert!(!said.err.contains("WARN the broker"), "{}", said.err);
    let consumed =
        said.err.split_once("consumed ").map(|(_, rest)| rest.split(' ').next().unwrap_or_default().replace(',', ""));
    let consumed: u64 = consumed.and_then(|count| count.parse().ok()).unwrap_or(0);
    assert!(consumed >= 2_000, "{}{}", said.out, said.err);
}

fn loss_on_adult(desk: &Desk, data: &str, schema: &str) -> f64 {
    let config = format!(
        "[source]\nkind = \"file\"\npath = \"{data}\"\nseparator = \";\"\n[sink]\nkind = \"file\"\npath = \"{schema}.out.ndjson\"\n\
         [batch]\nmax_records = 1000\n[schema]\nfile = \"{schema}\"\n[privacy]\nk = 5\n[state]\npath = \"{schema}.state\"\n\
         secret_file = \"secret\"\n"
    );
    desk.write("secret", "a secret of the tests, long enough");
    fs::set_permissions(desk.path("secret"), fs::Permissions::from_mode(0o600)).expect("a file of ours");
    desk.write("adult.conf.toml", config);
    let said = desk.done(&["run", "-c", "adult.conf.toml"]);
    let said = format!("{}{}", said.out, said.err);
    let loss = said.split_once("mean loss ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    loss.unwrap_or_else(|| panic!("a loss in {said}"))
}

/// Loses at most a fifth more than a hand-written hierarchy.
#[test]
fn inferred_schema_loses_little_more_than_a_written_one() {
    let Some(data) = std::env::var_os("THRONG_TEST_DATA").map(PathBuf::from) else {
        eprintln!("SKIPPED: THRONG_TEST_DATA is not set");
        return;
    };
    let data = data.join("adult/adult.csv").display().to_string();
    let desk = Desk::new();
    desk.done(&["schema", "infer", &data, "--name", "adult", "-o", "inferred.toml"]);
    let proposed = desk.read("inferred.toml");
    let (before, after) = proposed.split_once("name = \"occupation\"").expect("the column");
    let after =
        after.replacen("role = \"quasi\"", "role = \"sensitive\"", 1).replacen("uncovered = \"suppress\"\n", "", 1);
    let (jobs, salary) = after.split_once("name = \"salary-class\"").expect("the column");
    let salary = salary.replacen("role = \"sensitive\"", "role = \"quasi\"", 1);
    desk.write("inferred.toml", format!("{before}name = \"occupation\"{jobs}name = \"salary-class\"{salary}"));
    let written = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("schemas/adult.toml");
    fs::copy(written, desk.path("written.toml")).expect("the schema");
    let (inferred, written) =
        (loss_on_adult(&desk, &data, "inferred.toml"), loss_on_adult(&desk, &data, "written.toml"));
    println!("mean loss {inferred} inferred, {written} written");
    assert!(inferred <= 1.2 * written, "{inferred} inferred, {written} written");
}

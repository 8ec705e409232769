//! Tests the purpose that `init` selects, and the share of the records that a release must represent.

use crate::support::desk::Desk;
use serde_json::Value;
/// Thirty records each of forty subjects; every seventh has no pulse.
fn days() -> String {
    let mut text = String::from("user_id,day,ward,steps,pulse\n");
    for day in 0..30 {
        for person in 0..40 {
            let n = day * 40 + person;
            let pulse = if n % 7 == 0 { String::new() } else { format!("{}.{}", 55 + (n * 31) % 60, n % 10) };
            let ward = ["north", "south", "east"][person % 3];
            text += &format!("u-0{person:02},2024-03-{:02},{ward},{},{pulse}\n", day + 1, (n * 7919) % 12000);
        }
    }
    text
}

fn people() -> String {
    (0..300).fold("city,age\n".to_owned(), |text, n| text + &format!("{},{}\n", ["Bern", "Basel"][n % 2], 20 + n % 50))
}

#[test]
fn init_purposes_give_valid_configurations() {
    let desk = Desk::new();
    desk.write("days.csv", days());
    for purpose in ["dashboards", "models", "rows", "monitoring"] {
        let said = desk.done(&["init", "days.csv", "--for", purpose, "--name", purpose]);
        assert!(!said.out.contains("purpose:"), "a given purpose needs no reason: {}", said.out);
        let config = format!("{purpose}.toml");
        desk.done(&["check", "-c", &config]);
        desk.done(&["run", "-c", &config]);
        let released = desk.released(&format!("{purpose}.released"));
        for (of, series) in [("dashboards", "\"series\":\"daily\""), ("models", "\"series\":\"model\"")] {
            assert_eq!(released.contains(series), of == purpose, "{purpose}: {released}");
        }
        assert_eq!(released.is_empty(), purpose == "monitoring", "{purpose}: {released}");
        assert!(purpose == "rows" || !released.contains("ward"), "no record leaves: {released}");
    }
}

/// Numbers present on few days would leave few complete days.
#[test]
fn init_models_selects_numbers_present_on_most_days() {
    let desk = Desk::new();
    let mut lines = Vec::new();
    for (at, line) in days().lines().enumerate() {
        lines.push(match at {
            0 => format!("{line},vo2"),
            _ if at % 3 == 0 => format!("{line},{}.5", 20 + at * 13 % 50),
            _ => format!("{line},"),
        });
    }
    desk.write("days.csv", lines.join("\n") + "\n");
    desk.done(&["init", "days.csv", "--for", "models"]);
    let config = desk.read("days.toml");
    assert!(config.contains("\nsignals = [\"steps\", \"pulse\"]\n"), "{config}");
    assert!(
        config.contains("only days with a value of every number count. 86 % of the days with any value have all."),
        "{config}"
    );
    let left_out = config.lines().find(|line| line.contains("\"vo2\"")).expect("a line");
    assert!(left_out.starts_with("# Left out, since so few of the days") && left_out.contains("%)"), "{left_out}");
}

/// A reader can subtract the parts of a total.
#[test]
fn init_series_leave_out_a_total_of_other_signals() {
    let desk = Desk::new();
    let mut text = String::from("user_id,day,total,walk,run,pulse\n");
    for n in 0..1200 {
        let (walk, run) = (n * 7919 % 9000, n * 4271 % 3100);
        // Some totals have no parts.
        let (walk_shown, run_shown) = if n % 25 == 7 { (0, 0) } else { (walk, run) };
        let (day, person) = (n / 40 + 1, n % 40);
        text +=
            &format!("u-0{person:02},2024-03-{day:02},{},{walk_shown},{run_shown},{}\n", walk + run, 50 + n * 31 % 67);
    }
    desk.write("days.csv", text);
    for purpose in ["dashboards", "models"] {
        desk.done(&["init", "days.csv", "--for", purpose, "--name", purpose]);
        let config = desk.read(&format!("{purpose}.toml"));
        assert!(config.contains("\nsignals = [\"walk\", \"run\", \"pulse\"]\n"), "{config}");
        let reason = "\n# Left out, since \"walk\", \"run\" together nearly determine it: \"total\" (R² ";
        assert!(config.contains(reason), "{config}");
        desk.done(&["check", "-c", &format!("{purpose}.toml")]);
    }
}

#[test]
fn init_default_purpose_follows_the_records() {
    let desk = Desk::new();
    desk.write("days.csv", days());
    desk.write("people.csv", people());
    let few: String = days().lines().take(1 + 6 * 40).map(|line| format!("{line}\n")).collect();
    desk.write("few.csv", few);
    let chosen = |input: &str| {
        let said = desk.done(&["init", input]).out;
        let line = said.lines().find_map(|line| line.strip_prefix("purpose: ")).unwrap_or_else(|| panic!("{said}"));
        let config = desk.read(&input.replace(".csv", ".toml"));
        (line.to_owned(), config.contains("[[series]]"))
    };
    let (why, has_series) = chosen("days.csv");
    assert!(has_series && why.starts_with("dashboards") && why.contains("40 people have 30 records each"), "{why}");
    let (why, has_series) = chosen("people.csv");
    assert!(!has_series && why.starts_with("rows") && why.contains("--subject"), "{why}");
    let (why, has_series) = chosen("few.csv");
    assert!(!has_series && why.starts_with("rows") && why.contains("--for dashboards"), "{why}");
}

#[test]
fn init_refuses_purposes_without_suitable_records() {
    let desk = Desk::new();
    desk.write("people.csv", people());
    let column = |at: usize| {
        let keep = |line: &str| {
            line.split(',')
                .enumerate()
                .filter(|(c, _)| *c != at)
                .map(|(_, cell)| cell.to_owned())
                .collect::<Vec<_>>()
                .join(",")
        };
        days().lines().map(|line| keep(line) + "\n").collect::<String>()
    };
    desk.write("timeless.csv", column(1));
    desk.write(
        "numberless.csv",
        days().lines().map(|line| line.split(',').take(3).collect::<Vec<_>>().join(",") + "\n").collect::<String>(),
    );
    for (input, missing) in [("people.csv", "--subject"), ("timeless.csv", "times"), ("numberless.csv", "numbers")] {
        let said = desk.refused(&["init", input, "--for", "dashboards"]);
        assert!(said.contains(missing) && said.contains("--for rows"), "{input}: {said}");
        assert!(!desk.path(&input.replace(".csv", ".toml")).exists(), "{input}: nothing is written");
        desk.done(&["init", input]);
    }
    assert!(desk.refused(&["init", "people.csv", "--for", "charts"]).contains("monitoring"));
}

#[test]
fn init_does_not_use_a_birth_date_as_event_time() {
    let desk = Desk::new();
    let born = |line: &str| {
        let person: usize = line[3..5].parse().expect("a number");
        format!("{line},19{:02}-05-{:02}\n", 40 + person, 1 + person % 28)
    };
    let rows: String = days().lines().skip(1).map(born).collect();
    desk.write("born.csv", format!("user_id,day,ward,steps,pulse,born\n{rows}"));
    desk.done(&["init", "born.csv", "--for", "dashboards"]);
    assert!(desk.read("born.toml").contains("time = \"day\""), "{}", desk.read("born.toml"));
    let without_day = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        format!("{},{},{}\n", cells[0], cells[3], cells[5])
    };
    let rows: String = format!("user_id,day,ward,steps,pulse,born\n{rows}").lines().map(without_day).collect();
    desk.write("undated.csv", rows);
    assert!(desk.refused(&["init", "undated.csv", "--for", "dashboards"]).contains("times"));
}

fn single_records() -> Desk {
    let desk = Desk::judging();
    desk.write("days.csv", days());
    desk.done(&["init", "days.csv", "--for", "rows"]);
    desk
}

#[test]
fn file_job_below_min_represented_replaces_no_output() {
    let desk = single_records();
    let said = desk.ends_with(4, &["run", "-c", "days.toml"]).err;
    for part in [
        "release.min_represented requires 50.0 %",
        "no output was replaced",
        "throng check -c days.toml --sample days.csv",
    ] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    assert_eq!(desk.released("days.released"), "", "nothing is left behind");
    let config = desk.read("days.toml");
    desk.write("days.toml", config.clone() + "\n[release]\nmin_represented = 0\n");
    desk.done(&["run", "-c", "days.toml"]);
    let before = desk.released("days.released");
    assert!(!before.is_empty());
    desk.write("days.toml", config.clone() + "\n[release]\nmin_represented = 0.9\n");
    desk.ends_with(4, &["run", "-c", "days.toml"]);
    assert_eq!(desk.released("days.released"), before);
    desk.done(&["init", "days.csv", "--for", "dashboards", "--name", "series"]);
    let said = desk.done(&["run", "-c", "series.toml"]).err;
    assert!(said.contains("40 of 40 people"), "{said}");
    // Without a release, and for `anonymize`, the represented share is not checked.
    desk.done(&["init", "days.csv", "--for", "monitoring", "--name", "risk"]);
    desk.done(&["run", "-c", "risk.toml"]);
    desk.write("days.toml", config + "\n[anonymize]\ntime_limit = \"2s\"\n");
    desk.done(&["anonymize", "days.csv", "-c", "days.toml", "-o", "days.anonymized.csv"]);
    for wrong in ["1.5", "-0.1"] {
        desk.write(
            "wrong.toml",
            desk.read("series.toml")
                .replace("fragments = false", &format!("fragments = false\nmin_represented = {wrong}")),
        );
        assert!(desk.refused(&["check", "-c", "wrong.toml"]).contains("release.min_represented"));
    }
}

#[test]
fn stream_below_min_represented_names_the_file_to_delete() {
    let desk = single_records();
    let config = desk.read("days.toml").replace("path = \"days.csv\"", "path = \"-\"");
    let config = config.replace("groups = \"price\"", "groups = \"price\"\nprime = \"days.csv\"");
    desk.write("stream.toml", config + "path = \"state\"\n");
    let said = desk.fed("days.csv", &["run", "-c", "stream.toml"]);
    assert_eq!(said.code, Some(4), "{}", said.err);
    assert!(said.err.contains("delete days.released.ndjson"), "{}", said.err);
}

#[test]
fn run_summary_begins_with_the_represented_share() {
    let desk = single_records();
    let said = desk.ends_with(4, &["run", "-c", "days.toml"]).err;
    let at = |part: &str| said.find(part).unwrap_or_else(|| panic!("{part:?} in {said}"));
    assert!(at("fragments represent") < at("consumed 1200"), "{said}");
    assert!(said.contains("other lines of the same people represent them"), "{said}");
    assert!(!said.contains("too few people share"), "a reason without records is not named: {said}");
}

#[test]
fn audit_record_begins_with_the_represented_counts() {
    let desk = Desk::judging();
    desk.write("days.csv", days());
    desk.done(&["init", "days.csv"]);
    let config = desk.read("days.toml");
    desk.write(
        "days.toml",
        config
            .replace("[sink]\n", "[sink]\naudit_file = \"audit.ndjson\"\n")
            .replace("fragments = false", "fragments = true"),
    );
    let said = desk.done(&["run", "-c", "days.toml"]).err;
    let last = desk.read("audit.ndjson").lines().last().map(str::to_owned).expect("a record");
    let record: Value = serde_json::from_str(&last).expect("JSON");
    assert!(last.starts_with("{\"format\":1,\"represented\":{\"people\":40,"), "{last}");
    let of = |name: &str| record["represented"][name].as_u64().unwrap_or_else(|| panic!("{name} in {last}"));
    // Each subject is a member of one cohort. Records without a pulse have steps.
    assert_eq!([of("people"), of("people_seen"), of("series_records"), of("series_represented")], [40, 40, 1200, 1200]);
    assert_eq!(of("fragment_records"), 1200);
    assert!(
        of("fragment_represented") < 600 && said.contains(&format!("= released {}", of("fragment_represented"))),
        "{said}"
    );
    let schema = include_str!("../schemas/audit-record.schema.json");
    let schema = jsonschema::JSONSchema::compile(&serde_json::from_str(schema).expect("JSON")).expect("a schema");
    assert!(schema.is_valid(&record), "{record:#}");
}

fn form<'a>(found: &'a Value, kind: &str) -> &'a Value {
    let forms = found["forms"].as_array().expect("forms");
    forms.iter().find(|form| form["form"] == kind).unwrap_or_else(|| panic!("{kind} in {found:#}"))
}

#[test]
fn check_sample_compares_forms_and_recommends_one() {
    let desk = single_records();
    let said = desk.ends_with(4, &["check", "-c", "days.toml", "--sample", "days.csv", "--json"]);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    let (fragments, series) = (form(&found, "fragments"), form(&found, "series"));
    assert_eq!((&fragments["is_configured"], &series["is_configured"]), (&true.into(), &false.into()));
    for form in [fragments, series] {
        assert_eq!((&form["people"], &form["records"]), (&40.into(), &1200.into()), "{form:#}");
    }
    // The rehearsal and a run of the series agree.
    assert_eq!(fragments["records_represented"], found["released"], "{found:#}");
    assert_eq!((&series["people_represented"], &series["records_represented"]), (&40.into(), &1200.into()));
    let error = series["error_ratio"].as_f64().expect("an error");
    assert!(error > 0.0 && error < 1.0, "{error}");
    let best = &fragments["best_attack"];
    assert!(best["rate"].as_f64() >= best["chance"].as_f64() && best["attack"].is_string(), "{best}");
    for part in [
        "represent 40 of 40 people and 100 % of the records",
        "throng init days.csv --for dashboards",
        "min_represented = 0",
    ] {
        assert!(said.err.contains(part), "{part:?} in {}", said.err);
    }
    let said = desk.ends_with(4, &["check", "-c", "days.toml", "--sample", "days.csv"]);
    for part in ["single records (configured)", "series daily", "a consumer can learn:", "a consumer cannot learn:"] {
        assert!(said.out.contains(part), "{part:?} in {}", said.out);
    }
    assert!(!desk.path("days.released.ndjson").exists(), "nothing is kept");
    let config = desk.read("days.toml");
    desk.write("days.toml", config + "\n[release]\nmin_represented = 0\n");
    desk.done(&["check", "-c", "days.toml", "--sample", "days.csv"]);
}

#[test]
fn check_sample_shows_series_rows_and_represented_share() {
    let desk = Desk::judging();
    desk.write("days.csv", days());
    desk.done(&["init", "days.csv"]);
    let said = desk.done(&["check", "-c", "days.toml", "--sample", "days.csv", "--json"]);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(form(&found, "series")["is_configured"], true);
    assert_eq!(form(&found, "fragments")["is_configured"], false);
    assert_eq!(found["series"][0]["name"], "daily");
    let rows = found["series"][0]["lines"].as_u64().expect("a count");
    let run = desk.done(&["run", "-c", "days.toml"]).err;
    assert!(
        run.contains(&format!("series: 40 of 40 people and 100 % of the records represented, in {rows} rows")),
        "{rows} in {run}"
    );
    assert_eq!(desk.read("days.released.ndjson").lines().count() as u64, rows);
    let learn = found["can_learn"].to_string();
    assert!(learn.contains("steps, pulse") && found["cannot_learn"].to_string().contains("ward"), "{found:#}");
}

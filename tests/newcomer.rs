//! Tests the first files of a new user: messages name the true reason and the remedy.

use crate::support::desk::Desk;
use serde_json::Value;

fn days(days: usize, place: impl Fn(usize) -> &'static str) -> String {
    let mut text = String::from("user_id,day,ward,steps,pulse\n");
    for n in 0..days * 40 {
        let (day, person) = (n / 40 + 1, n % 40);
        text += &format!("u-0{person:02},2024-03-{day:02},{},{},{}\n", place(n), n * 7919 % 12000, 55 + n * 31 % 60);
    }
    text
}

fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).expect("a letter of Latin-1")).collect()
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn unreadable_records_count_in_the_represented_share() {
    let desk = Desk::judging();
    desk.write("half.csv", latin1(&days(20, |n| if n % 2 == 0 { "Bern" } else { "Zürich" })));
    desk.done(&["init", "half.csv", "--for", "dashboards", "--directory", "."]);
    let config = desk.read("half.toml").replace("[sink]\n", "[sink]\naudit_file = \"audit.ndjson\"\n");
    desk.write("half.toml", config);
    let counts = "50.0 % of the records (400 of 800; 400 could not be read: see the dead letters)";
    let run = desk.done(&["run", "-c", "half.toml", "--lineage", "lineage.ndjson"]).err;
    assert!(run.contains(&format!("series: 20 of 20 people and {counts} represented")), "{run}");
    let audit: Value = serde_json::from_str(desk.read("audit.ndjson").lines().last().expect("a record")).expect("JSON");
    let of = |name: &str| audit["represented"][name].as_u64();
    assert_eq!(["series_records", "series_represented", "unreadable_records"].map(of), [Some(400); 3], "{audit}");
    let check = desk.done(&["check", "-c", "half.toml", "--sample", "half.csv"]).out;
    assert!(flat(&check).contains(counts) && check.contains("50.0 % (400)"), "{check}");
    let json = desk.done(&["check", "-c", "half.toml", "--sample", "half.csv", "--json"]).out;
    let found: Value = serde_json::from_str(&json).expect("JSON");
    for form in found["forms"].as_array().expect("forms") {
        assert_eq!((&form["records"], &form["unreadable"]), (&800.into(), &400.into()), "{form:#}");
    }
    assert_eq!(found["represented"], 0.5);
    let arguments = ["evaluate", "half.csv", "half.released.ndjson", "-c", "half.toml", "--lineage", "lineage.ndjson"];
    let evaluated = desk.done(&arguments).out;
    assert!(
        evaluated.contains("50.0 % (400 of 800)") && evaluated.contains("400 records could not be read"),
        "{evaluated}"
    );
}

#[test]
fn mostly_unreadable_file_is_refused_with_advice() {
    let desk = Desk::judging();
    desk.write("most.csv", latin1(&days(21, |n| if n % 3 == 0 { "Bern" } else { "Zürich" })));
    for purpose in ["dashboards", "rows"] {
        desk.done(&["init", "most.csv", "--for", purpose, "--name", purpose]);
    }
    let counts = " of 840; 560 could not be read: see the dead letters)";
    let said = desk.ends_with(4, &["run", "-c", "dashboards.toml"]).err;
    for part in [counts, "release.min_represented requires 50.0 %", "correct the records that could not be read"] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    assert!(!desk.path("dashboards.released.ndjson").exists(), "no output is replaced");
    let said = desk.ends_with(4, &["check", "-c", "dashboards.toml", "--sample", "most.csv"]).err;
    assert!(said.contains(counts) && said.contains("correct the records that could not be read"), "{said}");
    // Single records represent too little, so another form is also suggested.
    let said = desk.ends_with(4, &["run", "-c", "rows.toml"]).err;
    assert!(said.contains("of 840; 560 could not be read") && said.contains("[[series]]"), "{said}");
}

#[test]
fn init_with_too_few_records_names_the_reason() {
    let desk = Desk::new();
    // Two records per subject give 40 pairs of consecutive records.
    desk.write("few.csv", days(2, |_| "Bern"));
    for purpose in ["dashboards", "models"] {
        let said = desk.refused(&["init", "few.csv", "--for", purpose]);
        for part in ["too few to measure whether \"day\" changes", "40 pairs", "100 are needed", "--for rows"] {
            assert!(said.contains(part), "{part:?} in {said}");
        }
        assert!(!said.contains("no column holds times"), "{said}");
    }
    let said = desk.done(&["init", "few.csv"]).out;
    assert!(said.contains("purpose: rows") && said.contains("100 are needed"), "{said}");
    assert!(desk.read("few.schema.toml").contains("not measured: 40 pairs"), "{}", desk.read("few.schema.toml"));
    let said = desk.done(&["check", "-c", "few.toml", "--sample", "few.csv"]);
    assert!(!said.err.contains("holds times"), "{}", said.err);
}

#[test]
fn series_over_too_few_days_name_the_required_days() {
    let desk = Desk::judging();
    desk.write("long.csv", days(20, |_| "Bern"));
    desk.write("short.csv", days(3, |_| "Bern"));
    desk.done(&["init", "long.csv", "--for", "dashboards"]);
    let reason = "each person needs values in 4 buckets of a series, but no person has values in more than 3: \
                  give records of a longer time, or shorter buckets (every in [[series]])";
    let refused = desk.refused(&["check", "-c", "long.toml", "--sample", "short.csv"]);
    assert!(refused.contains(reason), "{refused}");
    desk.write("short.toml", desk.read("long.toml").replace("\"long.csv\"", "\"short.csv\""));
    let said = desk.ends_with(4, &["run", "-c", "short.toml"]).err;
    assert!(said.contains(&format!("series: no rows, since {reason}")), "{said}");
    assert!(said.contains(&format!("no output was replaced ({reason})")), "{said}");
    desk.write("short.csv", days(4, |_| "Bern"));
    let said = desk.done(&["run", "-c", "short.toml"]).err;
    assert!(said.contains(" 100 % of the records represented") && !said.contains("no rows, since"), "{said}");
    let twice = days(3, |_| "Bern").lines().skip(1).map(|line| format!("{line}\n{line}\n")).collect::<String>();
    desk.write("twice.csv", format!("user_id,day,ward,steps,pulse\n{twice}"));
    let said = desk.done(&["init", "twice.csv", "--for", "dashboards"]).out;
    assert!(
        said.contains("most people have records of at most 3 days") && said.contains("on 4 days or more"),
        "{said}"
    );
    // Moments count days with a value of every signal.
    desk.write("short.csv", days(3, |_| "Bern"));
    desk.done(&["init", "long.csv", "--for", "models", "--name", "model"]);
    let refused = desk.refused(&["check", "-c", "model.toml", "--sample", "short.csv"]);
    assert!(refused.contains("but no person has values in more than 3"), "{refused}");
}

#[test]
fn best_attack_is_shown_with_interval_and_selection_rule() {
    let desk = Desk::new();
    desk.write("days.csv", days(20, |_| "Bern"));
    desk.done(&["init", "days.csv", "--for", "dashboards"]);
    let check = flat(&desk.done(&["check", "-c", "days.toml", "--sample", "days.csv"]).out);
    let rule = "best attack: the one whose 95 % interval begins furthest above chance";
    for part in [rule, "- series daily (configured): ", "series: ", " given ", "95 % interval", "attacks were tried"] {
        assert!(check.contains(part), "{part:?} in {check}");
    }
    let json = desk.done(&["check", "-c", "days.toml", "--sample", "days.csv", "--json"]).out;
    let found: Value = serde_json::from_str(&json).expect("JSON");
    let best = &found["forms"][0]["best_attack"];
    let (low, high) = (best["interval"][0].as_f64(), best["interval"][1].as_f64());
    assert!(low <= best["rate"].as_f64() && best["rate"].as_f64() <= high && best["given"].is_string(), "{best}");
    let is_above = low.zip(best["chance"].as_f64()).is_some_and(|(low, chance)| low > chance + 1e-9);
    assert_eq!(best["is_above_chance"], is_above, "{best}");
    assert_eq!(check.contains("(configured): none above chance"), !is_above, "{check}");
    desk.done(&["run", "-c", "days.toml", "--lineage", "lineage.ndjson"]);
    let arguments = ["--original", "days.csv", "-c", "days.toml", "--lineage", "lineage.ndjson"];
    let attack = |more: &[&str]| desk.done(&[&["attack", "days.released.ndjson"], &arguments[..], more].concat()).out;
    let yields: Vec<Value> = serde_json::from_str(&attack(&["--json"])).expect("JSON");
    let above = |found: &Value| {
        let is_tried = found["trials"].as_u64() > Some(0);
        is_tried.then(|| found["interval"][0].as_f64().expect("a bound") - found["chance"].as_f64().expect("a share"))
    };
    let most = yields.iter().filter_map(above).fold(f64::NEG_INFINITY, f64::max);
    let first = yields.iter().find(|found| above(found) == Some(most)).expect("an attack");
    let name = format!("{} given {}", first["attack"].as_str().expect("text"), first["given"].as_str().expect("text"));
    let said = attack(&[]);
    let line = said.lines().find(|line| line.starts_with("best attack: ")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains(&name) && line.contains("begins furthest above chance"), "{name} in {line}");
}

#[test]
fn evaluate_of_moments_counts_epochs() {
    let desk = Desk::new();
    desk.write("days.csv", days(20, |_| "Bern"));
    desk.done(&["init", "days.csv", "--for", "models"]);
    desk.done(&["run", "-c", "days.toml", "--lineage", "lineage.ndjson"]);
    let arguments = ["evaluate", "days.csv", "days.released.ndjson", "-c", "days.toml", "--lineage", "lineage.ndjson"];
    let said = desk.done(&arguments).out;
    let rows: Vec<&str> = said.lines().filter(|line| line.starts_with("model ")).collect();
    assert_eq!(rows.len(), 2, "{said}");
    assert!(rows.iter().all(|row| row.contains(" epoch") && !row.contains('?')), "{said}");
    assert!(said.contains("--target SIGNAL"), "{said}");
    desk.done(&[&arguments[..], &["--html", "page.html"]].concat());
    assert!(desk.read("page.html").contains("--target SIGNAL"));
}

#[test]
fn check_explain_describes_series() {
    let desk = Desk::new();
    desk.write("days.csv", days(20, |_| "Bern"));
    for (purpose, rows) in [("dashboards", "one row per 1d and signal"), ("models", "means and covariances")] {
        desk.done(&["init", "days.csv", "--for", purpose, "--name", purpose]);
        let said = flat(&desk.done(&["check", "-c", &format!("{purpose}.toml"), "--explain"]).out);
        for part in [
            rows,
            "steps is released as a statistic of people",
            "day decides the bucket of a record",
            "ward is not released: no series uses it.",
            "user_id is never released",
            "isolates fewer than 5 people",
            "No record of a single person is released",
        ] {
            assert!(said.contains(part), "{part:?} in {said}");
        }
        let said = said.replace("release.fragments", "");
        assert!(!said.contains("fragment") && !said.contains("as fine as"), "{said}");
    }
    let config = desk.read("dashboards.toml").replace("fragments = false", "fragments = true");
    desk.write("both.toml", config);
    let said = flat(&desk.done(&["check", "-c", "both.toml", "--explain"]).out);
    assert!(said.contains("Released in series") && said.contains("as fine as"), "{said}");
}

#[test]
fn audit_reports_a_likely_subject_id() {
    let desk = Desk::new();
    let mut text = String::from("Id,sex,ward\n");
    for n in 0..1200 {
        text += &format!("{},{},{}\n", 700 + n % 40, ["f", "m"][n % 2], ["north", "south"][n / 2 % 2]);
    }
    let rows = text.lines().enumerate().map(|(at, line)| match at {
        0 => format!("{line},steps\n"),
        _ => format!("{line},{}\n", at * 7919 % 700),
    });
    desk.write("days.csv", rows.collect::<String>());
    let said = desk.done(&["audit", "days.csv", "--k", "5"]).out;
    assert!(said.contains("\"Id\" is likely to be the id of a person"), "{said}");
    assert!(said.contains("--subject \"Id\"") && said.contains("do not release it"), "{said}");
    let advice = said.lines().find(|line| line.contains("need no generalization")).expect("advice");
    assert!(!advice.contains("\"Id\"") && advice.contains("\"sex\""), "{advice}");
    let named = desk.done(&["audit", "days.csv", "--k", "5", "--subject", "Id"]).out;
    assert!(!named.contains("likely to be the id"), "{named}");
}

#[test]
fn init_models_keeps_one_of_two_collinear_numbers() {
    let desk = Desk::new();
    let mut text = String::new();
    for (at, line) in days(20, |_| "Bern").lines().enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        text += &match at {
            0 => format!("{line},tracker\n"),
            _ => format!("{line},{}\n", cells[3].parse::<usize>().expect("a number") + at % 3),
        };
    }
    desk.write("days.csv", text);
    desk.done(&["init", "days.csv", "--for", "models"]);
    let config = desk.read("days.toml");
    assert!(config.contains("\nsignals = [\"steps\", \"pulse\"]\n"), "{config}");
    assert!(
        config.contains("# Left out, since \"steps\" nearly determines it: \"tracker\" (correlation 1.000"),
        "{config}"
    );
    desk.done(&["check", "-c", "days.toml"]);
}

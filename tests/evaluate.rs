//! Tests `throng evaluate` and `throng attack` on small releases.

use crate::support;

use serde_json::Value;
use std::fmt::Write as _;
use support::binary::{Outcome, Place, Process};
use support::schemas::schema;

const SCHEMA: &str = schema!("people"; person, hundred "age", text "city", sensitive "illness");

const TWO_GROUPS: &str = "[[group]]\nname = \"who\"\nattributes = [\"age\", \"illness\"]\n\
                          [[group]]\nname = \"where\"\nattributes = [\"city\"]\n";

fn throng(place: &Place, arguments: &str) -> Outcome {
    let mut command = crate::support::binary::throng();
    command.args(arguments.split_whitespace());
    place.surround(&mut command, &[]);
    Process::spawn(command, place.port).wait()
}

fn printed(outcome: &Outcome) -> &str {
    std::str::from_utf8(&outcome.stdout).expect("text")
}

fn json(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    serde_json::from_str(printed(outcome)).unwrap_or_else(|error| panic!("{error}: {}", printed(outcome)))
}

/// Cell losses are stored in single precision.
#[track_caller]
fn close(found: &Value, expected: f64) {
    let number = found.as_f64().unwrap_or_else(|| panic!("{found} is no number"));
    assert!((number - expected).abs() < 1e-6, "{number}, expected {expected}");
}

/// Four subjects in two cities: one age exact, two in a decade, one missing.
fn by_hand() -> Place {
    let place = Place::new(SCHEMA, "");
    place.write(
        "in.ndjson",
        "{\"person\":\"a\",\"age\":31,\"city\":\"Bern\",\"illness\":\"flu\"}\n\
         {\"person\":\"b\",\"age\":32,\"city\":\"Bern\",\"illness\":\"flu\"}\n\
         {\"person\":\"c\",\"age\":58,\"city\":\"Zug\",\"illness\":\"cold\"}\n\
         {\"person\":\"d\",\"age\":90,\"city\":\"Zug\",\"illness\":\"flu\"}\n",
    );
    let label = "30-39";
    place.write(
        "out.ndjson",
        format!(
            "{{\"age\":\"{label}\",\"city\":\"Bern\",\"illness\":\"flu\"}}\n\
             {{\"age\":\"{label}\",\"city\":\"Bern\",\"illness\":\"flu\"}}\n\
             {{\"age\":58,\"city\":\"*\",\"illness\":\"cold\"}}\n"
        ),
    );
    place.write("lineage.ndjson", lineage(&[0, 1, 2]));
    place
}

fn lineage(rows: &[i64]) -> String {
    let mut text = String::new();
    for (line, row) in rows.iter().enumerate() {
        let entry =
            format!(r#"{{"source":["in.ndjson",0,{row}],"batch":1,"group":"all","line":{line},"subject":null}}"#);
        writeln!(text, "{entry}").expect("a string");
    }
    text
}

#[test]
fn evaluate_measures_match_a_count_by_hand() {
    let place = by_hand();
    let report = json(&throng(
        &place,
        "evaluate in.ndjson out.ndjson -c throng.toml --lineage lineage.ndjson --json --queries 20",
    ));
    let quality = &report["quality"];
    // Integers 0 to 100 in tens: (39 − 30) / 100 for two ages, 0 for one; cities 0, 0, 1.
    let age = 2.0 * 9.0 / 100.0;
    close(&quality["loss"], (age + 1.0) / 6.0);
    // The fourth record lost both attributes.
    close(&quality["loss_of_all"], (age + 1.0 + 2.0) / 8.0);
    close(&quality["exact"], 3.0 / 6.0);
    close(&quality["nothing_released"], 0.25);
    // Two decades and one `*` of nine cells.
    close(&quality["distortion"], 3.0 / 9.0);
    let attribute = |name: &str| {
        let all = quality["attributes"].as_array().expect("attributes");
        all.iter().find(|a| a["attribute"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    // One of two ages in the decade is right: one bit. One of two cities behind `*` is right: one bit.
    close(&attribute("age")["bits_hidden"], 2.0 / 3.0);
    close(&attribute("city")["bits_hidden"], 1.0 / 3.0);
    // The decade covers two occurring values, the city two: 1 − 1/2 each.
    close(&attribute("age")["reconstruction_error"], 1.0 / 3.0);
    close(&attribute("city")["reconstruction_error"], 0.5 / 3.0);
    // Before: four ages with a quarter each. After: 1.5, 1.5, 1.5 and 0.5 of 5.
    let divergence = 0.75 * (0.25_f64 / 0.3).log2() + 0.25 * (0.25_f64 / 0.1).log2();
    close(&attribute("age")["kl_divergence"], divergence);
    // Level 1 of 3 for two ages.
    close(&attribute("age")["precision"], (2.0 * 2.0 / 3.0 + 1.0) / 3.0);
    let group = &quality["groups"][0];
    assert_eq!((&group["lines"], &group["classes"]), (&3.into(), &2.into()));
    close(&group["aecs"], 1.5);
    // 2² + 1², and one of four records without a line.
    close(&group["discernibility"], 9.0);
    let risk = &report["risk"][0];
    assert_eq!((&risk["counted"], &risk["smallest_class"]), (&"people".into(), &1.into()));
    close(&risk["prosecutor_average"], (0.5 + 0.5 + 1.0) / 3.0);
    close(&risk["unique_before"], 1.0);
    let words = throng(&place, "evaluate in.ndjson out.ndjson -c throng.toml");
    assert_eq!(words.code, Some(0), "{}", words.stderr);
    for line in ["mean loss", "pairwise information", "range queries over 1 attribute", "smallest", "bits hidden"] {
        assert!(printed(&words).contains(line), "{line:?} is not in {}", printed(&words));
    }
    for value in ["Bern", "Zug", "flu", "cold", "58"] {
        assert!(!printed(&words).contains(value), "a value is printed: {}", printed(&words));
    }
}

#[test]
fn evaluate_counts_exchanged_values_as_falsified() {
    let place = by_hand();
    // The lines of the first and the third record are exchanged.
    place.write("lineage.ndjson", lineage(&[2, 1, 0]));
    let arguments = "evaluate in.ndjson out.ndjson -c throng.toml --lineage lineage.ndjson --json";
    let report = json(&throng(&place, arguments));
    let falsified: u64 = report["quality"]["attributes"]
        .as_array()
        .expect("attributes")
        .iter()
        .filter_map(|a| a["falsified"].as_u64())
        .sum();
    // Two ages, one city (the other is `*`), two illnesses.
    assert_eq!(falsified, 5, "{report:#}");
}

/// They do not count as one class of unknown values.
#[test]
fn evaluate_finds_identifying_values() {
    let place = by_hand();
    let lines = place.lines("out.ndjson");
    let with = |more: &dyn Fn(usize) -> String| {
        let doctored =
            lines.iter().enumerate().map(|(n, line)| line.replacen('{', &format!("{{{}", more(n)), 1) + "\n");
        place.write("leak.ndjson", doctored.collect::<String>());
    };
    with(&|n| format!("\"id\":\"p{n}\","));
    for command in ["evaluate in.ndjson leak.ndjson", "attack leak.ndjson --original in.ndjson"] {
        let outcome = throng(&place, &format!("{command} -c throng.toml --lineage lineage.ndjson"));
        assert_eq!(outcome.code, Some(1), "{command}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("leak.ndjson") && !outcome.stderr.contains("p0"), "{}", outcome.stderr);
    }
    let named: String = lines
        .iter()
        .enumerate()
        .map(|(n, line)| line.replace("\"Bern\"", &format!("\"Bern p{n}\"")).replace("\"*\"", "\"nowhere\"") + "\n")
        .collect();
    place.write("named.ndjson", named);
    let report =
        json(&throng(&place, "evaluate in.ndjson named.ndjson -c throng.toml --lineage lineage.ndjson --json"));
    assert_eq!(report["risk"][0]["smallest_class"], 1, "{report:#}");
    // A file with a similar name is not measured instead.
    place.write("named.all.ndjson", place.read("out.ndjson"));
    let again = json(&throng(&place, "evaluate in.ndjson named.ndjson -c throng.toml --lineage lineage.ndjson --json"));
    assert_eq!(again["risk"], report["risk"]);
}

#[test]
fn evaluate_refuses_mismatched_files() {
    let place = by_hand();
    let refused = |arguments: &str, says: &[&str]| {
        let outcome = throng(&place, arguments);
        assert_ne!(outcome.code, Some(0), "{arguments}");
        for what in says {
            assert!(outcome.stderr.contains(what), "{what:?} is not in {}", outcome.stderr);
        }
        assert!(!outcome.stderr.contains("Bern"), "no value: {}", outcome.stderr);
    };
    let evaluate = "evaluate in.ndjson out.ndjson -c throng.toml --lineage";
    place.write("short.ndjson", lineage(&[0, 1]));
    refused(&format!("{evaluate} short.ndjson"), &["short.ndjson", "2 entries", "3 lines"]);
    place.write("foreign.ndjson", lineage(&[0, 1, 77]));
    refused(&format!("{evaluate} foreign.ndjson"), &["foreign.ndjson", "line 3", "not in the original"]);
    place.write("text.ndjson", "Bern\n");
    refused(&format!("{evaluate} text.ndjson"), &["text.ndjson", "line 1", "not a valid lineage entry"]);
    place.write("broken.ndjson", "{\"age\":\n");
    refused("evaluate in.ndjson broken.ndjson -c throng.toml", &["broken.ndjson"]);
    refused("evaluate in.ndjson missing.ndjson -c throng.toml", &["missing.ndjson"]);
    refused("evaluate missing.ndjson out.ndjson -c throng.toml", &["missing.ndjson"]);
    place.write("empty.ndjson", "");
    refused("evaluate empty.ndjson out.ndjson -c throng.toml", &["empty.ndjson"]);
    refused("evaluate in.ndjson out.ndjson -c throng.toml --report in.ndjson", &["in.ndjson"]);
}

fn records(people: u64, each: u64) -> String {
    let mut text = String::new();
    for record in 0..people * each {
        let (person, turn) = (record % people, record / people);
        let mixed = (person * 2_654_435_761 + 12345) >> 7;
        let (age, city) = (20 + mixed % 60, ["Bern", "Zug", "Chur", "Thun"][(mixed / 64 % 4) as usize]);
        let illness = ["flu", "cold", "none"][((mixed / 512 + turn) % 3) as usize];
        writeln!(text, r#"{{"person":"p{person}","age":{age},"city":"{city}","illness":"{illness}"}}"#)
            .expect("a string");
    }
    text
}

fn yields(place: &Place, arguments: &str) -> Vec<Value> {
    let outcome = throng(
        place,
        &format!("attack out.ndjson --original in.ndjson --lineage lineage.ndjson -c throng.toml --json {arguments}"),
    );
    json(&outcome).as_array().expect("yields").clone()
}

#[test]
fn attack_on_unprotected_release_finds_most_lines() {
    let place = Place::new(SCHEMA, "");
    let raw = records(200, 1);
    place.write("in.ndjson", &raw);
    let line = |line: &str| format!("{{{}\n", line.split_once(',').expect("a record").1);
    place.write("out.ndjson", raw.lines().map(line).collect::<String>());
    place.write("lineage.ndjson", lineage(&(0..200).collect::<Vec<_>>()));
    let found = yields(&place, "--known 1");
    let all = found.iter().find(|y| y["given"].as_str().is_some_and(|g| g.starts_with("2 known"))).expect("all known");
    let rate = all["rate"].as_f64().expect("a rate");
    assert!(rate > 0.6, "240 combinations, 200 people: {rate}");
    let attack = "attack out.ndjson --original in.ndjson --lineage lineage.ndjson -c throng.toml --fail-above";
    let outcome = throng(&place, &format!("{attack} 0.5"));
    assert_eq!(outcome.code, Some(4), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("linkage"), "{}", outcome.stderr);
    assert_eq!(throng(&place, &format!("{attack} 1")).code, Some(0));
}

#[test]
fn evaluate_confirms_the_release_and_report_of_the_daemon() {
    let place = Place::new(SCHEMA, TWO_GROUPS);
    place.write("in.ndjson", records(120, 5));
    let defaults = [("BATCH__MAX_RECORDS", "150"), ("PRIVACY__MAX_HOLD_BATCHES", "0")];
    let outcome = Process::spawn(place.command(&defaults, &["--lineage", "lineage.ndjson"]), place.port).wait();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    // «mean loss 0.1501 over the present quasi cells of this run»
    let said = outcome.stderr.lines().find_map(|line| line.strip_prefix("mean loss "));
    let said: f64 = said.and_then(|rest| rest.split(' ').next()?.parse().ok()).expect("the run's loss");
    let report = json(&throng(
        &place,
        "evaluate in.ndjson out.ndjson -c throng.toml --lineage lineage.ndjson --json --queries 50",
    ));
    let quality = &report["quality"];
    let measured = quality["loss_of_all"].as_f64().expect("a loss");
    assert!((measured - said).abs() < 0.01, "{measured} measured, {said} said");
    for risk in report["risk"].as_array().expect("groups") {
        assert!(risk["smallest_class_in_batch"].as_u64().is_some_and(|smallest| smallest >= 3), "{risk}");
        close(&risk["below_k"], 0.0);
    }
    for attribute in quality["attributes"].as_array().expect("attributes") {
        assert_eq!(attribute["falsified"], 0, "{attribute}");
    }
    let found = yields(&place, "--known 2 --targets 300");
    let of = |attack: &str| found.iter().filter(|y| y["attack"] == attack).cloned().collect::<Vec<_>>();
    assert_eq!(of("linkage").len(), 2, "{found:#?}");
    for linkage in of("linkage") {
        let (low, rate) = (linkage["interval"][0].as_f64(), linkage["rate"].as_f64());
        assert!(low.is_some_and(|low| low <= 1.0 / 3.0) && rate.is_some_and(|rate| rate > 0.0), "{linkage}");
    }
    let order = &of("joining by order")[0];
    let (rate, chance) = (order["rate"].as_f64().expect("a rate"), order["chance"].as_f64().expect("a chance"));
    assert!(rate <= (1.5 * chance).max(1.0 / 3.0), "{order}");
    assert!(of("homogeneity")[0]["trials"].as_u64().is_some_and(|trials| trials > 0), "{found:#?}");
}

fn verified(place: &Place, arguments: &str) -> (Option<i32>, Value) {
    let outcome = throng(place, &format!("verify-release out.ndjson -c throng.toml --json {arguments}"));
    let report = serde_json::from_str(printed(&outcome)).unwrap_or_else(|_| panic!("{}", outcome.stderr));
    (outcome.code, report)
}

fn broken(report: &Value) -> Vec<String> {
    let all = report["broken"].as_array().expect("findings");
    all.iter().map(|b| format!("{}: {}", b["line"], b["promise"].as_str().expect("words"))).collect()
}

/// Six lines of six subjects in one batch, sorted by their bytes.
fn released(lines: &[&str]) -> Place {
    let place = Place::new(SCHEMA, "");
    place.write("out.ndjson", lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    let entry = |line: usize| {
        format!(
            "{{\"source\":[\"in\",0,{line}],\"batch\":1,\"group\":\"all\",\"line\":{line},\"subject\":\"{line:02x}\"}}\n"
        )
    };
    place.write("lineage.ndjson", (0..lines.len()).map(entry).collect::<String>());
    place
}

const SOUND: &str = "{\"age\":\"30-39\",\"city\":\"Bern\",\"illness\":\"flu\"}";

#[test]
fn verify_release_finds_manipulated_lines() {
    let place = released(&[SOUND; 6]);
    for arguments in ["", "--lineage lineage.ndjson"] {
        let (code, report) = verified(&place, arguments);
        assert_eq!(
            (code, &report["kept"], report["groups"][0]["smallest_class"].as_u64()),
            (Some(0), &true.into(), Some(6))
        );
    }
    let words = throng(&place, "verify-release out.ndjson -c throng.toml");
    assert!(printed(&words).contains("no violations found"), "{}", printed(&words));
    let doctored = |last: &str, says: &[&str]| {
        let mut lines = vec![SOUND; 6];
        lines.push(last);
        let place = released(&lines);
        let (code, report) = verified(&place, "--lineage lineage.ndjson");
        assert_eq!(code, Some(4), "{last}");
        for says in says {
            assert!(broken(&report).iter().any(|b| b.contains(says)), "{says:?} is not in {:?}", broken(&report));
        }
        let words = throng(&place, "verify-release out.ndjson -c throng.toml --lineage lineage.ndjson");
        assert!(words.stderr.contains("violation"), "{}", words.stderr);
        for value in ["Zug", "Bern", "flu", "canary", "30-39"] {
            let all = format!("{}{}{}", printed(&words), words.stderr, report);
            assert!(!all.contains(value), "{value} is printed: {all}");
        }
    };
    let class = "7: a class has the required size in the release";
    doctored("{\"age\":\"30-39\",\"city\":\"Zug\",\"illness\":\"flu\"}", &[class, "required size in its batch"]);
    doctored("{\"age\":\"30-39\",\"city\":\"Bern\",\"illness\":\"canary\"}", &["7: a sensitive value", "sorted"]);
    doctored("{\"age\":\"30-40\",\"city\":\"Bern\",\"illness\":\"flu\"}", &["7: a cell is a value"]);
    doctored("{\"age\":*,\"city\":\"Bern\",\"illness\":\"flu\"}", &["7: a line is a JSON object"]);
    doctored("{\"age\":\"*\",\"city\":\"*\",\"illness\":\"*\"}", &["7: a line is not empty"]);
    doctored(
        "{\"age\":\"30-39\",\"city\":\"Bern\",\"illness\":\"flu\",\"canary\":1}",
        &["7: a line has attributes of the schema only"],
    );
    doctored(
        "{\"person\":\"canary\",\"age\":\"30-39\",\"city\":\"Bern\",\"illness\":\"flu\"}",
        &["7: identifiers and subjects are not released"],
    );
    doctored("{\"city\":\"Bern\",\"age\":\"30-39\",\"illness\":\"flu\"}", &["7: attributes are in the order"]);
}

#[test]
fn attacks_on_the_release_stay_below_the_promised_bounds() {
    let place = Place::new(SCHEMA, TWO_GROUPS);
    place.write("in.ndjson", records(150, 8));
    let settings = [("PRIVACY__K", "3"), ("BATCH__MAX_RECORDS", "60")];
    let outcome = Process::spawn(place.command(&settings, &["--lineage", "lineage.ndjson"]), place.port).wait();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let found = yields(&place, "--known 2 --targets 300");
    for attack in [
        "linkage",
        "arrival",
        "joining by order",
        "joining by time",
        "joining by counts",
        "joining by values",
        "joining by covariance",
        "presence",
        "sequences",
        "composition",
        "exclusion",
        "downcoding",
        "homogeneity",
        "minimality",
    ] {
        assert!(found.iter().any(|y| y["attack"] == attack), "{attack} is missing: {found:#?}");
    }
    for promised in found.iter().filter(|y| y["trials"] != 0 && !y["bound"].is_null()) {
        let of = |key: &str| promised[key].as_f64().expect("a number");
        let low = promised["interval"][0].as_f64().expect("a number");
        assert!(low <= of("bound").max(1.5 * of("chance")), "{promised}");
    }
    for arguments in ["", "--lineage lineage.ndjson"] {
        let outcome = throng(&place, &format!("verify-release out.ndjson -c throng.toml {arguments}"));
        assert_eq!(outcome.code, Some(0), "{}{}", printed(&outcome), outcome.stderr);
    }
}

#[test]
fn audit_links_numbers_only_with_their_units() {
    let place = Place::new(SCHEMA, "");
    let attribute = |name: &str, keys: &str| format!("[[attribute]]\nname = \"{name}\"\n{keys}\n");
    let schema = attribute("code", "type = \"string\"\nrole = \"identifier\"")
        + &attribute("warmth", "type = \"float\"\nunit = \"Cel\"\nunit_from = \"code\"");
    place.write("units.toml", format!("name = \"units\"\n{schema}"));
    place.write("published.csv", "code,warmth\nCel,20\nCel,25\nCel,37\n");
    place.write("known.csv", "warmth,code\n98.6,[degF]\n77,[degF]\n0,[degF]\n");
    let report = json(&throng(&place, "audit published.csv --schema units.toml --k 2 --link known.csv --json"));
    let numbers = &report["link"]["combinations"][0];
    assert_eq!((&numbers["attributes"], &numbers["records"]), (&["warmth"][..].into(), &2.into()), "{numbers}");
    place.write("bare.csv", "warmth\n37\n25\n");
    let refused = throng(&place, "audit published.csv --schema units.toml --k 2 --link bare.csv");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("\"warmth\" needs the column \"code\""), "{}", refused.stderr);
}

#[test]
fn audit_links_a_published_file_to_known_records() {
    let place = Place::new(SCHEMA, "");
    place.write("published.csv", "age,city,illness\n31,Bern,flu\n32,Bern,flu\n58,Zug,cold\n90,Zug,flu\n");
    place.write("known.csv", "name,age,city\ncanary,31,Bern\nanother,77,Zug\n");
    let report = json(&throng(&place, "audit published.csv --k 2 --link known.csv --json"));
    let link = &report["link"];
    assert_eq!(
        (&link["known"], &link["all"]["records"], &link["all"]["one_to_one"]),
        (&2.into(), &1.into(), &1.into())
    );
    assert_eq!(link["combinations"][0]["attributes"][0], "age", "{link}");
    let words = throng(&place, "audit published.csv --k 2 --link known.csv");
    assert!(printed(&words).contains("1 one to one"), "{}", printed(&words));
    for value in ["canary", "Bern", "31"] {
        assert!(!printed(&words).contains(value), "{value}: {}", printed(&words));
    }
    place.write("other.csv", "colour\nred\n");
    let refused = throng(&place, "audit published.csv --k 2 --link other.csv");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

#[test]
fn evaluate_target_compares_learning_before_and_after() {
    let place = Place::new(SCHEMA, TWO_GROUPS);
    // The age determines the illness; the city is independent of it.
    let raw: String = (0..600_u64)
        .map(|person| {
            let age = person * 7 % 60 + 20;
            let (city, illness) = (["Bern", "Zug"][(person % 2) as usize], if age < 50 { "flu" } else { "cold" });
            format!("{{\"person\":\"p{person}\",\"age\":{age},\"city\":\"{city}\",\"illness\":\"{illness}\"}}\n")
        })
        .collect();
    place.write("in.ndjson", raw);
    let settings = [("PRIVACY__K", "3"), ("BATCH__MAX_RECORDS", "200"), ("PRIVACY__MAX_DELAY", "0s")];
    let outcome = Process::spawn(place.command(&settings, &["--lineage", "lineage.ndjson"]), place.port).wait();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let evaluate = "evaluate in.ndjson out.ndjson -c throng.toml --queries 10 --lineage lineage.ndjson --target illness --target city";
    let report = json(&throng(&place, &format!("{evaluate} --json --html page.html")));
    let (illness, city) = (&report["learning"][0], &report["learning"][1]);
    assert_eq!(
        (&illness["group"], &illness["features"][0], &illness["leaks"]),
        (&"who".into(), &"age".into(), &false.into())
    );
    let accuracy = |of: &Value| of["accuracy"].as_f64().unwrap_or_else(|| panic!("{of}"));
    assert!(accuracy(&illness["before"]) > 0.95 && accuracy(&illness["after"]) > 0.85, "{illness}");
    assert!(city["after"].is_null() && city["before"].is_null() && !city["whole"].is_null(), "it leaves alone: {city}");
    let page = std::fs::read_to_string(place.path("page.html")).expect("a page");
    for part in ["Prediction of illness", "Pairwise information", "Content-Security-Policy", "</html>"] {
        assert!(page.contains(part), "{part:?} is not in the page");
    }
    for value in ["Bern", "Zug", "flu", "cold", "<script", "http:", "https:"] {
        assert!(!page.contains(value), "{value} is on the page");
    }
    let words = throng(&place, evaluate);
    assert!(printed(&words).contains("after / before"), "{}", printed(&words));
    let refused = throng(&place, "evaluate in.ndjson out.ndjson -c throng.toml --target person");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("no group releases an attribute of this name"), "{}", refused.stderr);
}

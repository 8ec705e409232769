//! Checks reports against numbers counted by hand or by definition.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::audit::place::{CENSUS, Place, sets};

#[test]
fn audit_of_census_matches_a_count_by_hand() {
    let place = Place::with("census.csv", CENSUS);
    let report = place.report("census.csv --k 3");
    assert_eq!((&report["rows"], &report["subjects"], &report["complete"]), (&12.into(), &Value::Null, &true.into()));
    // (60, Male) ×2 and (60, Female) ×1; (Male, Doctorate) ×2, (Female, Doctorate) ×4. Every other pair: at least
    // three.
    assert_eq!(sets(&report, "minimal_qids"), ["age+sex", "education+sex"]);
    assert_eq!(sets(&report, "maximal_non_qids"), ["race+sex", "age+education+race"]);
    // Class sizes of all four columns: 3, 3, 2, 1, 3.
    let risk = &report["risk"];
    assert_eq!((&risk["attributes"], &risk["classes"], &risk["smallest_class"]), (&4.into(), &5.into(), &1.into()));
    assert_eq!(
        (&risk["highest"], &risk["records_below_k"], &risk["share_below_k"]),
        (&1.0.into(), &3.into(), &0.25.into())
    );
    let average = risk["average"].as_f64().expect("a number");
    assert!((average - 5.0 / 12.0).abs() < 1e-12, "five classes over twelve records: {average}");
    let bins = serde_json::json!([
        {"from": 1, "to": 1, "classes": 1, "records": 1},
        {"from": 2, "to": 2, "classes": 1, "records": 2},
        {"from": 3, "to": 3, "classes": 3, "records": 9},
    ]);
    assert_eq!(risk["distribution"], bins);
    // No record by one column; the two men by (60, Male) or (Male, Doctorate), the woman by (60, Female).
    assert_eq!(
        risk["reach"],
        serde_json::json!([{"size": 1, "records": 0, "people": 0}, {"size": 2, "records": 3, "people": 3}])
    );
    assert_eq!(risk["reach_exhausted"], true);
    let column = |name: &str| -> Value {
        let all = report["attributes"].as_array().expect("a list");
        all.iter().find(|a| a["name"] == name).expect("the column").clone()
    };
    let weights = |name: &str| {
        let c = column(name);
        (c["involvement"].clone(), c["minimal_qids"].clone(), c["records_at_risk"].clone(), c["smallest_class"].clone())
    };
    assert_eq!(weights("sex"), (0.5.into(), 2.into(), 3.into(), 5.into()));
    assert_eq!(weights("age"), (0.25.into(), 1.into(), 3.into(), 3.into()));
    assert_eq!(weights("education"), (0.25.into(), 1.into(), 2.into(), 6.into()));
    assert_eq!(weights("race"), (0.0.into(), 0.into(), 0.into(), 12.into()));
    // A half and two quarters: one and a half bits.
    let entropy = column("age")["entropy"].as_f64().expect("a number");
    assert!((entropy - 1.5 * 2_f64.ln()).abs() < 1e-12, "{entropy}");
    let counts = |qid: &Value| ["classes_below_k", "records_below_k", "smallest_class"].map(|key| qid[key].as_u64());
    let qids: Vec<_> = report["qids"].as_array().expect("a list").iter().map(counts).collect();
    assert_eq!(qids, [[Some(2), Some(3), Some(1)], [Some(1), Some(2), Some(2)]]);
}

#[test]
fn audit_is_equal_for_every_strategy_and_format() {
    let place = Place::with("census.csv", CENSUS);
    let mut lines = String::new();
    for row in CENSUS.lines().skip(1) {
        let cells: Vec<&str> = row.split(';').collect();
        lines += &format!(
            "{{\"race\":\"{}\",\"age\":{},\"sex\":\"{}\",\"education\":\"{}\"}}\n",
            cells[3], cells[0], cells[1], cells[2]
        );
    }
    place.write("census.ndjson", &lines);
    let reference = place.report("census.csv --k 3 --strategy exhaustive --threads 1");
    for words in [
        "census.csv --k 3",
        "census.csv --k 3 --strategy greedy --threads 3",
        "census.csv --k 3 --backend cpu --separator ;",
        "census.ndjson --k 3 --strategy border",
    ] {
        let report = place.report(words);
        for key in ["rows", "standalone_identifiers", "minimal_qids", "maximal_non_qids", "risk", "attributes", "qids"]
        {
            assert_eq!(report[key], reference[key], "{key} of {words}");
        }
    }
    for (words, input) in [("- --k 3 --format csv --separator ;", CENSUS), ("- --k 3", &lines)] {
        let report = place.fed(&format!("{words} --json"), input.as_bytes()).json();
        assert_eq!(report["minimal_qids"], reference["minimal_qids"]);
        assert_eq!(report["input"], "standard input");
    }
}

#[test]
fn audit_report_has_all_keys() {
    let place = Place::with("t.csv", "who,mail,city\na,a@example.org,Zug\nb,b@example.org,Bern\nc,c@example.org,Zug\n");
    let mut report = place.report("t.csv --k 2 --subject who --threads 1 --show-values");
    let report = report.as_object_mut().expect("an object");
    for key in ["seconds", "timings", "evaluated", "pruned"] {
        assert!(report.remove(key).is_some(), "{key}");
    }
    for (index, keys) in [(0, ["entropy", "relative_entropy"]), (1, ["entropy", "relative_entropy"])] {
        for key in keys {
            assert!(report["attributes"][index].as_object_mut().expect("a column").remove(key).is_some(), "{key}");
        }
    }
    let city = serde_json::json!({
        "name": "city", "role": null, "searched": true, "distinct": 2, "missing": 0, "cardinality": 2.0 / 3.0,
        "identifier": [], "safe_harbor": "geography", "smallest_class": 1, "records_below_k": 1, "minimal_qids": 1,
        "involvement": 1.0, "smallest_qid": 1, "records_at_risk": 1
    });
    let mail = serde_json::json!({
        "name": "mail", "role": null, "searched": false, "distinct": 3, "missing": 0, "cardinality": 1.0,
        "identifier": [
            {"kind": "shape", "shape": "email", "share": 1.0}, {"kind": "injective"}, {"kind": "names_subject"}
        ],
        "safe_harbor": "email", "smallest_class": 1, "records_below_k": 3, "minimal_qids": 0, "involvement": 0.0,
        "smallest_qid": null, "records_at_risk": 0
    });
    let expected = serde_json::json!({
        "input": "t.csv", "rows": 3, "subjects": 3, "subject": "who", "k": 2, "singletons": "include",
        "strategy": "border", "backend": "cpu", "threads": 1, "complete": true,
        "standalone_identifiers": ["mail"], "minimal_qids": [["city"]], "maximal_non_qids": [],
        "risk": {
            "attributes": 1, "classes": 2, "smallest_class": 1, "highest": 1.0, "average": 2.0 / 3.0,
            "records_unique": 1, "records_below_k": 1, "share_below_k": 1.0 / 3.0, "people_below_k": 1,
            "share_people_below_k": 1.0 / 3.0,
            "distribution": [
                {"from": 1, "to": 1, "classes": 1, "records": 1}, {"from": 2, "to": 2, "classes": 1, "records": 2}
            ],
            "reach": [{"size": 1, "records": 1, "people": 1}], "reach_exhausted": true
        },
        "attributes": [city, mail],
        "qids": [{
            "attributes": ["city"], "smallest_class": 1, "highest": 1.0, "classes_below_k": 1, "records_below_k": 1,
            "share_below_k": 1.0 / 3.0, "people_below_k": 1, "example": ["Bern"]
        }],
        "qids_measured": 1, "inferences": [], "inference_pairs": 0, "inference_pairs_of": 0, "masked_cells": 0, "without_subject": 0, "unreadable": {}, "absent": [], "arrays": [], "unknown_cells": 0,
        "notes": []
    });
    assert_eq!(serde_json::json!(report), expected);
}

#[test]
fn audit_applies_types_rounding_and_roles() {
    let place = Place::with(
        "schema.toml",
        r#"
name = "t"
[[attribute]]
name = "person"
type = "string"
role = "subject"
[[attribute]]
name = "badge"
type = "string"
role = "identifier"
[[attribute]]
name = "weight"
type = "float"
round = 10
[[attribute]]
name = "firmware"
type = "string"
role = "insensitive"
[[attribute]]
name = "steps"
type = "integer"
[attribute.hierarchy]
kind = "intervals"
min = 0
max = 100
widths = [50]
"#,
    );
    place.write(
        "t.csv",
        "person,badge,weight,firmware,steps,more\na,x,71,1,10,?\nb,x,69.5,2,20,?\nc,x,72,3,30,?\n,x,5,9,99,?\nd,y,140,4,40,?\n",
    );
    let report = place.report("t.csv --schema schema.toml --k 2");
    assert_eq!((&report["rows"], &report["subjects"], &report["without_subject"]), (&4.into(), &4.into(), &1.into()));
    assert_eq!(report["standalone_identifiers"], serde_json::json!(["badge", "firmware"]));
    assert_eq!(
        sets(&report, "minimal_qids"),
        ["steps", "weight"],
        "injective, but recodable, so searched; 70 ×3 and 140"
    );
    let searched: BTreeMap<&str, bool> = report["attributes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|a| (a["name"].as_str().expect("a name"), a["searched"].as_bool().expect("a truth")))
        .collect();
    assert_eq!(searched, BTreeMap::from([("badge", false), ("firmware", false), ("steps", true), ("weight", true)]));
    assert_eq!(report["unknown_cells"], 5);
    let other = place.report("t.csv --schema schema.toml --k 2 --subject badge");
    assert_eq!(other["standalone_identifiers"], serde_json::json!(["firmware", "person"]), "it still names people");
}

#[test]
fn audit_time_limit_is_reported() {
    let rows: String = (0..40_000_u64)
        .map(|i| {
            let cells: Vec<String> =
                (0..24_u64).map(|c| (i.wrapping_mul(2 * c + 7919) >> (c % 7) & 3).to_string()).collect();
            format!("{}\n", cells.join(","))
        })
        .collect();
    let header: Vec<String> = (0..24).map(|c| format!("c{c}")).collect();
    let place = Place::with("wide.csv", format!("{}\n{rows}", header.join(",")));
    let report = place.report("wide.csv --k 5 --strategy exhaustive --max-seconds 3");
    assert_eq!(report["complete"], false);
    let notes = report["notes"].to_string();
    assert!(notes.contains("(maximal non-QID) as unsafe"), "{notes}");
    let text = place.audit("wide.csv --k 5 --strategy exhaustive --max-seconds 3 --html page.html");
    assert!(text.stdout.contains("cut short"), "{}", text.stdout);
    assert!(place.read("page.html").contains("The search was cut short"));
}

/// Census excerpt, with all 511 sets by definition.
#[test]
#[ignore = "needs the data folder that THRONG_TEST_DATA names"]
fn real_data_audit_of_adult_equals_a_recount() {
    let data = std::env::var_os("THRONG_TEST_DATA").expect("THRONG_TEST_DATA is set");
    let path = Path::new(&data).join("adult/adult.csv");
    let text = std::fs::read_to_string(&path).expect("the data");
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|line| line.split(';').collect()).collect();
    let header: Vec<&str> = text.lines().next().expect("a header").split(';').collect();
    let place = Place::new();
    let report = place.report(&format!("{} --k 5", path.display()));
    let below = |set: &[usize]| -> u64 {
        let mut classes: BTreeMap<Vec<&str>, u64> = BTreeMap::new();
        for row in &rows {
            *classes.entry(set.iter().map(|c| row[*c]).collect()).or_default() += 1;
        }
        classes.values().filter(|n| **n < 5).sum()
    };
    assert_eq!(report["rows"], rows.len());
    assert_eq!(report["risk"]["records_below_k"], below(&(0..header.len()).collect::<Vec<_>>()));
    let mut minimal: Vec<Vec<usize>> = Vec::new();
    let mut subsets: Vec<Vec<usize>> =
        (1_u32..1 << header.len()).map(|bits| (0..header.len()).filter(|c| bits >> c & 1 == 1).collect()).collect();
    subsets.sort_by_key(Vec::len);
    for set in subsets {
        if !minimal.iter().any(|qid| qid.iter().all(|c| set.contains(c))) && below(&set) > 0 {
            minimal.push(set);
        }
    }
    let mut expected: Vec<Vec<&str>> = minimal.iter().map(|set| set.iter().map(|c| header[*c]).collect()).collect();
    for set in &mut expected {
        set.sort_unstable();
    }
    expected.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    assert_eq!(report["minimal_qids"], serde_json::json!(expected));
}

/// Four subjects per city. The second record of a subject has another job.
const CITIES: &str = "who,zip,city,job
a,8001,Zug-am-See,smith
b,8001,Zug-am-See,smith
c,8002,Zug-am-See,smith
d,8002,Zug-am-See,baker
a,8001,Zug-am-See,baker
e,3011,Bern-an-der-Aare,clerk
f,3011,Bern-an-der-Aare,clerk
g,3011,Bern-an-der-Aare,smith
h,3011,Bern-an-der-Aare,smith
e,3011,Bern-an-der-Aare,clerk
e,3011,Bern-an-der-Aare,clerk
";

#[test]
fn audit_inferences_are_counted_in_subjects() {
    let place = Place::with("t.csv", CITIES);
    let report = place.report("t.csv --k 3 --subject who");
    let found = report["inferences"].as_array().expect("a list");
    let by_hand = |from: &str, to: &str, records: u64, people: u64, given: u64, expected: f64| {
        let text = serde_json::json!({
            "from": from, "to": to, "records": records, "people": people, "given": given,
            "probability": records as f64 / given as f64, "expected": expected
        })
        .to_string();
        // Numbers pass through text in the report.
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")
    };
    // 3011 has four subjects and six records, 8001 and 8002 two subjects each. Three subjects of Zug are smiths. The
    // clerks of Bern are two subjects with more records.
    let expected = [
        by_hand("city", "zip", 6, 4, 6, 6.0 / 11.0),
        by_hand("zip", "city", 6, 4, 6, 6.0 / 11.0),
        by_hand("city", "job", 3, 3, 5, 5.0 / 11.0),
        by_hand("job", "city", 3, 3, 5, 5.0 / 11.0),
    ];
    assert_eq!(found, &expected);
    assert_eq!(
        (&report["inference_pairs"], &report["inference_pairs_of"]),
        (&serde_json::json!(3), &serde_json::json!(3))
    );
    // Counted in records, the clerks suffice.
    let records = place.report("t.csv --k 3 --columns zip,city,job");
    let surest = |report: &serde_json::Value| {
        let all = report["inferences"].as_array().expect("a list").clone();
        all.into_iter().find(|i| i["from"] == "job" && i["to"] == "city").expect("an inference")
    };
    assert_eq!(
        (surest(&records)["probability"].as_f64(), &surest(&records)["people"]),
        (Some(1.0), &serde_json::Value::Null)
    );
}

#[test]
fn audit_inferences_show_values_only_on_request() {
    let place = Place::with("t.csv", CITIES);
    let values = ["Zug-am-See", "Bern-an-der-Aare", "3011", "smith"];
    for words in ["t.csv --k 3 --subject who --html page.html", "t.csv --k 3 --subject who --json"] {
        let silent = place.audit(words);
        assert!(
            silent.stdout.contains("zip") && values.iter().all(|value| !silent.stdout.contains(value)),
            "{}",
            silent.stdout
        );
    }
    let text = place.audit("t.csv --k 3 --subject who").stdout;
    assert!(text.contains("Inferences between columns") && text.contains("city → zip"), "{text}");
    assert!(values.iter().all(|value| !place.read("page.html").contains(value)));
    let told = place.report("t.csv --k 3 --subject who --show-values");
    assert_eq!(told["inferences"][1]["values"], serde_json::json!(["3011", "Bern-an-der-Aare"]));
    let text = place.audit("t.csv --k 3 --subject who --show-values --html page.html").stdout;
    assert!(text.contains("3011 → Bern-an-der-Aare"), "{text}");
    assert!(place.read("page.html").contains("3011 → Bern-an-der-Aare"));
    // No inference has the support of five.
    assert_eq!(place.report("t.csv --k 5 --subject who --show-values")["inferences"], serde_json::json!([]));
}

#[test]
fn audit_riskiest_records_match_a_count_by_hand() {
    let place = Place::with("census.csv", CENSUS);
    let combination = |names: [&str; 2]| serde_json::json!(names);
    let (age, education) = (combination(["age", "sex"]), combination(["education", "sex"]));
    // The men of 60 by age or by doctorate, (4 − 2)·(4 − 3) each; the woman of 60 by her age.
    let record = |number: u64, score: f64, combinations: &[&Value]| {
        serde_json::json!({
            "record": number, "score": score, "combinations": combinations, "combinations_of": combinations.len()
        })
    };
    let all = [record(7, 4.0, &[&age, &education]), record(8, 4.0, &[&age, &education]), record(9, 2.0, &[&age])];
    for (rows, listed) in [(1, &all[..1]), (3, &all[..]), (100, &all[..])] {
        let report = place.report(&format!("census.csv --k 3 --rows {rows}"));
        assert_eq!(
            report["riskiest"],
            serde_json::json!({"largest": 4, "complete": true, "at_risk": 3, "records": listed})
        );
    }
    let outcome = place.audit("census.csv --k 3 --rows 3 --html page.html");
    let page = place.read("page.html");
    assert!(outcome.stdout.contains("Riskiest records") && outcome.stdout.contains("education + sex"));
    assert!(page.contains("The riskiest records") && page.contains("--rows 3"));
    assert!(place.report("census.csv --k 3").get("riskiest").is_none());
    assert!(!place.audit("census.csv --k 3").stdout.contains("Riskiest"));
    assert_eq!(place.audit("census.csv --k 3 --rows 0").code, 2);
}

#[test]
fn audit_record_numbers_include_skipped_records() {
    let lines = "{\"who\":\"a\",\"city\":\"Zug\"}\nno JSON\n{\"who\":\"b\",\"city\":\"Zug\"}\n{\"city\":\"Zug\"}\n\
                 {\"who\":\"c\",\"city\":\"Bern\"}\n";
    let place = Place::with("t.ndjson", lines);
    let report = place.report("t.ndjson --k 2 --subject who --skip-unreadable --rows 9");
    assert_eq!((&report["rows"], &report["riskiest"]["at_risk"]), (&3.into(), &1.into()));
    assert_eq!(report["riskiest"]["records"][0]["record"], 5, "the unreadable one and the one of nobody count");
    assert_eq!(report["riskiest"]["records"][0]["combinations"], serde_json::json!([["city"]]));
}

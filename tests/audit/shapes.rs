//! Tests the conversion of documents to a table, and the agreement of report figures.

use serde_json::{Value, json};

use crate::audit::place::{CENSUS, Place, sets};

fn column(report: &Value, name: &str) -> Value {
    let all = report["attributes"].as_array().expect("a list");
    all.iter().find(|column| column["name"] == name).unwrap_or_else(|| panic!("no column {name}: {report}")).clone()
}

fn bundles() -> String {
    let bundle = |n: usize| {
        format!(
            "{{\"resourceType\":\"Bundle\",\"type\":\"collection\",\"entry\":[{{\"resource\":{{\"resourceType\":\"Patient\",\
             \"birthDate\":\"19{:02}-03-04\",\"postalCode\":\"{}\"}}}}]}}\n",
            n % 100,
            8000 + n
        )
    };
    (0..200).map(bundle).collect()
}

#[test]
fn audit_of_arrays_gives_no_verdict() {
    let place = Place::with("bundles.ndjson", bundles());
    let report = place.report("bundles.ndjson --k 5");
    assert_eq!(report["arrays"], json!(["entry"]));
    let text = place.audit("bundles.ndjson --k 5 --html page.html").stdout;
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is not said: {text}"));
    assert!(at("NOT JUDGED") < at("Risk") && text.contains("\"entry\" holds arrays"), "before any number: {text}");
    assert!(text.contains("jq -c '.entry[]' FILE"), "what to do: {text}");
    let page = place.read("page.html");
    assert!(page.contains("<b>Not judged.</b>") && page.contains("The contents of the arrays were not judged."));
    assert!(!page.contains("verdict good"), "no verdict of safety");
    let census = Place::with("census.csv", CENSUS);
    assert!(!census.audit("census.csv --k 3").stdout.contains("NOT JUDGED"));
    assert_eq!(census.report("census.csv --k 3")["arrays"], json!([]));
}

#[test]
fn audit_commands_quote_column_names() {
    let rows = |name: &str| format!("{{\"sex\":\"f\",\"{name}\":[1]}}\n").repeat(6);
    for (name, command) in [
        ("my-list", Some("jq -c '.\"my-list\"[]' FILE")),
        ("my list", Some("jq -c '.\"my list\"[]' FILE")),
        ("x'; touch pwned; echo '", None),
        ("$(touch pwned)", None),
        ("`id`", None),
        ("a|b", None),
    ] {
        let place = Place::with("t.ndjson", rows(name));
        let said = place.audit("t.ndjson --k 3 --html page.html").stdout;
        let page = place.read("page.html");
        assert!(said.contains("hold") && said.contains("arrays") && page.contains("holds arrays"), "{said}");
        match command {
            Some(command) => assert!(said.contains(command), "{said}"),
            None => assert!(!said.contains("jq ") && !page.contains("jq "), "{said}"),
        }
        assert_eq!(place.report("t.ndjson --k 3")["arrays"], json!([name]), "JSON has the name as it is");
    }
}

#[test]
fn audit_null_above_an_object_adds_no_column() {
    let rows: String = (0..30)
        .map(|n| match n % 3 {
            0 => "{\"sex\":\"f\",\"vitals\":null}\n".to_owned(),
            _ => format!("{{\"sex\":\"m\",\"vitals\":{{\"pulse\":{}}}}}\n", 60 + n % 2),
        })
        .collect();
    let place = Place::with("t.ndjson", rows);
    let report = place.report("t.ndjson --k 2");
    let names: Vec<&str> =
        report["attributes"].as_array().expect("a list").iter().filter_map(|a| a["name"].as_str()).collect();
    assert_eq!((names.len(), names.contains(&"vitals")), (2, false), "{names:?}");
    // A null above the object is a null of the column.
    let pulse = column(&report, "vitals.pulse");
    assert_eq!((&pulse["distinct"], &pulse["missing"]), (&json!(3), &json!(10)));
    place.write("n.ndjson", "{\"a\":1,\"b\":null}\n{\"a\":1,\"b\":null}\n{\"a\":1,\"b\":null}\n");
    assert_eq!(column(&place.report("n.ndjson --k 2"), "b")["missing"], 3);
}

#[test]
fn audit_searches_constant_urls() {
    let rows: String =
        (0..40).map(|n| format!("{},http://hl7.org/fhir/sid/us-ssn,https://people.example/{n}\n", n % 2)).collect();
    let place = Place::with("t.csv", format!("sex,system,home\n{rows}"));
    let report = place.report("t.csv --k 3");
    assert_eq!(report["standalone_identifiers"], json!(["home"]));
    assert_eq!(column(&report, "system")["searched"], true);
    assert_eq!(sets(&report, "maximal_non_qids"), ["sex+system"]);
}

/// Two hundred columns have too many triples to check separately. One triple is a quasi-identifier.
#[test]
fn audit_column_figures_agree_with_sets() {
    let constant = |n: usize| format!("x{n}");
    let header: Vec<String> = ["a", "b", "c"].into_iter().map(str::to_owned).chain((0..197).map(constant)).collect();
    let tail = ",1".repeat(197);
    let mut rows = String::new();
    for combination in 0..8_usize {
        let times = if combination == 7 { 1 } else { 10 };
        let row = format!("{},{},{}{tail}\n", combination >> 2, combination >> 1 & 1, combination & 1);
        rows += &row.repeat(times);
    }
    let place = Place::with("wide.csv", format!("{}\n{rows}", header.join(",")));
    let report = place.report("wide.csv --k 5");
    assert_eq!(sets(&report, "minimal_qids"), ["a+b+c"]);
    assert_eq!(report["qids"][0]["records_below_k"], 1);
    for name in ["a", "b", "c"] {
        assert_eq!(column(&report, name)["records_at_risk"], 1, "{name} is part of a set that gives a record away");
    }
    assert_eq!(column(&report, "x0")["records_at_risk"], 0);
}

#[test]
fn audit_page_shows_next_steps_and_digest() {
    let place = Place::with("census.csv", CENSUS);
    assert_eq!(place.audit("census.csv --k 3 --strategy greedy --html page.html").code, 0);
    let page = place.read("page.html");
    let digest: String = {
        use sha2::Digest;
        sha2::Sha256::digest(CENSUS.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    for said in ["Next steps", &digest, "--strategy greedy", "--k 3", "--subject", "throng anonymize"] {
        assert!(page.contains(said), "{said}");
    }
    let text = place.audit("census.csv --k 3").stdout;
    assert!(text.contains("Next steps"), "{text}");
    let piped = place.fed("- --format csv --separator ; --k 3 --html piped.html", CENSUS.as_bytes());
    assert_eq!(piped.code, 0, "{}", piped.stderr);
    assert!(place.read("piped.html").contains("without a digest"));
}

#[test]
fn audit_page_is_accessible() {
    let place = Place::with("census.csv", CENSUS);
    assert_eq!(place.audit("census.csv --k 3 --html page.html").code, 0);
    let page = place.read("page.html");
    assert_eq!((page.matches("<main>").count(), page.matches("</main>").count()), (1, 1));
    assert_eq!(page.matches("<th").count(), page.matches("<th scope=").count() + page.matches("<thead").count());
    let boxes = page.matches("class=\"scroll\"").count();
    assert!(boxes >= 2);
    let focusable = page.matches("class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"").count();
    assert_eq!(boxes, focusable, "every box that scrolls can be reached and has a name");
    assert!(page.contains("max-width: 40rem") && page.contains("data-name=\"records\""), "a list where it is narrow");
}

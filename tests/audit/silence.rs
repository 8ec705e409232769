//! Checks that reports show no values, and that pages run no code.

use crate::audit::place::{CENSUS, Place, sets};
use crate::support::canaries::Canaries;

#[test]
fn audit_shows_values_only_on_request() {
    let canaries = Canaries::default();
    let (common, rare) = (canaries.text(), canaries.text());
    let mut rows = String::new();
    for i in 0..40 {
        let sex = if i % 2 == 0 { &common } else { &rare };
        let age = if i == 7 { canaries.number() } else { "30".to_owned() };
        rows += &format!("{},{sex},{age},{}@example.org\n", canaries.text(), canaries.text());
    }
    let place = Place::with("t.csv", format!("id,sex,age,mail\n{rows}"));
    let silent = |words: &str| {
        let outcome = place.audit(words);
        canaries.absent_from(&format!("stdout of {words}"), &outcome.stdout);
        canaries.absent_from(&format!("stderr of {words}"), &outcome.stderr);
        outcome
    };
    let outcome = silent("t.csv --k 3 --rows 40 --html page.html");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("Standalone identifiers"));
    canaries.absent_from("the page", place.read("page.html"));
    silent("t.csv --k 3 --rows 40 --json");
    silent("t.csv --k 3 --singletons mask --subject id --json");
    place.write("bad.csv", format!("id,sex\n{rows}"));
    assert_eq!(silent("bad.csv --k 3").code, 1);
    place.write("headless.csv", &rows);
    assert_eq!(silent("headless.csv --k 3").code, 1);
    place.write(
        "bad.ndjson",
        format!("{{\"id\":\"{}\"\n{{\"id\":\"{}\",\"id\":1}}\n", canaries.text(), canaries.text()),
    );
    assert_eq!(silent("bad.ndjson --k 3").code, 1);
    place.write("bad.parquet", format!("PAR1{}PAR1", canaries.text()));
    assert_eq!(silent("bad.parquet --k 3").code, 1);
    let schema = "name = \"t\"\n[[attribute]]\nname = \"sex\"\ntype = \"integer\"\n";
    place.write("schema.toml", schema);
    assert_eq!(silent("t.csv --k 3 --schema schema.toml").code, 1);
    assert_eq!(silent("t.csv --k 3 --schema schema.toml --skip-unreadable").code, 1);
    let shown = place.audit("t.csv --k 3 --show-values --html page.html");
    assert!(!canaries.found_in(shown.stdout.as_bytes()).is_empty());
    assert!(!canaries.found_in(place.read("page.html").as_bytes()).is_empty());
}

#[test]
fn audit_escapes_column_names() {
    let name = "<script>alert(1)</script>\u{1b}[2J\u{202e}";
    let place = Place::with("t.csv", format!("{name},b\n1,2\n1,3\n2,3\n1,2\n1,3\n1,2\n"));
    let outcome = place.audit("t.csv --k 2 --html page.html");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("<script>alert(1)</script>\u{fffd}[2J\u{fffd}"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('\u{1b}') && !outcome.stdout.contains('\u{202e}'), "no terminal, no emphasis");
    let page = place.read("page.html");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains("<script"));
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    let report = place.report("t.csv --k 2");
    assert_eq!(sets(&report, "minimal_qids"), [name], "JSON has the name as it is");
}

#[test]
fn audit_page_loads_and_runs_nothing() {
    let place = Place::with("census.csv", CENSUS);
    assert_eq!(place.audit("census.csv --k 3 --html page.html").code, 0);
    let page = place.read("page.html");
    for forbidden in ["<script", "http://", "https://", "url(", "@import", "<img", "<iframe", "src="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    for part in ["<svg", "prefers-color-scheme: dark", "@media print", "census.csv", "k = 3", "age", "25.0 %"] {
        assert!(page.contains(part), "{part}");
    }
    let opened = page.matches("<section").count();
    assert_eq!(
        (opened, page.matches("<svg").count()),
        (page.matches("</section>").count(), page.matches("</svg>").count())
    );
    assert!(opened > 5);
}

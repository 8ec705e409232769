//! Checks that the evidence page shows implications and their subjects, and never a value or a small crowd.

use crate::support;

use std::fmt::Write as _;
use support::binary::Place;
use support::schemas::schema;

const SCHEMA: &str = schema!("told"; person, text "zip", text "town", text "mood");

const FEWEST: u64 = 100;

/// ZIP codes imply towns of 133 subjects each. One further subject has twenty records in a unique town.
fn records() -> String {
    let mut text = String::new();
    for n in 0..1200 {
        let (zip, town) = [("zip-8001", "town-zurich"), ("zip-8002", "town-zurich"), ("zip-3011", "town-bern")][n % 3];
        let mood = ["mood-calm", "mood-tired"][n / 3 % 2];
        writeln!(text, r#"{{"person":"person-{}","zip":"{zip}","town":"{town}","mood":"{mood}"}}"#, n % 400)
            .expect("a string");
    }
    for _ in 0..20 {
        writeln!(text, r#"{{"person":"person-hermit","zip":"zip-9999","town":"town-alone","mood":"mood-only"}}"#)
            .expect("a string");
    }
    text
}

#[test]
fn strongest_inferences_are_shown_without_values() {
    let plan = "[plan]\nwindow_records = 2000\n";
    let place = Place::new(SCHEMA, plan);
    let mut daemon = place.start(&[("SOURCE__PATH", "-"), ("BATCH__MAX_RECORDS", "610")]);
    let found = |status: &serde_json::Value| status["plan"]["evidence"]["strongest"].as_array().cloned();
    // Evidence is shown with the batch after its computation.
    let mut strongest = Vec::new();
    for round in 1..=4_u64 {
        daemon.feed(records());
        let status = daemon.until("the records are consumed", |status| status["totals"]["consumed"] == 1220 * round);
        strongest = found(&status).unwrap_or_default();
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let one = |from: &str, to: &str| {
        let mut of = strongest.iter().filter(|i| i["from"] == from && i["to"] == to);
        let one = of.next().cloned();
        assert!(of.next().is_none(), "one for an ordered pair: {strongest:?}");
        one
    };
    let told = one("zip", "town").expect("a ZIP tells its town");
    assert_eq!(told["probability"], 1.0, "{told}");
    for inference in &strongest {
        assert!(inference["support"].as_u64().is_some_and(|people| people >= FEWEST), "{inference}");
        let keys: Vec<&String> = inference.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["from", "to", "support", "probability"]);
    }
    // The mood implies the ZIP code, but only for one subject.
    for to in ["zip", "town"] {
        let told = one("mood", to);
        assert!(told.as_ref().is_none_or(|told| told["probability"].as_f64() < Some(1.0)), "{told:?}");
    }
    let texts = ["zip-", "town-", "mood-", "person-", "hermit"];
    for page in ["/plan", "/status.json", "/metrics", "/"] {
        let (code, body) = daemon.get(page).expect("a page");
        assert_eq!(code, 200);
        for text in texts {
            assert!(!body.contains(text), "{text} on {page}");
        }
    }
    let (_, page) = daemon.get("/plan").expect("a page");
    assert!(page.contains("\"strongest\""), "{page}");
    let outcome = daemon.wait().expect(0);
    assert!(texts.iter().all(|text| !outcome.stderr.contains(text)), "{}", outcome.stderr);
}

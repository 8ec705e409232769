//! The daemon tries attacks on what it has just released, and says how often they were right.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};
use support::binary::{Place, series};
use support::schemas::schema;

const SCHEMA: &str = schema!("visits"; person, hundred "age", text "city", sensitive "illness");

const GROUPS: &str = "[[group]]\nname = \"body\"\nattributes = [\"age\", \"illness\"]\n\
    [[group]]\nname = \"place\"\nattributes = [\"city\"]\n";

/// With `alike`, everybody says the same.
fn records(from: usize, to: usize, alike: bool) -> String {
    let mut text = String::new();
    for n in from..to {
        if alike {
            writeln!(text, r#"{{"person":"p{n}","age":30,"city":"c","illness":"flu"}}"#).expect("a string");
            continue;
        }
        let (age, illness) = (20 + n * n % 50, ["flu", "cold"][n / 3 % 2]);
        writeln!(text, r#"{{"person":"p{n}","age":{age},"city":"c{}","illness":"{illness}"}}"#, n % 7)
            .expect("a string");
    }
    text
}

/// What the pages say of attacks once they say anything; nothing where they do not in time.
fn told(interval: &str, patience: Duration, alike: bool) -> BTreeMap<String, f64> {
    let place = Place::new(SCHEMA, GROUPS);
    let overrides = [
        ("SOURCE__PATH", "-"),
        ("BATCH__MAX_RECORDS", "1000"),
        ("BATCH__MAX_WAIT", "100ms"),
        ("TELEMETRY__ATTACK_INTERVAL", interval),
    ];
    let mut daemon = place.start(&overrides);
    let begun = Instant::now();
    let (mut fed, mut told) = (0, BTreeMap::new());
    while begun.elapsed() < patience && told.is_empty() {
        daemon.feed(records(fed, fed + 1000, alike));
        fed += 1000;
        std::thread::sleep(Duration::from_millis(300));
        let pages = daemon
            .get("/metrics")
            .filter(|(code, _)| *code == 200)
            .map_or_else(BTreeMap::new, |(_, text)| series(&text));
        told =
            pages.into_iter().filter(|(name, value)| name.starts_with("throng_attack_yield") && *value > 0.0).collect();
        if !told.is_empty() {
            let (_, text) = daemon.get("/metrics").expect("the pages");
            told.extend(series(&text).into_iter().filter(|(name, _)| name.starts_with("throng_attack_")));
        }
    }
    daemon.end_input();
    let outcome = daemon.wait();
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    told
}

#[test]
fn attacks_are_tried_beside_the_stream_and_keep_their_promise() {
    let told = told("200ms", Duration::from_secs(60), false);
    let of = |name: &str| told.get(name).copied().unwrap_or_else(|| panic!("{name} in {told:?}"));
    // Two illnesses: the more frequent one of a class is right half of the time.
    assert!((0.45..0.75).contains(&of("throng_attack_yield{attack=\"homogeneity\"}")), "{told:?}");
    assert!(of("throng_attack_yield{attack=\"linkage\"}") <= 0.35, "{told:?}");
    for attack in ["linkage", "joining", "homogeneity"] {
        assert!(of(&format!("throng_attack_above_promise{{attack=\"{attack}\"}}")) == 0.0, "{told:?}");
    }
    // Few lines are coarse: of so few nothing is told.
    assert!(of("throng_attack_yield{attack=\"exclusion\"}").is_nan(), "{told:?}");
    // In steps of a twentieth.
    for (name, value) in told.iter().filter(|(name, value)| name.contains("yield") && !value.is_nan()) {
        assert!((value * 20.0 - (value * 20.0).round()).abs() < 1e-9, "{name} {value}");
    }
}

/// Lines that say the same lie in an order that nobody sees: whoever joins them by their places learns nothing.
#[test]
fn a_stream_in_which_all_say_the_same_raises_no_alarm() {
    let told = told("200ms", Duration::from_secs(60), true);
    let joining = told.get("throng_attack_yield{attack=\"joining\"}").copied().expect("it was tried");
    assert!(joining <= 0.05, "{told:?}");
    assert!(told.get("throng_attack_above_promise{attack=\"joining\"}") == Some(&0.0), "{told:?}");
}

#[test]
fn attacks_that_are_not_asked_for_are_not_tried() {
    assert!(told("0s", Duration::from_secs(4), false).is_empty());
}

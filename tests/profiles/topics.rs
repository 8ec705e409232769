//! Profiles from a compacted topic.

use crate::profiles::{Scene, classes, line, lines, metric, wait_for_updates};
use crate::support::canaries::Canaries;
use crate::support::kafka::{Record, TestCluster};

#[test]
fn records_are_joined_to_current_profiles_of_their_subjects() {
    let Some(broker) = TestCluster::shared() else { return };
    let scene = Scene::new(broker, 0, "");
    // Ten people of one kind, ten of another, one unique person, and nine without a profile.
    let mut first: Vec<_> = (0..10).map(|p| (p, Some((34, "f")))).collect();
    first.extend((10..20).map(|p| (p, Some((61, "m")))));
    first.push((20, Some((7, "x"))));
    scene.profiles(&first);
    scene.visits(0..30);
    let process = scene.start(None);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 30);
    let released = scene.released();
    let known = classes(&released);
    assert_eq!(known[&line("34", "\"f\"")], 10, "{known:?}");
    assert_eq!(known[&line("61", "\"m\"")], 10, "{known:?}");
    assert!(
        known[&line("null", "null")] >= 9,
        "missing profiles are missing cells, whatever the record says: {known:?}"
    );
    assert!(!released.iter().any(|l| l.contains("\"x\"") || l.contains("age\":7,")), "nobody stands alone: {known:?}");
    assert!(!released.iter().any(|l| l.contains("\"q\"")), "the record's own key is not the profile's: {known:?}");

    // Five of the first kind change, five lose their profile, and the nine get one.
    let mut second: Vec<_> = (0..5).map(|p| (p, Some((80, "f")))).collect();
    second.extend((5..10).map(|p| (p, None)));
    second.extend((21..30).map(|p| (p, Some((45, "m")))));
    scene.profiles(&second);
    wait_for_updates(&process, (first.len() + second.len()) as f64);
    scene.visits(0..30);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 60);
    let after = classes(&scene.released()[released.len()..]);
    assert_eq!(after[&line("80", "\"f\"")], 5, "{after:?}");
    assert_eq!(after[&line("45", "\"m\"")], 9, "{after:?}");
    assert!(after[&line("null", "null")] >= 5, "{after:?}");
    assert!(!after.contains_key(&line("34", "\"f\"")), "what has changed is not said again: {after:?}");
    assert!(metric(&process, "throng_profiles_lag_records").abs() < 1.0);

    process.terminate();
    process.wait().expect(0);
    scene.visits(0..30);
    let process = scene.start(None);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 90);
    process.terminate();
    process.wait().expect(0);
    let all = scene.released();
    let again = classes(&all[all.len() - after.values().sum::<usize>()..]);
    assert_eq!(again, after);
}

#[test]
fn existing_profile_topic_is_read_before_first_batch() {
    let Some(broker) = TestCluster::shared() else { return };
    let scene = Scene::new(broker, 0, "");
    let many: Vec<_> = (0..5_000).map(|p| (p, Some((34, "f")))).collect();
    scene.profiles(&many);
    scene.visits(4_990..5_000);
    let process = scene.start(None);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 10);
    process.terminate();
    let outcome = process.wait().expect(0);
    assert_eq!(classes(&scene.released())[&line("34", "\"f\"")], 10, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("profiles read"), "{}", outcome.stderr);
}

#[test]
fn missing_profile_topic_is_refused() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut scene = Scene::new(broker, 0, "");
    scene.profiles = crate::profiles::unique("nowhere");
    let text = String::from_utf8(scene.place.read("throng.toml")).expect("text");
    let (head, _) = text.split_once("[[join]]").expect("a join");
    let join = format!("{head}[[join]]\nname = \"profiles\"\ntopic = \"{}\"\n", scene.profiles);
    scene.place.write("throng.toml", join);
    let outcome = scene.start(None).wait().expect(2);
    assert!(outcome.stderr.contains(&format!("missing topics: {}", scene.profiles)), "{}", outcome.stderr);
}

#[test]
fn profile_values_are_absent_from_disk_logs_and_pages() {
    let Some(broker) = TestCluster::shared() else { return };
    let scene = Scene::with(broker, 0, "", false);
    let canaries = Canaries::default();
    let (t, n) = (|| canaries.text(), || canaries.number());
    let message = |key: Option<String>, payload: Option<String>| Record {
        partition: Some(0),
        key: key.map(String::into_bytes),
        payload: payload.map(String::into_bytes),
        ..Record::default()
    };
    let mut profiles: Vec<Record> = (0..40)
        .map(|p| {
            // Values outside and inside the hierarchy, and unknown keys.
            let age = if p % 2 == 0 { n() } else { "50".to_owned() };
            message(
                Some(format!("p{p}")),
                Some(format!(r#"{{"born":{{"age":{age},"{}":1}},"sex":"{}","{}":"{}"}}"#, t(), t(), t(), t())),
            )
        })
        .collect();
    let refused = [
        message(Some("p1".into()), Some(format!(r#"{{"born":{{"age":"{}"}}}}"#, t()))),
        message(Some("p2".into()), Some(format!(r#"{{"sex":"{}"#, t()))),
        message(Some("p3".into()), Some(format!(r#"["{}"]"#, t()))),
        message(Some("p4".into()), Some(format!(r#"{{"sex":"{}","sex":"{}"}}"#, t(), t()))),
        message(Some("p5".into()), Some(format!(r#"{{"born":{{"age":NaN}},"sex":"{}"}}"#, t()))),
        message(Some("p6".into()), Some(format!(r#"{{"sex":"{}{}"}}"#, t(), "x".repeat(3_000)))),
        message(Some("p7".into()), Some(String::new())),
        message(None, Some(format!(r#"{{"sex":"{}"}}"#, t()))),
        message(Some(String::new()), Some(format!(r#"{{"sex":"{}"}}"#, t()))),
        Record {
            key: Some(vec![0xff, 0xfe]),
            payload: Some(t().into_bytes()),
            partition: Some(0),
            ..Record::default()
        },
    ];
    let count = refused.len();
    profiles.extend(refused);
    profiles.extend((0..5).map(|_| message(Some(t()), Some(format!(r#"{{"sex":"{}"}}"#, t())))));
    broker.produce_records(&scene.profiles, &profiles);
    scene.visits(0..40);
    let process = scene.start(None);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 40);
    let refused: f64 = crate::profiles::series(&process.get("/metrics").expect("an answer").1)
        .iter()
        .filter(|(name, _)| name.starts_with("throng_profiles_refused_total"))
        .map(|(_, value)| value)
        .sum();
    assert_eq!(refused, count as f64);
    for page in ["/", "/metrics", "/status.json", "/plan"] {
        canaries.absent_from(page, process.get(page).expect("an answer").1);
    }
    process.terminate();
    let outcome = process.wait().expect(0);
    canaries.absent_from("standard error", &outcome.stderr);
    assert!(outcome.stderr.contains("a profile cannot be read"), "{}", outcome.stderr);
    for (path, content) in scene.place.files("state") {
        canaries.absent_from(&path.display().to_string(), &content);
    }
    let released = scene.released();
    assert!(!classes(&released).is_empty(), "the wards leave");
    released.iter().for_each(|line| canaries.absent_from("the release", line));
}

#[test]
fn profiles_beyond_limit_are_ignored_until_one_is_removed() {
    let Some(broker) = TestCluster::shared() else { return };
    let scene = Scene::new(broker, 0, "max_people = 4");
    // All profiles are in one partition, so their order is known.
    let profiles: Vec<_> = (0..10).map(|p| (2 * p, Some((34, "f")))).collect();
    scene.profiles(&profiles);
    let visit = || scene.visits((0..10).map(|p| 2 * p));
    visit();
    let process = scene.start(None);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 10);
    let first = scene.released();
    let known = classes(&first);
    assert_eq!((known[&line("34", "\"f\"")], known[&line("null", "null")]), (4, 6), "{known:?}");
    assert!(metric(&process, "throng_limit_reached_total{limit=\"profiles\"}") >= 1.0);
    scene.profiles(&[(0, None), (2, None), (20, Some((34, "f"))), (10, Some((34, "f"))), (12, Some((34, "f")))]);
    wait_for_updates(&process, 15.0);
    visit();
    process.until("all are consumed", |s| s["totals"]["consumed"] == 20);
    process.terminate();
    process.wait().expect(0);
    let known = classes(&scene.released()[first.len()..]);
    assert_eq!((known[&line("34", "\"f\"")], known[&line("null", "null")]), (3, 7), "{known:?}");
    assert_eq!(lines(&broker.read_committed(&scene.raw)).len(), 20);
}

#[test]
fn held_records_use_profile_at_release() {
    let Some(broker) = TestCluster::shared() else { return };
    let mut scene = Scene::new(broker, 0, "");
    scene.hold = "9";
    scene.profiles(&[(0, Some((7, "x"))), (1, Some((93, "y")))]);
    scene.profiles(&(2..6).map(|p| (p, Some((34, "f")))).collect::<Vec<_>>());
    scene.visits(0..6);
    let process = scene.start(None);
    let held = process.until("all are consumed", |s| s["totals"]["consumed"] == 6);
    assert_eq!(held["held"], 2, "two of a kind of their own wait");
    scene.profiles(&[(0, Some((34, "f"))), (1, Some((34, "f")))]);
    wait_for_updates(&process, 8.0);
    scene.visits(2..6);
    let after = process.until("all are consumed", |s| s["totals"]["consumed"] == 10);
    assert_eq!(after["held"], 0);
    process.terminate();
    process.wait().expect(0);
    let known = classes(&scene.released());
    assert_eq!(known[&line("34", "\"f\"")], 10, "{known:?}");
}

#[test]
fn topic_records_are_joined_to_profile_file() {
    let Some(broker) = TestCluster::shared() else { return };
    let scene = Scene::new(broker, 0, "");
    let text = String::from_utf8(scene.place.read("throng.toml")).expect("text");
    let (head, _) = text.split_once("[[join]]").expect("a join");
    scene.place.write("throng.toml", format!("{head}[[join]]\nname = \"profiles\"\npath = \"profiles.csv\"\n"));
    scene.place.write("profiles.csv", "person,age,sex\np0,34,f\np1,34,f\np2,34,f\np3,34,f\n");
    scene.visits(0..8);
    let process = scene.start(None);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 8);
    scene.visits(0..8);
    process.until("all are consumed", |s| s["totals"]["consumed"] == 16);
    process.terminate();
    process.wait().expect(0);
    let known = classes(&scene.released());
    assert_eq!((known[&line("34", "\"f\"")], known[&line("null", "null")]), (8, 8), "{known:?}");
}

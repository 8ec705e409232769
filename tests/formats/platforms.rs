//! Documents that `throng generate --platform` invents, through a daemon with the schema that is shipped for them.

use super::Scene;
use super::scene::file;
use super::support::kafka::{Broker, unique};
use serde_json::Value;
use std::process::Command;

const RECORDS: usize = 600;

fn generate(broker: &Broker, platform: &str, records: usize, topic: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    command.args([
        "generate",
        "wearable",
        "--subjects",
        "40",
        "--skew",
        "0",
        "--key-by-subject",
        "--platform",
        platform,
    ]);
    command.args(["--records", &records.to_string(), "--topic", topic, "--brokers", &broker.bootstrap()]);
    assert!(command.status().expect("it runs").success(), "{platform}");
}

/// What leaves of `RECORDS` documents, and of how many records it is.
fn released(
    platform: &str,
    schema: &str,
    source: &str,
    more: impl Fn(&Broker) -> String,
) -> Option<(Vec<Value>, String)> {
    let broker = Broker::shared()?;
    let schema = std::fs::read_to_string(file(schema)).expect("the schema");
    let scene = Scene { max_age: "2s", ..Scene::new(broker, &schema) };
    generate(broker, platform, RECORDS, &scene.raw);
    let mut daemon = scene.start(source, "", &more(broker));
    scene.wait_consumed(RECORDS, &mut daemon);
    daemon.stop();
    assert_eq!(scene.letters(), Vec::<Value>::new(), "{platform}: {}", daemon.said());
    let lines = broker.read_committed(&scene.out).into_iter();
    let lines = lines.map(|line| serde_json::from_slice(&line.payload.expect("a payload")).expect("JSON")).collect();
    Some((lines, daemon.said()))
}

fn shown(lines: &[Value], attribute: &str) -> usize {
    lines.iter().filter(|line| line.get(attribute).is_some_and(|cell| *cell != "*")).count()
}

#[test]
fn data_points_of_open_mhealth() {
    let Some((lines, said)) = released("open-mhealth", "open-mhealth-heart-rate.toml", "", |_| String::new()) else {
        return;
    };
    assert!(lines.len() > RECORDS * 8 / 10 && shown(&lines, "pulse") > RECORDS / 2, "{}: {said}", lines.len());
}

#[test]
fn bundles_of_fhir() {
    let Some((lines, said)) = released("fhir-bundle", "fhir-bundle.toml", "", |_| String::new()) else { return };
    // Four observations a Bundle.
    assert!(lines.len() > 4 * RECORDS * 7 / 10 && shown(&lines, "value") > 2 * RECORDS, "{}: {said}", lines.len());
}

#[test]
fn series_of_fitbit() {
    let Some((lines, said)) = released("fitbit", "fitbit-heart-intraday.toml", "", |_| String::new()) else { return };
    assert!(lines.len() > 4 * RECORDS * 7 / 10 && shown(&lines, "pulse") > RECORDS, "{}: {said}", lines.len());
}

#[test]
fn heart_rates_of_radar_base_with_profiles() {
    let profiles = |broker: &Broker| {
        let topic = unique("profiles");
        broker.create_topic(&topic, 2, true);
        generate(broker, "radar-profile", 40, &topic);
        format!(
            "[[join]]\nname = \"profiles\"\ntopic = \"{topic}\"\n[[group]]\nname = \"rate\"\nattributes = [\"time\", \"pulse\", \"activity\"]\n\
             [[group]]\nname = \"person\"\nattributes = [\"birth_year\", \"sex\", \"zip\"]\n"
        )
    };
    let found = released("radar", "radar-heart-rate-profiles.toml", "key_format = \"json\"", profiles);
    let Some((lines, said)) = found else { return };
    assert!(shown(&lines, "sex") > RECORDS / 2 && shown(&lines, "pulse") > RECORDS / 2, "{}: {said}", lines.len());
}

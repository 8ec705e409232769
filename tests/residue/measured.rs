//! What handing records on gains, on synthetic records.

use crate::scene::{Account, Instance, Scene, together};
use crate::support::binary::Place;
use crate::support::kafka::{Broker, Record};
use std::time::Instant;

/// Records in all.
const RECORDS: usize = 20_000;
const PARTITIONS: i32 = 4;

/// The same records for one instance with batches of 800, and for two and four with batches of 400 and 200, with and without the topic:
/// what was suppressed, mean loss, lines, and what went through the topic.
#[test]
#[ignore = "minutes, and figures for docs/scale.md instead of an answer"]
fn what_handing_on_gains_on_wearable() {
    let broker = Broker::shared().expect("a broker");
    let input = std::process::Command::new(env!("CARGO_BIN_EXE_throng"))
        .args(["generate", "wearable", "--records", &RECORDS.to_string(), "--seed", "5", "-o", "-"])
        .output()
        .expect("records");
    let lines: Vec<&[u8]> = input.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    let records: Vec<Record> = (0..)
        .zip(&lines)
        .map(|(n, line): (i32, &&[u8])| Record {
            partition: Some(n % PARTITIONS),
            payload: Some(line.to_vec()),
            ..Record::default()
        })
        .collect();
    for (instances, batch, residue) in
        [(1, "800", false), (2, "400", false), (2, "400", true), (4, "200", false), (4, "200", true)]
    {
        run(&Scene::of_partitions(broker, PARTITIONS), instances, batch, residue, &records);
    }
}

fn run(scene: &Scene, instances: usize, batch: &str, residue: bool, records: &[Record]) {
    const NAMES: [&str; 4] = ["one", "two", "three", "four"];
    let groups =
        "[[group]]\nname = \"whole\"\nattributes = [\"age\", \"sex\", \"zip\", \"device_model\", \"activity\"]\n";
    let mut all: Vec<Instance> = NAMES[..instances]
        .iter()
        .map(|name| {
            let place = Place::new(include_str!("../../schemas/wearable.toml"), groups);
            Instance { place, process: None, name }
        })
        .collect();
    scene.broker.produce_records(&scene.raw, records);
    let since = Instant::now();
    for instance in &mut all {
        let more = [
            ("BATCH__MAX_RECORDS", batch),
            ("BATCH__MAX_WAIT", "2s"),
            ("BATCH__MAX_AGE", "20s"),
            ("PRIVACY__K", "5"),
            ("PRIVACY__BATCH_CROWD", "5"),
            ("PRIVACY__MAX_LINES_PER_SUBJECT", "1"),
            ("SINK__RESIDUE_TOPIC", if residue { scene.residue.as_str() } else { "" }),
            ("TELEMETRY__LOG_LEVEL", "warn"),
        ];
        scene.start(instance, &more, "");
    }
    let settled = || {
        let Account { released, suppressed, dead_lettered, .. } = together(&all.iter().collect::<Vec<_>>());
        released + suppressed + dead_lettered
    };
    while settled() < records.len() as u64 {
        assert!(since.elapsed().as_secs() < 600, "{} records", settled());
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    let (mut loss, mut weight) = (0.0, 0.0);
    for instance in &all {
        let page = instance.process().get("/status.json").expect("a page").1;
        let status: serde_json::Value = serde_json::from_str(&page).expect("JSON");
        let released = status["totals"]["released"].as_f64().unwrap_or_default();
        loss += status["mean_loss"].as_f64().unwrap_or_default() * released;
        weight += released;
        println!("  {}: {}", instance.name, status["suppressed"]);
    }
    let account = together(&all.iter().collect::<Vec<_>>());
    let lines = scene.broker.read_committed(&scene.out).len();
    println!(
        "{instances} instance(s), batches of {batch}, residue {residue}: loss {:.4}, {account:?}, lines {lines}, {:.1} s",
        loss / f64::max(weight, 1.0),
        since.elapsed().as_secs_f64(),
    );
    all.iter_mut().for_each(Instance::end);
}
